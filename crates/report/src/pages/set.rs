//! The page of repeats, sweeps and searches: the levels with their intervals, and the findings.

use super::findings::{findings, search_result};
use super::matrix::{self, brief};
use super::prelude::*;
use super::suite;
use crate::{comparison, gpus};
use inferometer_analysis::comparison::Side;
use inferometer_analysis::set::{FoundLimit, PointLine, QuestionKind, Served, StudyFacts, Subject};
use inferometer_model::observations::Simulated;
use inferometer_model::study::RunOrder;
use serde::Serialize;

/// The paths of a stored set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SetFiles {
    pub set: String,
    /// `None` while something is left to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The HTML page, where one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Further files of a matrix: the same page as text, and its table.
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
    let servers = set.conditions.iter().zip(&by_condition);
    let servers = servers
        .filter_map(|(one, own)| Some((one.name.as_str(), own.iter().find_map(Row::drawn)?)));
    let servers: Vec<frame::Server<'_>> = servers.collect();
    let (title, question) = question(set);
    let about = about(set, servers, models(set), Some(("Question", question)));
    let (reason, points) = frame::reason(set.verdict, &set.warnings, &rows);
    let why = plain(format!("{}. {reason}", runs_by_verdict(set)));
    let series = series(set, &by_condition);
    let mut figures = figures(set, &series, &rows);
    let summary = frame::summary_with_chart(narrative, &mut figures);
    let mut sections = Vec::from_iter(summary.filled());
    sections.extend([system::system(&about.servers), levels(set, &series, &rows, narrative)]);
    sections.extend(found(set, narrative).filled());
    sections.extend(figures.filled());
    sections.extend(frame::recommendations(narrative).filled());
    sections.push(validity::validity_section(&rows, &set.warnings, narrative, None));
    sections.push(provenance(set, rows.iter().find_map(Row::drawn)));
    let title = format!("LLM Inference Benchmark Report{title}");
    let mut headline = headline(set, &rows);
    headline.splice(0..0, against_first(set, input.points));
    frame::page(&about, title, (why, points), headline, sections, narrative)
}

/// How much the other servers of a set differ from the first.
fn against_first(set: &SetSummary, points: &[PointResult]) -> Vec<Card> {
    let few = 2..=SPOTS_MAX;
    if !few.contains(&set.conditions.len()) || points.is_empty() {
        return Vec::new();
    }
    let sides = (0_u32..).zip(&set.conditions).map(|(index, condition)| {
        let own = points.iter().filter(|result| result.point.condition == index);
        let results = own.map(|result| result.summary.clone()).collect();
        let (name, source) = (condition.name.clone(), set.set.clone());
        Side { name, source, results, rows: Vec::new(), failed: Vec::new(), suite: None }
    });
    comparison::cards(&sides.collect::<Vec<_>>())
}

/// The facts at the top of a page about a set.
pub(super) fn about<'a>(
    set: &'a SetSummary,
    servers: Vec<frame::Server<'a>>,
    models: Vec<String>,
    more: Option<(&'static str, String)>,
) -> About<'a> {
    About {
        id: &set.set,
        started: &set.started,
        tool_version: &set.tool_version,
        verdict: set.verdict,
        simulated: set.simulated.then(|| frame::model_error(engines(set))),
        servers,
        models,
        more,
    }
}

/// The engines of a simulation, as far as known.
fn engines(set: &SetSummary) -> impl Iterator<Item = &Simulated> {
    known_subjects(set).filter_map(|subject| subject.simulated.as_ref())
}

fn known_subjects(set: &SetSummary) -> impl Iterator<Item = &Subject> {
    set.conditions.iter().filter_map(|condition| condition.subject.as_ref())
}

/// Each model once, in the order in which they answered.
pub(super) fn models(set: &SetSummary) -> Vec<String> {
    let models = distinct(known_subjects(set).map(|subject| subject.model.clone()));
    if models.is_empty() { vec![NOTHING.to_owned()] } else { models }
}

/// The page for a terminal.
pub fn set_brief(set: &SetSummary, files: &SetFiles) -> Document {
    let (mut subject, mut sections) = match (&set.suite, &set.matrix) {
        (Some(suite), _) => (suite::brief_subject(set, suite), suite::brief_sections(set, suite)),
        (None, Some(matrix)) => (brief::subject(set, matrix), brief::sections(set, matrix)),
        (None, None) => (subjects(set), brief_sections(set)),
    };
    sections.extend(section("limits", "", limits(set)).filled());
    sections.push(validity::warnings(&set.warnings));
    let SetFiles { set: directory, summary, report, markdown, table } = files;
    let more = [summary, report, markdown, table].into_iter().flatten();
    let names = [("files", directory.clone())].into_iter();
    let names = names.chain(more.map(|file| ("", file.clone())));
    sections.push(section("files", "", [Block::facts(names)]));
    subject.push(("runs".to_owned(), plain(manner(&set.asked, set.seed))));
    let runs = plain(runs_by_verdict(set));
    let verdict = frame::badge(set.verdict, set.simulated, runs, Vec::new());
    let verdict = match &set.matrix {
        Some(matrix) => matrix::without_gaps(verdict, matrix),
        None => verdict,
    };
    let alert = set.simulated.then(|| plain(simulated(set)));
    let lead = Lead { alert, subject, verdict: Some(verdict), headline: Vec::new() };
    let title = format!("set {}", set.set);
    let title = frame::brief_title(&set.tool_version, &title, set.simulated);
    Document { lead, ..Document::new(title, sections) }
}

/// A name may be a whole command line.
const NAME_MAX: usize = 24;

/// A note that no server was measured, with the profiles of the engines.
fn simulated(set: &SetSummary) -> String {
    const PROFILES_MAX: usize = 4;
    let mut profiles = distinct(engines(set).map(|it| terminal_line(&it.profile, NAME_MAX)));
    // A matrix may have one for each cell.
    let more = profiles.len().saturating_sub(PROFILES_MAX);
    profiles.truncate(PROFILES_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    // Before the first run has ended, none is known.
    let profiles = profiles.join(", ");
    if profiles.is_empty() {
        return frame::SIMULATED.to_owned();
    }
    let error = frame::model_error(engines(set));
    format!("{} Profile {profiles}{more}; {error}", frame::SIMULATED)
}

/// The question of the set, as the end of the title and in a sentence.
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

/// Number of runs, their order and the pauses between them.
fn manner(asked: &StudyFacts, seed: u64) -> String {
    let is_suite = asked.question == QuestionKind::Suite;
    let runs = match (&asked.stop_at, asked.runs) {
        (Some(target), most) => {
            fill("until-known", &[&target.quantity, &percent(target.half_width), &most])
        }
        (None, runs) if asked.question == QuestionKind::Repeat => format!("{runs} runs"),
        (None, 1) if is_suite => "each scenario once".to_owned(),
        (None, rounds) if is_suite => format!("played {rounds} times from beginning to end"),
        (None, 1) => "one run each".to_owned(),
        (None, runs) => format!("{runs} runs each"),
    };
    let order = match (asked.question, asked.order) {
        (QuestionKind::Repeat, _) | (QuestionKind::Suite, RunOrder::Listed) => "",
        (QuestionKind::Suite, RunOrder::Interleaved) => ", shuffled in every round",
        (_, RunOrder::Interleaved) => ", interleaved",
        (_, RunOrder::Listed) => ", in the order of the list",
    };
    let rest = match asked.cool_down_s {
        seconds if 0.0 < seconds => format!(", {seconds} s of rest between runs"),
        _ => String::new(),
    };
    let restarted = if asked.restarted { ", server restarted between them" } else { "" };
    format!("{runs}{order}{rest}{restarted}, seed {seed}")
}

/// The question, and each server with the lengths of its prompts.
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
        let name = terminal_line(&condition.name, NAME_MAX);
        (if several { name } else { "target".to_owned() }, text)
    });
    facts([("question".to_owned(), question(set).1)].into_iter().chain(conditions))
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

/// `5 runs, 1 degraded`.
pub(super) fn runs_by_verdict(set: &SetSummary) -> String {
    let mut text = counted(set.points.len() as u64, "run");
    for (verdict, words) in
        [(Verdict::Degraded, "degraded"), (Verdict::Invalid, "invalid and left out of every mean")]
    {
        let found = set.points.iter().filter(|point| point.verdict == verdict).count();
        if 0 < found {
            let _ = write!(text, ", {} {words}", count(found as u64));
        }
    }
    text
}

fn series<'a>(set: &SetSummary, by_condition: &'a [Vec<Row<'a>>]) -> Vec<Series<'a>> {
    let conditions = set.conditions.iter().zip(by_condition);
    conditions
        .map(|(one, rows)| Series { name: one.name.clone(), rows: rows.iter().collect() })
        .collect()
}

/// More servers than these have their spots in the findings only.
const SPOTS_MAX: usize = 3;

fn headline(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let all: Vec<&Row<'_>> = rows.iter().collect();
    // The same metric as in the table below.
    let ttft = charts::first_token_metric(&all);
    let least = |name: &str, quantity: Quantity| {
        let known = rows.iter().filter_map(|row| Some((row, row.value(quantity)?)));
        let (row, _) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let (label, detail) = if rows.len() == 1 {
            (name.to_owned(), uncertainty(&row.quantity(quantity)))
        } else {
            (format!("Lowest {name}"), row.name.clone())
        };
        cells::latency_card(&label, row, quantity, detail)
    };
    let several = 1 < set.conditions.len();
    let spots = set.conditions.iter().take(SPOTS_MAX).flat_map(|one| {
        let name = several.then(|| terminal_line(&one.name, NAME_MAX));
        let found = one.findings.as_ref();
        found.map_or_else(Vec::new, |found| cells::spot_cards(name.as_deref(), found, |_| None))
    });
    let cards = [
        cells::highest_output_card(rows),
        least(&ttft.mean().title(), ttft.mean()),
        least("TPOT mean", metric::TPOT.mean()),
        cells::lowest_cost_card(rows),
        Some(cells::requests_card(rows)),
    ];
    let [peak, cards @ ..] = cards;
    peak.into_iter().chain(spots).chain(cards.into_iter().flatten()).collect()
}

fn levels(
    set: &SetSummary,
    series: &[Series<'_>],
    rows: &[Row<'_>],
    narrative: &Narrative,
) -> Section {
    // Sentences about single levels, folded.
    let texts = rows.iter().filter_map(|row| {
        let text = frame::row_texts(narrative, &row.name)?;
        Some([Block::Paragraph(vec![strong(row.name.clone())]), text])
    });
    let texts = Block::folded("Notes on each level", texts.flatten().collect());
    if set.asked.question == QuestionKind::Repeat {
        let tables = rows.iter().map(|row| across(row, Detail::Full));
        return section("runs", "Across Runs", tables).with(texts);
    }
    let is_rate = set.asked.dimension == Some(Dimension::Rate);
    section("levels", "Levels", [level_table(series, is_rate)])
        .with(gpu_table(series))
        .with(energy(series, is_rate))
        .with(texts)
}

fn brief_sections(set: &SetSummary) -> Vec<Section> {
    let by_condition = rows::of_conditions(set, &[]);
    let is_rate = set.asked.dimension == Some(Dimension::Rate);
    let mut sections = Vec::new();
    for (condition, series) in set.conditions.iter().zip(series(set, &by_condition)) {
        let name = terminal_line(&condition.name, NAME_MAX);
        let name = (1 < set.conditions.len()).then_some(name.as_str());
        if matches!(set.asked.question, QuestionKind::Repeat | QuestionKind::Suite) {
            sections.extend(series.rows.iter().map(|row| {
                let runs = counted(row.level.map_or(0, |level| level.points.len()) as u64, "run");
                section("runs", titled(name, &runs), [across(row, Detail::Brief)])
            }));
            continue;
        }
        sections.push(brief_levels(condition, &series, is_rate, name));
        sections.extend(condition.findings.as_ref().map(|found| {
            let facts = Block::facts(findings(found, set.asked.dimension));
            section("findings", titled(name, "Findings"), [facts])
        }));
    }
    sections
}

/// The levels of one server as tables and bars.
pub(super) fn brief_levels(
    condition: &ConditionSummary,
    series: &Series<'_>,
    is_rate: bool,
    name: Option<&str>,
) -> Section {
    let own = std::slice::from_ref(series);
    let title = titled(name, "Levels (latencies in ms)");
    section("levels", title, [brief_level_table(condition, series, is_rate)])
        .with(energy(own, is_rate))
        .with(charts::throughput(own).into_iter().chain(charts::latency(own)))
}

pub(super) fn titled(name: Option<&str>, title: &str) -> String {
    name.map_or_else(|| title.to_owned(), |name| format!("{name}: {title}"))
}

fn found(set: &SetSummary, narrative: &Narrative) -> Section {
    let several = 1 < set.conditions.len();
    let findings = set.conditions.iter().filter_map(|condition| {
        let found = findings(condition.findings.as_ref()?, set.asked.dimension).into_iter();
        let facts = Block::facts(found.map(|(name, words)| (frame::capitalized(name), words)));
        let name = several.then(|| Block::Paragraph(vec![strong(condition.name.clone())]));
        Some(name.into_iter().chain([facts]))
    });
    let found = section("findings", "Findings", limits(set)).with(findings.flatten());
    // Sentences about the findings need one.
    if found.blocks.is_empty() { found } else { found.with(frame::texts(&narrative.scaling)) }
}

/// The results of searches; `None` where there are none.
fn limits(set: &SetSummary) -> Option<Block> {
    let several = 1 < set.conditions.len();
    let fact = |limit: &FoundLimit| {
        let named = set.conditions.get(limit.condition as usize).filter(|_| several);
        let name = named.map(|one| format!("{}: ", terminal_line(&one.name, NAME_MAX)));
        ("Limit", name.unwrap_or_default() + &search_result(limit))
    };
    (!set.limits.is_empty()).then(|| Block::facts(set.limits.iter().map(fact)))
}

fn figures(set: &SetSummary, series: &[Series<'_>], rows: &[Row<'_>]) -> Section {
    let all: Vec<&Row<'_>> = rows.iter().collect();
    let is_repeat = set.asked.question == QuestionKind::Repeat;
    section("charts", "Charts", charts::by_scenario(rows, "condition").filter(|_| is_repeat))
        .with(level_charts(series, &all, "levels"))
        .with(rows.iter().filter_map(charts_of_run))
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
        charts::cost(series),
        charts::cost_against_speed(series),
        charts::energy(series),
        charts::first_tokens(rows, id),
        charts::token_gaps(rows, id),
    ];
    throughput.into_iter().chain(others.into_iter().flatten().map(Block::from)).collect()
}

/// Charts of the drawn run, folded.
fn charts_of_run(row: &Row<'_>) -> Option<Block> {
    let (run, id) = (row.drawn()?, row.id());
    let drawn = [
        charts::course(run, &id),
        charts::gpus(run, &id),
        charts::requests(run, &id),
        charts::gaps(run, &id),
    ];
    let named = |chart: Chart| Chart { n: chart.n.clone() + &row.which_run(), ..chart };
    let blocks: Vec<Block> = drawn.into_iter().flatten().map(named).map(Block::from).collect();
    let summary = format!("Charts of run {} ({})", run.run.id, row.name);
    Block::folded(summary, blocks)
}

/// The origin of a set, with every run.
pub(super) fn provenance(set: &SetSummary, run: Option<&Summary>) -> Section {
    let suite = set.suite.as_ref();
    let changes = |changes: &[String]| match changes {
        [] => "none: the suite as it is".to_owned(),
        changes => changes.join(" "),
    };
    let facts = Block::facts([
        ("Set", Some(set.set.clone())),
        ("Started", Some(set.started.clone())),
        ("Tool", Some(format!("Inferometer {}", set.tool_version))),
        ("Seed", Some(frame::seed(set.seed))),
        ("Suite", suite.map(|suite| format!("{}: {}", suite.name, suite.title))),
        ("Suite hash", suite.map(|suite| suite.hash.clone())),
        ("Changes", suite.map(|suite| changes(&suite.changes))),
    ]);
    let runs = Block::folded("Every run with its seed and fingerprints", vec![runs(set).into()]);
    section("provenance", "Provenance", frame::command(run, set.seed)).with([facts]).with(runs)
}

const COST: Quantity = metric::COST_PER_MILLION_OUTPUT_TOKENS.quantity();

/// Begins a table of levels, with the server where there are several.
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
    cells::reserved(row, cell)
}

/// Throughput and latency at each level.
fn level_table(series: &[Series<'_>], is_rate: bool) -> Table {
    let ttft = LatencyOrigin::for_load(is_rate).ttft();
    let (user_title, user) = if is_rate {
        ("Answered (req/s)", &metric::REQUEST_THROUGHPUT)
    } else {
        ("Per-user Throughput (tok/s)", &metric::PER_USER_THROUGHPUT)
    };
    let [ttft_mean, ttft_p99] = ["mean", "p99"].map(|name| format!("{} {name} (ms)", ttft.title));
    let columns = level_columns(series)
        .right(charts::load_title(is_rate), |row| level_cell(row))
        .right("Runs", |row| Cell::count(row.level.map_or(0, |level| level.points.len()) as u64))
        .right("Requests ok", |row| {
            let tally = row.tally();
            let all = format!("of {}", count(tally.scheduled));
            Cell::count(tally.ok).detailed((tally.ok != tally.scheduled).then_some(all))
        });
    let quantities = [
        ("Output Throughput (tok/s)", metric::OUTPUT_THROUGHPUT.quantity()),
        (user_title, user.quantity()),
        (&ttft_mean, ttft.mean()),
        (&ttft_p99, ttft.p99()),
        ("TPOT mean (ms)", metric::TPOT.mean()),
        ("TPOT p99 (ms)", metric::TPOT.p99()),
    ];
    let has_price = level_rows(series).any(|row| row.value(COST).is_some());
    let columns = quantity_columns(columns, quantity_cell, quantities)
        .right("Cost (per M output tok)", |row| quantity_cell(row, COST))
        .only_if(has_price);
    let table = columns.table("set-levels", "Every level", level_rows(series));
    table.noted(is_rate.then(|| text("answered")))
}

/// The same for a terminal, with intervals beside the values and marks.
fn brief_level_table(condition: &ConditionSummary, series: &Series<'_>, is_rate: bool) -> Table {
    let origin = LatencyOrigin::for_load(is_rate);
    let of = |get: fn(&LevelSummary) -> String| {
        move |row: &&Row<'_>| Cell::text(row.level.map(get).unwrap_or_default())
    };
    let columns =
        Columns::number(if is_rate { "rate/s" } else { "c" }, of(|it| fmt::level(it.level)))
            .right("runs", of(|it| count(it.points.len() as u64)))
            .right(
                "ok/failed",
                of(|it| format!("{}/{}", count(it.requests.ok), count(it.requests.failed))),
            );
    let rates = [
        ("request/s", metric::REQUEST_THROUGHPUT.quantity()),
        ("output tok/s", metric::OUTPUT_THROUGHPUT.quantity()),
    ];
    let columns = quantity_columns(columns, brief_cell, rates)
        .right(
            "CoV",
            of(|it| {
                percent(it.quantity(metric::OUTPUT_THROUGHPUT.quantity()).and_then(|it| it.cov))
            }),
        )
        .right("kept up", of(|it| it.served.map_or_else(|| NOTHING.to_owned(), kept_up)))
        .only_if(is_rate)
        .right("tok/s per user", |row| brief_cell(row, metric::PER_USER_THROUGHPUT.quantity()))
        .only_if(!is_rate);
    let latencies = [
        ("TTFT mean", origin.ttft().mean()),
        ("TTFT p99", origin.ttft().p99()),
        ("TPOT mean", metric::TPOT.mean()),
        ("TPOT p99", metric::TPOT.p99()),
        ("E2E mean", origin.e2e().mean()),
    ];
    let seen: Vec<&str> = condition.levels.iter().flat_map(marks).collect();
    let legend = MARKS.iter().filter(|(mark, ..)| seen.contains(mark));
    quantity_columns(columns, brief_cell, latencies)
        .left("marks", of(|it| marks(it).join(", ")))
        .only_if(!seen.is_empty())
        .table("set-levels", "", series.rows.iter().copied())
        .noted(legend.map(|(mark, _)| format!("{mark}: {}", text(&mark_name(mark)))))
        .noted(["from-schedule", "kept-up"].into_iter().filter(|_| is_rate).map(text))
        .noted([interval_note(&condition.levels)])
}

/// The name of a mark's meaning among the texts.
fn mark_name(mark: &str) -> String {
    format!("mark-{}", mark.replace(' ', "-"))
}

/// Answers per second while requests came, and their share of the rate.
fn kept_up(served: Served) -> String {
    format!("{}/s, {}", number(served.served_per_s), percent(served.share.min(1.0)))
}

/// A mark of a level in one word, and whether a level has it.
type Mark = (&'static str, fn(&LevelSummary) -> bool);

const MARKS: [Mark; 8] = [
    ("invalid", |it| !it.left_out.is_empty()),
    // Shown where no other mark gives the reason.
    ("degraded", |it| {
        let others = MARKS.iter().filter(|(mark, is_so)| *mark != "degraded" && is_so(it));
        it.verdict == Verdict::Degraded
            && others.map(|(mark, ..)| *mark).all(|mark| matches!(mark, "short" | "not reached"))
    }),
    ("errors", |it| it.failed_share.is_some_and(|share| 0.01 < share)),
    ("cut", |it| it.cut.as_ref().is_some_and(|cut| cut.answers_missing)),
    ("short", |it| it.cut.as_ref().is_some_and(|cut| !cut.answers_missing)),
    ("not reached", |it| !it.is_reached()),
    ("partial", |it| 0 < it.partial),
    ("saturated", LevelSummary::is_saturated),
];

fn marks(level: &LevelSummary) -> Vec<&'static str> {
    let own = MARKS.iter().filter(|(_, is_so)| is_so(level));
    let mut marks: Vec<&str> = own.map(|(mark, ..)| *mark).collect();
    marks.sort_by_key(|mark| *mark == "degraded");
    marks
}

/// The meaning of ± in a table.
pub(super) fn interval_note(levels: &[LevelSummary]) -> String {
    let has = |is_so: fn(&AcrossRuns) -> bool| {
        let mut found = levels.iter();
        found.any(|it| it.quantity(metric::REQUEST_THROUGHPUT.quantity()).is_some_and(is_so))
    };
    let enough = levels.iter().find_map(|level| level.enough.as_ref());
    let wider = enough.map(|enough| {
        format!("that of {} is wider, because it was tested after every run", enough.quantity)
    });
    let notes = [
        has(|it| it.interval.is_some())
            .then(|| "± or from–to: 95 % between runs (Student's t)".to_owned()),
        wider,
        has(|it| it.interval.is_none() && it.within.is_some())
            .then(|| "± or from–to of one run: 95 % within it alone".to_owned()),
        has(|it| it.mean.is_some() && it.confidence_interval().is_none())
            .then(|| "without ±: too few values for an interval".to_owned()),
    ];
    notes.into_iter().flatten().join("; ")
}

/// Power and energy at each level; `None` where no GPU reports its power.
fn energy(series: &[Series<'_>], is_rate: bool) -> Option<Table> {
    level_rows(series).find_map(|row| row.value(metric::GPU_POWER.quantity()))?;
    let columns = level_columns(series).right(charts::load_title(is_rate), |row| level_cell(row));
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
    Some(table.noted(["Output tokens of ok requests; only the GPUs that were in use."]))
}

/// The GPUs at each level; `None` where no run has one. The table of energy has their mean power.
fn gpu_table(series: &[Series<'_>]) -> Option<Table> {
    let has_gpus = |row: &&Row<'_>| row.runs.iter().any(|run| run.machines.gpus.is_some());
    let columns = level_columns(series).right("Load", |row| Cell {
        number: row.level.and_then(|level| level.level.place()),
        ..Cell::text(row.name.clone())
    });
    let table = gpus::columns(columns, |row: &&Row<'_>| {
        let known = row.runs.iter().filter_map(|run| run.machines.gpus.as_ref());
        known.flat_map(gpus::used).collect()
    });
    let table = table.table(
        "set-gpus",
        "The GPUs at each level: means over the runs, and the highest of all samples",
        level_rows(series).filter(has_gpus),
    );
    (!table.rows.is_empty()).then_some(table)
}

/// Each quantity over the runs of one experiment; in a terminal those of this kind of load. Quantities
/// without a value are left out.
pub(crate) fn across(row: &Row<'_>, detail: Detail) -> Table {
    type Found = (Quantity, AcrossRuns, f64);
    const ONE_RUN: &str = "one run has no spread";
    let is_brief = detail == Detail::Brief;
    let is_open = row.level.is_some_and(|level| level.served.is_some());
    let is_shown = |metric: &&&Metric| {
        let is_headline = metric.headline.is_on(is_open);
        metric.shape() != Shape::Distribution || !is_brief || is_headline
    };
    let quantities =
        METRICS.iter().filter(is_shown).flat_map(|it| it.quantities(&[MEAN, P50, P99, MAX]));
    let found = quantities.filter_map(|quantity| {
        let across = row.quantity(quantity);
        let mean = across.mean?;
        Some((quantity, across, mean))
    });
    let shown = |value: Option<f64>, quantity: &Quantity| match value {
        Some(value) => Cell::number(fmt::in_unit(value, quantity.metric().unit), value),
        None => missing(ONE_RUN),
    };
    let columns = Columns::new("Quantity", |(quantity, ..): &Found| Cell::text(quantity.title()))
        .right("Mean", |(quantity, across, mean)| {
            let text = match (quantity.metric().unit, across.confidence_interval()) {
                (Unit::Share, Some(Interval { low, high })) if is_brief => {
                    let low = percent(low);
                    format!("{} ({}–{})", percent(*mean), low.trim_end_matches(" %"), percent(high))
                }
                (Unit::Share, _) => percent(*mean),
                (_, around) => fmt::with_interval(Some(*mean), around.filter(|_| is_brief)),
            };
            Cell { text, ..quantity_cell(row, *quantity) }
        })
        .right("", |(quantity, ..)| Cell::text(fmt::unit_name(quantity.metric().unit)))
        .right("95 % interval", |(quantity, across, mean)| match across.confidence_interval() {
            None => missing("too few values to give one"),
            Some(interval) => Cell {
                number: Some(*mean),
                ..Cell::text(fmt::interval_in(interval, quantity.metric().unit))
            },
        })
        .only_if(!is_brief)
        .right("Std", |(quantity, across, mean)| {
            // Equal values differ by rounding only.
            let std = across.std.map(|std| if std < mean.abs() * 1e-9 { 0.0 } else { std });
            shown(std, quantity)
        })
        .right("CoV", |(_, across, _)| {
            let reason = if across.std.is_some() { "the mean is zero" } else { ONE_RUN };
            number_cell(across.cov, percent, reason)
        })
        .right("Lowest", |(quantity, across, _)| shown(across.extremes().map(|it| it.0), quantity))
        .right("Highest", |(quantity, across, _)| shown(across.extremes().map(|it| it.1), quantity))
        .right("Runs", |(_, across, _)| Cell::count(across.n.into()));
    let caption = if is_brief { String::new() } else { format!("{} across its runs", row.name) };
    let notes = row.level.filter(|_| is_brief).map(|level| {
        let (ok, failed) = (count(level.requests.ok), count(level.requests.failed));
        [
            interval_note(std::slice::from_ref(level)),
            format!("{ok} requests ok, {failed} failed, all runs added up"),
        ]
    });
    let table = columns.table("set-levels", caption, found);
    table.noted(["Each run counts once, whatever its length."]).noted(notes.into_iter().flatten())
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
    table.noted([text("same-fingerprints")])
}
