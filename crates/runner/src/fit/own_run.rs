//! A run of our own as a row: its requests with their lengths, when they were sent, its figures.

use std::path::Path;

use inferometer_analysis::{Summary, Verdict, summarize};
use inferometer_model::spec::EngineTable;
use inferometer_model::spec::{LoadShape, Think};
use inferometer_model::{Moment, Observations, Outcome, RequestRecord, Segment};
use inferometer_store::RunDirectory;

use super::row::{Figures, Row, RowLoad, RowRequest, own_seed};
use crate::failure::Failure;

/// Plays a run again as it was sent, where that can be told from its records.
pub fn row(path: &Path) -> Result<Row, Failure> {
    let directory = RunDirectory::at(path.to_owned());
    let stored = directory.read().map_err(|error| Failure::usage(error.to_string()))?;
    let observations = &stored.observations;
    let summary = summarize(observations);
    if let Some(why) = unfit(observations, &summary) {
        return Err(Failure::usage(format!("{}: {why}", directory.id())));
    }
    let simulated = observations.manifest.simulated.is_some();
    let vllm = summary.vllm;
    Ok(Row {
        name: format!("{}{}", directory.id(), if simulated { " (simulated)" } else { "" }),
        requests: observations.records.iter().zip(0..).map(request).collect(),
        load: load(observations),
        figures: Figures {
            output_throughput: vllm.output_throughput,
            ttft_mean_ms: vllm.ttft_ms.mean,
            tpot_mean_ms: vllm.tpot_ms.mean,
        },
        server: EngineTable::default(),
        continues: false,
    })
}

/// Why the records do not tell how to play it, or its figures not what to reach.
fn unfit(observations: &Observations, summary: &Summary) -> Option<String> {
    let records = &observations.records;
    let spec = &observations.manifest.spec;
    let ok = records.iter().filter(|record| record.ending.outcome == Outcome::Ok).count();
    let is_cached = |record: &RequestRecord| {
        record.usage.and_then(|usage| usage.cached_tokens).is_some_and(|tokens| 0 < tokens)
    };
    let why = if ok < records.len() || ok == 0 {
        format!("{ok} of {} requests ended ok, and a fit wants all", records.len())
    } else if summary.verdict == Verdict::Invalid {
        "the run is invalid; a fit to it would be one to its faults".to_owned()
    } else if spec.engine.speed.is_some_and(|speed| (speed - 1.0).abs() > 1e-9) {
        "its engine ran at another speed than its profile's".to_owned()
    } else if records.iter().any(|record| 0 < record.asked.turn) {
        "it has conversations, which are not played here".to_owned()
    } else if records.iter().any(is_cached) {
        "some prompts were in the prefix cache, and the records do not tell which parts".to_owned()
    } else {
        match &spec.load.shape {
            LoadShape::Closed { think: Think::None, .. } | LoadShape::Open { cap: None, .. } => {
                return None;
            }
            LoadShape::Closed { .. } => "it has think times, which are not played here".to_owned(),
            LoadShape::Open { .. } => "it has a cap, which is not played here".to_owned(),
        }
    };
    Some(why)
}

fn load(observations: &Observations) -> RowLoad {
    let began = observations.ending.began.unwrap_or(Moment::ZERO);
    match &observations.manifest.spec.load.shape {
        LoadShape::Closed { concurrency, .. } => {
            RowLoad::Closed { slots: concurrency.get(), tests_first: false }
        }
        LoadShape::Open { .. } => {
            let sent = |record: &RequestRecord| {
                Moment::ZERO + record.sent.and_then(|at| at.since(began)).unwrap_or_default()
            };
            RowLoad::Recorded(observations.records.iter().map(sent).collect())
        }
    }
}

/// With the lengths that the server counted, where it did.
fn request((record, index): (&RequestRecord, u64)) -> RowRequest {
    let counted = |count: Option<u64>| count.and_then(|count| u32::try_from(count).ok());
    let usage = record.usage.as_ref();
    let tokens = counted(usage.and_then(|usage| usage.prompt_tokens));
    let output = counted(usage.and_then(|usage| usage.completion_tokens));
    let tokens = tokens.unwrap_or(record.asked.input_tokens);
    RowRequest {
        prompt: Segment { seed: own_seed(0, index), tokens },
        output_tokens: output.unwrap_or(record.asked.output_tokens),
    }
}
