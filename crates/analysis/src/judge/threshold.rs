//! A limit on one number, and the one rule by which it is met, missed or undecided. SLOs,
//! requirements and searches all judge by it.
//!
//! - The whole interval keeps the limit: met. The whole interval breaks it: missed.
//! - A single number without an interval, and a maximum, which nothing bounds, decide by their value.
//! - A percentile with too few samples meets nothing. It is missed where a lower percentile that has
//!   enough already breaks a limit from above, or a higher one a limit from below; and where several
//!   runs agree that it is broken, because too few samples make the slow end look better than it is.
//! - Everything else is undecided, and the reason says what would decide it.

use inferometer_model::spec::Relation;
use serde::{Deserialize, Serialize};

use crate::metric::{self, Distribution, Quantity, Shape, Statistic, Unit, estimate_of};
use crate::statistics::{
    Estimate, Interval, Percentile, UPPER, normal, runs::RunStatistics, share_across, student,
    worth,
};
use crate::summary::Summary;

/// A number of a run, and on which side of its limit it shall be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    pub quantity: Quantity,
    pub relation: Relation,
    /// In the unit of the metric; the limit itself keeps it.
    pub limit: f64,
}

/// What is known of the number, of one run or of several together.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Of several runs their mean, the interval between them, and the fewest values that one had; it
    /// is certified when each had enough, because their spread shows what dependence does to it.
    pub estimate: Estimate,
    /// The percentiles of the same values that are certified.
    pub certified: Vec<(Percentile, Interval)>,
    /// Requests that were attempted, of all runs together.
    pub requests: u64,
    pub runs: u64,
}

/// The verdict on a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub verdict: ThresholdVerdict,
    /// Why it is undecided and what would decide it, or what the decision rests on.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    pub const fn key(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Undecided => "undecided",
        }
    }

    pub const fn is_met(self, undecided: Undecided) -> bool {
        match (self, undecided) {
            (Self::Met, _) | (Self::Undecided, Undecided::Pass) => true,
            (Self::Missed, _) | (Self::Undecided, Undecided::Fail) => false,
        }
    }
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
    /// What one run shows, or why it shows nothing.
    pub fn from_run(quantity: &Quantity, summary: &Summary) -> Result<Self, String> {
        let estimate = quantity.value_in(summary)?;
        let found = summary.metrics.distribution(quantity.metric());
        let certified = found.map_or_else(Vec::new, certified);
        Ok(Self { estimate, certified, requests: summary.attempted, runs: 1 })
    }

    pub(crate) fn from_distribution(
        statistic: Statistic,
        found: &Distribution,
        requests: u64,
    ) -> Option<Self> {
        let estimate = estimate_of(statistic, found)?;
        Some(Self { estimate, certified: certified(found), requests, runs: 1 })
    }

    /// What several runs of the same experiment show. `None` without a run, or where a value is not a
    /// number.
    pub fn from_runs(quantity: &Quantity, runs: &[(&Summary, Estimate)]) -> Option<Self> {
        let estimates: Vec<Estimate> = runs.iter().map(|(_, estimate)| *estimate).collect();
        let summaries: Vec<&Summary> = runs.iter().map(|(summary, _)| *summary).collect();
        let requests = summaries.iter().map(|summary| summary.attempted).sum();
        let found = Self::from_estimates(quantity, &estimates, requests)?;
        Some(Self { certified: certified_across(quantity, &summaries), ..found })
    }

    /// The same where only an estimate of each run is known.
    pub fn from_estimates(
        quantity: &Quantity,
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
        let fewest = estimates.iter().map(|estimate| estimate.n).min()?;
        let floor = quantity.statistic().map_or(0, Statistic::certified_from);
        Some(Self {
            estimate: Estimate {
                value: between.mean,
                interval,
                n: fewest,
                effective_n: None,
                certified: floor <= fewest,
            },
            certified: Vec::new(),
            requests,
            runs: estimates.len() as u64,
        })
    }
}

/// The percentiles with an interval.
fn certified(found: &Distribution) -> Vec<(Percentile, Interval)> {
    let percentiles = Percentile::ALL.into_iter().filter(|it| found.is_certified(*it));
    let bounded =
        |it| found.intervals.get(Statistic::Percentile(it)).map(|interval| (it, interval));
    percentiles.filter_map(bounded).collect()
}

/// The percentiles that every run has enough values for, with the interval between the runs.
fn certified_across(quantity: &Quantity, runs: &[&Summary]) -> Vec<(Percentile, Interval)> {
    let found: Option<Vec<&Distribution>> =
        runs.iter().map(|run| run.metrics.distribution(quantity.metric())).collect();
    let Some(found) = found else { return Vec::new() };
    let interval = |percentile: Percentile| {
        let enough = |run: &&Distribution| percentile.certified_from() <= run.n;
        let values: Option<Vec<f64>> =
            found.iter().map(|run| run.percentile(percentile).filter(|_| enough(run))).collect();
        Some((percentile, RunStatistics::from_values(&values?)?.interval?))
    };
    Percentile::ALL.into_iter().filter_map(interval).collect()
}

impl Threshold {
    pub fn judge(&self, found: &Evidence) -> Ruling {
        let estimate = &found.estimate;
        if !estimate.certified {
            return self.missed_already(found).unwrap_or_else(|| undecided(self.too_few(found)));
        }
        match estimate.interval {
            Some(interval) => self.by_interval(interval, found),
            None if self.decides_by_value() => Ruling {
                verdict: self.verdict_of(estimate.value),
                reason: Some("no interval: the value of this run alone decides".to_owned()),
            },
            None => self.missed_already(found).unwrap_or_else(|| undecided(UNBOUNDED.into())),
        }
    }

    /// Of a result that has no interval and never will: its value decides, and the reason says so.
    pub fn judge_value(&self, value: f64) -> Ruling {
        let reason = "no interval: one imported result decides by its value, and nothing says how \
                      far another would be from it";
        Ruling { verdict: self.verdict_of(value), reason: Some(reason.to_owned()) }
    }

    pub fn is_met_by(&self, value: f64) -> bool {
        is_met(self.relation, self.limit, value)
    }

    fn verdict_of(&self, value: f64) -> ThresholdVerdict {
        if self.is_met_by(value) { ThresholdVerdict::Met } else { ThresholdVerdict::Missed }
    }

    fn by_interval(&self, interval: Interval, found: &Evidence) -> Ruling {
        let [low, high] = [interval.low, interval.high].map(|end| self.verdict_of(end));
        if low == high {
            return Ruling { verdict: low, reason: None };
        }
        undecided(self.straddles(interval, found))
    }

    /// By another percentile: no lower one is above it, and no higher one below.
    fn missed_already(&self, found: &Evidence) -> Option<Ruling> {
        let Some(Statistic::Percentile(own)) = self.quantity.statistic() else { return None };
        let breaks = |(other, interval): &&(Percentile, Interval)| match self.relation {
            Relation::Below => *other < own && self.limit < interval.low,
            Relation::Above => own < *other && interval.high < self.limit,
        };
        if let Some((other, interval)) = found.certified.iter().find(breaks) {
            return Some(missed(self.already(other.name(), *interval)));
        }
        let between = found.estimate.interval.filter(|_| 1 < found.runs)?;
        let slow = self.relation == Relation::Below && self.limit < between.low;
        slow.then(|| missed(self.already(own.name(), between) + " of too few samples"))
    }

    /// Whether nothing but its own value can speak for it.
    fn decides_by_value(&self) -> bool {
        self.quantity.metric().shape() == Shape::Scalar
            || self.quantity.statistic() == Some(Statistic::Max)
    }
}

/// A value equal to the limit meets it.
pub(crate) fn is_met(relation: Relation, limit: f64, value: f64) -> bool {
    match relation {
        Relation::Below => value <= limit,
        Relation::Above => limit <= value,
    }
}

fn undecided(reason: String) -> Ruling {
    Ruling { verdict: ThresholdVerdict::Undecided, reason: Some(reason) }
}

fn missed(reason: String) -> Ruling {
    Ruling { verdict: ThresholdVerdict::Missed, reason: Some(reason) }
}

impl Threshold {
    fn already(&self, name: &str, interval: Interval) -> String {
        let Interval { low, high } = interval;
        format!("already {name} is {}", between(self.quantity.metric().unit, low, high))
    }

    fn too_few(&self, found: &Evidence) -> String {
        let Some(statistic) = self.quantity.statistic() else { return UNBOUNDED.to_owned() };
        let (name, needed) = (statistic.name(), statistic.certified_from());
        let (have, effective) = (found.estimate.n, found.estimate.effective_n);
        let instead = match statistic {
            Statistic::Percentile(_) => ", or take a lower percentile",
            Statistic::Mean | Statistic::Max => "",
        };
        if have < needed {
            let each = if found.runs == 1 { "" } else { " in a run" };
            let requests = found.requests as f64 / found.runs.max(1) as f64;
            let more = requests_for(requests * needed as f64 / have as f64);
            return format!(
                "{name} needs {} samples and there are {}{each}: {more}{instead}",
                grouped(needed),
                grouped(have)
            );
        }
        let (needed_words, have_words) = (grouped(needed), grouped(have));
        // The effective number is that of the mean; a percentile's own may be smaller.
        match effective.filter(|effective| 1.0 <= *effective && *effective < needed as f64) {
            Some(effective) => {
                let more = requests_for(found.requests as f64 * needed as f64 / effective);
                format!(
                    "{name} needs {needed_words} independent samples and there are about \
                     {effective:.0} of {have_words}: {more}, or repeat the run (--repeat \
                     {RUNS_USUAL})"
                )
            }
            None => format!(
                "{name} needs {needed_words} independent samples and these {have_words} resemble \
                 each other: send more requests (--requests), or repeat the run (--repeat \
                 {RUNS_USUAL})"
            ),
        }
    }

    fn straddles(&self, interval: Interval, found: &Evidence) -> String {
        let unit = self.quantity.metric().unit;
        if *self.quantity.metric() == metric::ERROR_RATE && found.estimate.value <= 0.0 {
            let (scale, name) = scaled(unit);
            let left = format!("{:.1} {name}", interval.high * scale);
            let sent = grouped(found.requests);
            let more = self.more(interval, found, "without a failure");
            return format!("0 of {sent} failed leaves up to {left}; {more}");
        }
        let more = self.more(interval, found, "like these");
        let held = between(unit, interval.low, interval.high);
        format!("the 95 % interval {held} straddles the limit; {more}")
    }

    /// What would decide it, if the value stays what it is.
    fn more(&self, interval: Interval, found: &Evidence, alike: &str) -> String {
        let is_share = self.quantity.metric().unit == Unit::Share;
        let near = "the value lies too near the limit for more of the same to decide it";
        if 1 < found.runs {
            let runs = if is_share {
                let needed = self.times(interval, found).map(|times| found.runs as f64 * times);
                needed.and_then(|needed| more_runs(found).find(|runs| needed <= *runs as f64))
            } else {
                self.runs_for(interval, found)
            };
            return match runs {
                Some(runs) => {
                    format!("about {runs} runs {alike} would decide it (--repeat {runs})")
                }
                None => near.to_owned(),
            };
        }
        match self.times(interval, found).filter(|times| *times <= MORE_AT_MOST) {
            Some(times) => {
                let count = rounded_up(found.requests as f64 * times);
                let said = grouped(count);
                let verb = if self.is_met_by(found.estimate.value) { "show" } else { "decide" };
                format!("about {said} requests {alike} would {verb} it (--requests {count})")
            }
            None => near.to_owned(),
        }
    }

    /// How many times as many requests. The interval shrinks with their root; where nothing or
    /// everything failed, it shrinks with their number.
    fn times(&self, interval: Interval, found: &Evidence) -> Option<f64> {
        let value = found.estimate.value;
        let apart = (value - self.limit).abs();
        if apart <= 0.0 {
            return None;
        }
        if self.quantity.metric().unit == Unit::Share && (value <= 0.0 || 1.0 <= value) {
            let reach = normal::quantile(UPPER);
            let together =
                Estimate { interval: Some(interval), n: found.requests, ..found.estimate };
            let needed = reach * reach * (1.0 - apart) / apart;
            return Some(needed / worth(&together)).filter(|times| times.is_finite());
        }
        let side = if value < self.limit { interval.high - value } else { value - interval.low };
        Some((side / apart) * (side / apart)).filter(|times| times.is_finite())
    }

    /// The number of runs with which Student's interval ends before the limit.
    fn runs_for(&self, interval: Interval, found: &Evidence) -> Option<u64> {
        let apart = (found.estimate.value - self.limit).abs();
        let reach = |runs: u64| {
            let n = runs as f64;
            student::quantile(UPPER, n - 1.0) / n.sqrt()
        };
        let spread = (interval.high - found.estimate.value) / reach(found.runs);
        more_runs(found).find(|runs| spread * reach(*runs) < apart)
    }
}

fn more_runs(found: &Evidence) -> impl Iterator<Item = u64> {
    found.runs + 1..=RUNS_AT_MOST
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

/// An interval with enough digits to tell its ends apart.
fn between(unit: Unit, low: f64, high: f64) -> String {
    let (scale, name) = scaled(unit);
    let (low, high) = (low * scale, high * scale);
    let digits = [0, 1, 2].into_iter().find(|digits| 10_f64.powi(1 - digits) <= high - low);
    let digits = usize::try_from(digits.unwrap_or(3)).unwrap_or(3);
    let [low, high] = [low, high].map(|end| with_commas(&format!("{end:.digits$}")));
    format!("{low}–{high} {name}")
}

fn scaled(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Share => (100.0, "%"),
        Unit::Milliseconds
        | Unit::RequestsPerSecond
        | Unit::TokensPerSecond
        | Unit::Requests
        | Unit::Watts
        | Unit::JoulesPerToken
        | Unit::TokensPerJoule => (1.0, unit.name()),
    }
}

fn grouped(count: u64) -> String {
    with_commas(&count.to_string())
}

fn with_commas(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + number.len() / 3);
    for (place, digit) in number.char_indices() {
        let left = whole.saturating_sub(place);
        if 0 < place && 0 < left && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
