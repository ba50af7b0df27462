//! A limit on one number, and the one rule by which it is met, missed or undecided. SLOs and
//! requirements both judge by it.
//!
//! - The whole interval keeps the limit: met. The whole interval breaks it: missed.
//! - A single number without an interval, and a maximum, which nothing bounds, decide by their value.
//! - A percentile with too few samples meets nothing. It is missed where a lower percentile that has
//!   enough already breaks a limit from above, or a higher one a limit from below; and where several
//!   runs agree that it is broken, because too few samples make the slow end look better than it is.
//! - Everything else is undecided, and the reason says what would decide it.

use inferometer_model::spec::{Limit, Relation, Slo};
use serde::{Deserialize, Serialize};

use crate::metric::{
    self, Better, Distribution, LatencyOrigin, MetricValues, Quantity, QuantityProblem, Shape,
    Statistic, Unit, Visible,
};
use crate::statistics::{
    Estimate, Interval, Percentile, UPPER, normal, runs::RunStatistics, share_across, student,
    worth,
};
use crate::summary::Summary;

/// A number of a run, or a latency of each request, and on which side of its limit it shall be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// A latency without a statistic is that of each request.
    pub quantity: Quantity,
    pub relation: Relation,
    /// In the unit of the metric; a value equal to the limit meets it.
    pub limit: f64,
}

/// What is known of the number, of one run or of several together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evidence {
    /// Of several runs their mean, the interval between them, and the fewest values that one had; it
    /// is certified when each had enough, because their spread shows what dependence does to it.
    pub(crate) estimate: Estimate,
    /// The percentiles of the same values that are certified.
    pub(crate) certified: Vec<(Percentile, Interval)>,
    /// Requests that were attempted, of all runs together.
    pub(crate) requests: u64,
    pub(crate) runs: u64,
}

/// The verdict on a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) verdict: ThresholdVerdict,
    /// Why it is undecided and what would decide it, or what the decision rests on.
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ThresholdVerdict {
    Met,
    Missed,
    Undecided,
}

/// What an undecided threshold counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Undecided {
    Pass,
    /// What could not be shown is not met.
    #[default]
    Fail,
}

impl ThresholdVerdict {
    pub fn key(self) -> &'static str {
        self.into()
    }

    pub const fn is_met(self, undecided: Undecided) -> bool {
        matches!((self, undecided), (Self::Met, _) | (Self::Undecided, Undecided::Pass))
    }
}

/// Why an SLO or a requirement cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SloProblem(String);

impl SloProblem {
    /// `problem` continues the text of the SLO.
    pub(super) fn new(slo: &Slo, problem: impl std::fmt::Display) -> Self {
        Self(format!("`{slo}`{problem}"))
    }
}

impl Threshold {
    /// An SLO with its names looked up in the table of metrics.
    pub(crate) fn from_slo(slo: &Slo, origin: LatencyOrigin) -> Result<Self, SloProblem> {
        let quantity = parse_quantity(slo, origin, " for the whole run, or none for each request")?;
        if is_shown_by_answers(quantity) {
            return Self::with_limit(quantity, slo);
        }
        let metric = quantity.metric();
        let (why, instead) = if [&metric::ITL, &metric::ICL].contains(&metric) {
            ("gaps are pooled over the run, so a request has no single one", "tpot")
        } else {
            ("it is about the client, not about an answer", "ttft or e2e")
        };
        let write = format!("write {}.p99 for the whole run", metric.name);
        Err(SloProblem::new(slo, format!(": {why}; {write}, or promise {instead} of each request")))
    }

    /// The same of a requirement, which is about the whole run.
    pub(super) fn from_requirement(slo: &Slo, origin: LatencyOrigin) -> Result<Self, SloProblem> {
        let quantity = parse_quantity(slo, origin, "")?;
        if is_shown_by_answers(quantity) {
            let found = Self::with_limit(quantity, slo)?;
            if !found.is_per_request() {
                return Ok(found);
            }
        }
        let origin = slo.statistic.as_ref().map_or_else(String::new, |origin| format!(".{origin}"));
        let metric = format!("{}{origin}", slo.metric);
        let problem = format!(
            " is about each request, and a requirement is about the run; write {metric}.p99 instead \
             of {metric}, or promise it with --slo and require attainment>=95%"
        );
        Err(SloProblem::new(slo, problem))
    }

    /// Refuses a limit in another unit, and one on the wrong side, such as a latency that must be high
    /// enough.
    fn with_limit(quantity: Quantity, slo: &Slo) -> Result<Self, SloProblem> {
        let metric = quantity.metric();
        let plain = |what| Err(format!("a number of {what}; write it without a unit"));
        let limit = match (metric.unit, slo.limit) {
            (Unit::Milliseconds, Limit::Milliseconds(limit))
            | (Unit::Share, Limit::Share(limit)) => Ok(limit),
            (Unit::Milliseconds, _) => {
                Err("a time; write it with its unit, such as 500ms or 2s".to_owned())
            }
            (Unit::Share, _) => Err("a share; write it as per cent, such as 1%".to_owned()),
            (_, Limit::Plain(limit)) => Ok(limit),
            (Unit::RequestsPerSecond, _) => plain("requests per second"),
            (Unit::TokensPerSecond, _) => plain("tokens per second"),
            (Unit::Watts, _) => plain("watts"),
            (Unit::JoulesPerToken, _) => plain("joules per token"),
            (Unit::TokensPerJoule, _) => plain("tokens per joule"),
            (Unit::Requests, _) => plain("requests"),
        };
        let limit =
            limit.map_err(|unit| SloProblem::new(slo, format!(": {} is {unit}", metric.name)))?;
        let (better, sign) = match (metric.better, slo.relation) {
            (Better::Lower, Relation::Above) => ("lower", '<'),
            (Better::Higher, Relation::Below) => ("higher", '>'),
            _ => return Ok(Self { quantity, relation: slo.relation, limit }),
        };
        let is_better = format!("{better} is better for {}, so write `{sign}`", metric.name);
        Err(SloProblem::new(slo, format!(" asks for a worse service: {is_better}")))
    }

    /// Whether it is about each request, and not about the run.
    pub(crate) fn is_per_request(&self) -> bool {
        self.quantity.is_per_request()
    }

    pub fn is_met_by(&self, value: f64) -> bool {
        match self.relation {
            Relation::Below => value <= self.limit,
            Relation::Above => self.limit <= value,
        }
    }
}

/// `or_none` continues the list of statistics.
fn parse_quantity(slo: &Slo, origin: LatencyOrigin, or_none: &str) -> Result<Quantity, SloProblem> {
    let found = Quantity::parse(&slo.metric, slo.statistic.as_deref(), origin);
    found.map_err(|problem| match &problem {
        QuantityProblem::UnknownStatistic { .. } => {
            let statistic = slo.statistic.clone().unwrap_or_default();
            let problem = QuantityProblem::UnknownStatistic { statistic };
            SloProblem::new(slo, format!(": {problem}{or_none}"))
        }
        QuantityProblem::UnknownMetric { .. }
        | QuantityProblem::OneValue { .. }
        | QuantityProblem::WhichStatistic { .. } => SloProblem::new(slo, format!(": {problem}")),
    })
}

/// Not a latency of each request that is about the client, or that has no single value.
fn is_shown_by_answers(quantity: Quantity) -> bool {
    let latency = quantity.metric().per_request();
    !quantity.is_per_request() || latency.is_some_and(|it| it.visible != Visible::OnRequests)
}

const UNBOUNDED: &str =
    "too few samples to say how far off it may be; send more requests (--requests)";

/// The largest proposal, as a multiple of what was measured.
const MORE_AT_MOST: f64 = 100.0;
/// The most runs that are proposed.
const RUNS_AT_MOST: u64 = 50;
/// Enough runs for their spread to say something.
const RUNS_USUAL: u64 = 5;

impl Evidence {
    /// What one run with so many attempted requests shows, or why it shows nothing.
    pub(super) fn from_run(
        quantity: Quantity,
        metrics: &MetricValues,
        requests: u64,
    ) -> Result<Self, String> {
        let estimate = quantity.value_among(metrics, requests)?;
        let interval = |found: &Distribution, it| found.intervals.get(Statistic::Percentile(it));
        let certified = metrics.distribution(quantity.metric()).map_or_else(Vec::new, |found| {
            let certified = Percentile::ALL.into_iter().filter(|it| found.is_certified(*it));
            certified.filter_map(|it| Some((it, interval(found, it)?))).collect()
        });
        Ok(Self { estimate, certified, requests, runs: 1 })
    }

    /// What several runs of the same experiment show. `None` without a run, or where a value is not a
    /// number.
    pub(super) fn from_runs(quantity: Quantity, runs: &[(&Summary, Estimate)]) -> Option<Self> {
        let estimates: Vec<Estimate> = runs.iter().map(|(_, estimate)| *estimate).collect();
        let requests = runs.iter().map(|(summary, _)| summary.attempted).sum();
        let found = runs.iter().map(|(run, _)| run.metrics.distribution(quantity.metric()));
        let found: Option<Vec<&Distribution>> = found.collect();
        // The percentiles that every run has enough values for, with the interval between the runs.
        let between = |percentile: Percentile| {
            let enough = |run: &&&Distribution| percentile.certified_from() <= run.n;
            let value = |run| Some(run).filter(enough).and_then(|run| run.percentile(percentile));
            let values: Option<Vec<f64>> = found.as_ref()?.iter().map(value).collect();
            Some((percentile, RunStatistics::from_values(&values?)?.interval?))
        };
        let certified = Percentile::ALL.into_iter().filter_map(between).collect();
        Some(Self { certified, ..Self::from_estimates(quantity, &estimates, requests)? })
    }

    /// The same where only an estimate of each run is known.
    pub(super) fn from_estimates(
        quantity: Quantity,
        estimates: &[Estimate],
        requests: u64,
    ) -> Option<Self> {
        let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        let between = RunStatistics::from_values(&values)?;
        let interval = if quantity.metric().unit == Unit::Share {
            share_across(estimates)
        } else {
            between.interval.map(|interval| interval.clamped(0.0, f64::MAX))
        };
        let n = estimates.iter().map(|estimate| estimate.n).min()?;
        let certified = quantity.statistic().map_or(0, Statistic::certified_from) <= n;
        let estimate = Estimate { value: between.mean, interval, n, effective_n: None, certified };
        Some(Self { estimate, certified: Vec::new(), requests, runs: estimates.len() as u64 })
    }
}

impl Threshold {
    pub(super) fn judge(&self, found: &Evidence) -> Ruling {
        let by_value = self.quantity.metric().shape() == Shape::Scalar
            || self.quantity.statistic() == Some(Statistic::Max);
        let undecided = match found.estimate.interval {
            _ if !found.estimate.certified => self.too_few(found),
            Some(interval) => {
                let [low, high] = [interval.low, interval.high].map(|end| self.verdict_of(end));
                if low == high {
                    return Ruling { verdict: low, reason: None };
                }
                let reason = Some(self.straddles(interval, found));
                return Ruling { verdict: ThresholdVerdict::Undecided, reason };
            }
            None if by_value => {
                let reason = Some("no interval: the value of this run alone decides".to_owned());
                return Ruling { verdict: self.verdict_of(found.estimate.value), reason };
            }
            None => UNBOUNDED.to_owned(),
        };
        match self.missed_already(found) {
            Some(reason) => Ruling { verdict: ThresholdVerdict::Missed, reason: Some(reason) },
            None => Ruling { verdict: ThresholdVerdict::Undecided, reason: Some(undecided) },
        }
    }

    pub(super) fn verdict_of(&self, value: f64) -> ThresholdVerdict {
        if self.is_met_by(value) { ThresholdVerdict::Met } else { ThresholdVerdict::Missed }
    }

    /// By another percentile: no lower one is above it, and no higher one below.
    fn missed_already(&self, found: &Evidence) -> Option<String> {
        let Some(Statistic::Percentile(own)) = self.quantity.statistic() else { return None };
        let already = |name: &str, interval: Interval| {
            format!("already {name} is {}", self.interval_text(interval))
        };
        let breaks = |(other, interval): &&(Percentile, Interval)| match self.relation {
            Relation::Below => *other < own && self.limit < interval.low,
            Relation::Above => own < *other && interval.high < self.limit,
        };
        if let Some((other, interval)) = found.certified.iter().find(breaks) {
            return Some(already(other.name(), *interval));
        }
        let between = found.estimate.interval.filter(|_| 1 < found.runs)?;
        let slow = self.relation == Relation::Below && self.limit < between.low;
        slow.then(|| already(own.name(), between) + " of too few samples")
    }

    fn too_few(&self, found: &Evidence) -> String {
        let Some(statistic) = self.quantity.statistic() else { return UNBOUNDED.to_owned() };
        let (name, needed) = (statistic.name(), statistic.certified_from());
        let (have, effective) = (found.estimate.n, found.estimate.effective_n);
        let (needed_text, have_text) = (grouped(needed), grouped(have));
        if have < needed {
            let instead = match statistic {
                Statistic::Percentile(_) => ", or take a lower percentile",
                Statistic::Mean | Statistic::Max => "",
            };
            let each = if found.runs == 1 { "" } else { " in a run" };
            let requests = found.requests as f64 / found.runs.max(1) as f64;
            let more = requests_for(requests * needed as f64 / have as f64);
            return format!(
                "{name} needs {needed_text} samples and there are {have_text}{each}: {more}{instead}"
            );
        }
        // The effective number is that of the mean; a percentile's own may be smaller.
        let effective = effective.filter(|it| 1.0 <= *it && *it < needed as f64);
        let (there_are, more) = match effective {
            Some(effective) => (
                format!("there are about {effective:.0} of {have_text}"),
                requests_for(found.requests as f64 * needed as f64 / effective),
            ),
            None => (format!("these {have_text} resemble each other"), requests_for(f64::NAN)),
        };
        format!(
            "{name} needs {needed_text} independent samples and {there_are}: {more}, or repeat the \
             run (--repeat {RUNS_USUAL})"
        )
    }

    fn straddles(&self, interval: Interval, found: &Evidence) -> String {
        if *self.quantity.metric() == metric::ERROR_RATE && found.estimate.value <= 0.0 {
            let (sent, left) = (grouped(found.requests), interval.high * 100.0);
            let more = self.more(interval, found, "without a failure");
            return format!("0 of {sent} failed leaves up to {left:.1} %; {more}");
        }
        let more = self.more(interval, found, "like these");
        format!("the 95 % interval {} straddles the limit; {more}", self.interval_text(interval))
    }

    /// What would decide it, if the value stays what it is.
    fn more(&self, interval: Interval, found: &Evidence, alike: &str) -> String {
        let times = self.times(interval, found);
        let near = "the value lies too near the limit for more of the same to decide it".to_owned();
        if 1 < found.runs {
            let apart = (found.estimate.value - self.limit).abs();
            let is_share = self.quantity.metric().unit == Unit::Share;
            // Student's interval of so many runs, in standard deviations between them.
            let reach =
                |runs: u64| student::quantile(UPPER, runs as f64 - 1.0) / (runs as f64).sqrt();
            let spread = (interval.high - found.estimate.value) / reach(found.runs);
            let decides = |runs: &u64| match times {
                _ if !is_share => spread * reach(*runs) < apart,
                Some(times) => found.runs as f64 * times <= *runs as f64,
                None => false,
            };
            return (found.runs + 1..=RUNS_AT_MOST).find(decides).map_or(near, |runs| {
                format!("about {runs} runs {alike} would decide it (--repeat {runs})")
            });
        }
        times.filter(|times| *times <= MORE_AT_MOST).map_or(near, |times| {
            let count = rounded_up(found.requests as f64 * times);
            let verb = if self.is_met_by(found.estimate.value) { "show" } else { "decide" };
            format!(
                "about {} requests {alike} would {verb} it (--requests {count})",
                grouped(count)
            )
        })
    }

    /// How many times as many requests. The interval shrinks with their root; where nothing or
    /// everything failed, it shrinks with their number.
    fn times(&self, interval: Interval, found: &Evidence) -> Option<f64> {
        let value = found.estimate.value;
        let apart = (value - self.limit).abs();
        if apart <= 0.0 {
            return None;
        }
        let times = if self.quantity.metric().unit == Unit::Share && (value <= 0.0 || 1.0 <= value)
        {
            let reach = normal::quantile(UPPER);
            let together =
                Estimate { interval: Some(interval), n: found.requests, ..found.estimate };
            let needed = reach * reach * (1.0 - apart) / apart;
            needed / worth(&together)
        } else {
            let side =
                if value < self.limit { interval.high - value } else { value - interval.low };
            (side / apart) * (side / apart)
        };
        Some(times).filter(|times| times.is_finite())
    }

    /// An interval with enough digits to tell its ends apart.
    fn interval_text(&self, interval: Interval) -> String {
        let unit = self.quantity.metric().unit;
        let (scale, name) = if unit == Unit::Share { (100.0, "%") } else { (1.0, unit.name()) };
        let (low, high) = (interval.low * scale, interval.high * scale);
        let digits = [0, 1, 2].into_iter().find(|digits| 10_f64.powi(1 - digits) <= high - low);
        let digits = usize::try_from(digits.unwrap_or(3)).unwrap_or(3);
        let [low, high] = [low, high].map(|end| grouped(format!("{end:.digits$}")));
        format!("{low}–{high} {name}")
    }
}

fn requests_for(count: f64) -> String {
    if !(count.is_finite() && 1.0 <= count) {
        return "send more requests (--requests)".to_owned();
    }
    let count = rounded_up(count);
    format!("send about {} requests (--requests {count})", grouped(count))
}

/// Rounded up to two digits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number of requests; what is too large for it is as large as it can be"
)]
fn rounded_up(count: f64) -> u64 {
    let mut step = 1.0;
    while 100.0 * step <= count {
        step *= 10.0;
    }
    ((count / step).ceil() * step) as u64
}

/// A number with its thousands separated.
fn grouped(number: impl std::fmt::Display) -> String {
    let text = number.to_string();
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (place, digit) in whole.char_indices() {
        if 0 < place && (whole.len() - place).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

#[cfg(test)]
mod tests;
