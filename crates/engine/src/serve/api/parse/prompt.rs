//! What a request wants to have continued, as token ids.

use serde_json::Value;

use super::super::ask::Endpoint;
use super::super::fields::{Fields, integer_at, text_at, wrong};
use super::super::problem::Problem;
use super::turns;
use crate::scheduler::tokens::VOCABULARY;
use crate::serve::vocabulary::Vocabulary;

/// One or several prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve::api) struct Prompts {
    pub(in crate::serve::api) ids: Vec<Vec<u32>>,
    /// As they were sent, or as ids read; only where it may have to be repeated.
    pub(in crate::serve::api) texts: Vec<String>,
}

/// The prompts of a generation request.
pub(super) fn of(
    endpoint: Endpoint,
    fields: &Fields<'_>,
    vocabulary: &Vocabulary,
) -> Result<Prompts, Problem> {
    let turns = match endpoint {
        Endpoint::Chat => turns::chat_turns(fields)?,
        Endpoint::Responses => turns::response_turns(fields)?,
        Endpoint::Messages => turns::message_turns(fields)?,
        Endpoint::Completions
        | Endpoint::Embeddings
        | Endpoint::Tokenize
        | Endpoint::Detokenize => return prompts(fields, "prompt", vocabulary),
    };
    let awaits_answer = fields.flag("add_generation_prompt")?.unwrap_or(true);
    let ids = vec![vocabulary.encode_chat(&turns, awaits_answer)];
    Ok(Prompts { ids, texts: Vec::new() })
}

/// A text, a list of texts, a list of ids, or a list of lists of ids.
pub(in crate::serve::api) fn prompts(
    fields: &Fields<'_>,
    name: &str,
    vocabulary: &Vocabulary,
) -> Result<Prompts, Problem> {
    let place = fields.place(name);
    let value = fields.required(name)?;
    if let Value::String(text) = value {
        return Ok(of_texts(vec![text.clone()], vocabulary));
    }
    let Value::Array(items) = value else {
        return Err(wrong(&place, "string_type", "a valid string or list"));
    };
    match items.first() {
        None => Err(Problem::EmptyPrompt),
        Some(Value::String(_)) => {
            let texts: Result<_, _> = items.iter().map(|item| text_at(item, &place)).collect();
            Ok(of_texts(texts?, vocabulary))
        }
        Some(Value::Array(_)) => {
            let lists: Result<_, _> = items.iter().map(|item| id_list(item, &place)).collect();
            Ok(of_ids(lists?, vocabulary))
        }
        Some(_) => Ok(of_ids(vec![ids(items, &place)?], vocabulary)),
    }
}

fn of_texts(texts: Vec<String>, vocabulary: &Vocabulary) -> Prompts {
    Prompts { ids: texts.iter().map(|text| vocabulary.encode(text)).collect(), texts }
}

fn of_ids(ids: Vec<Vec<u32>>, vocabulary: &Vocabulary) -> Prompts {
    Prompts { texts: ids.iter().map(|ids| vocabulary.decode(ids)).collect(), ids }
}

fn id_list(value: &Value, place: &str) -> Result<Vec<u32>, Problem> {
    let Value::Array(items) = value else {
        return Err(wrong(place, "list_type", "a valid list"));
    };
    ids(items, place)
}

fn ids(items: &[Value], place: &str) -> Result<Vec<u32>, Problem> {
    let numbers: Result<Vec<i64>, _> = items.iter().map(|item| integer_at(item, place)).collect();
    check_ids(&numbers?)
}

/// Ids that exist.
pub(in crate::serve::api) fn check_ids(numbers: &[i64]) -> Result<Vec<u32>, Problem> {
    let known = |id: &i64| u32::try_from(*id).ok().filter(|id| *id < VOCABULARY);
    numbers.iter().map(|id| known(id).ok_or(Problem::UnknownToken { id: *id })).collect()
}
