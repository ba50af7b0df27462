//! llama.cpp's own `/completion`.
//!
//! Every event says how many tokens were generated so far. Its list of token ids holds the last
//! one alone, also where characters were held back and several come at once: it counts only where
//! the number is missing.

use std::borrow::Cow;

use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::openai::error_text;
use super::wire::{Loose, Text, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, UNSTATED, fields};

#[derive(Serialize)]
struct Body<'a> {
    prompt: Cow<'a, str>,
    n_predict: u32,
    stream: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignore_eos: bool,
}

/// The server has one model, and no least length.
pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let body = Body {
        prompt: fields::prompt_text(recipe),
        n_predict: recipe.output_tokens,
        stream: recipe.streaming,
        ignore_eos: recipe.pinned.ignore_eos,
    };
    fields::body(&body, recipe)
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(default)]
    index: Loose,
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(default)]
    tokens: Loose,
    #[serde(default)]
    stop: bool,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_type: Option<Text<'a>>,
    #[serde(default)]
    tokens_predicted: Loose,
    #[serde(default)]
    tokens_evaluated: Loose,
    #[serde(default)]
    timings: Option<Timings>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Timings {
    #[serde(default)]
    cache_n: Loose,
}

impl Document<'_> {
    fn usage(&self) -> Option<Usage> {
        let usage = Usage {
            prompt_tokens: self.tokens_evaluated.number(),
            completion_tokens: self.tokens_predicted.number(),
            cached_tokens: self.timings.as_ref().and_then(|timings| timings.cache_n.number()),
        };
        (usage.prompt_tokens.is_some() || usage.completion_tokens.is_some()).then_some(usage)
    }
}

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let document: Document<'_> = document(json)?;
    if let Some(error) = &document.error {
        return Ok(Saying { error: Some(error_text(error)), ..Saying::default() });
    }
    let usage = document.usage();
    let finish = document.stop.then(|| finish(&document));
    let is_counted = usage.is_some_and(|usage| usage.completion_tokens.is_some());
    let Some(content) = document.content else { return Ok(Saying::default()) };
    let index = document.index.number().and_then(|index| u16::try_from(index).ok());
    let part = ChoicePart {
        index: index.unwrap_or(0),
        content: Some(content.into_bytes()),
        finish,
        marked_tokens: document.tokens.list_length().filter(|n| 0 < *n && !is_counted),
        ..ChoicePart::default()
    };
    Ok(Saying { usage, model: document.model.map(Text::into_name), ..Saying::from(part) })
}

fn finish(document: &Document<'_>) -> Cow<'static, str> {
    let stated = document.stop_type.as_ref().map(Text::bytes);
    match stated {
        Some(b"limit") => Cow::Borrowed("length"),
        Some(b"eos" | b"word") => Cow::Borrowed("stop"),
        Some(other) if other != b"none" => Cow::Owned(String::from_utf8_lossy(other).into_owned()),
        _ => Cow::Borrowed(UNSTATED),
    }
}
