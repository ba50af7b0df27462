//! API dialects: planned request to body bytes, event bytes to what they say. Synchronous, no I/O.
//!
//! To add a dialect: a variant of `Api` with its facts in the model crate's `endpoint.rs`, and a
//! `Dialect` with its functions in the file of its family here; then fixtures under
//! `tests/captures` and a line in the docs.

mod alike;
mod body;
mod json;
mod native;
pub mod openai;
mod quick;
pub(crate) mod server_report;
#[cfg(test)]
mod tests;
mod typed_events;

pub(crate) use alike::Alike;
pub(crate) use native::GrowingAnswer;

use std::borrow::Cow;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::{PinnedOutput, UsageAsk};
use inferometer_model::outcome::Cause;
use inferometer_model::record::Usage;
use inferometer_model::{Content, Message};
use serde_json::{Map, Value};

/// How one API's requests are written and its answers are read.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one API")]
pub(crate) struct Dialect {
    api: Api,
    pub(crate) body: fn(&BodyRecipe<'_>) -> Vec<u8>,
    /// Reads one event, or one whole answer.
    pub(crate) read: for<'a> fn(&'a [u8]) -> Result<Chunk<'a>, ChunkError>,
    /// Adds images to a message in the form in which they are sent.
    add_images: fn(&mut Message, &[String]),
    /// Events of a stream repeat the text of the earlier ones.
    pub(crate) repeats_text: bool,
    /// Its events are mostly alike, and may be read so.
    pub(crate) has_alike_events: bool,
    /// A stream is whole only with the API's own mark of the end.
    pub(crate) needs_end_event: bool,
    /// An answer is whole only if it gives a finish reason.
    pub(crate) needs_finish_reason: bool,
    /// Anthropic's own servers refuse a request without their headers.
    pub(crate) anthropic_headers: bool,
}

impl Dialect {
    const fn new(
        api: Api,
        body: fn(&BodyRecipe<'_>) -> Vec<u8>,
        read: for<'a> fn(&'a [u8]) -> Result<Chunk<'a>, ChunkError>,
    ) -> Self {
        Self {
            api,
            body,
            read,
            add_images: body::no_images,
            repeats_text: false,
            has_alike_events: false,
            needs_end_event: false,
            needs_finish_reason: true,
            anthropic_headers: false,
        }
    }

    pub(crate) fn generates(&self) -> bool {
        self.api.generates()
    }

    /// Every API has one, which a test checks.
    pub(crate) fn for_api(api: Api) -> &'static Self {
        let rest = typed_events::DIALECTS.iter().chain(native::DIALECTS);
        let mut dialects = openai::DIALECTS.iter().chain(rest);
        dialects.find(|dialect| dialect.api == api).unwrap_or(&openai::DIALECTS[0])
    }
}

inferometer_model::debug_fields!(Dialect, api);

/// What a body is made of.
#[derive(Clone, Copy, Debug)]
pub struct BodyRecipe<'a> {
    pub api: Api,
    pub model: &'a str,
    pub content: &'a Content,
    /// The messages that the prompt begins with.
    pub history: &'a [&'a Message],
    pub output_tokens: u32,
    pub streaming: bool,
    pub usage: UsageAsk,
    /// Fields that every body carries; those of the content win over them.
    pub fields: &'a Map<String, Value>,
    pub pinned: PinnedOutput,
}

/// What one event, or one whole answer, contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk<'a> {
    pub choices: Vec<ChoiceDelta<'a>>,
    pub usage: Option<Usage>,
    pub model: Option<Cow<'a, str>>,
    /// The server's message for an error that it put into the stream.
    pub error: Option<String>,
    /// It is the API's own mark of the end, as `[DONE]` is for others.
    pub ends: bool,
}

/// The finish of an answer whose end the server marks without a reason.
const UNSTATED: &str = "unstated";

/// One choice's delta. Text is kept as the server's bytes: lone surrogates are legal JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoiceDelta<'a> {
    pub index: u16,
    pub role: bool,
    pub content: Option<Cow<'a, [u8]>>,
    pub reasoning: Option<Cow<'a, [u8]>>,
    /// Bytes of tool-call arguments and names; `None` without a tool call.
    pub tool_call_bytes: Option<usize>,
    pub finish: Option<Cow<'a, str>>,
    /// Tokens by the server's own count of this delta: token ids, else logprobs.
    pub marked_tokens: Option<u32>,
}

impl Chunk<'_> {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl<'a> From<ChoiceDelta<'a>> for Chunk<'a> {
    fn from(delta: ChoiceDelta<'a>) -> Self {
        Self { choices: vec![delta], ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    #[error("{0}")]
    BadJson(String),
    #[error("JSON nested deeper than {depth} or with more than {keys} keys in one object")]
    TooDeep { depth: usize, keys: usize },
}

impl ChunkError {
    pub const fn cause(&self) -> Cause {
        match self {
            Self::BadJson(_) => Cause::BadJson,
            Self::TooDeep { .. } => Cause::JsonTooDeep,
        }
    }
}

/// The body to send.
pub fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    (Dialect::for_api(recipe.api).body)(recipe)
}

/// A content as messages, in the form in which the API sends them, images included.
pub fn messages(api: Api, content: &Content) -> Vec<Message> {
    body::turn(api, content)
}
