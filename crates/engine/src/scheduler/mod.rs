//! The engine's core: a vLLM-style scheduler without I/O, driven by a clock.
//!
//! It is told of requests and of the time, and tells a [`Listener`] what happens. It reads no
//! clock, so a live server and a simulation run the same code: what it does depends on nothing but
//! the requests, the moments of their arrival and the seed of its step times.

mod assemble;
mod assemble_v0;
mod batch;
mod blocks;
mod config;
mod core;
mod entry;
mod listener;
mod request;
mod state;
mod step;
#[cfg(test)]
mod tests;
pub mod tokens;
mod waiting;

pub use self::core::{Counters, Gauges, Refusal, Scheduler};
pub use config::{Generation, Policy, SchedulerConfig};
pub use listener::{Listener, RequestEnd, RequestFacts};
pub use request::{HashedPrompt, SchedulerRequest, StopRules};
pub use step::{ConstantStep, Step, StepShape, StepTime};
