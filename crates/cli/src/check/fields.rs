//! Which fields of a body the server takes. Some refuse what they do not know; some ignore it.

use inferometer_load::target::Target;
use inferometer_model::Outcome;
use serde_json::{Map, Value, json};

use super::Finding;
use super::answers::words_of;
use crate::failure::Failure;
use crate::preflight::{PROBE_PROMPT, ask_once, pinning};

const TOKENS: u32 = 4;
/// Long enough that most models would end by themselves before it.
const PINNED_TOKENS: u32 = 48;

pub(super) fn examine(target: &Target) -> Result<Vec<Finding>, Failure> {
    Ok(vec![pinned(target)?, sampling(target)?, unknown_field(target)?, other_model(target)?])
}

fn pinned(target: &Target) -> Result<Finding, Failure> {
    let Some(pinned) = pinning::accepted(target)? else {
        return Ok(Finding::note(
            "ignore_eos",
            "ignore_eos and min_tokens are refused: answers may end before their length",
        )
        .remedy("nothing to do: a run leaves them out; its audit shows how long answers were"));
    };
    let asking = Target { pinned, ..target.clone() };
    let record = ask_once(asking, PROBE_PROMPT, PINNED_TOKENS)?.record;
    let names = match (pinned.ignore_eos, pinned.min_tokens) {
        (true, true) => "ignore_eos and min_tokens",
        (true, false) => "ignore_eos",
        _ => "min_tokens",
    };
    let came = record.usage.and_then(|usage| usage.completion_tokens);
    Ok(match came {
        Some(tokens) if tokens == u64::from(PINNED_TOKENS) => {
            Finding::good("ignore_eos", format!("{names} accepted and kept: {tokens} tokens came"))
        }
        Some(tokens) => Finding::problem(
            "ignore_eos",
            format!("{names} accepted, but {tokens} of {PINNED_TOKENS} tokens came"),
            "answers will not have the length that was asked for; see the audit of a run",
        ),
        None => Finding::note("ignore_eos", format!("{names} accepted; no usage says if kept")),
    })
}

/// Asks with more fields, and says how it ended.
fn with(target: &Target, fields: Value) -> Result<Option<String>, Failure> {
    let mut all: Map<String, Value> = target.fields.clone();
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    let record = ask_once(Target { fields: all, ..target.clone() }, PROBE_PROMPT, TOKENS)?.record;
    Ok(words_of(&record))
}

fn sampling(target: &Target) -> Result<Finding, Failure> {
    let fields = json!({"temperature": 0.7, "top_p": 0.9, "seed": 1});
    Ok(match with(target, fields)? {
        None => Finding::good("sampling", "temperature, top_p and seed accepted"),
        Some(words) => Finding::problem(
            "sampling",
            format!("temperature, top_p and seed together are refused: {words}"),
            "leave out what the server names",
        ),
    })
}

fn unknown_field(target: &Target) -> Result<Finding, Failure> {
    Ok(match with(target, json!({"inferometer_unknown_field": true}))? {
        None => Finding::note(
            "unknown fields",
            "ignored in silence: a misspelt --extra-body field will have no effect",
        ),
        Some(_) => Finding::good("unknown fields", "refused: a misspelt field is noticed"),
    })
}

fn other_model(target: &Target) -> Result<Finding, Failure> {
    let asking = Target { model: "inferometer-no-such-model".to_owned(), ..target.clone() };
    let record = ask_once(asking, PROBE_PROMPT, TOKENS)?.record;
    Ok(if record.ending.outcome == Outcome::Ok {
        Finding::note(
            "model names",
            "any name is answered: the server does not tell whether it serves the model you mean",
        )
    } else {
        Finding::good("model names", "a model that it does not serve is refused")
    })
}
