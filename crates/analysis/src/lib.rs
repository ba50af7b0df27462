//! Records to summary: metrics, statistics, validity.
//!
//! [`summarize`] is a pure function of a run's [`Observations`](inferometer_model::Observations).
//! It reads the records (`measured`), walks the one table of metrics ([`METRICS`]), lets the
//! warnings judge what was found, and gives a [`Summary`] that serialises to the documented JSON.
//!
//! Nothing is not zero: a metric without values is null and says why. No value is rounded here;
//! messages and pages round, and messages do it by [`inferometer_model::fmt`].

mod abort;
mod anatomy;
mod answers;
mod audit;
pub mod calibration;
mod client;
pub mod client_judgement;
pub mod comparison;
pub mod compliance;
pub mod definitions;
mod figures;
#[cfg(test)]
mod fixture;
mod judge;
mod littles_law;
pub mod machines;
pub mod matrix;
pub mod metric;
mod offered_load;
pub mod outline;
pub mod plausibility;
mod prediction;
#[cfg(test)]
mod properties;
mod record;
mod replicas;
mod reports;
mod run;
mod server;
mod sessions;
pub mod set;
pub mod statistics;
mod steady;
pub mod steps;
mod summary;
pub mod tool_result;
mod topic;

pub use abort::*;
pub use anatomy::*;
pub use answers::AnswerFigures;
pub use audit::*;
pub use client::*;
pub use figures::*;
pub use judge::*;
pub use littles_law::*;
pub use metric::{
    Better, ByMetric, Distribution, Headline, Intervals, LatencyOrigin, METRICS, Metric,
    MetricValue, MetricValues, Note, Quantity, QuantityProblem, Scalar, Shape, Statistic, Unit,
};
pub use offered_load::*;
pub use record::{
    FailureGroup, Figures, GroupFigures, InputSources, OutputSources, PartFigures,
    RequestLatencies, RequestRates, TokenSource, Tokens, TurnFigures, Window, WindowKind, Withheld,
    request as detail,
};
pub use replicas::SourceFigures;
pub use reports::*;
pub use run::*;
pub use server::*;
pub use sessions::{CacheReuse, SessionFigures};
pub use statistics::{
    Estimate, Interval, Percentile, Probability, Sample, share_across, share_pooled,
};
pub use steady::*;
pub use summary::{DocumentError, SCHEMA, Summary, numbers_on_one_line, summarize};
pub use topic::{ForeignName, TERMS, Term, Topic, UnknownTopic};
