//! Reasons to doubt a set, each with what to do about it.

use std::collections::BTreeMap;

use inferometer_model::campaign::{CampaignSpec, Level};

use super::across::Across;
use super::asked::{Asked, QuestionKind};
use super::cut::Cut;
use super::level::LevelSummary;
use super::reached::Reached;
use super::suite::{self, SuiteSummary};
use super::{ConditionSummary, PointResult};
use crate::judge::Severity;
use crate::judge::Warning;
use crate::matrix::{self, MatrixSummary};

/// Below this many runs a level's interval is wide for want of runs alone.
const RUNS_FEW: u32 = 3;

/// The gravest first.
pub(super) fn found(
    asked: &Asked,
    conditions: &[ConditionSummary],
    suite: Option<&SuiteSummary>,
    results: &[&PointResult],
) -> Vec<Warning> {
    let mut notices: Vec<Warning> = conditions
        .iter()
        .flat_map(|condition| of_condition(condition, 1 < conditions.len()))
        .chain(few_runs(asked, conditions))
        .chain(identical(conditions))
        .chain(suite.map(suite::notices).unwrap_or_default())
        .chain(suite.and_then(|_| engine_anew(results)))
        .chain(of_runs(results, |notice| match suite {
            None => notice.severity != Severity::Note,
            // A suite says which of its scenarios was warm, and by what it shows; of what others sent
            // before it only its runs know.
            Some(_) if notice.key == suite::CONTAMINATION => false,
            Some(_) => notice.severity != Severity::Note || notice.key == suite::SEEN_BEFORE,
        }))
        .collect();
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.severity));
    notices
}

/// The same for a matrix, whose cells are too many for a notice each.
pub(super) fn of_matrix(
    matrix: &MatrixSummary,
    campaign: &CampaignSpec,
    conditions: &[ConditionSummary],
    results: &[&PointResult],
) -> Vec<Warning> {
    let of_cells = conditions.iter().flat_map(|condition| of_condition(condition, true));
    let mut notices: Vec<Warning> = matrix::notices::found(matrix, campaign, results)
        .into_iter()
        .chain(matrix::notices::gathered(of_cells))
        .chain(identical(conditions))
        .chain(of_runs(results, |notice| notice.severity != Severity::Note))
        .collect();
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.severity));
    notices
}

fn of_condition(condition: &ConditionSummary, named: bool) -> Vec<Warning> {
    let of = if named { format!("{}: ", condition.name) } else { String::new() };
    let levels = &condition.levels;
    let found = [invalid_runs, cut, shortened, not_reached, partial, not_enough];
    found.into_iter().filter_map(|of_levels| of_levels(&of, levels)).collect()
}

fn invalid_runs(of: &str, levels: &[LevelSummary]) -> Option<Warning> {
    let bad: Vec<&LevelSummary> = levels.iter().filter(|one| !one.left_out.is_empty()).collect();
    let runs: usize = bad.iter().map(|level| level.left_out.len()).sum();
    let is_empty = |level: &&LevelSummary| level.points.is_empty();
    let empty: Vec<&LevelSummary> = bad.iter().copied().filter(is_empty).collect();
    (0 < runs).then(|| {
        let left = match at(&empty).as_str() {
            _ if empty.is_empty() => String::new(),
            "" => "; nothing is left".to_owned(),
            _ => format!("; nothing is left of {}", names(&empty)),
        };
        let text =
            format!("{of}{} left out of every mean and finding{}{left}", runs_are(runs), at(&bad));
        let remedy = "look at these runs, mend the cause, and measure again";
        notice("invalid-runs", Severity::Degraded, text, remedy)
    })
}

fn cut(of: &str, levels: &[LevelSummary]) -> Option<Warning> {
    let (bad, ended, scheduled, limit) = cut_levels(levels, true)?;
    let text = format!(
        "{of}{ended} of {scheduled} requests ended at the levels that a limit cut{}: {limit}",
        at(&bad)
    );
    let remedy = "slow answers are missing there: give these levels more time (--duration, \
                  --drain-timeout) or leave them out";
    Some(notice("cut-levels", Severity::Degraded, text, remedy))
}

/// Fewer requests than were allowed: all that left have ended, so nothing is missing.
fn shortened(of: &str, levels: &[LevelSummary]) -> Option<Warning> {
    let (bad, ended, scheduled, _) = cut_levels(levels, false)?;
    let text = format!(
        "{of}the time was over at {ended} of {scheduled} requests{}; all that left have ended",
        at(&bad)
    );
    let remedy = "give these levels more time (--duration) where narrower intervals are wanted";
    Some(notice("short-levels", Severity::Note, text, remedy))
}

/// The levels that were cut with or without answers missing, their requests, and the first limit.
fn cut_levels(
    levels: &[LevelSummary],
    answers_missing: bool,
) -> Option<(Vec<&LevelSummary>, u64, u64, String)> {
    let is_wanted = |cut: &Cut| cut.answers_missing == answers_missing;
    let found = |level: &&LevelSummary| level.cut.as_ref().is_some_and(is_wanted);
    let bad: Vec<&LevelSummary> = levels.iter().filter(found).collect();
    let cuts = || bad.iter().filter_map(|level| level.cut.as_ref());
    let limit = cuts().next()?.limits.first().cloned().unwrap_or_default();
    let ended = cuts().map(|cut| cut.ended).sum();
    let scheduled = cuts().map(|cut| cut.scheduled).sum();
    Some((bad, ended, scheduled, limit))
}

fn not_reached(of: &str, levels: &[LevelSummary]) -> Option<Warning> {
    let bad = levels.iter().filter(|level| !level.is_reached());
    let bad: Vec<Reached> = bad.filter_map(|level| level.reached).collect();
    let listed = |found: &Reached| format!("{} of {}", found.most, found.asked);
    let is_grave = bad.iter().any(|found| found.is_grave());
    (!bad.is_empty()).then(|| {
        let text = format!(
            "{of}never were as many requests in flight as asked for, so that figures per user count \
             users who were not there: {} at most",
            bad.iter().map(listed).collect::<Vec<_>>().join(", ")
        );
        let severity = if is_grave { Severity::Degraded } else { Severity::Note };
        let remedy = "send at least as many requests as the concurrency, better ten times as many \
                      (--requests; in a sweep --waves 10)";
        notice("level-not-reached", severity, text, remedy)
    })
}

fn partial(of: &str, levels: &[LevelSummary]) -> Option<Warning> {
    let bad: Vec<&LevelSummary> = levels.iter().filter(|level| 0 < level.partial).collect();
    let runs: u32 = bad.iter().map(|level| level.partial).sum();
    (0 < runs).then(|| {
        let were = if runs == 1 { "run was" } else { "runs were" };
        let text = format!("{of}{runs} {were} stopped before the end{}", at(&bad));
        notice("partial-runs", Severity::Degraded, text, "measure these levels again to their end")
    })
}

fn not_enough(of: &str, levels: &[LevelSummary]) -> Option<Warning> {
    let short = |level: &&LevelSummary| level.enough.as_ref().is_some_and(|enough| !enough.reached);
    let bad: Vec<&LevelSummary> = levels.iter().filter(short).collect();
    let target = bad.first()?.enough.as_ref()?;
    let text = format!(
        "{of}the half-width of {} is not within {} % of the mean{}",
        target.quantity,
        target.target * 100.0,
        at(&bad)
    );
    Some(notice(
        "half-width",
        Severity::Note,
        text,
        "allow more runs (--repeat), make each longer, or be content with a wider interval",
    ))
}

fn few_runs(asked: &Asked, conditions: &[ConditionSummary]) -> Option<Warning> {
    let counts = conditions.iter().flat_map(|condition| &condition.levels);
    let fewest = counts.map(|level| u32::try_from(level.points.len()).unwrap_or(u32::MAX)).min()?;
    let remedy = match asked.question {
        QuestionKind::Repeat => "make five runs (--repeat 5)",
        QuestionKind::Sweep | QuestionKind::Search => "make five runs of each level (--repeat 5)",
        QuestionKind::Suite => "play the suite five times (--repeat 5)",
        QuestionKind::Matrix => "measure every cell five times (--repeat 5)",
    };
    let text = match fewest {
        1 if asked.question == QuestionKind::Suite => {
            "the suite was played once: how much runs differ is not known, and intervals are from \
             within each"
        }
        1 => {
            "a level has one run: how much runs differ is not known, and intervals are from within it"
        }
        2 => "a level has two runs: the interval between them is wide for want of a third",
        _ => return None,
    };
    (fewest < RUNS_FEW).then(|| notice("few-runs", Severity::Note, text.to_owned(), remedy))
}

/// Seeds differ, yet where all lengths are fixed and nothing is drawn, all runs are one.
fn identical(conditions: &[ConditionSummary]) -> Option<Warning> {
    let levels = || {
        let simulated = conditions
            .iter()
            .filter(|one| one.subject.as_ref().is_some_and(|subject| subject.simulated.is_some()));
        simulated.flat_map(|one| &one.levels).filter(|level| 1 < level.points.len())
    };
    let is_identical = |level: &LevelSummary| level.quantities.values().all(Across::is_same_in_all);
    (levels().next().is_some() && levels().all(is_identical)).then(|| {
        let text = "all runs are equal to the last digit: a simulation without noise repeats itself, \
                    so that its intervals say nothing";
        notice("identical-runs", Severity::Note, text.to_owned(), "draw the steps of the engine (--noise)")
    })
}

/// An embedded engine that is kept through a suite has one address; a suite that was stopped and gone
/// on with has another from there on.
fn engine_anew(results: &[&PointResult]) -> Option<Warning> {
    let is_anew = |pair: &[&PointResult]| {
        let (before, after) = (&pair[0].summary.run, &pair[1].summary.run);
        after.embedded
            && after.simulated.is_none()
            && pair[0].point.repetition == pair[1].point.repetition
            && before.target != after.target
    };
    let pair = results.windows(2).find(|pair| is_anew(pair))?;
    let number = pair[1].point.number;
    let text = format!(
        "the suite was stopped and gone on with: run {number} and those after it met a new engine, \
         whose prefix cache was empty"
    );
    let remedy = "play the suite again without a stop where a warm cache matters";
    Some(notice("engine-anew", Severity::Note, text, remedy))
}

/// What runs warn of themselves, once for each kind.
fn of_runs(results: &[&PointResult], is_told: impl Fn(&Warning) -> bool) -> Vec<Warning> {
    let mut kinds: BTreeMap<(&str, Severity), (usize, &Warning)> = BTreeMap::new();
    for notice in results.iter().flat_map(|result| &result.summary.warnings) {
        if !is_told(notice) {
            continue;
        }
        kinds.entry((&notice.key, notice.severity)).or_insert((0, notice)).0 += 1;
    }
    kinds
        .into_values()
        .map(|(runs, first)| Warning {
            text: format!("{runs} of {} runs: {}", results.len(), first.text),
            // An invalid run is left out, so what made it invalid spoils no number that is here.
            severity: first.severity.min(Severity::Degraded),
            ..first.clone()
        })
        .collect()
}

fn notice(key: &str, severity: Severity, text: String, remedy: &str) -> Warning {
    Warning { key: key.to_owned(), check: None, severity, text, remedy: remedy.to_owned() }
}

fn runs_are(runs: usize) -> String {
    if runs == 1 {
        "1 run is invalid and".to_owned()
    } else {
        format!("{runs} runs are invalid and")
    }
}

/// The levels in brackets; nothing where nothing is varied.
fn at(levels: &[&LevelSummary]) -> String {
    match levels {
        [only] if only.level == Level::AsAsked => String::new(),
        several => format!(" ({})", names(several)),
    }
}

fn names(levels: &[&LevelSummary]) -> String {
    levels.iter().map(|level| level.level.to_string()).collect::<Vec<_>>().join(", ")
}
