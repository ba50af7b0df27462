//! The wire of the mode `serve`: requests out of JSON bodies, answers into bytes.
//!
//! Field names, their order, errors and statuses are those of vLLM. Nothing here does I/O or reads
//! a clock. A generation goes [`parse()`] → [`GenerationRequest`] → (the service schedules it) →
//! [`AnswerWriter`]. What needs no scheduler is answered at once: [`tokenize()`], [`detokenize`];
//! embeddings are in between ([`EmbeddingRequest`]).

mod answer;
mod embeddings;
mod own_report;
mod request;
mod script;

pub(crate) use answer::{AnswerWriter, Finish, Usage};
pub(crate) use embeddings::{EmbeddingRequest, detokenize, parse_embeddings, tokenize};
pub(crate) use own_report::OwnTimes;
pub use own_report::{Extras, ReportForm};
pub(crate) use request::{GenerationRequest, Serving, StopFound, check_search, parse, stop_at};
pub(crate) use script::Script;
