//! The flags of `vllm bench serve` as tables of an experiment: its target, body, load and data sets.

use std::path::PathBuf;
use std::time::Duration;

use inferometer_model::endpoint::{Api, BaseUrlError};
use inferometer_model::spec::{
    AdapterChoice, ArrivalsKind, BodyTable, DatasetKind, ImageSize, ImageSizes, Lengths, LoadTable,
    PerSecond, PinOutput, Ramp, RampCurve, RampSegment, SourceName, SourceTable, TraceKind, WarmUp,
};
use inferometer_model::{BaseUrl, file};
use serde::Deserialize;
use serde_json::{Value, json};

use super::refused::{REFUSALS, Refusal};
use crate::arguments::{
    RampStrategy, ServeBenchArguments, ServeDataArguments, ServeLoadArguments,
    ServeTargetArguments, set_flags,
};
use crate::failure::{Failure, Result};

/// The API of a backend that can be driven here.
pub(super) fn api(backend: &str) -> Result<Api> {
    Ok(match backend {
        "openai" | "vllm" => Api::Completions,
        "openai-chat" => Api::Chat,
        "openai-embeddings" => Api::Embeddings,
        "vllm-rerank" => Api::Rerank,
        _ => {
            let known = "openai, vllm, openai-chat, openai-embeddings or vllm-rerank (`run --api` has more)";
            return Err(Refusal::unsupported(&REFUSALS.backends, "backend", backend, known));
        }
    })
}

/// The base URL. The endpoint must be the API's own below some prefix.
pub(super) fn base_url(typed: &ServeTargetArguments, api: Api) -> Result<BaseUrl> {
    let own = api.path(true, "");
    let endpoint = typed.endpoint.as_deref().unwrap_or(&own);
    let (host, port) = (typed.host.as_deref().unwrap_or("127.0.0.1"), typed.port.unwrap_or(8000));
    let base = typed.base_url.clone().unwrap_or_else(|| origin(host, &port.to_string()));
    let url = format!("{base}{endpoint}");
    let base: BaseUrl = url
        .parse()
        .map_err(|error: BaseUrlError| Failure::usage(format!("--base-url: {error}")))?;
    if url.trim_end_matches('/').ends_with(&format!("{}{own}", base.prefix)) {
        return Ok(base);
    }
    Err(Failure::usage(format!(
        "--endpoint {endpoint}: this backend sends its requests to {own}, below any prefix"
    ))
    .hint(format!("leave --endpoint out, or end it in {own}; --backend chooses the API")))
}

/// The URL of a host and a port.
pub(crate) fn origin(host: &str, port: &str) -> String {
    let is_bare_ipv6 = host.contains(':') && !host.starts_with('[');
    if is_bare_ipv6 { format!("http://[{host}]:{port}") } else { format!("http://{host}:{port}") }
}

/// `pins_output` is whether the server must generate until an answer has the requested length.
pub(super) fn body_table(
    typed: &ServeBenchArguments,
    api: Api,
    pins_output: bool,
) -> Result<BodyTable> {
    let body = &typed.body;
    let sampling = body.sampling.fields();
    if !api.generates() && !sampling.is_empty() {
        return Err(Failure::usage("sampling flags need a backend that generates text"));
    }
    if body.logprobs.is_some() && api != Api::Completions {
        return Err(Failure::usage("--logprobs is only sent with completions")
            .hint("for chat: --extra-body '{\"logprobs\": true, \"top_logprobs\": 1}'"));
    }
    let of_client = [
        // Sent with every completion, so that the server's own default does not apply.
        ("repetition_penalty", (api == Api::Completions).then(|| json!(1.0))),
        ("logprobs", body.logprobs.map(Value::from)),
        ("truncate_prompt_tokens", (!api.generates()).then(|| json!(-1))),
        ("ignore_eos", (pins_output && api.generates()).then_some(Value::Bool(true))),
    ];
    let of_client =
        of_client.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    // --extra-body takes precedence over single flags.
    let mut fields = body.extra_body.clone().unwrap_or_default();
    for (field, value) in sampling.into_iter().chain(of_client) {
        fields.entry(field).or_insert(value);
    }
    let adapters = Some(typed.target.lora_modules.clone()).filter(|names| !names.is_empty());
    let choice = typed.target.lora_assignment.unwrap_or(AdapterChoice::Random);
    Ok(BodyTable {
        // The fields above are all that vLLM's client sends.
        pin_output: Some(PinOutput::Never),
        lora_choice: adapters.as_ref().map(|_| choice.into()),
        lora: adapters,
        extra: Some(fields).filter(|fields| !fields.is_empty()),
        ..BodyTable::default()
    })
}

/// `recorded` is whether requests are sent at the timestamps of the data.
pub(super) fn load_table(typed: &ServeLoadArguments, recorded: bool) -> Result<LoadTable> {
    if typed.probe_request_rate.is_some_and(|rate| rate != 0.0) {
        let what = "--probe-request-rate cannot be honoured: probes would wait for the load";
        let hint = "probe with a second run: inferometer run URL --rate 1 --output-tokens 1";
        return Err(Failure::usage(what).hint(hint));
    }
    if typed.max_concurrency == Some(0) {
        return Err(Failure::usage("--max-concurrency must be above 0"));
    }
    let rates = [typed.request_rate, typed.burstiness];
    if rates.into_iter().flatten().any(|value| value.is_nan() || value <= 0.0) {
        return Err(Failure::usage("--request-rate and --burstiness must be above 0"));
    }
    let ends = [typed.ramp_up_start_rps, typed.ramp_up_end_rps];
    if typed.ramp_up_strategy.is_none() && ends.iter().any(Option::is_some) {
        return Err(Failure::usage("a ramp needs --ramp-up-strategy: linear or exponential"));
    }
    let requests = requests(typed)?;
    let load = LoadTable {
        requests: Some(requests),
        warm_up: typed.num_warmups.filter(|requests| 0 < *requests).map(WarmUp::Requests),
        max_concurrency: typed.max_concurrency,
        ..LoadTable::default()
    };
    if recorded {
        return Ok(load);
    }
    let burstiness = typed.burstiness.unwrap_or(1.0);
    if let Some(strategy) = typed.ramp_up_strategy {
        let (arrivals, burstiness) = if burstiness.is_infinite() {
            (ArrivalsKind::Constant, None)
        } else if (burstiness - 1.0).abs() < f64::EPSILON {
            (ArrivalsKind::Poisson, None)
        } else {
            (ArrivalsKind::Gamma, Some(burstiness))
        };
        let load = LoadTable { arrivals: Some(arrivals), burstiness, ..load };
        return ramped(typed, strategy, requests, load);
    }
    let per_s = typed.request_rate.unwrap_or(f64::INFINITY);
    let rate = Some(PerSecond(per_s));
    Ok(match typed.max_concurrency {
        // A fixed number in flight until all requests are sent is a closed loop.
        cap @ Some(_) if per_s.is_infinite() => {
            LoadTable { concurrency: cap, max_concurrency: None, ..load }
        }
        _ if per_s.is_infinite() => LoadTable { rate, ..load },
        _ if burstiness.is_infinite() => {
            LoadTable { rate, arrivals: Some(ArrivalsKind::Constant), ..load }
        }
        // Its schedules end at the number of requests over the rate; its ramps are not stretched.
        _ => {
            let arrivals = Some(ArrivalsKind::Stretched);
            LoadTable { rate, arrivals, burstiness: Some(burstiness), ..load }
        }
    })
}

/// The number of requests that will be sent.
pub(super) fn requests(typed: &ServeLoadArguments) -> Result<u64> {
    match typed.num_prompts.map(u64::try_from) {
        None => Ok(1_000),
        Some(Ok(requests)) if 0 < requests => Ok(requests),
        Some(_) => Err(Failure::usage("--num-prompts must be above 0")
            .hint("to send all of a file, give the number of its lines")),
    }
}

/// Its ramps go by the number of the request, ours by time.
fn ramped(
    typed: &ServeLoadArguments,
    strategy: RampStrategy,
    requests: u64,
    load: LoadTable,
) -> Result<LoadTable> {
    if typed.request_rate.is_some_and(f64::is_finite) {
        return Err(Failure::usage("--ramp-up-strategy sets the rate; leave --request-rate out"));
    }
    let (Some(from), Some(to)) = (typed.ramp_up_start_rps, typed.ramp_up_end_rps) else {
        let what = "--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps";
        return Err(Failure::usage(what));
    };
    if from <= 0 || to < from {
        return Err(Failure::usage(format!(
            "a ramp from {from} to {to} requests per second must begin above 0 and not fall"
        ))
        .hint("from 0 no request would ever be sent; begin with 1"));
    }
    let (from, to) = (from as f64, to as f64);
    if from.total_cmp(&to).is_eq() {
        return Ok(LoadTable { rate: Some(PerSecond(from)), ..load });
    }
    let pieces = match strategy {
        // A rate that grows with each request by the same amount grows in time by the same factor.
        RampStrategy::Linear => 1,
        // No curve over time of ours is the same, but so many pieces are close enough.
        RampStrategy::Exponential => 16,
    };
    let growth = libm::log(to / from) / f64::from(pieces);
    let rate_at = |piece: u32| from * libm::exp(growth * f64::from(piece));
    let each = requests as f64 / f64::from(pieces);
    let segments = (0..pieces).map(|piece| {
        let (from_per_s, to_per_s) = (rate_at(piece), rate_at(piece + 1));
        let seconds = each * growth / (to_per_s - from_per_s);
        let over = Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::usage(format!(
                "a ramp from {from} to {to} requests per second does not differ from a steady rate"
            ))
            .hint("use --request-rate, or ends that lie further apart")
        })?;
        Ok(RampSegment { from_per_s, to_per_s, over })
    });
    let segments = segments.collect::<Result<_>>()?;
    Ok(LoadTable { ramp: Some(Ramp(segments)), ramp_curve: Some(RampCurve::Exponential), ..load })
}

/// What is asked, and what else follows from the data set.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) source: SourceTable,
    /// Whether vLLM's client makes the server generate until an answer has its length.
    pub(super) pins_output: bool,
    /// Whether requests are sent at the timestamps of the data.
    pub(super) recorded: bool,
    /// Requests, where the data cannot have as many as were requested.
    pub(super) requests: Option<u64>,
    /// Inputs of a request that generates nothing.
    pub(super) batch: Option<u32>,
    /// How many pictures a request has, and of which sizes.
    pub(super) images: Option<(u32, ImageSizes)>,
    /// Differences from vLLM's client that its users should know.
    pub(super) notes: Vec<String>,
}

/// Other flags that the data depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) api: Api,
    pub(super) has_tokenizer: bool,
    pub(super) requests: u64,
    /// `Some` where a flag sets whether the timestamps of a trace are used.
    pub(super) self_timed: Option<bool>,
}

const PREFIXES: &str = "prefix_repetition";
const RERANK: &str = "random-rerank";
const PICTURES: &str = "random-mm";
/// Those whose prompts are put into the chat template before they are sent.
const TEMPLATED: [&str; 5] = [
    "philschmid/mt-bench",
    "openai/gsm8k",
    "openai/openai_humaneval",
    "mgoin/mlperf-inference-llama2-data",
    "mgoin/mlperf-inference-llama3.1-data",
];

impl Data {
    pub(super) fn from_arguments(typed: &ServeDataArguments, context: Context) -> Result<Self> {
        let name = typed.dataset_name.as_deref().unwrap_or("random");
        if context.self_timed.is_some() && name != "timed_trace" {
            let what = "--self-timed and --no-self-timed need --dataset-name timed_trace";
            return Err(Failure::usage(what));
        }
        if (name == RERANK) != (context.api == Api::Rerank) && name != "custom" {
            return Err(Failure::usage(
                "--dataset-name random-rerank is for --backend vllm-rerank",
            ));
        }
        if let ("random" | PICTURES | RERANK | PREFIXES, Some(path)) = (name, &typed.dataset_path) {
            return Err(Failure::usage(format!(
                "--dataset-name {name} makes its own prompts; --dataset-path {} is for other data",
                path.display()
            ))
            .hint("set --dataset-name to sharegpt, custom, hf, burstgpt or timed_trace"));
        }
        let mut data = Self::named(name, typed, context)?;
        let unused = set_flags(typed).into_iter().filter(|flag| !is_used(flag, name));
        data.notes.extend(unused.map(|flag| format!("{flag} changes nothing with {name} data")));
        Ok(data)
    }

    /// The data of this name.
    fn named(name: &str, typed: &ServeDataArguments, context: Context) -> Result<Self> {
        let path = || {
            typed.dataset_path.clone().ok_or_else(|| {
                Failure::usage(format!("--dataset-name {name} needs --dataset-path FILE"))
            })
        };
        let dataset = |path: PathBuf, kind: DatasetKind, output: Option<u32>| SourceTable {
            dataset: Some(path),
            dataset_kind: Some(kind),
            output_tokens: output.map(Lengths::Fixed),
            keep_order: typed.disable_shuffle.then_some(true),
            ..SourceTable::default()
        };
        Ok(match name {
            "random" => batched(random(typed, context.has_tokenizer)?, typed, context)?,
            RERANK => rerank(typed, context)?,
            PICTURES => pictures(typed, context)?,
            PREFIXES => prefix_repetition(typed, context.requests)?,
            "sharegpt" => {
                let output = typed.output_len.or(typed.sharegpt_output_len);
                let source = dataset(path()?, DatasetKind::ShareGpt, output);
                Self { source, ..Self::default() }
            }
            "custom" => {
                let (output, note) = custom(typed, context)?;
                let source = dataset(path()?, DatasetKind::Jsonl, output);
                Self { source, notes: note.into_iter().collect(), ..Self::default() }
            }
            "hf" => hub(typed, context, dataset(path()?, DatasetKind::Jsonl, None))?,
            "spec_bench" => {
                let output = typed.output_len.or(typed.spec_bench_output_len).unwrap_or(256);
                let source = dataset(path()?, DatasetKind::Jsonl, Some(output));
                questions(source, "turns.0", typed.spec_bench_category.as_deref())
            }
            "speed_bench" => {
                let note = template_note(typed, context, name)?;
                let output = typed.output_len.or(typed.speed_bench_output_len).unwrap_or(4_096);
                let subset = typed.speed_bench_dataset_subset.as_deref().unwrap_or("qualitative");
                let path = path()?.join(format!("{subset}.jsonl"));
                let source = dataset(path, DatasetKind::Jsonl, Some(output));
                let data =
                    questions(source, "messages.0.content", typed.speed_bench_category.as_deref());
                Self { notes: note.into_iter().collect(), ..data }
            }
            "burstgpt" => burst_gpt(path()?)?,
            "timed_trace" => timed_trace(typed, context, path)?,
            _ => {
                let known = "random, random-mm, random-rerank, sharegpt, custom, hf, spec_bench, speed_bench, \
                             prefix_repetition, burstgpt or timed_trace";
                return Err(Refusal::unsupported(&REFUSALS.datasets, "dataset-name", name, known));
            }
        })
    }
}

/// Whether a flag means something with the data of this name.
fn is_used(flag: &str, name: &str) -> bool {
    match flag {
        "--dataset-name" | "--dataset-path" => true,
        "--input-len" => ["random", PICTURES, RERANK].contains(&name),
        "--random-batch-size" if name == PICTURES => false,
        flag if flag.starts_with("--random-mm-") => name == PICTURES,
        flag if flag.starts_with("--random-") && name == PICTURES => true,
        "--output-len" => !["burstgpt", "timed_trace", RERANK].contains(&name),
        "--skip-chat-template" => ["custom", "hf", "speed_bench"].contains(&name),
        "--disable-shuffle" => {
            ["sharegpt", "custom", "hf", "spec_bench", "speed_bench"].contains(&name)
        }
        "--random-output-len" | "--random-prefix-len" if name == RERANK => false,
        flag if flag.starts_with("--random-") && name == RERANK => true,
        "--no-stream" => false,
        flag => flag[2..].starts_with(&name.replace('_', "-")),
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeRatio {
    input: f64,
    output: f64,
}

fn random(typed: &ServeDataArguments, has_tokenizer: bool) -> Result<Data> {
    let ratio = match &typed.random_range_ratio {
        None => RangeRatio::default(),
        Some(text) => {
            let both = text.parse().ok().map(|ratio| RangeRatio { input: ratio, output: ratio });
            let ratio = both.or_else(|| serde_json::from_str(text).ok());
            let is_share = |share: f64| (0.0..1.0).contains(&share);
            ratio.filter(|it| is_share(it.input) && is_share(it.output)).ok_or_else(|| {
                Failure::usage(format!(
                    "--random-range-ratio {text} is neither a share from 0 to below 1 nor \
                     {{\"input\": 0.2, \"output\": 0.1}}"
                ))
            })?
        }
    };
    let around = |mean: u32, share: f64| {
        Some(if share == 0.0 { Lengths::Fixed(mean) } else { Lengths::Around { mean, share } })
    };
    let input = typed.input_len.or(typed.random_input_len).unwrap_or(1024);
    let output = typed.output_len.or(typed.random_output_len).unwrap_or(128);
    let prefix_tokens = typed.random_prefix_len.filter(|tokens| 0 < *tokens);
    let mut source = SourceTable {
        source: Some(SourceName::VllmRandom),
        input_tokens: around(input, ratio.input),
        output_tokens: around(output, ratio.output),
        prefix_tokens,
        ..SourceTable::default()
    };
    let mut notes = Vec::new();
    if !has_tokenizer {
        // Lengths of synthetic prompts include the prefix.
        let whole = input.saturating_add(prefix_tokens.unwrap_or(0));
        let share = ratio.input * f64::from(input) / f64::from(whole.max(1));
        source = SourceTable { source: None, input_tokens: around(whole, share), ..source };
        notes.push(
            "without a tokenizer prompts are synthetic words, as many as the server counts as tokens"
                .to_owned(),
        );
    }
    Ok(Data { source, pins_output: true, notes, ..Data::default() })
}

fn prefix_repetition(typed: &ServeDataArguments, requested: u64) -> Result<Data> {
    let prefix = typed.prefix_repetition_prefix_len.unwrap_or(256);
    let suffix = typed.prefix_repetition_suffix_len.unwrap_or(256);
    let count = typed.prefix_repetition_num_prefixes.unwrap_or(10);
    if count == 0 {
        return Err(Failure::usage("--prefix-repetition-num-prefixes must be above 0")
            .hint("--dataset-name random has prompts without a shared prefix"));
    }
    let output = typed.output_len.or(typed.prefix_repetition_output_len).unwrap_or(128);
    let requests = requested - requested % u64::from(count);
    if requests == 0 {
        return Err(Failure::usage(format!(
            "--num-prompts {requested} is fewer than --prefix-repetition-num-prefixes {count}"
        )));
    }
    let mut notes = vec![
        "the prefix of each request is drawn, so prefixes are not used exactly equally often"
            .to_owned(),
    ];
    if requests < requested {
        notes.push(format!(
            "{requests} requests are sent instead of {requested}: as many for each of {count} prefixes"
        ));
    }
    let source = SourceTable {
        input_tokens: Some(Lengths::Fixed(prefix.saturating_add(suffix))),
        output_tokens: Some(Lengths::Fixed(output)),
        prefix_tokens: Some(prefix),
        prefixes: Some(count),
        ..SourceTable::default()
    };
    Ok(Data { source, requests: Some(requests), notes, ..Data::default() })
}

/// Several random prompts in each request.
fn batched(data: Data, typed: &ServeDataArguments, context: Context) -> Result<Data> {
    let size = typed.random_batch_size.unwrap_or(1);
    match size {
        0 => Err(Failure::usage("--random-batch-size must be above 0")),
        1 => Ok(data),
        _ if context.api.generates() => Err(Failure::usage(
            "--random-batch-size needs --backend openai-embeddings or vllm-rerank",
        )),
        size => {
            let requests = context.requests.div_ceil(size.into());
            let note = format!("{requests} requests of {size} inputs are sent");
            let notes = data.notes.into_iter().chain([note]).collect();
            Ok(Data { requests: Some(requests), batch: Some(size), notes, ..data })
        }
    }
}

fn rerank(typed: &ServeDataArguments, context: Context) -> Result<Data> {
    let mut data = batched(random(typed, context.has_tokenizer)?, typed, context)?;
    data.source.prefix_tokens = None;
    data.batch = data.batch.or(Some(1));
    data.notes
        .push("each request has a query of its own; vLLM's client draws one for all".to_owned());
    Ok(data)
}

/// Random prompts with pictures of noise.
fn pictures(typed: &ServeDataArguments, context: Context) -> Result<Data> {
    if context.api != Api::Chat {
        return Err(Failure::usage("--dataset-name random-mm needs --backend openai-chat"));
    }
    let buckets = typed.random_mm_bucket_config.as_deref();
    let buckets = buckets.unwrap_or("{(256, 256, 1): 0.5, (720, 1280, 1): 0.5}");
    let sizes = buckets.trim().trim_start_matches('{').trim_end_matches('}').split('(').skip(1);
    let sizes = sizes.map(|bucket| {
        let (key, share) = bucket.split_once("):")?;
        let numbers: Vec<u32> =
            key.split(',').map(|number| number.trim().parse()).collect::<Result<_, _>>().ok()?;
        let share: f64 = share.trim_matches([',', ' ']).parse().ok()?;
        let [height, width, frames] = numbers[..] else { return None };
        let is_known = frames == 1 || share == 0.0;
        (is_known && (0.0..=1.0).contains(&share)).then_some((ImageSize(width, height), share))
    });
    let sizes: Option<Vec<(ImageSize, f64)>> = sizes.collect();
    let mut sizes = sizes.filter(|sizes| !sizes.is_empty()).ok_or_else(|| {
        Failure::usage(format!("--random-mm-bucket-config {buckets} is not known here")).hint(
            "write {(HEIGHT, WIDTH, 1): SHARE, …} with shares from 0 to 1; videos cannot be sent",
        )
    })?;
    sizes.retain(|(_, share)| 0.0 < *share);
    let limit = typed.random_mm_limit_mm_per_prompt.as_ref();
    let limit = limit.and_then(|limit| limit.get("image")?.as_u64()).unwrap_or(255);
    let count = u64::from(typed.random_mm_base_items_per_request.unwrap_or(1)).min(limit);
    let mut data = random(typed, context.has_tokenizer)?;
    data.images = u32::try_from(count).ok().filter(|count| 0 < *count).zip(Some(ImageSizes(sizes)));
    data.notes.push("pictures are PNG files of noise; vLLM's client sends JPEG".to_owned());
    Ok(data)
}

/// A dataset by its name on the hub, whose columns are known.
fn hub(typed: &ServeDataArguments, context: Context, source: SourceTable) -> Result<Data> {
    let path = source.dataset.clone().unwrap_or_default();
    let name = path.to_string_lossy();
    if REFUSALS.hub.iter().flat_map(Refusal::names).any(|refused| refused == name) {
        return Err(Refusal::unsupported(&REFUSALS.hub, "dataset-path", &name, ""));
    }
    let is_templated = TEMPLATED.contains(&&*name);
    let note = if is_templated { template_note(typed, context, "hf")? } else { None };
    let source = SourceTable {
        dataset_kind: None,
        dataset_config: typed.hf_subset.clone(),
        dataset_split: typed.hf_split.clone(),
        output_tokens: typed.output_len.or(typed.hf_output_len).map(Lengths::Fixed),
        ..source
    };
    Ok(Data { source, notes: note.into_iter().collect(), ..Data::default() })
}

/// Questions with a category.
fn questions(source: SourceTable, prompt: &str, category: Option<&str>) -> Data {
    let source = SourceTable {
        dataset_column: Some(vec![format!("prompt={prompt}")]),
        dataset_where: category.map(|category| vec![format!("category={category}")]),
        ..source
    };
    Data { source, ..Data::default() }
}

/// Refuses prompts that vLLM's client would put into the chat template itself, or a note on it.
fn template_note(
    typed: &ServeDataArguments,
    context: Context,
    name: &str,
) -> Result<Option<String>> {
    let is_raw = typed.skip_chat_template || !context.has_tokenizer;
    if context.api == Api::Completions && !is_raw {
        let what = format!(
            "--dataset-name {name} with completions needs the chat template, which is not read"
        );
        let hint = "--skip-chat-template sends prompts as they are; --backend openai-chat has one";
        return Err(Failure::usage(what).hint(hint));
    }
    Ok((context.api == Api::Chat && !is_raw).then(|| {
        "the server applies its chat template, once; vLLM's client would apply it before, too"
            .to_owned()
    }))
}

/// The length of answers, `None` where each line sets it, and a note.
fn custom(typed: &ServeDataArguments, context: Context) -> Result<(Option<u32>, Option<String>)> {
    let note = template_note(typed, context, "custom")?;
    let output = typed.output_len.map(i64::from).or(typed.custom_output_len).unwrap_or(256);
    match u32::try_from(output) {
        Ok(tokens) => Ok((Some(tokens), note)),
        Err(_) if output == -1 => Ok((None, note)),
        Err(_) => Err(Failure::usage(format!("--custom-output-len {output} is not a length"))),
    }
}

fn timed_trace(
    typed: &ServeDataArguments,
    context: Context,
    path: impl Fn() -> Result<PathBuf>,
) -> Result<Data> {
    if context.api != Api::Completions {
        return Err(Failure::usage("--dataset-name timed_trace needs --backend openai or vllm"));
    }
    let block = typed.timed_trace_chunk_hash_size.unwrap_or(16);
    let tick = typed.timed_trace_sec_multiplier.unwrap_or(1.0);
    let is_tick = |seconds: f64| (tick - seconds).abs() < 1e-12;
    let kind = match block {
        16 if is_tick(1.0) => TraceKind::Bailian,
        512 if is_tick(0.001) => TraceKind::Mooncake,
        _ => {
            return Err(Failure::usage(format!(
                "--timed-trace-chunk-hash-size {block} with --timed-trace-sec-multiplier {tick} is \
                 not supported"
            ))
            .hint("use 16 with 1, or 512 with 0.001, and convert the timestamps of the file"));
        }
    };
    let (trace, trace_kind) = (Some(path()?), Some(kind));
    let source = SourceTable { trace, trace_kind, ..SourceTable::default() };
    let recorded = context.self_timed.unwrap_or(true);
    let note = "prompts are synthetic words with the shared prefixes of the trace, not token ids";
    let notes = vec![note.to_owned()];
    Ok(Data { source, pins_output: true, recorded, notes, ..Data::default() })
}

/// Refuses a file that has rows of other models: vLLM's client leaves them out, so the lengths would
/// differ.
fn burst_gpt(path: PathBuf) -> Result<Data> {
    const MODEL: &str = "GPT-4";
    fn cells(line: &str) -> impl Iterator<Item = &str> {
        line.trim_end().split(',').map(|cell| cell.trim().trim_matches('"'))
    }
    let shown = path.display();
    let unreadable = |error: std::io::Error| Failure::usage(format!("data {shown}: {error}"));
    let text = file::read_text(&path, 1 << 30).map_err(unreadable)?;
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if let Some(column) = cells(header).position(|name| name == "Model") {
        for line in lines {
            if cells(line).nth(column).is_some_and(|model| model != MODEL) {
                return Err(Failure::usage(format!(
                    "data {shown} has rows of other models than {MODEL}, which vLLM leaves out"
                ))
                .hint(format!(
                    "keep only those rows: awk -F, 'NR==1 || ${}==\"{MODEL}\"' FILE > gpt4.csv",
                    column + 1
                )));
            }
        }
    }
    let note = "lengths are taken in the order of the file; vLLM's client draws rows by its seed";
    let notes = vec![note.to_owned()];
    let (trace, trace_kind) = (Some(path), Some(TraceKind::BurstGpt));
    let source = SourceTable { trace, trace_kind, ..SourceTable::default() };
    Ok(Data { source, notes, ..Data::default() })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use inferometer_model::spec::Rate;

    use super::*;
    use crate::arguments::flag;

    #[derive(Parser)]
    #[command(mut_args(flag))]
    struct TypedTarget {
        #[command(flatten)]
        target: ServeTargetArguments,
    }

    fn url(typed: &str) -> Result<String, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let said = TypedTarget::try_parse_from(words).unwrap().target;
        let api = api(said.backend.as_deref().unwrap_or("openai"));
        let base = api.and_then(|api| base_url(&said, api));
        base.map(|base| base.to_string()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn a_place_is_put_together_as_the_other_client_does() {
        assert_eq!(url("").unwrap(), "http://127.0.0.1:8000");
        assert_eq!(url("--host ::1 --port 80").unwrap(), "http://[::1]");
        assert_eq!(
            url("--base-url https://h/p --endpoint /v1/completions").unwrap(),
            "https://h/p"
        );
        assert_eq!(url("--base-url http://h/v1 --endpoint /completions").unwrap(), "http://h");
        assert_eq!(url("--backend openai-chat").unwrap(), "http://127.0.0.1:8000");
        let chat = "--backend openai-chat --endpoint /v1/chat/completions";
        assert_eq!(url(chat).unwrap(), "http://127.0.0.1:8000");
    }

    #[test]
    fn another_endpoint_and_another_backend_are_refused() {
        let wrong = url("--backend openai-chat --endpoint /v1/completions").unwrap_err();
        assert!(wrong.contains("/v1/chat/completions"), "{wrong}");
        assert!(url("--endpoint /generate").unwrap_err().contains("/v1/completions"));
        let responses = url("--backend openai-responses").unwrap_err();
        assert!(responses.contains("run --api responses"), "{responses}");
        assert!(url("--backend openai-audio").unwrap_err().contains("audio"));
        assert!(url("--backend tgi").unwrap_err().contains("--api"));
    }

    #[derive(Parser)]
    #[command(allow_negative_numbers = true, mut_args(flag))]
    struct Typed {
        #[command(flatten)]
        load: ServeLoadArguments,
    }

    fn load(typed: &str) -> Result<LoadTable, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let said = Typed::try_parse_from(words).unwrap().load;
        load_table(&said, false).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn an_unlimited_rate_with_a_cap_is_a_closed_loop() {
        let capped = load("--max-concurrency 8 --num-prompts 20").unwrap();
        assert_eq!((capped.concurrency, capped.requests), (Some(8), Some(20)));
        assert!(capped.rate.is_none() && capped.max_concurrency.is_none());
        let all_at_once = load("").unwrap();
        assert_eq!(all_at_once.rate.unwrap(), PerSecond(f64::INFINITY));
        assert_eq!(all_at_once.requests, Some(1000));
        assert!(all_at_once.arrivals.is_none(), "there are no gaps to shape");
    }

    #[test]
    fn burstiness_names_the_gaps() {
        let kind = |typed: &str| load(typed).unwrap().arrivals.unwrap();
        assert_eq!(kind("--request-rate 5"), ArrivalsKind::Stretched);
        assert_eq!(kind("--request-rate 5 --burstiness inf"), ArrivalsKind::Constant);
        let bursty = load("--request-rate 5 --burstiness 0.5 --max-concurrency 9").unwrap();
        assert_eq!((bursty.burstiness, bursty.max_concurrency), (Some(0.5), Some(9)));
        let ramp = "--ramp-up-strategy linear --ramp-up-start-rps 5 --ramp-up-end-rps";
        assert_eq!(kind(&format!("{ramp} 9")), ArrivalsKind::Poisson);
        assert_eq!(kind(&format!("{ramp} 5")), ArrivalsKind::Poisson, "a flat one is one, too");
    }

    #[test]
    fn a_ramp_sends_all_its_requests_by_its_end() {
        for strategy in ["linear", "exponential"] {
            let typed = format!(
                "--ramp-up-strategy {strategy} --ramp-up-start-rps 2 --ramp-up-end-rps 20 \
                 --num-prompts 300"
            );
            let segments = load(&typed).unwrap().ramp.unwrap().0;
            let over = segments.iter().map(|segment| segment.over).sum();
            let rate = Rate::Ramp { segments, curve: RampCurve::Exponential };
            let expected = rate.expected_within(over);
            assert!((expected - 300.0).abs() < 1e-3, "{strategy}: {expected}");
            assert!((rate.per_s_in_the_end() - 20.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(load("--num-prompts 0").unwrap_err().contains("--num-prompts"));
        assert!(load("--num-prompts -1").unwrap_err().contains("--num-prompts"));
        assert!(load("--probe-request-rate 5").unwrap_err().contains("second run"));
        assert!(load("--probe-request-rate 0").is_ok());
        assert!(load("--request-rate 0").is_err() && load("--max-concurrency 0").is_err());
        assert!(load("--ramp-up-start-rps 3").unwrap_err().contains("--ramp-up-strategy"));
        let ramp = "--ramp-up-strategy linear --ramp-up-start-rps 0 --ramp-up-end-rps 5";
        assert!(load(ramp).unwrap_err().contains("begin with 1"));
        let flat = "--ramp-up-strategy exponential --ramp-up-start-rps 1000000000000000 \
                    --ramp-up-end-rps 1000000000000001";
        assert!(load(flat).unwrap_err().contains("--request-rate"));
    }

    #[derive(Parser)]
    #[command(allow_negative_numbers = true, mut_args(flag))]
    struct TypedData {
        #[command(flatten)]
        data: ServeDataArguments,
    }

    const BESIDE: Context =
        Context { api: Api::Completions, has_tokenizer: true, requests: 1000, self_timed: None };

    #[track_caller]
    fn data(typed: &str, beside: Context) -> Result<Data, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let said = TypedData::try_parse_from(words).unwrap().data;
        Data::from_arguments(&said, beside).map_err(|failure| format!("{failure:?}"))
    }

    fn written(lengths: Option<Lengths>) -> String {
        lengths.unwrap().to_string()
    }

    #[test]
    fn random_is_drawn_as_there_and_has_its_defaults() {
        let found = data("", BESIDE).unwrap();
        assert!(found.pins_output && !found.recorded && found.notes.is_empty());
        assert_eq!(found.source.source.unwrap(), SourceName::VllmRandom);
        assert_eq!(written(found.source.input_tokens), "1024");
        assert_eq!(written(found.source.output_tokens), "128");
        let ratio = r#"--random-range-ratio {"input":0.25,"output":0.5} --input-len 64"#;
        let found = data(ratio, BESIDE).unwrap().source;
        assert_eq!(found.input_tokens.unwrap(), Lengths::Around { mean: 64, share: 0.25 });
        assert_eq!(found.output_tokens.unwrap(), Lengths::Around { mean: 128, share: 0.5 });
        for wrong in ["1", "-0.1", "x", "nan"] {
            let typed = format!("--random-range-ratio={wrong}");
            assert!(data(&typed, BESIDE).unwrap_err().contains("range-ratio"), "{wrong}");
        }
    }

    #[test]
    fn without_a_tokenizer_our_words_are_as_long() {
        let beside = Context { has_tokenizer: false, ..BESIDE };
        let typed = "--random-prefix-len 100 --random-input-len 300 --random-range-ratio 0.2";
        let found = data(typed, beside).unwrap();
        assert!(found.source.source.is_none() && found.notes.len() == 1);
        let around = found.source.input_tokens.unwrap();
        assert_eq!((around.least(), around.most()), (340, 460));
    }

    #[test]
    fn prefixes_share_the_requests() {
        let beside = Context { requests: 25, ..BESIDE };
        let none = "--dataset-name prefix_repetition --prefix-repetition-num-prefixes 0";
        assert!(data(none, beside).unwrap_err().contains("above 0"));
        let found = data("--dataset-name prefix_repetition", beside).unwrap();
        assert_eq!(found.requests, Some(20));
        assert_eq!(written(found.source.input_tokens), "512");
        assert_eq!((found.source.prefix_tokens, found.source.prefixes), (Some(256), Some(10)));
        let few = Context { requests: 9, ..BESIDE };
        assert!(data("--dataset-name prefix_repetition", few).unwrap_err().contains("fewer"));
    }

    #[test]
    fn batches_pictures_and_data_of_the_hub_are_taken() {
        let embeddings = Context { api: Api::Embeddings, requests: 10, ..BESIDE };
        let found = data("--random-batch-size 4", embeddings).unwrap();
        assert_eq!((found.batch, found.requests), (Some(4), Some(3)));
        assert!(data("--random-batch-size 4", BESIDE).unwrap_err().contains("embeddings"));
        let rerank = Context { api: Api::Rerank, ..embeddings };
        assert_eq!(data("--dataset-name random-rerank", rerank).unwrap().batch, Some(1));
        assert!(data("", rerank).unwrap_err().contains("random-rerank"));

        let chat = Context { api: Api::Chat, ..BESIDE };
        let found = data("--dataset-name random-mm", chat).unwrap();
        let halves = vec![(ImageSize(256, 256), 0.5), (ImageSize(1_280, 720), 0.5)];
        assert_eq!(found.images, Some((1, ImageSizes(halves))));
        let typed = "--dataset-name random-mm --random-mm-bucket-config={(64,32,1):1.0} \
                     --random-mm-base-items-per-request 5 --random-mm-limit-mm-per-prompt={\"image\":3}";
        let sizes = ImageSizes(vec![(ImageSize(32, 64), 1.0)]);
        assert_eq!(data(typed, chat).unwrap().images, Some((3, sizes)));
        let video = "--dataset-name random-mm --random-mm-bucket-config={(64,32,16):1.0}";
        assert!(data(video, chat).unwrap_err().contains("videos"));

        let hub = "--dataset-name hf --hf-split test --dataset-path";
        let found = data(&format!("{hub} AI-MO/NuminaMath-CoT"), BESIDE).unwrap().source;
        assert_eq!(found.dataset_split.as_deref(), Some("test"));
        assert!(data(&format!("{hub} openai/gsm8k"), BESIDE).unwrap_err().contains("template"));
        for name in REFUSALS.hub.iter().flat_map(Refusal::names) {
            let said = data(&format!("{hub} {name}"), BESIDE).unwrap_err();
            assert!(said.contains(name) && said.contains("not supported"), "{said}");
        }
        let questions = "--dataset-name spec_bench --dataset-path q.jsonl --spec-bench-category qa";
        let found = data(questions, BESIDE).unwrap().source;
        assert_eq!(found.dataset_where.unwrap(), ["category=qa"]);
        let speed = "--dataset-name speed_bench --dataset-path d --skip-chat-template";
        let found = data(speed, BESIDE).unwrap().source;
        assert_eq!(found.dataset.unwrap(), PathBuf::from("d/qualitative.jsonl"));
        assert_eq!(written(found.output_tokens), "4096");
    }

    #[test]
    fn custom_prompts_are_never_put_into_a_template_here() {
        let file = "--dataset-name custom --dataset-path d.jsonl";
        assert!(data(file, BESIDE).unwrap_err().contains("--skip-chat-template"));
        let raw = data(&format!("{file} --skip-chat-template"), BESIDE).unwrap();
        assert_eq!(written(raw.source.output_tokens), "256");
        let chat = Context { api: Api::Chat, ..BESIDE };
        let templated = data(&format!("{file} --custom-output-len -1"), chat).unwrap();
        assert!(templated.source.output_tokens.is_none() && templated.notes[0].contains("once"));
        assert!(data("--dataset-name custom", chat).unwrap_err().contains("--dataset-path"));
    }

    #[test]
    fn traces_keep_their_moments_unless_told_otherwise() {
        let file = "--dataset-name timed_trace --dataset-path t.jsonl";
        let found = data(file, BESIDE).unwrap();
        assert!(found.recorded && found.pins_output);
        assert_eq!(found.source.trace_kind.unwrap(), TraceKind::Bailian);
        let mooncake =
            format!("{file} --timed-trace-chunk-hash-size 512 --timed-trace-sec-multiplier 0.001");
        let untimed = Context { self_timed: Some(false), ..BESIDE };
        let found = data(&mooncake, untimed).unwrap();
        assert!(!found.recorded);
        assert_eq!(found.source.trace_kind.unwrap(), TraceKind::Mooncake);
        assert!(data(&format!("{file} --timed-trace-chunk-hash-size 64"), BESIDE).is_err());
        assert!(data("", untimed).unwrap_err().contains("timed_trace"));
    }

    #[test]
    fn one_model_of_burst_gpt_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.csv");
        let header = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
        let typed = format!("--dataset-name burstgpt --dataset-path {}", path.display());
        std::fs::write(&path, format!("{header}5,GPT-4,472,18,490,Conversation log\n")).unwrap();
        let found = data(&typed, BESIDE).unwrap();
        assert_eq!(found.source.trace_kind.unwrap(), TraceKind::BurstGpt);
        std::fs::write(&path, format!("{header}5,ChatGPT,472,18,490,Conversation log\n")).unwrap();
        assert!(data(&typed, BESIDE).unwrap_err().contains("awk"));
    }

    #[test]
    fn other_data_and_stray_flags_are_told() {
        for name in REFUSALS.datasets.iter().flat_map(Refusal::names) {
            assert!(data(&format!("--dataset-name {name}"), BESIDE).unwrap_err().contains(name));
        }
        assert!(data("--dataset-name nosuch", BESIDE).unwrap_err().contains("not known"));
        assert!(data("--dataset-path x", BESIDE).unwrap_err().contains("makes its own"));
        let stray = data("--dataset-name prefix_repetition --random-input-len 5", BESIDE).unwrap();
        assert!(stray.notes.iter().any(|note| note.contains("--random-input-len")));
    }
}
