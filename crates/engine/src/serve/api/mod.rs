//! The wire of the mode `serve`: requests out of JSON bodies, answers into bytes.
//!
//! Field names, their order, errors and statuses are those of vLLM. Nothing here does I/O or reads
//! a clock. A generation goes [`parse()`] → [`Ask`] → (the service schedules it) → [`Wording`]. What
//! needs no scheduler is answered at once: [`tokenize()`], [`detokenize`]; embeddings are in between
//! ([`EmbeddingAsk`]).

mod ask;
mod embeddings;
mod errors;
mod fields;
mod parse;
mod problem;
mod stop;
mod tokenize;
mod wording;

pub(crate) use ask::{Ask, Endpoint, Serving};
pub(crate) use embeddings::{EmbeddingAsk, parse_embeddings};
pub(crate) use errors::{method_not_allowed, unauthorized, unknown_path};
pub(crate) use parse::parse;
pub(crate) use stop::{StopFound, check_search, stop_at};
pub(crate) use tokenize::{detokenize, tokenize};
pub(crate) use wording::{Answered, Finish, Identity, Said, Usage, Wording};
