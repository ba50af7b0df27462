//! The engine's core: a vLLM-style scheduler without I/O, driven by a clock.
//!
//! It receives requests and the time, and reports to a [`Listener`] what happens. It reads no
//! clock, so a live server and a simulation run the same code: what it does depends on nothing but
//! the requests, the moments of their arrival and the seed of its step times.

pub mod blocks;
mod core;
mod request;
mod speculation;
#[cfg(test)]
mod tests;

pub use self::core::{Counters, Gauges, Refusal, Scheduler};
pub use request::{
    ConstantStep, Generation, HashedPrompt, Listener, Policy, RequestEnd, RequestFacts,
    SchedulerConfig, SchedulerRequest, Step, StepShape, StepTime, StopRules,
};
pub use speculation::{DRAFT_TOKENS_MAX, Drafts, Speculation};
