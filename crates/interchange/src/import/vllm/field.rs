//! Which figure a key or a label names, and whether a value can be that figure.

use inferometer_analysis::tool_result::extra::{self, ExtraFigure};
use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ResultRequest, ToolResult,
};
use serde::de::{Deserialize, Deserializer, SeqAccess};

use super::json::{self, Loose};
use crate::import::mapping::{self, LISTED_MAX, shown};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Model,
    Tokenizer,
    Backend,
    Started,
    TensorParallel,
    RequestRate,
    Burstiness,
    MaxConcurrency,
    RequestsPlanned,
    Completed,
    Failed,
    Duration,
    InputTokens,
    OutputTokens,
    RequestThroughput,
    RequestGoodput,
    OutputThroughput,
    PeakOutputThroughput,
    PeakConcurrentRequests,
    TotalTokenThroughput,
    Latency(LatencyKind, Statistic),
    /// End to end, with the wait for the client's own cap.
    QueuedE2e(Statistic),
    /// A figure of this tool only, by its key.
    ExtraFigure(String, Scale),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    AsWritten,
    /// A share that was written in per cent.
    PerCent,
}

/// The field of a latency's statistic, by the names that the tool's keys and labels have for both.
pub(crate) fn statistic_named(latency: &str, statistic: &str) -> Option<Field> {
    let statistic = Statistic::named(statistic)?;
    let kind = match latency.to_ascii_lowercase().as_str() {
        "ttft" => LatencyKind::Ttft,
        "tpot" => LatencyKind::Tpot,
        "itl" => LatencyKind::Itl,
        "e2el" => LatencyKind::E2e,
        "e2el_including_client_queue" | "e2el incl. client queue" => {
            return Some(Field::QueuedE2e(statistic));
        }
        "client_queue_time" | "client queue time" => {
            let key = format!("{}_{}", statistic.key(), extra::CLIENT_QUEUE.0);
            return Some(Field::ExtraFigure(key, Scale::AsWritten));
        }
        _ => return None,
    };
    Some(Field::Latency(kind, statistic))
}

/// A figure of this tool only.
pub(crate) fn further_named(is_meant: impl Fn(&ExtraFigure) -> bool) -> Option<Field> {
    let figure = extra::known().find(is_meant)?;
    Some(Field::ExtraFigure(figure.key.to_owned(), Scale::AsWritten))
}

/// What the tool means by a latency: its clock starts when a request is sent, and a gap is one
/// between events of a stream.
fn meaning(kind: LatencyKind) -> (CountsFrom, Grain) {
    match kind {
        LatencyKind::Ttft | LatencyKind::E2e => (CountsFrom::Send, Grain::Request),
        LatencyKind::Tpot => (CountsFrom::Output, Grain::Request),
        LatencyKind::Itl => (CountsFrom::Output, Grain::Chunk),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    Mean,
    Median,
    Std,
    /// Its rank as written.
    Percentile(String),
}

impl Statistic {
    fn key(&self) -> String {
        match self {
            Self::Mean => "mean".to_owned(),
            Self::Median => "median".to_owned(),
            Self::Std => "std".to_owned(),
            Self::Percentile(rank) => format!("p{rank}"),
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "mean" => Some(Self::Mean),
            "median" => Some(Self::Median),
            "std" => Some(Self::Std),
            _ => {
                let rank = name.strip_prefix('p')?;
                let written = rank.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                let known = rank.parse::<f64>().is_ok_and(|rank| (0.0..=100.0).contains(&rank));
                (written && known).then(|| Self::Percentile(rank.to_owned()))
            }
        }
    }
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    Number(f64),
    Text(String),
    Truth(bool),
    /// A list or an object: never a figure.
    Other,
}

/// Puts the value into its field, or gives the reason why it cannot be there.
pub(crate) fn set(result: &mut ToolResult, field: Field, value: &Written) -> Result<(), String> {
    match field {
        Field::Model => result.model = Some(text(value)?),
        Field::Tokenizer => result.tokenizer = Some(text(value)?),
        Field::Backend => result.backend = Some(text(value)?),
        Field::Started => result.started = Some(text(value)?),
        Field::TensorParallel => {
            result.tensor_parallel = Some(parallel(value)?);
        }
        Field::RequestRate => result.request_rate = Some(rate(value)?),
        Field::Burstiness => result.burstiness = Some(burstiness(value)?),
        Field::MaxConcurrency => {
            let cap = u32::try_from(count(value)?).map_err(|_| "is too large".to_owned())?;
            result.max_concurrency = Some(cap);
        }
        Field::RequestsPlanned => result.requests_planned = Some(count(value)?),
        Field::Completed => result.completed = Some(count(value)?),
        Field::Failed => result.failed = Some(count(value)?),
        Field::Duration => result.duration_s = Some(figure(value)?),
        Field::InputTokens => result.input_tokens = Some(count(value)?),
        Field::OutputTokens => result.output_tokens = Some(count(value)?),
        Field::RequestThroughput => result.request_throughput = Some(figure(value)?),
        Field::RequestGoodput => result.request_goodput = Some(figure(value)?),
        Field::OutputThroughput => result.output_throughput = Some(figure(value)?),
        Field::PeakOutputThroughput => result.peak_output_throughput = Some(figure(value)?),
        Field::PeakConcurrentRequests => result.peak_concurrent_requests = Some(count(value)?),
        Field::TotalTokenThroughput => result.total_token_throughput = Some(figure(value)?),
        Field::Latency(latency, statistic) => {
            let ms = figure(value)?;
            let (from, grain) = meaning(latency);
            set_statistic(result.latency_mut(latency, from, grain), statistic, ms)?;
        }
        Field::QueuedE2e(statistic) => {
            let ms = figure(value)?;
            let meant = (LatencyKind::E2e, CountsFrom::Schedule, Grain::Request);
            set_statistic(result.latency_mut(meant.0, meant.1, meant.2), statistic, ms)?;
        }
        Field::ExtraFigure(key, scale) => set_further(result, key, scale, figure(value)?)?,
    }
    Ok(())
}

fn set_statistic(latency: &mut ResultLatency, statistic: Statistic, ms: f64) -> Result<(), String> {
    let rank = match statistic {
        Statistic::Mean => {
            latency.mean_ms = Some(ms);
            return Ok(());
        }
        Statistic::Std => {
            latency.std_ms = Some(ms);
            return Ok(());
        }
        Statistic::Median => "50".to_owned(),
        Statistic::Percentile(rank) => {
            latency.has_p50 |= rank == "50";
            rank
        }
    };
    if LISTED_MAX <= latency.percentiles_ms.len() {
        return Err(format!("is beyond the {LISTED_MAX} percentiles that are kept"));
    }
    latency.percentiles_ms.insert(rank, ms);
    Ok(())
}

fn set_further(
    result: &mut ToolResult,
    key: String,
    scale: Scale,
    value: f64,
) -> Result<(), String> {
    // So the tool writes it of a run without audio.
    if key == extra::REAL_TIME_FACTOR.key && value == 0.0 {
        return Ok(());
    }
    if LISTED_MAX <= result.further.len() {
        return Err(format!("is beyond the {LISTED_MAX} further figures that are kept"));
    }
    let value = match scale {
        Scale::AsWritten => value,
        Scale::PerCent => value / 100.0,
    };
    result.further.insert(key, value);
    Ok(())
}

/// Adds to the metadata of the result; returns whether there was room.
pub(crate) fn describe(result: &mut ToolResult, key: &str, value: String) -> bool {
    let has_room = result.metadata.len() < LISTED_MAX;
    if has_room {
        result.metadata.push((shown(key), value));
    }
    has_room
}

pub(crate) fn note(result: &mut ToolResult, line: u32, what: &str) {
    mapping::note(result, format!("line {line}: {what}"));
}

pub(crate) fn figure(value: &Written) -> Result<f64, String> {
    mapping::checked_figure(number(value)?)
}

pub(crate) fn count(value: &Written) -> Result<u64, String> {
    mapping::checked_count(number(value)?)
}

fn number(value: &Written) -> Result<f64, String> {
    match value {
        Written::Number(number) => Ok(*number),
        Written::Text(text) => Err(mapping::no_number(text)),
        Written::Truth(_) | Written::Other => Err("is not a number".to_owned()),
    }
}

fn text(value: &Written) -> Result<String, String> {
    match value {
        Written::Text(text) => Ok(text.clone()),
        Written::Number(_) | Written::Truth(_) | Written::Other => Err("is not a text".to_owned()),
    }
}

/// People write it into their metadata, which is text.
fn parallel(value: &Written) -> Result<u32, String> {
    let written = match value {
        Written::Text(text) => text.trim().parse().map_or_else(|_| value.clone(), Written::Number),
        Written::Number(_) | Written::Truth(_) | Written::Other => value.clone(),
    };
    let gpus = u32::try_from(count(&written)?).map_err(|_| "is too large".to_owned())?;
    if gpus == 0 { Err("is zero, which no number of GPUs can be".to_owned()) } else { Ok(gpus) }
}

fn rate(value: &Written) -> Result<ResultRate, String> {
    if is_infinite(value) {
        return Ok(ResultRate::Unlimited);
    }
    match figure(value)? {
        rate if rate > 0.0 => Ok(ResultRate::PerSecond(rate)),
        _ => Err("is zero, which no rate can be".to_owned()),
    }
}

fn burstiness(value: &Written) -> Result<f64, String> {
    if is_infinite(value) {
        return Ok(f64::INFINITY);
    }
    match figure(value)? {
        shape if shape > 0.0 => Ok(shape),
        _ => Err("is zero, which no burstiness can be".to_owned()),
    }
}

fn is_infinite(value: &Written) -> bool {
    match value {
        Written::Number(number) => *number == f64::INFINITY,
        Written::Text(text) => {
            ["inf", "infinity"].iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        Written::Truth(_) | Written::Other => false,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    InputTokens,
    OutputTokens,
    Ttft,
    Gaps,
    E2e,
    Start,
    Queued,
    Text,
    Error,
    /// Not of requests: shares of drafts that were accepted.
    Positions,
}

impl Column {
    pub(crate) fn named(key: &str) -> Option<Self> {
        Some(match key {
            "input_lens" => Self::InputTokens,
            "output_lens" => Self::OutputTokens,
            "ttfts" => Self::Ttft,
            "itls" => Self::Gaps,
            "latencies" => Self::E2e,
            "start_times" => Self::Start,
            "queue_times" => Self::Queued,
            "generated_texts" => Self::Text,
            "errors" => Self::Error,
            extra::POSITIONS => Self::Positions,
            _ => return None,
        })
    }
}

/// A list as it was written; `None` of something else.
#[derive(Debug)]
pub(crate) struct Cells(Option<Vec<Cell>>);

#[derive(Debug)]
pub(crate) enum Cell {
    Number(f64),
    Text(String),
    Numbers(Vec<f64>),
    Other,
}

/// Puts the lists into the sheet. Those that do not fit the first of them are left out and noted.
pub(crate) fn take(result: &mut ToolResult, line: u32, columns: Vec<(String, Column, Cells)>) {
    let mut requests: Option<Vec<ResultRequest>> = None;
    for (key, column, cells) in columns {
        let Some(cells) = cells.0 else {
            note(result, line, &format!("{key} is not a list"));
            continue;
        };
        if column == Column::Positions {
            take_positions(result, line, &key, cells);
            continue;
        }
        let rows = requests.get_or_insert_with(|| vec![ResultRequest::default(); cells.len()]);
        if rows.len() != cells.len() {
            let (here, others) = (cells.len(), rows.len());
            let what = format!("{key} has {here} values, and the lists before it have {others}");
            note(result, line, &what);
            continue;
        }
        let misfits =
            rows.iter_mut().zip(cells).filter_map(|(row, cell)| column.set(row, cell).err());
        match misfits.count() {
            0 => {}
            count => note(result, line, &format!("{key}: {count} values are none")),
        }
    }
    for request in requests.iter_mut().flatten() {
        forget_zeros(request);
    }
    result.requests = requests;
}

fn take_positions(result: &mut ToolResult, line: u32, key: &str, cells: Vec<Cell>) {
    for (position, cell) in cells.into_iter().enumerate() {
        let field = Field::ExtraFigure(extra::position_key(position), Scale::AsWritten);
        if let Err(reason) = set(result, field, &cell.written()) {
            note(result, line, &format!("{key}, position {position}, {reason}"));
            return;
        }
    }
}

/// The tool writes zeros of a request that failed. No first token came in no time.
fn forget_zeros(request: &mut ResultRequest) {
    request.ttft_s = request.ttft_s.filter(|seconds| 0.0 < *seconds);
    request.e2e_s = request.e2e_s.filter(|seconds| 0.0 < *seconds);
    if request.error.as_ref().is_some_and(|error| !error.is_empty()) {
        request.output_tokens = request.output_tokens.filter(|tokens| 0 < *tokens);
    }
}

impl Column {
    fn set(self, row: &mut ResultRequest, cell: Cell) -> Result<(), String> {
        match (self, cell) {
            (Self::Gaps, Cell::Numbers(gaps_s)) if gaps_s.iter().all(|gap| 0.0 <= *gap) => {
                row.gaps_s = gaps_s;
            }
            (Self::Text, Cell::Text(text)) => row.text = Some(text),
            (Self::Error, Cell::Text(error)) => row.error = Some(error),
            (Self::InputTokens, cell) => row.input_tokens = Some(count(&cell.written())?),
            (Self::OutputTokens, cell) => row.output_tokens = Some(count(&cell.written())?),
            (Self::Ttft, cell) => row.ttft_s = Some(figure(&cell.written())?),
            (Self::E2e, cell) => row.e2e_s = Some(figure(&cell.written())?),
            (Self::Start, cell) => row.start_s = Some(figure(&cell.written())?),
            (Self::Queued, cell) => row.queued_s = Some(figure(&cell.written())?),
            (Self::Gaps | Self::Text | Self::Error | Self::Positions, _) => {
                return Err("is of another kind".to_owned());
            }
        }
        Ok(())
    }
}

impl Cell {
    fn written(self) -> Written {
        match self {
            Self::Number(number) => Written::Number(number),
            Self::Text(text) => Written::Text(text),
            Self::Numbers(_) | Self::Other => Written::Other,
        }
    }
}

impl Loose for Cells {
    fn other() -> Self {
        Self(None)
    }

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut cells = Vec::new();
        while let Some(cell) = list.next_element()? {
            cells.push(cell);
        }
        Ok(Self(Some(cells)))
    }
}

impl Loose for Cell {
    fn other() -> Self {
        Self::Other
    }

    fn number(number: f64) -> Self {
        Self::Number(number)
    }

    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut numbers = Vec::new();
        let mut are_numbers = true;
        while let Some(Number(number)) = list.next_element()? {
            are_numbers &= number.is_some();
            numbers.extend(number);
        }
        Ok(if are_numbers { Self::Numbers(numbers) } else { Self::Other })
    }
}

struct Number(Option<f64>);

impl Loose for Number {
    fn other() -> Self {
        Self(None)
    }

    fn number(number: f64) -> Self {
        Self(Some(number))
    }
}

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::deserialize(deserializer)
    }
}
