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

pub(crate) use engine::VirtualEngine;
pub(crate) use flights::Flight;
pub(crate) use journal::Journal;
pub(crate) use observer::{End, Observer, Sample};
pub(crate) use player::{Player, Rules};
pub(crate) use tally::{Tally, Told};
pub(crate) use telemetry::Watching;
