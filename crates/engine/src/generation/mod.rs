//! What answers say and when: words, JSON, schedules, and streams as sequences of writes.
//!
//! Shared by the modes; pure, without sockets or clocks.

mod dialect;
mod json;
mod schedule;
mod stream;
mod whole;
mod words;

pub(crate) use dialect::Dialect;
pub(crate) use json::{AnswerJson, Detail, Identity};
pub(crate) use schedule::Schedule;
pub(crate) use stream::{StreamShape, TokenStream};
pub(crate) use whole::whole_answer;
pub(crate) use words::Words;
