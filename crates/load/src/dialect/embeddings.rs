//! OpenAI's embeddings: a whole answer of vectors. It has no tokens, so its bytes are its output.

use std::borrow::Cow;

use inferometer_model::Prompt;
use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::openai::error_text;
use super::wire::{Loose, Text, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, fields};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: Input<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    One(&'a str),
    Many(Vec<String>),
}

/// A text is one input; messages are a batch, one input each.
pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let input = match &recipe.content.prompt {
        Prompt::Text(text) if recipe.history.is_empty() => Input::One(text),
        Prompt::Text(_) | Prompt::Messages(_) => Input::Many(fields::texts(recipe)),
    };
    fields::body(&Body { model: recipe.model, input }, recipe)
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Vec<Item<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Item<'a> {
    /// Numbers, or Base64 where that was asked for.
    #[serde(borrow, default)]
    embedding: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    #[serde(default)]
    prompt_tokens: Loose,
    #[serde(default)]
    total_tokens: Loose,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        let prompt_tokens = usage.prompt_tokens.number().or_else(|| usage.total_tokens.number());
        Self { prompt_tokens, completion_tokens: None, cached_tokens: None }
    }
}

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let document: Document<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Saying { error: Some(error_text(&error)), ..Saying::default() });
    }
    let mut vectors = document.data.iter().map(|item| item.embedding.map(RawValue::get));
    let is_whole = !document.data.is_empty()
        && vectors.all(|vector| vector.is_some_and(|json| !matches!(json, "[]" | "\"\"" | "null")));
    let saying = if is_whole { whole_answer(json) } else { Saying::default() };
    let model = document.model.map(Text::into_name);
    Ok(Saying { usage: document.usage.map(Usage::from), model, ..saying })
}

/// An answer without tokens: all of it is output, and it ends with itself.
pub(super) fn whole_answer(json: &[u8]) -> Saying<'_> {
    let part = ChoicePart {
        content: Some(Cow::Borrowed(json)),
        finish: Some(Cow::Borrowed("stop")),
        ..ChoicePart::default()
    };
    part.into()
}
