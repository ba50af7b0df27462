//! What an endpoint supports and what is wrong with it, found by requests: one line for each finding,
//! and a remedy for each problem. Their texts are in `findings.toml`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::LazyLock;
use std::time::Duration;

use inferometer_load::Probe;
use inferometer_load::answer::Failure as LoadFailure;
use inferometer_load::target::Target;
use inferometer_model::endpoint::Api;
use inferometer_model::fetch::{FetchReply, FetchRequest};
use inferometer_model::fmt;
use inferometer_model::observations::{
    Connections, Correction, InputLength, PinnedOutput, UsageAsk,
};
use inferometer_model::record::FinishReason;
use inferometer_model::spec::Limits;
use inferometer_model::{Fetch, Outcome, RequestRecord, Spec};
use inferometer_workload::Inputs;
use inferometer_workload::text::{Segment, TextMaker};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::preflight::{
    PROBE_PROMPT, Pinning, ask_once, ask_pinning, correction, fetching, is_refusal, probe_tokens,
};

/// Examines an endpoint that has answered before.
pub fn examine(
    spec: &Spec,
    inputs: &Inputs,
    target: &Target,
    report: impl Fn(&str),
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    report("requesting answers, with and without streaming …");
    if target.streaming {
        let Probe { record, connections } = ask_once(target.clone(), PROBE_PROMPT, ANSWER_TOKENS)?;
        findings.extend(stream(target, &record));
        let is_closed = connections == Connections::New;
        findings.push(find("connections", if is_closed { "closed" } else { "kept" }, &[]));
        findings.extend(length(&record));
    }
    let whole = Target { streaming: false, usage: UsageAsk::None, ..target.clone() };
    let record = ask_once(whole, PROBE_PROMPT, ANSWER_TOKENS)?.record;
    findings.push(match failure_of(&record) {
        None => find("whole answers", "works", &[]),
        Some(words) => find("whole answers", "fails", &[("words", &words)]),
    });
    findings.push(at_once(target)?);
    report("testing which fields it accepts …");
    // Embeddings and scores are neither sampled nor ended.
    if target.api.generates() {
        findings.push(pinned(target)?);
        let fields = [("temperature", json!(0.7)), ("top_p", json!(0.9)), ("seed", json!(1))];
        findings.push(ask_with(target, &fields)?.finding("sampling"));
    }
    let unknown = [("inferometer_unknown_field", json!(true))];
    findings.push(ask_with(target, &unknown)?.finding("unknown fields"));
    if target.api.facts().names_model {
        findings.push(other_model(target)?);
    }
    report("testing how it counts and caches prompts …");
    findings.push(match inputs.materials().input_length {
        InputLength::Exact => by_tokenizer(inputs, target)?,
        InputLength::Estimated | InputLength::Corrected(_) => by_words(target)?,
    });
    findings.push(cache(spec, target)?);
    report("looking for its other endpoints …");
    findings.push(match get(target, "/metrics")? {
        Some(reply) => metrics_of(&reply),
        None => find("/metrics", "none", &[]),
    });
    if let Some(version) = get(target, "/version")? {
        let words = String::from_utf8_lossy(&version.body).trim().to_owned();
        findings.push(find("/version", "found", &[("words", &words)]));
    }
    findings.push(other_apis(target)?);
    Ok(findings)
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It works.
    #[default]
    Good,
    /// Worth knowing; nothing is wrong.
    Note,
    /// It affects measurements.
    Problem,
}

/// What was found about one subject.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Finding {
    /// What was examined.
    #[serde(default)]
    pub subject: String,
    /// How serious it is.
    #[serde(default)]
    pub state: State,
    /// What was found, as a sentence.
    pub words: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// By subject and case.
static FINDINGS: LazyLock<BTreeMap<String, BTreeMap<String, Finding>>> = LazyLock::new(|| {
    toml::from_str(include_str!("check/findings.toml")).expect("a test reads the embedded table")
});

/// A case of the table, with its words filled in.
fn find(subject: &str, case: &str, values: &[(&str, &dyn Display)]) -> Finding {
    let known = FINDINGS[subject][case].clone();
    let fill = |words: String, (name, value): &(&str, &dyn Display)| {
        words.replace(&format!("{{{name}}}"), &value.to_string())
    };
    let words = values.iter().fold(known.words, fill);
    Finding { subject: subject.to_owned(), words, ..known }
}

impl Finding {
    /// Something that works.
    pub fn good(subject: &str, words: impl Into<String>) -> Self {
        let (subject, words) = (subject.to_owned(), words.into());
        Self { subject, state: State::Good, words, remedy: None }
    }
}

const ANSWER_TOKENS: u32 = 16;
const AT_ONCE: usize = 4;

/// Why it failed, or `None`.
fn failure_of(record: &RequestRecord) -> Option<String> {
    let ending = &record.ending;
    if ending.outcome == Outcome::Ok {
        return None;
    }
    let (outcome, cause, message) = (ending.outcome, ending.cause, ending.message.clone());
    let status = record.head.map_or_else(String::new, |head| format!("HTTP {}, ", head.status));
    Some(format!("{status}{}", LoadFailure { outcome, cause, message }.words()))
}

fn stream(target: &Target, record: &RequestRecord) -> Vec<Finding> {
    if let Some(words) = failure_of(record) {
        return vec![find("streaming", "fails", &[("words", &words)])];
    }
    let outputs = record.events.iter().filter(|event| event.is_output()).count();
    let read = [("outputs", &outputs as &dyn Display), ("reads", &record.reads.len())];
    let counts = match target.usage {
        UsageAsk::Continuous => "continuous",
        UsageAsk::Final if record.usage.is_some() => "final",
        UsageAsk::Final | UsageAsk::None => "none",
    };
    let mut findings = vec![find("streaming", "works", &read), find("token counts", counts, &[])];
    if record.events.first().is_some_and(|event| !event.is_output()) {
        findings.push(find("first event", "role", &[]));
    }
    if !record.done.seen {
        findings.push(find("end of stream", "undone", &[]));
    }
    findings
}

fn length(record: &RequestRecord) -> Option<Finding> {
    let tokens = record.usage?.completion_tokens?;
    let stopped = record.finishes.iter().any(|finish| finish.reason == FinishReason::Stop);
    let case = match tokens.cmp(&ANSWER_TOKENS.into()) {
        Ordering::Equal => "exact",
        Ordering::Less if stopped => "ended",
        Ordering::Less | Ordering::Greater => "other",
    };
    Some(find("answer length", case, &[("requested", &ANSWER_TOKENS), ("tokens", &tokens)]))
}

fn at_once(target: &Target) -> Result<Finding> {
    let probes: Vec<Result<Probe>> = std::thread::scope(|scope| {
        let probe = |_| scope.spawn(|| ask_once(target.clone(), PROBE_PROMPT, ANSWER_TOKENS));
        let threads: Vec<_> = (0..AT_ONCE).map(probe).collect();
        let panicked = |_| Err(Failure::internal("a probe ended abnormally"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let mut failed = Vec::new();
    for probe in probes {
        failed.extend(failure_of(&probe?.record));
    }
    let (case, words) = failed.first().map_or(("works", ""), |words| ("fails", words));
    let values: [(_, &dyn Display); 3] =
        [("count", &AT_ONCE), ("failed", &failed.len()), ("words", &words)];
    Ok(find("several at once", case, &values))
}

/// Answers to the probes of fields are this short.
const TOKENS: u32 = 4;
/// More than the few that a model says by itself.
const PINNED_TOKENS: u32 = 48;

fn pinned(target: &Target) -> Result<Finding> {
    let case = match ask_pinning(target)? {
        Pinning::Accepted(pinned) => return kept(target, pinned),
        Pinning::Refused => "refused",
        Pinning::NoSuchFields => "absent",
        Pinning::NotKnown => "unknown",
    };
    Ok(find("ignore_eos", case, &[]))
}

/// Whether accepted fields have an effect.
fn kept(target: &Target, pinned: PinnedOutput) -> Result<Finding> {
    let names = match (pinned.ignore_eos, pinned.min_tokens) {
        (true, true) => "ignore_eos and min_tokens",
        (true, false) => "ignore_eos",
        _ => "min_tokens",
    };
    let record = ask_once(Target { pinned, ..target.clone() }, PROBE_PROMPT, PINNED_TOKENS)?.record;
    let tokens = record.usage.and_then(|usage| usage.completion_tokens);
    let case = match tokens {
        Some(tokens) if tokens == u64::from(PINNED_TOKENS) => "kept",
        Some(_) => "ignored",
        None => "uncounted",
    };
    let tokens = tokens.unwrap_or_default();
    let values: [(_, &dyn Display); 3] =
        [("names", &names), ("tokens", &tokens), ("requested", &PINNED_TOKENS)];
    Ok(find("ignore_eos", case, &values))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    Accepted,
    Refused(String),
    NotKnown(String),
}

impl Reply {
    fn from_record(record: &RequestRecord, is_refusal: impl Fn(&RequestRecord) -> bool) -> Self {
        match failure_of(record) {
            None => Self::Accepted,
            Some(words) if is_refusal(record) => Self::Refused(words),
            Some(words) => Self::NotKnown(words),
        }
    }

    fn finding(self, subject: &str) -> Finding {
        match self {
            Self::Accepted => find(subject, "accepted", &[]),
            Self::Refused(words) => find(subject, "refused", &[("words", &words)]),
            Self::NotKnown(words) => {
                let finding = Finding::good(subject, format!("not known: {words}"));
                Finding { state: State::Note, ..finding }
            }
        }
    }
}

fn ask_with(target: &Target, more: &[(&str, Value)]) -> Result<Reply> {
    let mut fields = target.fields.clone();
    fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let tokens = probe_tokens(target.api, TOKENS);
    let record = ask_once(Target { fields, ..target.clone() }, PROBE_PROMPT, tokens)?.record;
    Ok(Reply::from_record(&record, is_refusal))
}

fn other_model(target: &Target) -> Result<Finding> {
    let asking = Target { model: "inferometer-no-such-model".to_owned(), ..target.clone() };
    let record = ask_once(asking, PROBE_PROMPT, probe_tokens(target.api, TOKENS))?.record;
    Ok(Reply::from_record(&record, is_no_such_model).finding("model names"))
}

fn is_no_such_model(record: &RequestRecord) -> bool {
    record.head.is_some_and(|head| matches!(head.status, 400 | 404))
}

const EXACT_TOKENS: u32 = 200;

fn by_words(target: &Target) -> Result<Finding> {
    let Some(Correction { tokens_per_word, overhead_tokens }) = correction(target)? else {
        return Ok(find("prompt length", "unreported", &[]));
    };
    let tokens = fmt::number(tokens_per_word);
    Ok(find("prompt length", "reported", &[("tokens", &tokens), ("more", &overhead_tokens)]))
}

fn by_tokenizer(inputs: &Inputs, target: &Target) -> Result<Finding> {
    let text = inputs.text().framed(&[Segment { seed: 1, tokens: EXACT_TOKENS }]);
    let record = ask_once(target.clone(), &text, probe_tokens(target.api, 1))?.record;
    let tokens = record.usage.and_then(|usage| usage.prompt_tokens);
    let case = match tokens {
        Some(tokens) if tokens == u64::from(EXACT_TOKENS) => "equal",
        Some(_) => "other",
        None => "unaudited",
    };
    let tokens = tokens.unwrap_or_default();
    Ok(find("prompt length", case, &[("asked", &EXACT_TOKENS), ("tokens", &tokens)]))
}

/// Sends one prompt twice.
fn cache(spec: &Spec, target: &Target) -> Result<Finding> {
    let seed = spec.seed ^ 0x6361_6368_6500;
    let text = TextMaker::Estimating(None).bare(&[Segment { seed, tokens: 160 }]);
    let tokens = probe_tokens(target.api, 1);
    let first = ask_once(target.clone(), &text, tokens)?.record;
    let second = ask_once(target.clone(), &text, tokens)?.record;
    let has_failed = [&first, &second].iter().any(|it| it.ending.outcome != Outcome::Ok);
    let tokens = second.usage.and_then(|usage| usage.cached_tokens);
    let case = match tokens {
        _ if has_failed => "unknown",
        Some(0) => "off",
        Some(_) => "on",
        None => "unreported",
    };
    Ok(find("prefix cache", case, &[("tokens", &tokens.unwrap_or_default())]))
}

const OTHER_API_WAIT: Duration = Duration::from_secs(20);

fn other_apis(target: &Target) -> Result<Finding> {
    let mut served = Vec::new();
    for api in Api::all().filter(|api| *api != target.api) {
        let limits = Limits { first_token: OTHER_API_WAIT, total: OTHER_API_WAIT, ..target.limits };
        let usage = UsageAsk::None;
        let asking = Target { api, streaming: false, usage, limits, ..target.clone() };
        let record = ask_once(asking, PROBE_PROMPT, probe_tokens(api, TOKENS))?.record;
        if record.ending.outcome == Outcome::Ok {
            served.push(api.name());
        }
    }
    let case = if served.is_empty() { "none" } else { "some" };
    Ok(find("other APIs", case, &[("names", &served.join(", "))]))
}

fn metrics_of(reply: &FetchReply) -> Finding {
    let text = String::from_utf8_lossy(&reply.body);
    let known = [
        ("vllm:", "vLLM"),
        ("sglang:", "SGLang"),
        ("llamacpp:", "llama.cpp"),
        ("tgi_", "TGI"),
        ("nv_inference", "Triton"),
    ];
    match known.iter().find(|(prefix, _)| text.contains(prefix)) {
        Some((_, software)) => find("/metrics", "known", &[("software", software)]),
        None => find("/metrics", "other", &[]),
    }
}

fn get(target: &Target, path: &str) -> Result<Option<FetchReply>> {
    let request = FetchRequest { path, body_limit: 16 << 20 };
    let reply = fetching(target, async |fetch| fetch.fetch(request).await)?;
    Ok(reply.ok().filter(|reply| (200..300).contains(&reply.status)))
}

#[cfg(test)]
mod tests {
    use inferometer_model::outcome::{Outcome, Stage};
    use inferometer_model::record::{RequestedLengths, ResponseHead};
    use inferometer_model::{Ending, Moment, RequestId, StartedRequest};

    use super::*;

    fn ended(outcome: Outcome, status: Option<u16>) -> RequestRecord {
        let started = StartedRequest {
            id: RequestId(0),
            intended: Moment::ZERO,
            admitted: Moment::ZERO,
            asked: RequestedLengths {
                input_tokens: 1,
                output_tokens: 4,
                part: 0,
                turn: 0,
                ..RequestedLengths::default()
            },
        };
        let ending = Ending { outcome, stage: Stage::Headers, ..Ending::ok(Moment::ZERO) };
        let head = status.map(|status| ResponseHead { status, read: 0, streamed: false });
        RequestRecord { head, ..RequestRecord::without_answer(&started, ending) }
    }

    /// Every finding of the table can be made, so that looking one up cannot fail.
    #[test]
    fn the_table_has_every_finding_that_is_made() {
        let source = include_str!("check.rs");
        for (subject, cases) in &*FINDINGS {
            assert!(source.contains(&format!("\"{subject}\"")), "{subject}");
            for case in cases.keys() {
                assert!(source.contains(&format!("\"{case}\"")), "{subject}: {case}");
                assert_eq!(find(subject, case, &[]).subject, *subject);
            }
        }
    }

    #[test]
    fn only_a_refusal_says_that_something_is_refused() {
        let replied = |outcome, status| Reply::from_record(&ended(outcome, status), is_refusal);
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
            |status| Reply::from_record(&ended(Outcome::HttpError, Some(status)), is_no_such_model);
        assert!(matches!(replied(404), Reply::Refused(_)));
        assert!(matches!(replied(400), Reply::Refused(_)));
        assert!(matches!(replied(500), Reply::NotKnown(_)));
    }
}
