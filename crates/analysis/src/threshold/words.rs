//! Why a limit is undecided, and how much more would decide it.

use super::{Evidence, Threshold};
use crate::estimate::{Estimate, Interval, worth};
use crate::metric::Unit;
use crate::statistic::Statistic;
use crate::statistics::{UPPER, normal, student};

pub(super) const UNBOUNDED: &str =
    "too few samples to say how far off it may be; send more requests (--requests)";

/// Nobody waits for more than so many times what was measured.
const MORE_AT_MOST: f64 = 100.0;
/// Runs that may be proposed.
const RUNS_AT_MOST: u64 = 50;
/// Enough runs for their spread to say something.
const RUNS_USUAL: u64 = 5;

impl Threshold {
    pub(super) fn already(&self, name: &str, interval: Interval) -> String {
        let Interval { low, high } = interval;
        format!("already {name} is {}", between(self.quantity.metric().unit, low, high))
    }

    pub(super) fn too_few(&self, found: &Evidence) -> String {
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

    pub(super) fn straddles(&self, interval: Interval, found: &Evidence) -> String {
        let unit = self.quantity.metric().unit;
        if self.quantity.metric().name == "error_rate" && found.estimate.value <= 0.0 {
            let left = high_end(unit, interval.high);
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
                let verb = if self.is_kept_by(found.estimate.value) { "show" } else { "decide" };
                format!("about {said} requests {alike} would {verb} it (--requests {count})")
            }
            None => near.to_owned(),
        }
    }

    /// How many times the requests. Doubt shrinks with their root; where nothing or everything
    /// failed, what is left open shrinks with their number.
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

    /// As many runs as make Student's interval end before the limit.
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

/// To two digits: nobody knows it better.
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

fn high_end(unit: Unit, high: f64) -> String {
    let (scale, name) = scaled(unit);
    format!("{:.1} {name}", high * scale)
}

/// With digits enough to tell the ends apart.
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
