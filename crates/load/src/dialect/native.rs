//! The APIs of one server each: text-generation-inference, SGLang, llama.cpp, Ollama and Triton; and
//! the APIs without generated tokens: OpenAI's embeddings, a whole answer of vectors, and reranking,
//! as Jina defined it and vLLM, SGLang and llama.cpp serve it: a query, documents, and a whole answer
//! of scores.

use std::borrow::Cow;

use inferometer_model::endpoint::Api;
use inferometer_model::record::Usage;
use inferometer_model::{Message, Prompt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::body::{self, Field, embedded};
use super::json::{Loose, Text, WireToolCall, document};
use super::openai::error_text;
use super::{BodyRecipe, ChoiceDelta, Chunk, ChunkError, Dialect, UNSTATED};

pub(super) static DIALECTS: &[Dialect] = &[
    Dialect::new(Api::TgiGenerate, tgi_body, read_tgi),
    Dialect { repeats_text: true, ..Dialect::new(Api::SglangGenerate, sglang_body, read_sglang) },
    Dialect::new(Api::LlamaCompletion, llama_body, read_llama),
    Dialect {
        add_images: add_ollama_images,
        ..Dialect::new(Api::OllamaChat, ollama_chat_body, read_ollama)
    },
    Dialect {
        add_images: add_ollama_images,
        ..Dialect::new(Api::OllamaGenerate, ollama_generate_body, read_ollama)
    },
    Dialect {
        needs_finish_reason: false,
        ..Dialect::new(Api::TritonGenerate, triton_body, read_triton)
    },
    Dialect::new(Api::Embeddings, embeddings_body, read_embeddings),
    Dialect::new(Api::Rerank, rerank_body, read_rerank),
    Dialect::new(Api::Pooling, embeddings_body, read_embeddings),
    Dialect::new(Api::Classify, embeddings_body, read_embeddings),
];

// Text-generation-inference: a stream has one token per event, and the last one repeats the whole
// text.

/// All fields besides the prompt go into `parameters`: the API has no others. It has neither
/// `ignore_eos` nor a minimum length, and the path returns whether to stream.
fn tgi_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    // Without `details` a whole answer reports neither why it ended nor how long it is.
    let parameters =
        [("max_new_tokens", Field::Count(recipe.output_tokens)), ("details", Field::Flag(true))];
    let members = [
        ("inputs", body::prompt_text(recipe)),
        ("parameters", body::object_with(recipe, "parameters", parameters, |_| true)),
    ];
    body::write_with(recipe, members, |_| false)
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TgiDocument<'a> {
    token: Option<TgiToken<'a>>,
    generated_text: Option<Text<'a>>,
    details: Option<TgiDetails<'a>>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TgiToken<'a> {
    text: Option<Text<'a>>,
    special: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TgiDetails<'a> {
    finish_reason: Option<Text<'a>>,
    generated_tokens: Loose,
    /// Tokens of the prompt, by newer servers.
    input_length: Loose,
    /// The tokens of the prompt themselves, where they were asked for; empty otherwise.
    prefill: Loose,
}

fn read_tgi(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let document: TgiDocument<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Chunk::failed(error_text(&error)));
    }
    let TgiDocument { token, generated_text, details, .. } = document;
    if token.is_none() && generated_text.is_none() {
        return Ok(Chunk::default());
    }
    let usage = details.as_ref().map(|details| {
        let listed = details.prefill.list_length().filter(|length| 0 < *length).map(u64::from);
        Usage {
            prompt_tokens: details.input_length.number().or(listed),
            completion_tokens: details.generated_tokens.number(),
            cached_tokens: None,
        }
    });
    let mut delta = ChoiceDelta {
        finish: generated_text.is_some().then(|| {
            match details.and_then(|details| details.finish_reason) {
                Some(reason) if matches!(reason.bytes(), b"eos_token" | b"stop_sequence") => {
                    Cow::Borrowed("stop")
                }
                Some(reason) => reason.into_name(),
                None => Cow::Borrowed(UNSTATED),
            }
        }),
        ..ChoiceDelta::default()
    };
    match token {
        Some(token) => {
            // A special token is a token, but its text is no text of the answer.
            let text = token.text.filter(|_| !token.special);
            delta.content = text.map(Text::into_bytes);
            delta.marked_tokens = Some(1);
        }
        None => delta.content = generated_text.map(Text::into_bytes),
    }
    Ok(Chunk { usage, ..Chunk::from(delta) })
}

// SGLang: every event of a stream carries the whole text so far, unless the server was started with
// `--incremental-streaming-output`; a request cannot ask for either. `GrowingAnswer` takes what is
// new in both cases.

/// Fields of the request itself. All others go into `sampling_params`.
const SGLANG_FIELDS: &str = "bootstrap_host bootstrap_port bootstrap_room data_parallel_rank \
                             image_data logprob_start_len lora_path priority \
                             return_hidden_states return_logprob return_text_in_logprobs \
                             session_params top_logprobs_num";

fn sglang_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let is_own = |name: &str| SGLANG_FIELDS.split(' ').any(|own| own == name);
    let min_tokens = recipe.pinned.min_tokens.then_some(recipe.output_tokens);
    let params = [
        ("max_new_tokens", Field::Count(recipe.output_tokens)),
        ("ignore_eos", Field::only_if(recipe.pinned.ignore_eos)),
        ("min_new_tokens", Field::optional_count(min_tokens)),
    ];
    let members = [
        ("text", body::prompt_text(recipe)),
        ("sampling_params", body::object_with(recipe, "sampling_params", params, |n| !is_own(n))),
        ("stream", Field::Flag(recipe.streaming)),
        // The server has one model, and a field of its own for an adapter.
        ("lora_path", recipe.content.model.as_deref().map_or(Field::Absent, Field::text)),
    ];
    body::write_with(recipe, members, is_own)
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SglangDocument<'a> {
    index: Loose,
    text: Option<Text<'a>>,
    output_ids: Loose,
    meta_info: Option<SglangMeta<'a>>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SglangMeta<'a> {
    finish_reason: Option<SglangFinish<'a>>,
    prompt_tokens: Loose,
    completion_tokens: Loose,
    cached_tokens: Loose,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SglangFinish<'a> {
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    message: Option<Value>,
}

/// A whole answer.
fn read_sglang(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    document(json).map(|document| sglang_event(document).0)
}

/// The content of an event, and how many token ids it listed.
fn sglang_event(document: SglangDocument<'_>) -> (Chunk<'_>, Option<u32>) {
    let listed_tokens = document.output_ids.list_length();
    if let Some(error) = document.error {
        return (Chunk::failed(error_text(&error)), None);
    }
    let Some(meta) = document.meta_info else { return (Chunk::default(), None) };
    if let Some(SglangFinish { kind: Some(kind), message }) = &meta.finish_reason
        && kind.bytes() == b"abort"
    {
        let error = message.as_ref().map_or_else(|| "aborted".to_owned(), error_text);
        return (Chunk::failed(error), None);
    }
    let index = document.index.number().and_then(|index| u16::try_from(index).ok());
    let delta = ChoiceDelta {
        index: index.unwrap_or(0),
        content: document.text.map(Text::into_bytes),
        finish: meta.finish_reason.and_then(|reason| reason.kind).map(Text::into_name),
        ..ChoiceDelta::default()
    };
    let usage = Usage {
        prompt_tokens: meta.prompt_tokens.number(),
        completion_tokens: meta.completion_tokens.number(),
        cached_tokens: meta.cached_tokens.number(),
    };
    (Chunk { usage: Some(usage), ..Chunk::from(delta) }, listed_tokens)
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
    pub(crate) fn read<'a>(&mut self, json: &'a [u8]) -> Result<Chunk<'a>, ChunkError> {
        let (mut chunk, listed_tokens) = sglang_event(document(json)?);
        let tokens = chunk.usage.and_then(|usage| usage.completion_tokens);
        if let [delta] = chunk.choices.as_mut_slice() {
            let choice = self.choice(delta.index);
            delta.content =
                delta.content.take().map(|text| choice.new_part(text, listed_tokens, tokens));
        }
        Ok(chunk)
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
    /// Which delta of an event's text is new.
    ///
    /// The token ids tell best: they are as many as all tokens so far, or only as many as are new.
    /// Without them a text that goes on where the last one ended is taken for the whole so far,
    /// which a stream of equal pieces may be as well until it first differs.
    fn new_part<'a>(
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

// llama.cpp: every event reports how many tokens were generated so far. Its list of token ids holds
// the last one alone, even where characters were held back and several come at once: it counts only
// where the number is missing.

/// The server has one model, and no minimum length.
fn llama_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let members = [
        ("prompt", body::prompt_text(recipe)),
        ("n_predict", Field::Count(recipe.output_tokens)),
        ("stream", Field::Flag(recipe.streaming)),
        ("ignore_eos", Field::only_if(recipe.pinned.ignore_eos)),
    ];
    body::write(recipe, members)
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct LlamaDocument<'a> {
    index: Loose,
    content: Option<Text<'a>>,
    tokens: Loose,
    stop: bool,
    model: Option<Text<'a>>,
    stop_type: Option<Text<'a>>,
    tokens_predicted: Loose,
    tokens_evaluated: Loose,
    timings: Option<LlamaTimings>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LlamaTimings {
    cache_n: Loose,
}

fn read_llama(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let document: LlamaDocument<'_> = document(json)?;
    if let Some(error) = &document.error {
        return Ok(Chunk::failed(error_text(error)));
    }
    let usage = Usage {
        prompt_tokens: document.tokens_evaluated.number(),
        completion_tokens: document.tokens_predicted.number(),
        cached_tokens: document.timings.as_ref().and_then(|timings| timings.cache_n.number()),
    };
    let is_counted = usage.completion_tokens.is_some();
    let usage = (is_counted || usage.prompt_tokens.is_some()).then_some(usage);
    let finish = document.stop.then(|| match document.stop_type.as_ref().map(Text::bytes) {
        Some(b"limit") => Cow::Borrowed("length"),
        Some(b"eos" | b"word") => Cow::Borrowed("stop"),
        Some(other) if other != b"none" => Cow::Owned(String::from_utf8_lossy(other).into_owned()),
        _ => Cow::Borrowed(UNSTATED),
    });
    let Some(content) = document.content else { return Ok(Chunk::default()) };
    let index = document.index.number().and_then(|index| u16::try_from(index).ok());
    let delta = ChoiceDelta {
        index: index.unwrap_or(0),
        content: Some(content.into_bytes()),
        finish,
        marked_tokens: document.tokens.list_length().filter(|n| 0 < *n && !is_counted),
        ..ChoiceDelta::default()
    };
    Ok(Chunk { usage, model: document.model.map(Text::into_name), ..Chunk::from(delta) })
}

// Ollama: a stream is one JSON document per line.

/// Fields of the request itself. All others go into `options`; neither has `ignore_eos` or a
/// minimum length.
const OLLAMA_FIELDS: &str = "context format keep_alive logprobs raw shift suffix system template \
                             think tools top_logprobs truncate";

fn ollama_chat_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let mut messages = body::messages(recipe);
    for message in &mut messages {
        // A message's content is plain text here; its images are in a field of their own.
        if message.0.get("content").is_some_and(Value::is_array) {
            let text = message.text();
            message.to_mut().0.insert("content".to_owned(), text.into());
        }
    }
    ollama_body(recipe, [("messages", Field::Messages(messages)), ("images", Field::Absent)])
}

fn ollama_generate_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    // All images so far: one prompt is the whole conversation.
    let messages = body::messages(recipe);
    let images = messages.iter().filter_map(|message| message.0.get(OLLAMA_IMAGES)?.as_array());
    let images: Vec<Value> = images.flatten().cloned().collect();
    let images = if images.is_empty() { Field::Absent } else { Field::Values(images) };
    ollama_body(recipe, [("prompt", body::prompt_text(recipe)), ("images", images)])
}

fn ollama_body<'a>(
    recipe: &BodyRecipe<'a>,
    [prompt, images]: [(&'static str, Field<'a>); 2],
) -> Vec<u8> {
    let is_own = |name: &str| OLLAMA_FIELDS.split(' ').any(|own| own == name);
    let options = [("num_predict", Field::Count(recipe.output_tokens))];
    let members = [
        ("model", Field::text(recipe.model)),
        prompt,
        images,
        ("stream", Field::Flag(recipe.streaming)),
        ("options", body::object_with(recipe, "options", options, |name| !is_own(name))),
    ];
    body::write_with(recipe, members, is_own)
}

const OLLAMA_IMAGES: &str = "images";

/// Base64 without the head of a `data:` URL, in a field of the message.
fn add_ollama_images(message: &mut Message, images: &[String]) {
    let bare = |url: &String| embedded(url).map_or(url.as_str(), |(_kind, data)| data).to_owned();
    let images: Vec<String> = images.iter().map(bare).collect();
    message.0.insert(OLLAMA_IMAGES.to_owned(), images.into());
}

/// A chat's line has a `message`, the other one's a `response`.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OllamaDocument<'a> {
    model: Option<Text<'a>>,
    message: Option<OllamaMessage<'a>>,
    response: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    done: bool,
    done_reason: Option<Text<'a>>,
    prompt_eval_count: Loose,
    eval_count: Loose,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OllamaMessage<'a> {
    content: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    tool_calls: Option<Vec<WireToolCall>>,
}

/// Every line names the role, so that it is no news and not noted.
fn read_ollama(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let document: OllamaDocument<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Chunk::failed(error_text(&error)));
    }
    let usage = Usage {
        prompt_tokens: document.prompt_eval_count.number(),
        completion_tokens: document.eval_count.number(),
        cached_tokens: None,
    };
    let mut delta = ChoiceDelta {
        content: document.response.map(Text::into_bytes),
        reasoning: document.thinking.map(Text::into_bytes),
        ..ChoiceDelta::default()
    };
    if let Some(message) = document.message {
        delta.content = message.content.map(Text::into_bytes);
        delta.reasoning = message.thinking.map(Text::into_bytes);
        let calls = message.tool_calls.filter(|calls| !calls.is_empty());
        delta.tool_call_bytes = calls.map(|calls| calls.iter().map(WireToolCall::bytes).sum());
    }
    if document.done {
        let stated = document.done_reason.map(Text::into_name);
        delta.finish = stated.or(Some(Cow::Borrowed(UNSTATED)));
    }
    if delta == ChoiceDelta::default() {
        return Ok(Chunk::default());
    }
    let is_counted = usage.prompt_tokens.is_some() || usage.completion_tokens.is_some();
    let model = document.model.map(Text::into_name);
    Ok(Chunk { usage: is_counted.then_some(usage), model, ..Chunk::from(delta) })
}

// Triton's generate extension, in front of TensorRT-LLM or vLLM. It has no mark of the end and mostly
// no finish reason: an answer is whole when its body ended cleanly after some output. vLLM's backend
// reports the reason and the tokens of each event where `return_finish_reason` and
// `return_num_output_tokens` ask for them.

/// The model is named in the path. Other fields depend on the model: give them as fields.
fn triton_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let members = [
        ("text_input", body::prompt_text(recipe)),
        ("max_tokens", Field::Count(recipe.output_tokens)),
        ("stream", Field::Flag(recipe.streaming)),
    ];
    body::write(recipe, members)
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TritonDocument<'a> {
    model_name: Option<Text<'a>>,
    text_output: Option<Text<'a>>,
    reasoning_output: Option<Text<'a>>,
    finish_reason: Option<Text<'a>>,
    num_input_tokens: Loose,
    num_output_tokens: Loose,
    error: Option<Value>,
}

fn read_triton(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let document: TritonDocument<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Chunk::failed(error_text(&error)));
    }
    let Some(text) = document.text_output else { return Ok(Chunk::default()) };
    // Until the end the backend writes Python's word for nothing.
    let finish = document.finish_reason.filter(|reason| reason.bytes() != b"None");
    let tokens = document.num_output_tokens.number();
    let delta = ChoiceDelta {
        content: Some(text.into_bytes()),
        reasoning: document.reasoning_output.map(Text::into_bytes),
        finish: finish.map(Text::into_name),
        marked_tokens: tokens.and_then(|tokens| u32::try_from(tokens).ok()),
        ..ChoiceDelta::default()
    };
    let usage = document.num_input_tokens.number().map(|count| Usage {
        prompt_tokens: Some(count),
        completion_tokens: None,
        cached_tokens: None,
    });
    let model = document.model_name.map(Text::into_name);
    Ok(Chunk { usage, model, ..Chunk::from(delta) })
}

// Embeddings and reranking: the bytes of the answer are its output.

/// A text is one input; messages are a batch, one input each.
fn embeddings_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let input = match &recipe.content.prompt {
        Prompt::Text(text) if recipe.history.is_empty() => Field::text(text),
        Prompt::Text(_) | Prompt::Messages(_) => texts_field(body::texts(recipe)),
    };
    body::write(recipe, [("model", Field::text(recipe.model)), ("input", input)])
}

fn texts_field(texts: Vec<String>) -> Field<'static> {
    Field::List(texts.into_iter().map(|text| Field::Text(Cow::Owned(text))).collect())
}

fn rerank_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    // The first of several messages is the query and the others are the documents. In a text the
    // first line is the query and every other line with something in it a document; in a text of
    // one line the first sentence is the query and the rest the document. What cannot be split is
    // both.
    let mut documents = match &recipe.content.prompt {
        Prompt::Text(text) if recipe.history.is_empty() => lines_or_sentences(text),
        Prompt::Text(_) | Prompt::Messages(_) => body::texts(recipe),
    };
    let query = documents.first().cloned().unwrap_or_default();
    match documents.len() {
        0 => documents.push(String::new()),
        1 => {}
        _ => drop(documents.remove(0)),
    }
    let members = [
        ("model", Field::text(recipe.model)),
        ("query", Field::Text(Cow::Owned(query))),
        ("documents", texts_field(documents)),
    ];
    body::write(recipe, members)
}

fn lines_or_sentences(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    let [line] = lines.as_slice() else { return lines };
    let ends = [". ", "? ", "! "].iter().filter_map(|end| line.find(end));
    let end = ends.min().map_or(line.len(), |place| place + 1);
    let (first, rest) = line.split_at(end);
    [first, rest.trim()].into_iter().filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// An answer of either API.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ScoreDocument<'a> {
    model: Option<Text<'a>>,
    data: Vec<Item<'a>>,
    results: Loose,
    usage: Option<ScoreUsage>,
    error: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Item<'a> {
    /// Numbers, or Base64 where that was asked for; `data` in answers of the
    /// pooling API, `probs` in those of the classify API.
    #[serde(alias = "data", alias = "probs")]
    embedding: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScoreUsage {
    prompt_tokens: Loose,
    total_tokens: Loose,
}

impl From<ScoreUsage> for Usage {
    fn from(usage: ScoreUsage) -> Self {
        let prompt_tokens = usage.prompt_tokens.number().or_else(|| usage.total_tokens.number());
        Self { prompt_tokens, completion_tokens: None, cached_tokens: None }
    }
}

fn read_embeddings(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let document: ScoreDocument<'_> = document(json)?;
    let mut vectors = document.data.iter().map(|item| item.embedding.map(RawValue::get));
    let is_whole = !document.data.is_empty()
        && vectors.all(|vector| vector.is_some_and(|json| !matches!(json, "[]" | "\"\"" | "null")));
    Ok(whole_answer(json, document, is_whole))
}

/// SGLang answers with the bare list of results.
fn read_rerank(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let document = if json.trim_ascii_start().starts_with(b"[") {
        let results = document(json)?;
        ScoreDocument { model: None, data: Vec::new(), results, usage: None, error: None }
    } else {
        document::<ScoreDocument<'_>>(json)?
    };
    let is_whole = document.results.list_length().is_some_and(|length| 0 < length);
    Ok(whole_answer(json, document, is_whole))
}

/// An answer without tokens: all of it is output, and it ends with itself.
fn whole_answer<'a>(json: &'a [u8], document: ScoreDocument<'a>, is_whole: bool) -> Chunk<'a> {
    if let Some(error) = document.error {
        return Chunk::failed(error_text(&error));
    }
    let chunk = if is_whole {
        Chunk::from(ChoiceDelta {
            content: Some(Cow::Borrowed(json)),
            finish: Some(Cow::Borrowed("stop")),
            ..ChoiceDelta::default()
        })
    } else {
        Chunk::default()
    };
    let model = document.model.map(Text::into_name);
    Chunk { usage: document.usage.map(Usage::from), model, ..chunk }
}
