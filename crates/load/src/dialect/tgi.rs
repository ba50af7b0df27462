//! Hugging Face's text-generation-inference: `/generate_stream`, and `/generate` for whole answers.
//!
//! A stream has one token per event, and the last one repeats the whole text.

use std::borrow::Cow;

use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::openai::error_text;
use super::wire::{Loose, Text, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, UNSTATED, fields};

#[derive(Serialize)]
struct Body<'a> {
    inputs: Cow<'a, str>,
    parameters: Box<RawValue>,
}

#[derive(Serialize)]
struct Parameters {
    max_new_tokens: u32,
    /// Without it a whole answer does not say why it ended, nor how long it is.
    details: bool,
}

/// All fields besides the prompt go into `parameters`: the API has no others. It has neither
/// `ignore_eos` nor a least length, and the path says whether to stream.
pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let parameters = Parameters { max_new_tokens: recipe.output_tokens, details: true };
    let body = Body {
        inputs: fields::prompt_text(recipe),
        parameters: fields::object_with(&parameters, recipe, "parameters", |_| true),
    };
    fields::body_with(&body, recipe, |_| false)
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    token: Option<Token<'a>>,
    #[serde(borrow, default)]
    generated_text: Option<Text<'a>>,
    #[serde(borrow, default)]
    details: Option<Details<'a>>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(default)]
    generated_tokens: Loose,
    /// Tokens of the prompt, by newer servers.
    #[serde(default)]
    input_length: Loose,
    /// The tokens of the prompt themselves, where they were asked for; empty otherwise.
    #[serde(default)]
    prefill: Loose,
}

impl From<&Details<'_>> for Usage {
    fn from(details: &Details<'_>) -> Self {
        let listed = details.prefill.list_length().filter(|length| 0 < *length).map(u64::from);
        Self {
            prompt_tokens: details.input_length.number().or(listed),
            completion_tokens: details.generated_tokens.number(),
            cached_tokens: None,
        }
    }
}

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let document: Document<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Saying { error: Some(error_text(&error)), ..Saying::default() });
    }
    let Document { token, generated_text, details, .. } = document;
    if token.is_none() && generated_text.is_none() {
        return Ok(Saying::default());
    }
    let usage = details.as_ref().map(Usage::from);
    let mut part = ChoicePart {
        finish: generated_text.is_some().then(|| finish(details)),
        ..ChoicePart::default()
    };
    match token {
        Some(token) => {
            // A special token is a token, but its text is no text of the answer.
            let text = token.text.filter(|_| !token.special);
            part.content = text.map(Text::into_bytes);
            part.marked_tokens = Some(1);
        }
        None => part.content = generated_text.map(Text::into_bytes),
    }
    Ok(Saying { usage, ..Saying::from(part) })
}

fn finish(details: Option<Details<'_>>) -> Cow<'_, str> {
    match details.and_then(|details| details.finish_reason) {
        Some(reason) if matches!(reason.bytes(), b"eos_token" | b"stop_sequence") => {
            Cow::Borrowed("stop")
        }
        Some(reason) => reason.into_name(),
        None => Cow::Borrowed(UNSTATED),
    }
}
