//! llm-d's Benchmark Report of version 0.2: read as YAML or JSON, and written as JSON, which its YAML
//! readers read too.
//!
//! The report takes the figures of many tools and names the tool; what they mean follows from
//! that. So a latency is written only where a reader takes it for no more than it is. Missing values
//! are left out, because the report's readers refuse some nulls.

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, Mark, ResultLatency, ResultRate, Tool, ToolResult,
};

use crate::export::{ExportError, cut, mean, measured_by, moment, pretty};
use crate::import::{INCOMPLETE, ImportError, Imported, Mapping, Records, not_json_there, shown};
use crate::json::{Json, object};
use crate::vllm::read::verdict;

const VERSION: &str = "0.2";
const RESULTS: &str = "results.request_performance.aggregate";
const LATENCIES: [(&str, LatencyKind); 4] = [
    ("time_to_first_token", LatencyKind::Ttft),
    ("time_per_output_token", LatencyKind::Tpot),
    ("inter_token_latency", LatencyKind::Itl),
    ("request_latency", LatencyKind::E2e),
];
/// Tools that are known to count from the moment at which a request is sent.
const FROM_SEND: [&str; 8] = [
    "inference-perf",
    "vllm-benchmark",
    "inferencemax",
    "guidellm",
    "aiperf",
    "sglang",
    "genai-bench",
    OURS,
];
/// Tools whose total is the number of requests that were asked for; that of the others is how many
/// were begun.
const TOTAL_IS_PLAN: [&str; 3] = ["vllm-benchmark", "inferencemax", OURS];
/// Reports that we wrote: a gap is one for each token, and a simulation is marked.
const OURS: &str = "inferometer";
/// Keywords of ours: a verdict behind the first, and that what did not complete may have failed.
const VERDICT: &str = "inferometer_verdict:";
const FAILURES_NOT_COUNTED: &str = "failures not counted";

pub(crate) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut records = Records::default();
    if text.trim_start().starts_with('{') {
        let document = serde_json::from_str(text).map_err(|error| {
            (u32::try_from(error.line()).unwrap_or(u32::MAX), not_json_there(&error))
        });
        take(&mut records, 1, document);
        return records.finish();
    }
    for (line, document) in documents(text) {
        if records.are_too_many() {
            break;
        }
        take(&mut records, line, yaml(line, document));
    }
    records.finish()
}

fn take(records: &mut Records, line: u32, document: Result<Json, (u32, String)>) {
    match document.and_then(|json| check(&json).map(|()| json).map_err(|reason| (line, reason))) {
        Ok(json) => records.push(read_report(&json, line)),
        Err((line, reason)) => records.break_off(line, reason),
    }
}

/// A report is one document; several may stand in one file with `---` between them. Each with the
/// line on which it begins, without those that say nothing.
fn documents(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let mut rest = Some((1_u32, 0));
    let all = std::iter::from_fn(move || {
        let (line, start) = rest.take()?;
        let mut at = start;
        for (number, written) in (line..).zip(text[start..].split_inclusive('\n')) {
            if at > start && parted(written).is_some() {
                rest = Some((number, at));
                break;
            }
            at += written.len();
        }
        Some((line, &text[start..at]))
    });
    all.filter(|(_, document)| document.lines().any(|line| says(parted(line).unwrap_or(line))))
}

/// What follows the sign that separates documents, on its line.
fn parted(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("---")?;
    rest.chars().next().is_none_or(char::is_whitespace).then_some(rest)
}

/// Neither blank, nor a comment, a directive or a document's end.
fn says(line: &str) -> bool {
    let line = line.trim();
    !(line.is_empty() || line.starts_with(['#', '%']) || line == "...")
}

fn yaml(line: u32, document: &str) -> Result<Json, (u32, String)> {
    // A load without a bound is written as `.inf`.
    let options = serde_saphyr::options! {
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(document, options).map_err(|error| {
        let passed = error.location().map_or(0, |location| location.line().saturating_sub(1));
        let line = line.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
        let message = error.to_string();
        (line, format!("is not YAML: {}", shown(message.lines().next().unwrap_or_default())))
    })
}

fn check(document: &Json) -> Result<(), String> {
    let version = match document.get("version") {
        Some(Json::Text(version)) => version.clone(),
        Some(Json::Number(version)) => version.to_string(),
        _ => return Err("has no `version`".to_owned()),
    };
    if !(version == VERSION || version.starts_with("0.2.")) {
        return Err(format!(
            "is a report of version {}, and {VERSION} is read; convert it with llm-d's own \
             benchmark-report tool",
            shown(&version)
        ));
    }
    match document.at(RESULTS) {
        Some(_) => Ok(()),
        None => Err(format!("has no `{RESULTS}`")),
    }
}

fn read_report(report: &Json, line: u32) -> ToolResult {
    let mut found = Mapping::new(report, String::new());
    let of = |name: &str| format!("{RESULTS}.{name}");
    let keywords = report.at("run.keywords").map_or(&[][..], Json::items);
    let keywords = || keywords.iter().filter_map(Json::text);
    let mut result = found.result(Tool::LlmD, line);
    result.source.simulated = keywords().any(|word| word == "simulated");
    result.duration_s = found.name("run.time.duration").and_then(|text| seconds(&text));
    let begun = found.count(&of("requests.total"));
    let incomplete = found.count(&of("requests.incomplete")).unwrap_or(0);
    let ended = begun.and_then(|begun| begun.checked_sub(incomplete));
    // Without a count of failures it is not known how many completed.
    result.completed =
        ended.zip(result.failed).and_then(|(ended, failed)| ended.checked_sub(failed));
    let tool = result.backend.as_deref();
    result.requests_planned =
        begun.filter(|_| tool.is_some_and(|tool| TOTAL_IS_PLAN.contains(&tool)));
    if incomplete > 0 {
        result.metadata.push((INCOMPLETE.to_owned(), incomplete.to_string()));
    }
    read_load(&mut found, &mut result);
    read_stack(&mut found, &mut result);
    read_latencies(&mut found, &mut result);
    found.describe(&mut result, "run.description", "description");
    // How our reports state what the format has no field for.
    for word in keywords() {
        if word == FAILURES_NOT_COUNTED && result.failed.is_none() {
            result.completed = ended;
        } else if let Some(key) = word.strip_prefix(VERDICT) {
            result.verdict = verdict(key);
        }
    }
    found.finish(result)
}

fn read_load(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let at = "scenario.load.standardized";
    let rate = found.positive(&format!("{at}.rate_qps"));
    // No bound at all is written as infinity.
    let concurrency = format!("{at}.concurrency");
    let bound = found.find(&concurrency);
    let is_bound = bound.and_then(Json::number).is_some_and(f64::is_finite);
    result.max_concurrency = is_bound.then(|| found.small_count(&concurrency)).flatten();
    // JSON has no infinity.
    let is_endless = bound
        .is_some_and(|bound| bound.text() == Some("inf") || bound.number() == Some(f64::INFINITY));
    let is_closed = is_endless || result.max_concurrency.is_some();
    let closed = is_closed.then_some(ResultRate::Unlimited);
    result.request_rate = rate.map(ResultRate::PerSecond).or(closed);
    found.describe(result, &format!("{at}.tool_version"), "load_tool_version");
}

/// The engines of the stack: of several, the model and the spread are taken where all agree.
fn read_stack(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let parts = found.find("scenario.stack").map_or(0, |stack| stack.items().len());
    let mut models = Vec::new();
    let mut spreads = Vec::new();
    for place in 0..parts {
        let at = format!("scenario.stack.{place}.standardized");
        models.extend(found.name(&format!("{at}.model.name")));
        spreads.extend(found.small_count(&format!("{at}.accelerator.parallelism.tp")));
    }
    models.dedup();
    spreads.dedup();
    result.model = models.pop().filter(|_| models.is_empty());
    result.tensor_parallel = spreads.pop().filter(|_| spreads.is_empty());
}

fn read_latencies(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let tool = result.backend.clone().unwrap_or_default();
    for (name, kind) in LATENCIES {
        let path = format!("{RESULTS}.latency.{name}");
        let Some(to_ms) = found.factor_to_ms(&path, "units") else { continue };
        let (from, grain) = meaning(kind, &tool);
        let empty = ResultLatency::new(kind, from, grain);
        result.latencies.extend(found.latency(&path, to_ms, rank, empty));
    }
    let mean = |kind| result.latency(kind).and_then(|latency| latency.mean_ms);
    if let Some((e2e, ttft)) = mean(LatencyKind::E2e).zip(mean(LatencyKind::Ttft))
        && e2e < ttft
    {
        let path = format!("{RESULTS}.latency.request_latency");
        found.note(&path, "has a mean below that of the first token, which no answer can have");
        result.latencies.retain(|latency| latency.kind != LatencyKind::E2e);
    }
}

/// A report takes the figures of another tool over, and with them what that tool means by them.
fn meaning(kind: LatencyKind, tool: &str) -> (CountsFrom, Grain) {
    match kind {
        LatencyKind::Ttft | LatencyKind::E2e if FROM_SEND.contains(&tool) => {
            (CountsFrom::Send, Grain::Request)
        }
        LatencyKind::Ttft | LatencyKind::E2e => (CountsFrom::Unknown, Grain::Request),
        // Of that tool it may have the first token in it: the report does not say which it took.
        LatencyKind::Tpot if tool == "guidellm" => (CountsFrom::Output, Grain::Unknown),
        LatencyKind::Tpot => (CountsFrom::Output, Grain::Request),
        LatencyKind::Itl => {
            let grain = match tool {
                OURS => Grain::Token,
                "vllm-benchmark" => Grain::Chunk,
                // Of aiperf it is one mean for each answer.
                _ => Grain::Unknown,
            };
            (CountsFrom::Output, grain)
        }
    }
}

/// `p99p9` is 99.9.
fn rank(key: &str) -> Option<String> {
    let rank = key.strip_prefix('p')?.replace('p', ".");
    let is_rank = rank.parse::<f64>().is_ok_and(|rank| (0.0..=100.0).contains(&rank));
    (is_rank && rank.starts_with(|c: char| c.is_ascii_digit())).then_some(rank)
}

/// `PT1M2.5S`, as ISO 8601 has it; nothing with days or above, which no benchmark takes.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.strip_prefix("PT")?;
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let value: f64 = rest[..end].parse().ok()?;
        total += value
            * match rest.as_bytes()[end] {
                b'H' => 3600.0,
                b'M' => 60.0,
                b'S' => 1.0,
                _ => return None,
            };
        rest = &rest[end + 1..];
    }
    (total > 0.0).then_some(total)
}

/// For what the report requires and a result does not have.
const UNKNOWN: &str = "unknown";

/// The percentiles that a report has room for.
const RANKS: [&str; 11] = ["0.1", "1", "5", "10", "25", "50", "75", "90", "95", "99", "99.9"];

/// The whole file.
pub fn document(result: &ToolResult) -> Result<String, ExportError> {
    let aggregate = object! {
        "latency": latencies(result),
        "requests": requests(result),
        "throughput": throughput(result),
    };
    pretty(&object! {
        "version": VERSION,
        "run": run(result),
        "scenario": object! {"stack": stack(result), "load": load(result)},
        "results": object! {"request_performance": object! {"aggregate": aggregate}},
    })
}

fn run(result: &ToolResult) -> Json {
    let is_invalid = result.marks.contains(&Mark::Invalid);
    let remarks = [
        Some(format!("measured by {}", measured_by(&result.source))),
        result.source.simulated.then(|| "no server was measured".to_owned()),
        cut(result),
        is_invalid.then(|| "judged invalid by the tool that measured it".to_owned()),
    ];
    // What a report has no field for.
    let is_uncounted = result.completed.is_some() && result.failed.is_none();
    let keywords = [
        result.source.simulated.then(|| "simulated".to_owned()),
        is_uncounted.then(|| FAILURES_NOT_COUNTED.to_owned()),
        result.verdict.map(|verdict| format!("{VERDICT}{verdict}")),
    ];
    let keywords: Vec<Json> = keywords.into_iter().flatten().map(Json::from).collect();
    object! {
        "description": remarks.into_iter().flatten().collect::<Vec<_>>().join("; "),
        "keywords": (!keywords.is_empty()).then_some(keywords),
        "time": object! {
            "duration": result.duration_s.map(|s| format!("PT{s}S")),
            "start": result.started.as_deref().and_then(moment),
        },
        "uid": result.source.name.as_str(),
    }
}

/// The server, of which only the model and its tensor parallelism are known.
fn stack(result: &ToolResult) -> Option<Vec<Json>> {
    let parallelism = |tp: u32| object! {"parallelism": object! {"tp": tp}};
    Some(vec![object! {
        "metadata": object! {"cfg_id": UNKNOWN, "label": "server"},
        "native": object! {},
        "standardized": object! {
            "accelerator": result.tensor_parallel.map(parallelism),
            "kind": "generic",
            "model": object! {"name": result.model.as_deref()?},
            "tool": UNKNOWN,
            "tool_version": UNKNOWN,
        },
    }])
}

/// `None` where the length of prompts is not known: a report has no load without it.
fn load(result: &ToolResult) -> Option<Json> {
    let length = |tokens: f64| object! {"distribution": "other", "value": tokens};
    // JSON has no infinity, and the report's readers take this text for it.
    let (rate, endless) = match result.request_rate {
        Some(ResultRate::PerSecond(rate)) => (Some(rate), None),
        Some(ResultRate::Unlimited) => (None, Some(Json::from("inf"))),
        None => (None, None),
    };
    let standardized = object! {
        "concurrency": result.max_concurrency.map(Json::from).or(endless),
        "input_seq_len": length(mean(result.input_tokens, result.completed)?),
        "output_seq_len": mean(result.output_tokens, result.completed).map(length),
        "rate_qps": rate,
        "source": UNKNOWN,
        "tool": load_tool(result),
        "tool_version": result.source.version.as_deref().unwrap_or(UNKNOWN),
    };
    Some(object! {"metadata": object! {}, "native": object! {}, "standardized": standardized})
}

/// The report's names of tools.
fn load_tool(result: &ToolResult) -> &str {
    let tool = result.source.tool;
    let named = (tool == Tool::LlmD).then(|| result.backend.as_deref().unwrap_or(UNKNOWN));
    named.unwrap_or(if tool == Tool::Vllm { "vllm-benchmark" } else { tool.key() })
}

/// Requests that were planned and neither completed nor failed are incomplete, so that a run that
/// was cut short is seen to be one.
fn requests(result: &ToolResult) -> Option<Json> {
    let ended = result.completed? + result.failed.unwrap_or(0);
    let total = result.requests_planned.map_or(ended, |planned| planned.max(ended));
    let lengths = |tokens| mean(tokens, result.completed).map(|mean| single("count", mean));
    Some(object! {
        "failures": result.failed,
        "incomplete": (ended < total).then(|| total - ended),
        "input_length": lengths(result.input_tokens),
        "output_length": lengths(result.output_tokens),
        "total": total,
    })
}

fn latencies(result: &ToolResult) -> Json {
    let member = |(name, kind): (&str, LatencyKind)| {
        let is_per_token = matches!(kind, LatencyKind::Tpot | LatencyKind::Itl);
        let units = if is_per_token { "ms/token" } else { "ms" };
        let found = latency_of(result, kind).and_then(|latency| statistics(units, latency));
        (name.to_owned(), found.into())
    };
    sorted(LATENCIES.map(member).into())
}

fn sorted(mut members: Vec<(String, Json)>) -> Json {
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    Json::Map(members)
}

/// The latency that a reader takes for what it is; else one of which a reader takes something for
/// unknown, as its place in the report may hold many things. That is never a latency from the
/// schedule.
fn latency_of(result: &ToolResult, kind: LatencyKind) -> Option<&ResultLatency> {
    let (from, grain) = meaning(kind, load_tool(result));
    let of_kind = || result.latencies.iter().filter(|latency| latency.kind == kind);
    let exact = of_kind().find(|latency| (latency.from, latency.grain) == (from, grain));
    exact.or_else(|| {
        of_kind().find(|latency| {
            latency.from != CountsFrom::Schedule
                && [latency.from, CountsFrom::Unknown].contains(&from)
                && [latency.grain, Grain::Unknown].contains(&grain)
        })
    })
}

fn throughput(result: &ToolResult) -> Json {
    let input = result.total_token_throughput.zip(result.output_throughput);
    let input = input.map(|(total, output)| total - output).filter(|input| *input >= 0.0);
    let tokens = |rate: Option<f64>| rate.map(|rate| single("tokens/s", rate));
    object! {
        "input_token_rate": tokens(input),
        "output_token_rate": tokens(result.output_throughput),
        "request_rate": result.request_throughput.map(|rate| single("queries/s", rate)),
        "total_token_rate": tokens(result.total_token_throughput),
    }
}

fn single(units: &str, mean: f64) -> Json {
    object! {"mean": mean, "units": units}
}

/// `None` without a mean, which a report requires.
fn statistics(units: &str, latency: &ResultLatency) -> Option<Json> {
    let named = [
        ("max", latency.max_ms),
        ("mean", Some(latency.mean_ms?)),
        ("min", latency.min_ms),
        ("stddev", latency.std_ms),
    ];
    let named = named.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
    let rank =
        |rank: &str| (format!("p{}", rank.replace('.', "p")), latency.percentile_ms(rank).into());
    let units = [("units".to_owned(), units.into())];
    Some(sorted(named.chain(RANKS.map(rank)).chain(units).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_ranks_are_read_as_they_are_written() {
        assert_eq!(seconds("PT49.5S"), Some(49.5));
        assert_eq!(seconds("PT1H2M3S"), Some(3723.0));
        assert_eq!(seconds("P1D"), None);
        assert_eq!(seconds("PT5µ"), None);
        assert_eq!(rank("p99p9").as_deref(), Some("99.9"));
        assert_eq!(rank("p0p1").as_deref(), Some("0.1"));
        assert_eq!(rank("p50").as_deref(), Some("50"));
        assert_eq!(rank("pinf"), None);
    }
}
