//! The page of a calibration as one document, its JSON document, and two charts.

use inferometer_analysis::calibration::{
    Calibration, FidelityError, FidelityRow, Level, PacingRow,
};
use serde::Serialize;

use crate::chart::Theme;
use crate::document::{markdown, terminal};
use crate::pages::prelude::*;
use crate::terminal::Style;

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
    let (requests, events) = (whole(capacity.requests_per_s), whole(capacity.events_per_s));
    let capacity = fill("capacity", &[&requests, &events]);
    let (mood, word) = (Mood::Good, "Capacity".to_owned());
    let badge = Badge { mood, word, text: plain(capacity), points: Vec::new() };
    let tokens = calibration.method.ladder_tokens;
    let ladder = &calibration.ladder;
    let table = |title: String, table: Table| Section::new(title, vec![Block::Table(table)]);
    let answers = |kind: &str| format!("{kind} answers of {tokens} tokens at full speed");
    let fidelity_title = fill("fidelity-title", &[&whole(calibration.method.ttft_ms)]);
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
    let (tool, when) = (&calibration.tool_version, &calibration.when);
    let title = fill("calibration-title", &[tool, when, &quick]);
    let subject = vec![("Machine".to_owned(), plain(machine(calibration)))];
    let lead = Lead { subject, verdict: Some(badge), ..Lead::default() };
    Document { lead, ..Document::new(title, sections) }
}

fn machine(calibration: &Calibration) -> String {
    let machine = &calibration.machine;
    let cpu = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    let cpus = machine.cpus.map_or_else(|| NOTHING.to_owned(), |cpus| cpus.to_string());
    let memory = machine.memory_bytes.map_or_else(|| NOTHING.to_owned(), fmt::memory);
    let kernel = machine.kernel.as_deref().unwrap_or("unknown kernel");
    format!("{cpu}, {cpus} CPUs, {memory}, {} {kernel} ({})", machine.os, machine.architecture)
}

fn levels(levels: &[Level], streamed: bool) -> Table {
    let rate = |get: fn(&Level) -> Option<f64>| move |level: &&Level| Cell::text(whole(get(level)));
    let latency =
        |get: fn(&Level) -> Option<f64>| move |level: &&Level| Cell::text(number(get(level)));
    Columns::number("in flight", |level: &&Level| Cell::text(count(level.concurrency.into())))
        .right("requests/s", rate(|level| level.requests_per_s))
        .right("tokens/s", rate(|level| level.tokens_per_s))
        .right("events/s", rate(|level| level.events_per_s))
        .only_if(streamed)
        .right("p50 ms", latency(|level| Some(level.latency_ms?.p50)))
        .right("p95 ms", latency(|level| Some(level.latency_ms?.p95)))
        .right("p99 ms", latency(|level| Some(level.latency_ms?.p99)))
        .right("success", |level| Cell::text(percent(level.success)))
        .table("", "", levels)
}

fn fidelity(rows: &[FidelityRow]) -> Table {
    let error = |get: fn(&FidelityError) -> f64| {
        move |row: &&FidelityRow| {
            let value = row.error.as_ref().map(get);
            let doubtful = value.is_some() && !row.is_sound();
            Cell::text(small(value)).doubted(doubtful.then(|| text("unsound").to_owned()))
        }
    };
    let table =
        Columns::number("streams", |row: &&FidelityRow| Cell::text(count(row.streams.into())))
            .right("gap", |row| Cell::text(whole(row.gap_ms)))
            .right("in flight", |row| Cell::text(whole(row.in_flight.map(|it| it as f64))))
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
            .right("CPU µs/token", |row| Cell::text(number(row.cpu_us_per_token)))
            .right("connect p99", |row| {
                Cell::text(small(row.dialling.as_ref().and_then(|it| it.connect_ms_p99)))
            })
            .table("", "", rows);
    table.noted([text("fidelity-note")])
}

fn pacing(rows: &[PacingRow]) -> Table {
    type Getter = fn(&PacingRow) -> Option<f64>;
    let known = |get: Getter| move |row: &&PacingRow| Cell::text(number(get(row)));
    let delay = |get: Getter| move |row: &&PacingRow| Cell::text(small(get(row)));
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
    let memory = calibration.memory;
    let Some(bytes_per_stream) = memory.bytes_per_stream else {
        return format!("{NOTHING} for {} streams: not reported by this system", memory.streams);
    };
    let (kibibytes, streams) = (number(bytes_per_stream / 1_024.0), count(memory.streams.into()));
    let in_flight = count(memory.in_flight);
    format!("{kibibytes} KiB for each of {in_flight} streams in flight ({streams} were requested)")
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
    let (ladder, capacity) = (&calibration.ladder, calibration.capacity);
    let streamed = format!("streamed, {} tokens", calibration.method.ladder_tokens);
    let rate = |level: &Level| level.requests_per_s;
    let lines =
        vec![line("one-shot", &ladder.one_shot, rate), line(&streamed, &ladder.streamed, rate)];
    let (requests, events) = (whole(capacity.requests_per_s), whole(capacity.events_per_s));
    let finding = fill("client-takes", &[&requests, &events]);
    let panels = vec![Panel::new("Throughput", linear("requests per second", ""), lines)];
    drawn(calibration, ("client-throughput", "Client throughput capacity"), finding, panels)
}

/// Percentiles of the latency against requests in flight, for both kinds of answers.
pub fn latency(calibration: &Calibration) -> String {
    let ladder = &calibration.ladder;
    let panel = |heading: &str, levels: &[Level]| {
        let lines = vec![
            line("p50", levels, |level| Some(level.latency_ms?.p50)),
            line("p95", levels, |level| Some(level.latency_ms?.p95)),
            line("p99", levels, |level| Some(level.latency_ms?.p99)),
        ];
        Panel::new(heading, linear("latency", "ms"), lines)
    };
    let streamed = format!("Streamed answers, {} tokens each", calibration.method.ladder_tokens);
    let panels =
        vec![panel("One-shot answers", &ladder.one_shot), panel(&streamed, &ladder.streamed)];
    let finding = latency_finding(&ladder.one_shot);
    drawn(calibration, ("client-latency", "Client latency profile"), finding, panels)
}

fn line(name: &str, levels: &[Level], get: impl Fn(&Level) -> Option<f64>) -> LineSeries {
    let point = |level: &Level| {
        Some(LinePoint { x: level.concurrency.into(), y: get(level)?, ..LinePoint::default() })
    };
    LineSeries::new(name, levels.iter().filter_map(point).collect())
}

/// A chart over a logarithmic axis, because levels double.
fn drawn(
    calibration: &Calibration,
    (id, title): (&str, &str),
    finding: String,
    panels: Vec<LinesPanel>,
) -> String {
    let x = measure("requests in flight", "", ScaleKind::Log);
    let plot = Plot::Lines(Lines { x, ticks_at_points: true, panels });
    Chart::new(id, title, finding, footnote(calibration), plot).to_svg(Theme::Light)
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
    let cpu = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    let kernel = machine.kernel.as_deref().unwrap_or_default();
    let (tool, day) = (&calibration.tool_version, calibration.when.split('T').next());
    let day = day.unwrap_or_default();
    let text = fill("footnote", &[&cpu, &cpus, &machine.os, &kernel, tool, &day]);
    escape::terminal_line(&text, CHARACTERS_MAX)
}
