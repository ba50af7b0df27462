//! What the other client asks: its data sets as our sources.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use inferometer_model::endpoint::Api;
use inferometer_model::spec::{DatasetKind, Lengths, SourceName, SourceTable, TraceKind};
use serde::Deserialize;

use super::refused::{REFUSALS, Refusal};
use crate::arguments::ServeDataArguments;
use crate::failure::Failure;

/// What is asked, in our words.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) source: SourceTable,
    /// Whether the other client has the server go on until an answer has its length.
    pub(super) goes_on: bool,
    /// Whether requests leave at the moments of the data.
    pub(super) recorded: bool,
    /// Requests, where the data cannot have as many as were asked for.
    pub(super) requests: Option<u64>,
    /// What a user of the other client should know.
    pub(super) notes: Vec<String>,
}

/// What else bears on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) api: Api,
    pub(super) has_tokenizer: bool,
    pub(super) requests: u64,
    /// `Some` where it was said whether the moments of a trace count.
    pub(super) self_timed: Option<bool>,
}

impl Data {
    pub(super) fn from_arguments(
        said: &ServeDataArguments,
        context: Context,
    ) -> Result<Self, Failure> {
        let name = said.dataset_name.as_deref().unwrap_or("random");
        if context.self_timed.is_some() && name != "timed_trace" {
            return Err(Failure::usage(
                "--self-timed and --no-self-timed need --dataset-name timed_trace",
            ));
        }
        let mut data = match name {
            "random" => random(said, context)?,
            PREFIXES => prefix_repetition(said, context)?,
            "sharegpt" => share_gpt(said)?,
            "custom" => custom(said, context)?,
            "burstgpt" => burst_gpt(said)?,
            "timed_trace" => timed_trace(said, context)?,
            _ => {
                return Err(match Refusal::find(&REFUSALS.datasets, name) {
                    Some(Refusal { instead, .. }) => {
                        Failure::usage(format!("--dataset-name {name} is not supported here"))
                            .hint(instead)
                    }
                    None => Failure::usage(format!(
                        "--dataset-name {name} is not known; it is random, sharegpt, custom, \
                         prefix_repetition, burstgpt or timed_trace"
                    )),
                });
            }
        };
        data.notes.extend(unused_flags(said, name));
        Ok(data)
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeRatio {
    input: f64,
    output: f64,
}

fn range_ratio(said: &ServeDataArguments) -> Result<RangeRatio, Failure> {
    let Some(text) = &said.random_range_ratio else {
        return Ok(RangeRatio { input: 0.0, output: 0.0 });
    };
    let both = text.parse().ok().map(|ratio| RangeRatio { input: ratio, output: ratio });
    let ratio = both.or_else(|| serde_json::from_str(text).ok());
    let is_share = |share: f64| (0.0..1.0).contains(&share);
    ratio.filter(|ratio| is_share(ratio.input) && is_share(ratio.output)).ok_or_else(|| {
        Failure::usage(format!(
            "--random-range-ratio {text} is neither a share from 0 to below 1 nor {{\"input\": \
             0.2, \"output\": 0.1}}"
        ))
    })
}

fn around(mean: u32, share: f64) -> Lengths {
    if share == 0.0 { Lengths::Fixed(mean) } else { Lengths::Around { mean, share } }
}

fn no_path(said: &ServeDataArguments, name: &str) -> Result<(), Failure> {
    match &said.dataset_path {
        None => Ok(()),
        Some(path) => Err(Failure::usage(format!(
            "--dataset-name {name} makes its own prompts; --dataset-path {} is for other data",
            path.display()
        ))
        .hint("name what the file is: --dataset-name sharegpt, custom, burstgpt or timed_trace")),
    }
}

fn path(said: &ServeDataArguments, name: &str) -> Result<PathBuf, Failure> {
    said.dataset_path
        .clone()
        .ok_or_else(|| Failure::usage(format!("--dataset-name {name} needs --dataset-path FILE")))
}

fn random(said: &ServeDataArguments, context: Context) -> Result<Data, Failure> {
    no_path(said, "random")?;
    let ratio = range_ratio(said)?;
    let input = said.input_len.or(said.random_input_len).unwrap_or(1024);
    let output = said.output_len.or(said.random_output_len).unwrap_or(128);
    let prefix = said.random_prefix_len.filter(|tokens| 0 < *tokens);
    let (name, input_tokens) = if context.has_tokenizer {
        (Some(SourceName::VllmRandom), around(input, ratio.input))
    } else {
        // Our own lengths have the prefix in them.
        let whole = input.saturating_add(prefix.unwrap_or(0));
        (None, around(whole, ratio.input * f64::from(input) / f64::from(whole.max(1))))
    };
    let source = SourceTable {
        source: name,
        input_tokens: Some(input_tokens),
        output_tokens: Some(around(output, ratio.output)),
        prefix_tokens: prefix,
        ..SourceTable::default()
    };
    let notes = (!context.has_tokenizer).then(|| {
        "without a tokenizer prompts are words of our own, as long as the server counts them"
            .to_owned()
    });
    Ok(Data { source, goes_on: true, notes: notes.into_iter().collect(), ..Data::default() })
}

fn prefix_repetition(said: &ServeDataArguments, context: Context) -> Result<Data, Failure> {
    no_path(said, PREFIXES)?;
    let prefix = said.prefix_repetition_prefix_len.unwrap_or(256);
    let suffix = said.prefix_repetition_suffix_len.unwrap_or(256);
    let count = said.prefix_repetition_num_prefixes.unwrap_or(10);
    if count == 0 {
        return Err(Failure::usage("--prefix-repetition-num-prefixes must be above 0")
            .hint("--dataset-name random has prompts that do not begin alike"));
    }
    let output = said.output_len.or(said.prefix_repetition_output_len).unwrap_or(128);
    let requests = context.requests - context.requests % u64::from(count);
    if requests == 0 {
        return Err(Failure::usage(format!(
            "--num-prompts {} are fewer than --prefix-repetition-num-prefixes {count}",
            context.requests
        )));
    }
    let mut notes = vec![
        "prefixes are drawn for each request, so they are not used equally often to the last one"
            .to_owned(),
    ];
    if requests < context.requests {
        notes.push(format!(
            "{requests} requests are sent instead of {}: as many for each of {count} prefixes",
            context.requests
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

fn share_gpt(said: &ServeDataArguments) -> Result<Data, Failure> {
    let output = said.output_len.or(said.sharegpt_output_len);
    let source = SourceTable {
        dataset: Some(path(said, "sharegpt")?),
        dataset_kind: Some(DatasetKind::ShareGpt),
        output_tokens: output.map(Lengths::Fixed),
        keep_order: said.disable_shuffle.then_some(true),
        ..SourceTable::default()
    };
    Ok(Data { source, ..Data::default() })
}

fn custom(said: &ServeDataArguments, context: Context) -> Result<Data, Failure> {
    let is_raw = said.skip_chat_template || !context.has_tokenizer;
    if context.api == Api::Completions && !is_raw {
        return Err(Failure::usage(
            "--dataset-name custom with completions: the other client would put every prompt into \
             the model's chat template, which is not done here",
        )
        .hint(
            "--skip-chat-template sends prompts as they are; --backend openai-chat lets the server \
             apply its template",
        ));
    }
    let notes = (context.api == Api::Chat && !is_raw).then(|| {
        "the server applies its chat template, once; the other client would apply it before, too"
            .to_owned()
    });
    let typed = said.output_len.map(i64::from).or(said.custom_output_len).unwrap_or(256);
    let output_tokens = match u32::try_from(typed) {
        Ok(tokens) => Some(Lengths::Fixed(tokens)),
        Err(_) if typed == -1 => None,
        Err(_) => return Err(Failure::usage(format!("--custom-output-len {typed} is no length"))),
    };
    let source = SourceTable {
        dataset: Some(path(said, "custom")?),
        dataset_kind: Some(DatasetKind::Jsonl),
        output_tokens,
        keep_order: said.disable_shuffle.then_some(true),
        ..SourceTable::default()
    };
    Ok(Data { source, notes: notes.into_iter().collect(), ..Data::default() })
}

fn burst_gpt(said: &ServeDataArguments) -> Result<Data, Failure> {
    let path = path(said, "burstgpt")?;
    check_models(&path)?;
    let source = SourceTable {
        trace: Some(path),
        trace_kind: Some(TraceKind::BurstGpt),
        ..SourceTable::default()
    };
    let notes = vec![
        "lengths are taken in the order of the file; the other client draws rows by its seed"
            .to_owned(),
    ];
    Ok(Data { source, notes, ..Data::default() })
}

fn timed_trace(said: &ServeDataArguments, context: Context) -> Result<Data, Failure> {
    if context.api != Api::Completions {
        return Err(Failure::usage("--dataset-name timed_trace needs --backend openai or vllm"));
    }
    let block = said.timed_trace_chunk_hash_size.unwrap_or(16);
    let tick = said.timed_trace_sec_multiplier.unwrap_or(1.0);
    let is_tick = |seconds: f64| (tick - seconds).abs() < 1e-12;
    let kind = match block {
        16 if is_tick(1.0) => TraceKind::Bailian,
        512 if is_tick(0.001) => TraceKind::Mooncake,
        _ => {
            return Err(Failure::usage(format!(
                "traces are read with blocks of 16 tokens and seconds, or with 512 and \
                 milliseconds, not with {block} and {tick} s"
            ))
            .hint(
                "write the timestamps of the file anew, or say --timed-trace-chunk-hash-size 512 \
                 --timed-trace-sec-multiplier 0.001",
            ));
        }
    };
    let source = SourceTable {
        trace: Some(path(said, "timed_trace")?),
        trace_kind: Some(kind),
        ..SourceTable::default()
    };
    let recorded = context.self_timed.unwrap_or(true);
    let notes = vec![
        "prompts are words of our own that begin alike where the trace says so; the other client \
         sends token ids"
            .to_owned(),
    ];
    Ok(Data { source, goes_on: true, recorded, notes, ..Data::default() })
}

/// One line for each flag that changes nothing with this data.
fn unused_flags(said: &ServeDataArguments, name: &str) -> Vec<String> {
    let flags: [(bool, &str, &[&str]); 16] = [
        (said.input_len.is_some(), "input-len", &["random"]),
        (said.random_input_len.is_some(), "random-input-len", &["random"]),
        (said.random_output_len.is_some(), "random-output-len", &["random"]),
        (said.random_range_ratio.is_some(), "random-range-ratio", &["random"]),
        (said.random_prefix_len.is_some(), "random-prefix-len", &["random"]),
        (said.output_len.is_some(), "output-len", &["random", "sharegpt", "custom", PREFIXES]),
        (said.skip_chat_template, "skip-chat-template", &["custom"]),
        (said.disable_shuffle, "disable-shuffle", &["sharegpt", "custom"]),
        (said.custom_output_len.is_some(), "custom-output-len", &["custom"]),
        (said.sharegpt_output_len.is_some(), "sharegpt-output-len", &["sharegpt"]),
        (said.prefix_repetition_prefix_len.is_some(), "prefix-repetition-prefix-len", &[PREFIXES]),
        (said.prefix_repetition_suffix_len.is_some(), "prefix-repetition-suffix-len", &[PREFIXES]),
        (
            said.prefix_repetition_num_prefixes.is_some(),
            "prefix-repetition-num-prefixes",
            &[PREFIXES],
        ),
        (said.prefix_repetition_output_len.is_some(), "prefix-repetition-output-len", &[PREFIXES]),
        (
            said.timed_trace_chunk_hash_size.is_some(),
            "timed-trace-chunk-hash-size",
            &["timed_trace"],
        ),
        (said.timed_trace_sec_multiplier.is_some(), "timed-trace-sec-multiplier", &["timed_trace"]),
    ];
    let unused = flags.into_iter().filter(|(is_set, _, of)| *is_set && !of.contains(&name));
    unused.map(|(_, flag, _)| format!("--{flag} changes nothing with {name} data")).collect()
}

const PREFIXES: &str = "prefix_repetition";
const MODEL: &str = "GPT-4";

/// Refuses a file that has other rows too: its lengths would be others than those that are asked
/// for elsewhere.
fn check_models(path: &Path) -> Result<(), Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("data {}: {error}", path.display()));
    let mut lines = BufReader::new(File::open(path).map_err(unreadable)?).lines();
    let header = lines.next().transpose().map_err(unreadable)?.unwrap_or_default();
    let Some(column) = cells(&header).position(|name| name == "Model") else { return Ok(()) };
    for line in lines {
        let line = line.map_err(unreadable)?;
        let model = cells(&line).nth(column);
        if model.is_some_and(|model| model != MODEL) {
            return Err(Failure::usage(format!(
                "data {} has rows of other models than {MODEL}, which the other client leaves out",
                path.display()
            ))
            .hint(format!(
                "keep those rows alone: awk -F, 'NR==1 || ${}==\"{MODEL}\"' FILE > gpt4.csv",
                column + 1
            )));
        }
    }
    Ok(())
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim_end().split(',').map(|cell| cell.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests;
