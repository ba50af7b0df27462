//! Records to summary: metrics, statistics, validity.
//!
//! [`summarize`] is a pure function of a run's [`Observations`](inferometer_model::Observations).
//! It reads the records (`measured`), walks the one table of metrics ([`METRICS`]), lets the
//! warnings judge what was found, and gives a [`Summary`] that serialises to the documented JSON.
//!
//! Nothing is not zero: a metric without values is null and says why. Nothing is rounded here;
//! pages round.

mod arrivals;
mod audit;
pub mod calibration;
mod cap;
mod capacity;
mod client;
mod clustered;
pub mod comparison;
mod concurrency;
pub mod definitions;
mod delivered;
pub mod detail;
mod doubt;
mod estimate;
mod even_steps;
mod figures;
#[cfg(test)]
mod fixture;
mod fluidity;
mod groups;
mod judge;
mod little;
pub mod machines;
pub mod matrix;
mod measured;
pub mod metric;
mod number_lists;
mod oddities;
mod outcomes;
pub mod outline;
mod pooled;
mod promise;
#[cfg(test)]
mod properties;
mod quantity;
mod request_metrics;
mod request_rates;
mod requirement;
mod ruler;
mod run;
mod sample;
mod server;
pub mod set;
pub mod sheet;
mod slos;
mod statistic;
pub mod statistics;
mod steady;
mod summary;
mod system;
mod threshold;
mod throughput;
mod tokens;
mod topic;
mod value;

pub use audit::{Audit, CacheAudit, Difference, LengthAudit};
pub use cap::HeldByCap;
pub use capacity::{ClientCapacity, ClientError};
pub use client::{ClientHealth, LoopLag};
pub use delivered::{
    ArrivalFit, Delivered, Dispersion, GapFigures, ScheduleDelivered, SlotsDelivered,
};
pub use estimate::{Estimate, Interval, share_across, share_pooled};
pub use figures::{
    CourseFigure, DistributionFigure, GapsFigure, RequestRow, RequestsFigure, RowReason, RunFigures,
};
pub use groups::{Figures, GroupFigures, PartFigures, TurnFigures};
pub use judge::{Check, CheckKind, CheckState, Limits, Severity, Verdict, Warning};
pub use little::LittlesLaw;
pub use metric::{Better, Headline, METRICS, Metric, Shape, Unit};
pub use number_lists::numbers_on_one_line;
pub use outcomes::FailureGroup;
pub use promise::{SloProblem, check_slos};
pub use quantity::{LatencyOrigin, Quantity, QuantityProblem};
pub use request_metrics::RequestLatencies;
pub use request_rates::RequestRates;
pub use requirement::{
    Bound, Requirement, RequirementOutcome, RequirementProblem, RequirementVerdict, Undecided,
    check_requirements,
};
pub use run::{
    ExtentFacts, LoadFacts, PlanFacts, RampSegmentFacts, RateFacts, RunFacts, ThinkFacts,
    WarmUpFacts, WorkloadFacts,
};
pub use sample::{Percentile, Probability, Sample};
pub use server::{CounterFigures, GaugeFigures, ScrapeFigures, ServerSide, Timeline, TokensApart};
pub use slos::{RequestSlo, RequestSlos, SloOutcome, SloVerdict};
pub use statistic::Statistic;
pub use steady::{
    Growth, SeriesName, SeriesTrend, SteadyFigures, SteadyKind, SteadyState, ThroughputIntervals,
};
pub use summary::{SCHEMA, Summary, SummaryError, summarize};
pub use system::SystemFacts;
pub use threshold::{Evidence, Ruling, Standing, Threshold};
pub use throughput::{Window, WindowKind};
pub use tokens::{InputSources, OutputSources, TokenSource, Tokens};
pub use topic::{Foreign, Topic, UnknownWord, WORDS, Word};
pub use value::{ByMetric, Distribution, Intervals, MetricValue, MetricValues, Note, Scalar};
