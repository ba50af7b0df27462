//! Reranking, as Jina defined it and vLLM, SGLang and llama.cpp serve it: a query, documents, and
//! a whole answer of scores.

use inferometer_model::Prompt;
use inferometer_model::record::Usage;
use serde::{Deserialize, Serialize};

use super::embeddings::{WireUsage, whole_answer};
use super::openai::error_text;
use super::wire::{Loose, Text, document};
use super::{BodyRecipe, Saying, SayingError, fields};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    query: String,
    documents: Vec<String>,
}

pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let (query, documents) = query_and_documents(recipe);
    fields::body(&Body { model: recipe.model, query, documents }, recipe)
}

/// Of messages the first is the query and the others are the documents. Of a text the first line
/// is the query and every other line with something in it a document; of a text of one line the
/// first sentence is the query and the rest the document. What cannot be split is both.
fn query_and_documents(recipe: &BodyRecipe<'_>) -> (String, Vec<String>) {
    let texts = match &recipe.content.prompt {
        Prompt::Text(text) if recipe.history.is_empty() => lines_or_sentences(text),
        Prompt::Text(_) | Prompt::Messages(_) => fields::texts(recipe),
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

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(default)]
    results: Loose,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

/// SGLang answers with the bare list of results.
pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    if json.trim_ascii_start().starts_with(b"[") {
        let results: Loose = document(json)?;
        return Ok(if has_some(&results) { whole_answer(json) } else { Saying::default() });
    }
    let document: Document<'_> = document(json)?;
    if let Some(error) = document.error {
        return Ok(Saying { error: Some(error_text(&error)), ..Saying::default() });
    }
    let saying = if has_some(&document.results) { whole_answer(json) } else { Saying::default() };
    let model = document.model.map(Text::into_name);
    Ok(Saying { usage: document.usage.map(Usage::from), model, ..saying })
}

fn has_some(results: &Loose) -> bool {
    results.list_length().is_some_and(|length| 0 < length)
}
