//! What an endpoint supports and what is wrong with it, found by requests: one line for each finding,
//! and a remedy for each problem.

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
use serde::Serialize;
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
        findings.push(keep_alive(connections));
        findings.extend(length(&record));
    }
    let whole = Target { streaming: false, usage: UsageAsk::None, ..target.clone() };
    let record = ask_once(whole, PROBE_PROMPT, ANSWER_TOKENS)?.record;
    findings.push(match failure_of(&record) {
        None => Finding::good("whole answers", "works without streaming too"),
        Some(words) => Finding::note("whole answers", format!("fails without streaming: {words}")),
    });
    findings.push(at_once(target)?);
    report("testing which fields it accepts …");
    // Embeddings and scores are neither sampled nor ended.
    if target.api.generates() {
        findings.push(pinned(target)?);
        findings.push(sampling(target)?);
    }
    findings.push(unknown_field(target)?);
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
        Some(reply) => Finding::good("/metrics", metrics_of(&reply)),
        None => Finding::note("/metrics", "none: queue and cache of the server cannot be read")
            .remedy("llama-server needs --metrics; vLLM and SGLang serve it by default or by flag"),
    });
    if let Some(version) = get(target, "/version")? {
        let words = String::from_utf8_lossy(&version.body).trim().to_owned();
        findings.push(Finding::good("/version", words));
    }
    findings.push(other_apis(target)?);
    Ok(findings)
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It works.
    Good,
    /// Worth knowing; nothing is wrong.
    Note,
    /// It affects measurements.
    Problem,
}

/// What was found about one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Finding {
    /// What was examined.
    pub subject: &'static str,
    /// How serious it is.
    pub state: State,
    /// What was found, as a sentence.
    pub words: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Finding {
    /// Something that works.
    pub fn good(subject: &'static str, words: impl Into<String>) -> Self {
        Self { subject, state: State::Good, words: words.into(), remedy: None }
    }

    /// Something worth knowing.
    pub fn note(subject: &'static str, words: impl Into<String>) -> Self {
        Self { state: State::Note, ..Self::good(subject, words) }
    }

    /// Something that affects measurements.
    pub fn problem(subject: &'static str, words: impl Into<String>, remedy: &str) -> Self {
        Self { state: State::Problem, ..Self::good(subject, words) }.remedy(remedy)
    }

    /// Adds what to do about it.
    pub fn remedy(self, remedy: &str) -> Self {
        Self { remedy: Some(remedy.to_owned()), ..self }
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
        let remedy = "a run would fail in the same way; repair the server, or try --no-stream";
        return vec![Finding::problem("streaming", words, remedy)];
    }
    let outputs = record.events.iter().filter(|event| event.is_output()).count();
    let words = format!("{outputs} output events in {} reads", record.reads.len());
    let mut findings = vec![Finding::good("streaming", words)];
    findings.push(match target.usage {
        UsageAsk::Continuous => {
            Finding::good("token counts", "usage on every event: the tokens of each are known")
        }
        UsageAsk::Final if record.usage.is_some() => Finding::good(
            "token counts",
            "usage at the end; ITL per token needs usage on every event, so ICL is given instead",
        ),
        UsageAsk::Final | UsageAsk::None => Finding::problem(
            "token counts",
            "the stream reports no usage",
            "lengths and throughput will be counted by events, and the page will say so",
        ),
    });
    if record.events.first().is_some_and(|event| !event.is_output()) {
        let words = "the stream begins without output (a role); TTFT ends at the first token";
        findings.push(Finding::note("first event", words));
    }
    if !record.done.seen {
        let words = "the stream ends without [DONE]; a finish reason and a clean end are enough";
        findings.push(Finding::note("end of stream", words));
    }
    findings
}

fn keep_alive(connections: Connections) -> Finding {
    match connections {
        Connections::Reuse | Connections::PerUser => {
            Finding::good("connections", "kept open after an answer")
        }
        Connections::New => Finding::note(
            "connections",
            "closed after each answer: every request of a run connects first, which adds to its \
             send lag",
        ),
    }
}

/// Whether the server respects `max_tokens`.
fn length(record: &RequestRecord) -> Option<Finding> {
    let tokens = record.usage?.completion_tokens?;
    let stopped = record.finishes.iter().any(|finish| finish.reason == FinishReason::Stop);
    let words = format!("{ANSWER_TOKENS} tokens requested, {tokens} received");
    let requested = u64::from(ANSWER_TOKENS);
    Some(if tokens == requested {
        Finding::good("answer length", words)
    } else if tokens < requested && stopped {
        Finding::note("answer length", format!("{words}: the model ended its answer"))
    } else {
        let remedy =
            "the server does not respect max_tokens: compare runs by tokens, not by requests";
        Finding::problem("answer length", words, remedy)
    })
}

/// Some servers end one answer when another request arrives.
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
    Ok(match failed.first() {
        None => Finding::good("several at once", format!("{AT_ONCE} requests at once succeeded")),
        Some(words) => Finding::problem(
            "several at once",
            format!("{} of {AT_ONCE} requests at once failed: {words}", failed.len()),
            "the server does not serve requests side by side; check its concurrency settings",
        ),
    })
}

const TOKENS: u32 = 4;
/// Long enough that most models would end their answer before it.
const PINNED_TOKENS: u32 = 48;

fn pinned(target: &Target) -> Result<Finding> {
    let note = |words: &str| {
        Finding::note("ignore_eos", words)
            .remedy("nothing to do: a run leaves them out; its audit shows the length of answers")
    };
    Ok(match ask_pinning(target)? {
        Pinning::Accepted(pinned) => return kept(target, pinned),
        Pinning::Refused => {
            note("ignore_eos and min_tokens are refused: answers may end before their length")
        }
        Pinning::NoSuchFields => {
            note("this API has no such fields: answers may end before their length")
        }
        Pinning::NotKnown => note("not known: the request with ignore_eos failed"),
    })
}

/// Whether the accepted fields have an effect.
fn kept(target: &Target, pinned: PinnedOutput) -> Result<Finding> {
    let names = match (pinned.ignore_eos, pinned.min_tokens) {
        (true, true) => "ignore_eos and min_tokens",
        (true, false) => "ignore_eos",
        _ => "min_tokens",
    };
    let record = ask_once(Target { pinned, ..target.clone() }, PROBE_PROMPT, PINNED_TOKENS)?.record;
    Ok(match record.usage.and_then(|usage| usage.completion_tokens) {
        Some(tokens) if tokens == u64::from(PINNED_TOKENS) => Finding::good(
            "ignore_eos",
            format!("{names} accepted and respected: {tokens} tokens received"),
        ),
        Some(tokens) => Finding::problem(
            "ignore_eos",
            format!("{names} accepted, but {tokens} of {PINNED_TOKENS} tokens received"),
            "answers will not have the requested length; see the audit of a run",
        ),
        None => Finding::note(
            "ignore_eos",
            format!("{names} accepted; without usage the effect is not known"),
        ),
    })
}

/// How a request ended that the server may refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    Accepted,
    Refused(String),
    /// It failed for another reason.
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

    fn finding(self, accepted: Finding, refused: impl FnOnce(&str) -> Finding) -> Finding {
        match self {
            Self::Accepted => accepted,
            Self::Refused(words) => refused(&words),
            Self::NotKnown(words) => Finding::note(accepted.subject, format!("not known: {words}")),
        }
    }
}

/// Sends a request with more fields.
fn ask_with(target: &Target, more: &[(&str, Value)]) -> Result<Reply> {
    let mut fields = target.fields.clone();
    fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let tokens = probe_tokens(target.api, TOKENS);
    let record = ask_once(Target { fields, ..target.clone() }, PROBE_PROMPT, tokens)?.record;
    Ok(Reply::from_record(&record, is_refusal))
}

fn sampling(target: &Target) -> Result<Finding> {
    let fields = [("temperature", json!(0.7)), ("top_p", json!(0.9)), ("seed", json!(1))];
    let accepted = Finding::good("sampling", "temperature, top_p and seed accepted");
    Ok(ask_with(target, &fields)?.finding(accepted, |words| {
        let words = format!("temperature, top_p and seed together are refused: {words}");
        Finding::problem("sampling", words, "leave out the fields that the server names")
    }))
}

fn unknown_field(target: &Target) -> Result<Finding> {
    let ignored = "ignored without an error: a misspelt --extra-body field will have no effect";
    let reply = ask_with(target, &[("inferometer_unknown_field", json!(true))])?;
    Ok(reply.finding(Finding::note("unknown fields", ignored), |_| {
        Finding::good("unknown fields", "refused: a misspelt field is noticed")
    }))
}

fn other_model(target: &Target) -> Result<Finding> {
    let asking = Target { model: "inferometer-no-such-model".to_owned(), ..target.clone() };
    let record = ask_once(asking, PROBE_PROMPT, probe_tokens(target.api, TOKENS))?.record;
    let any = "any name is answered: the server does not report whether it serves this model";
    let reply = Reply::from_record(&record, is_no_such_model);
    Ok(reply.finding(Finding::note("model names", any), |_| {
        Finding::good("model names", "a model that it does not serve is refused")
    }))
}

fn is_no_such_model(record: &RequestRecord) -> bool {
    record.head.is_some_and(|head| matches!(head.status, 400 | 404))
}

const EXACT_TOKENS: u32 = 200;
const NO_PROMPT_LENGTH: &str = "the server does not report the length of prompts";

fn by_words(target: &Target) -> Result<Finding> {
    let Some(Correction { tokens_per_word, overhead_tokens }) = correction(target)? else {
        let remedy = "lengths stay estimates: set the model's tokenizer with --tokenizer";
        return Ok(Finding::problem("prompt length", NO_PROMPT_LENGTH, remedy));
    };
    let tokens_per_word = fmt::number(tokens_per_word);
    let words = format!(
        "reported; a generated word has {tokens_per_word} tokens, and each prompt has \
         {overhead_tokens} more (its template)"
    );
    let remedy = "for exact lengths set the model's tokenizer: --tokenizer";
    Ok(Finding::good("prompt length", words).remedy(remedy))
}

fn by_tokenizer(inputs: &Inputs, target: &Target) -> Result<Finding> {
    let text = inputs.text().framed(&[Segment { seed: 1, tokens: EXACT_TOKENS }]);
    let record = ask_once(target.clone(), &text, probe_tokens(target.api, 1))?.record;
    Ok(match record.usage.and_then(|usage| usage.prompt_tokens) {
        Some(tokens) if tokens == u64::from(EXACT_TOKENS) => {
            Finding::good("prompt length", "the server counts exactly as the tokenizer does")
        }
        Some(tokens) => Finding::note(
            "prompt length",
            format!("{EXACT_TOKENS} tokens by the tokenizer are {tokens} by the server"),
        )
        .remedy(
            "a chat template adds to each prompt: --count with-template makes it part of the \
             length; any other difference means another tokenizer",
        ),
        None => Finding::problem(
            "prompt length",
            NO_PROMPT_LENGTH,
            "the audit of a run cannot compare lengths",
        ),
    })
}

/// Sends the same prompt twice: is the second one cached?
fn cache(spec: &Spec, target: &Target) -> Result<Finding> {
    let seed = spec.seed ^ 0x6361_6368_6500;
    // Several blocks of any cache, and short enough for any context.
    let text = TextMaker::Estimating(None).bare(&[Segment { seed, tokens: 160 }]);
    let tokens = probe_tokens(target.api, 1);
    let first = ask_once(target.clone(), &text, tokens)?.record;
    let second = ask_once(target.clone(), &text, tokens)?.record;
    if [&first, &second].iter().any(|record| record.ending.outcome != Outcome::Ok) {
        return Ok(Finding::note("prefix cache", "not known: the request failed"));
    }
    Ok(match second.usage.and_then(|usage| usage.cached_tokens) {
        Some(0) => Finding::good("prefix cache", "off, as far as its usage shows"),
        Some(tokens) => Finding::note(
            "prefix cache",
            format!("on: {tokens} tokens of a prompt that was sent twice were cached"),
        )
        .remedy("prompts are unique by default; the audit of a run shows what was cached"),
        None => Finding::note("prefix cache", "its usage does not report cached tokens").remedy(
            "vLLM reports them with --enable-prompt-tokens-details; another --seed sends new prompts",
        ),
    })
}

const OTHER_API_WAIT: Duration = Duration::from_secs(20);

/// Which of the other APIs answer a small request.
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
    Ok(match &served[..] {
        [] => Finding::note("other APIs", "none of the others answered"),
        served => Finding::good("other APIs", format!("also answered: {}", served.join(", "))),
    })
}

/// Names the software whose metrics these are, by their prefix.
fn metrics_of(reply: &FetchReply) -> String {
    let text = String::from_utf8_lossy(&reply.body);
    let known = [
        ("vllm:", "vLLM"),
        ("sglang:", "SGLang"),
        ("llamacpp:", "llama.cpp"),
        ("tgi_", "TGI"),
        ("nv_inference", "Triton"),
    ];
    match known.iter().find(|(prefix, _)| text.contains(prefix)) {
        Some((_, software)) => format!("metrics of {software}"),
        None => "served, with unknown metric names".to_owned(),
    }
}

/// A page that exists; anything else is `None`.
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
