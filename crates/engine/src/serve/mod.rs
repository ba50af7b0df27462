//! The mode `serve`: a vLLM-style server without a GPU.
//!
//! A body becomes a request ([`api`]), and that becomes requests of the scheduler (`service`), which
//! reach it through the API process (`front`) in engine time (`pace`). The scheduler's own
//! events are received in `core`, what is still to be sent to each client is in `flights`, and its
//! bytes are made when its connection is visited.

pub(crate) mod api;
mod core;
mod flights;
mod service;
pub(crate) mod vocabulary;

pub use api::{Extras, ReportForm};
pub use core::ApiProcess;
pub(crate) use service::Serve;
pub use service::{ApiKey, ServeOptions};
