//! Virtual time: the dispatcher of `load` and the scheduler of `engine` under one simulated clock.
//!
//! A simulation goes from event to event and waits for nothing: what the plan releases, what the
//! API process hands on, what the scheduler does, and what time-outs end. Decisions are those of
//! the real run, made by the same code; what is here only brings moments into one order.

mod conversations;
mod desk;
mod engine;
mod flights;
mod front;
mod histogram;
mod journal;
mod observer;
mod player;
mod tally;
mod telemetry;

pub use engine::VirtualEngine;
pub use flights::Flight;
pub use journal::Journal;
pub use observer::{End, Observer, Sample};
pub use player::{Player, Rules};
pub use tally::{Tally, Times, Told};
pub use telemetry::Watching;
