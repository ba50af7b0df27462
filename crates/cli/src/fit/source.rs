//! Results as rows: our own runs, other tools' results, and tables that were typed in.

use std::path::{Path, PathBuf};

use inferometer_analysis::tool_result::{LatencyKind, ResultRate, ToolResult};
use inferometer_interchange::{PublishedRow, PublishedTable, read_file};
use inferometer_model::Segment;
use inferometer_model::import::ImportReading;
use inferometer_model::spec::EngineTable;
use inferometer_store::{ImportDirectory, RunStore, Stored, read_at_most};

use crate::failure::Failure;
use crate::results;
use inferometer_runner::fit::{Draws, Figures, Row, RowLoad, RowRequest, own_seed, row_of_run};

/// How lengths scatter where a result says only their sums: standard deviation over mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spreads {
    pub(crate) input: f64,
    pub(crate) output: f64,
}

const FILE_BYTES_MAX: u64 = 64 << 20;
/// No length is more than so many times the mean.
const LENGTH_MAX: f64 = 5.0;
const REQUESTS_MAX: u64 = 1_000_000;
/// A server that gave this share of the rate kept up with it.
const KEPT_UP: f64 = 0.95;

/// Where a result is stored.
pub(crate) enum ResultSource {
    /// A file, or the folder of a run.
    Path(PathBuf),
    /// All results of a foreign file that was taken in, or the one with this number.
    Import(ImportDirectory, Option<u32>),
}

impl ResultSource {
    /// A result that is no file may be the id of a stored run or import.
    fn find(name: &str, store: &RunStore) -> Self {
        if Path::new(name).is_file() {
            return Self::Path(name.into());
        }
        match store.find(name) {
            Ok(Stored::Run(run)) => Self::Path(run.path().to_owned()),
            Ok(Stored::Import(import, number)) => Self::Import(import, number),
            Ok(Stored::Set(_)) | Err(_) => Self::Path(name.into()),
        }
    }
}

/// All rows of one result: `PLACE`, or `PLACE@key=value,…` where its server was set otherwise.
pub(crate) fn read(result: &str, store: &RunStore, spreads: Spreads) -> Result<Vec<Row>, Failure> {
    let (name, server) = match result.split_once('@') {
        Some((name, settings)) => (name, choice(settings)?),
        None => (result, EngineTable::default()),
    };
    let mut rows = match ResultSource::find(name, store) {
        ResultSource::Path(path) if path.is_dir() => vec![row_of_run(&path)?],
        ResultSource::Path(path) => {
            let bytes = read_at_most(&path, FILE_BYTES_MAX)
                .map_err(|error| Failure::usage(error.to_string()))?
                .ok_or_else(|| Failure::usage(format!("there is no {}", path.display())))?;
            of_file(&path, &bytes, spreads)?
        }
        ResultSource::Import(import, number) => {
            let sheets = results::from_import(&import, number)?;
            of_sheets(sheets.iter(), spreads)
                .map_err(|error| Failure::usage(error).about(import.id()))?
        }
    };
    for row in &mut rows {
        row.server = server.clone();
    }
    Ok(rows)
}

/// Settings of a server as `key=value,…`, with the keys of a profile's `[serve]`.
fn choice(settings: &str) -> Result<EngineTable, Failure> {
    let lines: Vec<String> = settings.split(',').map(str::to_owned).collect();
    toml::from_str(&lines.join("\n")).map_err(|error| {
        Failure::usage(format!("`@{settings}` is no setting of a server: {}", error.message()))
            .hint("such as results.jsonl@max_num_seqs=4096,generation=\"v0\"")
    })
}

fn of_file(path: &Path, bytes: &[u8], spreads: Spreads) -> Result<Vec<Row>, Failure> {
    let named = |error: String| Failure::usage(format!("{}: {error}", path.display()));
    if path.extension().is_some_and(|end| end == "toml") {
        let text = str::from_utf8(bytes).map_err(|_| named("is not text".to_owned()))?;
        let table = PublishedTable::read(text).map_err(|error| named(error.to_string()))?;
        for row in &table.rows {
            check_count(row.requests, &format!("`{}`", row.name)).map_err(named)?;
        }
        return Ok(table.rows.iter().enumerate().map(of_published).collect());
    }
    let found = read_file(&path.display().to_string(), bytes, &ImportReading::default())
        .map_err(|error| named(error.to_string()))?;
    if let Some(broken) = found.broken().next() {
        return Err(named(format!("line {}: {}", broken.line, broken.reason))
            .hint("a fit wants every row; take the broken ones out"));
    }
    of_sheets(found.sheets(), spreads).map_err(named)
}

fn of_sheets<'a>(
    sheets: impl Iterator<Item = &'a ToolResult>,
    spreads: Spreads,
) -> Result<Vec<Row>, String> {
    sheets.enumerate().map(|(number, result)| of_foreign(number, result, spreads)).collect()
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
        server: EngineTable::default(),
        continues: 0 < number,
    }
}

fn of_foreign(number: usize, result: &ToolResult, spreads: Spreads) -> Result<Row, String> {
    let missing = |what: &str| format!("line {}: the result has no {what}", line_of(result));
    let completed = result.completed.filter(|n| 0 < *n).ok_or_else(|| missing("completed"))?;
    let input = result.input_tokens.ok_or_else(|| missing("total input tokens"))?;
    let output = result.output_tokens.ok_or_else(|| missing("total output tokens"))?;
    check_count(completed, &format!("line {}", line_of(result)))?;
    let (name, load) = load_of(result)?;
    let name = match result.requests_planned.filter(|planned| completed < *planned) {
        Some(planned) => format!("{name}, {completed} of {planned}"),
        None => name,
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
            output_throughput: known(result.output_throughput),
            ttft_mean_ms: known(mean(result, LatencyKind::Ttft)),
            tpot_mean_ms: known(mean(result, LatencyKind::Tpot)),
        },
        server: EngineTable::default(),
        continues: false,
    })
}

fn line_of(result: &ToolResult) -> u32 {
    result.source.line.unwrap_or(0)
}

fn mean(result: &ToolResult, kind: LatencyKind) -> Option<f64> {
    result.latency(kind)?.mean_ms
}

/// Other tools write zero for what they do not know.
fn known(figure: Option<f64>) -> Option<f64> {
    figure.filter(|figure| 0.0 < *figure)
}

fn load_of(result: &ToolResult) -> Result<(String, RowLoad), String> {
    let refuse = |why: &str| Err(format!("line {}: {why}", line_of(result)));
    if result.burstiness.is_some_and(|burstiness| (burstiness - 1.0).abs() > 1e-9) {
        return refuse("its arrivals are burstier or evener than Poisson, and are not played here");
    }
    match (result.max_concurrency, result.request_rate) {
        (Some(_), Some(ResultRate::PerSecond(_))) => {
            refuse("it has a rate and a cap on the requests in flight, and is not played here")
        }
        (Some(slots), Some(ResultRate::Unlimited) | None) => {
            Ok((format!("concurrency {slots}"), RowLoad::Closed { slots, tests_first: true }))
        }
        (None, Some(ResultRate::PerSecond(rate))) => {
            let kept_up = result.request_throughput.map(|got| KEPT_UP * rate <= got);
            let took_s = result.duration_s;
            Ok((format!("rate {rate}"), RowLoad::Poisson { rate, took_s, kept_up }))
        }
        (None, Some(ResultRate::Unlimited)) => Ok(("all at once".to_owned(), RowLoad::AtOnce)),
        (None, None) => refuse("it says neither a rate nor a concurrency"),
    }
}

/// A trial holds all requests of a row at once.
fn check_count(requests: u64, whose: &str) -> Result<(), String> {
    if requests <= REQUESTS_MAX {
        return Ok(());
    }
    Err(format!("{whose} has {requests} requests; a row may have {REQUESTS_MAX}"))
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
