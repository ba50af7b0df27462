//! API dialects: planned request to body bytes, event bytes to what they say. Synchronous, no I/O.
//!
//! To add a dialect: a variant in `Api`, a file here that answers the same questions as
//! [`openai`], its arm in each function below, fixtures under `tests/captures`, a line in the docs.

#[cfg(test)]
mod agreement;
pub mod bounds;
mod chunk;
mod cursor;
mod embeddings;
mod fields;
mod llama;
mod messages;
mod ollama;
pub mod openai;
mod pictures;
mod quick;
mod rerank;
mod responses;
mod sglang;
mod tgi;
mod triton;
mod wire;

pub(crate) use sglang::GrowingAnswer;

use std::borrow::Cow;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::{PinnedOutput, UsageAsk};
use inferometer_model::outcome::Cause;
use inferometer_model::record::Usage;
use inferometer_model::{Content, Message};
use serde_json::{Map, Value};

/// What a body is made of.
#[derive(Clone, Copy, Debug)]
pub struct BodyRecipe<'a> {
    pub api: Api,
    pub model: &'a str,
    pub content: &'a Content,
    /// What was said before in this conversation.
    pub history: &'a [Message],
    pub output_tokens: u32,
    pub streaming: bool,
    pub usage: UsageAsk,
    /// Fields that every body carries; those of the content win over them.
    pub fields: &'a Map<String, Value>,
    pub pinned: PinnedOutput,
}

/// What one event, or one whole answer, says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saying<'a> {
    pub choices: Vec<ChoicePart<'a>>,
    pub usage: Option<Usage>,
    pub model: Option<Cow<'a, str>>,
    /// The server's words for an error that it put into the stream.
    pub error: Option<String>,
    /// It is the API's own mark of the end, as `[DONE]` is for others.
    pub ends: bool,
}

/// The finish of an answer whose end the server marks without a reason.
const UNSTATED: &str = "unstated";

/// One choice's part. Text is kept as the server's bytes: lone surrogates are legal JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoicePart<'a> {
    pub index: u16,
    pub role: bool,
    pub content: Option<Cow<'a, [u8]>>,
    pub reasoning: Option<Cow<'a, [u8]>>,
    /// Bytes of tool-call arguments and names; `None` without a tool call.
    pub tool_call_bytes: Option<usize>,
    pub finish: Option<Cow<'a, str>>,
    /// Tokens by the server's own count of this part: token ids, else logprobs.
    pub marked_tokens: Option<u32>,
}

impl<'a> From<ChoicePart<'a>> for Saying<'a> {
    fn from(part: ChoicePart<'a>) -> Self {
        Self { choices: vec![part], ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SayingError {
    #[error("{0}")]
    BadJson(String),
    #[error("JSON nested deeper than {depth} or with more than {keys} keys in one object")]
    TooDeep { depth: usize, keys: usize },
}

impl SayingError {
    pub const fn cause(&self) -> Cause {
        match self {
            Self::BadJson(_) => Cause::BadJson,
            Self::TooDeep { .. } => Cause::JsonTooDeep,
        }
    }
}

/// The body to send.
pub fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    match recipe.api {
        Api::Chat | Api::Completions => openai::body(recipe),
        Api::Responses => responses::body(recipe),
        Api::Messages => messages::body(recipe),
        Api::Embeddings => embeddings::body(recipe),
        Api::Rerank => rerank::body(recipe),
        Api::TgiGenerate => tgi::body(recipe),
        Api::SglangGenerate => sglang::body(recipe),
        Api::LlamaCompletion => llama::body(recipe),
        Api::OllamaChat => ollama::chat_body(recipe),
        Api::OllamaGenerate => ollama::generate_body(recipe),
        Api::TritonGenerate => triton::body(recipe),
    }
}

/// What a content says as messages, in the form in which the API sends them, pictures and all.
pub fn messages(api: Api, content: &Content) -> Vec<Message> {
    fields::turn(api, content)
}

/// What the bytes of one event, or of one whole answer, say.
pub fn read(api: Api, json: &[u8]) -> Result<Saying<'_>, SayingError> {
    match api {
        Api::Chat | Api::Completions => openai::read(json),
        Api::Responses => responses::read(json),
        Api::Messages => messages::read(json),
        Api::Embeddings => embeddings::read(json),
        Api::Rerank => rerank::read(json),
        Api::TgiGenerate => tgi::read(json),
        Api::SglangGenerate => sglang::read(json),
        Api::LlamaCompletion => llama::read(json),
        Api::OllamaChat | Api::OllamaGenerate => ollama::read(json),
        Api::TritonGenerate => triton::read(json),
    }
}
