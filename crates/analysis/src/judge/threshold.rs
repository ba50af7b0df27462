//! Thresholds on one number: SLOs, requirements, and the one rule by which they are met, missed or
//! undecided.
//!
//! - The whole interval meets the limit: met. The whole interval misses it: missed.
//! - A single number without an interval, and a maximum, which nothing bounds, decide by their value.
//! - A percentile with too few samples is missed where a lower percentile that has enough already
//!   exceeds an upper limit, or a higher one is below a lower limit; and where several runs agree that
//!   it is missed, because too few samples make the slow end look better than it is. It is met where
//!   not one of so many samples is above the limit that a share above it as large as the percentile
//!   leaves would have shown.
//! - Everything else is undecided, and the reason names what would decide it.
//!
//! A requirement is a threshold on one number of a run, of several, or of results of other tools. On top
//! of the rule, an invalid run meets none, and misses only those that its failures are about.

use inferometer_model::fmt;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Limit, Relation, Slo};
use inferometer_model::whole::to_u64;
use inferometer_model::{Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use super::warnings::{ERRORS_SHARE, SEEN_BEFORE};
use super::{CheckKind, CheckState, Severity, Verdict};
use crate::metric::{
    self, Better, Distribution, LatencyOrigin, Metric, MetricValues, Quantity, QuantityProblem,
    Shape, Statistic, Unit, Visible,
};
use crate::record::Measured;
use crate::statistics::{
    Estimate, Interval, Percentile, UPPER, normal, runs::RunStatistics, share_across, student,
    worth,
};
use crate::summary::Summary;
use crate::tool_result::ToolResult;

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
struct Evidence {
    /// For several runs the mean, the interval between them, and the fewest values that one had; it
    /// is certified when each had enough, because their spread shows what dependence does to it.
    estimate: Estimate,
    /// The percentiles of the same values that are certified.
    certified: Vec<(Percentile, Interval)>,
    /// The highest of all values, where the metric has one for each request.
    highest: Option<f64>,
    /// Requests that were attempted, of all runs together.
    requests: u64,
    runs: u64,
}

/// The verdict on a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ruling {
    verdict: ThresholdVerdict,
    /// Why it is undecided and what would decide it, or what the decision rests on.
    reason: Option<String>,
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
    pub(crate) fn plain(problem: &str) -> Self {
        Self(problem.to_owned())
    }

    /// `problem` continues the text of the SLO.
    pub(crate) fn new(slo: &Slo, problem: impl std::fmt::Display) -> Self {
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
            ("gaps are pooled over the run, so a request has no single value", metric::TPOT.name)
        } else {
            ("it describes the client, not an answer", "ttft or e2e")
        };
        let write = format!("write {}.p99 for the whole run", metric.name);
        Err(SloProblem::new(slo, format!(": {why}; {write}, or set an SLO on {instead}")))
    }

    /// The same of a requirement, which is about the whole run.
    fn from_requirement(slo: &Slo, origin: LatencyOrigin) -> Result<Self, SloProblem> {
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
            " limits each request, and a requirement limits the run; write {metric}.p99 instead of \
             {metric}, or set it with --slo and require attainment>=95%"
        );
        Err(SloProblem::new(slo, problem))
    }

    /// Refuses a limit in another unit, and one on the wrong side, such as a latency that must be high
    /// enough.
    fn with_limit(quantity: Quantity, slo: &Slo) -> Result<Self, SloProblem> {
        let metric = quantity.metric();
        let limit = match (metric.unit, slo.limit) {
            (Unit::Milliseconds, Limit::Milliseconds(limit))
            | (Unit::Share, Limit::Share(limit)) => Ok(limit),
            // Of what should be high, nobody requires less than one per cent.
            (Unit::Share, Limit::Plain(share))
                if metric.better == Better::Higher && (0.01..1.0).contains(&share) =>
            {
                Ok(share)
            }
            (Unit::Milliseconds, _) => {
                Err("a time; write it with its unit, such as 500ms or 2s".to_owned())
            }
            (Unit::Share, _) => Err("a share; write it as per cent, such as 1%".to_owned()),
            (_, Limit::Plain(limit)) => Ok(limit),
            (unit, _) => Err(format!("in {}; write it without a unit", unit.name())),
        };
        let limit =
            limit.map_err(|unit| SloProblem::new(slo, format!(": {} is {unit}", metric.name)))?;
        let (better, sign) = match (metric.better, slo.relation) {
            (Better::Lower, Relation::Above) => ("lower", '<'),
            (Better::Higher, Relation::Below) => ("higher", '>'),
            _ => return Ok(Self { quantity, relation: slo.relation, limit }),
        };
        let is_better = format!("{better} is better for {}, so write `{sign}`", metric.name);
        Err(SloProblem::new(slo, format!(" limits the wrong side: {is_better}")))
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
    "too few samples for a confidence interval; send more requests (--requests)";

/// The largest proposal, as a multiple of what was measured.
const MORE_AT_MOST: f64 = 100.0;
/// The most runs that are proposed.
const RUNS_AT_MOST: u64 = 50;
/// Enough runs for a spread between them.
const RUNS_USUAL: u64 = 5;
/// A share of the limit below which the highest of many values leaves no doubt.
const FAR_BELOW: f64 = 0.5;

impl Evidence {
    /// The evidence of one run with so many attempted requests, or why there is none.
    fn from_run(quantity: Quantity, metrics: &MetricValues, requests: u64) -> Result<Self, String> {
        let estimate = quantity.value_among(metrics, requests)?;
        let interval = |found: &Distribution, it| found.intervals.get(Statistic::Percentile(it));
        let certified = metrics.distribution(quantity.metric()).map_or_else(Vec::new, |found| {
            let certified = Percentile::ALL.into_iter().filter(|it| found.is_certified(*it));
            certified.filter_map(|it| Some((it, interval(found, it)?))).collect()
        });
        let highest = metrics.distribution(quantity.metric()).and_then(|it| it.max);
        Ok(Self { estimate, certified, highest, requests, runs: 1 })
    }

    /// The evidence of several runs of the same experiment. `None` without a run, or where a value is not a
    /// number.
    fn from_runs(quantity: Quantity, runs: &[(&Summary, Estimate)]) -> Option<Self> {
        let estimates: Vec<Estimate> = runs.iter().map(|(_, estimate)| *estimate).collect();
        let requests = runs.iter().map(|(summary, _)| summary.attempted).sum();
        let headlines: Vec<MetricValues> = runs.iter().map(|(run, _)| run.headline()).collect();
        let found = headlines.iter().map(|run| run.distribution(quantity.metric()));
        let found: Option<Vec<&Distribution>> = found.collect();
        // The percentiles that every run has enough values for, with the interval between the runs.
        let between = |percentile: Percentile| {
            let enough = |run: &&&Distribution| percentile.certified_from() <= run.n;
            let value = |run| Some(run).filter(enough).and_then(|run| run.percentile(percentile));
            let values: Option<Vec<f64>> = found.as_ref()?.iter().map(value).collect();
            Some((percentile, RunStatistics::from_values(&values?)?.interval?))
        };
        let certified = Percentile::ALL.into_iter().filter_map(between).collect();
        let highest = found.as_ref().map(|found| found.iter().filter_map(|run| run.max));
        let highest = highest.and_then(|all| all.reduce(f64::max));
        Some(Self { certified, highest, ..Self::from_estimates(quantity, &estimates, requests)? })
    }

    /// The same where only an estimate of each run is known.
    fn from_estimates(quantity: Quantity, estimates: &[Estimate], requests: u64) -> Option<Self> {
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
        let runs = estimates.len() as u64;
        Some(Self { estimate, certified: Vec::new(), highest: None, requests, runs })
    }
}

impl Threshold {
    fn judge(&self, found: &Evidence) -> Ruling {
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
                let reason =
                    Some("no confidence interval: the value of this run decides".to_owned());
                return Ruling { verdict: self.verdict_of(found.estimate.value), reason };
            }
            None => UNBOUNDED.to_owned(),
        };
        let missed = self.missed_already(found).map(|why| (ThresholdVerdict::Missed, why));
        let met = || self.met_already(found).map(|why| (ThresholdVerdict::Met, why));
        let (verdict, reason) =
            missed.or_else(met).unwrap_or((ThresholdVerdict::Undecided, undecided));
        Ruling { verdict, reason: Some(reason) }
    }

    fn verdict_of(&self, value: f64) -> ThresholdVerdict {
        if self.is_met_by(value) { ThresholdVerdict::Met } else { ThresholdVerdict::Missed }
    }

    /// Whether another percentile already misses it: a lower one is never above it, a higher one never
    /// below.
    fn missed_already(&self, found: &Evidence) -> Option<String> {
        let Some(Statistic::Percentile(own)) = self.quantity.statistic() else { return None };
        let already = |name: &str, interval: Interval| {
            format!("{name} is already {}", self.interval_text(interval))
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
        slow.then(|| already(own.name(), between) + " with too few samples")
    }

    /// Whether not one of all values is above an upper limit, and they are so many that the share
    /// which the percentile leaves above it would have shown itself. Correlated values count as fewer,
    /// except where all of them are far below the limit.
    fn met_already(&self, found: &Evidence) -> Option<String> {
        let Some(Statistic::Percentile(own)) = self.quantity.statistic() else { return None };
        let is_below = |highest: &f64| self.relation == Relation::Below && *highest <= self.limit;
        let highest = found.highest.filter(is_below)?;
        let count = found.estimate.n * found.runs;
        let part = if count < found.requests {
            format!(" (the steady part of {} requests)", fmt::count(found.requests))
        } else {
            String::new()
        };
        let is_far = highest <= FAR_BELOW * self.limit;
        let effective = match found.estimate.effective_n {
            Some(effective) if !is_far => effective,
            // Values of a single run of which nothing is known may all say the same.
            None if !is_far && found.runs == 1 => 0.0,
            _ => f64::INFINITY,
        };
        let unseen = own.probability().share().powf(effective.min(count as f64));
        (unseen <= 1.0 - UPPER).then(|| {
            let (count, highest) = (fmt::count(count), fmt::number(highest));
            let unit = self.quantity.metric().unit.name();
            format!("the highest of all {count} values{part} is {highest} {unit}")
        })
    }

    fn too_few(&self, found: &Evidence) -> String {
        let Some(statistic) = self.quantity.statistic() else { return UNBOUNDED.to_owned() };
        let (name, needed) = (statistic.name(), statistic.certified_from());
        let (have, effective) = (found.estimate.n, found.estimate.effective_n);
        let (needed_text, have_text) = (fmt::count(needed), fmt::count(have));
        if have < needed {
            let instead = match statistic {
                Statistic::Percentile(_) => ", or use a lower percentile",
                Statistic::Mean | Statistic::Max => "",
            };
            let each = if found.runs == 1 { "" } else { " in a run" };
            let requests = found.requests as f64 / found.runs.max(1) as f64;
            let more = requests_for(requests * needed as f64 / have as f64);
            return format!(
                "{name} needs {needed_text} samples and there are {have_text}{each}: {more}{instead}"
            );
        }
        // The effective number is that of the mean: it says how many to send, not what was judged.
        let effective = effective.filter(|it| 1.0 <= *it && *it < needed as f64);
        let times = effective.map_or(f64::NAN, |effective| needed as f64 / effective);
        let more = requests_for(found.requests as f64 * times);
        format!(
            "{name} needs {needed_text} independent samples and these {have_text} are correlated: \
             {more}, or repeat the run (--repeat {RUNS_USUAL})"
        )
    }

    fn straddles(&self, interval: Interval, found: &Evidence) -> String {
        if *self.quantity.metric() == metric::ERROR_RATE && found.estimate.value <= 0.0 {
            let (sent, left) = (fmt::count(found.requests), fmt::percent(interval.high));
            let more = self.more(interval, found, "without a failure");
            return format!("0 of {sent} failed, so the error rate may be {left}; {more}");
        }
        let more = self.more(interval, found, "like these");
        format!("the 95 % interval {} includes the limit; {more}", self.interval_text(interval))
    }

    /// What would decide it, if the value stays what it is.
    fn more(&self, interval: Interval, found: &Evidence, alike: &str) -> String {
        let times = self.times(interval, found);
        let near = "the value is too close to the limit for more samples to decide it".to_owned();
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
                fmt::count(count)
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
            let together =
                Estimate { interval: Some(interval), n: found.requests, ..found.estimate };
            requests_for_share(apart) / worth(&together)
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
        let [low, high] = [low, high].map(|end| fmt::decimals(end, digits));
        format!("{low} to {high} {name}")
    }
}

/// Requests of which none fails that show a share below this one, by Wilson's interval.
fn requests_for_share(share: f64) -> f64 {
    let reach = normal::quantile(UPPER);
    reach * reach * (1.0 - share) / share
}

fn requests_for(count: f64) -> String {
    if !(count.is_finite() && 1.0 <= count) {
        return "send more requests (--requests)".to_owned();
    }
    let count = rounded_up(count);
    format!("send about {} requests (--requests {count})", fmt::count(count))
}

/// Rounded up to two digits.
pub(crate) fn rounded_up(count: f64) -> u64 {
    let mut step = 1.0;
    while 100.0 * step <= count {
        step *= 10.0;
    }
    to_u64((count / step).ceil() * step)
}

/// The outcome of an SLO about the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloOutcome {
    /// As it was typed.
    pub promise: String,
    /// The metric that was compared; null when the SLO names none.
    pub metric: Option<String>,
    pub verdict: ThresholdVerdict,
    /// In the unit of the metric. An undecided SLO may have one, too.
    pub value: Option<f64>,
    /// Why it is undecided and what would decide it, or what the verdict rests on.
    pub reason: Option<String>,
}

/// The number of requests that met every SLO about each request. A failed request meets none, nor does
/// one on which a limited latency cannot be measured; an answer of one token meets any TPOT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSlos {
    pub promises: Vec<RequestSlo>,
    /// Without the turns that the run's end cut off.
    pub scheduled: u64,
    /// Requests that met every SLO.
    pub met: u64,
}

/// One SLO about each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSlo {
    /// As it was typed.
    pub promise: String,
    /// The metric that was compared.
    pub metric: String,
    /// Requests that met it.
    pub met: u64,
    /// Why no `ok` answer has a value; then it was neither met nor missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Checks that each SLO can be judged, before a run is spent on it.
pub fn check_slos(slos: &[Slo], streaming: bool) -> Result<(), SloProblem> {
    // The origin of latencies changes which numbers are compared, but no name or unit.
    let threshold = |slo| Ok((slo, Threshold::from_slo(slo, LatencyOrigin::Sent)?));
    let thresholds: Vec<(&Slo, Threshold)> =
        slos.iter().map(threshold).collect::<Result<_, _>>()?;
    let per_request = || thresholds.iter().filter(|(_, it)| it.is_per_request());
    for (slo, threshold) in per_request() {
        check_streamed(slo, threshold.quantity.metric(), streaming)?;
    }
    let mut goodput = thresholds.iter().filter(|(_, it)| is_goodput(it.quantity.metric()));
    let Some((slo, found)) = goodput.next().filter(|_| per_request().next().is_none()) else {
        return Ok(());
    };
    Err(without_slo(slo, found.quantity.metric(), "ttft<500ms"))
}

/// Checks that each requirement can be judged of a run with these SLOs, before a run is spent on it.
pub fn check_requirements(
    required: &[Slo],
    slos: &[Slo],
    streaming: bool,
) -> Result<(), SloProblem> {
    let is_per_request =
        |slo| Threshold::from_slo(slo, LatencyOrigin::Sent).is_ok_and(|it| it.is_per_request());
    let has_slo = slos.iter().any(is_per_request);
    for slo in required {
        let metric = Requirement::from_slo(slo, LatencyOrigin::Sent)?.quantity().metric();
        if is_goodput(metric) && !has_slo {
            return Err(without_slo(slo, metric, "--slo 'ttft<500ms'"));
        }
        check_streamed(slo, metric, streaming)?;
    }
    Ok(())
}

fn check_streamed(slo: &Slo, metric: &Metric, streaming: bool) -> Result<(), SloProblem> {
    if streaming || !metric.is_within_stream() {
        return Ok(());
    }
    let problem = ": the answers are not streamed, so only their end is measured; use e2e, or remove \
                   --no-stream where the API streams";
    Err(SloProblem::new(slo, problem))
}

fn is_goodput(metric: &'static Metric) -> bool {
    [&metric::GOODPUT, &metric::ATTAINMENT].contains(&metric)
}

/// Goodput has no value without an SLO about each request.
fn without_slo(slo: &Slo, metric: &Metric, example: &str) -> SloProblem {
    let counts = format!("{} counts the requests that meet the SLOs of each request", metric.name);
    SloProblem::new(slo, format!(": {counts}, and none is set; add one, such as {example}"))
}

/// The SLOs about each request.
pub(crate) fn per_request_slos(observations: &Observations) -> Vec<(String, Threshold)> {
    let origin = latency_origin(observations);
    let slos = observations.manifest.spec.slos.iter();
    let found =
        slos.filter_map(|slo| Some((slo.to_string(), Threshold::from_slo(slo, origin).ok()?)));
    found.filter(|(_, threshold)| threshold.is_per_request()).collect()
}

impl RequestSlos {
    /// `None` without an SLO about each request.
    /// With the number of answers that met each of them, and all.
    pub(crate) fn new<'a>(
        observations: &Observations,
        slos: impl Iterator<Item = (&'a (String, Threshold), u64)>,
        met: u64,
    ) -> Option<Self> {
        let promise = |((promise, threshold), met): (&(String, Threshold), u64)| RequestSlo {
            promise: promise.clone(),
            metric: threshold.quantity.metric().name.to_owned(),
            met,
            reason: None,
        };
        let promises: Vec<RequestSlo> = slos.map(promise).collect();
        let scheduled = due_requests(observations);
        (!promises.is_empty()).then_some(Self { promises, scheduled, met })
    }

    /// With the reasons of those that no answer shows.
    pub(crate) fn with_reasons(mut self, measured: &Measured) -> Self {
        for slo in &mut self.promises {
            slo.reason = measured.unseen(slo).map(str::to_owned);
        }
        self
    }
}

/// Requests that were scheduled, without the turns that the run's end cut off.
pub(crate) fn due_requests(observations: &Observations) -> u64 {
    let abandoned = |record: &RequestRecord| record.ending.outcome == Outcome::Abandoned;
    let is_cancelling = observations.manifest.spec.load.cancel.is_some();
    let ended_by_us = if is_cancelling {
        observations.records.iter().filter(|record| abandoned(record)).count() as u64
    } else {
        0
    };
    observations.scheduled_count() - observations.not_sent_because(Cause::TimeOver) - ended_by_us
}

/// Judges every SLO about the run, and names those that cannot be judged.
pub(crate) fn slo_outcomes(observations: &Observations, metrics: &MetricValues) -> Vec<SloOutcome> {
    let attempted = observations.records.len() as u64;
    let judge = |slo: &Slo| {
        let promise = slo.to_string();
        let threshold = match Threshold::from_slo(slo, latency_origin(observations)) {
            Ok(threshold) if threshold.is_per_request() => return None,
            Ok(threshold) => threshold,
            Err(problem) => {
                let (verdict, reason) = (ThresholdVerdict::Undecided, Some(problem.to_string()));
                return Some(SloOutcome { promise, metric: None, verdict, value: None, reason });
            }
        };
        let found = Evidence::from_run(threshold.quantity, metrics, attempted);
        let Ruling { verdict, reason } = match &found {
            Ok(found) => threshold.judge(found),
            Err(why) => Ruling { verdict: ThresholdVerdict::Undecided, reason: Some(why.clone()) },
        };
        let metric = Some(threshold.quantity.metric().name.to_owned());
        let value = found.ok().map(|found| found.estimate.value);
        Some(SloOutcome { promise, metric, verdict, value, reason })
    };
    observations.manifest.spec.slos.iter().filter_map(judge).collect()
}

pub(crate) fn latency_origin(observations: &Observations) -> LatencyOrigin {
    LatencyOrigin::for_load(observations.manifest.spec.is_open_loop())
}

/// A limit on one number of a run.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// As it was typed.
    text: String,
    threshold: Threshold,
}

/// The outcome of a requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementOutcome {
    /// As it was typed.
    pub requirement: String,
    /// The number that was compared, such as `ttft_schedule.p99`.
    pub quantity: String,
    pub unit: String,
    /// On which side of the limit it is met.
    pub bound: Relation,
    /// In that unit.
    pub limit: f64,
    /// Written as `pass`, `fail` or `undecided`.
    #[serde(with = "PassOrFail")]
    pub verdict: ThresholdVerdict,
    /// The value, for several runs the mean. An undecided requirement may have one, too.
    pub value: Option<f64>,
    /// The interval within one run, or between several runs.
    pub interval: Option<Interval>,
    /// Values of the run that it was found from; of several runs, how many there are.
    pub n: Option<u64>,
    pub runs: u64,
    /// Why it is undecided, or what the verdict leaves open.
    pub reason: Option<String>,
}

/// JSON form of a verdict on a requirement.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ThresholdVerdict", rename_all = "snake_case")]
enum PassOrFail {
    #[serde(rename = "pass")]
    Met,
    #[serde(rename = "fail")]
    Missed,
    Undecided,
}

/// Why a run's number is not simply compared with the limit.
struct Reservation {
    reason: String,
    /// It may miss the limit and never meets one; otherwise it decides nothing.
    may_miss: bool,
}

impl Requirement {
    /// What a limit means on a load whose latencies begin at `origin`.
    pub fn from_slo(slo: &Slo, origin: LatencyOrigin) -> Result<Self, SloProblem> {
        Ok(Self { text: slo.to_string(), threshold: Threshold::from_requirement(slo, origin)? })
    }

    pub const fn quantity(&self) -> Quantity {
        self.threshold.quantity
    }

    /// Requests that let a run show that it is met: those that certify a percentile, or that bound a
    /// share if none of them fails. `None` where any number may do.
    pub fn requests_needed(&self) -> Option<u64> {
        /// A percentile is judged over the steady part of a run, which leaves some requests out.
        const OVER_STEADY: f64 = 1.5;
        let Threshold { quantity, relation, limit } = self.threshold;
        let needed = match (quantity.statistic(), relation) {
            (Some(Statistic::Percentile(percentile)), _) => {
                OVER_STEADY * percentile.certified_from() as f64
            }
            (None, Relation::Below) if quantity.metric().unit == Unit::Share => {
                requests_for_share(limit)
            }
            (None, Relation::Above) if quantity.metric().unit == Unit::Share => {
                requests_for_share(1.0 - limit)
            }
            _ => return None,
        };
        (1.0 <= needed && needed.is_finite()).then(|| rounded_up(needed))
    }

    /// Judges one run by its within-run interval.
    pub fn judge(&self, summary: &Summary) -> RequirementOutcome {
        self.judge_across(std::slice::from_ref(summary))
    }

    /// Judges several runs of the same experiment by the interval between them, and a single one by the
    /// interval within it.
    pub fn judge_across(&self, summaries: &[Summary]) -> RequirementOutcome {
        let mut found: Vec<(&Summary, Estimate)> = Vec::with_capacity(summaries.len());
        let mut reservations = Vec::new();
        if summaries.is_empty() {
            reservations.push(Reservation::undecided("no run was measured"));
        }
        for summary in summaries {
            let value = self.quantity().value_in(summary);
            let invalid = invalid_run(self.quantity(), summary);
            let missing = || Some(Reservation::undecided(value.as_ref().err()?.clone()));
            if let Some(Reservation { mut reason, may_miss }) = invalid.or_else(missing) {
                if 1 < summaries.len() {
                    reason = format!("run {}: {reason}", summary.run.id);
                }
                reservations.push(Reservation { reason, may_miss });
            }
            found.extend(value.map(|estimate| (summary, estimate)));
        }
        let runs = summaries.len() as u64;
        let evidence = match summaries {
            [only] => Evidence::from_run(self.quantity(), &only.headline(), only.attempted).ok(),
            _ => Evidence::from_runs(self.quantity(), &found),
        };
        let n = if runs == 1 { evidence.as_ref().map(|it| it.estimate.n) } else { Some(runs) };
        let found = evidence.map(|found| (self.threshold.judge(&found), found.estimate));
        let gravest = reservations.into_iter().min_by_key(|it| it.may_miss);
        self.outcome(found, gravest, n, runs)
    }

    /// Judges results of one configuration and load: one by its value where it has no interval, several by
    /// the interval between them.
    pub fn judge_results(&self, results: &[ToolResult]) -> RequirementOutcome {
        let quantity = self.quantity();
        let runs = results.len() as u64;
        let estimates = results.iter().map(|result| result.figure(&quantity));
        let estimates: Vec<Estimate> = match estimates.collect::<Result<_, String>>() {
            Ok(estimates) => estimates,
            Err(missing) => {
                return self.outcome(None, Some(Reservation::undecided(missing)), None, runs);
            }
        };
        let requests = results.iter().filter_map(|result| result.completed).sum();
        let found = match estimates.as_slice() {
            [Estimate { interval: None, certified: true, value, .. }] => {
                let reason = "no confidence interval: one imported result decides by its value, and \
                              the spread between runs is not known";
                let verdict = self.threshold.verdict_of(*value);
                Some((Ruling { verdict, reason: Some(reason.to_owned()) }, estimates[0]))
            }
            [only] => {
                let (certified, highest) = (Vec::new(), None);
                let found = Evidence { estimate: *only, certified, highest, requests, runs: 1 };
                Some((self.threshold.judge(&found), *only))
            }
            several => Evidence::from_estimates(quantity, several, requests)
                .map(|found| (self.threshold.judge(&found), found.estimate)),
        };
        let n = found.as_ref().map(|(_, found)| if runs == 1 { found.n } else { runs });
        let reservation = results.iter().find_map(|result| cut_result(quantity, result));
        self.outcome(found, reservation, n, runs)
    }

    fn outcome(
        &self,
        found: Option<(Ruling, Estimate)>,
        reservation: Option<Reservation>,
        n: Option<u64>,
        runs: u64,
    ) -> RequirementOutcome {
        let (ruling, estimate) = found.unzip();
        let (verdict, reason) = match (reservation, ruling) {
            (None, Some(Ruling { verdict, reason })) => (verdict, reason),
            (
                Some(Reservation { reason, may_miss: true }),
                Some(Ruling { verdict: ThresholdVerdict::Missed, .. }),
            ) => (ThresholdVerdict::Missed, Some(format!("{reason}, and that misses the limit"))),
            (Some(Reservation { reason, .. }), _) => (ThresholdVerdict::Undecided, Some(reason)),
            (None, None) => (ThresholdVerdict::Undecided, Some(NO_VALUE.to_owned())),
        };
        RequirementOutcome {
            requirement: self.text.clone(),
            quantity: self.quantity().to_string(),
            unit: self.quantity().metric().unit.name().to_owned(),
            bound: self.threshold.relation,
            limit: self.threshold.limit,
            verdict,
            value: estimate.map(|found| found.value),
            interval: estimate.and_then(|found| found.interval),
            n,
            runs,
            reason,
        }
    }
}

const NO_VALUE: &str = "it has no value";

impl Reservation {
    /// Decides nothing.
    fn undecided(reason: impl Into<String>) -> Self {
        let reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        Self { reason: reason.unwrap_or_else(|| NO_VALUE.to_owned()), may_miss: false }
    }
}

/// A result that lost a part of its requests may miss a limit and meets none, because the lost requests
/// were not the quick ones. Failures may be counted in it.
fn cut_result(quantity: Quantity, result: &ToolResult) -> Option<Reservation> {
    let metric = quantity.metric();
    if let Some(latency) = result.latency_of(metric).filter(|latency| !latency.is_defined()) {
        let (tool, kind) = (result.source.tool.name(), latency.kind.name());
        let reason = format!("{tool} does not define what its {kind} counts, so it is not judged");
        return Some(Reservation::undecided(reason));
    }
    let completed = result.completed?;
    let planned = result.requests_planned.or_else(|| completed.checked_add(result.failed?))?;
    let lost = planned.saturating_sub(completed);
    let is_cut = ERRORS_SHARE * (planned as f64) < lost as f64;
    let reason = format!("only {completed} of {planned} requests completed");
    (is_cut && *metric != metric::ERROR_RATE).then_some(Reservation { reason, may_miss: true })
}

/// Why an invalid run meets no requirement. It may miss one about failures if failures made it invalid.
fn invalid_run(quantity: Quantity, summary: &Summary) -> Option<Reservation> {
    if summary.verdict != Verdict::Invalid {
        // What a cache answered says nothing about the server's speed, only about its answers.
        let cached = summary.warnings.iter().find(|warning| warning.key == SEEN_BEFORE);
        let of_answers = [&metric::ERROR_RATE, &metric::VALID_ANSWERS, &metric::ACCURACY];
        let cached = cached.filter(|_| !of_answers.contains(&quantity.metric()));
        return cached.map(|warning| Reservation::undecided(warning.text.clone()));
    }
    let gravest = summary.warnings.iter().find(|warning| warning.severity == Severity::Invalid);
    let why = gravest.map_or_else(String::new, |warning| format!(": {}", warning.text));
    let invalid = summary.checks.iter().filter(|check| check.state == CheckState::Invalid);
    let keys: Vec<&str> = invalid.map(|check| check.key.as_str()).collect();
    let by_errors = keys == [CheckKind::Errors.key()];
    let counts_errors = *quantity.metric() == metric::ERROR_RATE || is_goodput(quantity.metric());
    let may_miss = by_errors && counts_errors;
    Some(Reservation { reason: format!("the run is invalid{why}"), may_miss })
}

#[cfg(test)]
mod tests;
