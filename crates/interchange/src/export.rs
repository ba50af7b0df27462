//! Results in the formats of other programs: spreadsheets, data frames, monitoring, CI.
//!
//! Each writer takes [`Sheet`](inferometer_analysis::sheet::Sheet)s, ours or imported ones, and says
//! nothing that they do not say; tables of requests take a run's
//! [`Observations`](inferometer_model::Observations). To add a format: a module here that walks
//! `figure::of`, and an arm in the command.

pub mod bencher;
pub mod csv;
mod figure;
pub mod github;
pub mod openmetrics;
pub mod otlp;
#[cfg(feature = "parquet")]
pub mod parquet;
