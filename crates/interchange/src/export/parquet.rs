//! Tables of requests, tokens and telemetry for data frames, as Parquet.
//!
//! Columns are in snake case with their unit at the end. What is not known is null, never zero. Rows
//! are written in groups, so a table needs the memory of one group, however long the run was.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::detail::{self, ArrivalDetail, RequestDetail};
use inferometer_analysis::metric::{self, PER_REQUEST};
use inferometer_analysis::tool_result::{ResultRequest, Tool, ToolResult};
use inferometer_analysis::{Metric, TokenSource};
use inferometer_model::outcome::Cause;
use inferometer_model::telemetry::{
    ClientSample, Counters, DeviceReading, DevicesSample, Gauges, MissedScrape, SumCount,
    TelemetrySample, Throttle, Timings,
};
use inferometer_model::{Moment, Observations, Outcome, RequestId};
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// The name of each table's file.
pub const REQUESTS: &str = "requests.parquet";
pub const TOKENS: &str = "tokens.parquet";
pub const TELEMETRY: &str = "telemetry.parquet";

#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    #[error("the table cannot be written: {0}")]
    Write(#[from] ::parquet::errors::ParquetError),
    #[error(
        "{name} has no single requests, and a table of them would be empty; export it as \
         csv"
    )]
    NoRequests { name: String },
}

/// How many rows each table got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub requests: u64,
    pub tokens: u64,
    pub telemetry: u64,
}

/// The three tables of any number of results, one result after another.
pub struct Tables<W: Write + Send> {
    requests: Table<W, RequestRow>,
    tokens: Table<W, TokenRow>,
    telemetry: Table<W, TelemetryRow>,
}

impl<W: Write + Send> std::fmt::Debug for Tables<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Tables<W> {
    pub fn new(requests: W, tokens: W, telemetry: W) -> Result<Self, ParquetError> {
        Ok(Self {
            requests: Table::new(requests, request_columns())?,
            tokens: Table::new(tokens, token_columns())?,
            telemetry: Table::new(telemetry, telemetry_columns())?,
        })
    }

    /// A run of ours, called `name`.
    pub fn add_run(&mut self, name: &str, run: &Observations) -> Result<(), ParquetError> {
        for detail in detail::requests(run) {
            self.requests.push(RequestRow::new(name, run, &detail))?;
            self.add_tokens(name, &detail)?;
        }
        for part in &run.not_sent {
            for id in part.first.0..part.first.0.saturating_add(part.count) {
                self.requests.push(RequestRow::not_sent(name, id, part.cause))?;
            }
        }
        for row in rows(name, run) {
            self.telemetry.push(row)?;
        }
        Ok(())
    }

    /// A result of another tool, as far as it speaks of requests.
    pub fn add_sheet(&mut self, sheet: &ToolResult) -> Result<(), ParquetError> {
        let name = &sheet.source.name;
        let Some(requests) = &sheet.requests else {
            return Err(ParquetError::NoRequests { name: name.clone() });
        };
        for (id, request) in (0..).zip(requests) {
            self.requests.push(RequestRow::of_foreign(name, sheet.source.tool, id, request))?;
            for (arrival, gap_s) in (1..).zip(&request.gaps_s) {
                self.tokens.push(TokenRow::of_foreign(name, id, arrival, *gap_s))?;
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Rows, ParquetError> {
        Ok(Rows {
            requests: self.requests.finish()?,
            tokens: self.tokens.finish()?,
            telemetry: self.telemetry.finish()?,
        })
    }

    fn add_tokens(&mut self, name: &str, detail: &RequestDetail<'_>) -> Result<(), ParquetError> {
        for (number, arrival) in (0..).zip(&detail.arrivals) {
            self.tokens.push(TokenRow::new(name, detail.record.id, number, arrival))?;
        }
        Ok(())
    }
}

/// Rows that are held in memory. Readers work on groups, and like them not too small.
const GROUP_ROWS: usize = 1 << 16;

/// A column's name, and how its cell is read from a row.
type Column<Row> = (&'static str, Cell<Row>);

enum Cell<Row> {
    Text(fn(&Row) -> Option<&str>),
    Whole(fn(&Row) -> Option<u64>),
    Real(fn(&Row) -> Option<f64>),
    /// One of several values.
    Listed(fn(&Row) -> &[Option<f64>], usize),
    Flag(fn(&Row) -> Option<bool>),
    /// Nanoseconds after 1970, UTC.
    Time(fn(&Row) -> Option<i64>),
}

struct Table<W: Write + Send, Row> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column<Row>>,
    group: Vec<Row>,
    written: u64,
}

impl<W: Write + Send, Row> Table<W, Row> {
    fn new(file: W, columns: Vec<Column<Row>>) -> Result<Self> {
        let fields = columns.iter().map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("inferometer").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("inferometer {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, columns, group: Vec::new(), written: 0 })
    }

    fn push(&mut self, row: Row) -> Result<()> {
        self.group.push(row);
        if self.group.len() < GROUP_ROWS { Ok(()) } else { self.flush() }
    }

    /// Writes the footer, without which the file cannot be read; returns the number of rows.
    fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.writer.close()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        let rows = &self.group;
        let mut group = self.writer.next_row_group()?;
        for (_, cell) in &self.columns {
            match *cell {
                Cell::Text(of) => write::<ByteArrayType, _, _>(&mut group, rows, |row| {
                    of(row).map(|text| ByteArray::from(text.as_bytes().to_vec()))
                }),
                Cell::Whole(of) => write::<Int64Type, _, _>(&mut group, rows, |row| {
                    of(row).map(|count| i64::try_from(count).unwrap_or(i64::MAX))
                }),
                Cell::Real(of) => write::<DoubleType, _, _>(&mut group, rows, of),
                Cell::Listed(of, place) => {
                    write::<DoubleType, _, _>(&mut group, rows, |row| of(row)[place])
                }
                Cell::Flag(of) => write::<BoolType, _, _>(&mut group, rows, of),
                Cell::Time(of) => write::<Int64Type, _, _>(&mut group, rows, of),
            }?;
        }
        group.close()?;
        self.written += rows.len() as u64;
        self.group.clear();
        Ok(())
    }
}

/// Every column may be null; a level of one means that a cell is there.
fn write<Of: DataType, W: Write + Send, Row>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    cell: impl Fn(&Row) -> Option<Of::T>,
) -> Result<()> {
    let cells: Vec<Option<Of::T>> = rows.iter().map(cell).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<Of::T> = cells.into_iter().flatten().collect();
    let Some(mut column) = group.next_column()? else {
        return Err(parquet::errors::ParquetError::General(
            "a column beyond the schema".to_owned(),
        ));
    };
    column.typed::<Of>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn field<Row>((name, cell): &Column<Row>) -> Result<Type> {
    let (physical, logical) = match cell {
        Cell::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Cell::Whole(_) => (Physical::INT64, None),
        Cell::Real(_) | Cell::Listed(..) => (Physical::DOUBLE, None),
        Cell::Flag(_) => (Physical::BOOLEAN, None),
        Cell::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_converted_type(ConvertedType::NONE)
        .with_logical_type(logical)
        .build()
}

#[derive(Default)]
struct RequestRow {
    result: String,
    tool: &'static str,
    request: u64,
    turn: Option<u64>,
    part: Option<u64>,
    outcome: Option<&'static str>,
    cause: Option<&'static str>,
    error: Option<String>,
    http_status: Option<u64>,
    finish_reason: Option<String>,
    connection_reused: Option<bool>,
    sent_time_ns: Option<i64>,
    intended_ns: Option<u64>,
    admitted_ns: Option<u64>,
    sent_ns: Option<u64>,
    first_output_ns: Option<u64>,
    last_output_ns: Option<u64>,
    ended_ns: Option<u64>,
    asked_input_tokens: Option<u64>,
    asked_output_tokens: Option<u64>,
    input_tokens: Option<u64>,
    input_tokens_source: Option<&'static str>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_source: Option<&'static str>,
    /// In milliseconds, in the order of [`PER_REQUEST`].
    latencies: [Option<f64>; PER_REQUEST.len()],
}

fn request_columns() -> Vec<Column<RequestRow>> {
    let mut columns: Vec<Column<RequestRow>> = vec![
        ("result", Cell::Text(|row| Some(&row.result))),
        ("tool", Cell::Text(|row| Some(row.tool))),
        ("request", Cell::Whole(|row| Some(row.request))),
        ("turn", Cell::Whole(|row| row.turn)),
        ("part", Cell::Whole(|row| row.part)),
        ("outcome", Cell::Text(|row| row.outcome)),
        ("cause", Cell::Text(|row| row.cause)),
        ("error", Cell::Text(|row| row.error.as_deref())),
        ("http_status", Cell::Whole(|row| row.http_status)),
        ("finish_reason", Cell::Text(|row| row.finish_reason.as_deref())),
        ("connection_reused", Cell::Flag(|row| row.connection_reused)),
        ("sent_time", Cell::Time(|row| row.sent_time_ns)),
        ("intended_ns", Cell::Whole(|row| row.intended_ns)),
        ("admitted_ns", Cell::Whole(|row| row.admitted_ns)),
        ("sent_ns", Cell::Whole(|row| row.sent_ns)),
        ("first_output_ns", Cell::Whole(|row| row.first_output_ns)),
        ("last_output_ns", Cell::Whole(|row| row.last_output_ns)),
        ("ended_ns", Cell::Whole(|row| row.ended_ns)),
        ("asked_input_tokens", Cell::Whole(|row| row.asked_input_tokens)),
        ("asked_output_tokens", Cell::Whole(|row| row.asked_output_tokens)),
        ("input_tokens", Cell::Whole(|row| row.input_tokens)),
        ("input_tokens_source", Cell::Text(|row| row.input_tokens_source)),
        ("cached_tokens", Cell::Whole(|row| row.cached_tokens)),
        ("output_tokens", Cell::Whole(|row| row.output_tokens)),
        ("output_tokens_source", Cell::Text(|row| row.output_tokens_source)),
    ];
    let latency = |(place, metric): (usize, &&Metric)| {
        (metric.key(), Cell::Listed(|row: &RequestRow| &row.latencies, place))
    };
    columns.extend(PER_REQUEST.iter().enumerate().map(latency));
    columns
}

impl RequestRow {
    fn new(name: &str, run: &Observations, detail: &RequestDetail<'_>) -> Self {
        let record = detail.record;
        let finish = record.finishes.first();
        Self {
            request: record.id.0,
            turn: Some(record.asked.turn.into()),
            part: Some(record.asked.part.into()),
            cause: record.ending.cause.map(Cause::text),
            error: record.ending.message.clone(),
            http_status: record.head.map(|head| head.status.into()),
            finish_reason: finish.map(|finish| finish.reason.name().to_owned()),
            connection_reused: record.connection.map(|connection| connection.reused),
            sent_time_ns: record.sent.and_then(|sent| wall_ns(run, sent)),
            intended_ns: Some(record.intended.as_nanos()),
            admitted_ns: Some(record.admitted.as_nanos()),
            sent_ns: record.sent.map(Moment::as_nanos),
            first_output_ns: detail.arrivals.first().map(|arrival| arrival.at.as_nanos()),
            last_output_ns: detail.arrivals.last().map(|arrival| arrival.at.as_nanos()),
            ended_ns: Some(record.ending.at.as_nanos()),
            asked_input_tokens: Some(record.asked.input_tokens.into()),
            asked_output_tokens: Some(record.asked.output_tokens.into()),
            input_tokens: Some(detail.input_tokens),
            input_tokens_source: Some(if detail.input_reported { "usage" } else { "asked" }),
            cached_tokens: record.usage.and_then(|usage| usage.cached_tokens),
            output_tokens: detail.output_tokens.map(|(count, _)| count),
            output_tokens_source: detail.output_tokens.map(|(_, source)| source_key(source)),
            latencies: detail.latencies.values(),
            ..Self::ended(name, record.ending.outcome)
        }
    }

    fn not_sent(name: &str, request: u64, cause: Cause) -> Self {
        Self { request, cause: Some(cause.text()), ..Self::ended(name, Outcome::NotSent) }
    }

    fn ended(name: &str, outcome: Outcome) -> Self {
        Self {
            result: name.to_owned(),
            tool: Tool::Inferometer.key(),
            outcome: Some(outcome.key()),
            ..Self::default()
        }
    }

    /// Latencies of other tools count from the sending; where they fail, a zero is no latency.
    fn of_foreign(name: &str, tool: Tool, request: u64, found: &ResultRequest) -> Self {
        let error = found.error.as_deref();
        let failed = error.is_some_and(|error| !error.is_empty());
        let ms = |seconds: Option<f64>| seconds.filter(|_| !failed).map(|seconds| seconds * 1e3);
        Self {
            result: name.to_owned(),
            tool: tool.key(),
            request,
            outcome: error.map(|error| if error.is_empty() { "ok" } else { "failed" }),
            error: error.filter(|error| !error.is_empty()).map(str::to_owned),
            sent_ns: found.start_s.and_then(nanos),
            input_tokens: found.input_tokens,
            output_tokens: found.output_tokens,
            latencies: PER_REQUEST.map(|metric| match metric {
                // A request waited however it ended.
                queue if *queue == metric::CLIENT_QUEUE => found.queued_s.map(|s| s * 1e3),
                ttft if *ttft == metric::TTFT => ms(found.ttft_s),
                e2e if *e2e == metric::E2E => ms(found.e2e_s),
                _ => None,
            }),
            ..Self::default()
        }
    }
}

/// On another tool's own clock, which may have any beginning.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what does not fit is taken out first"
)]
fn nanos(seconds: f64) -> Option<u64> {
    let nanos = seconds * 1e9;
    (0.0..u64::MAX as f64).contains(&nanos).then_some(nanos as u64)
}

fn wall_ns(run: &Observations, at: Moment) -> Option<i64> {
    let wall = run.manifest.clock.realtime_ns.checked_add(at.as_nanos())?;
    i64::try_from(wall).ok()
}

const fn source_key(source: TokenSource) -> &'static str {
    match source {
        TokenSource::Usage => "usage",
        TokenSource::StreamMarks => "stream_marks",
        TokenSource::Events => "events",
    }
}

struct TokenRow {
    result: String,
    request: u64,
    arrival: u64,
    at_ns: Option<u64>,
    events: Option<u64>,
    tokens: Option<u64>,
    icl_ms: Option<f64>,
    itl_ms: Option<f64>,
}

fn token_columns() -> Vec<Column<TokenRow>> {
    vec![
        ("result", Cell::Text(|row| Some(&row.result))),
        ("request", Cell::Whole(|row| Some(row.request))),
        ("arrival", Cell::Whole(|row| Some(row.arrival))),
        ("at_ns", Cell::Whole(|row| row.at_ns)),
        ("events", Cell::Whole(|row| row.events)),
        ("tokens", Cell::Whole(|row| row.tokens)),
        ("icl_ms", Cell::Real(|row| row.icl_ms)),
        ("itl_ms", Cell::Real(|row| row.itl_ms)),
    ]
}

impl TokenRow {
    fn new(name: &str, request: RequestId, arrival: u64, found: &ArrivalDetail) -> Self {
        Self {
            result: name.to_owned(),
            request: request.0,
            arrival,
            at_ns: Some(found.at.as_nanos()),
            events: Some(found.events.into()),
            tokens: found.tokens,
            icl_ms: found.icl_ms,
            itl_ms: found.itl_ms,
        }
    }

    /// A gap is all that other tools say; the first arrival has none, so it has no row.
    fn of_foreign(name: &str, request: u64, arrival: u64, gap_s: f64) -> Self {
        Self {
            result: name.to_owned(),
            request,
            arrival,
            at_ns: None,
            events: None,
            tokens: None,
            icl_ms: Some(gap_s * 1e3),
            itl_ms: None,
        }
    }
}

struct TelemetryRow {
    result: String,
    at: Moment,
    time_ns: Option<i64>,
    reported: Reported,
}

enum Reported {
    Scrape(TelemetrySample),
    Missed(&'static str),
    Gpu { source: &'static str, took: Duration, reading: DeviceReading },
    Client(ClientSample),
}

fn telemetry_columns() -> Vec<Column<TelemetryRow>> {
    let mut columns: Vec<Column<TelemetryRow>> = vec![
        ("result", Cell::Text(|row| Some(&row.result))),
        ("time", Cell::Time(|row| row.time_ns)),
        ("at_ns", Cell::Whole(|row| Some(row.at.as_nanos()))),
        ("about", Cell::Text(|row| Some(row.about()))),
        ("missed", Cell::Text(TelemetryRow::missed)),
        ("took_ms", Cell::Real(|row| Some(row.took()?.as_secs_f64() * 1e3))),
    ];
    columns.extend(server_columns());
    columns.extend(gpu_columns());
    columns.extend(client_columns());
    columns
}

fn server_columns() -> Vec<Column<TelemetryRow>> {
    vec![
        ("server", Cell::Text(|row| Some(row.scrape()?.dialect.title()))),
        ("process_start_s", Cell::Real(|row| row.scrape()?.process_start_s)),
        ("running_requests", Cell::Real(|row| row.gauges()?.running)),
        ("waiting_requests", Cell::Real(|row| row.gauges()?.waiting)),
        ("swapped_requests", Cell::Real(|row| row.gauges()?.swapped)),
        ("kv_usage_share", Cell::Real(|row| row.gauges()?.kv_usage)),
        ("cpu_kv_usage_share", Cell::Real(|row| row.gauges()?.cpu_kv_usage)),
        ("prefix_queries_total_tokens", Cell::Real(|row| row.counters()?.prefix_queries)),
        ("prefix_hits_total_tokens", Cell::Real(|row| row.counters()?.prefix_hits)),
        ("preemptions_total", Cell::Real(|row| row.counters()?.preemptions)),
        ("prompt_total_tokens", Cell::Real(|row| row.counters()?.prompt_tokens)),
        ("generation_total_tokens", Cell::Real(|row| row.counters()?.generation_tokens)),
        ("ttft_sum_s", Cell::Real(|row| sum(row.timings()?.ttft))),
        ("ttft_count", Cell::Real(|row| count(row.timings()?.ttft))),
        ("e2e_sum_s", Cell::Real(|row| sum(row.timings()?.e2e))),
        ("e2e_count", Cell::Real(|row| count(row.timings()?.e2e))),
        ("queue_sum_s", Cell::Real(|row| sum(row.timings()?.queue))),
        ("queue_count", Cell::Real(|row| count(row.timings()?.queue))),
    ]
}

fn gpu_columns() -> Vec<Column<TelemetryRow>> {
    vec![
        ("gpu", Cell::Whole(|row| Some(u64::from(row.gpu()?.index)))),
        ("gpu_source", Cell::Text(TelemetryRow::source)),
        ("gpu_use_share", Cell::Real(|row| row.gpu()?.use_share)),
        ("gpu_memory_used_bytes", Cell::Whole(|row| row.gpu()?.memory_used_bytes)),
        ("gpu_memory_total_bytes", Cell::Whole(|row| row.gpu()?.memory_total_bytes)),
        ("gpu_power_w", Cell::Real(|row| row.gpu()?.power_w)),
        ("gpu_energy_total_j", Cell::Real(|row| row.gpu()?.energy_j)),
        ("gpu_core_clock_mhz", Cell::Real(|row| row.gpu()?.core_clock_mhz)),
        ("gpu_memory_clock_mhz", Cell::Real(|row| row.gpu()?.memory_clock_mhz)),
        ("gpu_temperature_c", Cell::Real(|row| row.gpu()?.temperature_c)),
        ("gpu_throttled_power", Cell::Flag(|row| Some(row.throttle()?.power))),
        ("gpu_throttled_thermal", Cell::Flag(|row| Some(row.throttle()?.thermal))),
        ("gpu_throttled_hardware", Cell::Flag(|row| Some(row.throttle()?.hardware))),
        ("gpu_processes", Cell::Whole(|row| Some(row.gpu()?.processes.as_ref()?.len() as u64))),
    ]
}

fn client_columns() -> Vec<Column<TelemetryRow>> {
    vec![
        ("client_cpu_share", Cell::Real(|row| row.client()?.cpu_share)),
        ("client_steal_share", Cell::Real(|row| row.client()?.steal_share)),
        ("client_own_cpus", Cell::Real(|row| row.client()?.own_cpus)),
        ("client_received_total_bytes", Cell::Whole(|row| row.client()?.received_bytes)),
        ("client_sent_total_bytes", Cell::Whole(|row| row.client()?.sent_bytes)),
        ("client_memory_available_bytes", Cell::Whole(|row| row.client()?.memory_available_bytes)),
    ]
}

/// In the order of time; none where nothing was recorded.
fn rows(name: &str, run: &Observations) -> Vec<TelemetryRow> {
    let row = |at: Moment, reported: Reported| TelemetryRow {
        result: name.to_owned(),
        at,
        time_ns: wall_ns(run, at),
        reported,
    };
    let missed = |scrape: &MissedScrape| row(scrape.at, Reported::Missed(scrape.reason.key()));
    let mut rows: Vec<TelemetryRow> = Vec::new();
    if let Some(recording) = run.telemetry.recording() {
        rows.extend(recording.samples.iter().map(|it| row(it.at, Reported::Scrape(*it))));
        rows.extend(recording.missed.iter().map(missed));
    }
    let devices = |sample: &DevicesSample| {
        let (at, took, source) = (sample.at, sample.took, sample.source.title());
        let reported =
            |reading: &DeviceReading| Reported::Gpu { source, took, reading: reading.clone() };
        sample.devices.iter().map(|reading| row(at, reported(reading))).collect::<Vec<_>>()
    };
    rows.extend(run.machines.devices.iter().flat_map(devices));
    rows.extend(run.machines.client.iter().map(|sample| row(sample.at, Reported::Client(*sample))));
    rows.sort_by_key(|row| row.at);
    rows
}

impl TelemetryRow {
    const fn about(&self) -> &'static str {
        match self.reported {
            Reported::Scrape(_) | Reported::Missed(_) => "server",
            Reported::Gpu { .. } => "gpu",
            Reported::Client(_) => "client",
        }
    }

    fn missed(&self) -> Option<&str> {
        if let Reported::Missed(reason) = self.reported { Some(reason) } else { None }
    }

    fn took(&self) -> Option<Duration> {
        match &self.reported {
            Reported::Scrape(sample) => Some(sample.took),
            Reported::Gpu { took, .. } => Some(*took),
            Reported::Missed(_) | Reported::Client(_) => None,
        }
    }

    fn scrape(&self) -> Option<&TelemetrySample> {
        if let Reported::Scrape(sample) = &self.reported { Some(sample) } else { None }
    }

    fn gauges(&self) -> Option<Gauges> {
        Some(self.scrape()?.gauges)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.scrape()?.counters)
    }

    fn timings(&self) -> Option<Timings> {
        Some(self.scrape()?.timings)
    }

    fn gpu(&self) -> Option<&DeviceReading> {
        if let Reported::Gpu { reading, .. } = &self.reported { Some(reading) } else { None }
    }

    fn source(&self) -> Option<&str> {
        if let Reported::Gpu { source, .. } = self.reported { Some(source) } else { None }
    }

    fn throttle(&self) -> Option<Throttle> {
        self.gpu()?.throttle
    }

    fn client(&self) -> Option<&ClientSample> {
        if let Reported::Client(sample) = &self.reported { Some(sample) } else { None }
    }
}

fn sum(timing: Option<SumCount>) -> Option<f64> {
    Some(timing?.sum_s)
}

fn count(timing: Option<SumCount>) -> Option<f64> {
    Some(timing?.count)
}

#[cfg(test)]
mod telemetry_tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::*;

    fn read(reported: Vec<Reported>) -> Vec<Row> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut table = Table::new(file.reopen().unwrap(), telemetry_columns()).unwrap();
        for reported in reported {
            let at = Moment::from_nanos(5);
            table
                .push(TelemetryRow { result: "r".to_owned(), at, time_ns: None, reported })
                .unwrap();
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    }

    fn cell(row: &Row, name: &str) -> Field {
        row.get_column_iter().find(|(found, _)| *found == name).unwrap().1.clone()
    }

    #[test]
    fn a_gpu_and_the_client_have_rows_of_their_own_and_nulls_besides() {
        let reading = DeviceReading {
            index: 3,
            power_w: Some(412.5),
            memory_used_bytes: Some(1 << 40),
            throttle: Some(Throttle { power: true, ..Throttle::default() }),
            processes: Some(vec![7, 8]),
            ..DeviceReading::default()
        };
        let client = ClientSample {
            at: Moment::ZERO,
            cpu_share: Some(0.5),
            steal_share: None,
            own_cpus: None,
            received_bytes: Some(9),
            sent_bytes: None,
            memory_available_bytes: None,
        };
        let gpu = Reported::Gpu { source: "NVML", took: Duration::from_millis(2), reading };
        let rows = read(vec![gpu, Reported::Client(client), Reported::Missed("timeout")]);
        let about: Vec<Field> = rows.iter().map(|row| cell(row, "about")).collect();
        assert_eq!(about, ["gpu", "client", "server"].map(|text| Field::Str(text.to_owned())));
        assert_eq!(cell(&rows[0], "gpu"), Field::Long(3));
        assert_eq!(cell(&rows[0], "gpu_source"), Field::Str("NVML".to_owned()));
        assert_eq!(cell(&rows[0], "gpu_power_w"), Field::Double(412.5));
        assert_eq!(cell(&rows[0], "gpu_memory_used_bytes"), Field::Long(1 << 40));
        assert_eq!(cell(&rows[0], "gpu_throttled_power"), Field::Bool(true));
        assert_eq!(cell(&rows[0], "gpu_processes"), Field::Long(2));
        assert_eq!(cell(&rows[0], "took_ms"), Field::Double(2.0));
        for unknown in ["gpu_energy_total_j", "client_cpu_share", "running_requests", "missed"] {
            assert_eq!(cell(&rows[0], unknown), Field::Null, "{unknown}");
        }
        assert_eq!(cell(&rows[1], "client_cpu_share"), Field::Double(0.5));
        assert_eq!(cell(&rows[1], "gpu"), Field::Null);
        assert_eq!(cell(&rows[2], "missed"), Field::Str("timeout".to_owned()));
    }
}
