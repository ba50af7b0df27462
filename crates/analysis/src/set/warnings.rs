//! Reasons to doubt a set, each with what to do about it.

use std::collections::BTreeMap;

use super::asked::{Asked, QuestionKind};
use super::level::LevelSummary;
use super::{ConditionSummary, PointResult};
use crate::verdict::Severity;
use crate::warning::Notice;

/// Below this many runs a level's interval is wide for want of runs alone.
const RUNS_FEW: u32 = 3;

/// The gravest first.
pub(super) fn found(
    asked: &Asked,
    conditions: &[ConditionSummary],
    results: &[&PointResult],
) -> Vec<Notice> {
    let mut notices: Vec<Notice> = conditions
        .iter()
        .flat_map(|condition| of_condition(condition, 1 < conditions.len()))
        .chain(few_runs(asked, conditions))
        .chain(of_runs(results))
        .collect();
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.severity));
    notices
}

fn of_condition(condition: &ConditionSummary, named: bool) -> Vec<Notice> {
    let of = if named { format!("{}: ", condition.name) } else { String::new() };
    let levels = &condition.levels;
    [invalid_runs(&of, levels), cut(&of, levels), partial(&of, levels), not_enough(&of, levels)]
        .into_iter()
        .flatten()
        .collect()
}

fn invalid_runs(of: &str, levels: &[LevelSummary]) -> Option<Notice> {
    let bad: Vec<&LevelSummary> = levels.iter().filter(|one| !one.left_out.is_empty()).collect();
    let runs: usize = bad.iter().map(|level| level.left_out.len()).sum();
    let none_left = bad.iter().any(|level| level.points.is_empty());
    (0 < runs).then(|| {
        let text =
            format!("{of}{} left out of every mean and finding ({})", runs_are(runs), names(&bad));
        let severity = if none_left { Severity::Invalid } else { Severity::Degraded };
        notice(
            "invalid-runs",
            severity,
            text,
            "look at these runs, mend the cause, and measure again",
        )
    })
}

fn cut(of: &str, levels: &[LevelSummary]) -> Option<Notice> {
    let bad: Vec<&LevelSummary> = levels.iter().filter(|level| level.cut.is_some()).collect();
    let first = bad.first()?;
    let (ended, scheduled) = bad
        .iter()
        .filter_map(|level| level.cut.as_ref())
        .fold((0, 0), |(ended, all), cut| (ended + cut.ended, all + cut.scheduled));
    let limit = first.cut.as_ref().and_then(|cut| cut.limits.first()).cloned().unwrap_or_default();
    let text = format!(
        "{of}{ended} of {scheduled} requests ended at the levels that a limit cut ({}): {limit}",
        names(&bad)
    );
    Some(notice(
        "cut-levels",
        Severity::Degraded,
        text,
        "slow answers are missing there: give these levels more time (--duration, --drain-timeout) or \
         leave them out",
    ))
}

fn partial(of: &str, levels: &[LevelSummary]) -> Option<Notice> {
    let bad: Vec<&LevelSummary> = levels.iter().filter(|level| 0 < level.partial).collect();
    let runs: u32 = bad.iter().map(|level| level.partial).sum();
    (0 < runs).then(|| {
        let were = if runs == 1 { "run was" } else { "runs were" };
        let text = format!("{of}{runs} {were} stopped before the end ({})", names(&bad));
        notice("partial-runs", Severity::Degraded, text, "measure these levels again to their end")
    })
}

fn not_enough(of: &str, levels: &[LevelSummary]) -> Option<Notice> {
    let short = |level: &&LevelSummary| level.enough.as_ref().is_some_and(|enough| !enough.reached);
    let bad: Vec<&LevelSummary> = levels.iter().filter(short).collect();
    let target = bad.first()?.enough.as_ref()?;
    let text = format!(
        "{of}the half-width of {} is not within {} % of the mean ({})",
        target.quantity,
        target.target * 100.0,
        names(&bad)
    );
    Some(notice(
        "half-width",
        Severity::Note,
        text,
        "allow more runs (--repeat), make each longer, or be content with a wider interval",
    ))
}

fn few_runs(asked: &Asked, conditions: &[ConditionSummary]) -> Option<Notice> {
    let counts = conditions.iter().flat_map(|condition| &condition.levels);
    let fewest = counts.map(|level| u32::try_from(level.points.len()).unwrap_or(u32::MAX)).min()?;
    let remedy = match asked.question {
        QuestionKind::Repeat => "make five runs (--repeat 5)",
        QuestionKind::Sweep | QuestionKind::Search => "make five runs of each level (--repeat 5)",
    };
    let text = match fewest {
        1 => {
            "a level has one run: how much runs differ is not known, and intervals are from within it"
        }
        2 => "a level has two runs: the interval between them is wide for want of a third",
        _ => return None,
    };
    (fewest < RUNS_FEW).then(|| notice("few-runs", Severity::Note, text.to_owned(), remedy))
}

/// What runs warn of themselves, once for each kind.
fn of_runs(results: &[&PointResult]) -> Vec<Notice> {
    let mut kinds: BTreeMap<(&str, Severity), (usize, &Notice)> = BTreeMap::new();
    for notice in results.iter().flat_map(|result| &result.summary.warnings) {
        if notice.severity == Severity::Note {
            continue;
        }
        kinds.entry((&notice.key, notice.severity)).or_insert((0, notice)).0 += 1;
    }
    kinds
        .into_values()
        .map(|(runs, first)| Notice {
            text: format!("{runs} of {} runs: {}", results.len(), first.text),
            // An invalid run is left out, so what made it invalid spoils no number that is here.
            severity: first.severity.min(Severity::Degraded),
            ..first.clone()
        })
        .collect()
}

fn notice(key: &str, severity: Severity, text: String, remedy: &str) -> Notice {
    Notice { key: key.to_owned(), severity, text, remedy: remedy.to_owned() }
}

fn runs_are(runs: usize) -> String {
    if runs == 1 {
        "1 run is invalid and".to_owned()
    } else {
        format!("{runs} runs are invalid and")
    }
}

fn names(levels: &[&LevelSummary]) -> String {
    levels.iter().map(|level| level.level.to_string()).collect::<Vec<_>>().join(", ")
}
