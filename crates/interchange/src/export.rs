//! Results in the formats of other programs: their own results, spreadsheets, data frames, monitoring,
//! CI.
//!
//! Each writer takes [`Sheet`](inferometer_analysis::sheet::Sheet)s, ours or imported ones, and says
//! nothing that they do not say; tables of requests take a run's
//! [`Observations`](inferometer_model::Observations). To add a format of figures: a module here that
//! walks `figure::of`, and an arm in the command.

pub mod bencher;
pub mod csv;
mod figure;
pub mod github;
pub mod openmetrics;
pub mod otlp;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod vllm;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(
        "{name} has no figures of single requests, and the detailed form is made of them; export it \
         in the plain form"
    )]
    NoRequests { name: String },
    #[error("cannot write the result: {0}")]
    Write(#[from] std::io::Error),
}
