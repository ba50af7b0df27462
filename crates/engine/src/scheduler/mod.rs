//! The engine's core: a vLLM-style scheduler without I/O, driven by a clock.
//!
//! It is told of requests and of the time, and tells a [`Listener`] what happens. It reads no
//! clock, so a live server and a simulation run the same code: what it does depends on nothing but
//! the requests, the moments of their arrival and the seed of its step times.

mod config;
mod listener;
mod request;
mod step;
pub mod tokens;

pub use config::{Generation, Policy, SchedulerConfig};
pub use listener::{Listener, RequestEnd, RequestFacts};
pub use request::{HashedPrompt, SchedulerRequest, StopRules};
pub use step::{ConstantStep, Step, StepShape, StepTime};
