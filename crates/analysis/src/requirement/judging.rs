//! A requirement against what was measured.

use super::{Requirement, RequirementOutcome, RequirementVerdict};
use crate::estimate::{Estimate, Interval};
use crate::metric::Unit;
use crate::statistic::Statistic;
use crate::statistics::runs::RunStatistics;
use crate::summary::Summary;
use crate::verdict::{Severity, Verdict};

/// What was found of the number, before it is held against the limit.
struct Found {
    value: Option<f64>,
    interval: Option<Interval>,
    n: Option<u64>,
    runs: u64,
    /// Why it decides nothing.
    doubt: Option<String>,
}

impl Requirement {
    /// Of one run, by its within-run interval.
    pub fn judge(&self, summary: &Summary) -> RequirementOutcome {
        let found = match self.quantity.of(summary) {
            Ok(estimate) => Found {
                value: Some(estimate.value),
                interval: estimate.interval,
                n: Some(estimate.n),
                runs: 1,
                doubt: invalid(summary).or_else(|| self.too_few(&estimate)),
            },
            Err(reason) => {
                let doubt = invalid(summary).unwrap_or_else(|| missing(&reason));
                Found { value: None, interval: None, n: None, runs: 1, doubt: Some(doubt) }
            }
        };
        self.decide(found)
    }

    /// Of several runs of the same experiment, by the interval between them. A single one is judged
    /// from within.
    pub fn judge_across(&self, summaries: &[Summary]) -> RequirementOutcome {
        if let [only] = summaries {
            return self.judge(only);
        }
        let mut values = Vec::with_capacity(summaries.len());
        let mut doubt = summaries.is_empty().then(|| "no run was measured".to_owned());
        for summary in summaries {
            let of_run = |why: String| format!("run {}: {why}", summary.run.id);
            let found = self.quantity.of(summary);
            let why = match &found {
                Ok(estimate) => invalid(summary).or_else(|| self.too_few(estimate)),
                Err(reason) => Some(invalid(summary).unwrap_or_else(|| missing(reason))),
            };
            doubt = doubt.or_else(|| why.map(of_run));
            values.extend(found.map(|estimate| estimate.value));
        }
        let runs = summaries.len() as u64;
        let statistics = RunStatistics::of(&values);
        self.decide(Found {
            value: statistics.as_ref().map(|statistics| statistics.mean),
            interval: statistics
                .and_then(|statistics| statistics.interval)
                .map(|interval| interval.clamped(0.0, self.most())),
            n: Some(runs),
            runs,
            doubt,
        })
    }

    /// The most that the number can be; the least is zero.
    fn most(&self) -> f64 {
        if self.quantity.metric().unit == Unit::Share { 1.0 } else { f64::MAX }
    }

    fn decide(&self, found: Found) -> RequirementOutcome {
        let (verdict, reason) = match found {
            Found { doubt: Some(doubt), .. } => (RequirementVerdict::Undecided, Some(doubt)),
            Found { interval: Some(interval), .. } => self.by_interval(interval, found.runs),
            Found { value: Some(value), .. } => self.by_value(value),
            Found { value: None, .. } => {
                (RequirementVerdict::Undecided, Some("it has no value".to_owned()))
            }
        };
        RequirementOutcome {
            requirement: self.text.clone(),
            quantity: self.quantity.to_string(),
            unit: self.quantity.metric().unit.name().to_owned(),
            bound: self.bound(),
            limit: self.promise.limit,
            verdict,
            value: found.value,
            interval: found.interval,
            n: found.n,
            runs: found.runs,
            reason,
        }
    }

    fn by_interval(&self, interval: Interval, runs: u64) -> (RequirementVerdict, Option<String>) {
        let [low, high] = [interval.low, interval.high].map(|end| self.promise.is_kept_by(end));
        match (low, high) {
            (true, true) => (RequirementVerdict::Pass, None),
            (false, false) => (RequirementVerdict::Fail, None),
            (true, false) | (false, true) => {
                let more = if runs == 1 { "run longer" } else { "measure more runs" };
                let why = format!("the 95 % interval straddles the limit; {more} to narrow it");
                (RequirementVerdict::Undecided, Some(why))
            }
        }
    }

    fn by_value(&self, value: f64) -> (RequirementVerdict, Option<String>) {
        if !self.decides_by_value() {
            let why = "too few values to say how far off it may be; run longer";
            return (RequirementVerdict::Undecided, Some(why.to_owned()));
        }
        let kept = self.promise.is_kept_by(value);
        let verdict = if kept { RequirementVerdict::Pass } else { RequirementVerdict::Fail };
        (verdict, Some("no interval: the value of this run alone decides".to_owned()))
    }

    /// Why a percentile of these values shows nothing.
    fn too_few(&self, estimate: &Estimate) -> Option<String> {
        if estimate.certified {
            return None;
        }
        let statistic = self.quantity.statistic()?;
        let (needed, name) = (statistic.certified_from(), statistic.name());
        let worth = match estimate.effective_n {
            Some(effective) if needed <= estimate.n => {
                format!(" that tell as much as {effective:.0} independent ones")
            }
            _ => String::new(),
        };
        let instead = match statistic {
            Statistic::Percentile(_) => ", or require a lower percentile",
            Statistic::Mean | Statistic::Max => "",
        };
        Some(format!(
            "{name} is certified from {needed} values on, and there are {}{worth}; run longer{instead}",
            estimate.n
        ))
    }
}

/// Why nothing may be concluded from an invalid run.
fn invalid(summary: &Summary) -> Option<String> {
    if summary.verdict != Verdict::Invalid {
        return None;
    }
    let gravest = summary.warnings.iter().find(|notice| notice.severity == Severity::Invalid);
    let why = gravest.map_or_else(String::new, |notice| format!(": {}", notice.text));
    Some(format!("the run is invalid{why}"))
}

fn missing(reason: &str) -> String {
    if reason.is_empty() { "it has no value".to_owned() } else { reason.to_owned() }
}
