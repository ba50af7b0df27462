//! The page of repeats, sweeps and searches: the levels with their intervals, and what they show.

use std::fmt::Write;

use inferometer_analysis::machines::DeviceFigures;
use inferometer_analysis::set::{
    AcrossRuns, Asked, ConditionSummary, FoundLimit, LevelSummary, PointLine, QuestionKind,
    SetSummary, Subject,
};
use inferometer_analysis::{
    Interval, LatencyOrigin, METRICS, Metric, Percentile, Quantity, Shape, Statistic, Summary,
    Unit, Verdict, metric,
};
use inferometer_model::spec::Lengths;
use inferometer_model::study::{Dimension, Order};
use serde::Serialize;

use super::cells::{brief_cell, missing, quantity_cell, quantity_columns, reserved};
use super::findings::{findings, search_result};
use super::frame::{self, About, section};
use super::matrix::brief;
use super::rows::{self, Row, Series};
use super::{Detail, SuiteInput, card, charts, distinct, suite, system, validity};
use crate::chart::Chart;
use crate::document::{
    Block, Card, Cell, Columns, Document, Figure, Lead, Section, Span, Table, Text, plain,
};
use crate::escape::terminal_line;
use crate::fmt::{
    self, NOTHING, count, counted, gibibytes, in_unit, interval_in, number, percent, uncertainty,
    unit_name, whole,
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
    let first = rows.iter().find_map(Row::drawn);
    let (title, question) = question(set);
    let about = about(set, first, models(set), Some(("Question", question)));
    let (reason, points) = frame::reason(set.verdict, &set.warnings, &rows);
    let why = plain(format!("{}. {reason}", runs_by_verdict(set)));
    let badge = frame::badge(set.verdict, why, points);
    let mut sections: Vec<Section> = frame::executive_summary(narrative).into_iter().collect();
    sections.push(system::system(first));
    let series = series(set, &by_condition);
    sections.push(levels(set, &series, &rows, narrative));
    if set.conditions.iter().any(|one| one.findings.is_some()) || !set.limits.is_empty() {
        sections.push(found(set, narrative));
    }
    sections.push(figures(set, &series, &rows));
    sections.extend(frame::recommendations(narrative));
    sections.push(validity::section_of(&rows, &set.warnings, narrative, None));
    sections.push(provenance(set));
    Document {
        header: frame::header(&about, narrative),
        title: format!("LLM Inference Benchmark Report{title}"),
        lead: frame::lead(&about, badge, headline(set, &rows)),
        sections,
        footer: frame::footer(&about, &set.set, narrative),
    }
}

/// The facts at the top of a page about a set.
pub(super) fn about<'a>(
    set: &'a SetSummary,
    first: Option<&'a Summary>,
    models: Vec<String>,
    more: Option<(&'static str, String)>,
) -> About<'a> {
    About {
        started: &set.started,
        tool_version: &set.tool_version,
        verdict: set.verdict,
        simulated: set.simulated,
        first,
        models,
        more: more.into_iter().collect(),
    }
}

/// Each model once, in the order in which they answered.
pub(super) fn models(set: &SetSummary) -> Vec<String> {
    let subjects = set.conditions.iter().filter_map(|condition| condition.subject.as_ref());
    let models = distinct(subjects.map(|subject| subject.model.clone()));
    if models.is_empty() { vec![NOTHING.to_owned()] } else { models }
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
    sections.push(validity::warnings(&set.warnings));
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
    let subjects = set.conditions.iter().filter_map(|condition| condition.subject.as_ref());
    let engines = subjects.filter_map(|subject| subject.simulated.as_ref());
    let mut profiles = distinct(engines.map(|it| terminal_line(&it.profile, NAME_MOST)));
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

/// What was asked, as the end of the title and in a sentence.
fn question(set: &SetSummary) -> (&'static str, String) {
    let over = match set.asked.dimension {
        Some(Dimension::Rate) => "request rates",
        Some(Dimension::Concurrency) => "concurrency levels",
        None => "loads",
    };
    let servers = match set.conditions.len() {
        1 => String::new(),
        several => format!(", {several} servers side by side"),
    };
    let goals = set.asked.goals.join(", ");
    match set.asked.question {
        QuestionKind::Repeat => {
            (": Repeated Runs", format!("the same experiment {} times{servers}", set.asked.runs))
        }
        QuestionKind::Sweep => (": Load Sweep", format!("a sweep of {over}{servers}")),
        QuestionKind::Search => {
            (": Search for a Limit", format!("the highest load where {goals}{servers}"))
        }
        QuestionKind::Suite => ("", "a suite of scenarios".to_owned()),
        QuestionKind::Matrix => {
            (": Deployment Matrix", format!("a matrix of {} deployments", set.conditions.len()))
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
        (_, Order::Interleaved) => ", interleaved",
        (_, Order::Listed) => ", in the order of the list",
    };
    let rest = match asked.cool_down_s {
        seconds if 0.0 < seconds => format!(", {seconds} s of rest between runs"),
        _ => String::new(),
    };
    let restarted = if asked.restarted { ", server restarted between them" } else { "" };
    format!("{runs}{order}{rest}{restarted}, seed {seed}")
}

/// Each server with the prompts that it got.
fn subjects(set: &SetSummary) -> Vec<(String, Text)> {
    let several = 1 < set.conditions.len();
    let length = |lengths: &Lengths| {
        lengths.fixed().map_or_else(|| lengths.to_string(), |length| count(length.into()))
    };
    let subject = |subject: &Subject| {
        let input = match &subject.input_tokens {
            Some(input) => format!("{} tokens in", length(input)),
            None => format!("prompts of the {}", subject.source.name()),
        };
        let output = subject.output_tokens.as_ref().map(|it| format!(", {} out", length(it)));
        format!("{}, {input}{}", server(subject), output.unwrap_or_default())
    };
    let conditions = set.conditions.iter().map(|condition| {
        let text = condition.subject.as_ref().map_or_else(|| "no run yet".to_owned(), subject);
        let name = terminal_line(&condition.name, NAME_MOST);
        (if several { name } else { "target".to_owned() }, plain(text))
    });
    [("question".to_owned(), plain(question(set).1))].into_iter().chain(conditions).collect()
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
    let series = |(one, rows): (&ConditionSummary, &'a Vec<Row<'a>>)| Series {
        name: one.name.clone(),
        rows: rows.iter().collect(),
    };
    set.conditions.iter().zip(by_condition).map(series).collect()
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
    let spot = match set.conditions.as_slice() {
        [ConditionSummary { findings: Some(found), .. }] => found.sweet_spot.found(),
        _ => None,
    };
    [
        spot.map(|spot| card::sweet_spot(spot, None)),
        card::highest_output(rows),
        least(ttft_name, ttft.mean()),
        least("TPOT mean", metric::TPOT.mean()),
        Some(card::requests(rows)),
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
        let named = set.conditions.get(limit.condition as usize).filter(|_| several);
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
    blocks.extend(level_charts(series, &all, "levels"));
    blocks.extend(rows.iter().filter_map(charts_of_run));
    section("charts", "Charts", blocks)
}

/// Throughput, latency, energy and tails over the levels.
pub(super) fn level_charts(series: &[Series<'_>], rows: &[&Row<'_>], id: &str) -> Vec<Block> {
    let throughput = charts::throughput(series).map(|chart| {
        let alone = series.first().filter(|_| series.len() == 1);
        Block::Figure(Figure { chart, mermaid: alone.and_then(charts::mermaid) })
    });
    let others = [
        charts::latency(series),
        charts::pareto(series),
        charts::energy(series),
        charts::first_tokens(rows, id),
        charts::token_gaps(rows, id),
    ];
    throughput.into_iter().chain(others.into_iter().flatten().map(charts::figure)).collect()
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

/// Begins a table of levels; the server is named where there are several.
fn level_columns<'a>(series: &[Series<'_>]) -> Columns<'a, &'a Row<'a>> {
    Columns::new("Server", |row: &&Row<'_>| Cell::text(row.server.unwrap_or_default()))
        .only_if(1 < series.len())
}

fn level_rows<'a>(series: &'a [Series<'a>]) -> impl Iterator<Item = &'a Row<'a>> {
    series.iter().flat_map(|one| one.rows.iter().copied())
}

fn level_cell(row: &Row<'_>) -> Cell {
    let Some(level) = row.level else { return missing("there is no level") };
    let cell = Cell { number: level.level.place(), ..Cell::text(fmt::level(level.level)) };
    reserved(row, cell)
}

const fn level_title(is_rate: bool) -> &'static str {
    if is_rate { "Asked rate (req/s)" } else { "Concurrency" }
}

/// Throughput and latency at each level; a server has rows of its own.
fn level_table(series: &[Series<'_>], is_rate: bool) -> Table {
    let ttft = LatencyOrigin::for_load(is_rate).ttft();
    let (user_title, user) = if is_rate {
        ("Answered (req/s)", &metric::REQUEST_THROUGHPUT)
    } else {
        ("Per-user Throughput (tok/s)", &metric::PER_USER_THROUGHPUT)
    };
    let [ttft_mean, ttft_p99] = ["mean", "p99"].map(|name| format!("{} {name} (ms)", ttft.title));
    let columns = level_columns(series)
        .right(level_title(is_rate), |row| level_cell(row))
        .right("Runs", |row| {
            let runs = row.level.map_or(0, |level| level.points.len());
            Cell::number(count(runs as u64), runs as f64)
        })
        .right("Requests ok", |row| {
            let tally = row.tally();
            let all = format!("of {}", count(tally.scheduled));
            let detail = (tally.ok != tally.scheduled).then_some(all);
            Cell { detail, ..Cell::number(count(tally.ok), tally.ok as f64) }
        });
    let quantities = [
        ("Output Throughput (tok/s)", metric::OUTPUT_THROUGHPUT.quantity()),
        (user_title, user.quantity()),
        (&ttft_mean, ttft.mean()),
        (&ttft_p99, ttft.p99()),
        ("TPOT mean (ms)", metric::TPOT.mean()),
        ("TPOT p99 (ms)", metric::TPOT.p99()),
    ];
    let columns = quantity_columns(columns, quantity_cell, quantities);
    columns.table("set-levels", "Every level", level_rows(series))
}

/// The same for a terminal, with intervals beside the values and marks.
fn brief_level_table(condition: &ConditionSummary, series: &Series<'_>, is_rate: bool) -> Table {
    type Level<'a> = (&'a Row<'a>, &'a LevelSummary);
    let origin = LatencyOrigin::for_load(is_rate);
    let mut columns =
        Columns::number(if is_rate { "asked/s" } else { "at once" }, |(_, level): &Level<'_>| {
            Cell::text(fmt::level(level.level))
        })
        .right("runs", |(_, level)| Cell::text(count(level.points.len() as u64)))
        .right("ok/failed", |(_, level)| {
            Cell::text(format!("{}/{}", count(level.requests.ok), count(level.requests.failed)))
        })
        .right("request/s", |(row, _)| brief_cell(row, metric::REQUEST_THROUGHPUT.quantity()))
        .right("output tok/s", |(row, _)| brief_cell(row, metric::OUTPUT_THROUGHPUT.quantity()))
        .right("CoV", |(_, level)| {
            let found = level.quantity(metric::OUTPUT_THROUGHPUT.quantity());
            Cell::text(percent(found.and_then(|found| found.cov)))
        })
        .right(if is_rate { "served" } else { "tok/s per user" }, move |(row, level)| {
            if is_rate {
                Cell::text(percent(level.served.map(|served| served.share.min(1.0))))
            } else {
                brief_cell(row, metric::PER_USER_THROUGHPUT.quantity())
            }
        });
    for (title, quantity) in [
        ("TTFT mean", origin.ttft().mean()),
        ("TTFT p99", origin.ttft().p99()),
        ("TPOT mean", metric::TPOT.mean()),
        ("TPOT p99", metric::TPOT.p99()),
        ("E2E mean", origin.e2e().mean()),
    ] {
        columns = columns.right(title, move |(row, _)| brief_cell(row, quantity));
    }
    let seen: Vec<&str> = condition.levels.iter().flat_map(marks).collect();
    let legend = MARKS.iter().filter(|(mark, ..)| seen.contains(mark));
    let mut notes: Vec<Text> =
        legend.map(|(mark, words, _)| plain(format!("{mark}: {words}"))).collect();
    if is_rate {
        notes.push(plain("TTFT and E2E count from the schedule: waiting in the client is in them"));
    }
    notes.push(plain(interval_note(&condition.levels)));
    let table = columns
        .left("marks", |(_, level)| Cell::text(marks(level).join(", ")))
        .only_if(!seen.is_empty())
        .table("set-levels", "", series.rows.iter().filter_map(|row| Some((*row, row.level?))));
    Table { notes, ..table }
}

/// A mark of a level in one word, its meaning, and whether a level has it.
type Mark = (&'static str, &'static str, fn(&LevelSummary) -> bool);

const MARKS: [Mark; 8] = [
    ("invalid", "runs of this level are left out of its means", |it| !it.left_out.is_empty()),
    // Whatever else is marked is degraded.
    ("degraded", "a run of this level holds with a reservation", |it| {
        let others = MARKS.iter().filter(|(mark, _, is_so)| *mark != "degraded" && is_so(it));
        it.verdict == Verdict::Degraded
            && others.map(|(mark, ..)| *mark).all(|mark| matches!(mark, "short" | "not reached"))
    }),
    ("errors", "more than 1 % of its requests failed", |it| {
        it.failed_share.is_some_and(|share| 0.01 < share)
    }),
    ("cut", "a limit of time ended it before its requests did", |it| {
        it.cut.as_ref().is_some_and(|cut| cut.answers_missing)
    }),
    ("short", "its time was over before all of its requests had left; all that left ended", |it| {
        it.cut.as_ref().is_some_and(|cut| !cut.answers_missing)
    }),
    (
        "not reached",
        "so many were never in flight, so its users were not there; it is in no finding",
        |it| !it.is_reached(),
    ),
    ("partial", "a run was stopped before its end", |it| 0 < it.partial),
    (
        "saturated",
        "less than 95 % of the asked rate was served, or requests pile up",
        LevelSummary::is_saturated,
    ),
];

/// What is special about a level, in one word each.
fn marks(level: &LevelSummary) -> Vec<&'static str> {
    let own = MARKS.iter().filter(|(_, _, is_so)| is_so(level));
    let mut marks: Vec<&str> = own.map(|(mark, ..)| *mark).collect();
    marks.sort_by_key(|mark| *mark == "degraded");
    marks
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
    level_rows(series).find_map(|row| row.value(metric::GPU_POWER.quantity()))?;
    let columns = level_columns(series).right(level_title(is_rate), |row| level_cell(row));
    let quantities = [
        ("GPU Power (W)", metric::GPU_POWER.quantity()),
        ("Energy (J/tok)", metric::ENERGY_PER_OUTPUT_TOKEN.quantity()),
        ("Output tokens per joule", metric::OUTPUT_TOKENS_PER_JOULE.quantity()),
    ];
    let table = quantity_columns(columns, quantity_cell, quantities).table(
        "set-energy",
        "Power and energy at every level",
        level_rows(series),
    );
    let note = "Output tokens of ok requests; the GPUs that were in use, and nothing else.";
    Some(Table { notes: vec![plain(note)], ..table })
}

/// The GPUs at each level; `None` where no run has one. Their mean power is in the table of energy.
fn gpu_table(series: &[Series<'_>]) -> Option<Table> {
    type Get = fn(&DeviceFigures) -> Option<f64>;
    const NOT_REPORTED: &str = "not reported by the tool";
    // Of the GPUs of all runs that count.
    let values = |row: &Row<'_>, get: Get| -> Vec<f64> {
        let known = row.runs.iter().filter_map(|run| run.machines.gpus.as_ref());
        let devices = known.flat_map(|gpus| &gpus.devices).filter(|device| device.counts());
        devices.filter_map(get).collect()
    };
    let mean = |get: Get, text: fn(f64) -> String| {
        move |row: &&Row<'_>| {
            let values = values(row, get);
            let ends = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end));
            let [Some(low), Some(high)] = ends else { return missing(NOT_REPORTED) };
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let behind = counted(values.len() as u64, "GPU run");
            let detail = format!("{} to {} in {behind}", text(low), text(high));
            Cell { detail: Some(detail), ..Cell::number(text(mean), mean) }
        }
    };
    let highest = |get: Get, text: fn(f64) -> String| {
        move |row: &&Row<'_>| {
            let found = values(row, get).into_iter().reduce(f64::max);
            found.map_or_else(|| missing(NOT_REPORTED), |it| Cell::number(text(it), it))
        }
    };
    let has_gpus = |row: &&Row<'_>| row.runs.iter().any(|run| run.machines.gpus.is_some());
    let table = level_columns(series)
        .right("Load", |row| Cell {
            number: row.level.and_then(|level| level.level.place()),
            ..Cell::text(row.name.clone())
        })
        .right("Use", mean(|it| Some(it.use_share?.mean), percent))
        .right(
            "Memory, highest (GiB)",
            highest(|it| Some(it.memory_used_bytes?.max), |it| number(gibibytes(it))),
        )
        .right("Power, highest (W)", highest(|it| Some(it.power_w?.max), number))
        .right("Core clock (MHz)", mean(|it| Some(it.core_clock_mhz?.mean), whole))
        .right("Temperature, highest (°C)", highest(|it| Some(it.temperature_c?.max), whole))
        .right("Throttled by power", mean(|it| it.throttled_power, percent))
        .right("Throttled by heat", mean(|it| it.throttled_thermal, percent))
        .table(
            "set-gpus",
            "The GPUs at each level: means over the runs, and the highest of all samples",
            level_rows(series).filter(has_gpus),
        );
    (!table.rows.is_empty()).then_some(table)
}

/// Each quantity over the runs of one experiment; in a terminal those of this kind of load. A quantity
/// that no run has needs no line of dashes.
fn across(row: &Row<'_>, detail: Detail) -> Table {
    type Found = (Quantity, AcrossRuns, f64);
    const STATISTICS: [Statistic; 4] = [
        Statistic::Mean,
        Statistic::Percentile(Percentile::P50),
        Statistic::Percentile(Percentile::P99),
        Statistic::Max,
    ];
    const ONE_RUN: &str = "one run has no spread";
    let is_brief = detail == Detail::Brief;
    let is_open = row.level.is_some_and(|level| level.served.is_some());
    let is_shown = |metric: &&&Metric| {
        let is_headline = metric.headline.is_on(is_open);
        metric.shape() != Shape::Distribution || !is_brief || is_headline
    };
    let quantities = METRICS.iter().filter(is_shown).flat_map(|it| it.quantities(&STATISTICS));
    let found = quantities.filter_map(|quantity| {
        let across = row.quantity(quantity);
        let mean = across.mean?;
        Some((quantity, across, mean))
    });
    let shown = |value: Option<f64>, quantity: &Quantity| match value {
        Some(value) => Cell::number(in_unit(value, quantity.metric().unit), value),
        None => missing(ONE_RUN),
    };
    let table = Columns::new("Quantity", |(quantity, ..): &Found| {
        let statistic = quantity.statistic().map_or("", Statistic::name);
        Cell::text(format!("{} {statistic}", quantity.metric().title).trim_end())
    })
    .right("Mean", |(quantity, across, mean)| {
        let text = if is_brief {
            mean_with_interval(*mean, across.doubt(), quantity.metric().unit)
        } else {
            in_unit(*mean, quantity.metric().unit)
        };
        Cell { text, ..quantity_cell(row, *quantity) }
    })
    .right("", |(quantity, ..)| Cell::text(unit_name(quantity.metric().unit)))
    .right("95 % interval", |(quantity, across, mean)| match across.doubt() {
        None => missing("too few values to give one"),
        Some(interval) => Cell {
            number: Some(*mean),
            ..Cell::text(interval_in(interval, quantity.metric().unit))
        },
    })
    .only_if(!is_brief)
    .right("Std", |(quantity, across, mean)| {
        // What is left of equal values by rounding is no spread.
        let std = across.std.map(|std| if std < mean.abs() * 1e-9 { 0.0 } else { std });
        shown(std, quantity)
    })
    .right("CoV", |(_, across, _)| match (across.cov, across.std) {
        (Some(cov), _) => Cell::number(percent(cov), cov),
        (None, Some(_)) => missing("the mean is zero"),
        (None, None) => missing(ONE_RUN),
    })
    .right("Lowest", |(quantity, across, _)| shown(across.extremes().map(|it| it.0), quantity))
    .right("Highest", |(quantity, across, _)| shown(across.extremes().map(|it| it.1), quantity))
    .right("Runs", |(_, across, _)| Cell::number(count(across.n.into()), f64::from(across.n)))
    .table(
        "set-levels",
        if is_brief { String::new() } else { format!("{} across its runs", row.name) },
        found,
    );
    let mut notes = vec![plain("A run counts once, whatever its length.")];
    if let Some(level) = row.level.filter(|_| is_brief) {
        notes.push(plain(interval_note(std::slice::from_ref(level))));
        let (ok, failed) = (count(level.requests.ok), count(level.requests.failed));
        notes.push(plain(format!("{ok} requests ok, {failed} failed, all runs added up")));
    }
    Table { notes, ..table }
}

fn mean_with_interval(mean: f64, interval: Option<Interval>, unit: Unit) -> String {
    match (unit, interval) {
        (Unit::Share, Some(Interval { low, high })) => {
            let low = percent(low);
            format!("{} ({}–{})", percent(mean), low.trim_end_matches(" %"), percent(high))
        }
        (Unit::Share, None) => in_unit(mean, unit),
        _ => fmt::with_interval(Some(mean), interval),
    }
}

/// Every run of the set.
fn runs(set: &SetSummary) -> Table {
    let table = Columns::new("Run", |line: &&PointLine| {
        Cell::number(format!("{}/{}", set.set, line.point.number), f64::from(line.point.number))
    })
    .left("Condition", |line| {
        let condition = set.conditions.get(line.point.condition as usize);
        Cell::text(condition.map_or("", |condition| &condition.name))
    })
    .left("Level", |line| Cell::text(fmt::level(line.point.level)))
    .left("Verdict", |line| Cell::text(line.verdict.to_string()))
    .left("Seed", |line| Cell::text(line.point.seed.to_string()))
    .left("Workload", |line| Cell::text(line.workload_fingerprint.clone()))
    .left("Plan", |line| Cell::text(line.plan_fingerprint.clone()))
    .table("runs-of-the-set", "Runs", &set.points);
    let note =
        "Runs asked for the same where the workload is equal, and sent the same where the plan is.";
    Table { notes: vec![plain(note)], ..table }
}
