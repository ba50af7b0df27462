//! Which fields of a body the server takes. Some refuse what they do not know; some ignore it.

use inferometer_load::target::Target;
use inferometer_model::RequestRecord;
use inferometer_model::observations::PinnedOutput;
use serde_json::{Map, Value, json};

use super::Finding;
use super::answers::words_of;
use crate::failure::Failure;
use crate::preflight::pinning::{self, Pinning};
use crate::preflight::{PROBE_PROMPT, ask_once, is_refusal, probe_tokens};

const TOKENS: u32 = 4;
/// Long enough that most models would end by themselves before it.
const PINNED_TOKENS: u32 = 48;

pub(super) fn examine(target: &Target) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    // Vectors and scores are neither drawn nor ended.
    if target.api.generates() {
        findings.push(pinned(target)?);
        findings.push(sampling(target)?);
    }
    findings.push(unknown_field(target)?);
    if target.api.facts().names_model {
        findings.push(other_model(target)?);
    }
    Ok(findings)
}

fn pinned(target: &Target) -> Result<Finding, Failure> {
    let audited = "nothing to do: a run leaves them out; its audit shows how long answers were";
    let note = |words: &str| Finding::note("ignore_eos", words).remedy(audited);
    Ok(match pinning::ask(target)? {
        Pinning::Accepted(pinned) => kept(target, pinned)?,
        Pinning::Refused => {
            note("ignore_eos and min_tokens are refused: answers may end before their length")
        }
        Pinning::NoSuchFields => {
            note("this API has no such fields: answers may end before their length")
        }
        Pinning::NotKnown => note("not known: the question with ignore_eos failed"),
    })
}

/// Whether what was accepted has an effect.
fn kept(target: &Target, pinned: PinnedOutput) -> Result<Finding, Failure> {
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

/// How a question ended that the server may refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    Accepted,
    Refused(String),
    /// It failed, and that says nothing of what was asked.
    NotKnown(String),
}

impl Reply {
    /// By the status codes that say no to what was asked.
    fn of(record: &RequestRecord, is_refusal: impl Fn(&RequestRecord) -> bool) -> Self {
        match words_of(record) {
            None => Self::Accepted,
            Some(words) if is_refusal(record) => Self::Refused(words),
            Some(words) => Self::NotKnown(words),
        }
    }
}

fn not_known(subject: &'static str, words: &str) -> Finding {
    Finding::note(subject, format!("not known: {words}"))
}

/// Asks with more fields.
fn with(target: &Target, fields: Value) -> Result<Reply, Failure> {
    let mut all: Map<String, Value> = target.fields.clone();
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    let tokens = probe_tokens(target.api, TOKENS);
    let record = ask_once(Target { fields: all, ..target.clone() }, PROBE_PROMPT, tokens)?.record;
    Ok(Reply::of(&record, is_refusal))
}

fn sampling(target: &Target) -> Result<Finding, Failure> {
    let fields = json!({"temperature": 0.7, "top_p": 0.9, "seed": 1});
    Ok(match with(target, fields)? {
        Reply::Accepted => Finding::good("sampling", "temperature, top_p and seed accepted"),
        Reply::Refused(words) => Finding::problem(
            "sampling",
            format!("temperature, top_p and seed together are refused: {words}"),
            "leave out what the server names",
        ),
        Reply::NotKnown(words) => not_known("sampling", &words),
    })
}

fn unknown_field(target: &Target) -> Result<Finding, Failure> {
    Ok(match with(target, json!({"inferometer_unknown_field": true}))? {
        Reply::Accepted => Finding::note(
            "unknown fields",
            "ignored in silence: a misspelt --extra-body field will have no effect",
        ),
        Reply::Refused(_) => {
            Finding::good("unknown fields", "refused: a misspelt field is noticed")
        }
        Reply::NotKnown(words) => not_known("unknown fields", &words),
    })
}

fn other_model(target: &Target) -> Result<Finding, Failure> {
    let asking = Target { model: "inferometer-no-such-model".to_owned(), ..target.clone() };
    let tokens = probe_tokens(target.api, TOKENS);
    let record = ask_once(asking, PROBE_PROMPT, tokens)?.record;
    Ok(match Reply::of(&record, is_no_such_model) {
        Reply::Accepted => Finding::note(
            "model names",
            "any name is answered: the server does not tell whether it serves the model you mean",
        ),
        Reply::Refused(_) => {
            Finding::good("model names", "a model that it does not serve is refused")
        }
        Reply::NotKnown(words) => not_known("model names", &words),
    })
}

fn is_no_such_model(record: &RequestRecord) -> bool {
    record.head.is_some_and(|head| matches!(head.status, 400 | 404))
}

#[cfg(test)]
mod tests {
    use inferometer_model::outcome::{Outcome, Stage};
    use inferometer_model::record::{Asked, ResponseHead};
    use inferometer_model::{Ending, Moment, RequestId, StartedRequest};

    use super::*;

    fn ended(outcome: Outcome, status: Option<u16>) -> RequestRecord {
        let started = StartedRequest {
            id: RequestId(0),
            intended: Moment::ZERO,
            admitted: Moment::ZERO,
            asked: Asked { input_tokens: 1, output_tokens: 4, part: 0, turn: 0 },
        };
        let ending = Ending { outcome, stage: Stage::Headers, ..Ending::ok(Moment::ZERO) };
        let head = status.map(|status| ResponseHead { status, read: 0, streamed: false });
        RequestRecord { head, ..RequestRecord::without_answer(&started, ending) }
    }

    #[test]
    fn only_a_refusal_says_that_something_is_refused() {
        let replied = |outcome, status| Reply::of(&ended(outcome, status), is_refusal);
        assert_eq!(replied(Outcome::Ok, Some(200)), Reply::Accepted);
        for status in [400, 422] {
            let reply = replied(Outcome::HttpError, Some(status));
            assert!(matches!(reply, Reply::Refused(_)), "{status}");
        }
        for (outcome, status) in [
            (Outcome::Rejected, Some(429)),
            (Outcome::Rejected, Some(503)),
            (Outcome::HttpError, Some(500)),
            (Outcome::TimeoutFirstToken, None),
        ] {
            let reply = replied(outcome, status);
            assert!(matches!(reply, Reply::NotKnown(_)), "{outcome} {status:?}");
        }
    }

    #[test]
    fn a_model_is_unknown_only_where_the_server_says_so() {
        let replied =
            |status| Reply::of(&ended(Outcome::HttpError, Some(status)), is_no_such_model);
        assert!(matches!(replied(404), Reply::Refused(_)));
        assert!(matches!(replied(400), Reply::Refused(_)));
        assert!(matches!(replied(500), Reply::NotKnown(_)));
    }
}
