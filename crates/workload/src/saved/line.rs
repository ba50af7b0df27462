//! The lines of a saved plan after its first: requests, and an end.

use std::time::Duration;

use inferometer_model::{Content, Message, Moment, PlannedRequest, Prompt, Release, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data_file::reason_of;
use crate::fingerprint::nanos;

/// A request: its recipe, and its words.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    id: u64,
    release: When,
    #[serde(default, skip_serializing_if = "is_zero")]
    think_ns: u64,
    #[serde(default)]
    prompt_seed: u64,
    input_tokens: u32,
    output_tokens: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    item: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    part: u16,
    #[serde(default, skip_serializing_if = "is_zero")]
    turn: u16,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continues: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    body: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

/// The last line: a file without it was cut short, and one that it does not fit was changed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Last {
    pub(super) end: End,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    pub(super) requests: u64,
    /// Of all lines before it, half of a SHA-256.
    pub(super) sha256: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum When {
    AtNs(u64),
    SlotFree,
    /// After the answer to the request before it.
    AfterNs(u64),
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl Line {
    pub(super) fn of(request: &PlannedRequest, content: Content) -> Self {
        let release = match request.release {
            Release::At(moment) => When::AtNs(moment.as_nanos()),
            Release::WhenSlotFree => When::SlotFree,
            Release::After { think, .. } => When::AfterNs(nanos(think)),
        };
        let (prompt, messages) = match content.prompt {
            Prompt::Text(text) => (Some(text), None),
            Prompt::Messages(messages) => (None, Some(messages)),
        };
        Self {
            id: request.id.0,
            release,
            think_ns: nanos(request.think),
            prompt_seed: request.prompt_seed,
            input_tokens: request.input_tokens,
            output_tokens: request.output_tokens,
            item: request.item,
            part: request.part,
            turn: request.turn,
            continues: request.continues,
            prompt,
            messages,
            images: content.images,
            body: content.fields,
            model: content.model,
        }
    }

    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let line: Self = serde_json::from_slice(line).map_err(|error| reason_of(&error))?;
        if line.prompt.is_some() == line.messages.is_some() {
            return Err("a request has either `prompt` or `messages`".to_owned());
        }
        Ok(line)
    }

    pub(super) fn request(&self) -> PlannedRequest {
        let release = match self.release {
            When::AtNs(ns) => Release::At(Moment::from_nanos(ns)),
            When::SlotFree => Release::WhenSlotFree,
            When::AfterNs(ns) => Release::After {
                previous: RequestId(self.id.saturating_sub(1)),
                think: Duration::from_nanos(ns),
            },
        };
        PlannedRequest {
            id: RequestId(self.id),
            release,
            think: Duration::from_nanos(self.think_ns),
            prompt_seed: self.prompt_seed,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            item: self.item,
            part: self.part,
            turn: self.turn,
            continues: self.continues,
        }
    }

    pub(super) fn content(self) -> Content {
        let prompt = match self.messages {
            Some(messages) => Prompt::Messages(messages),
            None => Prompt::Text(self.prompt.unwrap_or_default()),
        };
        Content { prompt, images: self.images, fields: self.body, model: self.model }
    }
}
