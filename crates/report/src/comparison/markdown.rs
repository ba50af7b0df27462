//! The page for a pull request or an issue: GitHub's Markdown.

use std::fmt::Write;

use inferometer_analysis::comparison::Comparison;

use super::names::Names;
use super::{tables, words};
use crate::escape::markdown;

pub fn render(comparison: &Comparison) -> String {
    let mut text = format!("## Comparison by {}\n\n", markdown(&words::title(&comparison.primary)));
    if comparison.sides.iter().any(|side| side.simulated.is_some()) {
        text += "**SIMULATED in virtual time: no server was measured.**\n\n";
    }
    if comparison.forced {
        text +=
            "**FORCED: the sides are not comparable, and this was asked for all the same.**\n\n";
    }
    for side in &comparison.sides {
        let _ = writeln!(text, "- **{}**: {}", markdown(&side.name), markdown(&words::side(side)));
    }
    text.push('\n');
    if !comparison.has_runs() {
        text += "**NOT COMPARED**: a side has no valid runs left.\n\n";
    }
    for outcome in &comparison.outcomes {
        let known_from = outcome.change.map_or_else(String::new, |_| {
            format!("; {}", markdown(&words::known_from(comparison, outcome)))
        });
        let _ = writeln!(
            text,
            "**{}** {}{known_from}\n",
            outcome.judgement.key().to_uppercase(),
            markdown(&words::outcome(comparison, outcome)),
        );
        if let Some(without) = words::without(outcome) {
            let _ = writeln!(text, "{}\n", markdown(&without));
        }
    }
    if let Some(words) = words::nothing_decided(comparison) {
        let _ = writeln!(text, "**{}**\n", markdown(&words));
    }
    for grid in tables::all(comparison, &Names::whole(comparison)) {
        text += &(grid.to_markdown() + "\n");
    }
    for level in &comparison.unmatched {
        let sides = level.sides.join(" and ");
        let _ = writeln!(text, "- {} is in {} only", markdown(&level.told()), markdown(&sides));
    }
    for objection in &comparison.objections {
        let (head, told) = words::objection(objection);
        let _ = writeln!(text, "- **{head}**: {}", markdown(&told));
    }
    if comparison.has_runs() {
        let _ = writeln!(text, "\n{}.", markdown(&words::margins(comparison.margins)));
        for line in words::advice(comparison) {
            let _ = writeln!(text, "{}", markdown(&line));
        }
    }
    text
}
