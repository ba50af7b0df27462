//! The page of a suite: the report that people publish. Its sections, tables and columns, and their
//! order, are those that readers of such reports know; what follows the recommendations is ours.

mod scaling;
mod scenario;
mod tables;

use inferometer_analysis::set::{ConditionSummary, SetSummary, SuiteSummary};
use inferometer_analysis::{Verdict, metric};

use self::tables::{performance, prefill_decode};
use super::frame::{self, About, section};
use super::rows::{self, Row};
use super::{SuiteInput, belief, card, set, system};
use crate::document::{Block, Card, Document, Section, Span, Text, plain};
use crate::fmt::{NOTHING, list, percent};
use crate::narrative::Narrative;

/// Digits of a hash that people compare by eye.
const HASH_SHOWN: usize = 12;

pub fn suite(input: &SuiteInput<'_>) -> Document {
    let SuiteInput { set, points, narrative } = *input;
    let rows = rows::of_suite(set, points);
    let about = about(set, &rows);
    let (why, points) = verdict_words(set, &rows);
    let badge = frame::badge(set.verdict, why, points);
    Document {
        header: frame::header(&about, narrative),
        title: "LLM Inference Benchmark Report".to_owned(),
        lead: frame::lead(&about, badge, headline(set, &rows)),
        sections: sections(set, &rows, narrative),
        footer: frame::footer(&about, &set.set, narrative),
    }
}

fn sections(set: &SetSummary, rows: &[Row<'_>], narrative: &Narrative) -> Vec<Section> {
    let first = rows.iter().find_map(Row::drawn);
    let mut sections = vec![
        section("executive-summary", "Executive Summary", summary(narrative)),
        system::system(first),
        section("performance", "Performance Summary", performance(rows)),
        section("prefill-and-decode", "Prefill (PP) and Decode (TG)", prefill_decode(rows)),
    ];
    sections.extend(scaling::section(set, rows, narrative));
    sections.push(Section {
        sections: rows.iter().map(|row| scenario::section(row, narrative)).collect(),
        // No scenario has such an id, whatever it is called: theirs begin with `scenario-`.
        ..section("results", "Scenario Results", Vec::new())
    });
    sections.push(section(
        "recommendations",
        "Recommendations",
        vec![Block::List(frame::texts(&narrative.recommendations))],
    ));
    sections.push(believed(set, rows, narrative));
    sections.push(provenance(set));
    sections
}

fn about<'a>(set: &'a SetSummary, rows: &[Row<'a>]) -> About<'a> {
    let suite = set.suite.as_ref();
    About {
        started: &set.started,
        tool_version: &set.tool_version,
        verdict: set.verdict,
        simulated: set.simulated,
        first: rows.iter().find_map(Row::drawn),
        models: models(&set.conditions),
        more: suite.map(|suite| ("Suite", suite_words(suite))).into_iter().collect(),
    }
}

/// Each model once, in the order in which they answered.
pub(super) fn models(conditions: &[ConditionSummary]) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for subject in conditions.iter().filter_map(|condition| condition.subject.as_ref()) {
        if !models.contains(&subject.model) {
            models.push(subject.model.clone());
        }
    }
    if models.is_empty() { vec![NOTHING.to_owned()] } else { models }
}

fn suite_words(suite: &SuiteSummary) -> String {
    let hash: String = suite.hash.chars().take(HASH_SHOWN).collect();
    let changed = match suite.changes.len() {
        0 => String::new(),
        _ => format!(", changed by {}", suite.changes.join(" ")),
    };
    format!("{} (hash {hash}{changed})", suite.name)
}

fn verdict_words(set: &SetSummary, rows: &[Row<'_>]) -> (Text, Vec<Text>) {
    let verdicts: Vec<_> = set.points.iter().map(|point| point.verdict).collect();
    let missing = not_measured(set);
    let missing = if missing.is_empty() {
        String::new()
    } else {
        format!(" Not measured: {}.", list(&missing))
    };
    let (reason, points) = frame::reason(set.verdict, &set.warnings, rows);
    let runs = belief::runs_in_words(&verdicts);
    match warm_words(rows) {
        Some(warm) if set.verdict != Verdict::Valid => {
            let evidence = ("The evidence".to_owned(), "cache-evidence".to_owned());
            let text = vec![
                Span::Plain(format!("{runs} {warm}{missing} ")),
                Span::Link { text: evidence.0, to: evidence.1 },
            ];
            (text, points)
        }
        _ => (plain(format!("{runs} {reason}{missing}")), points),
    }
}

/// How many rows are known to have met their prompts in the prefix cache.
fn warm_words(rows: &[Row<'_>]) -> Option<String> {
    let found = rows.iter().filter_map(|row| row.contaminated).filter(|found| !found.suspected);
    let shares: Vec<Option<f64>> = found.map(|found| found.cached_share).collect();
    let known = || shares.iter().flatten().copied();
    let range = known().min_by(f64::total_cmp).zip(known().max_by(f64::total_cmp));
    let range = match range {
        Some((low, high)) if low < high => {
            format!(" ({} to {} of their input)", percent(low), percent(high))
        }
        Some((share, _)) => format!(" ({} of their input)", percent(share)),
        None => String::new(),
    };
    (!shares.is_empty()).then(|| {
        format!(
            "{} of {} rows met prompts in the prefix cache that were to be new{range}, and their \
             numbers are those of a warm cache.",
            shares.len(),
            rows.len()
        )
    })
}

/// Rows that were asked for and have no run.
fn not_measured(set: &SetSummary) -> Vec<String> {
    let rows = set.suite.iter().flat_map(|suite| &suite.rows);
    rows.filter(|row| row.points.is_empty()).map(|row| row.name.clone()).collect()
}

fn summary(narrative: &Narrative) -> Vec<Block> {
    let mut blocks: Vec<Block> = frame::paragraph(&narrative.summary).into_iter().collect();
    blocks.extend(frame::authorship(narrative));
    blocks
}

fn headline(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let mut cards: Vec<Card> = Vec::new();
    let one_user = |row: &&Row<'_>| row.scenario.and_then(|asked| asked.concurrency) == Some(1);
    let alone = rows.iter().find(one_user).map(|row| ("One user: ", row));
    if let Some((who, row)) = alone.or_else(|| rows.first().map(|row| ("First scenario: ", row))) {
        for (name, quantity) in
            [("TTFT mean", metric::TTFT.mean()), ("TPOT mean", metric::TPOT.mean())]
        {
            cards.extend(card::latency(&format!("{who}{name}"), row, quantity, &row.name));
        }
    }
    let scaling = scaling::cards(set, rows);
    if scaling.is_empty() {
        cards.extend(card::highest_output(rows));
    }
    cards.extend(scaling);
    let (ok, scheduled) = rows
        .iter()
        .map(Row::tally)
        .fold((0, 0), |(ok, all), tally| (ok + tally.ok, all + tally.scheduled));
    cards.push(card::requests(ok, scheduled));
    cards
}

fn believed(set: &SetSummary, rows: &[Row<'_>], narrative: &Narrative) -> Section {
    let mut blocks = vec![belief::behind(rows)];
    if !narrative.doubts.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.doubts)));
    }
    blocks.extend(belief::reasons(&set.warnings, rows, false));
    let prompts = set.suite.as_ref().map(|suite| suite.prompts);
    let mut parts = Vec::new();
    if let Some(table) = belief::checks(rows) {
        parts.push(section("checks-of-the-runs", "Checks", vec![Block::Table(table)]));
    }
    parts.push(section("cache-honesty", "Prefix cache", belief::cache(rows, prompts)));
    parts.push(section("client", "The client itself", belief::client(rows)));
    parts.push(section("endings", "How requests ended", belief::outcomes(rows)));
    Section { sections: parts, ..section("belief", "How far to believe this", blocks) }
}

fn provenance(set: &SetSummary) -> Section {
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
    let blocks = vec![
        Block::Facts(facts),
        Block::Details {
            summary: "Every run with its seed and fingerprints".to_owned(),
            blocks: vec![Block::Table(set::runs(set))],
        },
    ];
    section("provenance", "Provenance", blocks)
}
