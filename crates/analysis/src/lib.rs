//! Records to summary: metrics, statistics, validity.
//!
//! [`summarize`] is a pure function of a run's [`Observations`](inferometer_model::Observations).
//! It reads the records once (`measured`), walks the one table of metrics ([`METRICS`]), lets the
//! warnings judge what was found, and gives a [`Summary`] that serialises to the documented JSON.
//!
//! Nothing is not zero: a metric without values is null and says why. Nothing is rounded here;
//! pages round.

mod arrivals;
pub mod calibration;
mod cap;
mod capacity;
mod client;
mod concurrency;
pub mod definitions;
#[cfg(test)]
mod fixture;
mod measured;
mod metric;
mod oddities;
mod outcomes;
pub mod outline;
#[cfg(test)]
mod properties;
mod request_metrics;
mod ruler;
mod run;
mod sample;
mod summary;
mod throughput;
mod tokens;
mod value;
mod verdict;
mod warning;

pub use cap::HeldByCap;
pub use capacity::{ClientCapacity, ClientError};
pub use client::{ClientHealth, LoopLag};
pub use metric::{Better, Headline, METRICS, Metric, Shape, Unit};
pub use outcomes::FailureGroup;
pub use run::{
    ExtentFacts, LoadFacts, PlanFacts, RampSegmentFacts, RateFacts, RunFacts, ThinkFacts,
    WarmUpFacts, WorkloadFacts,
};
pub use sample::{Percentile, Probability, Sample};
pub use summary::{SCHEMA, Summary, SummaryError, summarize};
pub use throughput::{Window, WindowKind};
pub use tokens::{InputSources, OutputSources, TokenSource, Tokens};
pub use value::{Distribution, MetricValue, MetricValues, Note, Scalar};
pub use verdict::{Severity, Verdict};
pub use warning::{AnswerWarning, ClientWarning, Notice, RunWarning, Warning};
