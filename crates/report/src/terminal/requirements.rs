//! What was required, and whether it was shown.

use std::fmt::Write;

use inferometer_analysis::{RequirementOutcome, RequirementVerdict};

use super::style::{Ink, Style};
use crate::escape::{terminal, terminal_line};
use crate::lines::{PAGE_WIDTH, broken};
use crate::requirements::{interval, meaning, value, word};

const WORD_WIDTH: usize = 11;
const REASON_WIDTH: usize = PAGE_WIDTH - WORD_WIDTH - 2;
/// Characters of a requirement; names are bounded, but limits have any number of digits.
const REQUIREMENT_MAX: usize = 36;

/// Nothing where nothing was required.
pub fn requirements(outcomes: &[RequirementOutcome], style: Style) -> String {
    if outcomes.is_empty() {
        return String::new();
    }
    let names: Vec<String> =
        outcomes.iter().map(|found| terminal_line(&found.requirement, REQUIREMENT_MAX)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = style.paint(Ink::Bold, &head(outcomes)) + "\n";
    for (found, name) in outcomes.iter().zip(names) {
        let ink = ink(found.verdict);
        let word = style.paint(ink, &format!("{:<WORD_WIDTH$}", word(found.verdict)));
        let _ = writeln!(text, "  {word}{name:<width$}  {}", figures(found));
        let reasons = found.reason.iter().map(|reason| terminal(reason));
        for line in reasons.flat_map(|reason| broken(&reason, REASON_WIDTH)) {
            let _ = writeln!(text, "  {:WORD_WIDTH$}{}", "", style.paint(Ink::Dim, &line));
        }
    }
    text
}

/// Several runs are judged by the interval between them, and the page says so.
fn head(outcomes: &[RequirementOutcome]) -> String {
    match outcomes.iter().map(|found| found.runs).max() {
        None | Some(0 | 1) => "requirements".to_owned(),
        Some(runs) => format!("requirements of {runs} runs, by the interval between them"),
    }
}

fn figures(found: &RequirementOutcome) -> String {
    let around = interval(found).map_or_else(String::new, |text| format!(" ({text})"));
    let meaning = meaning(found).map_or_else(String::new, |title| format!(", {title}"));
    format!("{}{around}{meaning}", value(found))
}

const fn ink(verdict: RequirementVerdict) -> Ink {
    match verdict {
        RequirementVerdict::Pass => Ink::Good,
        RequirementVerdict::Fail => Ink::Bad,
        RequirementVerdict::Undecided => Ink::Doubtful,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirements::tests::outcome;

    #[test]
    fn the_section() {
        let mut wide = outcome("ttft_schedule.p99", "ms", Some(480.0));
        wide.verdict = RequirementVerdict::Undecided;
        wide.reason = Some("the 95 % interval straddles the limit; run longer ".repeat(3));
        let mut failed = outcome("error_rate", "share", Some(0.05));
        failed.verdict = RequirementVerdict::Fail;
        let long = outcome("e2e_schedule.p99", &"9".repeat(60), None);
        let section = requirements(&[wide, failed, long], Style::Plain);
        insta::assert_snapshot!(section);
        assert!(section.lines().all(|line| line.chars().count() <= PAGE_WIDTH), "{section}");
        assert_eq!(requirements(&[], Style::Plain), "");
    }
}
