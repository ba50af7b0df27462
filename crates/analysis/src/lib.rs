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
mod cap;
mod capacity;
mod client;
pub mod comparison;
pub mod definitions;
mod delivered;
mod figures;
#[cfg(test)]
mod fixture;
mod judge;
mod little;
pub mod machines;
pub mod matrix;
pub mod metric;
pub mod outline;
mod promise;
#[cfg(test)]
mod properties;
mod record;
mod requirement;
mod run;
mod server;
pub mod set;
pub mod sheet;
mod slos;
pub mod statistics;
mod steady;
mod summary;
mod threshold;
mod topic;

pub use audit::{Audit, CacheAudit, Difference, LengthAudit};
pub use cap::HeldByCap;
pub use capacity::{ClientCapacity, ClientError};
pub use client::{ClientHealth, LoopLag};
pub use delivered::{
    ArrivalFit, Delivered, Dispersion, GapFigures, ScheduleDelivered, SlotsDelivered,
};
pub use figures::{
    CourseFigure, DistributionFigure, GapsFigure, RequestRow, RequestsFigure, RowReason, RunFigures,
};
pub use judge::{Check, CheckKind, CheckState, Limits, Severity, Verdict, Warning};
pub use little::LittlesLaw;
pub use metric::Statistic;
pub use metric::{Better, Headline, METRICS, Metric, Shape, Unit};
pub use metric::{ByMetric, Distribution, Intervals, MetricValue, MetricValues, Note, Scalar};
pub use metric::{LatencyOrigin, Quantity, QuantityProblem};
pub use promise::{SloProblem, check_slos};
pub use record::FailureGroup;
pub use record::RequestLatencies;
pub use record::RequestRates;
pub use record::latencies as detail;
pub use record::{Figures, GroupFigures, PartFigures, TurnFigures};
pub use record::{InputSources, OutputSources, TokenSource, Tokens};
pub use record::{Window, WindowKind};
pub use requirement::{
    Bound, Requirement, RequirementOutcome, RequirementProblem, RequirementVerdict, Undecided,
    check_requirements,
};
pub use run::SystemFacts;
pub use run::{
    ExtentFacts, LoadFacts, PlanFacts, RampSegmentFacts, RateFacts, RunFacts, ThinkFacts,
    WarmUpFacts, WorkloadFacts,
};
pub use server::{CounterFigures, GaugeFigures, ScrapeFigures, ServerSide, Timeline, TokensApart};
pub use slos::{RequestSlo, RequestSlos, SloOutcome, SloVerdict};
pub use statistics::{Estimate, Interval, share_across, share_pooled};
pub use statistics::{Percentile, Probability, Sample};
pub use steady::{
    Growth, SeriesName, SeriesTrend, SteadyFigures, SteadyKind, SteadyState, ThroughputIntervals,
};
pub use summary::numbers_on_one_line;
pub use summary::{SCHEMA, Summary, SummaryError, summarize};
pub use threshold::{Evidence, Ruling, Standing, Threshold};
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
