//! The page of repeats, sweeps and searches: the levels with their intervals, and what they show.

use std::fmt::Write;

use inferometer_analysis::machines::DeviceFigures;
use inferometer_analysis::set::{
    Asked, ConditionSummary, FoundLimit, LevelSummary, PointLine, QuestionKind, SetSummary, Subject,
};
use inferometer_analysis::{
    GaugeFigures, LatencyOrigin, METRICS, Percentile, Quantity, Shape, Statistic, Summary, Unit,
    Verdict, metric,
};
use inferometer_model::campaign::{Dimension, Order};
use inferometer_model::spec::Lengths;
use serde::Serialize;

use super::cells::{brief_cell, missing, quantity_cell};
use super::findings::{findings, search_result};
use super::frame::{self, About, section};
use super::matrix::brief;
use super::rows::{self, Row, Series};
use super::{Detail, SuiteInput, belief, card, charts, suite, system};
use crate::chart::Chart;
use crate::document::{
    Block, Card, Cell, Column, Document, Figure, Lead, Section, Span, Table, Text, plain,
};
use crate::escape::terminal_line;
use crate::fmt::{
    self, count, counted, gibibytes, in_unit, interval_in, level_name, number, percent,
    uncertainty, unit_name, whole,
};
use crate::narrative::Narrative;

/// Where the set is stored, so that a page can say so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SetFiles {
    pub set: String,
    /// `None` while something is left to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The HTML page, where one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// What else was made of a matrix: the same page as text, and its table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
}

/// The whole page, for HTML and Markdown.
pub fn set(input: &SuiteInput<'_>) -> Document {
    let SuiteInput { set, points, narrative } = *input;
    let by_condition = rows::of_conditions(set, points);
    let rows: Vec<Row<'_>> = by_condition.iter().flatten().cloned().collect();
    let about = About {
        started: &set.started,
        tool_version: &set.tool_version,
        verdict: set.verdict,
        simulated: set.simulated,
        first: rows.iter().find_map(Row::drawn),
        models: suite::models(&set.conditions),
        more: vec![("Question", question(set))],
    };
    let (reason, points) = frame::reason(set.verdict, &set.warnings, &rows);
    let why = plain(format!("{}. {reason}", runs_by_verdict(set)));
    let badge = frame::badge(set.verdict, why, points);
    let mut sections: Vec<Section> = frame::executive_summary(narrative).into_iter().collect();
    sections.push(system::system(rows.iter().find_map(Row::drawn)));
    let series = series(set, &by_condition);
    sections.push(levels(set, &series, &rows, narrative));
    if set.conditions.iter().any(|one| one.findings.is_some()) || !set.limits.is_empty() {
        sections.push(found(set, narrative));
    }
    sections.push(figures(set, &series, &rows));
    sections.extend(frame::recommendations(narrative));
    sections.push(belief::section_of(&rows, &set.warnings, narrative, None));
    sections.push(provenance(set));
    Document {
        header: frame::header(&about, narrative),
        title: title(set).to_owned(),
        lead: frame::lead(&about, badge, headline(set, &rows)),
        sections,
        footer: frame::footer(&about, &set.set, narrative),
    }
}

/// What fits on a screen.
pub fn set_brief(set: &SetSummary, files: &SetFiles) -> Document {
    let (mut subject, mut sections) = match (&set.suite, &set.matrix) {
        (Some(suite), _) => (suite::brief_subject(set, suite), suite::brief_sections(set, suite)),
        (None, Some(matrix)) => (brief::subject(set, matrix), brief::sections(set, matrix)),
        (None, None) => (subjects(set), brief_sections(set)),
    };
    if !set.limits.is_empty() {
        sections.push(section("limits", "", vec![Block::Facts(limits(set))]));
    }
    sections.push(belief::warnings(&set.warnings));
    let SetFiles { set: directory, summary, report, markdown, table } = files;
    let names =
        [Some(directory), summary.as_ref(), report.as_ref(), markdown.as_ref(), table.as_ref()];
    let facts = names.into_iter().flatten().enumerate().map(|(place, file)| {
        let label = if place == 0 { "files" } else { "" };
        (label.to_owned(), plain(file.clone()))
    });
    sections.push(section("files", "", vec![Block::Facts(facts.collect())]));
    subject.push(("runs".to_owned(), plain(manner(&set.asked, set.seed))));
    let text = plain(runs_by_verdict(set));
    Document {
        header: Vec::new(),
        title: frame::brief_title(&set.tool_version, &format!("set {}", set.set), set.simulated),
        lead: Lead {
            alert: set.simulated.then(|| plain(simulated(set))),
            subject,
            verdict: Some(frame::badge(set.verdict, text, Vec::new())),
            headline: Vec::new(),
        },
        sections,
        footer: Vec::new(),
    }
}

/// A name may be a whole command line.
const NAME_MOST: usize = 24;

/// That no server was measured, and by which profiles it was simulated.
fn simulated(set: &SetSummary) -> String {
    const PROFILES_MOST: usize = 4;
    let mut profiles: Vec<String> = Vec::new();
    let subjects = set.conditions.iter().filter_map(|condition| condition.subject.as_ref());
    for engine in subjects.filter_map(|subject| subject.simulated.as_ref()) {
        let profile = terminal_line(&engine.profile, NAME_MOST);
        if !profiles.contains(&profile) {
            profiles.push(profile);
        }
    }
    // A matrix may have one for each cell.
    let more = profiles.len().saturating_sub(PROFILES_MOST);
    profiles.truncate(PROFILES_MOST);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    // Where no run has ended, none is known.
    if profiles.is_empty() {
        return frame::SIMULATED.to_owned();
    }
    format!("{} Profile {}{more}", frame::SIMULATED, profiles.join(", "))
}

const fn title(set: &SetSummary) -> &'static str {
    match set.asked.question {
        QuestionKind::Repeat => "LLM Inference Benchmark Report: Repeated Runs",
        QuestionKind::Sweep => "LLM Inference Benchmark Report: Load Sweep",
        QuestionKind::Search => "LLM Inference Benchmark Report: Search for a Limit",
        QuestionKind::Suite => "LLM Inference Benchmark Report",
        QuestionKind::Matrix => "LLM Inference Benchmark Report: Deployment Matrix",
    }
}

fn question(set: &SetSummary) -> String {
    let over = match set.asked.dimension {
        Some(Dimension::Rate) => "request rates",
        Some(Dimension::Concurrency) => "concurrency levels",
        None => "loads",
    };
    let servers = match set.conditions.len() {
        1 => String::new(),
        several => format!(", {several} servers side by side"),
    };
    match set.asked.question {
        QuestionKind::Repeat => format!("the same experiment {} times{servers}", set.asked.runs),
        QuestionKind::Suite => "a suite of scenarios".to_owned(),
        QuestionKind::Matrix => format!("a matrix of {} deployments", set.conditions.len()),
        QuestionKind::Sweep => format!("a sweep of {over}{servers}"),
        QuestionKind::Search => {
            format!("the highest load where {}{servers}", set.asked.goals.join(", "))
        }
    }
}

/// How many runs, in which order, with which pauses.
fn manner(asked: &Asked, seed: u64) -> String {
    let runs = match (&asked.stop_at, asked.runs) {
        (Some(target), most) => format!(
            "runs until {} is known to ±{}, {most} at most",
            target.quantity,
            percent(target.half_width),
        ),
        (None, runs) if asked.question == QuestionKind::Repeat => format!("{runs} runs"),
        (None, 1) if asked.question == QuestionKind::Suite => "played once".to_owned(),
        (None, rounds) if asked.question == QuestionKind::Suite => {
            format!("played {rounds} times from beginning to end")
        }
        (None, 1) => "one run each".to_owned(),
        (None, runs) => format!("{runs} runs each"),
    };
    let order = match (asked.question, asked.order) {
        // There is nothing to put in order.
        (QuestionKind::Repeat, _) | (QuestionKind::Suite, Order::Listed) => "",
        (QuestionKind::Suite, Order::Interleaved) => ", shuffled in every round",
        (QuestionKind::Sweep | QuestionKind::Search | QuestionKind::Matrix, Order::Interleaved) => {
            ", interleaved"
        }
        (QuestionKind::Sweep | QuestionKind::Search | QuestionKind::Matrix, Order::Listed) => {
            ", in the order of the list"
        }
    };
    let rest = if 0.0 < asked.cool_down_s {
        format!(", {} s of rest between runs", asked.cool_down_s)
    } else {
        String::new()
    };
    let restarted = if asked.restarted { ", server restarted between them" } else { "" };
    format!("{runs}{order}{rest}{restarted}, seed {seed}")
}

/// Each server with the prompts that it got.
fn subjects(set: &SetSummary) -> Vec<(String, Text)> {
    let several = 1 < set.conditions.len();
    let conditions = set.conditions.iter().map(|condition| {
        let text = condition.subject.as_ref().map_or_else(
            || "no run yet".to_owned(),
            |subject| {
                let input = subject.input_tokens.as_ref().map_or_else(
                    || format!(", prompts of the {}", subject.source.name()),
                    |input| format!(", {} tokens in", length(input)),
                );
                let output = subject.output_tokens.as_ref();
                let output = output.map_or_else(String::new, |it| format!(", {} out", length(it)));
                format!("{}{input}{output}", server(subject))
            },
        );
        let name = terminal_line(&condition.name, NAME_MOST);
        (if several { name } else { "target".to_owned() }, plain(text))
    });
    [("question".to_owned(), plain(question(set)))].into_iter().chain(conditions).collect()
}

/// API, model and target.
pub(super) fn server(subject: &Subject) -> String {
    format!("{} of `{}` at {}", subject.api, terminal_line(&subject.model, 60), target(subject))
}

pub(super) fn target(subject: &Subject) -> String {
    let simulated = subject.simulated.as_ref();
    let engine = simulated.map_or_else(String::new, |engine| format!(": {}", engine.engine));
    let speed = subject.engine_speed;
    frame::target(&subject.target, subject.embedded, simulated.is_some(), speed) + &engine
}

fn length(lengths: &Lengths) -> String {
    lengths.fixed().map_or_else(|| lengths.to_string(), |length| count(length.into()))
}

/// `5 runs, 1 with a reservation`.
pub(super) fn runs_by_verdict(set: &SetSummary) -> String {
    let mut text = counted(set.points.len() as u64, "run");
    for (verdict, words) in [
        (Verdict::Degraded, "with a reservation"),
        (Verdict::Invalid, "invalid and left out of every mean"),
    ] {
        let found = set.points.iter().filter(|point| point.verdict == verdict).count();
        if 0 < found {
            let _ = write!(text, ", {} {words}", count(found as u64));
        }
    }
    text
}

fn series<'a>(set: &SetSummary, by_condition: &'a [Vec<Row<'a>>]) -> Vec<Series<'a>> {
    let named = set.conditions.iter().zip(by_condition);
    named
        .map(|(one, rows)| Series { name: one.name.clone(), rows: rows.iter().collect() })
        .collect()
}

fn headline(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let all: Vec<&Row<'_>> = rows.iter().collect();
    // The same metric as in the table below.
    let ttft = charts::first_token_metric(&all);
    let ttft_name = if ttft == &metric::TTFT { "TTFT mean" } else { "TTFT mean from schedule" };
    let alone = rows.len() == 1;
    let least = |name: &str, quantity: Quantity| {
        let known = rows.iter().filter_map(|row| Some((row, row.value(quantity)?)));
        let (row, _) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let label = if alone { name.to_owned() } else { format!("Lowest {name}") };
        let detail = if alone { uncertainty(&row.quantity(quantity)) } else { row.name.clone() };
        card::latency(&label, row, quantity, &detail)
    };
    let spot = set.conditions.iter().find_map(|one| {
        let spot = one.findings.as_ref()?.sweet_spot.found()?;
        Some(Card {
            label: "Interactive sweet spot".to_owned(),
            value: level_name(spot.level),
            unit: String::new(),
            detail: format!("{} tok/s for each user", number(spot.per_user_throughput.value)),
            doubt: (!spot.certified).then(|| "its p99s are of too few requests".to_owned()),
        })
    });
    let spot = spot.filter(|_| set.conditions.len() == 1);
    let ok = rows.iter().map(|row| row.tally().ok).sum();
    let scheduled = rows.iter().map(|row| row.tally().scheduled).sum();
    [
        spot,
        card::highest_output(rows),
        least(ttft_name, ttft.mean()),
        least("TPOT mean", metric::TPOT.mean()),
        Some(card::requests(ok, scheduled)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn levels(
    set: &SetSummary,
    series: &[Series<'_>],
    rows: &[Row<'_>],
    narrative: &Narrative,
) -> Section {
    let mut blocks = Vec::new();
    if set.asked.question == QuestionKind::Repeat {
        blocks.extend(rows.iter().map(|row| Block::Table(across(row, Detail::Full))));
        blocks.extend(said(rows, narrative));
        return section("runs", "Across Runs", blocks);
    }
    let is_rate = set.asked.dimension == Some(Dimension::Rate);
    blocks.push(Block::Table(level_table(series, is_rate)));
    blocks.extend(gpu_table(series).map(Block::Table));
    blocks.extend(energy(series, is_rate).map(Block::Table));
    blocks.extend(said(rows, narrative));
    section("levels", "Levels", blocks)
}

fn brief_sections(set: &SetSummary) -> Vec<Section> {
    let by_condition = rows::of_conditions(set, &[]);
    let several = 1 < set.conditions.len();
    let is_rate = set.asked.dimension == Some(Dimension::Rate);
    let mut sections = Vec::new();
    for (condition, series) in set.conditions.iter().zip(series(set, &by_condition)) {
        let name = several.then(|| terminal_line(&condition.name, NAME_MOST));
        if matches!(set.asked.question, QuestionKind::Repeat | QuestionKind::Suite) {
            sections.extend(series.rows.iter().map(|row| {
                let runs = counted(row.level.map_or(0, |level| level.points.len()) as u64, "run");
                let table = across(row, Detail::Brief);
                section("runs", &titled(name.as_deref(), &runs), vec![Block::Table(table)])
            }));
            continue;
        }
        sections.extend(brief_levels(condition, &series, is_rate, name.as_deref()));
        if let Some(found) = &condition.findings {
            let facts = finding_facts(findings(found, set.asked.dimension), false);
            sections.push(section("findings", &titled(name.as_deref(), "Findings"), vec![facts]));
        }
    }
    sections
}

/// The levels of one server as tables and bars.
pub(super) fn brief_levels(
    condition: &ConditionSummary,
    series: &Series<'_>,
    is_rate: bool,
    name: Option<&str>,
) -> Vec<Section> {
    let own = std::slice::from_ref(series);
    let mut blocks = vec![Block::Table(brief_level_table(condition, series, is_rate))];
    blocks.extend(energy(own, is_rate).map(Block::Table));
    let charts = [charts::throughput(own), charts::latency(own)];
    blocks.extend(charts.into_iter().flatten().map(charts::figure));
    vec![section("levels", &titled(name, "Levels (latencies in ms)"), blocks)]
}

pub(super) fn titled(name: Option<&str>, title: &str) -> String {
    name.map_or_else(|| title.to_owned(), |name| format!("{name}: {title}"))
}

/// Findings as labels and sentences.
pub(super) fn finding_facts(found: Vec<(&'static str, String)>, capital: bool) -> Block {
    let label = |label: &str| {
        let mut letters = label.chars();
        let first = letters.next().map(char::to_uppercase);
        first.into_iter().flatten().chain(letters).collect::<String>()
    };
    let fact = |(name, words): (&str, String)| {
        (if capital { label(name) } else { name.to_owned() }, plain(words))
    };
    Block::Facts(found.into_iter().map(fact).collect())
}

/// Sentences about single levels, folded away.
fn said(rows: &[Row<'_>], narrative: &Narrative) -> Option<Block> {
    let mut blocks = Vec::new();
    for row in rows {
        if let Some(said) = narrative.scenarios.get(&row.name).filter(|said| !said.is_empty()) {
            blocks.push(Block::Paragraph(vec![Span::Strong(row.name.clone())]));
            blocks.push(Block::List(frame::texts(said)));
        }
    }
    let summary = "What each level shows".to_owned();
    (!blocks.is_empty()).then_some(Block::Details { summary, blocks })
}

fn found(set: &SetSummary, narrative: &Narrative) -> Section {
    let several = 1 < set.conditions.len();
    let mut blocks = Vec::new();
    if !set.limits.is_empty() {
        blocks.push(Block::Facts(limits(set)));
    }
    for condition in &set.conditions {
        let Some(found) = &condition.findings else { continue };
        if several {
            blocks.push(Block::Paragraph(vec![Span::Strong(condition.name.clone())]));
        }
        blocks.push(finding_facts(findings(found, set.asked.dimension), true));
    }
    if !narrative.scaling.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.scaling)));
    }
    section("findings", "Findings", blocks)
}

fn limits(set: &SetSummary) -> Vec<(String, Text)> {
    let several = 1 < set.conditions.len();
    let fact = |limit: &FoundLimit| {
        let place = usize::try_from(limit.condition).unwrap_or(usize::MAX);
        let named = set.conditions.get(place).filter(|_| several);
        let name = named
            .map_or_else(String::new, |one| format!("{}: ", terminal_line(&one.name, NAME_MOST)));
        ("Limit".to_owned(), plain(format!("{name}{}", search_result(limit))))
    };
    set.limits.iter().map(fact).collect()
}

fn figures(set: &SetSummary, series: &[Series<'_>], rows: &[Row<'_>]) -> Section {
    let all: Vec<&Row<'_>> = rows.iter().collect();
    let mut blocks = Vec::new();
    if set.asked.question == QuestionKind::Repeat {
        blocks.extend(charts::by_scenario(rows, "condition").map(charts::figure));
    }
    let is_alone = series.len() == 1;
    blocks.extend(charts::throughput(series).map(|chart| {
        let mermaid = series.first().filter(|_| is_alone).and_then(charts::mermaid);
        Block::Figure(Figure { chart, mermaid })
    }));
    let others = [
        charts::latency(series),
        charts::pareto(series),
        charts::energy(series),
        charts::first_tokens(&all, "levels"),
        charts::token_gaps(&all, "levels"),
    ];
    blocks.extend(others.into_iter().flatten().map(charts::figure));
    blocks.extend(rows.iter().filter_map(charts_of_run));
    section("charts", "Charts", blocks)
}

/// The course of the run that is drawn, folded away.
fn charts_of_run(row: &Row<'_>) -> Option<Block> {
    let (run, id) = (row.drawn()?, row.id());
    let drawn = [
        charts::course(run, &id),
        charts::gpus(run, &id),
        charts::requests(run, &id),
        charts::gaps(run, &id),
    ];
    let named = |chart: Chart| Chart { n: chart.n.clone() + &row.which_run(), ..chart };
    let blocks: Vec<Block> = drawn.into_iter().flatten().map(named).map(charts::figure).collect();
    let summary = format!("Charts of run {} ({})", run.run.id, row.name);
    (!blocks.is_empty()).then_some(Block::Details { summary, blocks })
}

/// Where a set came from: the same facts on every page, and every run.
pub(super) fn provenance(set: &SetSummary) -> Section {
    let mut facts = vec![
        ("Set", set.set.clone()),
        ("Started", set.started.clone()),
        ("Tool", format!("Inferometer {}", set.tool_version)),
        ("Seed", set.seed.to_string()),
    ];
    if let Some(suite) = &set.suite {
        facts.push(("Suite", format!("{}: {}", suite.name, suite.title)));
        facts.push(("Suite hash", suite.hash.clone()));
        let changes = if suite.changes.is_empty() {
            "none: the suite as it is".to_owned()
        } else {
            suite.changes.join(" ")
        };
        facts.push(("Changes", changes));
    }
    let facts = facts.into_iter().map(|(key, value)| (key.to_owned(), plain(value))).collect();
    let runs = Block::Details {
        summary: "Every run with its seed and fingerprints".to_owned(),
        blocks: vec![Block::Table(runs(set))],
    };
    section("provenance", "Provenance", vec![Block::Facts(facts), runs])
}

/// One row for each level of each server.
fn table_of_levels(
    series: &[Series<'_>],
    id: &str,
    caption: &str,
    columns: Vec<Column>,
    cells: impl Fn(&Row<'_>) -> Vec<Cell>,
) -> Table {
    let several = 1 < series.len();
    let mut rows = Vec::new();
    for one in series {
        for row in &one.rows {
            let cells = cells(row);
            if cells.is_empty() {
                continue;
            }
            let server = several.then(|| Cell::text(one.name.clone()));
            rows.push(server.into_iter().chain(cells).collect());
        }
    }
    let server = several.then(|| Column::left("Server"));
    Table {
        id: id.to_owned(),
        caption: caption.to_owned(),
        columns: server.into_iter().chain(columns).collect(),
        rows,
        notes: Vec::new(),
    }
}

const fn level_title(is_rate: bool) -> &'static str {
    if is_rate { "Asked rate (req/s)" } else { "Concurrency" }
}

/// Throughput and latency at each level; a server has rows of its own.
fn level_table(series: &[Series<'_>], is_rate: bool) -> Table {
    let ttft = LatencyOrigin::for_load(is_rate).ttft();
    let name = ttft.title;
    let columns = [
        level_title(is_rate),
        "Runs",
        "Requests ok",
        "Output Throughput (tok/s)",
        if is_rate { "Answered (req/s)" } else { "Per-user Throughput (tok/s)" },
        &format!("{name} mean (ms)"),
        &format!("{name} p99 (ms)"),
        "TPOT mean (ms)",
        "TPOT p99 (ms)",
    ];
    let quantities = [
        metric::OUTPUT_THROUGHPUT.quantity(),
        if is_rate { &metric::REQUEST_THROUGHPUT } else { &metric::PER_USER_THROUGHPUT }.quantity(),
        ttft.mean(),
        ttft.p99(),
        metric::TPOT.mean(),
        metric::TPOT.p99(),
    ];
    table_of_levels(series, "set-levels", "Every level", columns.map(Column::right).into(), |row| {
        let quantities = quantities.iter().map(|quantity| quantity_cell(row, *quantity));
        level_head(row).into_iter().chain(quantities).collect()
    })
}

/// The same for a terminal, with intervals beside the values and marks.
fn brief_level_table(condition: &ConditionSummary, series: &Series<'_>, is_rate: bool) -> Table {
    let has_marks = condition.levels.iter().any(|level| !marks(level).is_empty());
    let origin = LatencyOrigin::for_load(is_rate);
    let means = [
        (origin.ttft().mean(), "TTFT mean"),
        (origin.ttft().p99(), "TTFT p99"),
        (metric::TPOT.mean(), "TPOT mean"),
        (metric::TPOT.p99(), "TPOT p99"),
        (origin.e2e().mean(), "E2E mean"),
    ];
    let row = |row: &&Row<'_>| {
        let Some(level) = row.level else { return Vec::new() };
        let tally = &level.requests;
        let cov = level.quantity(metric::OUTPUT_THROUGHPUT.quantity()).and_then(|found| found.cov);
        let mut cells = vec![
            Cell::text(fmt::level(level.level)),
            Cell::text(count(level.points.len() as u64)),
            Cell::text(format!("{}/{}", count(tally.ok), count(tally.failed))),
            brief_cell(row, metric::REQUEST_THROUGHPUT.quantity()),
            brief_cell(row, metric::OUTPUT_THROUGHPUT.quantity()),
            Cell::text(percent(cov)),
            if is_rate {
                Cell::text(percent(level.served.map(|served| served.share.min(1.0))))
            } else {
                brief_cell(row, metric::PER_USER_THROUGHPUT.quantity())
            },
        ];
        cells.extend(means.iter().map(|(quantity, _)| brief_cell(row, *quantity)));
        cells.extend(has_marks.then(|| Cell::text(marks(level).join(", "))));
        cells
    };
    let heads = [
        if is_rate { "asked/s" } else { "at once" },
        "runs",
        "ok/failed",
        "request/s",
        "output tok/s",
        "CoV",
        if is_rate { "served" } else { "tok/s per user" },
    ];
    let mut notes = legend(&condition.levels);
    if is_rate {
        notes.push(
            "TTFT and E2E count from the schedule: waiting in the client is in them".to_owned(),
        );
    }
    notes.push(interval_note(&condition.levels));
    Table {
        id: "set-levels".to_owned(),
        caption: String::new(),
        columns: heads
            .into_iter()
            .chain(means.iter().map(|(_, head)| *head))
            .map(Column::right)
            .chain(has_marks.then(|| Column::left("marks")))
            .collect(),
        rows: series.rows.iter().map(row).collect(),
        notes: notes.into_iter().map(plain).collect(),
    }
}

/// What is special about a level, in one word each.
fn marks(level: &LevelSummary) -> Vec<&'static str> {
    /// Failures above this share of a level are worth a mark.
    const FAILED_SHARE: f64 = 0.01;
    let mut marks: Vec<&'static str> = [
        (!level.left_out.is_empty(), "invalid"),
        (level.failed_share.is_some_and(|share| FAILED_SHARE < share), "errors"),
        (level.cut.as_ref().is_some_and(|cut| cut.answers_missing), "cut"),
        (level.cut.as_ref().is_some_and(|cut| !cut.answers_missing), "short"),
        (!level.is_reached(), "not reached"),
        (0 < level.partial, "partial"),
        (level.is_saturated(), "saturated"),
    ]
    .into_iter()
    .filter_map(|(is_so, mark)| is_so.then_some(mark))
    .collect();
    // Whatever else is marked is degraded.
    if marks.iter().all(|mark| matches!(*mark, "short" | "not reached"))
        && level.verdict == Verdict::Degraded
    {
        marks.push("degraded");
    }
    marks
}

/// The meaning of the marks that occur.
fn legend(levels: &[LevelSummary]) -> Vec<String> {
    let seen: Vec<&str> = levels.iter().flat_map(marks).collect();
    [
        ("invalid", "runs of this level are left out of its means"),
        ("degraded", "a run of this level holds with a reservation"),
        ("errors", "more than 1 % of its requests failed"),
        ("cut", "a limit of time ended it before its requests did"),
        ("short", "its time was over before all of its requests had left; all that left ended"),
        (
            "not reached",
            "so many were never in flight, so its users were not there; it is in no finding",
        ),
        ("partial", "a run was stopped before its end"),
        ("saturated", "less than 95 % of the asked rate was served, or requests pile up"),
    ]
    .into_iter()
    .filter(|(mark, _)| seen.contains(mark))
    .map(|(mark, words)| format!("{mark}: {words}"))
    .collect()
}

/// What ± means in a table.
pub(super) fn interval_note(levels: &[LevelSummary]) -> String {
    let throughputs =
        || levels.iter().filter_map(|level| level.quantity(metric::REQUEST_THROUGHPUT.quantity()));
    let between = throughputs().any(|found| found.interval.is_some());
    let within = throughputs().any(|found| found.interval.is_none() && found.within.is_some());
    let mean = throughputs().any(|found| found.mean.is_some() && found.doubt().is_none());
    let mut parts = Vec::new();
    if between {
        parts.push("± or from–to: 95 % between runs (Student's t)".to_owned());
    }
    if let Some(enough) = levels.iter().find_map(|level| level.enough.as_ref()) {
        parts.push(format!("of {} wider, for every look at it", enough.quantity));
    }
    if within {
        parts.push("± or from–to of one run: 95 % within it alone".to_owned());
    }
    if mean {
        parts.push("without ±: too few values for an interval".to_owned());
    }
    parts.join("; ")
}

/// Power and energy at each level; `None` where no GPU reports its power.
fn energy(series: &[Series<'_>], is_rate: bool) -> Option<Table> {
    const QUANTITIES: [(&str, Quantity); 3] = [
        ("GPU Power (W)", metric::GPU_POWER.quantity()),
        ("Energy (J/tok)", metric::ENERGY_PER_OUTPUT_TOKEN.quantity()),
        ("Output tokens per joule", metric::OUTPUT_TOKENS_PER_JOULE.quantity()),
    ];
    let mut rows = series.iter().flat_map(|one| &one.rows);
    if !rows.any(|row| row.value(metric::GPU_POWER.quantity()).is_some()) {
        return None;
    }
    let titles = [level_title(is_rate)].into_iter().chain(QUANTITIES.map(|(title, _)| title));
    let columns = titles.map(Column::right).collect();
    let caption = "Power and energy at every level";
    let note = "Output tokens of ok requests; the GPUs that were in use, and nothing else.";
    let table = table_of_levels(series, "set-energy", caption, columns, |row| {
        let quantities = QUANTITIES.iter().map(|(_, name)| quantity_cell(row, *name));
        level_head(row).into_iter().take(1).chain(quantities).collect()
    });
    Some(Table { notes: vec![plain(note)], ..table })
}

/// Level, runs and requests.
fn level_head(row: &Row<'_>) -> Vec<Cell> {
    let Some(level) = row.level else { return vec![missing("there is no level"); 3] };
    let reservation = row.reservation();
    let place = Cell {
        number: level.level.place(),
        doubtful: reservation.is_some(),
        detail: reservation,
        ..Cell::text(fmt::level(level.level))
    };
    let runs = level.points.len();
    let tally = row.tally();
    let ok = Cell {
        detail: (tally.ok != tally.scheduled).then(|| format!("of {}", count(tally.scheduled))),
        ..Cell::number(count(tally.ok), tally.ok as f64)
    };
    vec![place, Cell::number(count(runs as u64), runs as f64), ok]
}

/// The GPUs at each level; `None` where no run has one. Their mean power is in the table of energy.
fn gpu_table(series: &[Series<'_>]) -> Option<Table> {
    let titles = [
        "Load",
        "Use",
        "Memory, highest (GiB)",
        "Power, highest (W)",
        "Core clock (MHz)",
        "Temperature, highest (°C)",
        "Throttled by power",
        "Throttled by heat",
    ];
    let caption = "The GPUs at each level: means over the runs, and the highest of all samples";
    let columns = titles.map(Column::right).into();
    let table = table_of_levels(series, "set-gpus", caption, columns, gpu_cells);
    (!table.rows.is_empty()).then_some(table)
}

fn gpu_cells(row: &Row<'_>) -> Vec<Cell> {
    let runs = &row.runs;
    if runs.iter().all(|run| run.machines.gpus.is_none()) {
        return Vec::new();
    }
    let gauge = |of: fn(&DeviceFigures) -> Option<GaugeFigures>| -> Vec<GaugeFigures> {
        devices(runs).filter_map(of).collect()
    };
    let mean_of = |of: fn(&DeviceFigures) -> Option<GaugeFigures>, text| {
        mean(&gauge(of).iter().map(|gauge| gauge.mean).collect::<Vec<_>>(), text)
    };
    let share = |of: fn(&DeviceFigures) -> Option<f64>| {
        mean(&devices(runs).filter_map(of).collect::<Vec<_>>(), percent)
    };
    let highest = |of: fn(&DeviceFigures) -> Option<GaugeFigures>, text: fn(f64) -> String| {
        let found = gauge(of).iter().map(|gauge| gauge.max).reduce(f64::max);
        found.map_or_else(|| missing(NOT_REPORTED), |it| Cell::number(text(it), it))
    };
    vec![
        Cell {
            number: row.level.and_then(|level| level.level.place()),
            ..Cell::text(row.name.clone())
        },
        mean_of(|it| it.use_share, percent),
        highest(|it| it.memory_used_bytes, |it| number(gibibytes(it))),
        highest(|it| it.power_w, number),
        mean_of(|it| it.core_clock_mhz, whole),
        highest(|it| it.temperature_c, whole),
        share(|it| it.throttled_power),
        share(|it| it.throttled_thermal),
    ]
}

const NOT_REPORTED: &str = "not reported by the tool";

/// The GPUs of all runs that count.
fn devices<'a>(runs: &'a [&Summary]) -> impl Iterator<Item = &'a DeviceFigures> {
    let known = runs.iter().filter_map(|run| run.machines.gpus.as_ref());
    known.flat_map(|gpus| &gpus.devices).filter(|device| device.counts())
}

fn mean(values: &[f64], text: fn(f64) -> String) -> Cell {
    let extremes =
        values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
    let Some((low, high)) = extremes else { return missing(NOT_REPORTED) };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let behind = counted(values.len() as u64, "GPU run");
    let detail = format!("{} to {} in {behind}", text(low), text(high));
    Cell { detail: Some(detail), ..Cell::number(text(mean), mean) }
}

/// Each quantity over the runs of one experiment; in a terminal those of this kind of load.
fn across(row: &Row<'_>, detail: Detail) -> Table {
    const STATISTICS: [Statistic; 4] = [
        Statistic::Mean,
        Statistic::Percentile(Percentile::P50),
        Statistic::Percentile(Percentile::P99),
        Statistic::Max,
    ];
    let is_brief = detail == Detail::Brief;
    let is_open = row.level.is_some_and(|level| level.served.is_some());
    let mut rows = Vec::new();
    for metric in METRICS {
        let headline = metric.headline;
        let is_headline = if is_open { headline.on_open_loop() } else { headline.on_closed_loop() };
        if metric.shape() == Shape::Distribution && is_brief && !is_headline {
            continue;
        }
        for quantity in metric.quantities(&STATISTICS) {
            rows.extend(across_row(row, quantity, detail));
        }
    }
    let interval = (!is_brief).then_some("95 % interval");
    let columns = ["Mean", ""].into_iter().chain(interval);
    let columns = columns.chain(["Std", "CoV", "Lowest", "Highest", "Runs"]).map(Column::right);
    let mut notes = vec![plain("A run counts once, whatever its length.")];
    if let Some(level) = row.level.filter(|_| is_brief) {
        notes.push(plain(interval_note(std::slice::from_ref(level))));
        let (ok, failed) = (count(level.requests.ok), count(level.requests.failed));
        notes.push(plain(format!("{ok} requests ok, {failed} failed, all runs added up")));
    }
    Table {
        id: "set-levels".to_owned(),
        caption: if is_brief { String::new() } else { format!("{} across its runs", row.name) },
        columns: [Column::left("Quantity")].into_iter().chain(columns).collect(),
        rows,
        notes,
    }
}

/// `None` where no run has a value: it needs no line of dashes.
fn across_row(row: &Row<'_>, quantity: Quantity, detail: Detail) -> Option<Vec<Cell>> {
    const ONE_RUN: &str = "one run has no spread";
    let is_brief = detail == Detail::Brief;
    let found = row.quantity(quantity);
    let (metric, mean) = (quantity.metric(), found.mean?);
    let shown = |value: Option<f64>| match value {
        Some(value) => Cell::number(in_unit(value, metric.unit), value),
        None => missing(ONE_RUN),
    };
    let statistic = quantity.statistic().map_or("", Statistic::name);
    let title = format!("{} {statistic}", metric.title);
    let extremes = found.extremes();
    let mean_text = match (is_brief, metric.unit, found.doubt()) {
        (true, Unit::Share, Some(interval)) => {
            let low = percent(interval.low);
            format!("{} ({}–{})", percent(mean), low.trim_end_matches(" %"), percent(interval.high))
        }
        (true, _, interval) if metric.unit != Unit::Share => {
            fmt::with_interval(Some(mean), interval)
        }
        _ => in_unit(mean, metric.unit),
    };
    let mut cells = vec![
        Cell::text(title.trim_end()),
        Cell { text: mean_text, ..quantity_cell(row, quantity) },
        Cell::text(unit_name(metric.unit)),
    ];
    if !is_brief {
        cells.push(found.doubt().map_or_else(
            || missing("too few values to give one"),
            |interval| Cell {
                number: Some(mean),
                ..Cell::text(interval_in(interval, metric.unit))
            },
        ));
    }
    // What is left of equal values by rounding is no spread.
    let spread = found.std.map(|std| if std < mean.abs() * 1e-9 { 0.0 } else { std });
    let no_cov = if found.std.is_some() { "the mean is zero" } else { ONE_RUN };
    cells.extend([
        shown(spread),
        found.cov.map_or_else(|| missing(no_cov), |cov| Cell::number(percent(cov), cov)),
        shown(extremes.map(|(low, _)| low)),
        shown(extremes.map(|(_, high)| high)),
        Cell::number(count(found.n.into()), f64::from(found.n)),
    ]);
    Some(cells)
}

/// Every run of the set.
pub(in crate::pages) fn runs(set: &SetSummary) -> Table {
    let name = |line: &PointLine| {
        let place = usize::try_from(line.condition).unwrap_or(usize::MAX);
        set.conditions.get(place).map_or_else(String::new, |condition| condition.name.clone())
    };
    let row = |line: &PointLine| {
        vec![
            Cell::number(format!("{}/{}", set.set, line.number), f64::from(line.number)),
            Cell::text(name(line)),
            Cell::text(fmt::level(line.level)),
            Cell::text(line.verdict.to_string()),
            Cell::text(line.seed.to_string()),
            Cell::text(line.workload_fingerprint.clone()),
            Cell::text(line.plan_fingerprint.clone()),
        ]
    };
    Table {
        id: "runs-of-the-set".to_owned(),
        caption: "Runs".to_owned(),
        columns: ["Run", "Condition", "Level", "Verdict", "Seed", "Workload", "Plan"]
            .map(Column::left)
            .into(),
        rows: set.points.iter().map(row).collect(),
        notes: vec![plain(
            "Runs asked for the same where the workload is equal, and sent the same where the plan is.",
        )],
    }
}
