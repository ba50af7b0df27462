//! The one rule by which a limit on a number is met, missed, or left open. Promises, requirements
//! and searches all judge by it.
//!
//! - The whole interval keeps the limit, and it is met; the whole interval breaks it, and it is
//!   missed.
//! - A single number without an interval, and a maximum, which nothing bounds, decide by their value.
//! - A percentile with too few samples meets nothing. It is missed where a lower one that has enough
//!   already breaks a limit from above, or a higher one a limit from below; and where several runs
//!   agree that it is broken, because too few samples make the slow end look better than it is.
//! - Everything else is undecided, and says what would decide it.

mod words;

use inferometer_model::spec::Relation;

use crate::estimate::{Estimate, Interval, share_across};
use crate::metric::{Shape, Unit};
use crate::quantity::{Quantity, estimate_of};
use crate::sample::Percentile;
use crate::statistic::Statistic;
use crate::statistics::runs::RunStatistics;
use crate::summary::Summary;
use crate::value::Distribution;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub standing: Standing,
    /// Why it is undecided and what would decide it, or what the decision rests on.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Met,
    Missed,
    Undecided,
}

impl Evidence {
    /// Of one run; or why there is none.
    pub fn of(quantity: &Quantity, summary: &Summary) -> Result<Self, String> {
        let estimate = quantity.value_in(summary)?;
        let found = summary.metrics.distribution(quantity.metric());
        let certified = found.map_or_else(Vec::new, certified);
        Ok(Self { estimate, certified, requests: summary.attempted, runs: 1 })
    }

    pub(crate) fn of_distribution(
        statistic: Statistic,
        found: &Distribution,
        requests: u64,
    ) -> Option<Self> {
        let estimate = estimate_of(statistic, found)?;
        Some(Self { estimate, certified: certified(found), requests, runs: 1 })
    }

    /// Of several runs of the same experiment. `None` without a run, or where a value is no number.
    pub fn across(quantity: &Quantity, runs: &[(&Summary, Estimate)]) -> Option<Self> {
        let estimates: Vec<Estimate> = runs.iter().map(|(_, estimate)| *estimate).collect();
        let summaries: Vec<&Summary> = runs.iter().map(|(summary, _)| *summary).collect();
        let requests = summaries.iter().map(|summary| summary.attempted).sum();
        let found = Self::across_estimates(quantity, &estimates, requests)?;
        Some(Self { certified: certified_across(quantity, &summaries), ..found })
    }

    /// The same where no more is known than what each of them says of it.
    pub fn across_estimates(
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
                standing: self.standing_of(estimate.value),
                reason: Some("no interval: the value of this run alone decides".to_owned()),
            },
            None => {
                self.missed_already(found).unwrap_or_else(|| undecided(words::UNBOUNDED.into()))
            }
        }
    }

    /// Of a result that has no interval and never will: its value decides, and the reason says so.
    pub fn judge_value(&self, value: f64) -> Ruling {
        let reason = "no interval: one imported result decides by its value, and nothing says how \
                      far another would be from it";
        Ruling { standing: self.standing_of(value), reason: Some(reason.to_owned()) }
    }

    pub fn is_kept_by(&self, value: f64) -> bool {
        is_kept(self.relation, self.limit, value)
    }

    fn standing_of(&self, value: f64) -> Standing {
        if self.is_kept_by(value) { Standing::Met } else { Standing::Missed }
    }

    fn by_interval(&self, interval: Interval, found: &Evidence) -> Ruling {
        let [low, high] = [interval.low, interval.high].map(|end| self.standing_of(end));
        if low == high {
            return Ruling { standing: low, reason: None };
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

/// The limit itself keeps it.
pub(crate) fn is_kept(relation: Relation, limit: f64, value: f64) -> bool {
    match relation {
        Relation::Below => value <= limit,
        Relation::Above => limit <= value,
    }
}

fn undecided(reason: String) -> Ruling {
    Ruling { standing: Standing::Undecided, reason: Some(reason) }
}

fn missed(reason: String) -> Ruling {
    Ruling { standing: Standing::Missed, reason: Some(reason) }
}

#[cfg(test)]
mod tests;
