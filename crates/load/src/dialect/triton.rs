//! Triton's generate extension, in front of TensorRT-LLM or vLLM.
//!
//! It has no mark of the end and mostly no finish reason: an answer is whole when its body ended
//! cleanly after some output. vLLM's backend tells the reason and the tokens of each event where
//! `return_finish_reason` and `return_num_output_tokens` ask for them.

use std::borrow::Cow;

use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::openai::error_text;
use super::wire::{Loose, Text, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, fields};

#[derive(Serialize)]
struct Body<'a> {
    text_input: Cow<'a, str>,
    max_tokens: u32,
    stream: bool,
}

/// The model is named in the path. What else a model takes is its own affair: give it as fields.
pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let body = Body {
        text_input: fields::prompt_text(recipe),
        max_tokens: recipe.output_tokens,
        stream: recipe.streaming,
    };
    fields::body(&body, recipe)
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    model_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    text_output: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_output: Option<Text<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(default)]
    num_input_tokens: Loose,
    #[serde(default)]
    num_output_tokens: Loose,
    #[serde(default)]
    error: Option<Value>,
}

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let document: Document<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Saying { error: Some(error_text(&error)), ..Saying::default() });
    }
    let Some(text) = document.text_output else { return Ok(Saying::default()) };
    // Until the end the backend writes Python's word for nothing.
    let finish = document.finish_reason.filter(|reason| reason.bytes() != b"None");
    let tokens = document.num_output_tokens.number();
    let part = ChoicePart {
        content: Some(text.into_bytes()),
        reasoning: document.reasoning_output.map(Text::into_bytes),
        finish: finish.map(Text::into_name),
        marked_tokens: tokens.and_then(|tokens| u32::try_from(tokens).ok()),
        ..ChoicePart::default()
    };
    let usage = document.num_input_tokens.number().map(|count| Usage {
        prompt_tokens: Some(count),
        completion_tokens: None,
        cached_tokens: None,
    });
    let model = document.model_name.map(Text::into_name);
    Ok(Saying { usage, model, ..Saying::from(part) })
}
