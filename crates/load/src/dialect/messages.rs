//! Anthropic's Messages API, as vLLM and llama.cpp speak it too.
//!
//! Input tokens are counted in three places that exclude each other: `input_tokens` leaves out
//! what was read from the cache and what was written to it. A prompt's tokens are their sum, so
//! that they mean what they mean elsewhere; what was read from the cache is part of them.

use std::borrow::Cow;

use inferometer_model::Message;
use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};

use super::openai::error_body_text;
use super::wire::{Kind, Loose, Sized, Text, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, fields};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    messages: Vec<Cow<'a, Message>>,
    max_tokens: u32,
    stream: bool,
}

/// Instructions stand apart from the conversation. Neither `ignore_eos` nor a least length: the
/// API has no such fields.
pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let (instructions, messages): (Vec<_>, Vec<_>) =
        fields::messages(recipe).into_iter().partition(|message| fields::is_instruction(message));
    let instructions: Vec<String> = instructions.iter().map(|message| message.text()).collect();
    let body = Body {
        model: recipe.model,
        system: (!instructions.is_empty()).then(|| instructions.join("\n")),
        messages,
        max_tokens: recipe.output_tokens,
        stream: recipe.streaming,
    };
    fields::body(&body, recipe)
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow)]
    message: WireMessage<'a>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Vec<WireBlock<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    #[serde(borrow)]
    content_block: WireBlock<'a>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(borrow)]
    delta: WireBlock<'a>,
}

/// A block, or a part of one: each kind has its own field.
#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(default)]
    partial_json: Option<Sized>,
    #[serde(default)]
    name: Option<Sized>,
    #[serde(default)]
    input: Option<Sized>,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow)]
    delta: StopDelta<'a>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct StopDelta<'a> {
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the API calls them so")]
struct WireUsage {
    #[serde(default)]
    input_tokens: Loose,
    #[serde(default)]
    output_tokens: Loose,
    #[serde(default)]
    cache_read_input_tokens: Loose,
    #[serde(default)]
    cache_creation_input_tokens: Loose,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        let cached = usage.cache_read_input_tokens.number();
        let written = usage.cache_creation_input_tokens.number();
        let besides = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
        Self {
            prompt_tokens: usage.input_tokens.number().map(|count| count.saturating_add(besides)),
            completion_tokens: usage.output_tokens.number(),
            cached_tokens: cached,
        }
    }
}

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let Some(kind) = document::<Kind<'_>>(json)?.kind else {
        return Ok(Saying::default());
    };
    match kind.bytes() {
        b"message_start" => {
            let message = document::<MessageStart<'_>>(json)?.message;
            // What it says of the output is no count yet.
            let usage = message.usage.map(|u| Usage { completion_tokens: None, ..Usage::from(u) });
            let part = ChoicePart { role: true, ..ChoicePart::default() };
            let model = message.model.map(Text::into_name);
            Ok(Saying { usage, model, ..Saying::from(part) })
        }
        b"content_block_start" => Ok(begun(document::<BlockStart<'_>>(json)?.content_block)),
        b"content_block_delta" => Ok(grown(document::<BlockDelta<'_>>(json)?.delta)),
        b"message_delta" => {
            let MessageDelta { delta, usage } = document(json)?;
            let usage = usage.map(Usage::from);
            // Usage without a reason is a sum on the way, of text that has come already.
            let Some(reason) = delta.stop_reason else {
                return Ok(Saying { usage, ..Saying::default() });
            };
            let part = ChoicePart { finish: Some(finish(reason)), ..ChoicePart::default() };
            Ok(Saying { usage, ..Saying::from(part) })
        }
        b"message_stop" => Ok(Saying { ends: true, ..Saying::default() }),
        b"message" => Ok(whole(document(json)?)),
        b"error" => Ok(Saying { error: Some(error_body_text(json)), ..Saying::default() }),
        // Pings show that the server lives; what we do not know may be added any day.
        _ => Ok(Saying::default()),
    }
}

/// A block begins, mostly empty; a call of a tool begins with the tool's name.
fn begun(block: WireBlock<'_>) -> Saying<'_> {
    if let (Some(b"tool_use"), Some(name)) = (block.kind.as_ref().map(Text::bytes), &block.name) {
        return ChoicePart { tool_call_bytes: Some(name.0), ..ChoicePart::default() }.into();
    }
    let says_something = [&block.text, &block.thinking]
        .into_iter()
        .any(|text| text.as_ref().is_some_and(|text| !text.bytes().is_empty()));
    if says_something { grown(block) } else { Saying::default() }
}

fn grown(delta: WireBlock<'_>) -> Saying<'_> {
    let part = ChoicePart {
        content: delta.text.map(Text::into_bytes),
        reasoning: delta.thinking.map(Text::into_bytes),
        tool_call_bytes: delta.partial_json.map(|json| json.0),
        ..ChoicePart::default()
    };
    let says_nothing = part == ChoicePart::default();
    // Signatures and citations are not generated text.
    if says_nothing { Saying::default() } else { part.into() }
}

fn whole(message: WireMessage<'_>) -> Saying<'_> {
    let mut part = ChoicePart { role: true, ..ChoicePart::default() };
    for block in message.content {
        if let Some(text) = block.text {
            part.content.get_or_insert_default().to_mut().extend_from_slice(text.bytes());
        }
        if let Some(text) = block.thinking {
            part.reasoning.get_or_insert_default().to_mut().extend_from_slice(text.bytes());
        }
        if let Some(name) = block.name {
            *part.tool_call_bytes.get_or_insert(0) += name.0 + block.input.map_or(0, |json| json.0);
        }
    }
    part.finish = message.stop_reason.map(finish);
    let model = message.model.map(Text::into_name);
    Saying { usage: message.usage.map(Usage::from), model, ..Saying::from(part) }
}

/// The reason in the words of the other APIs, where there is one that means the same.
fn finish(reason: Text<'_>) -> Cow<'_, str> {
    match reason.bytes() {
        b"end_turn" | b"stop_sequence" => Cow::Borrowed("stop"),
        b"max_tokens" => Cow::Borrowed("length"),
        b"tool_use" => Cow::Borrowed("tool_calls"),
        b"refusal" => Cow::Borrowed("content_filter"),
        _ => reason.into_name(),
    }
}
