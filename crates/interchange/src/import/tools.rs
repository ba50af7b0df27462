//! The result files of `GuideLLM` (`benchmarks.json`: one document with one result for each load), of
//! SGLang's `bench_serving` (JSON lines) and of genai-bench (one JSON file for each scenario and load).

use inferometer_analysis::Interval;
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, Tool, ToolResult,
};

use super::{
    INCOMPLETE, ImportError, Imported, Mapping, Records, count, count_at, figure, figure_at,
    newlines, not_json_there, plain_rank, read_objects, shown,
};
use crate::json::Json;

/// What `GuideLLM` calls inter-token latency is one mean for each answer, which counts once for each
/// token.
const GUIDELLM_LATENCIES: [(&str, f64, LatencyKind, CountsFrom, Grain); 4] = [
    ("time_to_first_token_ms", 1.0, LatencyKind::Ttft, CountsFrom::Send, Grain::Request),
    ("inter_token_latency_ms", 1.0, LatencyKind::Tpot, CountsFrom::Output, Grain::Unknown),
    ("request_latency", 1e3, LatencyKind::E2e, CountsFrom::Send, Grain::Request),
    ("request_scheduled_latency", 1e3, LatencyKind::E2e, CountsFrom::Schedule, Grain::Request),
];

pub(super) fn read_guidellm(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut records = Records::default();
    match serde_json::from_str::<Json>(text) {
        Ok(document) => {
            let benchmarks = document.get("benchmarks").map_or(&[][..], Json::items);
            for (number, benchmark) in benchmarks.iter().enumerate() {
                take_benchmark(&mut records, benchmark, number, 1, &document);
                if records.are_too_many() {
                    break;
                }
            }
        }
        Err(error) => read_damaged(text, &error, &mut records),
    }
    records.finish()
}

fn take_benchmark(records: &mut Records, benchmark: &Json, number: usize, line: u32, whole: &Json) {
    if benchmark.at("metrics").is_some() {
        records.push(read_benchmark(benchmark, number, line, whole));
    } else {
        let reason = format!("holds benchmarks.{number}, which has no `metrics`");
        records.break_off(line, reason);
    }
}

/// The benchmarks that are complete before the damage.
fn read_damaged(text: &str, error: &serde_json::Error, records: &mut Records) {
    // The description of the run has a list of this name too, of other things.
    let list = text.match_indices("\"benchmarks\"").find_map(|(key, name)| {
        let after = text[key + name.len()..].trim_start_matches([' ', '\t', '\r', '\n', ':']);
        let inside = after.strip_prefix('[')?.trim_start();
        inside.starts_with('{').then_some(text.len() - inside.len())
    });
    let mut at = list.unwrap_or(text.len());
    let (mut line, mut counted) = (1, 0);
    for number in 0.. {
        let rest = text[at..].trim_start_matches([' ', '\t', '\r', '\n', ',']);
        let start = text.len() - rest.len();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        let Some(Ok(benchmark)) = values.next() else { break };
        line = newlines(&text[counted..start]).saturating_add(line);
        counted = start;
        take_benchmark(records, &benchmark, number, line, &Json::Null);
        if records.are_too_many() {
            return;
        }
        at = start + values.byte_offset();
    }
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
    records.break_off(line, not_json_there(error));
}

/// `whole` is the document, which states something about all its benchmarks.
fn read_benchmark(benchmark: &Json, number: usize, line: u32, whole: &Json) -> ToolResult {
    let mut common = Mapping::new(whole, String::new());
    let mut found = Mapping::new(benchmark, format!("benchmarks.{number}"));
    let started = found.first(&["start_time", "run_stats.start_time"], Mapping::find);
    let model = || common.first(&["config.spec.backend.model", "args.model"], Mapping::name);
    let mut result = found.result(Tool::GuideLlm, line);
    result.model = result.model.or_else(model);
    result.source.version = common.name("metadata.guidellm_version");
    result.tokenizer =
        common.first(&["config.spec.tokenizer.model", "args.processor"], Mapping::name);
    result.started = started.and_then(Json::number).map(|moment| moment.to_string());
    let mut total = |status: &str| {
        let paths = ["metrics.request_totals", "request_totals"];
        paths.iter().find_map(|path| found.count(&format!("{path}.{status}")))
    };
    result.completed = total("successful");
    result.failed = total("errored");
    // A time limit leaves some in flight, and the number of those that were started is no plan.
    total("total");
    if let Some(incomplete) = total("incomplete").filter(|incomplete| 0 < *incomplete) {
        result.metadata.push((INCOMPLETE.to_owned(), incomplete.to_string()));
    }
    read_strategy(&mut found, &mut result);
    read_latencies(&mut found, &mut result);
    result.requests = read_requests(&mut found, &result);
    found.finish(result)
}

/// Even gaps, or those of a Poisson process; the other strategies send as the server allows.
fn read_strategy(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let places = ["config.strategy", "args.strategy", "scheduler.strategy"];
    let Some(at) = places.iter().find(|path| found.find(&format!("{path}.type_")).is_some()) else {
        return;
    };
    let kind = found.name(&format!("{at}.type_")).unwrap_or_default();
    let rate = found.positive(&format!("{at}.rate")).map(ResultRate::PerSecond);
    let cap = found.small_count(&format!("{at}.max_concurrency"));
    let streams = found.small_count(&format!("{at}.streams"));
    // The cap of an open load is a bound of the program, far above what any server lets it reach.
    (result.request_rate, result.burstiness, result.max_concurrency) = match kind.as_str() {
        "constant" => (rate, Some(f64::INFINITY), None),
        "poisson" => (rate, Some(1.0), None),
        "synchronous" => (Some(ResultRate::Unlimited), None, Some(1)),
        "concurrent" => (Some(ResultRate::Unlimited), None, streams.or(cap)),
        "throughput" => (Some(ResultRate::Unlimited), None, cap),
        _ => (None, None, None),
    };
    result.metadata.push(("strategy".to_owned(), kind));
    found.pass_over(&[&format!("{at}.worker_count"), &format!("{at}.random_seed")]);
}

fn read_latencies(found: &mut Mapping<'_>, result: &mut ToolResult) {
    let confidence = found.figure("config.confidence");
    let [shortest, longest] = ["min", "max"]
        .map(|end| found.count(&format!("metrics.output_token_count.successful.{end}")));
    let is_one_length = shortest.is_some() && shortest == longest;
    for (name, to_ms, kind, from, grain) in GUIDELLM_LATENCIES {
        // With answers of one length it makes no difference how often each counts.
        let is_weighted = grain == Grain::Unknown;
        let grain = if is_weighted && is_one_length { Grain::Request } else { grain };
        let path = format!("metrics.{name}.successful");
        let empty = ResultLatency::new(kind, from, grain);
        let Some(mut latency) = found.latency(&path, to_ms, digits_rank, empty) else { continue };
        if is_weighted {
            latency.n = None;
        }
        if confidence == Some(0.95) {
            let interval = |json: &Json| {
                let end = |key: &str| json.get(key)?.number().map(|value| value * to_ms);
                Interval::new(end("lower")?, end("upper")?)
            };
            let mean = found.find(&format!("{path}.mean_ci")).and_then(interval);
            latency.intervals_ms.extend(mean.map(|interval| ("mean".to_owned(), interval)));
            let ranks = found.find(&format!("{path}.percentile_cis"));
            for (key, json) in ranks.map_or(&[][..], Json::entries) {
                latency.intervals_ms.extend(digits_rank(key).zip(interval(json)));
            }
        }
        result.latencies.push(latency);
    }
}

/// `p99` and `p05` are whole; `p999` and `p001` have a tenth.
fn digits_rank(key: &str) -> Option<String> {
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

/// `None` where the file keeps only some of the requests.
fn read_requests(found: &mut Mapping<'_>, result: &ToolResult) -> Option<Vec<ResultRequest>> {
    let listed = found.find("requests")?;
    let of_status = |status: &'static str| {
        let all = listed.get(status).map_or(&[][..], Json::items);
        all.iter().map(move |json| guidellm_request(json, status))
    };
    let requests: Vec<ResultRequest> =
        ["successful", "errored", "incomplete"].into_iter().flat_map(of_status).collect();
    if requests.is_empty() {
        return None;
    }
    if result.completed != Some(of_status("successful").len() as u64) {
        found.note("requests", "is a sample of the requests, not all of them");
        return None;
    }
    Some(requests)
}

fn guidellm_request(json: &Json, status: &str) -> ResultRequest {
    let error = json.at("info.error").or_else(|| json.at("error")).and_then(Json::text);
    let is_good = status == "successful";
    let started = figure_at(json, "request_start_time").or_else(|| figure_at(json, "start_time"));
    ResultRequest {
        start_s: started,
        input_tokens: count_at(json, "prompt_tokens"),
        output_tokens: count_at(json, "output_tokens"),
        ttft_s: figure_at(json, "time_to_first_token_ms").map(|ms| ms / 1e3),
        e2e_s: figure_at(json, "request_latency"),
        text: json.at("output").and_then(Json::text).map(str::to_owned),
        error: Some(if is_good { String::new() } else { error.map_or(status.to_owned(), shown) }),
        ..ResultRequest::default()
    }
}

const SGLANG_LATENCIES: [(&str, LatencyKind, CountsFrom); 4] = [
    ("ttft_ms", LatencyKind::Ttft, CountsFrom::Send),
    ("tpot_ms", LatencyKind::Tpot, CountsFrom::Output),
    ("itl_ms", LatencyKind::Itl, CountsFrom::Output),
    ("e2e_latency_ms", LatencyKind::E2e, CountsFrom::Send),
];

pub(super) fn read_sglang(text: &str) -> Result<Vec<Imported>, ImportError> {
    let is_result = |line: &Json| line.at("output_throughput").is_some();
    read_objects(text, is_result, "has no figures of a benchmark", read_sglang_line)
}

fn read_sglang_line(json: &Json, line: u32) -> ToolResult {
    let mut found = Mapping::new(json, format!("line {line}"));
    let request_rate = match found.find("request_rate").and_then(Json::text) {
        Some("inf" | "Infinity") => Some(ResultRate::Unlimited),
        // The timestamps of a recording have no single rate.
        Some("trace") => None,
        Some(_) | None => found.positive("request_rate").map(ResultRate::PerSecond),
    };
    let mut result = found.result(Tool::Sglang, line);
    result.tensor_parallel = found.small_count("server_info.tp_size");
    result.burstiness = matches!(request_rate, Some(ResultRate::PerSecond(_))).then_some(1.0);
    result.request_rate = request_rate;
    for (suffix, kind, from) in SGLANG_LATENCIES {
        // Its own API reports how many tokens an event brought, and later versions divide by it;
        // which version wrote the file is not known.
        let grain = match (kind, result.backend.as_deref()) {
            (LatencyKind::Ttft | LatencyKind::Tpot | LatencyKind::E2e, _) => Grain::Request,
            (LatencyKind::Itl, None | Some("sglang" | "sglang-native")) => Grain::Unknown,
            (LatencyKind::Itl, Some(_)) => Grain::Chunk,
        };
        let names = ["mean", "std", "max", "median"].map(|name| (name, name)).into_iter();
        let ranks = [("90", "p90"), ("95", "p95"), ("99", "p99")];
        let names: Vec<(&str, &str)> = names.chain(ranks).collect();
        let statistic = |name: &str| found.figure(&format!("{name}_{suffix}"));
        let latency = ResultLatency::new(kind, from, grain).with(&names, statistic);
        result.latencies.extend(latency);
    }
    found.describe(&mut result, "dataset_name", "dataset_name");
    result.requests = sglang_requests(&mut found);
    if let Some(requests) = &result.requests {
        let failed = requests.iter().filter(|request| !request.is_ok());
        result.failed = Some(failed.count() as u64);
        result.requests_planned = Some(requests.len() as u64);
    }
    found.finish(result)
}

/// With `--output-details`: lists of one length, of which a failed request has zeros.
fn sglang_requests(found: &mut Mapping<'_>) -> Option<Vec<ResultRequest>> {
    let lists = ["input_lens", "output_lens", "ttfts", "itls", "errors", "generated_texts"];
    let [inputs, outputs, ttfts, gaps, errors, texts] =
        lists.map(|name| found.find(name).map_or(&[][..], Json::items));
    let n = errors.len();
    if n == 0 {
        return None;
    }
    if [inputs, outputs, ttfts, gaps].iter().any(|list| list.len() != n) {
        found.note("errors", "is not as long as the other lists of requests");
        return None;
    }
    let request = |place: usize| {
        let error = errors[place].text().unwrap_or_default();
        let is_good = error.is_empty();
        let seconds = |value: &Json| figure(value).ok();
        ResultRequest {
            input_tokens: count(&inputs[place]).ok(),
            output_tokens: count(&outputs[place]).ok().filter(|_| is_good),
            ttft_s: seconds(&ttfts[place]).filter(|_| is_good),
            gaps_s: gaps[place].items().iter().filter_map(seconds).collect(),
            text: texts.get(place).and_then(Json::text).map(str::to_owned),
            error: Some(error.to_owned()),
            ..ResultRequest::default()
        }
    };
    Some((0..n).map(request).collect())
}

pub(super) fn read_genai_bench(text: &str) -> Result<Vec<Imported>, ImportError> {
    let is_result = |json: &Json| json.at("aggregated_metrics").is_some();
    read_objects(text, is_result, "has no `aggregated_metrics`", read_genai_bench_document)
}

/// What genai-bench writes next to its results.
pub(super) fn refuse_genai_bench(_: &str) -> Result<Vec<Imported>, ImportError> {
    let looks_like = "the file is genai-bench's description of an experiment; give the result files \
                      beside it";
    Err(ImportError::NothingRecognised { looks_like: looks_like.to_owned() })
}

fn read_genai_bench_document(json: &Json, line: u32) -> ToolResult {
    let mut found = Mapping::new(json, String::new());
    let of = |name: &str| format!("aggregated_metrics.{name}");
    let per_minute = found.figure(&of("requests_per_minute")).map(|rate| rate / 60.0);
    let mut result = found.result(Tool::GenaiBench, line);
    result.duration_s = found.positive(&of("run_duration"));
    result.request_throughput = result.request_throughput.or(per_minute);
    // What it calls concurrency is a rate where the load was open.
    if found.figure(&of("arrival_requests_per_second")).is_some() {
        result.request_rate = found.positive(&of("num_concurrency")).map(ResultRate::PerSecond);
    } else {
        result.max_concurrency = found.small_count(&of("num_concurrency"));
        result.request_rate = result.max_concurrency.map(|_| ResultRate::Unlimited);
    }
    for (name, kind, from) in [
        ("ttft", LatencyKind::Ttft, CountsFrom::Send),
        ("tpot", LatencyKind::Tpot, CountsFrom::Output),
        ("e2e_latency", LatencyKind::E2e, CountsFrom::Send),
    ] {
        let (path, empty) =
            (of(&format!("stats.{name}")), ResultLatency::new(kind, from, Grain::Request));
        result.latencies.extend(found.latency(&path, 1e3, plain_rank, empty));
    }
    found.describe(&mut result, &of("scenario"), "scenario");
    let path = "individual_request_metrics";
    if let Some(all) = found.find(path) {
        let requests: Vec<ResultRequest> = all.items().iter().map(genai_bench_request).collect();
        let good = requests.iter().filter(|request| request.is_ok()).count() as u64;
        if result.completed == Some(good) {
            result.requests = Some(requests);
        } else {
            found.note(path, "does not hold every request that completed");
        }
    }
    found.finish(result)
}

fn genai_bench_request(json: &Json) -> ResultRequest {
    let message = json.at("error_message").and_then(Json::text).map(shown);
    let error = json.at("error_code").map(|code| match (message, code.number()) {
        (Some(message), _) => message,
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "failed".to_owned(),
    });
    ResultRequest {
        input_tokens: count_at(json, "num_input_tokens"),
        output_tokens: count_at(json, "num_output_tokens"),
        ttft_s: figure_at(json, "ttft"),
        e2e_s: figure_at(json, "e2e_latency"),
        error: Some(error.unwrap_or_default()),
        ..ResultRequest::default()
    }
}
