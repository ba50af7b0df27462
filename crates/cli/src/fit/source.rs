//! Results as rows: our own runs, results of `vllm bench serve`, and tables that were typed in.

use std::path::{Path, PathBuf};

use inferometer_analysis::summarize;
use inferometer_engine::profile::Choice;
use inferometer_interchange::{
    ForeignRate, ForeignResult, Imported, PublishedRow, PublishedTable, read_results,
};
use inferometer_model::spec::LoadShape;
use inferometer_model::{Moment, Outcome, RequestRecord, Segment};
use inferometer_store::{RunDirectory, read_at_most};

use super::plan::Draws;
use super::row::{Figures, Row, RowLoad, RowRequest};
use crate::failure::Failure;

/// How lengths scatter where a result says only their sums: standard deviation over mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spreads {
    pub(crate) input: f64,
    pub(crate) output: f64,
}

const FILE_BYTES_MAX: u64 = 64 << 20;
/// No length is more than so many times the mean.
const LENGTH_MAX: f64 = 5.0;
/// A server that gave this share of the rate kept up with it.
const KEPT_UP: f64 = 0.95;

/// All rows of one result: `PATH`, or `PATH@key=value,…` where its server was set otherwise.
pub(crate) fn read(result: &str, spreads: Spreads) -> Result<Vec<Row>, Failure> {
    let (path, server) = match result.split_once('@') {
        Some((path, settings)) => (path, choice(settings)?),
        None => (result, Choice::default()),
    };
    let path = PathBuf::from(path);
    let mut rows = if path.is_dir() {
        vec![of_run(&path)?]
    } else {
        let bytes = read_at_most(&path, FILE_BYTES_MAX)
            .map_err(|error| Failure::usage(error.to_string()))?
            .ok_or_else(|| Failure::usage(format!("there is no {}", path.display())))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::usage(format!("{} is not text", path.display())))?;
        of_text(&path, &text, spreads)?
    };
    for row in &mut rows {
        row.server = server.clone();
    }
    Ok(rows)
}

/// Settings of a server as `key=value,…`, with the keys of a profile's `[serve]`.
fn choice(settings: &str) -> Result<Choice, Failure> {
    let lines: Vec<String> = settings.split(',').map(str::to_owned).collect();
    toml::from_str(&lines.join("\n")).map_err(|error| {
        Failure::usage(format!("`@{settings}` is no setting of a server: {}", error.message()))
            .hint("such as results.jsonl@max_num_seqs=4096,generation=\"v0\"")
    })
}

fn of_text(path: &Path, text: &str, spreads: Spreads) -> Result<Vec<Row>, Failure> {
    let named = |error: String| Failure::usage(format!("{}: {error}", path.display()));
    if path.extension().is_some_and(|end| end == "toml") {
        let table = PublishedTable::read(text).map_err(|error| named(error.to_string()))?;
        return Ok(table.rows.iter().enumerate().map(of_published).collect());
    }
    let found = read_results(text).map_err(|error| named(error.to_string()))?;
    let broken = found.iter().find_map(Imported::broken);
    if let Some(broken) = broken {
        return Err(named(format!("line {}: {}", broken.line, broken.reason))
            .hint("a fit wants every row; take the broken ones out"));
    }
    let results = found.iter().filter_map(Imported::result).enumerate();
    results.map(|(number, result)| of_foreign(number, result, spreads).map_err(named)).collect()
}

/// Rows of a table were measured one after the other on one server, by a client that draws the
/// same prompts each time; with lengths that vary its draws, and so its prompts, are others.
fn of_published((number, row): (usize, &PublishedRow)) -> Row {
    let mut draws = Draws::new(number as u64, 1);
    let varies = 0.0 < row.range_ratio;
    let request = |index: u64| {
        let mut length = |mean: u32| {
            let factor = 1.0 + row.range_ratio * (2.0 * draws.unit() - 1.0);
            if varies { whole(f64::from(mean) * factor) } else { mean }
        };
        let (tokens, output_tokens) = (length(row.input_tokens), length(row.output_tokens));
        let seed = if varies { own_seed(number, index) } else { index };
        RowRequest { prompt: Segment { seed, tokens }, output_tokens }
    };
    Row {
        name: row.name.clone(),
        requests: (0..row.requests).map(request).collect(),
        load: RowLoad::Closed { slots: row.concurrency, tests_first: true },
        figures: Figures {
            output_throughput: row.output_throughput,
            ttft_mean_ms: row.ttft_mean_ms,
            tpot_mean_ms: row.tpot_mean_ms,
        },
        server: Choice::default(),
        continues: 0 < number,
    }
}

fn of_foreign(number: usize, result: &ForeignResult, spreads: Spreads) -> Result<Row, String> {
    let missing = |what: &str| format!("line {}: the result has no {what}", result.origin.line);
    let completed = result.completed.filter(|n| 0 < *n).ok_or_else(|| missing("completed"))?;
    let input = result.input_tokens.ok_or_else(|| missing("total input tokens"))?;
    let output = result.output_tokens.ok_or_else(|| missing("total output tokens"))?;
    let (name, load) = match (result.max_concurrency, result.request_rate) {
        (Some(slots), _) => {
            (format!("concurrency {slots}"), RowLoad::Closed { slots, tests_first: true })
        }
        (None, Some(ForeignRate::PerSecond(rate))) => {
            let kept_up = result.request_throughput.is_some_and(|got| KEPT_UP * rate <= got);
            let took_s = result.duration_s.filter(|_| kept_up);
            (format!("rate {rate}"), RowLoad::Poisson { rate, took_s })
        }
        (None, Some(ForeignRate::Unlimited)) => ("all at once".to_owned(), RowLoad::AtOnce),
        (None, None) => return Err(missing("request rate and no concurrency")),
    };
    // What did not complete is taken not to have been served: its tokens are in no sum.
    let inputs = lengths(completed, input, spreads.input, 2);
    let outputs = lengths(completed, output, spreads.output, 3);
    let requests = inputs.into_iter().zip(outputs).zip(0..);
    let requests = requests.map(|((tokens, output_tokens), index)| {
        let prompt = Segment { seed: own_seed(number, index), tokens };
        RowRequest { prompt, output_tokens }
    });
    Ok(Row {
        name,
        requests: requests.collect(),
        load,
        figures: Figures {
            output_throughput: result.output_throughput,
            ttft_mean_ms: result.ttft.mean_ms,
            tpot_mean_ms: result.tpot.mean_ms,
        },
        server: Choice::default(),
        continues: false,
    })
}

/// So many lengths with this sum, all alike or log-normal; the same for every row, as a dataset's
/// are.
fn lengths(count: u64, sum: u64, spread: f64, purpose: u64) -> Vec<u32> {
    let mean = sum as f64 / count as f64;
    if spread <= 0.0 {
        return (0..count).map(|_| whole(mean)).collect();
    }
    let mut draws = Draws::new(0, purpose);
    let sigma = libm::sqrt(libm::log(1.0 + spread * spread));
    let mut factors: Vec<f64> = (0..count).map(|_| libm::exp(sigma * draws.normal())).collect();
    for _ in 0..8 {
        let cut: f64 = factors.iter().map(|factor| factor.min(LENGTH_MAX)).sum();
        let scale = count as f64 / cut;
        for factor in &mut factors {
            *factor *= scale;
        }
    }
    factors.iter().map(|factor| whole(mean * factor.min(LENGTH_MAX))).collect()
}

fn whole(tokens: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates, and a length is at least one token"
    )]
    let tokens = tokens.round() as u32;
    tokens.max(1)
}

fn own_seed(row: usize, index: u64) -> u64 {
    ((row as u64 + 1) << 40) | index
}

/// A run of ours is played again as it was sent.
fn of_run(path: &Path) -> Result<Row, Failure> {
    let directory = RunDirectory::at(path.to_owned());
    let stored = directory.read().map_err(|error| Failure::usage(error.to_string()))?;
    let observations = &stored.observations;
    let ok: Vec<&RequestRecord> =
        observations.records.iter().filter(|r| r.ending.outcome == Outcome::Ok).collect();
    if ok.len() < observations.records.len() || ok.is_empty() {
        return Err(Failure::usage(format!(
            "{}: {} of {} requests ended ok; a fit wants a run without failures",
            directory.id(),
            ok.len(),
            observations.records.len()
        )));
    }
    let began = observations.ending.began.unwrap_or(Moment::ZERO);
    let load = match observations.manifest.spec.load.shape {
        LoadShape::Closed { concurrency, .. } => {
            RowLoad::Closed { slots: concurrency.get(), tests_first: false }
        }
        LoadShape::Open { .. } => RowLoad::Recorded(
            ok.iter()
                .map(|r| Moment::ZERO + r.sent.and_then(|at| at.since(began)).unwrap_or_default())
                .collect(),
        ),
    };
    let vllm = summarize(observations).vllm;
    let request = |(record, index): (&&RequestRecord, u64)| {
        let said = record.usage.and_then(|usage| usage.prompt_tokens);
        let got = record.usage.and_then(|usage| usage.completion_tokens);
        let tokens = said.and_then(|n| u32::try_from(n).ok());
        let output = got.and_then(|n| u32::try_from(n).ok());
        let tokens = tokens.unwrap_or(record.asked.input_tokens);
        let output_tokens = output.unwrap_or(record.asked.output_tokens);
        RowRequest { prompt: Segment { seed: own_seed(0, index), tokens }, output_tokens }
    };
    Ok(Row {
        name: directory.id().to_owned(),
        requests: ok.iter().zip(0..).map(request).collect(),
        load,
        figures: Figures {
            output_throughput: vllm.output_throughput,
            ttft_mean_ms: vllm.ttft_ms.mean,
            tpot_mean_ms: vllm.tpot_ms.mean,
        },
        server: Choice::default(),
        continues: false,
    })
}
