//! Whether answers come as they should: streamed and whole, as long as asked, on open connections.

use inferometer_load::Probe;
use inferometer_load::answer::Failure as LoadFailure;
use inferometer_load::target::Target;
use inferometer_model::observations::{Connections, UsageAsk};
use inferometer_model::record::{Event, FinishReason};
use inferometer_model::{Outcome, RequestRecord};

use super::Finding;
use crate::failure::Failure;
use crate::preflight::{PROBE_PROMPT, ask_once};

const TOKENS: u32 = 16;
const AT_ONCE: usize = 4;

pub(super) fn examine(target: &Target) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    if target.streaming {
        let Probe { record, connections } = ask_once(target.clone(), PROBE_PROMPT, TOKENS)?;
        findings.extend(stream(target, &record));
        findings.push(keep_alive(connections));
        findings.extend(length(&record));
    }
    let whole = Target { streaming: false, usage: UsageAsk::None, ..target.clone() };
    let record = ask_once(whole, PROBE_PROMPT, TOKENS)?.record;
    findings.push(match words_of(&record) {
        None => Finding::good("whole answers", "answers without streaming too"),
        Some(words) => Finding::note("whole answers", format!("not without streaming: {words}")),
    });
    findings.push(at_once(target)?);
    Ok(findings)
}

/// Why it failed, or `None`.
pub(super) fn words_of(record: &RequestRecord) -> Option<String> {
    let ending = &record.ending;
    if ending.outcome == Outcome::Ok {
        return None;
    }
    let (outcome, cause, message) = (ending.outcome, ending.cause, ending.message.clone());
    let status = record.head.map_or_else(String::new, |head| format!("HTTP {}, ", head.status));
    Some(format!("{status}{}", LoadFailure { outcome, cause, message }.words()))
}

fn stream(target: &Target, record: &RequestRecord) -> Vec<Finding> {
    if let Some(words) = words_of(record) {
        let remedy = "a run would fail the same way; mend the server, or try --no-stream";
        return vec![Finding::problem("streaming", words, remedy)];
    }
    let outputs: Vec<&Event> = record.events.iter().filter(|event| event.is_output()).collect();
    let mut findings = vec![Finding::good(
        "streaming",
        format!("{} output events in {} reads", outputs.len(), record.reads.len()),
    )];
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
    let first = record.events.first();
    if first.is_some_and(|event| !event.is_output()) {
        findings.push(Finding::note(
            "first event",
            "the stream begins without output (a role); TTFT is taken at the first token all the same",
        ));
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
            "closed after each answer: every request of a run dials first, which is in its send lag",
        ),
    }
}

/// Whether the server keeps to the length that it was asked for.
fn length(record: &RequestRecord) -> Option<Finding> {
    let tokens = record.usage?.completion_tokens?;
    let stopped = record.finishes.iter().any(|finish| finish.reason == FinishReason::Stop);
    let asked = u64::from(TOKENS);
    Some(if tokens == asked {
        Finding::good("answer length", format!("{TOKENS} tokens asked for, {tokens} came"))
    } else if tokens < asked && stopped {
        Finding::note(
            "answer length",
            format!("{TOKENS} tokens asked for, {tokens} came: the model ended its answer"),
        )
    } else {
        Finding::problem(
            "answer length",
            format!("{TOKENS} tokens asked for, {tokens} came"),
            "the server does not keep to max_tokens: compare runs by tokens, not by requests",
        )
    })
}

/// Some servers end one answer when another request comes.
fn at_once(target: &Target) -> Result<Finding, Failure> {
    let asked: Vec<Result<Probe, Failure>> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(|| ask_once(target.clone(), PROBE_PROMPT, TOKENS)))
            .collect();
        let joined = asking.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::internal("a probe ended abnormally")))
        });
        joined.collect()
    });
    let mut failed = Vec::new();
    for probe in asked {
        failed.extend(words_of(&probe?.record));
    }
    Ok(match failed.first() {
        None => {
            Finding::good("several at once", format!("{AT_ONCE} requests at once all ended well"))
        }
        Some(words) => Finding::problem(
            "several at once",
            format!("{} of {AT_ONCE} requests at once failed: {words}", failed.len()),
            "the server does not serve requests side by side; look for its concurrency settings",
        ),
    })
}
