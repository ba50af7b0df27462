//! `guidellm`'s `benchmarks.json`: one document with one result for each load.

use inferometer_analysis::Interval;
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource, Tool,
    ToolResult,
};

use super::mapping::{self, Mapping, Shape, shown};
use super::records::{Records, newlines, not_json_there};
use super::{INCOMPLETE, ImportError, Imported, document};
use crate::json::Json;

/// What it calls inter-token latency is one mean for each answer, which counts once for each token.
const LATENCIES: [(&str, f64, LatencyKind, CountsFrom, Grain); 4] = [
    ("time_to_first_token_ms", 1.0, LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    ("inter_token_latency_ms", 1.0, LatencyKind::Tpot, CountsFrom::Output, Grain::Unknown),
    ("request_latency", 1e3, LatencyKind::E2e, CountsFrom::Send, Grain::Request),
    ("request_scheduled_latency", 1e3, LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
];

/// Where its versions write how many requests were to be sent.
const PLANNED: [&str; 4] = [
    "config.constraints.max_requests.args.count",
    "config.constraints.max_requests.max_num",
    "scheduler.constraints.max_requests.max_num",
    "args.max_number",
];

pub(super) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut records = Records::default();
    match serde_json::from_str::<Json>(text) {
        Ok(document) => {
            let benchmarks = document.get("benchmarks").map_or(&[][..], Json::items);
            for (number, benchmark) in benchmarks.iter().enumerate() {
                take(&mut records, benchmark, number, 1, &document);
                if records.are_too_many() {
                    break;
                }
            }
        }
        Err(error) => read_damaged(text, &error, &mut records),
    }
    records.finish()
}

fn take(records: &mut Records, benchmark: &Json, number: usize, line: u32, whole: &Json) {
    if benchmark.at("metrics").is_some() {
        records.push(read_benchmark(benchmark, number, line, whole));
    } else {
        let reason = format!("holds benchmarks.{number}, which has no `metrics`");
        records.break_off(line, reason);
    }
}

/// Those benchmarks that stand whole before the damage.
fn read_damaged(text: &str, error: &serde_json::Error, records: &mut Records) {
    // The description of the run has a list of this name too, of other things.
    let list = text.match_indices("\"benchmarks\"").find_map(|(key, name)| {
        let after = text[key + name.len()..].trim_start_matches([' ', '\t', '\r', '\n', ':']);
        let inside = after.strip_prefix('[')?.trim_start();
        inside.starts_with('{').then_some(text.len() - inside.len())
    });
    let mut at = list.unwrap_or(text.len());
    let mut line = newlines(&text[..at]).saturating_add(1);
    for number in 0.. {
        let rest = text[at..].trim_start_matches([' ', '\t', '\r', '\n', ',']);
        let start = text.len() - rest.len();
        line = line.saturating_add(newlines(&text[at..start]));
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        let Some(Ok(benchmark)) = values.next() else { break };
        take(records, &benchmark, number, line, &Json::Null);
        if records.are_too_many() {
            return;
        }
        at = start + values.byte_offset();
        line = line.saturating_add(newlines(&text[start..at]));
    }
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
    records.break_off(line, not_json_there(error));
}

/// `whole` is the document, which states something about all its benchmarks.
fn read_benchmark(benchmark: &Json, number: usize, line: u32, whole: &Json) -> ToolResult {
    let mut common = Mapping::new(whole, String::new());
    let mut found = Mapping::new(benchmark, format!("benchmarks.{number}"));
    let mean = |found: &mut Mapping<'_>, metric: &str| {
        // A tool that served nothing writes a mean of zero, which is a rate all the same.
        found.figure(&format!("metrics.{metric}.successful.mean"))
    };
    let started = found.first(&["start_time", "run_stats.start_time"], Mapping::find);
    let model = || common.first(&["config.spec.backend.model", "args.model"], Mapping::name);
    let mut result = ToolResult {
        model: found.name("config.backend.model").or_else(model),
        source: ResultSource {
            version: common.name("metadata.guidellm_version"),
            name: found.first(&["config.id_", "id_"], Mapping::name).unwrap_or_default(),
            ..document(Tool::GuideLlm, line)
        },
        tokenizer: common.first(&["config.spec.tokenizer.model", "args.processor"], Mapping::name),
        backend: found.name("config.backend.kind"),
        started: started.and_then(Json::number).map(|moment| moment.to_string()),
        duration_s: found.figure("duration"),
        request_throughput: mean(&mut found, "requests_per_second"),
        request_goodput: mean(&mut found, "request_goodput"),
        output_throughput: mean(&mut found, "output_tokens_per_second"),
        total_token_throughput: mean(&mut found, "tokens_per_second"),
        input_tokens: found.count("metrics.prompt_token_count.successful.total_sum"),
        output_tokens: found.count("metrics.output_token_count.successful.total_sum"),
        peak_concurrent_requests: found.count("metrics.request_concurrency.total.max"),
        requests_planned: found.first(&PLANNED, Mapping::count),
        ..ToolResult::default()
    };
    let mut total = |status: &str| {
        let paths = ["metrics.request_totals", "request_totals"];
        paths.iter().find_map(|path| found.count(&format!("{path}.{status}")))
    };
    result.completed = total("successful");
    result.failed = total("errored");
    // A limit of time leaves some on their way, and what was begun is no plan.
    total("total");
    if let Some(incomplete) = total("incomplete").filter(|incomplete| 0 < *incomplete) {
        result.metadata.push((INCOMPLETE.to_owned(), incomplete.to_string()));
    }
    load(&mut found, &mut result);
    latencies(&mut found, &mut result);
    result.requests = read_requests(&mut found, &result);
    pass_over(&mut found);
    found.finish(result)
}

/// Even gaps, or those of a Poisson process; the other strategies send as the server allows.
fn load(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let places = ["config.strategy", "args.strategy", "scheduler.strategy"];
    let Some(at) = places.iter().find(|path| found.find(&format!("{path}.type_")).is_some()) else {
        return;
    };
    let kind = found.name(&format!("{at}.type_")).unwrap_or_default();
    let rate = found.positive(&format!("{at}.rate"));
    let cap = found.small_count(&format!("{at}.max_concurrency"));
    let streams = found.small_count(&format!("{at}.streams"));
    let (request_rate, burstiness, max_concurrency) = match kind.as_str() {
        "constant" => (rate.map(ResultRate::PerSecond), Some(f64::INFINITY), None),
        "poisson" => (rate.map(ResultRate::PerSecond), Some(1.0), None),
        "synchronous" => (Some(ResultRate::Unlimited), None, Some(1)),
        "concurrent" => (Some(ResultRate::Unlimited), None, streams.or(cap)),
        "throughput" => (Some(ResultRate::Unlimited), None, cap),
        _ => (None, None, None),
    };
    result.request_rate = request_rate;
    result.burstiness = burstiness;
    // Of an open load it is a bound of the program, far above what any server lets it reach.
    result.max_concurrency = max_concurrency;
    result.metadata.push(("strategy".to_owned(), kind));
    found.pass_over(&[&format!("{at}.worker_count"), &format!("{at}.random_seed")]);
}

fn latencies(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let confidence = found.figure("config.confidence");
    let length = |found: &mut Mapping<'_>, end: &str| {
        found.count(&format!("metrics.output_token_count.successful.{end}"))
    };
    let lengths = length(found, "min").zip(length(found, "max"));
    let is_one_length = lengths.is_some_and(|(shortest, longest)| shortest == longest);
    for (name, to_ms, kind, from, grain) in LATENCIES {
        // With answers of one length it makes no difference how often each counts.
        let is_weighted = grain == Grain::Unknown;
        let grain = if is_weighted && is_one_length { Grain::Request } else { grain };
        let path = format!("metrics.{name}.successful");
        let empty = ResultLatency::new(kind, from, grain);
        let Some(mut latency) = found.latency(&path, Shape { to_ms, rank }, empty) else {
            continue;
        };
        if is_weighted {
            latency.n = None;
        }
        if confidence == Some(0.95) {
            intervals(found, &path, to_ms, &mut latency);
        }
        result.latencies.push(latency);
    }
}

fn intervals(found: &mut Mapping<'_>, path: &str, to_ms: f64, latency: &mut ResultLatency) {
    let interval = |json: &Json| {
        let end = |key: &str| json.get(key).and_then(Json::number).map(|value| value * to_ms);
        Interval::new(end("lower")?, end("upper")?)
    };
    let mean = found.find(&format!("{path}.mean_ci")).and_then(interval);
    latency.intervals_ms.extend(mean.map(|interval| ("mean".to_owned(), interval)));
    let ranks = found.find(&format!("{path}.percentile_cis")).map_or(&[][..], Json::entries);
    for (key, json) in ranks {
        latency.intervals_ms.extend(rank(key).zip(interval(json)));
    }
}

/// `p99` and `p05` are whole; `p999` and `p001` have a tenth.
fn rank(key: &str) -> Option<String> {
    let digits = key.strip_prefix('p')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match digits.len() {
        2 => Some(digits.parse::<u8>().ok()?.to_string()),
        3 => Some(format!("{}.{}", digits[..2].parse::<u8>().ok()?, &digits[2..])),
        _ => None,
    }
}

/// The same figures over other requests, and how the program itself was set up.
fn pass_over(found: &mut Mapping<'_>) {
    let metrics = [
        "requests_per_second",
        "request_goodput",
        "output_tokens_per_second",
        "tokens_per_second",
        "prompt_token_count",
        "output_token_count",
        "request_concurrency",
    ];
    for metric in LATENCIES.iter().map(|(name, ..)| name).chain(&metrics) {
        for status in ["successful", "errored", "incomplete", "total"] {
            found.pass_over(&[&format!("metrics.{metric}.{status}")]);
        }
    }
    found.pass_over(&["type_", "end_time", "config", "scheduler_state", "scheduler_metrics"]);
}

/// Nothing where the file keeps only some of the requests.
fn read_requests(found: &mut Mapping<'_>, result: &ToolResult) -> Option<Vec<ResultRequest>> {
    let listed = found.find("requests")?;
    let mut requests = Vec::new();
    for status in ["successful", "errored", "incomplete"] {
        let all = listed.get(status).map_or(&[][..], Json::items);
        requests.extend(all.iter().map(|json| request(json, status)));
    }
    let good = listed.get("successful").map_or(0, |all| all.items().len()) as u64;
    if requests.is_empty() {
        return None;
    }
    if result.completed != Some(good) {
        found.note("requests", "is a sample of the requests, not all of them");
        return None;
    }
    Some(requests)
}

fn request(json: &Json, status: &str) -> ResultRequest {
    let figure = |keys: &[&str]| keys.iter().find_map(|key| mapping::figure(json.at(key)?).ok());
    let count = |key: &str| json.at(key).and_then(|value| mapping::count(value).ok());
    let error = json.at("info.error").or_else(|| json.at("error")).and_then(Json::text);
    ResultRequest {
        start_s: figure(&["request_start_time", "start_time"]),
        input_tokens: count("prompt_tokens"),
        output_tokens: count("output_tokens"),
        ttft_s: figure(&["time_to_first_token_ms"]).map(|ms| ms / 1e3),
        e2e_s: figure(&["request_latency"]),
        text: json.at("output").and_then(Json::text).map(str::to_owned),
        error: Some(match (status, error) {
            ("successful", _) => String::new(),
            (_, Some(error)) => shown(error),
            (status, None) => status.to_owned(),
        }),
        ..ResultRequest::default()
    }
}
