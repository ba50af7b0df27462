//! The page of a calibration as one document, its JSON document, and two charts.

use inferometer_analysis::calibration::{Calibration, FidelityRow, Level, LevelLatency, PacingRow};
use serde::Serialize;

use crate::chart::{
    Chart, LinePoint, LineSeries, Lines, LinesPanel, Measure, Plot, ScaleKind, Theme,
};
use crate::document::{
    Badge, Block, Cell, Columns, Document, Lead, Mood, Section, Table, markdown, plain, terminal,
};
use crate::escape;
use crate::fmt::{NOTHING, count, number, percent, whole};
use crate::terminal::Style;

const UNSOUND: &str = "not reliable: the engine itself was late, or tokens came in bursts; this machine \
                       is too slow for both at this pace";

/// Paths of the stored calibration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CalibrationFiles {
    pub folder: String,
    pub document: String,
    pub page: String,
    pub throughput: String,
    pub latency: String,
}

/// The page for a terminal.
pub fn terminal(calibration: &Calibration, files: &CalibrationFiles, style: Style) -> String {
    let mut document = document(calibration);
    document.sections.push(Section::new("Files", vec![Block::paragraph(files.folder.clone())]));
    terminal::render(&document, style)
}

/// The page that shows the charts, which are stored next to it.
pub fn markdown(calibration: &Calibration, throughput: &str, latency: &str) -> String {
    let charts = format!(
        "\n\n![Client throughput capacity]({throughput})\n\n![Client latency profile]({latency})\n\n## "
    );
    markdown::render(&document(calibration)).text.replacen("\n\n## ", &charts, 1)
}

#[derive(Serialize)]
struct JsonDocument<'a> {
    #[serde(flatten)]
    calibration: &'a Calibration,
    files: &'a CalibrationFiles,
}

/// Exactly one document, with a line feed at its end.
pub fn json(calibration: &Calibration, files: &CalibrationFiles) -> String {
    // A calibration has finite numbers and no maps, so it always has a JSON form.
    let document = JsonDocument { calibration, files };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn document(calibration: &Calibration) -> Document {
    let quick = if calibration.method.quick { ", quick" } else { "" };
    let capacity = calibration.capacity;
    let capacity = format!(
        "{} requests/s one-shot, {} events/s streamed",
        whole(capacity.requests_per_s),
        whole(capacity.events_per_s),
    );
    let (mood, word) = (Mood::Good, "Capacity".to_owned());
    let badge = Badge { mood, word, text: plain(capacity), points: Vec::new() };
    let tokens = calibration.method.ladder_tokens;
    let ladder = &calibration.ladder;
    let table = |title: String, table: Table| Section::new(title, vec![Block::Table(table)]);
    let answers = |kind: &str| format!("{kind} answers of {tokens} tokens at full speed");
    let fidelity_title = format!(
        "Measurement error in ms: TTFT {} ms, then a token every gap",
        whole(calibration.method.ttft_ms)
    );
    let mut sections = vec![
        table(answers("One-shot"), levels(&ladder.one_shot, false)),
        table(answers("Streamed"), levels(&ladder.streamed, true)),
        table(fidelity_title, fidelity(&calibration.fidelity)),
        table(
            "Pacing of an open loop with Poisson arrivals: sent − intended".to_owned(),
            pacing(&calibration.pacing),
        ),
        Section::new("Memory", vec![Block::paragraph(memory(calibration))]),
    ];
    if !calibration.notes.is_empty() {
        let notes = calibration.notes.iter().map(|note| plain(note.clone())).collect();
        sections.push(Section::new("Notes", vec![Block::List(notes)]));
    }
    let title = format!(
        "Inferometer {} · calibration of {}{quick}",
        calibration.tool_version, calibration.when
    );
    let subject = vec![("Machine".to_owned(), plain(machine(calibration)))];
    let lead = Lead { subject, verdict: Some(badge), ..Lead::default() };
    Document { lead, ..Document::new(title, sections) }
}

fn machine(calibration: &Calibration) -> String {
    const GIB: f64 = (1_u64 << 30) as f64;
    let machine = &calibration.machine;
    let cpu = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    let cpus = machine.cpus.map_or_else(|| NOTHING.to_owned(), |cpus| cpus.to_string());
    let memory = number(machine.memory_bytes.map(|bytes| bytes as f64 / GIB));
    let kernel = machine.kernel.as_deref().unwrap_or("unknown kernel");
    format!("{cpu}, {cpus} CPUs, {memory} GiB, {} {kernel} ({})", machine.os, machine.architecture)
}

fn levels(levels: &[Level], streamed: bool) -> Table {
    let latency = |get: fn(&LevelLatency) -> f64| {
        move |level: &&Level| Cell::text(number(level.latency_ms.as_ref().map(get)))
    };
    let rate = |get: fn(&Level) -> Option<f64>| move |level: &&Level| Cell::text(whole(get(level)));
    Columns::number("in flight", |level: &&Level| Cell::text(count(level.concurrency.into())))
        .right("requests/s", rate(|level| level.requests_per_s))
        .right("tokens/s", rate(|level| level.tokens_per_s))
        .right("events/s", rate(|level| level.events_per_s))
        .only_if(streamed)
        .right("p50 ms", latency(|latency| latency.p50))
        .right("p95 ms", latency(|latency| latency.p95))
        .right("p99 ms", latency(|latency| latency.p99))
        .right("success", |level| Cell::text(percent(level.success)))
        .table("", "", levels)
}

fn fidelity(rows: &[FidelityRow]) -> Table {
    type Error = inferometer_analysis::calibration::FidelityError;
    let error = |get: fn(&Error) -> f64| {
        move |row: &&FidelityRow| {
            let value = row.error.as_ref().map(get);
            let doubtful = value.is_some() && !row.is_sound();
            let reason = doubtful.then(|| UNSOUND.to_owned());
            Cell { doubtful, reason, ..Cell::text(small(value)) }
        }
    };
    let table =
        Columns::number("streams", |row: &&FidelityRow| Cell::text(count(row.streams.into())))
            .right("gap", |row| Cell::text(whole(row.gap_ms)))
            .right("in flight", |row| {
                Cell::text(row.in_flight.map_or_else(|| NOTHING.to_owned(), count))
            })
            .right("stamps", |row| Cell::text(if row.kernel_stamps { "kernel" } else { "read" }))
            .right("TTFT p50", error(|error| error.ttft_ms.p50))
            .right("TTFT p99", error(|error| error.ttft_ms.p99))
            .right("ITL p50", error(|error| error.itl_ms.p50))
            .right("ITL p99", error(|error| error.itl_ms.p99))
            .right("width", |row| Cell::text(number(row.width_ms_max)))
            .right("unseen", |row| {
                let gaps = row.gaps + row.gaps_unseen;
                let unseen = (0 < gaps).then(|| row.gaps_unseen as f64 / gaps as f64);
                Cell::text(percent(unseen))
            })
            .right("late", |row| Cell::text(small(row.engine_late_ms_p99)))
            .table("", "", rows);
    let note = "width: the largest error that the records allow; unseen: gaps hidden by tokens that came \
                together; late: the engine's own p99";
    Table { notes: vec![plain(note)], ..table }
}

fn pacing(rows: &[PacingRow]) -> Table {
    let known =
        |get: fn(&PacingRow) -> Option<f64>| move |row: &&PacingRow| Cell::text(number(get(row)));
    let delay =
        |get: fn(&PacingRow) -> Option<f64>| move |row: &&PacingRow| Cell::text(small(get(row)));
    Columns::number("asked/s", |row: &&PacingRow| Cell::text(whole(row.rate_per_s)))
        .right("planned/s", known(|row| row.planned_per_s))
        .right("sent/s", known(|row| row.sent_per_s))
        .right("p50 ms", delay(|row| Some(row.delay_ms?.p50)))
        .right("p99 ms", delay(|row| Some(row.delay_ms?.p99)))
        .right("max ms", delay(|row| Some(row.delay_ms?.max)))
        .right("planned gap CV", known(|row| row.planned_gap_cv))
        .right("sent gap CV", known(|row| row.sent_gap_cv))
        .right("success", |row| Cell::text(percent(row.success)))
        .table("", "", rows)
}

fn memory(calibration: &Calibration) -> String {
    const KIB: f64 = 1_024.0;
    let memory = calibration.memory;
    let Some(bytes_per_stream) = memory.bytes_per_stream else {
        return format!("{NOTHING} for {} streams: not reported by this system", memory.streams);
    };
    let asked = u64::from(memory.streams);
    let is_short = memory.in_flight < asked;
    let short =
        if is_short { format!(" ({} were requested)", count(asked)) } else { String::new() };
    format!(
        "{} KiB for each of {} streams in flight{short}",
        number(bytes_per_stream / KIB),
        count(memory.in_flight),
    )
}

/// Milliseconds, where less than a microsecond is not shown as zero.
fn small(value: Option<f64>) -> String {
    match value {
        Some(value) if 0.0 < value && value < 0.000_5 => "<0.001".to_owned(),
        Some(_) | None => number(value),
    }
}

/// Requests per second against requests in flight.
pub fn throughput(calibration: &Calibration) -> String {
    let ladder = &calibration.ladder;
    let tokens = calibration.method.ladder_tokens;
    let line = |name: String, levels: &[Level]| LineSeries {
        name,
        points: points(levels, |level| level.requests_per_s),
    };
    let panel = LinesPanel {
        heading: "Throughput".to_owned(),
        y: measure("requests per second", "", ScaleKind::Linear),
        series: vec![
            line("one-shot".to_owned(), &ladder.one_shot),
            line(format!("streamed, {tokens} tokens"), &ladder.streamed),
        ],
    };
    let capacity = calibration.capacity;
    let chart = Chart {
        id: "client-throughput".to_owned(),
        title: "Client throughput capacity".to_owned(),
        finding: format!(
            "This client takes {} one-shot answers per second, or {} stream events per second.",
            whole(capacity.requests_per_s),
            whole(capacity.events_per_s),
        ),
        n: footnote(calibration),
        plot: against_concurrency(vec![panel]),
    };
    chart.to_svg(Theme::Light)
}

/// Percentiles of the latency against requests in flight, for both kinds of answers.
pub fn latency(calibration: &Calibration) -> String {
    let ladder = &calibration.ladder;
    let tokens = calibration.method.ladder_tokens;
    let chart = Chart {
        id: "client-latency".to_owned(),
        title: "Client latency profile".to_owned(),
        finding: latency_finding(&ladder.one_shot),
        n: footnote(calibration),
        plot: against_concurrency(vec![
            latency_panel("One-shot answers".to_owned(), &ladder.one_shot),
            latency_panel(format!("Streamed answers, {tokens} tokens each"), &ladder.streamed),
        ]),
    };
    chart.to_svg(Theme::Light)
}

fn latency_panel(heading: String, levels: &[Level]) -> LinesPanel {
    let line = |name: &str, of: fn(&LevelLatency) -> f64| LineSeries {
        name: name.to_owned(),
        points: points(levels, |level| level.latency_ms.as_ref().map(of)),
    };
    LinesPanel {
        heading,
        y: measure("latency", "ms", ScaleKind::Linear),
        series: vec![
            line("p50", |latency| latency.p50),
            line("p95", |latency| latency.p95),
            line("p99", |latency| latency.p99),
        ],
    }
}

/// The latencies at the first and the last level.
fn latency_finding(levels: &[Level]) -> String {
    let described = |level: &Level| {
        level.latency_ms.map(|latency| {
            let (p50, p99) = (number(latency.p50), number(latency.p99));
            format!("{p50} ms (p99 {p99} ms) with {} in flight", count(level.concurrency.into()))
        })
    };
    match (levels.first().and_then(described), levels.last().and_then(described)) {
        (Some(first), Some(last)) if 1 < levels.len() => {
            format!("A one-shot answer takes {first} and {last}.")
        }
        (Some(only), _) | (_, Some(only)) => format!("A one-shot answer takes {only}."),
        (None, None) => "No level was measured.".to_owned(),
    }
}

/// The machine, the tool and the day, cut to the width of the chart.
fn footnote(calibration: &Calibration) -> String {
    const CHARACTERS_MAX: usize = 130;
    let machine = &calibration.machine;
    let cpus = machine.cpus.map(|cpus| format!(", {cpus} CPUs")).unwrap_or_default();
    let text = format!(
        "Echo engine on the same machine: {}{cpus}  ·  {} {}  ·  Inferometer {}  ·  {}",
        machine.cpu_model.as_deref().unwrap_or("unknown CPU"),
        machine.os,
        machine.kernel.as_deref().unwrap_or_default(),
        calibration.tool_version,
        calibration.when.split('T').next().unwrap_or_default(),
    );
    escape::terminal_line(&text, CHARACTERS_MAX)
}

fn points(levels: &[Level], of: impl Fn(&Level) -> Option<f64>) -> Vec<LinePoint> {
    let point = |level: &Level| {
        let (x, y) = (f64::from(level.concurrency), of(level)?);
        Some(LinePoint { x, y, interval: None, hollow: false, note: None })
    };
    levels.iter().filter_map(point).collect()
}

/// On a logarithmic axis, because levels double.
fn against_concurrency(panels: Vec<LinesPanel>) -> Plot {
    let x = measure("requests in flight", "", ScaleKind::Log);
    Plot::Lines(Lines { x, ticks_at_points: true, panels })
}

fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
}
