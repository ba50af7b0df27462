//! What a metric is. The one table of them, [`METRICS`], is what the summary, the pages and the
//! documents walk.
//!
//! To add a metric:
//! 1. collect its facts in the one pass over the records (`measured.rs`, `request_metrics.rs`);
//! 2. add its line to `metric/table.rs`, in the place where pages should show it;
//! 3. give it a test with a hand-made record, its null case included;
//! 4. look at the snapshot of the summary, and raise the schema if an old key changed its meaning.

pub(crate) mod explained;
mod table;

pub use self::explained::Explained;
pub use self::table::METRICS;

use crate::estimate::Interval;
use crate::measured::{Measured, Series};
use crate::value::{Distribution, MetricValue, Scalar};

/// A quantity that a run is described by.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Without the unit: `ttft`.
    pub name: &'static str,
    /// What a page calls it.
    pub title: &'static str,
    /// One sentence fragment that says what is measured.
    pub help: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub headline: Headline,
    formula: Formula,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    RequestsPerSecond,
    TokensPerSecond,
    Requests,
    /// From 0 to 1.
    Share,
    Watts,
    JoulesPerToken,
    TokensPerJoule,
}

/// Which direction is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
    Neither,
}

/// On which loads a metric belongs to the first screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headline {
    Never,
    ClosedLoop,
    OpenLoop,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Distribution,
    Scalar,
}

/// Why a number is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) &'static str);

#[derive(Clone, Copy, Debug)]
enum Formula {
    /// Where its values are, and what an empty list of them means.
    Distribution(fn(&Measured) -> &Series, Missing),
    Scalar(fn(&Measured) -> Result<f64, Missing>),
    /// The same, and where it lies as far as the run itself can tell.
    Estimate(fn(&Measured) -> Result<f64, Missing>, fn(&Measured) -> Option<Interval>),
    /// Of what the server and its machine told, which need not tell anything.
    Telemetry(fn(&Measured) -> Result<f64, Missing>),
}

impl Metric {
    /// The key in JSON: distributions carry their unit in it, scalars beside their value.
    pub fn key(&self) -> String {
        match self.shape() {
            Shape::Distribution => format!("{}_{}", self.name, self.unit.name()),
            Shape::Scalar => self.name.to_owned(),
        }
    }

    pub fn shape(&self) -> Shape {
        match self.formula {
            Formula::Distribution(..) => Shape::Distribution,
            Formula::Scalar(_) | Formula::Estimate(..) | Formula::Telemetry(_) => Shape::Scalar,
        }
    }

    /// Whether others than the client tell it: a run without them lacks nothing, and pages pass over
    /// it.
    pub const fn is_telemetry(&self) -> bool {
        matches!(self.formula, Formula::Telemetry(_))
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    pub(crate) fn value(&self, measured: &Measured) -> MetricValue {
        match self.formula {
            Formula::Distribution(series, absent) => {
                let series = series(measured);
                MetricValue::Distribution(match series.found(absent) {
                    Ok(found) => Distribution { note: series.note, ..found.clone() },
                    Err(Missing(reason)) => Distribution::nothing(reason),
                })
            }
            Formula::Scalar(formula) | Formula::Telemetry(formula) => {
                MetricValue::Scalar(self.scalar(formula(measured), None))
            }
            Formula::Estimate(formula, interval) => {
                MetricValue::Scalar(self.scalar(formula(measured), interval(measured)))
            }
        }
    }

    /// A distribution, or why there is none; `None` for a single number.
    pub(crate) fn distribution<'m>(
        &self,
        measured: &'m Measured,
    ) -> Option<Result<&'m Distribution, Missing>> {
        match self.formula {
            Formula::Distribution(series, absent) => Some(series(measured).found(absent)),
            Formula::Scalar(_) | Formula::Estimate(..) | Formula::Telemetry(_) => None,
        }
    }

    fn scalar(&self, found: Result<f64, Missing>, interval: Option<Interval>) -> Scalar {
        let finite = found.and_then(|value| {
            if value.is_finite() { Ok(value) } else { Err(Missing("it is not a finite number")) }
        });
        Scalar {
            value: finite.ok(),
            interval: interval.filter(|_| finite.is_ok()),
            unit: self.unit.name().to_owned(),
            reason: finite.err().map(|Missing(reason)| reason.to_owned()),
        }
    }
}

impl PartialEq for Metric {
    /// Names are unique in the table.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::RequestsPerSecond => "req/s",
            Self::TokensPerSecond => "tok/s",
            Self::Requests => "requests",
            Self::Share => "share",
            Self::Watts => "W",
            Self::JoulesPerToken => "J/tok",
            Self::TokensPerJoule => "tok/J",
        }
    }
}

impl Headline {
    pub const fn on_closed_loop(self) -> bool {
        matches!(self, Self::ClosedLoop | Self::Always)
    }

    pub const fn on_open_loop(self) -> bool {
        matches!(self, Self::OpenLoop | Self::Always)
    }
}

pub(crate) const NOTHING_OK: Missing = Missing("no request ended ok");
pub(crate) const NOTHING_SENT: Missing = Missing("no request was sent");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_finite_is_nothing() {
        let scalar = Metric::named("tg").unwrap().scalar(Ok(f64::INFINITY), None);
        assert_eq!(scalar.value, None);
        assert!(scalar.reason.is_some());
    }
}
