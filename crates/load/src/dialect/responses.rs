//! OpenAI's Responses API, as vLLM, llama.cpp and transformers speak it too.
//!
//! Every event names its type in its data, and llama.cpp sends `response.created` more than once.
//! Log probabilities are no count of tokens here: vLLM sends those of the last token of a delta
//! alone.

use std::borrow::Cow;

use inferometer_model::Message;
use inferometer_model::Prompt;
use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::openai::error_text;
use super::wire::{Kind, Loose, Parts, Sized, Text, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, fields, pictures};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: Input<'a>,
    max_output_tokens: u32,
    stream: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Text(&'a str),
    Items(Vec<Value>),
}

/// Neither `ignore_eos` nor a least length: the API has no such fields. Instructions stay where
/// they stand in the conversation, as items of the role `system`.
pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let body = Body {
        model: recipe.model,
        input: input(recipe),
        max_output_tokens: recipe.output_tokens,
        stream: recipe.streaming,
    };
    fields::body(&body, recipe)
}

fn input<'a>(recipe: &BodyRecipe<'a>) -> Input<'a> {
    if let Prompt::Text(text) = &recipe.content.prompt
        && recipe.history.is_empty()
        && recipe.content.images.is_empty()
    {
        return Input::Text(text);
    }
    Input::Items(fields::messages(recipe).iter().map(|message| item(message)).collect())
}

/// A message as an item. What the model said before is output, even when it is sent back.
fn item(message: &Message) -> Value {
    let text = if message.role() == "assistant" {
        json!({"type": "output_text", "text": message.text(), "annotations": []})
    } else {
        json!({"type": "input_text", "text": message.text()})
    };
    let parts = message.0.get("content").and_then(Value::as_array).into_iter().flatten();
    let pictures = parts.filter(|part| part["type"] == pictures::RESPONSES_KIND).cloned();
    let content: Vec<Value> = std::iter::once(text).chain(pictures).collect();
    json!({"type": "message", "role": message.role(), "content": content})
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
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

#[derive(Deserialize)]
struct WireResponse<'a> {
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default)]
    output: Option<Vec<WireItem<'a>>>,
    #[serde(borrow, default)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Option<Text<'a>>,
}

/// One item of the output: a message, reasoning, or a call.
#[derive(Deserialize)]
struct WireItem<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<Parts<'a>>,
    #[serde(borrow, default)]
    summary: Option<Parts<'a>>,
    #[serde(default)]
    name: Option<Sized>,
    #[serde(default)]
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

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Loose,
    #[serde(default)]
    output_tokens: Loose,
    #[serde(default)]
    input_tokens_details: Option<WireInputDetails>,
}

#[derive(Deserialize)]
struct WireInputDetails {
    #[serde(default)]
    cached_tokens: Loose,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        let details = usage.input_tokens_details;
        Self {
            prompt_tokens: usage.input_tokens.number(),
            completion_tokens: usage.output_tokens.number(),
            cached_tokens: details.and_then(|details| details.cached_tokens.number()),
        }
    }
}

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let Some(kind) = document::<Kind<'_>>(json)?.kind else {
        return read_whole(json);
    };
    match kind.bytes() {
        b"response.output_text.delta" | b"response.refusal.delta" => {
            Ok(ChoicePart { content: delta(json)?, ..ChoicePart::default() }.into())
        }
        b"response.reasoning_text.delta" | b"response.reasoning_summary_text.delta" => {
            Ok(ChoicePart { reasoning: delta(json)?, ..ChoicePart::default() }.into())
        }
        b"response.function_call_arguments.delta"
        | b"response.mcp_call_arguments.delta"
        | b"response.custom_tool_call_input.delta" => {
            let bytes = delta(json)?.map(|text| text.len());
            Ok(ChoicePart { tool_call_bytes: bytes, ..ChoicePart::default() }.into())
        }
        b"response.output_item.added" => {
            let item = document::<AddedItem<'_>>(json)?.item;
            if !item.is_call() {
                return Ok(Saying::default());
            }
            let bytes = Some(item.call_bytes());
            Ok(ChoicePart { tool_call_bytes: bytes, ..ChoicePart::default() }.into())
        }
        b"response.created" => {
            let response = document::<AboutResponse<'_>>(json)?.response;
            let saying = Saying::from(ChoicePart { role: true, ..ChoicePart::default() });
            Ok(Saying { model: response.model.map(Text::into_name), ..saying })
        }
        b"response.completed" | b"response.incomplete" => {
            let response = document::<AboutResponse<'_>>(json)?.response;
            Ok(ended(response, ChoicePart::default()))
        }
        b"response.failed" | b"response.cancelled" => {
            let response = document::<AboutResponse<'_>>(json)?.response;
            Ok(Saying { error: Some(failure_text(&response)), ..Saying::default() })
        }
        b"error" => {
            Ok(Saying { error: Some(super::openai::error_body_text(json)), ..Saying::default() })
        }
        _ => Ok(Saying::default()),
    }
}

fn delta(json: &[u8]) -> Result<Option<Cow<'_, [u8]>>, SayingError> {
    Ok(document::<Delta<'_>>(json)?.delta.map(|parts| parts.0))
}

/// An answer that was not streamed is the response itself.
fn read_whole(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let response: WireResponse<'_> = document(json)?;
    let status = response.status.as_ref().map(Text::bytes);
    if response.error.is_some() || matches!(status, Some(b"failed" | b"cancelled")) {
        return Ok(Saying { error: Some(failure_text(&response)), ..Saying::default() });
    }
    let Some(output) = &response.output else { return Ok(Saying::default()) };
    let mut part = ChoicePart { role: true, ..ChoicePart::default() };
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
fn ended<'a>(response: WireResponse<'a>, mut part: ChoicePart<'a>) -> Saying<'a> {
    let reason = response.incomplete_details.and_then(|details| details.reason);
    let calls = response.output.iter().flatten().any(WireItem::is_call);
    part.finish = match (reason.as_ref().map(Text::bytes), response.status) {
        (Some(b"max_output_tokens"), _) => Some(Cow::Borrowed("length")),
        (Some(_), _) => reason.map(Text::into_name),
        (None, Some(status)) if status.bytes() == b"completed" => {
            Some(Cow::Borrowed(if calls { "tool_calls" } else { "stop" }))
        }
        (None, Some(status)) if status.bytes() == b"incomplete" => {
            Some(Cow::Borrowed(super::UNSTATED))
        }
        // Still at work: a server that answers before the end.
        (None, _) => None,
    };
    Saying {
        usage: response.usage.map(Usage::from),
        model: response.model.map(Text::into_name),
        ..Saying::from(part)
    }
}

fn failure_text(response: &WireResponse<'_>) -> String {
    match (&response.error, &response.status) {
        (Some(error), _) => error_text(error),
        (None, Some(status)) => String::from_utf8_lossy(status.bytes()).into_owned(),
        (None, None) => "failed".to_owned(),
    }
}
