//! Answers into bytes, as their tokens come or in one piece.
//!
//! Every event is an HTTP chunk of its own, as vLLM's server makes them.

mod answer;
mod completion;
mod named_events;

pub(crate) use answer::{AnswerWriter, Finish, FinishedChoice, GeneratedToken, Identity, Usage};
use answer::{Event, Piece, WholeText};

#[cfg(test)]
mod tests;
