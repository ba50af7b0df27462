//! The mode `serve`: a vLLM-style server without a GPU.
//!
//! A body becomes an `Ask` ([`api`]), an `Ask` becomes requests of the scheduler (`generate`),
//! which reach it through the API process (`front`) in engine time (`pace`). The scheduler's own
//! doings are heard in `core`, what each client is still to be told lies in `flights`, and its
//! bytes are made when its connection is visited.

mod answer;
pub(crate) mod api;
mod core;
mod flights;
mod front;
mod generate;
mod length;
mod options;
mod pace;
mod service;
mod step_log;
mod step_time;
pub(crate) mod vocabulary;

pub use front::ApiProcess;
pub use options::{ApiKey, ServeOptions};
pub(crate) use options::{SPEED_MAX, SPEED_MIN};
pub(crate) use service::Serve;
