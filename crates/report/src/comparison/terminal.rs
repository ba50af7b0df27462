//! The page for a terminal: what is decided first, then the figures, then the reasons to doubt them.

use std::fmt::Write;

use inferometer_analysis::comparison::Comparison;

use super::names::Names;
use super::{tables, words};
use crate::escape::terminal;
use crate::lines::hanging;
use crate::terminal::{Ink, Style};

pub fn render(comparison: &Comparison, style: Style) -> String {
    let names = Names::short(comparison);
    let mut sections = vec![head(comparison, &names, style), outcomes(comparison, style)];
    sections.extend(tables::all(comparison, &names).iter().map(|grid| grid.to_terminal(style)));
    sections.extend([
        unmatched(comparison),
        objections(comparison, style),
        notes(comparison, style),
    ]);
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

fn head(comparison: &Comparison, names: &Names, style: Style) -> String {
    let mut text = String::new();
    if comparison.sides.iter().any(|side| side.simulated.is_some()) {
        let words = "SIMULATED in virtual time: no server was measured.";
        text += &(style.paint(Ink::Doubtful, words) + "\n");
    }
    let title = format!("Comparison by {}", words::title(&comparison.primary));
    text += &(style.paint(Ink::Bold, &title) + "\n");
    let width = names.width();
    for side in &comparison.sides {
        let head = format!("  {:<width$}  ", names.of(&side.name));
        let of_letter = if names.are_letters { format!("{}: ", side.name) } else { String::new() };
        let told = format!("{of_letter}{}", words::side(side));
        text += &hanging(&head, width + 4, &terminal(&told));
    }
    text
}

fn outcomes(comparison: &Comparison, style: Style) -> String {
    let mut text = String::new();
    if !comparison.has_runs() {
        let sides =
            comparison.sides.iter().filter(|side| side.left_out as usize == side.runs.len());
        let names: Vec<&str> = sides.map(|side| side.name.as_str()).collect();
        let words = format!("no valid runs are left of {}", terminal(&names.join(" and ")));
        return style.paint(Ink::Bad, "NOT COMPARED") + "  " + &words + "\n";
    }
    for outcome in &comparison.outcomes {
        let word = outcome.judgement.key().to_uppercase();
        let indent = word.chars().count() + 2;
        let head =
            words::ink(outcome.judgement).map_or(word.clone(), |ink| style.paint(ink, &word));
        let told = terminal(&words::outcome(comparison, outcome));
        text += &hanging(&format!("{head}  "), indent, &told);
        if outcome.change.is_some() {
            let known_from = words::known_from(comparison, outcome);
            text += &hanging(&" ".repeat(indent), indent, &known_from);
        }
        if let Some(without) = words::without(outcome) {
            text += &hanging(&" ".repeat(indent), indent, &terminal(&without));
        }
    }
    if let Some(words) = words::nothing_decided(comparison) {
        for line in hanging("", 0, &terminal(&words)).lines() {
            text += &(style.paint(Ink::Bad, line) + "\n");
        }
    }
    text
}

fn unmatched(comparison: &Comparison) -> String {
    let told = comparison.unmatched.iter().map(|found| match found.sides.as_slice() {
        [] => format!("{} (no valid runs)", found.told()),
        sides => format!("{} (only {})", found.told(), sides.join(" and ")),
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    hanging("", 0, &terminal(&format!("not all sides have: {}", told.join(", "))))
}

fn objections(comparison: &Comparison, style: Style) -> String {
    let mut text = String::new();
    if comparison.forced {
        let words = "FORCED: the sides are not comparable, and this was asked for all the same.";
        text += &(style.paint(Ink::Bad, words) + "\n");
    }
    for objection in &comparison.objections {
        let (head, told) = words::objection(objection);
        let painted = style.paint(words::weight_ink(objection.weight), head);
        text += &hanging(&format!("{painted}: "), head.len() + 2, &terminal(&told));
    }
    text
}

fn notes(comparison: &Comparison, style: Style) -> String {
    if !comparison.has_runs() {
        return String::new();
    }
    let mut text = String::new();
    for line in [words::margins(comparison.margins)].into_iter().chain(words::advice(comparison)) {
        for line in hanging("", 0, &terminal(&line)).lines() {
            let _ = writeln!(text, "{}", style.paint(Ink::Dim, line));
        }
    }
    text
}
