//! SGLang's own `/generate`.
//!
//! Every event of a stream carries the whole text so far, unless the server was started with
//! `--incremental-streaming-output`; a request cannot ask for either. [`GrowingAnswer`] takes what
//! is new of both.

use std::borrow::Cow;

use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::openai::error_text;
use super::wire::{Loose, Text, document};
use super::{BodyRecipe, ChoicePart, Saying, SayingError, fields};

#[derive(Serialize)]
struct Body<'a> {
    text: Cow<'a, str>,
    sampling_params: Box<RawValue>,
    stream: bool,
    /// The server has one model, and an adapter a field of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    lora_path: Option<&'a str>,
}

#[derive(Serialize)]
struct SamplingParams {
    max_new_tokens: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignore_eos: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_new_tokens: Option<u32>,
}

/// Fields of the request itself. All others go into `sampling_params`.
const OWN_FIELDS: [&str; 13] = [
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "data_parallel_rank",
    "image_data",
    "logprob_start_len",
    "lora_path",
    "priority",
    "return_hidden_states",
    "return_logprob",
    "return_text_in_logprobs",
    "session_params",
    "top_logprobs_num",
];

pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let params = SamplingParams {
        max_new_tokens: recipe.output_tokens,
        ignore_eos: recipe.pinned.ignore_eos,
        min_new_tokens: recipe.pinned.min_tokens.then_some(recipe.output_tokens),
    };
    let body = Body {
        text: fields::prompt_text(recipe),
        sampling_params: fields::object_with(&params, recipe, "sampling_params", |name| {
            !OWN_FIELDS.contains(&name)
        }),
        stream: recipe.streaming,
        lora_path: recipe.content.model.as_deref(),
    };
    fields::body_with(&body, recipe, |name| OWN_FIELDS.contains(&name))
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(default)]
    index: Loose,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(default)]
    output_ids: Loose,
    #[serde(borrow, default)]
    meta_info: Option<MetaInfo<'a>>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct MetaInfo<'a> {
    #[serde(borrow, default)]
    finish_reason: Option<FinishReason<'a>>,
    #[serde(default)]
    prompt_tokens: Loose,
    #[serde(default)]
    completion_tokens: Loose,
    #[serde(default)]
    cached_tokens: Loose,
}

#[derive(Deserialize)]
struct FinishReason<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(default)]
    message: Option<Value>,
}

/// A whole answer.
pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    document(json).map(|document| said(document).saying)
}

/// What an event says, and how many token ids it listed.
struct Said<'a> {
    saying: Saying<'a>,
    listed_tokens: Option<u32>,
}

fn said(document: Document<'_>) -> Said<'_> {
    let listed_tokens = document.output_ids.list_length();
    let failed = |error| {
        let saying = Saying { error: Some(error), ..Saying::default() };
        Said { saying, listed_tokens: None }
    };
    if let Some(error) = document.error {
        return failed(error_text(&error));
    }
    let Some(meta) = document.meta_info else {
        return Said { saying: Saying::default(), listed_tokens: None };
    };
    if let Some(FinishReason { kind: Some(kind), message }) = &meta.finish_reason
        && kind.bytes() == b"abort"
    {
        return failed(message.as_ref().map_or_else(|| "aborted".to_owned(), error_text));
    }
    let index = document.index.number().and_then(|index| u16::try_from(index).ok());
    let part = ChoicePart {
        index: index.unwrap_or(0),
        content: document.text.map(Text::into_bytes),
        finish: meta.finish_reason.and_then(|reason| reason.kind).map(Text::into_name),
        ..ChoicePart::default()
    };
    let usage = Usage {
        prompt_tokens: meta.prompt_tokens.number(),
        completion_tokens: meta.completion_tokens.number(),
        cached_tokens: meta.cached_tokens.number(),
    };
    Said { saying: Saying { usage: Some(usage), ..Saying::from(part) }, listed_tokens }
}

/// What came before in a stream, so that only what is new is taken of each event.
#[derive(Debug, Default)]
pub(crate) struct GrowingAnswer {
    choices: Vec<GrowingText>,
}

#[derive(Debug, Default)]
struct GrowingText {
    index: u16,
    text: Vec<u8>,
    tokens: u64,
    /// An event was no continuation of what came before: the server sends pieces.
    in_pieces: bool,
}

impl GrowingAnswer {
    pub(crate) fn read<'a>(&mut self, json: &'a [u8]) -> Result<Saying<'a>, SayingError> {
        let Said { mut saying, listed_tokens } = said(document(json)?);
        let tokens = saying.usage.and_then(|usage| usage.completion_tokens);
        if let [part] = saying.choices.as_mut_slice() {
            let choice = self.choice(part.index);
            part.content = part.content.take().map(|text| choice.news(text, listed_tokens, tokens));
        }
        Ok(saying)
    }

    fn choice(&mut self, index: u16) -> &mut GrowingText {
        let known = self.choices.iter().position(|choice| choice.index == index);
        let position = known.unwrap_or_else(|| {
            self.choices.push(GrowingText { index, ..GrowingText::default() });
            self.choices.len() - 1
        });
        &mut self.choices[position]
    }
}

impl GrowingText {
    /// Which part of an event's text is new.
    ///
    /// The token ids tell best: they are as many as all tokens so far, or only as many as are new.
    /// Without them a text that goes on where the last one ended is taken for the whole so far,
    /// which a stream of equal pieces may be as well until it first differs.
    fn news<'a>(
        &mut self,
        text: Cow<'a, [u8]>,
        listed: Option<u32>,
        tokens: Option<u64>,
    ) -> Cow<'a, [u8]> {
        let grown = tokens.map(|tokens| tokens.saturating_sub(self.tokens));
        let is_piece = match (listed.map(u64::from), tokens, grown) {
            (Some(listed), Some(all), Some(new)) if 0 < listed => {
                listed.abs_diff(new) < listed.abs_diff(all)
            }
            // At its end a text may lose a stop word that it had before.
            _ => {
                self.in_pieces |= !text.starts_with(&self.text) && !self.text.starts_with(&text);
                self.in_pieces
            }
        };
        self.tokens = tokens.unwrap_or(self.tokens);
        if is_piece {
            return text;
        }
        let known = self.text.len().min(text.len());
        self.text.extend_from_slice(&text[known..]);
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[known..]),
            Cow::Owned(mut text) => Cow::Owned(text.split_off(known)),
        }
    }
}
