//! The page of a comparison as one document, and its JSON document.

mod names;
mod text;

use inferometer_analysis::comparison::{
    Comparison, Judgement, LayoutFigures, LevelComparison, QuantityComparison, SideComparison,
    SideOutcome, SideValue, Weight,
};

use self::names::Names;
pub use self::text::{nothing_decided, objection};
use crate::document::{
    Badge, Block, Cell, Columns, Document, Lead, Mood, Section, Table, plain, terminal,
};
use crate::fmt::{NOTHING, number};
use crate::terminal::Style;

/// The quantities of the speed-up table.
const SPEED_UPS: [(&str, &str); 2] =
    [("input_throughput", "prompts"), ("output_throughput", "answers")];
/// With more levels only the primary quantity is shown.
const LEVELS_MAX: usize = 16;
const INTERVAL: &str = "95 % interval";
const UNCERTIFIED: &str = "too few independent samples in a run to certify this percentile";

/// The page for a terminal, with names that fit into its columns.
pub fn terminal(comparison: &Comparison, style: Style) -> String {
    terminal::render(&document(comparison, &Names::short(comparison)), style)
}

/// The page for a pull request or an issue.
pub fn markdown(comparison: &Comparison) -> String {
    crate::document::markdown::render(&document(comparison, &Names::whole(comparison))).text
}

/// Exactly one document, with a line feed at its end.
pub fn json(comparison: &Comparison) -> String {
    String::from_utf8_lossy(&comparison.to_json_bytes()).into_owned()
}

fn document(comparison: &Comparison, names: &Names) -> Document {
    let side = |side: &inferometer_analysis::comparison::SideFacts| {
        let key = if names.are_letters { format!("{}: ", side.name) } else { String::new() };
        (names.side(&side.name).to_owned(), plain(format!("{key}{}", text::side(side))))
    };
    let mut sections = vec![Section::new("", outcomes(comparison))];
    sections.extend(tables(comparison, names));
    sections.push(Section::new("", unmatched(comparison).into_iter().collect()));
    sections.push(Section::new("", comparison.objections.iter().map(objection_block).collect()));
    if comparison.has_runs() {
        let lines = [text::margins(comparison.margins)].into_iter().chain(text::advice(comparison));
        sections.push(Section::new("", lines.map(Block::paragraph).collect()));
    }
    sections.retain(|section| !section.blocks.is_empty());
    let lead = Lead { subject: comparison.sides.iter().map(side).collect(), ..Lead::default() };
    let title = format!("Comparison by {}", text::title(&comparison.primary));
    Document { lead, ..Document::new(title, sections) }
}

fn badge(mood: Mood, word: &str, text: String, points: Vec<String>) -> Block {
    let points = points.into_iter().map(plain).collect();
    Block::Verdict(Badge { mood, word: word.to_uppercase(), text: plain(text), points })
}

const fn mood(judgement: Judgement) -> Option<Mood> {
    match judgement {
        Judgement::Better => Some(Mood::Good),
        Judgement::Worse => Some(Mood::Bad),
        Judgement::Undecided => Some(Mood::Doubt),
        Judgement::Same | Judgement::NotJudged | Judgement::NotCompared => None,
    }
}

/// The decision about each side, and what qualifies it.
fn outcomes(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    if comparison.sides.iter().any(|side| side.simulated.is_some()) {
        let text = "in virtual time: no server was measured".to_owned();
        blocks.push(badge(Mood::Doubt, "simulated", text, Vec::new()));
    }
    if comparison.forced {
        let text = "the sides are not comparable; compared because of --force".to_owned();
        blocks.push(badge(Mood::Bad, "forced", text, Vec::new()));
    }
    if !comparison.has_runs() {
        let is_empty = |side: &&inferometer_analysis::comparison::SideFacts| {
            side.left_out as usize == side.runs.len()
        };
        let sides = comparison.sides.iter().filter(is_empty);
        let names: Vec<&str> = sides.map(|side| side.name.as_str()).collect();
        let text = format!("no valid runs are left of {}", names.join(" and "));
        blocks.push(badge(Mood::Bad, "not compared", text, Vec::new()));
        return blocks;
    }
    let outcome = |outcome: &SideOutcome| {
        let known_from = outcome.change.map(|_| text::known_from(comparison, outcome));
        let points = known_from.into_iter().chain(text::without(outcome)).collect();
        let mood = mood(outcome.judgement).unwrap_or(Mood::Note);
        badge(mood, outcome.judgement.key(), text::outcome(comparison, outcome), points)
    };
    blocks.extend(comparison.outcomes.iter().map(outcome));
    blocks.extend(nothing_decided(comparison).map(Block::paragraph));
    blocks
}

fn unmatched(comparison: &Comparison) -> Option<Block> {
    let words = comparison.unmatched.iter().map(|found| match found.sides.as_slice() {
        [] => format!("{} (no valid runs)", found.told()),
        sides => format!("{} (only {})", found.told(), sides.join(" and ")),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| Block::paragraph(format!("Not in all sides: {}", words.join(", "))))
}

fn objection_block(found: &inferometer_analysis::comparison::Objection) -> Block {
    let mood = match found.weight {
        Weight::Note => Mood::Note,
        Weight::Warning | Weight::Withholds => Mood::Doubt,
        Weight::Forbids => Mood::Bad,
    };
    let (word, words) = objection(found);
    badge(mood, word, words, Vec::new())
}

/// Every table of the comparison, in the order of the page.
fn tables(comparison: &Comparison, names: &Names) -> Vec<Section> {
    let mut sections = Vec::new();
    let is_long = LEVELS_MAX < comparison.levels.len();
    if is_long {
        sections.push(deciding(comparison, names));
    } else {
        for level in &comparison.levels {
            let quantities = |side| quantities(comparison, names, level, side);
            sections.extend(level.against.iter().map(quantities));
        }
    }
    // With one level and one side it would only repeat the table above it.
    let several = 1 < comparison.levels.len() || 1 < comparison.outcomes.len();
    if several && !is_long {
        sections.extend(speed_ups(comparison, names));
    }
    sections.extend(layouts(comparison, names));
    sections
}

type Quantities<'a, T> = Columns<'a, (T, &'a QuantityComparison)>;

/// Both sides, the change and its judgement, behind a first column of names.
fn comparing<'a, T>(first: Quantities<'a, T>, base: &str, other: &str) -> Quantities<'a, T> {
    let value = |found: &QuantityComparison, side: &SideValue| {
        let doubtful = side.mean.is_some() && !side.certified;
        Cell {
            doubtful,
            reason: doubtful.then(|| UNCERTIFIED.to_owned()),
            ..Cell::text(text::value(&found.quantity, side.mean))
        }
    };
    let known = |found: &QuantityComparison, text: String| {
        let reason = found.reason.clone().filter(|_| text == NOTHING);
        Cell { reason, ..Cell::text(text) }
    };
    first
        .right(base, move |(_, found)| value(found, &found.base))
        .right(other, move |(_, found)| value(found, &found.other))
        .right("change", move |(_, found)| {
            known(found, text::either(found.change, found.bare_ratio))
        })
        .right(INTERVAL, move |(_, found)| known(found, interval(found.change)))
        .right("verdict", |(_, found)| Cell {
            mood: mood(found.judgement),
            ..Cell::text(found.judgement.key())
        })
}

fn interval(change: Option<inferometer_analysis::comparison::Change>) -> String {
    change.map_or_else(|| NOTHING.to_owned(), text::interval)
}

fn with_notes(table: Table, notes: impl IntoIterator<Item = String>) -> Vec<Block> {
    vec![Block::Table(Table { notes: notes.into_iter().map(plain).collect(), ..table })]
}

fn quantities(
    comparison: &Comparison,
    names: &Names,
    level: &LevelComparison,
    side: &SideComparison,
) -> Section {
    let (base, name) = (names.base(), names.side(&side.side));
    let sides = (1 < comparison.outcomes.len()).then(|| format!("{name} against {base}"));
    let level = (1 < comparison.levels.len()).then(|| names.level(&level.told()));
    let title: Vec<String> = level.into_iter().chain(sides).collect();
    let first = Columns::new("", |(title, found): &(String, &QuantityComparison)| Cell {
        mood: found.primary.then_some(Mood::Note),
        ..Cell::text(title.clone())
    });
    let rows = side.quantities.iter().map(|found| (text::with_unit(found), found));
    let table = comparing(first, base, name).table("", "", rows);
    Section::new(title.join(": "), with_notes(table, text::other_confidence(comparison)))
}

/// The primary quantity at every level, a row for each.
fn deciding(comparison: &Comparison, names: &Names) -> Section {
    let several = 1 < comparison.outcomes.len();
    let mut title = text::title(&comparison.primary);
    let mut rows = Vec::new();
    for level in &comparison.levels {
        for side in &level.against {
            let Some(found) = side.quantities.iter().find(|found| found.primary) else { continue };
            title = text::with_unit(found);
            let side =
                if several { format!(", {}", names.side(&side.side)) } else { String::new() };
            rows.push((format!("{}{side}", names.level(&level.told())), found));
        }
    }
    let other = comparison.outcomes.first().filter(|_| !several);
    let other = other.map_or("other", |outcome| names.side(&outcome.side));
    let first = Columns::new("", |(level, _): &(String, _)| Cell::text(level.clone()));
    let table = comparing(first, names.base(), other).table("", "", rows);
    let folded = "with this many rows only the primary quantity is shown: --primary selects another, \
                  and --json has all";
    let notes = text::other_confidence(comparison)
        .into_iter()
        .chain(names.shared.as_ref().map(|shared| format!("every row: {shared}")))
        .chain([folded.to_owned()]);
    Section::new(title, with_notes(table, notes))
}

/// Throughputs of prompts and of answers side by side, and the speed-up in per cent.
fn speed_ups(comparison: &Comparison, names: &Names) -> Option<Section> {
    type Row<'a> = (String, [Option<&'a QuantityComparison>; 2]);
    let mut rows: Vec<Row<'_>> = Vec::new();
    for level in &comparison.levels {
        for (index, side) in level.against.iter().enumerate() {
            let found = SPEED_UPS.map(|(name, _)| level.quantity(index, name));
            let mut label = names.narrow_level(&level.told());
            if 1 < comparison.outcomes.len() {
                label = format!("{label}, {}", names.side(&side.side));
            }
            rows.push((label, found));
        }
    }
    rows.retain(|(_, found)| found.iter().any(Option::is_some));
    let mut columns = Columns::new("", |(label, _): &Row<'_>| Cell::text(label.clone()));
    for (index, (_, title)) in SPEED_UPS.into_iter().enumerate() {
        type Get = fn(&QuantityComparison) -> String;
        let parts: [(String, Get); 3] = [
            (format!("{title}, base"), |found| number(found.base.mean)),
            (title.to_owned(), |found| number(found.other.mean)),
            ("speed-up".to_owned(), |found| text::either(found.change, found.bare_ratio)),
        ];
        for (title, get) in parts {
            let text = move |found: &[Option<&QuantityComparison>; 2]| {
                found[index].map_or_else(|| NOTHING.to_owned(), get)
            };
            let is_known = rows.iter().any(|(_, found)| text(found) != NOTHING);
            columns = columns
                .right(title, move |(_, found): &Row<'_>| Cell::text(text(found)))
                .only_if(is_known);
        }
    }
    let table = columns.table("", "", rows);
    let title = format!("Speed-up over {} (tokens per second)", names.base());
    (1 < table.columns.len()).then(|| Section::new(title, with_notes(table, [])))
}

fn layouts(comparison: &Comparison, names: &Names) -> Option<Section> {
    let first = comparison.layouts.first()?;
    let gpus = first.replicas * first.tensor_parallel;
    let several = 1 < comparison.levels.len();
    let table = Columns::new("servers × GPUs", |found: &&LayoutFigures| {
        let at = if several { format!(", {}", names.level(&found.told())) } else { String::new() };
        let side = names.side(&found.side);
        Cell::text(format!("{}×{} {side}{at}", found.replicas, found.tensor_parallel))
    })
    .right("per GPU", |found| Cell::text(number(found.per_gpu.value)))
    .right("node", |found| Cell::text(number(found.node.value)))
    .right("change", |found| Cell::text(text::either(found.change, found.bare_ratio)))
    .right(INTERVAL, |found| Cell::text(interval(found.change)))
    .table("", "", &comparison.layouts);
    let note = "Tokens/s × GPUs / tensor-parallel size: assumes that replicas scale linearly; they were \
                not measured together.";
    let title = format!("A node of {gpus} GPUs (output tokens per second)");
    Some(Section::new(title, with_notes(table, [note.to_owned()])))
}
