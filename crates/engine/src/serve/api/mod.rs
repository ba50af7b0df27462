//! The wire of the mode `serve`: requests out of JSON bodies, answers into bytes.
//!
//! Field names, their order, errors and statuses are those of vLLM. Nothing here does I/O or reads
//! a clock. A generation goes [`parse()`] → [`GenerationRequest`] → (the service schedules it) → [`AnswerWriter`]. What
//! needs no scheduler is answered at once: [`tokenize()`], [`detokenize`]; embeddings are in between
//! ([`EmbeddingRequest`]).

mod ask;
mod embeddings;
mod parse;
mod stop;
mod wording;

pub(crate) use ask::{Endpoint, GenerationRequest, Serving};
pub(crate) use ask::{method_not_allowed, unauthorized, unknown_path};
pub(crate) use embeddings::{EmbeddingRequest, parse_embeddings};
pub(crate) use embeddings::{detokenize, tokenize};
pub(crate) use parse::parse;
pub(crate) use stop::{StopFound, check_search, stop_at};
pub(crate) use wording::{AnswerWriter, Finish, FinishedChoice, GeneratedToken, Identity, Usage};
