//! The page of a single run.

use std::fmt::Display;

use super::prelude::*;
use crate::narrative::facts::printed;
use crate::{Files, gpus, requirements};
use inferometer_analysis::compliance::{Compliance, compliance};
use inferometer_analysis::machines::{ClientFigures, DeviceFigures, GpuFigures};
use inferometer_analysis::{
    AnswerFigures, CheckKind, ClientHealth, CounterFigures, DiallingFigures, Distribution, Figures,
    GaugeFigures, GroupFigures, MetricValue, ReportFigures, RequestSlos, RequirementOutcome,
    Scalar, SloOutcome, SourceFigures, SpeculationFigures, SteadyFigures, SteadyKind, Withheld,
    WorkerFigures,
};
use inferometer_model::answer::Validity;
use inferometer_model::observations::HttpVersion;

/// The whole page, for HTML and Markdown.
pub fn run(summary: &Summary, narrative: &Narrative) -> Document {
    let rows = [Row::from_run(summary)];
    let about = About {
        id: &summary.run.id,
        started: &summary.run.started,
        tool_version: &summary.run.tool_version,
        verdict: summary.verdict,
        simulated: summary.run.simulated.as_ref().map(|it| frame::model_error([it].into_iter())),
        servers: vec![("", summary)],
        models: vec![summary.run.model.clone()],
        more: Some(("Load", load_words(summary))),
    };
    let (reason, points) = frame::reason(summary.verdict, &summary.warnings, &rows);
    let partial = if summary.run.partial { " The run did not reach its end." } else { "" };
    let why = plain(format!("{}. {reason}{partial}", requests_ok(summary, "ended ok")));
    let title = "LLM Inference Benchmark Report: One Run".to_owned();
    let sections = sections(summary, &[], narrative, Detail::Full);
    frame::page(&about, title, (why, points), headline(summary, &rows), sections, narrative)
}

/// The page for a terminal, with the requirements of the run.
pub fn run_brief(summary: &Summary, files: &Files, required: &[RequirementOutcome]) -> Document {
    let mut sections = sections(summary, required, &Narrative::default(), Detail::Brief);
    sections.push(stored(files));
    Document { sections, ..opening(summary, brief_subject(summary)) }
}

/// The first screen for a terminal: the verdict, the latencies and rates that are compared most, and
/// what is wrong. The rest is on the page of [`run_brief`].
pub fn run_summary(summary: &Summary, files: &Files, required: &[RequirementOutcome]) -> Document {
    /// More warnings are counted.
    const WARNINGS_MAX: usize = 2;
    let mut sections: Vec<Section> = requirements::page_section(required).into_iter().collect();
    let metrics = [latencies(summary, Detail::Summary), numbers(summary, Detail::Summary)];
    sections.push(section("metrics", "", metrics));
    sections.extend(slos(summary));
    sections.extend(validity::failures(&[Row::from_run(summary)], Detail::Brief));
    let mut checks = checked(summary);
    let more = summary.warnings.len().saturating_sub(WARNINGS_MAX);
    checks.blocks.truncate(WARNINGS_MAX);
    if 0 < more {
        checks
            .blocks
            .push(Block::paragraph(format!("and {}", counted(more as u64, "more warning"))));
    }
    let whole = format!("inferometer verify {} --full", named(files));
    sections.extend([checks, stored_and(files, Some(whole))]);
    Document { sections, ..opening(summary, brief_subject(summary)) }
}

/// Verdict, SLOs, failures, warnings and files alone, for output that has no room for them.
pub fn run_reservations(summary: &Summary, files: &Files) -> Document {
    let failures = validity::failures(&[Row::from_run(summary)], Detail::Brief);
    let mut sections: Vec<Section> = slos(summary).into_iter().chain(failures).collect();
    sections.extend([validity::warnings(&summary.warnings), stored(files)]);
    Document { title: String::new(), sections, ..opening(summary, Vec::new()) }
}

fn opening(summary: &Summary, subject: Vec<(String, Text)>) -> Document {
    let run = &summary.run;
    let alert = run.simulated.as_ref().map(|simulated| plain(frame::simulated(simulated)));
    let partial = if run.partial { ", partial" } else { "" };
    let text = plain(requests_ok(summary, "ok") + partial);
    let verdict = Some(frame::badge(summary.verdict, run.simulated.is_some(), text, Vec::new()));
    let kind = format!("run {}", run.id);
    let title = frame::brief_title(&run.tool_version, &kind, run.simulated.is_some());
    let lead = Lead { alert, subject, verdict, headline: Vec::new() };
    Document { lead, ..Document::new(title, Vec::new()) }
}

/// The rules of an audit, where the run was to keep them.
fn compliance_rules(summary: &Summary) -> Option<Section> {
    let rules = compliance(summary)?;
    let state = |it: &Compliance| match it.is_kept {
        Some(true) => Cell { mood: Some(Mood::Good), ..Cell::text("kept") },
        Some(false) => Cell { mood: Some(Mood::Bad), ..Cell::text("broken") },
        None => Cell { mood: Some(Mood::Doubt), ..Cell::text("not shown") },
    };
    let table = Columns::new("Rule", |it: &Compliance| Cell::text(&it.rule))
        .left("State", state)
        .left("Required", |it| Cell::text(&it.required))
        .left("Found", |it| Cell::text(terminal_line(&it.found, 200)))
        .table("compliance", "Compliance with the rules of an audit", rules);
    Some(section("compliance", "Compliance", [table]))
}

/// `57 of 60 requests ok in 2.63 s`.
pub(crate) fn requests_ok(summary: &Summary, how: &str) -> String {
    // Turns that were not due before the end of the run are not counted.
    let due = count(summary.scheduled.saturating_sub(summary.time_over));
    let (ok, took) = (count(summary.count(Outcome::Ok)), number(summary.window.duration_s));
    fill("requests-ok", &[&ok, &due, &how, &took])
}

fn sections(
    summary: &Summary,
    required: &[RequirementOutcome],
    narrative: &Narrative,
    detail: Detail,
) -> Vec<Section> {
    let rows = [Row::from_run(summary)];
    let is_full = detail == Detail::Full;
    let mut sections: Vec<Section> = compliance_rules(summary).into_iter().collect();
    let mut drawn = section("charts", "Charts", Vec::<Block>::new());
    if is_full {
        drawn = drawn.with(run_charts(summary, &rows[0]));
        sections.extend(frame::summary_with_chart(narrative, &mut drawn).filled());
        sections.push(system::system(&[("", summary)]));
    }
    sections.extend(requirements::page_section(required));
    // The sentences about a single run have no name of a scenario.
    let metrics = [latencies(summary, detail), numbers(summary, detail)];
    let metrics = section("metrics", "Performance", metrics).with(frame::row_texts(narrative, ""));
    sections.extend([metrics, section("steady", "Steady state", steady(summary))]);
    sections.extend(slos(summary).into_iter().chain(sessions(summary)).chain(groups(summary)));
    sections.extend(drawn.filled());
    sections.extend(anatomy::section(summary, detail));
    sections.extend(audit::section(summary));
    if !is_full {
        sections.extend(validity::failures(&rows, detail));
    }
    sections.extend(summary.answers.as_ref().map(answers));
    sections.extend(summary.reports.as_ref().and_then(reports));
    sections.extend(server(summary).into_iter().chain(machines(summary, detail)));
    if !is_full {
        sections.extend(client(summary));
        sections.push(checked(summary));
        return sections;
    }
    sections.extend(frame::recommendations(narrative).filled());
    let mut validity = validity::validity_section(&rows, &summary.warnings, narrative, None);
    let own = validity.sections.iter_mut().find(|part| part.id == "client");
    if let (Some(part), Some(facts)) = (own, client(summary)) {
        part.blocks.splice(0..0, facts.blocks);
    }
    sections.extend([validity, provenance(summary)]);
    sections
}

fn run_charts(summary: &Summary, row: &Row<'_>) -> impl Iterator<Item = Chart> {
    let own = [row];
    let drawn = [
        charts::first_tokens(&own, ""),
        charts::token_gaps(&own, ""),
        // All that an API without streams shows.
        charts::tails(&own, &metric::E2E, ""),
        charts::histogram(row),
        charts::course(summary, ""),
        charts::requests(summary, ""),
        charts::gaps(summary, ""),
    ];
    drawn.into_iter().flatten()
}

/// Load, extent and lengths in words.
fn load_words(summary: &Summary) -> String {
    format!("{}, {}", load::planned(summary), load::lengths(&summary.workload, summary.run.api))
}

fn brief_subject(summary: &Summary) -> Vec<(String, Text)> {
    let run = &summary.run;
    let streaming = if run.streaming { "streamed" } else { "not streamed" };
    let protocol = if run.http == HttpVersion::Http2 { ", HTTP/2" } else { "" };
    let target =
        frame::target(&run.target, run.embedded, run.simulated.is_some(), run.engine_speed);
    let model = terminal_line(&run.model, 60);
    let target = format!("{} of `{model}` at {target}, {streaming}{protocol}", run.api);
    let insecure = "certificate NOT checked (--insecure): the server is not authenticated";
    let held = summary.held_by_cap.map(|held| percent(held.share));
    facts([
        ("target", Some(target)),
        ("TLS", run.insecure.then(|| insecure.to_owned())),
        ("load", Some(format!("{}, seed {}", load_words(summary), run.seed))),
        ("prompts", load::extras(&summary.workload)),
        ("cap", held.map(|share| format!("the cap held back {share} of the requests"))),
        ("warm-up", run.warm_up.map(|facts| load::warm_up(&facts))),
    ])
}

fn headline(summary: &Summary, rows: &[Row<'_>; 1]) -> Vec<Card> {
    let latency_card = |metric: &'static Metric| {
        let tail = rows[0].quantity(metric.p99());
        let mark = if tail.certified { "" } else { " (not certified)" };
        let detail = tail.mean.map(|p99| format!("p99 {}{mark}", fmt::latency(p99)));
        let detail = detail.unwrap_or_else(|| NOTHING.to_owned());
        cells::latency_card(&format!("{} mean", metric.title), &rows[0], metric.mean(), detail)
    };
    let cards = [
        cells::highest_output_card(rows),
        latency_card(summary.latency_origin().ttft()),
        latency_card(&metric::TPOT),
        cells::lowest_cost_card(rows),
        Some(cells::requests_card(rows)),
    ];
    cards.into_iter().flatten().collect()
}

/// A verdict, an SLO, and the result with the reason of the verdict.
fn judged(word: &str, mood: Mood, slo: &str, result: String, reason: Option<&str>) -> Vec<Cell> {
    /// Names are bounded, but limits may have any number of digits.
    const SLO_CHARS_MAX: usize = 36;
    let reason = reason.map_or_else(String::new, |reason| format!("; {reason}"));
    vec![
        Cell { mood: Some(mood), ..Cell::text(word) },
        Cell::text(terminal_line(slo, SLO_CHARS_MAX)),
        Cell::text(result + &reason),
    ]
}

/// The SLOs of requests and of the run; `None` where there are none.
fn slos(summary: &Summary) -> Option<Section> {
    let mut rows: Vec<Vec<Cell>> = summary.request_slos.iter().flat_map(request_slos).collect();
    rows.extend(summary.slos.iter().map(run_slo));
    let columns = ["Verdict", "SLO", "Result"].map(Column::left).to_vec();
    (!rows.is_empty()).then(|| section("slos", "SLOs", [Table::new("slos", "", columns, rows)]))
}

fn request_slos(slos: &RequestSlos) -> Vec<Vec<Cell>> {
    let row = |slo: &str, metric: Option<&str>, met: u64, reason: Option<&str>| {
        let met = match reason {
            None => requests_that_met(met, slos.scheduled),
            Some(_) => NOTHING.to_owned(),
        };
        judged("per request", Mood::Note, slo, met + &compared_metric(slo, metric), reason)
    };
    let own = slos.promises.iter();
    let own = own.map(|slo| row(&slo.promise, Some(&slo.metric), slo.met, slo.reason.as_deref()));
    let mut rows: Vec<Vec<Cell>> = own.collect();
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
    let metric = slo.metric.as_deref();
    let result = slo_value(slo) + &compared_metric(&slo.promise, metric);
    judged(slo.verdict.key(), slo.verdict.into(), &slo.promise, result, slo.reason.as_deref())
}

pub(crate) fn slo_value(slo: &SloOutcome) -> String {
    let metric = slo.metric.as_deref().and_then(Metric::named);
    metric.map_or_else(|| number(slo.value), |metric| fmt::with_unit(slo.value, metric.unit))
}

/// The metric that was compared, where the load determines it.
fn compared_metric(slo: &str, metric: Option<&str>) -> String {
    let metric = metric.filter(|metric| !slo.starts_with(metric)).and_then(Metric::named);
    metric.map_or_else(String::new, |metric| format!(", {}", metric.title))
}

const STATISTICS: [Statistic; 6] = [MEAN, P50, P90, P95, P99, MAX];

/// A terminal shows the metrics of this kind of load without the maximum, and their intervals in
/// separate lines.
fn latencies(summary: &Summary, detail: Detail) -> Table {
    let (is_brief, is_summary) = (detail != Detail::Full, detail == Detail::Summary);
    let statistics = match detail {
        Detail::Full => &STATISTICS[..],
        Detail::Brief => &STATISTICS[..5],
        Detail::Summary => &[MEAN, P50, P90, P99],
    };
    let mut rows = Vec::new();
    let why = summary.intervals_withheld.iter().filter(|_| !is_summary);
    let mut notes: Vec<String> = why.map(withheld).collect();
    let steady = summary.steady.figures.as_deref();
    let mut of_all_requests = Vec::new();
    for (metric, value) in summary.headline().iter() {
        let MetricValue::Distribution(found) = value else { continue };
        if metric.is_telemetry && found.n == 0 {
            continue;
        }
        let is_headline = metric.headline.is_on(summary.run.load.is_open());
        let is_shown = [&metric::TTFT, &metric::ICL, &metric::E2E].contains(&metric);
        if is_brief && !is_headline && (!is_shown || is_summary && metric == &metric::ICL) {
            continue;
        }
        let cells = statistics.iter().map(|statistic| latency_cell(metric, found, *statistic));
        let is_open = summary.run.load.is_open();
        let is_from_sending = is_open && [&metric::TTFT, &metric::E2E].contains(&metric);
        let mut name = metric_name(metric);
        // The same from the schedule is a row of its own.
        name.text += if is_from_sending { " from sending" } else { "" };
        if steady.is_some_and(|figures| figures.latencies.get(metric).is_none()) {
            of_all_requests.push(name.text.clone());
        }
        let row = [name].into_iter().chain(cells).chain([Cell::count(found.n)]);
        rows.push(row.collect());
        let intervals = statistics.iter().map(|statistic| found.intervals.get(*statistic));
        if is_brief && !is_summary && is_headline && intervals.clone().any(|found| found.is_some())
        {
            let ranges = intervals.map(|it| Cell::text(it.map(fmt::range).unwrap_or_default()));
            let name = format!("  95 %, n {}", whole(found.effective_n));
            let row = [Cell::text(name)].into_iter().chain(ranges).chain([Cell::text("")]);
            rows.push(row.collect());
            notes = vec![text("intervals-in-run").to_owned()];
        }
    }
    if let Some(figures) = steady.filter(|_| !is_summary && !of_all_requests.is_empty()) {
        let names = of_all_requests.join(", ");
        notes.push(fill("of-whole-run", &[&names, &count(figures.requests)]));
    }
    let columns = statistics.iter().map(|statistic| statistic.name()).chain(["n"]);
    let columns = Column::names_and_numbers("Latency (ms)", columns);
    let caption =
        if is_brief { "" } else { "Latencies in milliseconds, over requests that ended ok" };
    Table::new("run-metrics", caption, columns, rows).noted(notes)
}

/// Why there are no confidence intervals, and what would give them.
fn withheld(withheld: &Withheld) -> String {
    let needed = withheld.requests_needed.map_or_else(String::new, |needed| {
        format!("; about {} requests would allow them (--requests {needed})", count(needed))
    });
    format!("no confidence intervals: {}{needed}", withheld.reason)
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
    let few = (!certified).then(|| uncertified(Some(statistic)));
    let cell = Cell::number(printed(metric.name, value), value);
    let cell = cell.detailed(interval.into_iter().chain(few).try_join("; "));
    cell.doubted((!certified).then(|| UNCERTIFIED.to_owned()))
}

fn numbers(summary: &Summary, detail: Detail) -> Table {
    let is_brief = detail != Detail::Full;
    let first = [
        &metric::REQUEST_THROUGHPUT,
        &metric::OUTPUT_THROUGHPUT,
        &metric::TOTAL_THROUGHPUT,
        &metric::CONCURRENCY_MEAN,
        &metric::ERROR_RATE,
    ];
    let needs_slos = [&metric::GOODPUT, &metric::ATTAINMENT, &metric::FLUIDITY];
    let values = summary.headline();
    let scalars = values.iter().filter_map(|(metric, value)| match value {
        MetricValue::Scalar(scalar) if scalar.value.is_none() && metric.is_telemetry => None,
        _ if summary.request_slos.is_none() && needs_slos.contains(&metric) => None,
        _ if detail == Detail::Summary
            && !first.contains(&metric)
            && !needs_slos.contains(&metric) =>
        {
            None
        }
        MetricValue::Scalar(scalar) => Some((metric, scalar)),
        MetricValue::Distribution(_) => None,
    });
    let columns =
        Columns::new("Quantity", |(metric, _): &(&'static Metric, &Scalar)| metric_name(metric))
            .right("Value", |(metric, scalar)| match scalar.value {
                Some(value) => Cell::number(printed(metric.name, value), value),
                None => missing(scalar.reason.as_deref().unwrap_or("there is no value")),
            })
            .left("Unit", |(metric, _)| Cell::text(fmt::unit_name(metric.unit)))
            .right("95 % interval", |(metric, scalar)| match scalar.interval {
                Some(found) => Cell::text(fmt::interval_in(found, metric.unit)),
                None if is_brief => Cell::text(""),
                None => missing("not known from this run alone"),
            });
    let caption = if is_brief { "" } else { "Rates, shares and counts" };
    columns.table("run-numbers", caption, scalars)
}

fn metric_name(metric: &Metric) -> Cell {
    Cell::text(metric.title).detailed(metric.definition().to_owned())
}

/// The steady state beside the whole run, or the reason why there is none.
fn steady(summary: &Summary) -> Vec<Block> {
    let steady = &summary.steady;
    let (Some(window), Some(figures)) = (&steady.window, &steady.figures) else {
        let word = match steady.state {
            SteadyKind::NeverSettled => "never settled",
            SteadyKind::TooShort => "too short to tell",
            SteadyKind::Settled | SteadyKind::NotJudged => "not judged",
        };
        let reason = steady.reason.as_deref().unwrap_or(NOTHING);
        return vec![Block::paragraph(format!("{word}: {reason}"))];
    };
    let [from, to] =
        [window.from_ms, window.to_ms].map(|ms: Option<f64>| number(ms.map(|ms| ms / 1e3)));
    let text = fill("steady-part", &[&from, &to, &count(figures.requests)]);
    let cell = |value: Option<f64>| {
        value.map_or_else(|| Cell::text(NOTHING), |value| Cell::number(number(value), value))
    };
    let table = Columns::new("Quantity", |row: &SteadyRow| Cell::text(row.0.clone()))
        .right("Steady", move |row| cell(Some(row.1)))
        .right("Whole", move |row| cell(row.2))
        .left("Unit", |row| Cell::text(row.3.clone()))
        .right("95 % interval, steady", |row| {
            Cell::text(row.4.map(fmt::interval).unwrap_or_default())
        })
        .table("steady-figures", "", steady_rows(summary, figures));
    vec![Block::paragraph(text), table.into()]
}

/// A quantity: its name, its value in the steady state and in the whole run, its unit, and the interval
/// of the steady value.
type SteadyRow = (String, f64, Option<f64>, String, Option<Interval>);

fn steady_rows(summary: &Summary, steady: &SteadyFigures) -> Vec<SteadyRow> {
    let around = steady.intervals;
    let throughputs = [
        (&metric::REQUEST_THROUGHPUT, steady.request_throughput, around.request_throughput),
        (&metric::OUTPUT_THROUGHPUT, steady.output_throughput, around.output_throughput),
    ];
    let throughputs = throughputs.into_iter().filter_map(|(metric, value, around)| {
        let whole = summary.metrics.scalar(metric)?;
        Some((metric.title.to_owned(), value?, whole.value, whole.unit.clone(), around))
    });
    let mut rows: Vec<SteadyRow> = throughputs.collect();
    for metric in [summary.latency_origin().ttft(), &metric::TPOT] {
        let Some(own) = steady.latencies.get(metric) else { continue };
        let whole = summary.metrics.distribution(metric);
        rows.extend([Percentile::P50, Percentile::P99].into_iter().filter_map(|percentile| {
            let certified = |it: &Distribution| {
                it.percentile(percentile).filter(|_| it.is_certified(percentile))
            };
            let around = own.intervals.get(Statistic::Percentile(percentile));
            let title = format!("{} {}", metric.title, percentile.name());
            Some((title, certified(own)?, whole.and_then(certified), "ms".to_owned(), around))
        }));
    }
    rows
}

/// Whole sessions: how many were completed, where their time went, and what the cache held.
fn sessions(summary: &Summary) -> Option<Section> {
    let found = summary.sessions.as_ref()?;
    let failed = match found.failed {
        0 => String::new(),
        failed => format!(", {} with a failed request", count(failed)),
    };
    let (complete, all) = (count(found.complete), counted(found.begun, "session"));
    let verb = if found.complete == 1 { "is" } else { "are" };
    let [rate, requests] = [found.jobs_per_min, found.requests_mean].map(number);
    let [critical, at_once] = [found.critical_requests_mean, found.parallelism].map(number);
    let parts: [&dyn Display; 8] =
        [&complete, &all, &verb, &failed, &rate, &requests, &critical, &at_once];
    let begun = fill("sessions", &parts);
    let reuse = match &found.reuse {
        None => "The server does not report which prompt tokens came from its cache.".to_owned(),
        Some(reuse) => {
            let [achieved, achievable] = [reuse.achieved(), reuse.achievable()].map(percent);
            fill("prefix-cache", &[&achieved, &achievable, &percent(reuse.of_achievable())])
        }
    };
    let rows = [
        ("End to end", &found.e2e_ms),
        ("In the model", &found.model_ms),
        ("In tools", &found.tools_ms),
        ("Waiting", &found.waiting_ms),
    ];
    let rows = rows.map(|(name, figures)| {
        let p50 = percentile_cell(figures, Percentile::P50, figures.p50);
        let p99 = percentile_cell(figures, Percentile::P99, figures.p99);
        vec![Cell::text(name), Cell::text(number(figures.mean)), p50, p99]
    });
    let columns = Column::names_and_numbers("Critical path", ["Mean", "p50", "p99"]);
    let table = Table::new("run-sessions", "", columns, rows.into());
    let blocks = [Block::paragraph(begun), Block::paragraph(reuse), table.into()];
    Some(section("sessions", "Sessions (ms)", blocks))
}

/// The tables of turns and of the parts of a mix.
fn groups(summary: &Summary) -> impl Iterator<Item = Section> {
    /// Characters of a part's name.
    const NAME_MAX: usize = 16;
    /// Characters of a URL.
    const URL_MAX: usize = 40;
    let turns = summary.turns.iter().map(|turn| {
        let and_later = if turn.and_later { "+" } else { "" };
        group(&format!("{}{and_later}", turn.turn), &turn.figures)
    });
    let parts = summary.parts.iter();
    let parts = parts.map(|part| group(&terminal_line(&part.part, NAME_MAX), &part.figures));
    let urls = summary.urls.iter();
    let urls = urls.map(|url| group(&terminal_line(&url.part, URL_MAX), &url.figures));
    let groups = [
        ("urls", "Base URLs (ms)", "URL", urls.collect()),
        ("turns", "Turns (ms)", "Turn", turns.collect::<Vec<_>>()),
        ("parts", "Parts (ms)", "Part", parts.collect()),
    ];
    groups.into_iter().filter(|group| !group.3.is_empty()).map(|(id, title, head, rows)| {
        let columns =
            ["ok", "TTFT p50", "p99", "TPOT p50", "p99", "E2E p50", "p99", "Input", "Cached"];
        let columns = Column::names_and_numbers(head, columns);
        section(id, title, [Table::new(format!("run-{id}"), "", columns, rows)])
    })
}

/// A percentile, marked where there are too few values for it.
fn percentile_cell(figures: &Figures, percentile: Percentile, value: Option<f64>) -> Cell {
    let Some(value) = value else { return Cell::text(NOTHING) };
    let reason = (!figures.is_certified(percentile)).then(|| UNCERTIFIED.to_owned());
    Cell::number(number(value), value).doubted(reason)
}

fn group(name: &str, figures: &GroupFigures) -> Vec<Cell> {
    let ok = match count(figures.ok) {
        ok if figures.ok == figures.requests => ok,
        ok => format!("{ok}/{}", count(figures.requests)),
    };
    let latencies = figures.latencies.iter().flat_map(|(_, found)| {
        [
            percentile_cell(found, Percentile::P50, found.p50),
            percentile_cell(found, Percentile::P99, found.p99),
        ]
    });
    let tokens = [whole(figures.input_tokens_mean), percent(figures.cached_share)];
    let head = [Cell::text(name), Cell::text(ok)].into_iter();
    head.chain(latencies).chain(tokens.map(Cell::text)).collect()
}

/// The gauges and counters of the server; `None` where it reports nothing and there is no reason.
fn server(summary: &Summary) -> Option<Section> {
    Some(match (&summary.server, &summary.server_missing) {
        (Some(server), _) => section("server", "Server", server_blocks(server, summary)),
        (None, reason) => {
            let reason = format!("{NOTHING} {}", reason.as_ref()?);
            section("server", "Server", [Block::paragraph(reason)])
        }
    })
}

/// From this many scrapes on, their mean describes a run.
pub(super) const SCRAPES_MIN: u64 = 3;

fn server_blocks(server: &ServerSide, summary: &Summary) -> Vec<Block> {
    type Gauge = (&'static str, Option<GaugeFigures>, fn(f64) -> String, fn(f64) -> String);
    // A simulated engine is not scraped.
    let source = if summary.run.simulated.is_some() { "samples" } else { "scrapes" };
    let requests: fn(f64) -> String = number;
    let share: fn(f64) -> String = percent;
    let gauges: [Gauge; 5] = [
        ("Running requests", server.running, requests, whole),
        ("Waiting requests", server.waiting, requests, whole),
        ("Swapped requests", server.swapped, requests, whole),
        ("KV use", server.kv_usage, share, percent),
        ("KV use, host memory", server.cpu_kv_usage, share, percent),
    ];
    let rows = gauges.into_iter().filter_map(|(name, gauge, mean, max)| {
        let GaugeFigures { mean: average, max: highest, n } = gauge?;
        let cell = |value, text: fn(f64) -> String| {
            let known = (SCRAPES_MIN <= n).then_some(value);
            number_cell(known, text, &format!("too few {source} to tell"))
        };
        Some(vec![Cell::text(name), cell(average, mean), cell(highest, max)])
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let columns = Column::names_and_numbers("Quantity", ["Mean", "Highest"]);
    let table = (!rows.is_empty()).then(|| Table::new("server-side", "", columns, rows));
    let found = server.prefix_hit_share.map(percent);
    let facts = Block::facts([
        ("prefix cache", found.map(|share| format!("{share} of prompt tokens found in it"))),
        ("preemptions", server.preemptions.map(|counter| whole(counter.total))),
        ("replicas", server.replicas.map(count)),
        ("restarts", (0 < server.restarts).then(|| count(server.restarts))),
        (source, Some(scrapes(server, summary))),
    ]);
    let tokens = server_tokens(summary, server, source).map(Block::from);
    let speculation = server.speculation.as_ref();
    let by_position = speculation.and_then(|it| acceptance(it, "counters")).map(Block::from);
    let replicas = replicas(server).map(Block::from);
    let tables = tokens.into_iter().chain(by_position).chain(replicas);
    table.map(Block::from).into_iter().chain([facts]).chain(tables).collect()
}

/// Each source of metrics; `None` where there is but one.
fn replicas(server: &ServerSide) -> Option<Table> {
    const NAME_CHARS_MAX: usize = 60;
    type Shown = fn(&ServerSide) -> Option<String>;
    let quantities: [(&str, Shown); 7] = [
        ("Running", |it| Some(number(it.running?.mean))),
        ("Waiting", |it| Some(number(it.waiting?.mean))),
        ("KV use, highest", |it| Some(percent(it.kv_usage?.max))),
        ("Prompt tokens", |it| Some(whole(it.prompt_tokens?.total))),
        ("Generated tokens", |it| Some(whole(it.generation_tokens?.total))),
        ("From the prefix cache", |it| it.prefix_hit_share.map(percent)),
        ("Queue (ms)", |it| it.queue_ms_mean.map(fmt::latency)),
    ];
    let columns = Columns::new("Source", |it: &&SourceFigures| {
        Cell::text(terminal_line(&it.name, NAME_CHARS_MAX))
    });
    let columns = columns.left("Role", |it| Cell::text(it.role.to_string()));
    let columns = quantities.into_iter().fold(columns, |columns, (name, shown)| {
        columns.right(name, move |it| {
            let text = it.figures.as_deref().and_then(shown);
            let reason = it.missing.as_deref().unwrap_or("it is not reported");
            text.map_or_else(|| missing(reason), Cell::text)
        })
    });
    let table = columns.table("replicas", "Sources of the server's metrics", server.sources.iter());
    (!server.sources.is_empty()).then(|| table.noted([text("totals-of-replicas")]))
}

/// The acceptance of drafted tokens by their position; `None` where it is not reported.
fn acceptance(found: &SpeculationFigures, source: &str) -> Option<Table> {
    let rows = found.by_position.iter().enumerate();
    let table = Columns::new("Draft token", |(at, _): &(usize, &f64)| {
        Cell::number(count(*at as u64 + 1), *at as f64 + 1.0)
    })
    .right("Accepted", |(_, share)| Cell::number(percent(**share), **share))
    .table("acceptance", "", rows);
    let note = format!("Shares of all verification steps, by the server's {source}.");
    (!found.by_position.is_empty()).then(|| table.noted([note]))
}

/// How answers were judged, and why some are not valid.
fn answers(answers: &AnswerFigures) -> Section {
    let share = |part: u64, all: u64, share: Option<f64>, interval: Option<Interval>| {
        let around = interval.map(|it| format!(", 95 % {}", fmt::interval_in(it, Unit::Share)));
        let share = percent(share?);
        Some(format!("{share} ({} of {}){}", count(part), count(all), around.unwrap_or_default()))
    };
    let AnswerFigures { judged, valid, compared, correct, questions, .. } = *answers;
    let right = share(correct, compared, answers.accuracy(), answers.correct_interval);
    let asked = (questions < compared)
        .then(|| format!("; {} in all, some of them asked again", counted(questions, "question")));
    let facts = Block::facts([
        ("valid", share(valid, judged, answers.valid_share(), answers.valid_interval)),
        ("right", right.map(|right| right + &asked.unwrap_or_default())),
    ]);
    let why =
        Columns::new("Not valid because", |(why, _): &(&Validity, &u64)| Cell::text(why.text()))
            .right("Answers", |(_, number)| Cell::number(count(**number), **number as f64))
            .table("invalid-answers", "", answers.invalid.iter());
    let why = (!answers.invalid.is_empty()).then(|| Block::from(why));
    section("answers", "Answers", [facts]).with(why)
}

/// What the server reported of single requests besides times; `None` where there is nothing to say.
fn reports(reports: &ReportFigures) -> Option<Section> {
    let dropped = (0 < reports.dropped).then(|| {
        format!("{} reported values cannot be true and are in no figure", count(reports.dropped))
    });
    let table = reports.speculation.as_ref().and_then(|it| acceptance(it, "reports of requests"));
    let facts = dropped.map(|dropped| Block::facts([("dropped", Some(dropped))]));
    section("reports", "Reported by request", facts).with(table.map(Block::from)).filled()
}

fn scrapes(server: &ServerSide, summary: &Summary) -> String {
    // The engine of this program uses another server's metric names.
    let names = server.dialect.title();
    let reporter = match (&summary.run.simulated, summary.run.embedded) {
        (Some(_), _) => format!("the simulated engine (by the names of {names})"),
        (None, true) => format!("the embedded engine (by the names of {names})"),
        (None, false) => names.to_owned(),
    };
    let scrapes = &server.scrapes;
    let inside = match scrapes.inside {
        0 => "none".to_owned(),
        inside => count(inside),
    };
    let all = format!("{} of {reporter}, {inside} inside the run", count(scrapes.ok));
    let Some(took) = scrapes.took_ms_mean else { return all };
    let (took, at_most) = (fmt::latency(took), fmt::latency(scrapes.took_ms_max));
    let reasons = scrapes.missed_by.iter();
    let reasons =
        reasons.map(|(reason, number)| format!("{} {}", count(*number), reason.replace('_', " ")));
    let missed = match scrapes.missed {
        0 => "none missed".to_owned(),
        missed => {
            format!("{} missed ({})", count(missed), reasons.join(", "))
        }
    };
    format!("{all}, {missed}; each took {took}, at most {at_most}")
}

/// Token counts of client and server; `None` where the server counts no tokens.
fn server_tokens(summary: &Summary, server: &ServerSide, source: &str) -> Option<Table> {
    type Tokens = (&'static str, u64, CounterFigures, Option<f64>);
    let (client, apart) = (&summary.tokens, server.tokens_apart);
    let rows = [
        ("Prompt tokens", client.input_total, server.prompt_tokens, apart.prompt),
        ("Generated tokens", client.output_total, server.generation_tokens, apart.generation),
    ];
    let rows =
        rows.into_iter().filter_map(|(name, own, found, apart)| Some((name, own, found?, apart)));
    // Every scrape has both counters, so that one time holds for both.
    let over_s = server.prompt_tokens.or(server.generation_tokens)?.over_s;
    let not_compared = server.tokens_not_compared.as_deref();
    let not_compared = not_compared.unwrap_or("the client's count is not the server's own");
    let no_rate = format!("there is no time between its {source}");
    let table = Columns::new("Token counts", |row: &Tokens| Cell::text(row.0))
        .right("Client", |row| Cell::count(row.1))
        .right("Server", |row| Cell::number(whole(row.2.total), row.2.total))
        .right("Difference", |row| {
            number_cell(row.3, |share| format!("{} %", signed_percent(share)), not_compared)
        })
        .right("Server (tok/s)", |row| number_cell(row.2.per_s, number, &no_rate))
        .table("tokens-reconciled", "", rows);
    Some(table.noted([fill("counts-over", &[&number(over_s), &source])]))
}

/// The server's GPUs and the client's machine; `None` where no machine was observed.
fn machines(summary: &Summary, detail: Detail) -> Option<Section> {
    let machines = &summary.machines;
    let is_full = detail == Detail::Full;
    let mut found = section("machines", "Machines", Vec::<Block>::new());
    if let Some(gpus) = &machines.gpus {
        let chart = charts::gpus(summary, "").filter(|_| is_full);
        found = found.with(is_full.then(|| devices(gpus))).with([gpu_facts(gpus)]).with(chart);
    } else if let (Some(reason), Some(_)) = (&machines.gpus_missing, &machines.client) {
        found = found.with([Block::paragraph(format!("GPUs: {NOTHING} {reason}"))]);
    }
    if let Some(client) = &machines.client {
        let chart = charts::client_machine(summary, "").filter(|_| is_full);
        found = found.with([client_machine(client)]).with(chart);
    }
    found.filled()
}

fn devices(found: &GpuFigures) -> Table {
    let name = |device: &&DeviceFigures| {
        let left_out = match (device.idle, device.foreign) {
            (true, _) => Some("it was idle, and is in no sum"),
            (false, true) => Some("it is not the server's, and is in no sum"),
            (false, false) => None,
        };
        let memory = device.memory_total_bytes.map(|total| format!("{} of memory", memory(total)));
        let index = Cell::number(device.index.to_string(), f64::from(device.index));
        let left_out = left_out.map(str::to_owned);
        index.detailed(left_out.iter().cloned().chain(memory).try_join("; ")).doubted(left_out)
    };
    let shown = |value, text| number_cell(value, text, gpus::NOT_REPORTED);
    let columns = Columns::new("GPU", name)
        .right("Power (W)", move |device| shown(device.power_w.map(|found| found.mean), number));
    gpus::columns(columns, |device: &&DeviceFigures| vec![*device])
        .right("Energy (J)", move |device| shown(device.energy_j, number))
        .table("gpus", format!("{} inside the run", gpus::samples(found)), &found.devices)
}

fn over_time(gauge: Option<GaugeFigures>, shown: fn(f64) -> String) -> Option<String> {
    gauge.map(|gauge| format!("{} on average, at most {}", shown(gauge.mean), shown(gauge.max)))
}

/// All GPUs that count together.
fn gpu_facts(found: &GpuFigures) -> Block {
    let throttled = gpus::used(found)
        .filter_map(|device| Some(format!("GPU {}: {}", device.index, gpus::throttled(device)?)));
    let throttled = throttled.try_join("; ").map(|devices| devices + " of the samples");
    let hottest = gpus::across(found, |device| device.temperature_c);
    let memory_used: fn(f64) -> String = |bytes| format!("{} GiB", number(fmt::gibibytes(bytes)));
    let clock = gpus::across(found, |it| it.core_clock_mhz);
    Block::facts([
        ("GPUs", Some(gpus::samples(found))),
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
        return format!("{NOTHING} {}", found.energy_missing.as_deref().unwrap_or("not known"));
    };
    let per_token = found.energy_per_output_token_j.map(number);
    let per_million = found.energy_per_million_tokens_kwh.map(number);
    let parts = [
        Some(fmt::joules(joules)),
        per_token.map(|joules| format!("{joules} J per output token")),
        per_million.map(|kwh| format!("{kwh} kWh per million output tokens")),
    ];
    let parts = parts.into_iter().flatten().join(", ");
    fill("energy", &[&parts, &gpus::energy_from(found), &gpus::counted(found)])
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
    Block::facts([
        ("client CPU", busy),
        ("client steal", stolen),
        ("client network", network),
        ("client memory", left.map(|bytes| format!("{} left at least", memory(bytes)))),
    ])
}

/// The accuracy of the client; `None` in a simulation.
fn client(summary: &Summary) -> Option<Section> {
    if summary.run.simulated.is_some() {
        return None;
    }
    let client = &summary.client;
    let ms = |value| fmt::with_unit(value, Unit::Milliseconds);
    let p99 = |metric: &'static Metric| {
        ms(summary.headline().distribution(metric).and_then(|found| found.p99))
    };
    let stamps = match client.kernel_stamps {
        Some(share) => format!("{} of reads stamped by the kernel", percent(share)),
        None => "nothing was read".to_owned(),
    };
    let clock = client.clock_error_us_max.map(number);
    let clock = clock.map(|error| format!(", clock error at most {error} µs")).unwrap_or_default();
    let (send, own) = (p99(&metric::SEND_LAG), p99(&metric::CLIENT_LAG));
    let (at_most, width) = (ms(client.loop_lag_ms.p99_at_most), p99(&metric::ARRIVAL_WIDTH));
    let lags = fill("lags", &[&send, &own, &at_most, &width]);
    let facts = [
        ("calibration", Some(calibrated(summary))),
        ("clock", Some(stamps + &clock)),
        ("connections", client.dialling.as_ref().map(dialled)),
        ("p99", Some(lags)),
    ];
    let blocks = std::iter::once(Block::facts(facts)).chain(workers(client).map(Block::from));
    Some(section("client", "Client", blocks))
}

/// Each worker of a merged run; `None` on one client.
fn workers(client: &ClientHealth) -> Option<Table> {
    if client.workers.is_empty() {
        return None;
    }
    let unknown = "not known";
    let table = Columns::new("Worker", |worker: &&WorkerFigures| Cell::text(worker.stripe.clone()))
        .left("Machine", |worker| known(worker.host.as_deref(), "there is no run of it"))
        .left("Outcome", |worker| {
            let late = worker.late_s.map(|late| format!("began {} s late", number(late)));
            let loss = worker.loss.clone().or(late);
            Cell::text(loss.unwrap_or_else(|| "played its whole share".to_owned()))
        })
        .right("Attempted", |worker| Cell::count(worker.attempted))
        .right("Not sent", |worker| Cell::count(worker.not_sent))
        .right("Loop lag p99 (ms)", move |worker| {
            number_cell(worker.loop_lag_ms_p99_at_most, number, unknown)
        })
        .right("Busiest second", move |worker| number_cell(worker.driver_busy, percent, unknown))
        .right("Clock error (ms)", move |worker| {
            number_cell(worker.clock_error_ms, number, unknown)
        })
        .table("workers", "Workers that shared the load", &client.workers);
    let apart = match client.clocks_apart_ms {
        Some(0.0) => text("one-clock").to_owned(),
        Some(ms) => fill("clocks-apart", &[&number(ms)]),
        None => text("clocks-unknown").to_owned(),
    };
    Some(table.noted([apart]))
}

/// The connections that were opened before the first request.
fn dialled(dialling: &DiallingFigures) -> String {
    let ms = |value| fmt::with_unit(value, Unit::Milliseconds);
    let failed = match (dialling.failed, &dialling.failure) {
        (0, _) => String::new(),
        (failed, why) => {
            format!(", {} failed ({})", count(failed.into()), why.as_deref().unwrap_or_default())
        }
    };
    let [took, p50, p99] =
        [Some(dialling.took_ms), dialling.connect_ms_p50, dialling.connect_ms_p99].map(ms);
    fill("dialled", &[&count(dialling.opened), &took, &failed, &p50, &p99])
}

/// The client's error at this load, and the share of its capacity that the load used.
fn calibrated(summary: &Summary) -> String {
    let run = &summary.run;
    if run.http == HttpVersion::Http2 || run.target.starts_with("https:") {
        return text("calibration-plain").to_owned();
    }
    let Some(capacity) = &summary.client.capacity else {
        return text("calibration-missing").to_owned();
    };
    let used = format!("client capacity used: {}", percent(capacity.used));
    if !run.streaming {
        // The calibrated error is that of streams.
        return used;
    }
    // A client that read late in this run is worse than its calibration.
    let width = summary.checks.iter().find(|check| check.key == CheckKind::ArrivalWidth.key());
    let width = width.and_then(|check| check.figure).unwrap_or(0.0);
    let error = capacity.error_ms.map_or_else(
        || "not known with so many streams".to_owned(),
        |error| {
            let [ttft, itl] = [error.ttft_p99, error.itl_p99].map(|ms| number(ms.max(width)));
            format!("TTFT {ttft} ms, ITL {itl} ms (p99)")
        },
    );
    format!("client error at this load: {error}; {used}")
}

/// The checks by state, and the warnings with their remedies.
fn checked(summary: &Summary) -> Section {
    use CheckState::{Degraded, Invalid, NotChecked, Noted, Passed};
    let warnings = validity::warnings(&summary.warnings);
    let total = summary.checks.len();
    if total == 0 {
        return warnings;
    }
    let tally = [Passed, Noted, Degraded, Invalid, NotChecked].into_iter().filter_map(|state| {
        let number = summary.checks.iter().filter(|check| check.state == state).count();
        (0 < number).then(|| format!("{number} {}", frame::state_word(state)))
    });
    section("checks", format!("{total} checks: {}", tally.join(", ")), warnings.blocks)
}

/// The run as a command takes it: in the folder that commands look into `latest`, or SET/N.
fn named(files: &Files) -> String {
    let parts: Vec<&str> = files.run.trim_end_matches('/').split('/').collect();
    match parts.as_slice() {
        ["runs", _] => "latest".to_owned(),
        ["runs", set, "points", number] => format!("{set}/{number}"),
        _ => files.run.clone(),
    }
}

fn stored(files: &Files) -> Section {
    stored_and(files, None)
}

/// Where the run is, and the commands that show more of it.
fn stored_and(files: &Files, whole: Option<String>) -> Section {
    let next = match &files.report {
        Some(_) => format!("inferometer report {} --open", named(files)),
        None => format!("inferometer report {}", named(files)),
    };
    let mut facts = vec![("files", files.run.clone())];
    facts.extend(files.report.clone().map(|report| ("report", report)));
    facts.push(("next", next));
    facts.extend(whole.map(|whole| ("", whole)));
    section("files", "", [Block::facts(facts)])
}

fn provenance(summary: &Summary) -> Section {
    let run = &summary.run;
    let mut known = facts([
        ("Run", run.id.clone()),
        ("Started", run.started.clone()),
        ("Tool", format!("Inferometer {}", run.tool_version)),
        ("Target", run.target.clone()),
        ("Seed", frame::seed(run.seed)),
        ("Workload fingerprint", summary.workload.fingerprint.clone()),
        ("Plan fingerprint", summary.plan.fingerprint.clone()),
    ]);
    known.extend(facts(run.metadata.clone()));
    let is_invalid = summary.verdict == Verdict::Invalid;
    let no_use = "none: the numbers do not describe the server".to_owned();
    known.extend(facts([("Use", is_invalid.then_some(no_use))]));
    section("provenance", "Provenance", frame::command(Some(summary), run.seed))
        .with([Block::Facts(known)])
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::{RequestSlo, ThresholdVerdict};

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
