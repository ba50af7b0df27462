//! APIs without generated tokens: OpenAI's embeddings, a whole answer of vectors, and reranking, as
//! Jina defined it and vLLM, SGLang and llama.cpp serve it: a query, documents, and a whole answer of
//! scores. The bytes of the answer are its output.

use std::borrow::Cow;

use inferometer_model::Prompt;
use inferometer_model::endpoint::Api;
use inferometer_model::record::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{self, Field};
use super::json::{Loose, Text, document};
use super::openai::error_text;
use super::{BodyRecipe, ChoiceDelta, Chunk, ChunkError, Dialect};

pub(super) static DIALECTS: [Dialect; 2] = [
    Dialect::new(Api::Embeddings, embeddings_body, read_embeddings),
    Dialect::new(Api::Rerank, rerank_body, read_rerank),
];

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
    let (query, documents) = query_and_documents(recipe);
    let members = [
        ("model", Field::text(recipe.model)),
        ("query", Field::Text(Cow::Owned(query))),
        ("documents", texts_field(documents)),
    ];
    body::write(recipe, members)
}

/// The first of several messages is the query and the others are the documents. In a text the first line
/// is the query and every other line with something in it a document; in a text of one line the
/// first sentence is the query and the rest the document. What cannot be split is both.
fn query_and_documents(recipe: &BodyRecipe<'_>) -> (String, Vec<String>) {
    let texts = match &recipe.content.prompt {
        Prompt::Text(text) if recipe.history.is_empty() => lines_or_sentences(text),
        Prompt::Text(_) | Prompt::Messages(_) => body::texts(recipe),
    };
    let (query, documents) = texts
        .split_first()
        .map_or((String::new(), Vec::new()), |(first, rest)| (first.clone(), rest.to_vec()));
    if documents.is_empty() { (query.clone(), vec![query]) } else { (query, documents) }
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
    /// Numbers, or Base64 where that was asked for.
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
