//! The page of a single run.

mod machines;
mod tables;

use inferometer_analysis::{Metric, Summary, Verdict, metric};
use inferometer_model::Outcome;

use super::frame::{self, About, section};
use super::rows::Row;
use super::{belief, card, charts, system};
use crate::document::{Block, Card, Document, Section, Text, plain};
use crate::fmt::load;
use crate::fmt::{NOTHING, count, latency, number};
use crate::narrative::Narrative;

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
    let (why, points) = verdict_words(summary, &row);
    let badge = frame::badge(summary.verdict, plain(why), points);
    Document {
        header: frame::header(&about, narrative),
        title: "LLM Inference Benchmark Report: One Run".to_owned(),
        lead: frame::lead(&about, badge, headline(summary, &row)),
        sections: sections(summary, row, narrative),
        footer: frame::footer(&about, &summary.run.id, narrative),
    }
}

fn sections(summary: &Summary, row: Row<'_>, narrative: &Narrative) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut words: Vec<Block> = frame::paragraph(&narrative.summary).into_iter().collect();
    words.extend(frame::authorship(narrative));
    if !words.is_empty() {
        sections.push(section("executive-summary", "Executive Summary", words));
    }
    sections.push(system::system(Some(summary)));
    let mut metrics = vec![
        Block::Table(tables::latencies(summary)),
        Block::Table(tables::numbers(summary)),
        belief::steady(summary),
    ];
    // What is found about a run alone has no scenario's name.
    if let Some(said) = narrative.scenarios.get("").filter(|said| !said.is_empty()) {
        metrics.push(Block::List(frame::texts(said)));
    }
    sections.push(section("metrics", "Performance", metrics));
    let rows = [row];
    sections.push(section("charts", "Charts", figures(summary, &rows[0])));
    if let Some(table) = tables::server(summary) {
        let blocks = [table].into_iter().chain(tables::tokens(summary)).collect();
        sections.push(section("server", "What the server says of itself", blocks));
    }
    sections.extend(machines::machines(summary));
    if !narrative.recommendations.is_empty() {
        let list = vec![Block::List(frame::texts(&narrative.recommendations))];
        sections.push(section("recommendations", "Recommendations", list));
    }
    sections.push(believed(&rows, narrative));
    sections.push(provenance(summary));
    sections
}

fn asked(summary: &Summary) -> String {
    let unit = match summary.workload.turns {
        Some(_) => load::Unit::Conversations,
        None => load::Unit::Requests,
    };
    let run = &summary.run;
    format!(
        "{}, {}, {}",
        load::shape(&run.load, unit),
        load::extent(&run.extent),
        load::lengths(&summary.workload, run.api)
    )
}

fn verdict_words(summary: &Summary, row: &Row<'_>) -> (String, Vec<Text>) {
    let partial = if summary.run.partial { " The run was not played to its end." } else { "" };
    let (reason, points) =
        frame::reason(summary.verdict, &summary.warnings, std::slice::from_ref(row));
    let words = format!(
        "{} of {} requests ended ok in {} s. {reason}{partial}",
        count(summary.count(Outcome::Ok)),
        count(summary.scheduled.saturating_sub(summary.time_over)),
        number(summary.window.duration_s),
    );
    (words, points)
}

fn headline(summary: &Summary, row: &Row<'_>) -> Vec<Card> {
    let ttft = summary.latency_origin().ttft();
    let latency = |label: &str, metric: &'static Metric| {
        let tail = row.quantity(metric.p99());
        let mark = if tail.certified { "" } else { " (not certified)" };
        let detail = tail
            .mean
            .map_or_else(|| NOTHING.to_owned(), |p99| format!("p99 {}{mark}", latency(p99)));
        card::latency(&format!("{label} mean"), row, metric.mean(), &detail)
    };
    let requests = card::requests(
        summary.count(Outcome::Ok),
        summary.scheduled.saturating_sub(summary.time_over),
    );
    [
        card::highest_output(std::slice::from_ref(row)),
        latency("TTFT", ttft),
        latency("TPOT", &metric::TPOT),
        Some(requests),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn figures(summary: &Summary, row: &Row<'_>) -> Vec<Block> {
    let own = [row];
    [
        charts::first_tokens(&own, ""),
        charts::token_gaps(&own, ""),
        charts::course(summary, ""),
        charts::requests(summary, ""),
        charts::gaps(summary, ""),
    ]
    .into_iter()
    .flatten()
    .map(charts::figure)
    .collect()
}

fn believed(rows: &[Row<'_>], narrative: &Narrative) -> Section {
    let mut blocks = vec![belief::behind(rows)];
    if !narrative.doubts.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.doubts)));
    }
    let own = rows.iter().flat_map(Row::all_runs).flat_map(|run| &run.warnings);
    let warnings: Vec<_> = own.cloned().collect();
    blocks.extend(belief::reasons(&warnings, rows, true));
    let mut parts = Vec::new();
    if let Some(table) = belief::checks(rows) {
        parts.push(section("checks-of-the-run", "Checks", vec![Block::Table(table)]));
    }
    parts.push(section("cache-honesty", "Prefix cache", belief::cache(rows, None)));
    parts.push(section("client", "The client itself", belief::client(rows)));
    parts.push(section("endings", "How requests ended", belief::outcomes(rows)));
    Section { sections: parts, ..section("belief", "How far to believe this", blocks) }
}

fn provenance(summary: &Summary) -> Section {
    let run = &summary.run;
    let mut facts: Vec<(String, String)> = [
        ("Run", run.id.clone()),
        ("Started", run.started.clone()),
        ("Tool", format!("Inferometer {}", run.tool_version)),
        ("Target", run.target.clone()),
        ("Seed", run.seed.to_string()),
        ("Workload fingerprint", summary.workload.fingerprint.clone()),
        ("Plan fingerprint", summary.plan.fingerprint.clone()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    facts.extend(run.metadata.clone());
    if summary.verdict == Verdict::Invalid {
        facts.push(("Use".to_owned(), "none: its numbers are not about the server".to_owned()));
    }
    let facts = facts.into_iter().map(|(key, value)| (key, plain(value))).collect();
    section("provenance", "Provenance", vec![Block::Facts(facts)])
}
