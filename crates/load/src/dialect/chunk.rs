//! The full reader: one JSON document of the OpenAI form, a stream's event or a whole answer, into
//! what it says.
//!
//! It decides what is accepted and says why a document is refused; ordinary documents are read by
//! [`super::quick`] in half the time. Keys that we know must not come twice; keys that
//! we do not know are passed over.

use std::borrow::Cow;
use std::fmt;

use inferometer_model::record::Usage;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::wire::{Loose, Parts, Text, WireToolCall};
use super::{ChoicePart, Saying};

/// A document; an error in it is still JSON.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    pub(super) saying: Saying<'a>,
    pub(super) error: Option<Value>,
}

/// A set of the keys that an object had so far.
#[derive(Default)]
struct Keys(u32);

impl Keys {
    /// Notes a key; the second time is an error.
    fn note<E: Error>(&mut self, place: u32, name: &'static str) -> Result<(), E> {
        let bit = 1 << place;
        if self.0 & bit != 0 {
            return Err(E::duplicate_field(name));
        }
        self.0 |= bit;
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Document<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer, or a part of one")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Document<'de>, A::Error> {
        let mut document = Document::default();
        let mut keys = Keys::default();
        let mut nested_error = None;
        while let Some(key) = members.next_key::<Text<'de>>()? {
            match key.bytes() {
                b"choices" => {
                    keys.note(0, "choices")?;
                    if let Some(choices) = members.next_value::<Option<Choices<'de>>>()? {
                        document.saying.choices = choices.parts;
                        nested_error = choices.error;
                    }
                }
                b"usage" => {
                    keys.note(1, "usage")?;
                    let usage = members.next_value::<Option<WireUsage>>()?;
                    document.saying.usage = usage.map(Usage::from);
                }
                b"model" => {
                    keys.note(2, "model")?;
                    let model = members.next_value::<Option<Text<'de>>>()?;
                    document.saying.model = model.map(Text::into_name);
                }
                b"error" => {
                    keys.note(3, "error")?;
                    document.error = members.next_value::<Option<Value>>()?;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        document.error = document.error.or(nested_error);
        Ok(document)
    }
}

#[derive(Default)]
struct Choices<'a> {
    parts: Vec<ChoicePart<'a>>,
    error: Option<Value>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ChoicesVisitor)
    }
}

struct ChoicesVisitor;

impl<'de> Visitor<'de> for ChoicesVisitor {
    type Value = Choices<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Choices<'de>, A::Error> {
        let mut choices = Choices::default();
        while let Some(choice) = items.next_element::<Choice<'de>>()? {
            choices.parts.push(choice.part);
            choices.error = choices.error.or(choice.error);
        }
        Ok(choices)
    }
}

struct Choice<'a> {
    part: ChoicePart<'a>,
    error: Option<Value>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ChoiceVisitor)
    }
}

struct ChoiceVisitor;

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = Choice<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a choice")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Choice<'de>, A::Error> {
        let mut choice = Choice { part: ChoicePart::default(), error: None };
        let mut keys = Keys::default();
        let mut logprobs = None;
        while let Some(key) = members.next_key::<Text<'de>>()? {
            match key.bytes() {
                b"index" => {
                    keys.note(0, "index")?;
                    let index = members.next_value::<Loose>()?.number();
                    choice.part.index = index.and_then(|n| u16::try_from(n).ok()).unwrap_or(0);
                }
                b"delta" | b"message" => {
                    keys.note(1, "delta")?;
                    if let Some(message) = members.next_value::<Option<Message<'de>>>()? {
                        message.fill(&mut choice.part);
                    }
                }
                b"text" => {
                    keys.note(2, "text")?;
                    choice.part.content = members.next_value::<Option<Parts<'de>>>()?.map(|p| p.0);
                }
                b"finish_reason" => {
                    keys.note(3, "finish_reason")?;
                    let finish = members.next_value::<Option<Text<'de>>>()?;
                    choice.part.finish = finish.map(Text::into_name);
                }
                b"logprobs" => {
                    keys.note(4, "logprobs")?;
                    logprobs = members.next_value::<Option<WireLogprobs>>()?;
                }
                b"token_ids" => {
                    keys.note(5, "token_ids")?;
                    let ids = members.next_value::<Loose>()?.list_length();
                    choice.part.marked_tokens = ids.filter(|length| 0 < *length);
                }
                b"error" => {
                    keys.note(6, "error")?;
                    choice.error = members.next_value::<Option<Value>>()?;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        // Token ids count better than logprobs, whichever stood first.
        let counted = logprobs.and_then(|logprobs| logprobs.tokens());
        choice.part.marked_tokens = choice.part.marked_tokens.or(counted);
        Ok(choice)
    }
}

/// A delta, or a whole message.
#[derive(Default)]
struct Message<'a> {
    role: bool,
    content: Option<Cow<'a, [u8]>>,
    reasoning: Option<Cow<'a, [u8]>>,
    tool_call_bytes: Option<usize>,
}

impl<'a> Message<'a> {
    fn fill(self, part: &mut ChoicePart<'a>) {
        part.role = self.role;
        part.content = self.content;
        part.reasoning = self.reasoning;
        part.tool_call_bytes = self.tool_call_bytes;
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Message<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message, or a part of one")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Message<'de>, A::Error> {
        let mut message = Message::default();
        let mut keys = Keys::default();
        while let Some(key) = members.next_key::<Text<'de>>()? {
            match key.bytes() {
                b"role" => {
                    keys.note(0, "role")?;
                    message.role = members.next_value::<Option<IgnoredAny>>()?.is_some();
                }
                b"content" => {
                    keys.note(1, "content")?;
                    message.content = members.next_value::<Option<Parts<'de>>>()?.map(|p| p.0);
                }
                // Servers have two names for it, and some send both.
                b"reasoning_content" | b"reasoning" => {
                    let reasoning = members.next_value::<Option<Parts<'de>>>()?.map(|p| p.0);
                    message.reasoning = message.reasoning.or(reasoning);
                }
                b"tool_calls" => {
                    keys.note(2, "tool_calls")?;
                    let calls = members.next_value::<Option<Vec<WireToolCall>>>()?;
                    message.tool_call_bytes = calls
                        .filter(|calls| !calls.is_empty())
                        .map(|calls| calls.iter().map(WireToolCall::bytes).sum());
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(message)
    }
}

/// Chat has `content`, completions have `tokens`: a list with one entry per token.
#[derive(Deserialize)]
struct WireLogprobs {
    #[serde(default)]
    content: Loose,
    #[serde(default)]
    tokens: Loose,
}

impl WireLogprobs {
    fn tokens(&self) -> Option<u32> {
        self.content.list_length().or_else(|| self.tokens.list_length())
    }
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Loose,
    #[serde(default)]
    completion_tokens: Loose,
    #[serde(default)]
    prompt_tokens_details: Option<WirePromptDetails>,
}

#[derive(Deserialize)]
struct WirePromptDetails {
    #[serde(default)]
    cached_tokens: Loose,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens.number(),
            completion_tokens: usage.completion_tokens.number(),
            cached_tokens: usage
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens.number()),
        }
    }
}
