//! The page of a matrix of deployments: who is best at what and how surely, every cell with its doubt,
//! and what came to nothing with its reason.

mod bars;
pub(super) mod csv;
mod deployments;
mod failed;
mod loads;
mod method;
mod overview;
mod results;
mod setup;
mod strategies;
mod table;
pub(crate) mod tally;
pub(crate) mod view;
mod winners;

use inferometer_analysis::matrix::{MatrixFigure, MatrixRow, MatrixSummary};
use inferometer_analysis::set::SetSummary;

use self::tally::Tally;
use self::view::View;
use super::frame::{self, About, section};
use super::words::counted;
use super::{SuiteInput, belief, set};
use crate::document::{Block, Card, Document, Section, Text, plain};
use crate::narrative::Narrative;
use crate::number::{count, percent};
use crate::pages::words::doubt;

/// More tables than these of a kind are folded away, each with what it shows.
const OPEN_MAX: usize = 4;
/// Each model has a card, as long as one can take them in.
const CARDS_MAX: usize = 6;

const SIMULATED: &str =
    "nothing: each deployment is simulated in virtual time by its own profile, without a server";

/// `None` where the set is no matrix.
pub fn page(input: &SuiteInput<'_>) -> Option<Document> {
    let matrix = input.set.matrix.as_ref()?;
    let view = View { set: input.set, matrix };
    // Sentences that a model was asked for are about the tables of other pages.
    let narrative = Narrative::default();
    let about = about(input, matrix);
    let (why, points) = verdict_words(view);
    let badge = frame::badge(input.set.verdict, why, points);
    let mut lead = frame::lead(&about, badge, headline(view));
    let hardware = hardware(view);
    for (key, text) in &mut lead.subject {
        match key.as_str() {
            "Hardware" => *text = plain(hardware.clone()),
            // The profile of the first run is not that of all.
            "Measured" if input.set.simulated => *text = plain(SIMULATED),
            _ => {}
        }
    }
    // One of many is not the command of all.
    lead.subject.retain(|(key, _)| key != "Startup Command");
    let mut header = frame::header(&about, &narrative);
    for (key, value) in &mut header {
        if key == "Hardware" {
            value.clone_from(&hardware);
        }
    }
    Some(Document {
        header,
        title: title(matrix),
        lead,
        sections: sections(view),
        footer: frame::footer(&about, &input.set.set, &narrative),
    })
}

fn title(matrix: &MatrixSummary) -> String {
    let title = crate::escape::terminal_line(matrix.title.trim(), 120);
    let page = "LLM Inference Benchmark Report: Deployment Matrix";
    if title.is_empty() { page.to_owned() } else { format!("{page}: {title}") }
}

fn about<'a>(input: &SuiteInput<'a>, matrix: &MatrixSummary) -> About<'a> {
    let labels = matrix.models.iter();
    let models = labels.map(|it| if it.label.is_empty() { &it.name } else { &it.label });
    About {
        started: &input.set.started,
        tool_version: &input.set.tool_version,
        verdict: input.set.verdict,
        simulated: input.set.simulated,
        first: input.points.first().map(|point| &point.summary),
        models: models.cloned().collect(),
        more: vec![("Matrix", matrix.name.clone())],
    }
}

fn hardware(view: View<'_>) -> String {
    let names: Vec<String> =
        (0_u32..).zip(&view.matrix.presets).map(|(at, _)| view.preset(at)).collect();
    format!("{}: {}", counted(names.len() as u64, "preset"), names.join(", "))
}

fn sections(view: View<'_>) -> Vec<Section> {
    let mut sections = vec![section("summary", "Summary", summary(view))];
    sections.extend(winners::section(view));
    sections.extend(overview::section(view));
    sections.push(setup::section(view));
    sections.extend(results::sections(view));
    sections.extend(strategies::section(view));
    sections.extend(loads::section(view));
    sections.extend(failed::section(view));
    sections.extend(deployments::section(view));
    sections.push(believed(view.set));
    sections.push(method::section(view));
    sections.push(provenance(view.set));
    sections
}

fn verdict_words(view: View<'_>) -> (Text, Vec<Text>) {
    let rows = &view.matrix.rows;
    let tally = Tally::of(rows);
    let troubles = tally.troubles();
    let more = if troubles.is_empty() { String::new() } else { format!(" ({troubles})") };
    let cells = format!(
        "{} of {} measured{more}.",
        count(tally.measured() as u64),
        counted(rows.len() as u64, "row")
    );
    let verdicts: Vec<_> = view.set.points.iter().map(|point| point.verdict).collect();
    let (reason, points) = frame::reason(view.set.verdict, &view.set.warnings, &[]);
    (plain(format!("{cells} {} {reason}", belief::runs_in_words(&verdicts))), points)
}

fn headline(view: View<'_>) -> Vec<Card> {
    let rows = &view.matrix.rows;
    let tally = Tally::of(rows);
    let mut cards = vec![Card {
        label: "Measured".to_owned(),
        value: count(tally.measured() as u64),
        unit: format!("of {}", count(rows.len() as u64)),
        detail: "cells at their loads".to_owned(),
        doubt: Some(tally.troubles()).filter(|words| !words.is_empty()),
    }];
    for (place, _) in (0_u32..).zip(&view.matrix.models).take(CARDS_MAX) {
        let own = || rows.iter().filter(|row| row.model == place);
        cards.extend(best_card(view, place, own(), MatrixFigure::GenerationTps));
    }
    if view.matrix.models.len() == 1 {
        for figure in [MatrixFigure::Latency, MatrixFigure::Cost, MatrixFigure::Energy] {
            cards.extend(best_card(view, 0, rows, figure));
        }
    }
    cards
}

fn best_card<'a>(
    view: View<'_>,
    model: u32,
    rows: impl IntoIterator<Item = &'a MatrixRow>,
    of: MatrixFigure,
) -> Option<Card> {
    let (row, value) = view.best(rows, of)?;
    let across = view.figure(row, of);
    let known = across.doubt().is_some().then(|| doubt(across));
    let mut detail = vec![view.deployment(row)];
    detail.extend(row.context.map(view::context_words));
    detail.extend(view.level(row.level));
    detail.extend(known);
    Some(Card {
        label: format!(
            "{}: {} {}",
            view.model(model),
            view::best_word(of).to_lowercase(),
            view::figure_word(of)
        ),
        value: view::digits(value),
        unit: view.unit(of),
        detail: detail.join("; "),
        doubt: winners::reservation_of(view, row, of),
    })
}

/// What a reader in a hurry takes away, made from the tables below.
fn summary(view: View<'_>) -> Vec<Block> {
    let mut lines = winners::sentences(view);
    lines.extend(strategies::sentence(view));
    lines.extend(failed::sentence(view));
    lines.extend(setup::short_prompts(view));
    if view.matrix.winners.is_empty() {
        lines.push(plain("No cell was measured without errors, so nothing can be compared."));
    }
    vec![Block::List(lines)]
}

fn believed(set: &SetSummary) -> Section {
    let mut blocks: Vec<Block> = set.warnings.iter().map(frame::notice).collect();
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(plain("No check found a reason to doubt the runs.")));
    }
    section("belief", "How far to believe this", blocks)
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
        blocks: vec![Block::Table(set::runs(set))],
    };
    section("provenance", "Provenance", vec![Block::Facts(facts), runs])
}

/// With its sign: what is slower must not look like what is faster.
fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    let size = percent(Some(share.abs()));
    if size.starts_with(['<', '>']) { format!("{sign} {size}") } else { format!("{sign}{size}") }
}

/// Folded away where there are many like it.
fn folded(fold: bool, summary: String, blocks: Vec<Block>) -> Vec<Block> {
    if fold { vec![Block::Details { summary, blocks }] } else { blocks }
}
