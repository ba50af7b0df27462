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
use inferometer_model::outcome::Cause;
use inferometer_model::telemetry::{ClientSample, DeviceReading, SumCount, TelemetrySample};
use inferometer_model::whole::to_u64;
use inferometer_model::{Moment, Observations, Outcome};
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// The names of the tables' files, in the order of the tables.
pub const FILES: [&str; 3] = ["requests.parquet", "tokens.parquet", "telemetry.parquet"];

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

/// The three tables of any number of results, one result after another.
pub struct Tables<W: Write + Send> {
    requests: Table<W>,
    tokens: Table<W>,
    telemetry: Table<W>,
}

impl<W: Write + Send> std::fmt::Debug for Tables<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Tables<W> {
    pub fn new([requests, tokens, telemetry]: [W; 3]) -> Result<Self, ParquetError> {
        Ok(Self {
            requests: Table::new(requests, request_cells("", Request::NotSent(0, Cause::Refused)))?,
            tokens: Table::new(tokens, token_cells("", 0, 0, None, None))?,
            telemetry: Table::new(telemetry, TelemetryRow::default().cells())?,
        })
    }

    /// A run of ours, called `name`.
    pub fn add_run(&mut self, name: &str, run: &Observations) -> Result<(), ParquetError> {
        for detail in detail::requests(run) {
            self.requests.push(request_cells(name, Request::Ours(run, &detail)))?;
            for (arrival, found) in (0..).zip(&detail.arrivals) {
                let cells =
                    token_cells(name, detail.record.id.0, arrival, Some(found), found.icl_ms);
                self.tokens.push(cells)?;
            }
        }
        for part in &run.not_sent {
            for id in part.first.0..part.first.0.saturating_add(part.count) {
                self.requests.push(request_cells(name, Request::NotSent(id, part.cause)))?;
            }
        }
        for row in telemetry_rows(name, run) {
            self.telemetry.push(row.cells())?;
        }
        Ok(())
    }

    /// A result of another tool, as far as it reports requests.
    pub fn add_result(&mut self, result: &ToolResult) -> Result<(), ParquetError> {
        let name = &result.source.name;
        let Some(requests) = &result.requests else {
            return Err(ParquetError::NoRequests { name: name.clone() });
        };
        for (id, request) in (0..).zip(requests) {
            let foreign = Request::Foreign(result.source.tool, id, request);
            self.requests.push(request_cells(name, foreign))?;
            // A gap is all that other tools report; the first arrival has none, so it has no row.
            for (arrival, gap_s) in (1..).zip(&request.gaps_s) {
                self.tokens.push(token_cells(name, id, arrival, None, Some(gap_s * 1e3)))?;
            }
        }
        Ok(())
    }

    /// How many rows each table got.
    pub fn finish(self) -> Result<[u64; 3], ParquetError> {
        Ok([self.requests.finish()?, self.tokens.finish()?, self.telemetry.finish()?])
    }
}

/// Rows that are held in memory. Readers work on groups, and like them not too small.
const GROUP_ROWS: usize = 1 << 16;

/// One cell of a row; every cell may be null.
enum Cell<'a> {
    Text(Option<&'a str>),
    Whole(Option<u64>),
    Real(Option<f64>),
    Flag(Option<bool>),
    /// Nanoseconds after 1970, UTC.
    Time(Option<i64>),
}

/// The cells of a row with the names of their columns.
type Row<'a> = Vec<(&'static str, Cell<'a>)>;

struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// The cells that are not written yet, by column.
    columns: Vec<Column>,
    rows: usize,
    written: u64,
}

/// The values of a column, and one level for each cell: a level of one means that it has a value.
struct Column {
    values: Values,
    levels: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Flag(Vec<bool>),
}

impl<W: Write + Send> Table<W> {
    /// With the columns of a row.
    fn new(file: W, row: Row<'_>) -> Result<Self> {
        let fields = row.iter().map(|(name, cell)| field(name, cell).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("inferometer").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("inferometer {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let values = |(_, cell): (&str, Cell<'_>)| match cell {
            Cell::Text(_) => Values::Text(Vec::new()),
            Cell::Whole(_) | Cell::Time(_) => Values::Whole(Vec::new()),
            Cell::Real(_) => Values::Real(Vec::new()),
            Cell::Flag(_) => Values::Flag(Vec::new()),
        };
        let columns = row.into_iter().map(values);
        let columns = columns.map(|values| Column { values, levels: Vec::new() }).collect();
        Ok(Self { writer, columns, rows: 0, written: 0 })
    }

    fn push(&mut self, row: Row<'_>) -> Result<()> {
        for (Column { values, levels }, (_, cell)) in self.columns.iter_mut().zip(row) {
            let is_known = match (values, cell) {
                (Values::Text(all), Cell::Text(cell)) => push(all, cell.map(ByteArray::from)),
                (Values::Whole(all), Cell::Whole(cell)) => {
                    push(all, cell.map(|count| i64::try_from(count).unwrap_or(i64::MAX)))
                }
                (Values::Whole(all), Cell::Time(cell)) => push(all, cell),
                (Values::Real(all), Cell::Real(cell)) => push(all, cell),
                (Values::Flag(all), Cell::Flag(cell)) => push(all, cell),
                _ => return Err(of_another_schema()),
            };
            levels.push(i16::from(is_known));
        }
        self.rows += 1;
        if self.rows < GROUP_ROWS { Ok(()) } else { self.flush() }
    }

    /// Writes the footer, without which the file cannot be read; returns the number of rows.
    fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.writer.close()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for Column { values, levels } in &mut self.columns {
            let mut column = group.next_column()?.ok_or_else(of_another_schema)?;
            let levels = std::mem::take(levels);
            match values {
                Values::Text(all) => write::<ByteArrayType>(&mut column, all, &levels),
                Values::Whole(all) => write::<Int64Type>(&mut column, all, &levels),
                Values::Real(all) => write::<DoubleType>(&mut column, all, &levels),
                Values::Flag(all) => write::<BoolType>(&mut column, all, &levels),
            }?;
            column.close()?;
        }
        group.close()?;
        self.written += std::mem::take(&mut self.rows) as u64;
        Ok(())
    }
}

/// Whether there was a value.
fn push<T>(all: &mut Vec<T>, value: Option<T>) -> bool {
    let is_known = value.is_some();
    all.extend(value);
    is_known
}

fn write<Of: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<Of::T>,
    levels: &[i16],
) -> Result<()> {
    column.typed::<Of>().write_batch(values, Some(levels), None)?;
    values.clear();
    Ok(())
}

fn of_another_schema() -> parquet::errors::ParquetError {
    parquet::errors::ParquetError::General("a cell beyond the schema".to_owned())
}

fn field(name: &str, cell: &Cell<'_>) -> Result<Type> {
    let (physical, logical) = match cell {
        Cell::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Cell::Whole(_) => (Physical::INT64, None),
        Cell::Real(_) => (Physical::DOUBLE, None),
        Cell::Flag(_) => (Physical::BOOLEAN, None),
        Cell::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_converted_type(ConvertedType::NONE)
        .with_logical_type(logical)
        .build()
}

/// A request of a run with its detail, one that was not sent, or one of another tool, with its number.
#[derive(Clone, Copy)]
enum Request<'a> {
    Ours(&'a Observations, &'a RequestDetail<'a>),
    NotSent(u64, Cause),
    Foreign(Tool, u64, &'a ResultRequest),
}

impl Request<'_> {
    /// The tool, the number of the request, its outcome and its cause.
    fn identity(self) -> (Tool, u64, Option<&'static str>, Option<&'static str>) {
        match self {
            Self::Ours(_, detail) => {
                let ending = &detail.record.ending;
                let cause = ending.cause.map(Cause::text);
                (Tool::Inferometer, detail.record.id.0, Some(ending.outcome.key()), cause)
            }
            Self::NotSent(id, cause) => {
                (Tool::Inferometer, id, Some(Outcome::NotSent.key()), Some(cause.text()))
            }
            Self::Foreign(tool, id, found) => {
                let outcome = |error: &String| if error.is_empty() { "ok" } else { "failed" };
                (tool, id, found.error.as_ref().map(outcome), None)
            }
        }
    }
}

fn request_cells<'a>(result: &'a str, row: Request<'a>) -> Row<'a> {
    use Cell::{Flag, Real, Text, Time, Whole};
    let (run, detail, foreign) = match row {
        Request::Ours(run, detail) => (Some(run), Some(detail), None),
        Request::NotSent(..) => (None, None, None),
        Request::Foreign(_, _, request) => (None, None, Some(request)),
    };
    let record = detail.map(|detail| &*detail.record);
    let ending = record.map(|record| &record.ending);
    let failure = foreign.and_then(|found| found.error.as_deref());
    let (tool, request, outcome, cause) = row.identity();
    let message = ending.and_then(|ending| ending.message.as_deref());
    let output = detail.and_then(|detail| detail.output_tokens);
    let arrival_ns = |arrival: Option<&ArrivalDetail>| Whole(arrival.map(|it| it.at.as_nanos()));
    let (first, last) =
        detail.map_or((None, None), |detail| (detail.arrivals.first(), detail.arrivals.last()));
    let input_source = |detail: &RequestDetail<'_>| {
        if detail.input_reported { "usage" } else { "asked" }
    };
    let sent = record.and_then(|record| record.sent);
    let foreign_sent_ns = foreign.and_then(|found| nanos(found.start_s?));
    let input_tokens = detail.map(|detail| detail.input_tokens);
    let output_tokens = output.map(|(count, _)| count);
    let asked = record.map(|record| &record.asked);
    let mut cells = vec![
        ("result", Text(Some(result))),
        ("tool", Text(Some(tool.key()))),
        ("request", Whole(Some(request))),
        ("turn", Whole(asked.map(|asked| asked.turn.into()))),
        ("part", Whole(asked.map(|asked| asked.part.into()))),
        ("outcome", Text(outcome)),
        ("cause", Text(cause)),
        ("error", Text(message.or(failure.filter(|error| !error.is_empty())))),
        ("http_status", Whole(record.and_then(|record| Some(record.head?.status.into())))),
        ("finish_reason", Text(record.and_then(|it| Some(it.finishes.first()?.reason.name())))),
        ("connection_reused", Flag(record.and_then(|record| Some(record.connection?.reused)))),
        ("sent_time", Time(run.zip(sent).and_then(|(run, sent)| wall_ns(run, sent)))),
        ("intended_ns", Whole(record.map(|record| record.intended.as_nanos()))),
        ("admitted_ns", Whole(record.map(|record| record.admitted.as_nanos()))),
        ("sent_ns", Whole(sent.map(Moment::as_nanos).or(foreign_sent_ns))),
        ("first_output_ns", arrival_ns(first)),
        ("last_output_ns", arrival_ns(last)),
        ("ended_ns", Whole(ending.map(|ending| ending.at.as_nanos()))),
        ("asked_input_tokens", Whole(asked.map(|asked| asked.input_tokens.into()))),
        ("asked_output_tokens", Whole(asked.map(|asked| asked.output_tokens.into()))),
        ("input_tokens", Whole(input_tokens.or(foreign.and_then(|found| found.input_tokens)))),
        ("input_tokens_source", Text(detail.map(input_source))),
        ("cached_tokens", Whole(record.and_then(|record| record.usage?.cached_tokens))),
        ("output_tokens", Whole(output_tokens.or(foreign.and_then(|it| it.output_tokens)))),
        ("output_tokens_source", Text(output.map(|(_, source)| source.into()))),
    ];
    let latencies = match (detail, foreign) {
        (Some(detail), _) => detail.latencies.values,
        (None, Some(foreign)) => foreign_latencies(foreign),
        (None, None) => [None; PER_REQUEST.len()],
    };
    let latencies = PER_REQUEST.iter().zip(latencies);
    cells.extend(latencies.map(|(metric, latency)| (metric.key(), Real(latency))));
    cells
}

/// Latencies of other tools count from the sending; where a request failed, a zero is no latency.
fn foreign_latencies(found: &ResultRequest) -> [Option<f64>; PER_REQUEST.len()] {
    let failed = found.error.as_ref().is_some_and(|error| !error.is_empty());
    let ms = |seconds: Option<f64>| seconds.filter(|_| !failed).map(|seconds| seconds * 1e3);
    PER_REQUEST.map(|metric| match metric {
        // A request waited however it ended.
        queue if *queue == metric::CLIENT_QUEUE => found.queued_s.map(|s| s * 1e3),
        ttft if *ttft == metric::TTFT => ms(found.ttft_s),
        e2e if *e2e == metric::E2E => ms(found.e2e_s),
        _ => None,
    })
}

/// On another tool's own clock, which may have any beginning.
fn nanos(seconds: f64) -> Option<u64> {
    let nanos = seconds * 1e9;
    (0.0..u64::MAX as f64).contains(&nanos).then(|| to_u64(nanos))
}

fn wall_ns(run: &Observations, at: Moment) -> Option<i64> {
    let wall = run.manifest.clock.realtime_ns.checked_add(at.as_nanos())?;
    i64::try_from(wall).ok()
}

fn token_cells<'a>(
    result: &'a str,
    request: u64,
    arrival: u64,
    found: Option<&ArrivalDetail>,
    icl_ms: Option<f64>,
) -> Row<'a> {
    vec![
        ("result", Cell::Text(Some(result))),
        ("request", Cell::Whole(Some(request))),
        ("arrival", Cell::Whole(Some(arrival))),
        ("at_ns", Cell::Whole(found.map(|found| found.at.as_nanos()))),
        ("events", Cell::Whole(found.map(|found| found.events.into()))),
        ("tokens", Cell::Whole(found.and_then(|found| found.tokens))),
        ("icl_ms", Cell::Real(icl_ms)),
        ("itl_ms", Cell::Real(found.and_then(|found| found.itl_ms))),
    ]
}

/// One of the four: a scrape of the server, one that was missed, a GPU, or the client.
#[derive(Clone, Copy, Default)]
struct TelemetryRow<'a> {
    result: &'a str,
    about: &'static str,
    at: Moment,
    time_ns: Option<i64>,
    took: Option<Duration>,
    scrape: Option<&'a TelemetrySample>,
    missed: Option<&'static str>,
    gpu: Option<(&'static str, &'a DeviceReading)>,
    client: Option<&'a ClientSample>,
}

/// In the order of time; none where nothing was recorded.
fn telemetry_rows<'a>(result: &'a str, run: &'a Observations) -> Vec<TelemetryRow<'a>> {
    let row = |about: &'static str, at: Moment| {
        let time_ns = wall_ns(run, at);
        TelemetryRow { result, about, at, time_ns, ..TelemetryRow::default() }
    };
    let mut rows: Vec<TelemetryRow<'_>> = Vec::new();
    if let Some(recording) = run.telemetry.recording() {
        rows.extend(recording.samples.iter().map(|sample| TelemetryRow {
            took: Some(sample.took),
            scrape: Some(sample),
            ..row("server", sample.at)
        }));
        rows.extend(recording.missed.iter().map(|scrape| {
            let missed = Some(scrape.reason.key());
            TelemetryRow { missed, ..row("server", scrape.at) }
        }));
    }
    for sample in &run.machines.devices {
        rows.extend(sample.devices.iter().map(|reading| TelemetryRow {
            took: Some(sample.took),
            gpu: Some((sample.source.title(), reading)),
            ..row("gpu", sample.at)
        }));
    }
    let client = run.machines.client.iter();
    rows.extend(client.map(|it| TelemetryRow { client: Some(it), ..row("client", it.at) }));
    rows.sort_by_key(|row| row.at);
    rows
}

impl<'a> TelemetryRow<'a> {
    fn cells(self) -> Row<'a> {
        let mut cells = vec![
            ("result", Cell::Text(Some(self.result))),
            ("time", Cell::Time(self.time_ns)),
            ("at_ns", Cell::Whole(Some(self.at.as_nanos()))),
            ("about", Cell::Text(Some(self.about))),
            ("missed", Cell::Text(self.missed)),
            ("took_ms", Cell::Real(self.took.map(|took| took.as_secs_f64() * 1e3))),
        ];
        cells.extend(server_cells(self.scrape));
        cells.extend(gpu_cells(self.gpu));
        cells.extend(client_cells(self.client));
        cells
    }
}

fn server_cells(scrape: Option<&TelemetrySample>) -> Row<'_> {
    use Cell::{Real, Text};
    let gauges = scrape.map(|scrape| scrape.gauges);
    let counters = scrape.map(|scrape| scrape.counters);
    let timings = scrape.map(|scrape| scrape.timings);
    let sum = |timing: Option<SumCount>| Real(timing.map(|timing| timing.sum_s));
    let count = |timing: Option<SumCount>| Real(timing.map(|timing| timing.count));
    let [ttft, e2e, queue] =
        timings.map_or([None; 3], |timings| [timings.ttft, timings.e2e, timings.queue]);
    vec![
        ("server", Text(scrape.map(|scrape| scrape.dialect.title()))),
        ("process_start_s", Real(scrape.and_then(|scrape| scrape.process_start_s))),
        ("running_requests", Real(gauges.and_then(|gauges| gauges.running))),
        ("waiting_requests", Real(gauges.and_then(|gauges| gauges.waiting))),
        ("swapped_requests", Real(gauges.and_then(|gauges| gauges.swapped))),
        ("kv_usage_share", Real(gauges.and_then(|gauges| gauges.kv_usage))),
        ("cpu_kv_usage_share", Real(gauges.and_then(|gauges| gauges.cpu_kv_usage))),
        ("prefix_queries_total_tokens", Real(counters.and_then(|all| all.prefix_queries))),
        ("prefix_hits_total_tokens", Real(counters.and_then(|all| all.prefix_hits))),
        ("preemptions_total", Real(counters.and_then(|all| all.preemptions))),
        ("prompt_total_tokens", Real(counters.and_then(|all| all.prompt_tokens))),
        ("generation_total_tokens", Real(counters.and_then(|all| all.generation_tokens))),
        ("ttft_sum_s", sum(ttft)),
        ("ttft_count", count(ttft)),
        ("e2e_sum_s", sum(e2e)),
        ("e2e_count", count(e2e)),
        ("queue_sum_s", sum(queue)),
        ("queue_count", count(queue)),
    ]
}

fn gpu_cells<'a>(found: Option<(&'static str, &'a DeviceReading)>) -> Row<'a> {
    use Cell::{Flag, Real, Text, Whole};
    let gpu = found.map(|(_, gpu)| gpu);
    let throttle = gpu.and_then(|gpu| gpu.throttle);
    let processes = |gpu: &DeviceReading| Some(gpu.processes.as_ref()?.len() as u64);
    vec![
        ("gpu", Whole(gpu.map(|gpu| gpu.index.into()))),
        ("gpu_source", Text(found.map(|(source, _)| source))),
        ("gpu_use_share", Real(gpu.and_then(|gpu| gpu.use_share))),
        ("gpu_memory_used_bytes", Whole(gpu.and_then(|gpu| gpu.memory_used_bytes))),
        ("gpu_memory_total_bytes", Whole(gpu.and_then(|gpu| gpu.memory_total_bytes))),
        ("gpu_power_w", Real(gpu.and_then(|gpu| gpu.power_w))),
        ("gpu_energy_total_j", Real(gpu.and_then(|gpu| gpu.energy_j))),
        ("gpu_core_clock_mhz", Real(gpu.and_then(|gpu| gpu.core_clock_mhz))),
        ("gpu_memory_clock_mhz", Real(gpu.and_then(|gpu| gpu.memory_clock_mhz))),
        ("gpu_temperature_c", Real(gpu.and_then(|gpu| gpu.temperature_c))),
        ("gpu_throttled_power", Flag(throttle.map(|throttle| throttle.power))),
        ("gpu_throttled_thermal", Flag(throttle.map(|throttle| throttle.thermal))),
        ("gpu_throttled_hardware", Flag(throttle.map(|throttle| throttle.hardware))),
        ("gpu_processes", Whole(gpu.and_then(processes))),
    ]
}

fn client_cells(client: Option<&ClientSample>) -> Row<'_> {
    use Cell::{Real, Whole};
    let memory = client.and_then(|client| client.memory_available_bytes);
    vec![
        ("client_cpu_share", Real(client.and_then(|client| client.cpu_share))),
        ("client_steal_share", Real(client.and_then(|client| client.steal_share))),
        ("client_own_cpus", Real(client.and_then(|client| client.own_cpus))),
        ("client_received_total_bytes", Whole(client.and_then(|client| client.received_bytes))),
        ("client_sent_total_bytes", Whole(client.and_then(|client| client.sent_bytes))),
        ("client_memory_available_bytes", Whole(memory)),
    ]
}
