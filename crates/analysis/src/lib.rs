//! Records to summary: metrics, statistics, validity.
//!
//! [`summarize`] is a pure function of a run's [`Observations`](inferometer_model::Observations).
//! It reads the records (`measured`), walks the one table of metrics ([`METRICS`]), lets the
//! warnings judge what was found, and gives a [`Summary`] that serialises to the documented JSON.
//!
//! Nothing is not zero: a metric without values is null and says why. Nothing is rounded here;
//! pages round.

mod audit;
pub mod calibration;
mod client;
pub mod comparison;
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
#[cfg(test)]
mod properties;
mod record;
mod run;
mod server;
pub mod set;
pub mod statistics;
mod steady;
mod summary;
pub mod tool_result;
mod topic;

pub use audit::{Audit, CacheAudit, Difference, LengthAudit};
pub use client::{ClientCapacity, ClientError, ClientHealth, LoopLag};
pub use figures::{
    CourseFigure, DistributionFigure, GapsFigure, RequestRow, RequestsFigure, RowReason, RunFigures,
};
pub use judge::{
    Bound, Check, CheckKind, CheckState, Evidence, Limits, RequestSlo, RequestSlos, Requirement,
    RequirementOutcome, RequirementProblem, Ruling, Severity, SloOutcome, SloProblem, Threshold,
    ThresholdVerdict, Undecided, Verdict, Warning, check_requirements, check_slos,
};
pub use littles_law::LittlesLaw;
pub use metric::Statistic;
pub use metric::{Better, Headline, METRICS, Metric, Shape, Unit};
pub use metric::{ByMetric, Distribution, Intervals, MetricValue, MetricValues, Note, Scalar};
pub use metric::{LatencyOrigin, Quantity, QuantityProblem};
pub use offered_load::{
    ArrivalFit, Delivered, Dispersion, GapFigures, HeldByCap, ScheduleDelivered, SlotsDelivered,
};
pub use record::FailureGroup;
pub use record::RequestLatencies;
pub use record::RequestRates;
pub use record::latencies as detail;
pub use record::{Figures, GroupFigures, PartFigures, TurnFigures};
pub use record::{InputSources, OutputSources, TokenSource, Tokens};
pub use record::{Window, WindowKind};
pub use run::SystemFacts;
pub use run::{
    ExtentFacts, LoadFacts, PlanFacts, RampSegmentFacts, RateFacts, RunFacts, ThinkFacts,
    WarmUpFacts, WorkloadFacts,
};
pub use server::{CounterFigures, GaugeFigures, ScrapeFigures, ServerSide, Timeline, TokensApart};
pub use statistics::{Estimate, Interval, share_across, share_pooled};
pub use statistics::{Percentile, Probability, Sample};
pub use steady::{
    Growth, SeriesName, SeriesTrend, SteadyFigures, SteadyKind, SteadyState, ThroughputIntervals,
};
pub use summary::numbers_on_one_line;
pub use summary::{SCHEMA, Summary, SummaryError, summarize};
pub use topic::{Foreign, Topic, UnknownWord, WORDS, Word};

// Former names of modules, until nothing uses them.
use metric as quantity;
use metric as statistic;
use metric as value;
use record as concurrency;
use record as measured;
use record as oddities;
use record as request_metrics;
use record as request_rates;
use record as ruler;
use record as tokens;
use statistics as estimate;
use statistics as sample;
