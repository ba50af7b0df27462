//! Requirements as pages show them: the value with its confidence interval, and the reason.

use inferometer_analysis::{RequirementOutcome, Undecided};

use crate::document::terminal;
use crate::pages::prelude::*;
use crate::terminal::Style;

/// Characters of a requirement; limits have any number of digits.
const REQUIREMENT_MAX: usize = 36;

/// The requirements of one run, or of several together, with their outcomes.
#[derive(Clone, Copy, Debug)]
pub struct Judgement<'a> {
    pub runs: &'a [Summary],
    /// Imported results, where no run of ours is judged.
    pub results: &'a [ToolResult],
    pub requirements: &'a [RequirementOutcome],
    pub undecided: Undecided,
}

impl Judgement<'_> {
    pub fn is_met(&self) -> bool {
        self.requirements.iter().all(|found| found.verdict.is_met(self.undecided))
    }
}

/// The section of a terminal page; empty where there are no requirements.
pub fn rendered(outcomes: &[RequirementOutcome], style: Style) -> String {
    terminal::sections(&page_section(outcomes).into_iter().collect::<Vec<_>>(), style)
}

/// The section of a page; `None` where there are no requirements.
pub(crate) fn page_section(outcomes: &[RequirementOutcome]) -> Option<Section> {
    let title = match outcomes.iter().map(|found| found.runs).max()? {
        0 | 1 => "requirements".to_owned(),
        runs => format!("requirements of {runs} runs, by the interval between them"),
    };
    let block = |found: &RequirementOutcome| {
        let word = match found.verdict {
            ThresholdVerdict::Met => "PASS",
            ThresholdVerdict::Missed => "FAIL",
            ThresholdVerdict::Undecided => "UNDECIDED",
        };
        let requirement = terminal_line(&found.requirement, REQUIREMENT_MAX);
        Block::Verdict(Badge {
            mood: found.verdict.into(),
            word: word.to_owned(),
            text: plain(format!("{requirement}: {}", value_with_interval(found))),
            points: found.reason.iter().cloned().map(plain).collect(),
        })
    };
    Some(section("requirements", title, outcomes.iter().map(block)))
}

/// The value with its unit; a dash where there is none.
pub(crate) fn value(found: &RequirementOutcome) -> String {
    match found.value {
        None => NOTHING.to_owned(),
        share if is_share(found) => percent(share),
        known => format!("{} {}", number(known), found.unit),
    }
}

/// The interval without its unit.
pub(crate) fn interval(found: &RequirementOutcome) -> Option<String> {
    let unit = if is_share(found) { Unit::Share } else { Unit::Milliseconds };
    Some(fmt::interval_in(found.interval?, unit))
}

/// The title of the compared metric, where the requirement does not name it.
pub(crate) fn meaning(found: &RequirementOutcome) -> Option<&'static str> {
    let name = found.quantity.split('.').next()?;
    let is_named = found.requirement.starts_with(name);
    Metric::named(name).filter(|_| !is_named).map(|metric| metric.title)
}

fn value_with_interval(found: &RequirementOutcome) -> String {
    let around = interval(found).map_or_else(String::new, |text| format!(" ({text})"));
    let meaning = meaning(found).map_or_else(String::new, |title| format!(", {title}"));
    format!("{}{around}{meaning}", value(found))
}

/// One line with everything, for pages without columns.
pub(crate) fn sentence(found: &RequirementOutcome) -> String {
    let runs = if found.runs == 1 { String::new() } else { format!(", {} runs", found.runs) };
    let why = found.reason.as_ref().map_or_else(String::new, |reason| format!("; {reason}"));
    format!("{} is {}{runs}{why}", found.quantity, value_with_interval(found))
}

fn is_share(found: &RequirementOutcome) -> bool {
    found.unit == Unit::Share.name()
}

#[cfg(test)]
pub(crate) mod tests {
    use inferometer_analysis::Interval;
    use inferometer_model::spec::Relation;

    use super::*;
    use crate::lines::PAGE_WIDTH;

    pub(crate) fn outcome(quantity: &str, unit: &str, value: Option<f64>) -> RequirementOutcome {
        RequirementOutcome {
            requirement: format!("{}<500{unit}", quantity.replace("_schedule", "")),
            quantity: quantity.to_owned(),
            unit: unit.to_owned(),
            bound: Relation::Below,
            limit: 500.0,
            verdict: ThresholdVerdict::Met,
            value,
            interval: value.and_then(|value| Interval::new(value, value * 1.1)),
            n: Some(1_000),
            runs: 1,
            reason: None,
        }
    }

    #[test]
    fn a_number_has_its_unit_and_its_interval() {
        let found = outcome("ttft_schedule.p99", "ms", Some(412.0));
        assert_eq!(
            sentence(&found),
            "ttft_schedule.p99 is 412.0 ms (412.0 to 453.2), TTFT from schedule"
        );
        let share = outcome("error_rate", "share", Some(0.05));
        assert_eq!(sentence(&share), "error_rate is 5 % (5 % to 5.5 %)");
        let mut none = outcome("ttft.p99", "ms", None);
        (none.runs, none.reason) = (3, Some("no output".to_owned()));
        assert_eq!(sentence(&none), "ttft.p99 is –, 3 runs; no output");
    }

    #[test]
    fn the_gate_opens_when_all_are_met() {
        let mut open = outcome("ttft.p99", "ms", Some(1.0));
        open.verdict = ThresholdVerdict::Undecided;
        let requirements = [open, outcome("e2e.p99", "ms", Some(1.0))];
        let judged = |undecided| Judgement {
            runs: &[],
            results: &[],
            requirements: &requirements,
            undecided,
        };
        assert!(judged(Undecided::Pass).is_met() && !judged(Undecided::Fail).is_met());
    }

    #[test]
    fn the_section() {
        let mut wide = outcome("ttft_schedule.p99", "ms", Some(480.0));
        wide.verdict = ThresholdVerdict::Undecided;
        wide.reason = Some("the 95 % interval straddles the limit; run longer ".repeat(3));
        let mut failed = outcome("error_rate", "share", Some(0.05));
        failed.verdict = ThresholdVerdict::Missed;
        let long = outcome("e2e_schedule.p99", &"9".repeat(60), None);
        let section = super::rendered(&[wide, failed, long], Style::Plain);
        insta::assert_snapshot!(section);
        assert!(section.lines().all(|line| line.chars().count() <= PAGE_WIDTH), "{section}");
        assert_eq!(super::rendered(&[], Style::Plain), "");
    }
}
