//! Virtual time: the dispatcher of `load` and the scheduler of `engine` under one simulated clock.
//!
//! A simulation goes from event to event and waits for nothing: what the plan releases, what the
//! API server hands on, what the scheduler does, and what time-outs end. Decisions are those of
//! the real run, made by the same code; what is here only brings moments into one order.

mod engine;
mod player;
mod records;

pub use engine::VirtualEngine;
pub(crate) use player::{End, Flight, Observer, Player, Rules, Sample};
pub(crate) use records::{Journal, Tally, TelemetryRecorder};
pub use records::{SimulationSummary, Times};
