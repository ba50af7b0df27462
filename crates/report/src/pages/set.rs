//! The page of repeats, sweeps and searches: the levels with their doubt, and what they show.

mod gpus;
mod tables;

use inferometer_analysis::set::{ConditionSummary, FoundLimit, QuestionKind, SetSummary};
use inferometer_analysis::{Quantity, metric};
use inferometer_model::campaign::Dimension;

pub(super) use self::tables::runs;
use super::frame::{self, About, section};
use super::rows::{self, Row, Series};
use super::{SuiteInput, belief, card, charts, system};
use crate::chart::Chart;
use crate::document::{Block, Card, Document, Figure, Section, Span, Text, plain};
use crate::fmt::{level_name, number, uncertainty};
use crate::narrative::Narrative;
use crate::terminal::set::findings::{limit_words, told_all};

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
        models: super::suite::models(&set.conditions),
        more: vec![("Question", question(set))],
    };
    let verdicts: Vec<_> = set.points.iter().map(|point| point.verdict).collect();
    let (reason, points) = frame::reason(set.verdict, &set.warnings, &rows);
    let why = plain(format!("{} {reason}", belief::runs_in_words(&verdicts)));
    let badge = frame::badge(set.verdict, why, points);
    Document {
        header: frame::header(&about, narrative),
        title: title(set).to_owned(),
        lead: frame::lead(&about, badge, headline(set, &rows)),
        sections: sections(set, &by_condition, &rows, narrative),
        footer: frame::footer(&about, &set.set, narrative),
    }
}

fn sections(
    set: &SetSummary,
    by_condition: &[Vec<Row<'_>>],
    rows: &[Row<'_>],
    narrative: &Narrative,
) -> Vec<Section> {
    let mut summary: Vec<Block> = frame::paragraph(&narrative.summary).into_iter().collect();
    summary.extend(frame::authorship(narrative));
    let mut sections = Vec::new();
    if !summary.is_empty() {
        sections.push(section("executive-summary", "Executive Summary", summary));
    }
    sections.push(system::system(rows.iter().find_map(Row::drawn)));
    let series: Vec<Series<'_>> = set
        .conditions
        .iter()
        .zip(by_condition)
        .map(|(one, rows)| Series { name: one.name.clone(), rows: rows.iter().collect() })
        .collect();
    sections.push(levels(set, &series, rows, narrative));
    if set.conditions.iter().any(|one| one.findings.is_some()) || !set.limits.is_empty() {
        sections.push(findings(set, narrative));
    }
    sections.push(figures(set, &series, rows));
    if !narrative.recommendations.is_empty() {
        let list = vec![Block::List(frame::texts(&narrative.recommendations))];
        sections.push(section("recommendations", "Recommendations", list));
    }
    sections.push(believed(set, rows, narrative));
    sections.push(provenance(set));
    sections
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

fn headline(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let all: Vec<&Row<'_>> = rows.iter().collect();
    // The same as the table below has.
    let ttft = charts::first_token_metric(&all);
    let ttft_name = if *ttft == metric::TTFT { "TTFT mean" } else { "TTFT mean from schedule" };
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
        blocks.extend(rows.iter().map(|row| Block::Table(tables::across(row))));
        blocks.extend(said(rows, narrative));
        return section("runs", "Across Runs", blocks);
    }
    blocks.push(Block::Table(tables::levels(set, series)));
    blocks.extend(gpus::table(series).map(Block::Table));
    blocks.extend(tables::energy(set, series).map(Block::Table));
    blocks.extend(said(rows, narrative));
    section("levels", "Levels", blocks)
}

/// What was found about single levels, folded away.
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

fn findings(set: &SetSummary, narrative: &Narrative) -> Section {
    let several = 1 < set.conditions.len();
    let of_condition = |condition: &ConditionSummary| {
        let found = condition.findings.as_ref()?;
        let lines =
            told_all(found, set.asked.dimension).into_iter().map(|(label, words)| -> Text {
                vec![Span::Strong(format!("{}:", capital(label))), Span::Plain(format!(" {words}"))]
            });
        let head = several.then(|| Block::Paragraph(vec![Span::Strong(condition.name.clone())]));
        Some(head.into_iter().chain([Block::List(lines.collect())]).collect::<Vec<_>>())
    };
    let mut blocks: Vec<Block> = set.limits.iter().map(|limit| found_limit(set, limit)).collect();
    blocks.extend(set.conditions.iter().filter_map(of_condition).flatten());
    if !narrative.scaling.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.scaling)));
    }
    section("findings", "Findings", blocks)
}

fn capital(label: &str) -> String {
    let mut letters = label.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn found_limit(set: &SetSummary, limit: &FoundLimit) -> Block {
    let place = usize::try_from(limit.condition).unwrap_or(usize::MAX);
    let named = set.conditions.get(place).filter(|_| 1 < set.conditions.len());
    let name = named.map_or_else(String::new, |one| format!("{}: ", one.name));
    Block::Paragraph(vec![
        Span::Strong("Limit:".to_owned()),
        Span::Plain(format!(" {name}{}", limit_words(limit))),
    ])
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
    blocks.extend(rows.iter().filter_map(of_row));
    section("charts", "Charts", blocks)
}

/// The course of the run that is drawn, folded away.
fn of_row(row: &Row<'_>) -> Option<Block> {
    let (run, id) = (row.drawn()?, row.id());
    let drawn = [
        charts::course(run, &id),
        charts::gpus(run, &id),
        charts::requests(run, &id),
        charts::gaps(run, &id),
    ];
    let told = |chart: Chart| Chart { n: chart.n.clone() + &row.which_run(), ..chart };
    let blocks: Vec<Block> = drawn.into_iter().flatten().map(told).map(charts::figure).collect();
    let summary = format!("Charts of run {} ({})", run.run.id, row.name);
    (!blocks.is_empty()).then_some(Block::Details { summary, blocks })
}

fn believed(set: &SetSummary, rows: &[Row<'_>], narrative: &Narrative) -> Section {
    let mut blocks = vec![belief::behind(rows)];
    if !narrative.doubts.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.doubts)));
    }
    blocks.extend(belief::reasons(&set.warnings, rows, false));
    let mut parts = Vec::new();
    if let Some(table) = belief::checks(rows) {
        parts.push(section("checks-of-the-runs", "Checks", vec![Block::Table(table)]));
    }
    parts.push(section("cache-honesty", "Prefix cache", belief::cache(rows, None)));
    parts.push(section("client", "The client itself", belief::client(rows)));
    parts.push(section("endings", "How requests ended", belief::outcomes(rows)));
    Section { sections: parts, ..section("belief", "How far to believe this", blocks) }
}

fn provenance(set: &SetSummary) -> Section {
    let facts = [
        ("Set", set.set.clone()),
        ("Started", set.started.clone()),
        ("Tool", format!("Inferometer {}", set.tool_version)),
        ("Seed", set.seed.to_string()),
    ];
    let facts = facts.map(|(key, value)| (key.to_owned(), plain(value))).into();
    let runs = Block::Details {
        summary: "Every run with its seed and fingerprints".to_owned(),
        blocks: vec![Block::Table(runs(set))],
    };
    section("provenance", "Provenance", vec![Block::Facts(facts), runs])
}
