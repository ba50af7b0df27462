//! Ollama's own `/api/chat` and `/api/generate`: a stream is one JSON document per line.

use std::borrow::Cow;

use inferometer_model::Message;
use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::openai::error_text;
use super::wire::{Loose, Text, WireToolCall, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, UNSTATED, fields, pictures};

#[derive(Serialize)]
struct ChatBody<'a> {
    model: &'a str,
    messages: Vec<Cow<'a, Message>>,
    stream: bool,
    options: Box<RawValue>,
}

#[derive(Serialize)]
struct GenerateBody<'a> {
    model: &'a str,
    prompt: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Value>,
    stream: bool,
    options: Box<RawValue>,
}

#[derive(Serialize)]
struct Options {
    num_predict: u32,
}

/// Fields of the request itself. All others go into `options`; neither place knows `ignore_eos`
/// or a least length.
const OWN_FIELDS: [&str; 13] = [
    "context",
    "format",
    "keep_alive",
    "logprobs",
    "raw",
    "shift",
    "suffix",
    "system",
    "template",
    "think",
    "tools",
    "top_logprobs",
    "truncate",
];

pub(super) fn chat_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let body = ChatBody {
        model: recipe.model,
        messages: messages(recipe),
        stream: recipe.streaming,
        options: options(recipe),
    };
    fields::body_with(&body, recipe, |name| OWN_FIELDS.contains(&name))
}

pub(super) fn generate_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let body = GenerateBody {
        model: recipe.model,
        prompt: fields::prompt_text(recipe),
        images: pictures(recipe),
        stream: recipe.streaming,
        options: options(recipe),
    };
    fields::body_with(&body, recipe, |name| OWN_FIELDS.contains(&name))
}

fn options(recipe: &BodyRecipe<'_>) -> Box<RawValue> {
    let options = Options { num_predict: recipe.output_tokens };
    fields::object_with(&options, recipe, "options", |name| !OWN_FIELDS.contains(&name))
}

/// A message's content is plain text here; its pictures stand beside it.
fn messages<'a>(recipe: &BodyRecipe<'a>) -> Vec<Cow<'a, Message>> {
    let mut messages = fields::messages(recipe);
    for message in &mut messages {
        if message.0.get("content").is_some_and(Value::is_array) {
            let text = message.text();
            message.to_mut().0.insert("content".to_owned(), text.into());
        }
    }
    messages
}

/// All that were shown so far: one prompt is the whole conversation.
fn pictures(recipe: &BodyRecipe<'_>) -> Vec<Value> {
    let messages = fields::messages(recipe);
    messages.iter().flat_map(|message| pictures::beside(message)).cloned().collect()
}

/// A chat's line has a `message`, the other one's a `response`.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<WireMessage<'a>>,
    #[serde(borrow, default)]
    response: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow, default)]
    done_reason: Option<Text<'a>>,
    #[serde(default)]
    prompt_eval_count: Loose,
    #[serde(default)]
    eval_count: Loose,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(default)]
    tool_calls: Option<Vec<WireToolCall>>,
}

/// Every line names the role, so that it is no news and not noted.
pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let document: Document<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Saying { error: Some(error_text(&error)), ..Saying::default() });
    }
    let usage = Usage {
        prompt_tokens: document.prompt_eval_count.number(),
        completion_tokens: document.eval_count.number(),
        cached_tokens: None,
    };
    let mut part = ChoicePart {
        content: document.response.map(Text::into_bytes),
        reasoning: document.thinking.map(Text::into_bytes),
        ..ChoicePart::default()
    };
    if let Some(message) = document.message {
        part.content = message.content.map(Text::into_bytes);
        part.reasoning = message.thinking.map(Text::into_bytes);
        let calls = message.tool_calls.filter(|calls| !calls.is_empty());
        part.tool_call_bytes = calls.map(|calls| calls.iter().map(WireToolCall::bytes).sum());
    }
    if document.done {
        let stated = document.done_reason.map(Text::into_name);
        part.finish = stated.or(Some(Cow::Borrowed(UNSTATED)));
    }
    if part == ChoicePart::default() {
        return Ok(Saying::default());
    }
    let is_counted = usage.prompt_tokens.is_some() || usage.completion_tokens.is_some();
    let model = document.model.map(Text::into_name);
    Ok(Saying { usage: is_counted.then_some(usage), model, ..Saying::from(part) })
}
