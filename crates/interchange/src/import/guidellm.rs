//! `guidellm`'s `benchmarks.json`: one document with one result for each load.

use inferometer_analysis::Interval;
use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ResultSource,
    Tool, ToolResult,
};

use super::mapping::{self, Mapping, Shape, shown};
use super::records::{Node, Records, newlines, not_json_there};
use super::{INCOMPLETE, ImportError, Imported};

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
    match serde_json::from_str::<Node>(text) {
        Ok(document) => {
            let common = Common::read(&document);
            let benchmarks = document.get("benchmarks").map_or(&[][..], Node::items);
            for (number, benchmark) in benchmarks.iter().enumerate() {
                take(&mut records, benchmark, number, 1, &common);
                if records.are_too_many() {
                    break;
                }
            }
        }
        Err(error) => read_damaged(text, &error, &mut records),
    }
    records.finish()
}

fn take(records: &mut Records, benchmark: &Node, number: usize, line: u32, common: &Common) {
    if benchmark.at("metrics").is_some() {
        records.push(sheet(benchmark, number, line, common));
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
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Node>();
        let Some(Ok(benchmark)) = values.next() else { break };
        take(records, &benchmark, number, line, &Common::default());
        if records.are_too_many() {
            return;
        }
        at = start + values.byte_offset();
        line = line.saturating_add(newlines(&text[start..at]));
    }
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
    records.break_off(line, not_json_there(error));
}

/// What the document states about all its benchmarks.
#[derive(Debug, Default)]
struct Common {
    version: Option<String>,
    tokenizer: Option<String>,
    model: Option<String>,
}

impl Common {
    fn read(document: &Node) -> Self {
        let mut found = Mapping::new(document, String::new());
        let tokenizer = ["config.spec.tokenizer.model", "args.processor"];
        let model = ["config.spec.backend.model", "args.model"];
        Self {
            version: found.name("metadata.guidellm_version"),
            tokenizer: tokenizer.iter().find_map(|path| found.name(path)),
            model: model.iter().find_map(|path| found.name(path)),
        }
    }
}

fn sheet(benchmark: &Node, number: usize, line: u32, common: &Common) -> ToolResult {
    let mut found = Mapping::new(benchmark, format!("benchmarks.{number}"));
    let mean = |found: &mut Mapping<'_>, metric: &str| {
        // A tool that served nothing writes a mean of zero, which is a rate all the same.
        found.figure(&format!("metrics.{metric}.successful.mean"))
    };
    let names = ["config.id_", "id_"].iter().find_map(|path| found.name(path));
    let started = ["start_time", "run_stats.start_time"].iter().find_map(|path| found.find(path));
    let mut sheet = ToolResult {
        source: ResultSource {
            tool: Tool::GuideLlm,
            form: Form::Document,
            version: common.version.clone(),
            name: names.unwrap_or_default(),
            line: Some(line),
            simulated: false,
        },
        model: found.name("config.backend.model").or_else(|| common.model.clone()),
        tokenizer: common.tokenizer.clone(),
        backend: found.name("config.backend.kind"),
        started: started.and_then(Node::number).map(|moment| moment.to_string()),
        duration_s: found.figure("duration"),
        request_throughput: mean(&mut found, "requests_per_second"),
        request_goodput: mean(&mut found, "request_goodput"),
        output_throughput: mean(&mut found, "output_tokens_per_second"),
        total_token_throughput: mean(&mut found, "tokens_per_second"),
        input_tokens: found.count("metrics.prompt_token_count.successful.total_sum"),
        output_tokens: found.count("metrics.output_token_count.successful.total_sum"),
        peak_concurrent_requests: found.count("metrics.request_concurrency.total.max"),
        ..ToolResult::default()
    };
    totals(&mut found, &mut sheet);
    load(&mut found, &mut sheet);
    latencies(&mut found, &mut sheet);
    sheet.requests = read_requests(&mut found, &sheet);
    pass_over(&mut found);
    found.finish(sheet)
}

fn totals(found: &mut Mapping<'_>, sheet: &mut ToolResult) {
    let total = |found: &mut Mapping<'_>, status: &str| {
        let path = ["metrics.request_totals", "request_totals"];
        path.iter().find_map(|path| found.count(&format!("{path}.{status}")))
    };
    sheet.completed = total(found, "successful");
    sheet.failed = total(found, "errored");
    // A limit of time leaves some on their way, and what was begun is no plan.
    total(found, "total");
    if let Some(incomplete) = total(found, "incomplete").filter(|incomplete| 0 < *incomplete) {
        sheet.metadata.push((INCOMPLETE.to_owned(), incomplete.to_string()));
    }
    sheet.requests_planned = PLANNED.iter().find_map(|path| found.count(path));
}

/// Even gaps, or those of a Poisson process; the other strategies send as the server allows.
fn load(found: &mut Mapping<'_>, sheet: &mut ToolResult) {
    let places = ["config.strategy", "args.strategy", "scheduler.strategy"];
    let Some(at) = places.iter().find(|path| found.find(&format!("{path}.type_")).is_some()) else {
        return;
    };
    let kind = found.name(&format!("{at}.type_")).unwrap_or_default();
    let rate = found.figure(&format!("{at}.rate")).filter(|rate| *rate > 0.0);
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
    sheet.request_rate = request_rate;
    sheet.burstiness = burstiness;
    // Of an open load it is a bound of the program, far above what any server lets it reach.
    sheet.max_concurrency = max_concurrency;
    sheet.metadata.push(("strategy".to_owned(), kind));
    found.pass_over(&[&format!("{at}.worker_count"), &format!("{at}.random_seed")]);
}

fn latencies(found: &mut Mapping<'_>, sheet: &mut ToolResult) {
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
        sheet.latencies.push(latency);
    }
}

fn intervals(found: &mut Mapping<'_>, path: &str, to_ms: f64, latency: &mut ResultLatency) {
    let interval = |node: &Node| {
        let end = |key: &str| node.get(key).and_then(Node::number).map(|value| value * to_ms);
        Interval::new(end("lower")?, end("upper")?)
    };
    let mean = found.find(&format!("{path}.mean_ci")).and_then(interval);
    latency.intervals_ms.extend(mean.map(|interval| ("mean".to_owned(), interval)));
    let ranks = found.find(&format!("{path}.percentile_cis")).map_or(&[][..], Node::entries);
    for (key, node) in ranks {
        latency.intervals_ms.extend(rank(key).zip(interval(node)));
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
    let metrics = LATENCIES.map(|(name, ..)| name);
    let rates = ["requests_per_second", "request_goodput", "output_tokens_per_second"];
    let more = ["tokens_per_second", "prompt_token_count", "output_token_count"];
    for metric in metrics.iter().chain(&rates).chain(&more).chain(&["request_concurrency"]) {
        for status in ["successful", "errored", "incomplete", "total"] {
            found.pass_over(&[&format!("metrics.{metric}.{status}")]);
        }
    }
    found.pass_over(&["type_", "end_time", "config", "scheduler_state", "scheduler_metrics"]);
}

/// Nothing where the file keeps only some of the requests.
fn read_requests(found: &mut Mapping<'_>, sheet: &ToolResult) -> Option<Vec<ResultRequest>> {
    let listed = found.find("requests")?;
    let mut requests = Vec::new();
    for status in ["successful", "errored", "incomplete"] {
        let all = listed.get(status).map_or(&[][..], Node::items);
        requests.extend(all.iter().map(|node| request(node, status)));
    }
    let good = listed.get("successful").map_or(0, |all| all.items().len()) as u64;
    if requests.is_empty() {
        return None;
    }
    if sheet.completed != Some(good) {
        found.note("requests", "is a sample of the requests, not all of them");
        return None;
    }
    Some(requests)
}

fn request(node: &Node, status: &str) -> ResultRequest {
    let figure = |keys: &[&str]| keys.iter().find_map(|key| mapping::figure(node.at(key)?).ok());
    let count = |key: &str| node.at(key).and_then(|value| mapping::count(value).ok());
    let error = node.at("info.error").or_else(|| node.at("error")).and_then(Node::text);
    ResultRequest {
        queued_s: None,
        start_s: figure(&["request_start_time", "start_time"]),
        input_tokens: count("prompt_tokens"),
        output_tokens: count("output_tokens"),
        ttft_s: figure(&["time_to_first_token_ms"]).map(|ms| ms / 1e3),
        e2e_s: figure(&["request_latency"]),
        gaps_s: Vec::new(),
        text: node.at("output").and_then(Node::text).map(str::to_owned),
        error: Some(match (status, error) {
            ("successful", _) => String::new(),
            (_, Some(error)) => shown(error),
            (status, None) => status.to_owned(),
        }),
    }
}
