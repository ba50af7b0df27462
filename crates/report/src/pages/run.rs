//! The page of a single run.

use inferometer_analysis::machines::{ClientFigures, DeviceFigures, GpuFigures};
use inferometer_analysis::{
    CheckState, CounterFigures, Distribution, Figures, GaugeFigures, GroupFigures, Interval,
    Metric, MetricValue, Percentile, RequestSlos, RequirementOutcome, Scalar, ServerSide,
    SloOutcome, Statistic, SteadyFigures, SteadyKind, Summary, ThresholdVerdict, Unit, Verdict,
    metric,
};
use inferometer_model::Outcome;
use inferometer_model::observations::HttpVersion;

use super::cells::{UNCERTIFIED, known, missing, number_cell, uncertified};
use super::frame::{self, About, section};
use super::rows::Row;
use super::{Detail, audit, card, charts, system, validity};
use crate::document::{
    Block, Card, Cell, Column, Columns, Document, Lead, Mood, Section, Table, Text, facts, plain,
};
use crate::escape::terminal_line;
use crate::fmt::{
    self, NOTHING, count, counted, interval_in, latency, load, memory, number, percent, unit_name,
    whole, with_unit,
};
use crate::narrative::Narrative;
use crate::narrative::facts::printed;
use crate::{Files, gpus, requirements};

/// The whole page, for HTML and Markdown.
pub fn run(summary: &Summary, narrative: &Narrative) -> Document {
    let row = Row::of_run(summary);
    let about = About {
        started: &summary.run.started,
        tool_version: &summary.run.tool_version,
        verdict: summary.verdict,
        simulated: summary.run.simulated.is_some(),
        first: Some(summary),
        models: vec![summary.run.model.clone()],
        more: vec![("Load", asked(summary))],
    };
    let (reason, points) =
        frame::reason(summary.verdict, &summary.warnings, std::slice::from_ref(&row));
    let partial = if summary.run.partial { " The run was not played to its end." } else { "" };
    let why = format!("{}. {reason}{partial}", ended(summary, "ended ok"));
    let badge = frame::badge(summary.verdict, plain(why), points);
    Document {
        header: frame::header(&about, narrative),
        title: "LLM Inference Benchmark Report: One Run".to_owned(),
        lead: frame::lead(&about, badge, headline(summary, &row)),
        sections: sections(summary, &[], narrative, Detail::Full),
        footer: frame::footer(&about, &summary.run.id, narrative),
    }
}

/// What fits on a screen, with the requirements of the run.
pub fn run_brief(summary: &Summary, files: &Files, required: &[RequirementOutcome]) -> Document {
    let mut sections = sections(summary, required, &Narrative::default(), Detail::Brief);
    sections.push(stored(files));
    Document { sections, ..opening(summary, brief_subject(summary)) }
}

/// Verdict, SLOs, failures, warnings and files alone, beside a page that has no place for them.
pub fn run_reservations(summary: &Summary, files: &Files) -> Document {
    let row = [Row::of_run(summary)];
    let mut sections: Vec<Section> = slos(summary).into_iter().collect();
    sections.extend(validity::failures(&row, Detail::Brief));
    sections.push(validity::warnings(&summary.warnings));
    sections.push(stored(files));
    Document { title: String::new(), sections, ..opening(summary, Vec::new()) }
}

fn opening(summary: &Summary, subject: Vec<(String, Text)>) -> Document {
    let run = &summary.run;
    let alert = run.simulated.as_ref().map(|simulated| {
        plain(format!("{} Profile {}: {}", frame::SIMULATED, simulated.profile, simulated.engine))
    });
    let partial = if run.partial { ", partial" } else { "" };
    let text = plain(ended(summary, "ok") + partial);
    let verdict = Some(frame::badge(summary.verdict, text, Vec::new()));
    let kind = format!("run {}", run.id);
    Document {
        title: frame::brief_title(&run.tool_version, &kind, run.simulated.is_some()),
        lead: Lead { alert, subject, verdict, headline: Vec::new() },
        ..Document::default()
    }
}

/// `57 of 60 requests ok in 2.63 s`.
fn ended(summary: &Summary, how: &str) -> String {
    format!(
        "{} of {} requests {how} in {} s",
        count(summary.count(Outcome::Ok)),
        // Turns that the end of the run cut off were never due.
        count(summary.scheduled.saturating_sub(summary.time_over)),
        number(summary.window.duration_s),
    )
}

fn sections(
    summary: &Summary,
    required: &[RequirementOutcome],
    narrative: &Narrative,
    detail: Detail,
) -> Vec<Section> {
    let rows = [Row::of_run(summary)];
    let is_full = detail == Detail::Full;
    let mut sections = Vec::new();
    if is_full {
        sections.extend(frame::executive_summary(narrative));
        sections.push(system::system(Some(summary)));
    }
    sections.extend(requirements::page_section(required));
    let mut metrics =
        vec![Block::Table(latencies(summary, detail)), Block::Table(numbers(summary, detail))];
    // Sentences about a run alone have no scenario's name.
    if let Some(said) = narrative.scenarios.get("").filter(|said| !said.is_empty()) {
        metrics.push(Block::List(frame::texts(said)));
    }
    sections.push(section("metrics", "Performance", metrics));
    sections.push(section("steady", "Steady state", steady(summary)));
    sections.extend(slos(summary));
    sections.extend(groups(summary));
    if is_full {
        sections.push(section("charts", "Charts", figures(summary, &rows[0])));
    }
    sections.extend(audit::section(summary));
    if !is_full {
        sections.extend(validity::failures(&rows, detail));
    }
    sections.extend(server(summary));
    sections.extend(machines(summary, detail));
    if !is_full {
        sections.extend(client(summary));
        sections.push(checked(summary));
        return sections;
    }
    sections.extend(frame::recommendations(narrative));
    let mut validity = validity::section_of(&rows, &summary.warnings, narrative, None);
    let own = validity.sections.iter_mut().find(|part| part.id == "client");
    if let (Some(part), Some(mut facts)) = (own, client(summary)) {
        facts.blocks.append(&mut part.blocks);
        part.blocks = facts.blocks;
    }
    sections.push(validity);
    sections.push(provenance(summary));
    sections
}

/// The load and the lengths in words.
fn asked(summary: &Summary) -> String {
    let run = &summary.run;
    let unit = match summary.workload.turns {
        Some(_) => load::Unit::Conversations,
        None => load::Unit::Requests,
    };
    format!(
        "{}, {}, {}",
        load::shape(&run.load, unit),
        load::extent(&run.extent),
        load::lengths(&summary.workload, run.api)
    )
}

fn brief_subject(summary: &Summary) -> Vec<(String, Text)> {
    let run = &summary.run;
    let streaming = if run.streaming { "streamed" } else { "not streamed" };
    let protocol = match run.http {
        HttpVersion::Http1 => "",
        HttpVersion::Http2 => ", HTTP/2",
    };
    let target =
        frame::target(&run.target, run.embedded, run.simulated.is_some(), run.engine_speed);
    let model = terminal_line(&run.model, 60);
    let target = format!("{} of `{model}` at {target}, {streaming}{protocol}", run.api);
    let insecure = "certificate NOT checked (--insecure): anybody may have answered";
    let held = summary.held_by_cap.map(|held| percent(held.share));
    facts([
        ("target", Some(target)),
        ("TLS", run.insecure.then(|| insecure.to_owned())),
        ("load", Some(format!("{}, seed {}", asked(summary), run.seed))),
        ("prompts", load::extras(&summary.workload)),
        ("cap", held.map(|share| format!("the cap held back {share} of the requests"))),
        ("warm-up", run.warm_up.map(|facts| load::warm_up(&facts))),
    ])
}

fn headline(summary: &Summary, row: &Row<'_>) -> Vec<Card> {
    let latency_card = |label: &str, metric: &'static Metric| {
        let tail = row.quantity(metric.p99());
        let mark = if tail.certified { "" } else { " (not certified)" };
        let detail = tail.mean.map(|p99| format!("p99 {}{mark}", latency(p99)));
        let detail = detail.unwrap_or_else(|| NOTHING.to_owned());
        card::latency(&format!("{label} mean"), row, metric.mean(), &detail)
    };
    let cards = [
        card::highest_output(std::slice::from_ref(row)),
        latency_card("TTFT", summary.latency_origin().ttft()),
        latency_card("TPOT", &metric::TPOT),
        Some(card::requests(std::slice::from_ref(row))),
    ];
    cards.into_iter().flatten().collect()
}

fn figures(summary: &Summary, row: &Row<'_>) -> Vec<Block> {
    let own = [row];
    let drawn = [
        charts::first_tokens(&own, ""),
        charts::token_gaps(&own, ""),
        charts::course(summary, ""),
        charts::requests(summary, ""),
        charts::gaps(summary, ""),
    ];
    drawn.into_iter().flatten().map(charts::figure).collect()
}

/// A verdict, what was asked, and the result with the reason of the verdict.
fn judged(word: &str, mood: Mood, asked: &str, result: String, reason: Option<&str>) -> Vec<Cell> {
    /// Names are bounded, but limits may have any number of digits.
    const ASKED_MOST: usize = 36;
    let reason = reason.map_or_else(String::new, |reason| format!("; {reason}"));
    vec![
        Cell { mood: Some(mood), ..Cell::text(word) },
        Cell::text(terminal_line(asked, ASKED_MOST)),
        Cell::text(result + &reason),
    ]
}

/// The SLOs of requests and of the run; `None` where there are none.
fn slos(summary: &Summary) -> Option<Section> {
    let mut rows: Vec<Vec<Cell>> = summary.request_slos.iter().flat_map(request_slos).collect();
    rows.extend(summary.slos.iter().map(run_slo));
    let columns = ["Verdict", "SLO", "Result"].map(Column::left).to_vec();
    let has_slos = !rows.is_empty();
    let table = Block::Table(Table::new("slos", "", columns, rows));
    has_slos.then(|| section("slos", "SLOs", vec![table]))
}

fn request_slos(slos: &RequestSlos) -> Vec<Vec<Cell>> {
    let row = |slo: &str, metric: Option<&str>, met: u64, reason: Option<&str>| {
        let met = match reason {
            None => requests_that_met(met, slos.scheduled),
            Some(_) => NOTHING.to_owned(),
        };
        judged("each", Mood::Note, slo, met + &compared_metric(slo, metric), reason)
    };
    let promises = slos.promises.iter();
    let mut rows: Vec<Vec<Cell>> = promises
        .map(|slo| row(&slo.promise, Some(&slo.metric), slo.met, slo.reason.as_deref()))
        .collect();
    // Together they are known only where each is.
    if 1 < rows.len() && slos.promises.iter().all(|slo| slo.reason.is_none()) {
        rows.push(row("all of these", None, slos.met, None));
    }
    rows
}

fn requests_that_met(met: u64, scheduled: u64) -> String {
    // Without a request there is no share.
    let share = (0 < scheduled).then(|| met as f64 / scheduled as f64);
    format!("{} of {} requests ({})", count(met), count(scheduled), percent(share))
}

fn run_slo(slo: &SloOutcome) -> Vec<Cell> {
    let mood = match slo.verdict {
        ThresholdVerdict::Met => Mood::Good,
        ThresholdVerdict::Missed => Mood::Bad,
        ThresholdVerdict::Undecided => Mood::Doubt,
    };
    let metric = slo.metric.as_deref();
    let value = match metric.and_then(Metric::named) {
        Some(metric) => with_unit(slo.value, metric.unit),
        None => number(slo.value),
    };
    let result = value + &compared_metric(&slo.promise, metric);
    judged(slo.verdict.key(), mood, &slo.promise, result, slo.reason.as_deref())
}

/// The metric that was compared, where the SLO leaves it to the load.
fn compared_metric(slo: &str, metric: Option<&str>) -> String {
    let metric = metric.filter(|metric| !slo.starts_with(metric)).and_then(Metric::named);
    metric.map_or_else(String::new, |metric| format!(", {}", metric.title))
}

const STATISTICS: [Statistic; 6] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P90),
    Statistic::Percentile(Percentile::P95),
    Statistic::Percentile(Percentile::P99),
    Statistic::Max,
];

/// A terminal has the metrics of this kind of load, without the maximum, and their intervals in
/// lines of their own.
fn latencies(summary: &Summary, detail: Detail) -> Table {
    let is_brief = detail == Detail::Brief;
    let statistics = if is_brief { &STATISTICS[..5] } else { &STATISTICS[..] };
    let mut rows = Vec::new();
    let mut has_intervals = false;
    for (metric, value) in summary.metrics.iter() {
        let MetricValue::Distribution(found) = value else { continue };
        let is_headline = metric.headline.is_on(summary.run.load.is_open());
        let is_shown = [&metric::TTFT, &metric::ICL, &metric::E2E].contains(&metric);
        if is_brief && !is_headline && !is_shown {
            continue;
        }
        let mut cells = vec![metric_name(metric)];
        cells.extend(statistics.iter().map(|statistic| latency_cell(metric, found, *statistic)));
        cells.push(Cell::number(count(found.n), found.n as f64));
        rows.push(cells);
        if is_brief && is_headline && statistics.iter().any(|it| found.intervals.get(*it).is_some())
        {
            rows.push(interval_row(found, statistics));
            has_intervals = true;
        }
    }
    let columns = statistics.iter().map(|statistic| statistic.name()).chain(["n"]);
    let columns = Column::names_and_numbers("Latency (ms)", columns);
    let caption =
        if is_brief { "" } else { "Latencies in milliseconds, over requests that ended ok" };
    let note = "95 %: the true value lies there with 95 % confidence, as far as this run can tell.";
    let notes = has_intervals.then(|| plain(note)).into_iter().collect();
    Table { notes, ..Table::new("run-metrics", caption, columns, rows) }
}

fn latency_cell(metric: &Metric, found: &Distribution, statistic: Statistic) -> Cell {
    let Some(value) = statistic.stored(found) else {
        return missing(found.reason.as_deref().unwrap_or("there is no value"));
    };
    let certified = match statistic {
        Statistic::Percentile(percentile) => found.is_certified(percentile),
        Statistic::Mean | Statistic::Max => true,
    };
    let interval = found.intervals.get(statistic).map(|it| format!("95 % {}", fmt::interval(it)));
    let independent = found.effective_n.unwrap_or(found.n as f64);
    let doubt = (!certified).then(|| uncertified(Some(independent)));
    let parts: Vec<String> = interval.into_iter().chain(doubt).collect();
    Cell {
        detail: (!parts.is_empty()).then(|| parts.join("; ")),
        doubtful: !certified,
        reason: (!certified).then(|| UNCERTIFIED.to_owned()),
        ..Cell::number(printed(metric.name, value), value)
    }
}

fn interval_row(found: &Distribution, statistics: &[Statistic]) -> Vec<Cell> {
    let range = |statistic: &Statistic| {
        Cell::text(found.intervals.get(*statistic).map(fmt::range).unwrap_or_default())
    };
    let name = format!("  95 %, effective n {}", whole(found.effective_n));
    let cells = [Cell::text(name)].into_iter().chain(statistics.iter().map(range));
    cells.chain([Cell::text("")]).collect()
}

fn numbers(summary: &Summary, detail: Detail) -> Table {
    let is_brief = detail == Detail::Brief;
    let without_slos = [&metric::GOODPUT, &metric::ATTAINMENT, &metric::FLUIDITY];
    let scalars = summary.metrics.iter().filter_map(|(metric, value)| match value {
        MetricValue::Scalar(scalar) if scalar.value.is_none() && metric.is_telemetry => None,
        // Without SLOs there is no share of requests that met them.
        _ if summary.request_slos.is_none() && without_slos.contains(&metric) => None,
        MetricValue::Scalar(scalar) => Some((metric, scalar)),
        MetricValue::Distribution(_) => None,
    });
    let columns =
        Columns::new("Quantity", |(metric, _): &(&'static Metric, &Scalar)| metric_name(metric))
            .right("Value", |(metric, scalar)| match scalar.value {
                Some(value) => Cell::number(printed(metric.name, value), value),
                None => missing(scalar.reason.as_deref().unwrap_or("there is no value")),
            })
            .left("Unit", |(metric, _)| Cell::text(unit_name(metric.unit)))
            .right("95 % interval", |(metric, scalar)| match scalar.interval {
                Some(found) => Cell::text(interval_in(found, metric.unit)),
                None if is_brief => Cell::text(""),
                None => missing("not known from this run alone"),
            });
    let caption = if is_brief { "" } else { "Rates, shares and counts" };
    columns.table("run-numbers", caption, scalars)
}

fn metric_name(metric: &Metric) -> Cell {
    Cell { detail: Some(metric.definition.to_owned()), ..Cell::text(metric.title) }
}

/// The steady part of the run beside the whole, or why there is none.
fn steady(summary: &Summary) -> Vec<Block> {
    let steady = &summary.steady;
    let (Some(window), Some(figures)) = (&steady.window, &steady.figures) else {
        let word = match steady.state {
            SteadyKind::NeverSettled => "never settled",
            SteadyKind::TooShort => "too short to tell",
            SteadyKind::Settled | SteadyKind::NotJudged => "not judged",
        };
        let reason = steady.reason.as_deref().unwrap_or(NOTHING);
        return vec![Block::Paragraph(plain(format!("{word}: {reason}")))];
    };
    let seconds = |ms: Option<f64>| number(ms.map(|ms| ms / 1e3));
    let text = format!(
        "from {} s to {} s, {} ok requests sent; the tables above are of the whole run",
        seconds(window.from_ms),
        seconds(window.to_ms),
        count(figures.requests),
    );
    let mut columns = Column::names_and_numbers("Quantity", ["Steady", "Whole"]);
    columns.extend([Column::left("Unit"), Column::right("95 % interval, steady")]);
    let table = Table::new("steady-figures", "", columns, steady_rows(summary, figures));
    vec![Block::Paragraph(plain(text)), Block::Table(table)]
}

fn steady_rows(summary: &Summary, steady: &SteadyFigures) -> Vec<Vec<Cell>> {
    let cell = |value: Option<f64>| {
        value.map_or_else(|| Cell::text(NOTHING), |value| Cell::number(number(value), value))
    };
    let row = |name: &str, value: Option<f64>, whole, unit: &str, around: Option<Interval>| {
        value?;
        let around = Cell::text(around.map(fmt::interval).unwrap_or_default());
        Some(vec![Cell::text(name), cell(value), cell(whole), Cell::text(unit), around])
    };
    let throughput = |metric: &'static Metric, value: Option<f64>, around: Option<Interval>| {
        let whole = summary.metrics.scalar(metric)?;
        row(metric.title, value, whole.value, &whole.unit, around)
    };
    let (requests, output) = (steady.request_throughput, steady.output_throughput);
    let around = steady.intervals;
    let mut rows = vec![
        throughput(&metric::REQUEST_THROUGHPUT, requests, around.request_throughput),
        throughput(&metric::OUTPUT_THROUGHPUT, output, around.output_throughput),
    ];
    for metric in [summary.latency_origin().ttft(), &metric::TPOT] {
        let Some(own) = steady.latencies.get(metric) else { continue };
        let whole = summary.metrics.distribution(metric);
        for percentile in [Percentile::P50, Percentile::P99] {
            // What is not certified here judges nothing.
            let sure = |distribution: &Distribution| {
                let certified = distribution.is_certified(percentile);
                distribution.percentile(percentile).filter(|_| certified)
            };
            let around = own.intervals.get(Statistic::Percentile(percentile));
            let title = format!("{} {}", metric.title, percentile.name());
            rows.push(row(&title, sure(own), whole.and_then(sure), "ms", around));
        }
    }
    rows.into_iter().flatten().collect()
}

/// The tables of turns and of the parts of a mix.
fn groups(summary: &Summary) -> Vec<Section> {
    /// Characters of a part's name.
    const NAME_MOST: usize = 16;
    let turns = summary.turns.iter().map(|turn| {
        let and_later = if turn.and_later { "+" } else { "" };
        group(&format!("{}{and_later}", turn.turn), &turn.figures)
    });
    let parts = summary.parts.iter();
    let parts = parts.map(|part| group(&terminal_line(&part.part, NAME_MOST), &part.figures));
    let groups = [
        ("turns", "Turns (ms)", "Turn", turns.collect::<Vec<_>>()),
        ("parts", "Parts (ms)", "Part", parts.collect()),
    ];
    let groups = groups.into_iter().filter(|(_, _, _, rows)| !rows.is_empty());
    let section = |(id, title, head, rows): (&str, &str, &str, Vec<Vec<Cell>>)| {
        let columns =
            ["ok", "TTFT p50", "p99", "TPOT p50", "p99", "E2E p50", "p99", "Input", "Cached"];
        let columns = Column::names_and_numbers(head, columns);
        let table = Table::new(format!("run-{id}"), "", columns, rows);
        section(id, title, vec![Block::Table(table)])
    };
    groups.map(section).collect()
}

fn group(name: &str, figures: &GroupFigures) -> Vec<Cell> {
    let ok = match count(figures.ok) {
        ok if figures.ok == figures.requests => ok,
        ok => format!("{ok}/{}", count(figures.requests)),
    };
    let latency = |figures: &Figures, percentile: Percentile, value: Option<f64>| {
        let Some(value) = value else { return Cell::text(NOTHING) };
        let doubtful = !figures.is_certified(percentile);
        let reason = doubtful.then(|| UNCERTIFIED.to_owned());
        Cell { doubtful, reason, ..Cell::number(number(value), value) }
    };
    let latencies = figures.latencies.iter().flat_map(|(_, found)| {
        [latency(found, Percentile::P50, found.p50), latency(found, Percentile::P99, found.p99)]
    });
    let tokens = [whole(figures.input_tokens_mean), percent(figures.cached_share)];
    let head = [Cell::text(name), Cell::text(ok)].into_iter();
    head.chain(latencies).chain(tokens.map(Cell::text)).collect()
}

/// From this many scrapes on, a mean of them describes a run.
const SCRAPES_LEAST: u64 = 3;

/// What the server reports of itself; `None` where it reports nothing and nothing says why.
fn server(summary: &Summary) -> Option<Section> {
    let blocks = match (&summary.server, &summary.server_missing) {
        (Some(server), _) => server_blocks(server, summary),
        (None, Some(reason)) => vec![Block::Paragraph(plain(format!("{NOTHING} {reason}")))],
        (None, None) => return None,
    };
    Some(section("server", "Server", blocks))
}

fn server_blocks(server: &ServerSide, summary: &Summary) -> Vec<Block> {
    // A simulated engine is looked up and not scraped.
    let source = if summary.run.simulated.is_some() { "samples" } else { "scrapes" };
    let row = |name: &str,
               gauge: Option<GaugeFigures>,
               mean: fn(f64) -> String,
               max: fn(f64) -> String| {
        let gauge = gauge?;
        let cells = if gauge.n < SCRAPES_LEAST {
            let reason = format!("too few {source} to tell");
            [missing(&reason), missing(&reason)]
        } else {
            [Cell::number(mean(gauge.mean), gauge.mean), Cell::number(max(gauge.max), gauge.max)]
        };
        Some([Cell::text(name)].into_iter().chain(cells).collect::<Vec<_>>())
    };
    let requests = |name, gauge| row(name, gauge, number, whole);
    let shares = |name, gauge| row(name, gauge, percent, percent);
    let rows = [
        requests("Running requests", server.running),
        requests("Waiting requests", server.waiting),
        requests("Swapped requests", server.swapped),
        shares("KV use", server.kv_usage),
        shares("KV use, host memory", server.cpu_kv_usage),
    ];
    let rows: Vec<Vec<Cell>> = rows.into_iter().flatten().collect();
    let found = server.prefix_hit_share.map(percent);
    let facts = Block::facts([
        ("prefix cache", found.map(|share| format!("{share} of prompt tokens found in it"))),
        ("preemptions", server.preemptions.map(|counter| whole(counter.total))),
        ("replicas", server.replicas.map(count)),
        ("restarts", (0 < server.restarts).then(|| count(server.restarts))),
        (source, Some(scrapes(server, &speaker(summary, server)))),
    ]);
    let columns = Column::names_and_numbers("Quantity", ["Mean", "Highest"]);
    let has_rows = !rows.is_empty();
    let table = has_rows.then(|| Block::Table(Table::new("server-side", "", columns, rows)));
    table.into_iter().chain([facts]).chain(server_tokens(summary, server, source)).collect()
}

/// The engine of this program uses another server's metric names, and is not that server.
fn speaker(summary: &Summary, server: &ServerSide) -> String {
    let names = server.dialect.title();
    match (&summary.run.simulated, summary.run.embedded) {
        (Some(_), _) => format!("the simulated engine (by the names of {names})"),
        (None, true) => format!("the embedded engine (by the names of {names})"),
        (None, false) => names.to_owned(),
    }
}

fn scrapes(server: &ServerSide, speaker: &str) -> String {
    let scrapes = &server.scrapes;
    let inside = match scrapes.inside {
        0 => "none inside the run".to_owned(),
        inside => format!("{} inside the run", count(inside)),
    };
    let all = format!("{} of {speaker}, {inside}", count(scrapes.ok));
    let Some(took) = scrapes.took_ms_mean else { return all };
    let (took, at_most) = (latency(took), latency(scrapes.took_ms_max));
    let reasons: Vec<String> = scrapes
        .missed_by
        .iter()
        .map(|(reason, number)| format!("{} {}", count(*number), reason.replace('_', " ")))
        .collect();
    let missed = match scrapes.missed {
        0 => "none missed".to_owned(),
        missed => format!("{} missed ({})", count(missed), reasons.join(", ")),
    };
    format!("{all}, {missed}; each took {took}, at most {at_most}")
}

/// Token counts of client and server: `None` where the server counts nothing.
fn server_tokens(summary: &Summary, server: &ServerSide, source: &str) -> Option<Block> {
    let client = &summary.tokens;
    let row = |name: &str, own: u64, found: Option<CounterFigures>, apart: Option<f64>| {
        let found = found?;
        let apart = match (apart, &server.tokens_not_compared) {
            (Some(share), _) => Cell::number(format!("{:+.2} %", share * 100.0), share),
            (None, Some(reason)) => missing(reason),
            (None, None) => missing("the client's count is not the server's own"),
        };
        Some(vec![
            Cell::text(name),
            Cell::number(count(own), own as f64),
            Cell::number(whole(found.total), found.total),
            apart,
            number_cell(found.per_s, number, &format!("there is no time between its {source}")),
        ])
    };
    let apart = server.tokens_apart;
    let rows = [
        row("Prompt tokens", client.input_total, server.prompt_tokens, apart.prompt),
        row("Generated tokens", client.output_total, server.generation_tokens, apart.generation),
    ];
    let rows = rows.into_iter().flatten().collect();
    // Both are in every scrape, so that one time holds for both.
    let over_s = server.prompt_tokens.or(server.generation_tokens)?.over_s;
    let columns = ["Client", "Server", "Difference", "Server (tok/s)"];
    let columns = Column::names_and_numbers("Token counts", columns);
    let notes = vec![plain(format!(
        "The client counts ok requests, the server all requests, over {} s between {source}.",
        number(over_s)
    ))];
    Some(Block::Table(Table { notes, ..Table::new("tokens-reconciled", "", columns, rows) }))
}

const NOT_REPORTED: &str = "not reported by the tool";

/// The server's GPUs and the client's machine; `None` where no machine was observed.
fn machines(summary: &Summary, detail: Detail) -> Option<Section> {
    let machines = &summary.machines;
    let is_full = detail == Detail::Full;
    let mut blocks = Vec::new();
    match (&machines.gpus, &machines.gpus_missing) {
        (Some(found), _) => {
            if is_full {
                blocks.push(Block::Table(devices(found)));
            }
            blocks.push(gpu_facts(found));
            if is_full {
                blocks.extend(charts::gpus(summary, "").map(charts::figure));
            }
        }
        (None, Some(reason)) if machines.client.is_some() => {
            blocks.push(Block::Paragraph(plain(format!("GPUs: {NOTHING} {reason}"))));
        }
        (None, _) => {}
    }
    if let Some(client) = &machines.client {
        blocks.push(client_machine(client));
        if is_full {
            blocks.extend(charts::client_machine(summary, "").map(charts::figure));
        }
    }
    (!blocks.is_empty()).then(|| section("machines", "Machines", blocks))
}

fn devices(found: &GpuFigures) -> Table {
    let shown = |value: Option<f64>, text| number_cell(value, text, NOT_REPORTED);
    let mean = |gauge: Option<GaugeFigures>| gauge.map(|found| found.mean);
    let max = |gauge: Option<GaugeFigures>| gauge.map(|found| found.max);
    let name = |device: &&DeviceFigures| {
        let left_out = match (device.idle, device.foreign) {
            (true, _) => Some("it was idle, and is in no sum".to_owned()),
            (false, true) => Some("it is not the server's, and is in no sum".to_owned()),
            (false, false) => None,
        };
        let index = Cell::number(device.index.to_string(), f64::from(device.index));
        Cell { doubtful: left_out.is_some(), detail: left_out, ..index }
    };
    let memory = move |device: &&DeviceFigures| {
        let total = device.memory_total_bytes.map(|total| format!("of {}", memory(total)));
        let highest = max(device.memory_used_bytes).map(fmt::gibibytes);
        Cell { detail: total, ..shown(highest, number) }
    };
    let throttled =
        |device: &&DeviceFigures| known(gpus::held_back(device).as_deref(), NOT_REPORTED);
    let columns = Columns::new("GPU", name)
        .right("Use", |device| shown(mean(device.use_share), percent))
        .right("Memory, highest (GiB)", memory)
        .right("Power (W)", |device| shown(mean(device.power_w), number))
        .right("Power, highest (W)", |device| shown(max(device.power_w), number))
        .right("Core clock (MHz)", |device| shown(mean(device.core_clock_mhz), whole))
        .right("Temperature, highest (°C)", |device| shown(max(device.temperature_c), whole))
        .right("Throttled", throttled)
        .right("Energy (J)", |device| shown(device.energy_j, number));
    let caption = format!(
        "{}; means of {} by {} inside the run{}",
        gpus::how_many(found),
        counted(found.looks, "sample"),
        found.source.title(),
        gpus::missed(found)
    );
    columns.table("gpus", caption, &found.devices)
}

fn over_time(gauge: Option<GaugeFigures>, shown: fn(f64) -> String) -> Option<String> {
    let gauge = gauge?;
    Some(format!("{} on average, at most {}", shown(gauge.mean), shown(gauge.max)))
}

/// All GPUs that count together.
fn gpu_facts(found: &GpuFigures) -> Block {
    let samples = format!(
        "{}, {} by {}{}",
        gpus::how_many(found),
        counted(found.looks, "sample"),
        found.source.title(),
        gpus::missed(found)
    );
    let throttled = |device: &DeviceFigures| {
        let words = gpus::held_back(device).filter(|words| words != "never")?;
        Some(format!("GPU {}: {words}", device.index))
    };
    let throttled: Vec<String> = gpus::used(found).filter_map(throttled).collect();
    let hottest = gpus::across(found, |device| device.temperature_c);
    let memory_used: fn(f64) -> String = |bytes| format!("{} GiB", number(fmt::gibibytes(bytes)));
    let clock = gpus::across(found, |it| it.core_clock_mhz);
    let throttled = (!throttled.is_empty()).then(|| throttled.join("; ") + " of the samples");
    Block::facts([
        ("GPUs", Some(samples)),
        ("GPU power", over_time(found.power_w, |watts| format!("{} W", number(watts)))),
        ("GPU energy", Some(energy(found))),
        ("GPU use", over_time(gpus::across(found, |it| it.use_share), percent)),
        ("GPU memory", over_time(found.memory_used_bytes, memory_used)),
        ("GPU clock", over_time(clock, |mhz| format!("{} MHz", whole(mhz)))),
        ("GPU temperature", hottest.map(|it| format!("at most {} °C", whole(it.max)))),
        ("GPUs throttled", throttled),
    ])
}

fn energy(found: &GpuFigures) -> String {
    let Some(joules) = found.energy_j else {
        let reason = found.energy_missing.as_deref().unwrap_or("not known");
        return format!("{NOTHING} {reason}");
    };
    let mut parts = vec![fmt::joules(joules)];
    let per_token = found.energy_per_output_token_j.map(number);
    parts.extend(per_token.map(|joules| format!("{joules} J per output token")));
    let per_million = found.energy_per_million_tokens_kwh.map(number);
    parts.extend(per_million.map(|kwh| format!("{kwh} kWh per million output tokens")));
    format!(
        "{}; {}; {}; prompts and failed requests are in it, the rest of the machine is not",
        parts.join(", "),
        gpus::energy_from(found),
        gpus::counted(found)
    )
}

fn client_machine(client: &ClientFigures) -> Block {
    let busy = client.cpu_share.map(|cpu| {
        let own = client.own_cpus.map(|own| number(own.mean));
        let own = own.map(|own| format!("; {own} threads of it by this program"));
        let own = own.unwrap_or_default();
        format!("{} busy on average, at most {}{own}", percent(cpu.mean), percent(cpu.max))
    });
    let stolen = client.steal_share.filter(|steal| 0.0 < steal.max);
    let stolen = stolen.map(|it| format!("{} went to others on the host", percent(it.mean)));
    let rates = client.received_bytes_per_s.zip(client.sent_bytes_per_s);
    let network = rates.map(|(received, sent)| {
        let [received, sent] = [received, sent].map(fmt::megabytes_per_s);
        format!("{received} in, {sent} out, all interfaces together")
    });
    let left = client.memory_available_bytes_min;
    let memory_left = left.map(|bytes| format!("{} left at least", memory(bytes)));
    Block::facts([
        ("client CPU", busy),
        ("client steal", stolen),
        ("client network", network),
        ("client memory", memory_left),
    ])
}

/// How exact the client was; `None` in a simulation.
fn client(summary: &Summary) -> Option<Section> {
    if summary.run.simulated.is_some() {
        return None;
    }
    let client = &summary.client;
    let ms = |value| with_unit(value, Unit::Milliseconds);
    let p99 = |metric: &'static Metric| {
        ms(summary.metrics.distribution(metric).and_then(|found| found.p99))
    };
    let stamps = match client.kernel_stamps {
        Some(share) => format!("{} of reads stamped by the kernel", percent(share)),
        None => "nothing was read".to_owned(),
    };
    let clock = client
        .clock_error_us_max
        .map_or_else(String::new, |error| format!(", clock error at most {} µs", number(error)));
    let lags = format!(
        "send lag {}, client lag {}, loop lag at most {}, arrival width {}",
        p99(&metric::SEND_LAG),
        p99(&metric::CLIENT_LAG),
        ms(client.loop_lag_ms.p99_at_most),
        p99(&metric::ARRIVAL_WIDTH),
    );
    let facts = [("calibration", calibrated(summary)), ("clock", stamps + &clock), ("p99", lags)];
    Some(section("client", "Client", vec![Block::facts(facts)]))
}

/// The client's error at this load, and how much of its capacity the load took.
fn calibrated(summary: &Summary) -> String {
    let run = &summary.run;
    if run.http == HttpVersion::Http2 || run.target.starts_with("https:") {
        return "a calibration holds for plain HTTP/1.1 only; judged by its own lags".to_owned();
    }
    let Some(capacity) = &summary.client.capacity else {
        return "not calibrated on this machine (inferometer calibrate); judged by its own lags"
            .to_owned();
    };
    let used = percent(capacity.used);
    if !run.streaming {
        // One moment per answer: the error of a stream does not apply.
        return format!("client capacity used: {used}");
    }
    let error = capacity.error_ms.map_or_else(
        || "not known with so many streams".to_owned(),
        |error| {
            format!("TTFT {} ms, ITL {} ms (p99)", number(error.ttft_p99), number(error.itl_p99))
        },
    );
    format!("client error at this load: {error}; client capacity used: {used}")
}

/// How many checks passed, and the warnings with their remedies.
fn checked(summary: &Summary) -> Section {
    use CheckState::{Degraded, Invalid, NotChecked, Noted, Passed};
    let warnings = validity::warnings(&summary.warnings);
    let total = summary.checks.len();
    if total == 0 {
        return warnings;
    }
    let tally = |state| {
        let number = summary.checks.iter().filter(|check| check.state == state).count();
        (0 < number).then(|| format!("{number} {}", frame::state_word(state)))
    };
    let tally: Vec<String> =
        [Passed, Noted, Degraded, Invalid, NotChecked].into_iter().filter_map(tally).collect();
    let title = format!("{total} checks: {}", tally.join(", "));
    section("checks", &title, warnings.blocks)
}

fn stored(files: &Files) -> Section {
    let next = format!("inferometer verify {}", files.run);
    section("files", "", vec![Block::facts([("files", files.run.clone()), ("next", next)])])
}

fn provenance(summary: &Summary) -> Section {
    let run = &summary.run;
    let mut known = facts([
        ("Run", run.id.clone()),
        ("Started", run.started.clone()),
        ("Tool", format!("Inferometer {}", run.tool_version)),
        ("Target", run.target.clone()),
        ("Seed", run.seed.to_string()),
        ("Workload fingerprint", summary.workload.fingerprint.clone()),
        ("Plan fingerprint", summary.plan.fingerprint.clone()),
    ]);
    known.extend(facts(run.metadata.clone()));
    let use_none = "none: its numbers are not about the server".to_owned();
    known.extend(facts([("Use", Some(use_none).filter(|_| summary.verdict == Verdict::Invalid))]));
    section("provenance", "Provenance", vec![Block::Facts(known)])
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::RequestSlo;

    use super::*;

    fn result(metric: &str, value: Option<f64>) -> String {
        let slo = SloOutcome {
            promise: format!("{}<5", metric.trim_end_matches("_schedule")),
            metric: Some(metric.to_owned()),
            verdict: ThresholdVerdict::Met,
            value,
            reason: None,
        };
        run_slo(&slo)[2].text.clone()
    }

    #[test]
    fn values_have_their_units() {
        assert_eq!(result("ttft", Some(95.19)), "95.19 ms");
        assert_eq!(result("ttft_schedule", Some(95.19)), "95.19 ms, TTFT from schedule");
        assert_eq!(result("error_rate", Some(0.05)), "5 %");
        assert_eq!(result("goodput", Some(4.5)), "4.50 req/s");
        assert_eq!(result("goodput", None), "–");
    }

    #[test]
    fn an_slo_that_cannot_be_judged_has_its_reason_and_no_share() {
        let slo = |reason: Option<&str>| RequestSlo {
            promise: "ttft<1s".to_owned(),
            metric: "ttft".to_owned(),
            met: 0,
            reason: reason.map(str::to_owned),
        };
        let promises = vec![slo(None), slo(Some("not streamed"))];
        let rows = request_slos(&RequestSlos { promises, scheduled: 40, met: 0 });
        let found: Vec<&str> = rows.iter().map(|row| row[2].text.as_str()).collect();
        assert_eq!(found, ["0 of 40 requests (0 %)", "–; not streamed"]);
        assert_eq!(requests_that_met(0, 0), "0 of 0 requests (–)");
        assert_eq!(requests_that_met(19, 20), "19 of 20 requests (95 %)");
    }

    #[test]
    fn a_group_marks_what_is_not_certified_and_shows_failures() {
        let latency = Figures { mean: Some(12.5), p50: Some(12.5), p99: Some(12.5), n: 100 };
        let none = Figures { mean: None, p50: None, p99: None, n: 0 };
        let figures = |requests| GroupFigures {
            requests,
            ok: 100,
            latencies: [(&metric::TTFT, latency), (&metric::TPOT, latency), (&metric::E2E, none)]
                .into_iter()
                .collect(),
            input_tokens_mean: Some(1_234.4),
            cached_share: None,
        };
        let row = group("1", &figures(100));
        let texts: Vec<&str> = row.iter().map(|cell| cell.text.as_str()).collect();
        let expected = ["1", "100", "12.50", "12.50", "12.50", "12.50", "–", "–", "1,234", "–"];
        assert_eq!(texts, expected);
        let doubtful: Vec<bool> = row.iter().map(|cell| cell.doubtful).collect();
        assert_eq!(doubtful[2..6], [false, true, false, true]);
        assert_eq!(group("1", &figures(120))[1].text, "100/120");
    }
}
