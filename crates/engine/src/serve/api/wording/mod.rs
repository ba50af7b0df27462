//! Answers into bytes, as their tokens come or in one piece.
//!
//! Every event is an HTTP chunk of its own, as vLLM's server makes them.

mod answer;
mod choice;
mod completion;
mod events;
mod logprobs;
mod messages;
mod responses;

pub(crate) use answer::{Answered, Finish, Identity, Said, Usage, Wording};
use answer::{Event, Piece, stop_string};
use choice::WholeText;

#[cfg(test)]
mod tests;
