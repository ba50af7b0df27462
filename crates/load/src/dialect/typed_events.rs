//! The APIs whose stream events name their type: OpenAI's Responses, as vLLM, llama.cpp and
//! transformers also serve it, and Anthropic's Messages, as vLLM and llama.cpp also serve it.
//!
//! Responses: llama.cpp sends `response.created` more than once. Log probabilities are no count of
//! tokens: vLLM sends those of the last token of a delta alone.
//!
//! Messages: input tokens are counted in three fields that exclude each other: `input_tokens` leaves
//! out what was read from the cache and what was written to it. A prompt's tokens are their sum, as
//! in the other APIs; what was read from the cache is part of them.

use std::borrow::Cow;

use inferometer_model::endpoint::Api;
use inferometer_model::record::Usage;
use inferometer_model::{Message, Prompt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{self, Field};
use super::json::{CachedTokens, Kind, Loose, Parts, Sized, Text, document};
use super::openai::{error_body_text, error_text};
use super::{BodyRecipe, ChoiceDelta, Chunk, ChunkError, Dialect, UNSTATED};

pub(super) static DIALECTS: &[Dialect] = &[
    Dialect {
        add_images: |message, images| body::add_parts(message, images, responses_image),
        ..Dialect::new(Api::Responses, responses_body, read_responses)
    },
    Dialect {
        add_images: |message, images| body::add_parts(message, images, messages_image),
        needs_end_event: true,
        anthropic_headers: true,
        ..Dialect::new(Api::Messages, messages_body, read_messages)
    },
];

/// The API has neither `ignore_eos` nor a minimum length. Instructions stay where they are in the
/// conversation, as items of the role `system`.
fn responses_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let input = match &recipe.content.prompt {
        Prompt::Text(text) if recipe.history.is_empty() && recipe.content.images.is_empty() => {
            Field::text(text)
        }
        Prompt::Text(_) | Prompt::Messages(_) => {
            Field::Values(body::messages(recipe).iter().map(|message| item(message)).collect())
        }
    };
    let members = [
        ("model", Field::text(recipe.model)),
        ("input", input),
        ("max_output_tokens", Field::Count(recipe.output_tokens)),
        ("stream", Field::Flag(recipe.streaming)),
    ];
    body::write(recipe, members)
}

const RESPONSES_IMAGE: &str = "input_image";

fn responses_image(url: &str) -> Value {
    json!({"type": RESPONSES_IMAGE, "image_url": url})
}

/// A message as an item. What the model generated before is output, even when it is sent back.
fn item(message: &Message) -> Value {
    let text = if message.role() == "assistant" {
        json!({"type": "output_text", "text": message.text(), "annotations": []})
    } else {
        json!({"type": "input_text", "text": message.text()})
    };
    let parts = message.0.get("content").and_then(Value::as_array).into_iter().flatten();
    let images = parts.filter(|part| part["type"] == RESPONSES_IMAGE).cloned();
    let content: Vec<Value> = std::iter::once(text).chain(images).collect();
    json!({"type": "message", "role": message.role(), "content": content})
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Delta<'a> {
    delta: Option<Parts<'a>>,
}

#[derive(Deserialize)]
struct AddedItem<'a> {
    #[serde(borrow)]
    item: WireItem<'a>,
}

#[derive(Deserialize)]
struct AboutResponse<'a> {
    #[serde(borrow)]
    response: WireResponse<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireResponse<'a> {
    model: Option<Text<'a>>,
    status: Option<Text<'a>>,
    output: Option<Vec<WireItem<'a>>>,
    incomplete_details: Option<Incomplete<'a>>,
    usage: Option<ResponsesUsage>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Incomplete<'a> {
    reason: Option<Text<'a>>,
}

/// One item of the output: a message, reasoning, or a call.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireItem<'a> {
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    content: Option<Parts<'a>>,
    summary: Option<Parts<'a>>,
    name: Option<Sized>,
    arguments: Option<Sized>,
}

impl WireItem<'_> {
    fn is_call(&self) -> bool {
        self.kind.as_ref().is_some_and(|kind| kind.bytes().ends_with(b"_call"))
    }

    /// Bytes of what is called and with what.
    fn call_bytes(&self) -> usize {
        let bytes = |text: &Option<Sized>| text.as_ref().map_or(0, |text| text.0);
        bytes(&self.name) + bytes(&self.arguments)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesUsage {
    input_tokens: Loose,
    output_tokens: Loose,
    input_tokens_details: Option<CachedTokens>,
}

impl From<ResponsesUsage> for Usage {
    fn from(usage: ResponsesUsage) -> Self {
        let details = usage.input_tokens_details;
        Self {
            prompt_tokens: usage.input_tokens.number(),
            completion_tokens: usage.output_tokens.number(),
            cached_tokens: details.and_then(|details| details.cached_tokens.number()),
        }
    }
}

fn read_responses(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let Some(kind) = document::<Kind<'_>>(json)?.kind else {
        return read_whole(json);
    };
    match kind.bytes() {
        b"response.output_text.delta" | b"response.refusal.delta" => {
            Ok(ChoiceDelta { content: delta(json)?, ..ChoiceDelta::default() }.into())
        }
        b"response.reasoning_text.delta" | b"response.reasoning_summary_text.delta" => {
            Ok(ChoiceDelta { reasoning: delta(json)?, ..ChoiceDelta::default() }.into())
        }
        b"response.function_call_arguments.delta"
        | b"response.mcp_call_arguments.delta"
        | b"response.custom_tool_call_input.delta" => {
            let bytes = delta(json)?.map(|text| text.len());
            Ok(ChoiceDelta { tool_call_bytes: bytes, ..ChoiceDelta::default() }.into())
        }
        b"response.output_item.added" => {
            let item = document::<AddedItem<'_>>(json)?.item;
            if !item.is_call() {
                return Ok(Chunk::default());
            }
            let bytes = Some(item.call_bytes());
            Ok(ChoiceDelta { tool_call_bytes: bytes, ..ChoiceDelta::default() }.into())
        }
        b"response.created" => {
            let response = document::<AboutResponse<'_>>(json)?.response;
            let chunk = Chunk::from(ChoiceDelta { role: true, ..ChoiceDelta::default() });
            Ok(Chunk { model: response.model.map(Text::into_name), ..chunk })
        }
        b"response.completed" | b"response.incomplete" => {
            let response = document::<AboutResponse<'_>>(json)?.response;
            Ok(ended(response, ChoiceDelta::default()))
        }
        b"response.failed" | b"response.cancelled" => {
            let response = document::<AboutResponse<'_>>(json)?.response;
            Ok(Chunk::failed(failure_text(&response)))
        }
        b"error" => Ok(Chunk::failed(error_body_text(json))),
        _ => Ok(Chunk::default()),
    }
}

fn delta(json: &[u8]) -> Result<Option<Cow<'_, [u8]>>, ChunkError> {
    Ok(document::<Delta<'_>>(json)?.delta.map(|parts| parts.0))
}

/// An answer that was not streamed is the response itself.
fn read_whole(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let response: WireResponse<'_> = document(json)?;
    let status = response.status.as_ref().map(Text::bytes);
    if response.error.is_some() || matches!(status, Some(b"failed" | b"cancelled")) {
        return Ok(Chunk::failed(failure_text(&response)));
    }
    let Some(output) = &response.output else { return Ok(Chunk::default()) };
    let mut part = ChoiceDelta { role: true, ..ChoiceDelta::default() };
    for item in output {
        let text = |parts: &Option<Parts<'_>>| parts.as_ref().map_or(Vec::new(), |p| p.0.to_vec());
        match item.kind.as_ref().map(Text::bytes) {
            Some(b"reasoning") => {
                let reasoning = part.reasoning.get_or_insert_default().to_mut();
                reasoning.extend(text(&item.summary));
                reasoning.extend(text(&item.content));
            }
            Some(b"message") => {
                part.content.get_or_insert_default().to_mut().extend(text(&item.content));
            }
            _ if item.is_call() => {
                *part.tool_call_bytes.get_or_insert(0) += item.call_bytes();
            }
            _ => {}
        }
    }
    Ok(ended(response, part))
}

/// The end of a response. vLLM calls an incomplete one completed, so that its status counts and
/// not the name of the event.
fn ended<'a>(response: WireResponse<'a>, mut part: ChoiceDelta<'a>) -> Chunk<'a> {
    let reason = response.incomplete_details.and_then(|details| details.reason);
    let calls = response.output.iter().flatten().any(WireItem::is_call);
    part.finish = match (reason.as_ref().map(Text::bytes), response.status) {
        (Some(b"max_output_tokens"), _) => Some(Cow::Borrowed("length")),
        (Some(_), _) => reason.map(Text::into_name),
        (None, Some(status)) if status.bytes() == b"completed" => {
            Some(Cow::Borrowed(if calls { "tool_calls" } else { "stop" }))
        }
        (None, Some(status)) if status.bytes() == b"incomplete" => Some(Cow::Borrowed(UNSTATED)),
        // Still at work: a server that answers before the end.
        (None, _) => None,
    };
    Chunk {
        usage: response.usage.map(Usage::from),
        model: response.model.map(Text::into_name),
        ..Chunk::from(part)
    }
}

fn failure_text(response: &WireResponse<'_>) -> String {
    match (&response.error, &response.status) {
        (Some(error), _) => error_text(error),
        (None, Some(status)) => String::from_utf8_lossy(status.bytes()).into_owned(),
        (None, None) => "failed".to_owned(),
    }
}

/// Instructions are apart from the conversation. The API has neither `ignore_eos` nor a minimum
/// length.
fn messages_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let (instructions, messages): (Vec<_>, Vec<_>) = body::messages(recipe)
        .into_iter()
        .partition(|message| matches!(message.role(), "system" | "developer"));
    let instructions: Vec<String> = instructions.iter().map(|message| message.text()).collect();
    let system = if instructions.is_empty() {
        Field::Absent
    } else {
        Field::Text(Cow::Owned(instructions.join("\n")))
    };
    let members = [
        ("model", Field::text(recipe.model)),
        ("system", system),
        ("messages", Field::Messages(messages)),
        ("max_tokens", Field::Count(recipe.output_tokens)),
        ("stream", Field::Flag(recipe.streaming)),
    ];
    body::write(recipe, members)
}

fn messages_image(url: &str) -> Value {
    let source = match body::embedded(url) {
        Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
        None => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow)]
    message: WireMessage<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireMessage<'a> {
    model: Option<Text<'a>>,
    content: Vec<WireBlock<'a>>,
    stop_reason: Option<Text<'a>>,
    usage: Option<MessagesUsage>,
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
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireBlock<'a> {
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    text: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    partial_json: Option<Sized>,
    name: Option<Sized>,
    input: Option<Sized>,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow)]
    delta: StopDelta<'a>,
    #[serde(default)]
    usage: Option<MessagesUsage>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct StopDelta<'a> {
    stop_reason: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the API calls them so")]
#[serde(default)]
struct MessagesUsage {
    input_tokens: Loose,
    output_tokens: Loose,
    cache_read_input_tokens: Loose,
    cache_creation_input_tokens: Loose,
}

impl From<MessagesUsage> for Usage {
    fn from(usage: MessagesUsage) -> Self {
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

fn read_messages(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let Some(kind) = document::<Kind<'_>>(json)?.kind else {
        return Ok(Chunk::default());
    };
    match kind.bytes() {
        b"message_start" => {
            let message = document::<MessageStart<'_>>(json)?.message;
            // Its output count is not final yet.
            let usage = message.usage.map(|u| Usage { completion_tokens: None, ..Usage::from(u) });
            let part = ChoiceDelta { role: true, ..ChoiceDelta::default() };
            let model = message.model.map(Text::into_name);
            Ok(Chunk { usage, model, ..Chunk::from(part) })
        }
        b"content_block_start" => Ok(begun(document::<BlockStart<'_>>(json)?.content_block)),
        b"content_block_delta" => Ok(grown(document::<BlockDelta<'_>>(json)?.delta)),
        b"message_delta" => {
            let MessageDelta { delta, usage } = document(json)?;
            let usage = usage.map(Usage::from);
            // Usage without a reason is a sum on the way, of text that has come already.
            let Some(reason) = delta.stop_reason else {
                return Ok(Chunk { usage, ..Chunk::default() });
            };
            let part =
                ChoiceDelta { finish: Some(messages_finish(reason)), ..ChoiceDelta::default() };
            Ok(Chunk { usage, ..Chunk::from(part) })
        }
        b"message_stop" => Ok(Chunk { ends: true, ..Chunk::default() }),
        b"message" => Ok(whole(document(json)?)),
        b"error" => Ok(Chunk::failed(error_body_text(json))),
        // Pings show that the server lives; what we do not know may be added any day.
        _ => Ok(Chunk::default()),
    }
}

/// A block begins, mostly empty; a call of a tool begins with the tool's name.
fn begun(block: WireBlock<'_>) -> Chunk<'_> {
    if let (Some(b"tool_use"), Some(name)) = (block.kind.as_ref().map(Text::bytes), &block.name) {
        return ChoiceDelta { tool_call_bytes: Some(name.0), ..ChoiceDelta::default() }.into();
    }
    let says_something = [&block.text, &block.thinking]
        .into_iter()
        .any(|text| text.as_ref().is_some_and(|text| !text.bytes().is_empty()));
    if says_something { grown(block) } else { Chunk::default() }
}

fn grown(delta: WireBlock<'_>) -> Chunk<'_> {
    let part = ChoiceDelta {
        content: delta.text.map(Text::into_bytes),
        reasoning: delta.thinking.map(Text::into_bytes),
        tool_call_bytes: delta.partial_json.map(|json| json.0),
        ..ChoiceDelta::default()
    };
    let says_nothing = part == ChoiceDelta::default();
    // Signatures and citations are not generated text.
    if says_nothing { Chunk::default() } else { part.into() }
}

fn whole(message: WireMessage<'_>) -> Chunk<'_> {
    let mut part = ChoiceDelta { role: true, ..ChoiceDelta::default() };
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
    part.finish = message.stop_reason.map(messages_finish);
    let model = message.model.map(Text::into_name);
    Chunk { usage: message.usage.map(Usage::from), model, ..Chunk::from(part) }
}

/// The reason in the words of the other APIs, where there is one that means the same.
fn messages_finish(reason: Text<'_>) -> Cow<'_, str> {
    match reason.bytes() {
        b"end_turn" | b"stop_sequence" => Cow::Borrowed("stop"),
        b"max_tokens" => Cow::Borrowed("length"),
        b"tool_use" => Cow::Borrowed("tool_calls"),
        b"refusal" => Cow::Borrowed("content_filter"),
        _ => reason.into_name(),
    }
}
