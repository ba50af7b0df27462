//! The requests of a run: a table of all, and everything that is known of one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use inferometer_analysis::detail::{ArrivalDetail, RequestDetail, requests};
use inferometer_analysis::metric::PER_REQUEST;
use inferometer_analysis::steps::Step;
use inferometer_analysis::{Anatomy, Metric, StripFigure, Unit, metric};
use inferometer_model::record::Read;
use inferometer_model::{Moment, RequestRecord};
use inferometer_report::document::{Block, Cell, Columns, plain};
use inferometer_report::fmt::{self, NOTHING, count, counted, number};
use inferometer_report::pages::step_charts;
use inferometer_store::{RunDirectory, StoredRun};
use serde::Serialize;
use serde_json::{Value, json};

use crate::overlay::{Axis, Point, Series, View};
use crate::query::Query;

/// A journal of more bytes is left to `inferometer export`.
const JOURNAL_BYTES_MAX: u64 = 1 << 30;
/// Lines of one page, and of one table about a single request.
pub(crate) const PAGE_ROWS: usize = 50;
const DETAIL_ROWS_MAX: usize = 2_000;
/// The latencies that the table shows.
pub(crate) const SHOWN: [&Metric; 3] = [&metric::TTFT, &metric::TPOT, &metric::E2E];

/// The run that was looked at last, as reading it takes a while.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<Option<(Key, Arc<OpenRun>)>>);

/// The id, the time of the last change and the length of the journal.
type Key = (String, Option<SystemTime>, u64);

#[derive(Debug)]
pub(crate) struct OpenRun {
    stored: StoredRun,
    pub(crate) rows: Vec<RequestRow>,
    /// The server's steps; empty where none are visible.
    pub(crate) steps: Vec<Step>,
    pub(crate) anatomy: Option<Anatomy>,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RequestRow {
    pub(crate) request: u64,
    pub(crate) outcome: String,
    /// Since the run's zero.
    pub(crate) sent_ms: Option<f64>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: Option<u64>,
    /// In the order of [`SHOWN`].
    pub(crate) latencies_ms: [Option<f64>; SHOWN.len()],
}

impl Requests {
    pub(crate) fn open(&self, directory: &RunDirectory) -> Result<Arc<OpenRun>, String> {
        let journal = directory.path().join("requests.journal");
        let found = journal.metadata().map_err(|error| format!("the journal: {error}"))?;
        if JOURNAL_BYTES_MAX < found.len() {
            return Err(
                "the journal is too long for this page; use `inferometer export`".to_owned()
            );
        }
        let key = (directory.id().to_owned(), found.modified().ok(), found.len());
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, run)) = cached.as_ref().filter(|(known, _)| *known == key) {
            return Ok(Arc::clone(run));
        }
        // The memory of the other one goes first.
        *cached = None;
        let stored = directory.read().map_err(|error| error.to_string())?;
        let rows = requests(&stored.observations).map(|it| RequestRow::new(&it)).collect();
        let (anatomy, steps) = Anatomy::with_steps(&stored.observations);
        stored.check_read().map_err(|error| error.to_string())?;
        let run = Arc::new(OpenRun { stored, rows, steps, anatomy });
        *cached = Some((key, Arc::clone(&run)));
        Ok(run)
    }
}

impl RequestRow {
    fn new(detail: &RequestDetail<'_>) -> Self {
        let RequestDetail { record, latencies, .. } = detail;
        Self {
            request: record.id.0,
            outcome: record.ending.outcome.to_string(),
            sent_ms: record.sent.map(ms),
            input_tokens: detail.input_tokens,
            output_tokens: detail.output_tokens.map(|(tokens, _)| tokens),
            latencies_ms: SHOWN.map(|metric| latencies.get(metric)),
        }
    }
}

fn ms(moment: Moment) -> f64 {
    moment.as_nanos() as f64 / 1e6
}

/// From one moment to another; negative where they are the other way round.
fn between(from: Moment, to: Moment) -> f64 {
    ms(to) - ms(from)
}

impl OpenRun {
    /// One page of the table in the order that is asked for, and how many there are.
    pub(crate) fn page(&self, query: &Query) -> (Vec<&RequestRow>, usize) {
        let outcome = query.get("outcome");
        let is_wanted = |row: &&RequestRow| outcome.is_empty() || row.outcome == outcome;
        let mut rows: Vec<&RequestRow> = self.rows.iter().filter(is_wanted).collect();
        let sort = query.sort();
        let (column, is_down) = sort.strip_prefix('-').map_or((sort, false), |it| (it, true));
        let number = |row: &RequestRow| match column {
            "sent" => row.sent_ms,
            "input" => Some(row.input_tokens as f64),
            "output" => row.output_tokens.map(|tokens| tokens as f64),
            other => {
                let place = SHOWN.iter().position(|metric| metric.name == other)?;
                row.latencies_ms[place]
            }
        };
        if !column.is_empty() && column != "request" {
            rows.sort_by(|one, other| match (number(one), number(other)) {
                (Some(one), Some(other)) if is_down => other.total_cmp(&one),
                (Some(one), Some(other)) => one.total_cmp(&other),
                (one, other) => one.is_none().cmp(&other.is_none()),
            });
        } else if is_down {
            rows.reverse();
        }
        let found = rows.len();
        let from = (query.page() - 1).saturating_mul(PAGE_ROWS);
        (rows.into_iter().skip(from).take(PAGE_ROWS).collect(), found)
    }

    pub(crate) fn outcomes(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.rows.iter().map(|row| row.outcome.as_str()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    pub(crate) fn request(&self, number: u64) -> Option<RequestDetail<'_>> {
        requests(&self.stored.observations).find(|detail| detail.record.id.0 == number)
    }
}

/// Everything about a request, for programs.
pub(crate) fn json(detail: &RequestDetail<'_>) -> Value {
    let latencies = PER_REQUEST.iter().zip(detail.latencies.values);
    let latencies: serde_json::Map<String, Value> =
        latencies.map(|(metric, ms)| (metric.key().to_owned(), ms.into())).collect();
    json!({
        "record": detail.record,
        "input_tokens": detail.input_tokens,
        "output_tokens": detail.output_tokens.map(|(tokens, _)| tokens),
        "latencies": latencies,
        "views": [view(detail)],
    })
}

/// The arrivals, to be drawn.
fn view(detail: &RequestDetail<'_>) -> View {
    let start = detail.record.sent.unwrap_or(detail.record.admitted);
    let mut tokens = 0;
    let point = |(place, arrival): (usize, &ArrivalDetail)| {
        tokens += arrival.tokens.unwrap_or_else(|| u64::from(arrival.events));
        let (place, tokens) = (place as f64 + 1.0, tokens as f64);
        Point {
            name: format!("arrival {}", fmt::whole(place)),
            values: vec![
                Some(between(start, arrival.at)),
                Some(tokens),
                arrival.icl_ms,
                Some(place),
            ],
        }
    };
    let unit = Unit::Milliseconds.name();
    View {
        key: "arrivals",
        title: "Arrivals",
        axes: vec![
            Axis::new("time", "Time since the request was sent", unit),
            Axis::new("tokens", "Tokens so far", ""),
            Axis::new("gap", "Gap since the arrival before", unit),
            Axis::new("arrival", "Arrival", ""),
        ],
        x: "time".to_owned(),
        y: "tokens".to_owned(),
        series: vec![Series {
            name: "Arrivals".to_owned(),
            points: detail.arrivals.iter().enumerate().map(point).collect(),
        }],
    }
}

/// The facts and tables of one request, beside the server's steps.
pub(crate) fn blocks(detail: &RequestDetail<'_>, run: &OpenRun) -> Vec<Block> {
    let RequestDetail { record, arrivals, .. } = detail;
    let start = record.sent.unwrap_or(record.admitted);
    let since =
        |moment: Option<Moment>| moment.map(|at| format!("{} ms", number(between(start, at))));
    let read_at = |index: u32| record.reads.get(index as usize).map(Read::at);
    let first = arrivals.first().map(|arrival| arrival.at);
    let last = arrivals.last().map(|arrival| arrival.at);
    let moments = [
        ("Intended by the schedule", since(Some(record.intended))),
        ("Admitted", since(Some(record.admitted))),
        ("Sent", record.sent.map(|at| format!("0 ms, {} s after the start", number(ms(at) / 1e3)))),
        ("Headers complete", since(record.head.and_then(|head| read_at(head.read)))),
        ("First output", since(first)),
        ("Last output", since(last)),
        ("Ended", since(Some(record.ending.at))),
    ];
    let latencies = PER_REQUEST.iter().zip(detail.latencies.values);
    let latencies = latencies.map(|(metric, ms)| (metric.title, ms.map(fmt::latency)));
    let charts = run.anatomy.as_ref().into_iter().flat_map(|anatomy| {
        let strip = StripFigure::new(&run.steps, Some(start));
        let of = "from the time at which this request was sent";
        step_charts(anatomy, &strip, of).map(Block::from).collect::<Vec<_>>()
    });
    let mut blocks = vec![
        Block::facts(answer_facts(detail)),
        Block::Paragraph(plain("Moments, from the time at which the request was sent:")),
        Block::facts(moments),
        Block::Paragraph(plain("Latencies:")),
        Block::facts(latencies),
    ];
    blocks.extend(charts);
    blocks.push(arrivals_table(arrivals, start, &run.steps));
    blocks.extend([reads_table(record, start), events_table(record, start)]);
    blocks
}

fn answer_facts(detail: &RequestDetail<'_>) -> Vec<(&'static str, Option<String>)> {
    let RequestDetail { record, .. } = detail;
    let cause = record.ending.cause.map(|cause| cause.text().to_owned());
    let input = format!(
        "{} tokens, {}",
        count(detail.input_tokens),
        if detail.input_reported { "counted by the server" } else { "as requested" }
    );
    let output = detail.output_tokens.map(|(tokens, source)| {
        let source: &'static str = source.into();
        format!("{} tokens, counted by {}", count(tokens), source.replace('_', " "))
    });
    let connection = record.connection.map(|it| {
        let how = if it.reused { "reused" } else { "opened for this request" };
        format!("number {}, {how}", it.ordinal)
    });
    vec![
        (
            "Outcome",
            Some(fmt::joined(&[&record.ending.outcome.to_string(), &cause.unwrap_or_default()])),
        ),
        ("Message of the server", record.ending.message.clone()),
        ("Status", record.head.map(|head| head.status.to_string())),
        ("Input", Some(input)),
        ("Output", output),
        ("Connection", connection),
        ("Conversation turn", (0 < record.asked.turn).then(|| record.asked.turn.to_string())),
    ]
}

fn optional(value: Option<f64>) -> Cell {
    value.map_or_else(|| Cell::text(NOTHING), |value| Cell::number(number(value), value))
}

fn whole(value: Option<u64>) -> Cell {
    value.map_or_else(|| Cell::text(NOTHING), Cell::count)
}

/// Cut to so many rows that a browser can show them.
fn rows<T>(all: &[T]) -> (impl Iterator<Item = (u64, &T)>, Option<String>) {
    let more = all.len().saturating_sub(DETAIL_ROWS_MAX) as u64;
    let note = (0 < more).then(|| format!("{} more are not shown.", counted(more, "row")));
    ((1..).zip(all).take(DETAIL_ROWS_MAX), note)
}

fn arrivals_table(arrivals: &[ArrivalDetail], start: Moment, steps: &[Step]) -> Block {
    let (rows, note) = rows(arrivals);
    let step = |at: Moment| {
        steps[..steps.partition_point(|step| step.first <= at)]
            .last()
            .filter(|step| at <= step.last)
    };
    let columns =
        Columns::number("Arrival", |(place, _): &(u64, &ArrivalDetail)| whole(Some(*place)))
            .right("ms since sent", move |(_, it)| optional(Some(between(start, it.at))))
            .right("Events", |(_, it)| whole(Some(it.events.into())))
            .right("Tokens", |(_, it)| whole(it.tokens))
            .right("Gap ms", |(_, it)| optional(it.icl_ms))
            .right("Gap per token ms", |(_, it)| optional(it.itl_ms));
    let columns = if steps.is_empty() {
        columns
    } else {
        columns
            .right("Requests in the step", move |(_, it)| {
                whole(step(it.at).map(|step| step.batch.into()))
            })
            .right("Step ms", move |(_, it)| {
                optional(step(it.at).and_then(|step| step.duration).map(|seconds| seconds * 1e3))
            })
            .right("Prompt tokens in it", move |(_, it)| {
                whole(step(it.at).map(|step| step.prefill_tokens))
            })
    };
    columns.table("arrivals", "Arrivals of output", rows).noted(note).into()
}

fn reads_table(record: &RequestRecord, start: Moment) -> Block {
    let (rows, note) = rows(&record.reads);
    let at = move |moment: Option<Moment>| optional(moment.map(|moment| between(start, moment)));
    Columns::number("Read", |(place, _): &(u64, &Read)| whole(Some(*place)))
        .right("Kernel, ms since sent", move |(_, read)| at(read.kernel))
        .right("Program, ms since sent", move |(_, read)| at(Some(read.user)))
        .right("Bytes", |(_, read)| whole(Some(read.bytes.into())))
        .left("Socket", |(_, read)| {
            Cell::text(if read.drained { "emptied" } else { "not emptied" })
        })
        .table("reads", "Reads of the socket", rows)
        .noted(note)
        .into()
}

fn events_table(record: &RequestRecord, start: Moment) -> Block {
    let (rows, note) = rows(&record.events);
    let reads = record.reads.clone();
    let at =
        move |read: u32| optional(reads.get(read as usize).map(|read| between(start, read.at())));
    Columns::number("Event", |(place, _): &(u64, &inferometer_model::record::Event)| {
        whole(Some(*place))
    })
    .right("Read", |(_, event)| whole(Some(u64::from(event.read) + 1)))
    .right("ms since sent", move |(_, event)| at(event.read))
    .right("Tokens", |(_, event)| whole(event.tokens.map(u64::from)))
    .right("Text bytes", |(_, event)| whole(Some(event.text_bytes.into())))
    .left("Carried", |(_, event)| {
        let names: Vec<String> =
            event.carried.iter_names().map(|(name, _)| name.to_lowercase()).collect();
        Cell::text(names.join(", ").replace('_', " "))
    })
    .table("events", "Events of the stream", rows)
    .noted(note)
    .into()
}
