//! The tables of warnings about a set: about the levels of one condition, about a set that is no
//! matrix, and about a matrix. To add a warning, add its entry here, and its remedy to
//! `judge/remedies.txt`.

use std::collections::BTreeMap;
use std::fmt::Write;

use inferometer_model::deployment::LikelyCause;
use inferometer_model::fmt;
use inferometer_model::spec::Source;
use inferometer_model::study::{DeploymentRecord, Level, Prompts, StudySpec};

use super::level::{AcrossRuns, Cut, LevelSummary, Reached};
use super::suite::{Contaminated, SuiteSummary, cached_share};
use super::{ConditionSummary, PointResult, QuestionKind, StudyFacts};
use crate::judge::{
    CACHED_SHARE, CACHED_SHARE_GRAVE, Raised, Rule, Severity, Warning, by_severity, degraded, note,
    raise,
};
use crate::matrix::{MatrixRow, MatrixSummary};

/// A mean this far above the median comes from two kinds of prompts.
const MEAN_OVER_MEDIAN: f64 = 1.5;
/// Cells that a warning names; the others are counted.
const NAMED_MAX: usize = 4;
/// GPU memory that a driver may keep for itself when a server is gone.
const MEMORY_KEPT_BYTES: u64 = 256 << 20;

/// Key of a run's warning that its prompts were in the prefix cache.
pub(super) const CONTAMINATION: &str = "cache-contamination";

const fn rule<F: Copy>(key: &'static str, raise: F) -> Rule<F> {
    Rule { key, check: None, raise }
}

type LevelRule = Rule<fn(&[LevelSummary]) -> Option<Raised>>;
type SetRule = Rule<fn(&SetContext<'_>) -> Option<Raised>>;

/// The set that warnings look at.
pub(super) struct SetContext<'a> {
    pub(super) study: &'a StudySpec,
    pub(super) asked: &'a StudyFacts,
    pub(super) conditions: &'a [ConditionSummary],
    pub(super) suite: Option<&'a SuiteSummary>,
    pub(super) matrix: Option<&'a MatrixSummary>,
    pub(super) results: &'a [&'a PointResult],
}

/// Warnings about a set, the most severe first. A matrix has one for each kind, since it has too many
/// cells for a warning each.
pub(super) fn set_warnings(set: &SetContext<'_>) -> Vec<Warning> {
    let is_named = set.matrix.is_some() || 1 < set.conditions.len();
    let levels = set.conditions.iter().flat_map(|one| level_warnings(one, is_named));
    let raised =
        |rules: &'static [SetRule]| rules.iter().filter_map(|rule| rule.warning((rule.raise)(set)));
    let mut warnings: Vec<Warning> = if set.matrix.is_some() {
        let cells = by_kind(levels, |warning| warning.key.clone()).map(|(cells, _, first)| {
            let more = match cells {
                1 => String::new(),
                2 => "; one other cell has the same warning".to_owned(),
                _ => format!("; {} other cells have the same warning", cells - 1),
            };
            Warning { text: first.text + &more, ..first }
        });
        let identical = rule("identical-runs", ()).warning(identical_runs(set.conditions));
        raised(MATRIX_RULES).chain(cells).chain(identical).collect()
    } else {
        levels.chain(raised(SET_RULES)).collect()
    };
    let of_runs = set.results.iter().flat_map(|result| &result.summary.warnings);
    let of_runs = of_runs.filter(|warning| match set.suite {
        None => warning.severity != Severity::Note,
        // A suite reports which of its scenarios were warm; only runs know about earlier runs.
        Some(_) if warning.key == CONTAMINATION => false,
        Some(_) => warning.severity != Severity::Note || warning.key == "seen-before",
    });
    let kinds = by_kind(of_runs.cloned(), |warning| (warning.key.clone(), warning.severity));
    warnings.extend(kinds.map(|(runs, is_alike, first)| Warning {
        text: format!(
            "{runs} of {} runs{}: {}",
            set.results.len(),
            if is_alike { "" } else { ", the first of them" },
            first.text
        ),
        // An invalid run is left out, so what made it invalid affects no number of the set.
        severity: first.severity.min(Severity::Degraded),
        ..first
    }));
    by_severity(warnings)
}

fn level_warnings(condition: &ConditionSummary, is_named: bool) -> Vec<Warning> {
    let raised =
        LEVEL_RULES.iter().filter_map(|rule| rule.warning((rule.raise)(&condition.levels)));
    let name = if is_named { format!("{}: ", condition.name) } else { String::new() };
    raised.map(|it| Warning { text: format!("{name}{}", it.text), ..it }).collect()
}

/// Each kind of warning once, with the number of warnings, whether all say the same, and their highest
/// severity.
fn by_kind<K: Ord>(
    warnings: impl Iterator<Item = Warning>,
    kind: impl Fn(&Warning) -> K,
) -> impl Iterator<Item = (usize, bool, Warning)> {
    let mut kinds: BTreeMap<K, (usize, bool, Warning)> = BTreeMap::new();
    for warning in warnings {
        let (count, is_alike, first) =
            kinds.entry(kind(&warning)).or_insert_with(|| (0, true, warning.clone()));
        *count += 1;
        *is_alike &= first.text == warning.text;
        first.severity = first.severity.max(warning.severity);
    }
    kinds.into_values()
}

static LEVEL_RULES: &[LevelRule] = &[
    rule("invalid-runs", |levels| {
        let bad = those(levels, |one| !one.left_out.is_empty())?;
        let empty: Vec<&LevelSummary> =
            bad.iter().copied().filter(|level| level.points.is_empty()).collect();
        let left = match at(&empty).as_str() {
            _ if empty.is_empty() => String::new(),
            "" => "; no valid run is left".to_owned(),
            _ => format!("; no valid run is left of {}", names(&empty)),
        };
        let are = match bad.iter().map(|level| level.left_out.len()).sum() {
            1 => "1 run is".to_owned(),
            runs => format!("{runs} runs are"),
        };
        let excluded = "invalid and excluded from every mean and finding";
        degraded(format!("{are} {excluded}{}{left}", at(&bad)))
    }),
    rule("cut-levels", |levels| {
        let (bad, ended, scheduled, limit) = cut_levels(levels, true)?;
        degraded(format!(
            "{ended} of {scheduled} requests ended at the levels that a time limit cut{}: {limit}",
            at(&bad)
        ))
    }),
    rule("short-levels", |levels| {
        // Fewer requests than were allowed; all that were sent have ended, so nothing is missing.
        let (bad, ended, scheduled, _) = cut_levels(levels, false)?;
        note(format!(
            "the duration ended after {ended} of {scheduled} requests{}; all that were sent have \
             ended",
            at(&bad)
        ))
    }),
    rule("level-not-reached", |levels| {
        let bad = those(levels, |level| !level.is_reached())?;
        let bad: Vec<Reached> = bad.iter().filter_map(|level| level.reached).collect();
        let is_grave = bad.iter().any(|found| found.is_grave());
        let severity = if is_grave { Severity::Degraded } else { Severity::Note };
        let listed: Vec<String> =
            bad.iter().map(|found| format!("{} of {}", found.most, found.asked)).collect();
        let text = format!(
            "the requested concurrency was not reached, so metrics per user include users who did \
             not exist: at most {} in flight",
            listed.join(", ")
        );
        raise(severity, text)
    }),
    rule("partial-runs", |levels| {
        let bad = those(levels, |level| 0 < level.partial)?;
        let runs: u32 = bad.iter().map(|level| level.partial).sum();
        let were = if runs == 1 { "run was" } else { "runs were" };
        degraded(format!("{runs} {were} stopped before the end{}", at(&bad)))
    }),
    rule("half-width", |levels| {
        let bad = those(levels, |one| one.enough.as_ref().is_some_and(|it| !it.reached))?;
        let target = bad.first()?.enough.as_ref()?;
        let (quantity, percent) = (&target.quantity, target.target * 100.0);
        let text = format!("the half-width of {quantity} is not within {percent} % of the mean");
        note(text + &at(&bad))
    }),
];

/// Where all lengths are fixed and nothing is drawn, other seeds give the same run.
fn identical_runs(conditions: &[ConditionSummary]) -> Option<Raised> {
    let is_simulated = |one: &&ConditionSummary| {
        one.subject.as_ref().is_some_and(|subject| subject.simulated.is_some())
    };
    let simulated = conditions.iter().filter(is_simulated).flat_map(|one| &one.levels);
    let mut levels = simulated.filter(|level| 1 < level.points.len()).peekable();
    levels.peek()?;
    let is_identical =
        |level: &LevelSummary| level.quantities.values().all(AcrossRuns::is_same_in_all);
    let text = "all runs are identical: a simulation without noise repeats itself, so its intervals \
                have no meaning";
    if levels.all(is_identical) { note(text) } else { None }
}

/// Warnings about a set that is no matrix.
static SET_RULES: &[SetRule] = &[
    rule("few-runs", |set| {
        let levels = set.conditions.iter().flat_map(|condition| &condition.levels);
        let text = match levels.map(|level| level.points.len()).min()? {
            1 if set.asked.question == QuestionKind::Suite => {
                "the suite ran once: the spread between runs is not known, and intervals are from \
                 within each run"
            }
            1 => {
                "a level has one run: the spread between runs is not known, and intervals are from \
                 within it"
            }
            2 => "a level has two runs: the interval between them is wide",
            // Without a run there is nothing to repeat.
            _ => return None,
        };
        Some(note(text)?.with_remedy(match set.asked.question {
            QuestionKind::Repeat => "-repeat",
            QuestionKind::Sweep => "-sweep",
            QuestionKind::Search => "-search",
            QuestionKind::Suite => "-suite",
            QuestionKind::Matrix => "-matrix",
        }))
    }),
    rule("identical-runs", |set| identical_runs(set.conditions)),
    rule("warm-cache", |set| {
        let suite = set.suite?;
        let rows = contaminated(suite, |row| !row.same_data && !row.suspected)?;
        let is_grave =
            |row: &&Contaminated| row.cached_share.is_some_and(|share| CACHED_SHARE_GRAVE < share);
        let severity = if rows.iter().any(is_grave) { Severity::Degraded } else { Severity::Note };
        let text = format!(
            "the prefix cache answered prompts that should be new (share of the input): {}{}",
            scenarios(suite, &rows),
            evidence(suite, &rows)
        );
        Some(raise(severity, text)?.with_remedy(prompts_suffix(suite)))
    }),
    rule("cache-suspected", |set| {
        let suite = set.suite?;
        let rows = contaminated(suite, |row| !row.same_data && row.suspected)?;
        let text = format!(
            "the server does not report cached tokens, and the prefill of some prompts was so fast \
             that they may have been in its prefix cache: {}{}",
            scenarios(suite, &rows),
            evidence(suite, &rows)
        );
        Some(note(text)?.with_remedy(prompts_suffix(suite)))
    }),
    rule("same-data", |set| {
        let suite = set.suite?;
        let rows = contaminated(suite, |row| row.same_data)?;
        let first = rows.first()?.sent_before.first()?;
        note(format!(
            "the same data was sent before, first by {}, and may be in the prefix cache (share of the \
             input where the server reports it): {}",
            scenario(suite, *first),
            scenarios(suite, &rows)
        ))
    }),
    rule("engine-anew", |set| {
        set.suite?;
        // An embedded engine that is kept through a suite has one address; a suite that was
        // stopped and resumed has another from there on.
        let is_anew = |pair: &&[&PointResult]| {
            let (before, after) = (&pair[0].summary.run, &pair[1].summary.run);
            after.embedded
                && after.simulated.is_none()
                && pair[0].point.repetition == pair[1].point.repetition
                && before.target != after.target
        };
        let number = set.results.windows(2).find(is_anew)?[1].point.number;
        note(format!(
            "the suite was interrupted and resumed: run {number} and later runs used a new engine \
             with an empty prefix cache"
        ))
    }),
];

static MATRIX_RULES: &[SetRule] = &[
    rule("cells-failed", |it| {
        let (cells, listed) = it.cells(
            |row| row.ending.failure().is_some() && row.unfit().is_none(),
            |row| row.ending.failure().map(|it| it.stage.to_string()),
        )?;
        degraded(format!("{cells} failed, completely or in part: {listed}"))
    }),
    rule("cells-unfit", |it| {
        // A model that does not fit is a result, and no fault of the measurement.
        let (cells, listed) =
            it.cells(|row| row.unfit() == Some(LikelyCause::OutOfMemory), |_| None)?;
        note(format!("{cells} could not be deployed for lack of memory: {listed}"))
    }),
    rule("cells-not-divided", |it| {
        let (cells, listed) =
            it.cells(|row| row.unfit() == Some(LikelyCause::CannotSpread), |_| None)?;
        let why = "because the model cannot be divided among so many GPUs";
        note(format!("{cells} could not be deployed {why}: {listed}"))
    }),
    rule("cells-missing", |it| {
        let runs = it.study.repetition.runs.get() as usize;
        let is_missing = |row: &MatrixRow| row.points.len() + row.failed_points.len() < runs;
        let (cells, listed) = it.cells(is_missing, |_| None)?;
        degraded(format!("{cells} are not fully measured: {listed}"))
    }),
    rule("cells-with-errors", |it| {
        let errors = |row: &MatrixRow| Some(format!("{} of {}", row.errors, row.requests));
        let (cells, listed) = it.cells(|row| 0 < row.errors, errors)?;
        degraded(format!(
            "{cells} have failed requests: {listed}; their metrics describe the requests that \
             succeeded, under less load than requested, so they cannot win"
        ))
    }),
    rule("servers-left", |it| {
        // What one server leaves is there when the next is measured.
        let is_unclean = |record: &&DeploymentRecord| {
            record.departure.as_ref().is_some_and(|it| {
                let kept = it.gpu_memory.map_or(0, |(before, after)| after.saturating_sub(before));
                !it.left.is_empty() || !it.port_closed || MEMORY_KEPT_BYTES < kept
            })
        };
        let mut cells: Vec<u32> =
            it.matrix?.deployments.iter().filter(is_unclean).map(|it| it.condition).collect();
        cells.sort_unstable();
        let (cells, listed) = it.named(cells, |_| None)?;
        let left = "left a process, an open port or used GPU memory behind";
        degraded(format!("servers of {cells} {left}: {listed}"))
    }),
    rule("same-prompt", same_prompt),
    rule("one-run", |it| {
        let (cells, _) = it.cells(|row| row.points.len() == 1, |_| None)?;
        note(format!(
            "{cells} have one run each: the spread between deployments is not known, and no winner \
             among them is certain"
        ))
    }),
];

/// One prompt for all requests is in the cache from the second request on.
fn same_prompt(it: &SetContext<'_>) -> Option<Raised> {
    let is_fixed = |cell: u32| {
        let condition = it.study.conditions.get(cell as usize);
        condition.is_some_and(|it| matches!(it.spec.workload.source, Source::Fixed(_)))
    };
    let fixed = it.results.iter().filter(|result| is_fixed(result.point.condition));
    let shares: Vec<Option<f64>> = fixed.map(|result| cached_share(&result.summary)).collect();
    let known = || shares.iter().flatten().copied();
    let warm = || known().filter(|share| CACHED_SHARE < *share);
    match warm().max_by(f64::total_cmp) {
        Some(highest) => note(format!(
            "every request sends the same prompt, and in {} of {} runs the prefix cache answered part \
             of it (up to {} of the input): prompt tokens per second include cached tokens",
            warm().count(),
            shares.len(),
            fmt::percent(highest)
        )),
        None if known().count() < shares.len() => note(
            "every request sends the same prompt, and the servers do not report cached tokens: prompt \
             tokens per second may include cached tokens",
        ),
        None => None,
    }
}

/// `None` where no level is so.
fn those(
    levels: &[LevelSummary],
    is_so: impl Fn(&LevelSummary) -> bool,
) -> Option<Vec<&LevelSummary>> {
    let those: Vec<&LevelSummary> = levels.iter().filter(|level| is_so(level)).collect();
    (!those.is_empty()).then_some(those)
}

/// The levels that were cut with or without answers missing, their requests, and the first limit.
fn cut_levels(
    levels: &[LevelSummary],
    answers_missing: bool,
) -> Option<(Vec<&LevelSummary>, String, String, String)> {
    let is_wanted = |cut: &Cut| cut.answers_missing == answers_missing;
    let bad = those(levels, |level| level.cut.as_ref().is_some_and(is_wanted))?;
    let cuts = || bad.iter().filter_map(|level| level.cut.as_ref());
    let limit = cuts().next()?.limits.first().cloned().unwrap_or_default();
    let ended = fmt::count(cuts().map(|cut| cut.ended).sum());
    let scheduled = fmt::count(cuts().map(|cut| cut.scheduled).sum());
    Some((bad, ended, scheduled, limit))
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

/// `None` where no row is so.
fn contaminated(
    suite: &SuiteSummary,
    is_wanted: impl Fn(&Contaminated) -> bool,
) -> Option<Vec<&Contaminated>> {
    let rows: Vec<_> = suite.contaminated.iter().filter(|row| is_wanted(row)).collect();
    (!rows.is_empty()).then_some(rows)
}

/// Which remedy applies to prompts in the cache.
const fn prompts_suffix(suite: &SuiteSummary) -> &'static str {
    match suite.prompts {
        Prompts::Same => "-same",
        Prompts::Fresh => "-fresh",
    }
}

fn scenario(suite: &SuiteSummary, place: u32) -> &str {
    suite.rows.get(place as usize).map_or("a scenario", |row| &row.name)
}

/// The scenarios of these rows, with their share where it is known.
fn scenarios(suite: &SuiteSummary, rows: &[&Contaminated]) -> String {
    let row = |row: &&Contaminated| {
        let name = scenario(suite, row.row);
        row.cached_share
            .map_or_else(|| name.to_owned(), |share| format!("{name} {}", fmt::percent(share)))
    };
    rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

/// What the numbers show, each by the row that shows it best.
fn evidence(suite: &SuiteSummary, rows: &[&Contaminated]) -> String {
    let mut text = String::new();
    let best = |of: fn(&Contaminated) -> Option<f64>| {
        let known = rows.iter().filter_map(|row| Some((*row, of(row)?)));
        known.max_by(|(_, one), (_, other)| one.total_cmp(other))
    };
    let times = |row: &Contaminated| Some(row.pp? / row.pp_cold?);
    if let Some((row, _)) = best(times).filter(|(_, times)| 1.0 < *times)
        && let (Some(pp), Some(pp_cold), Some(cold)) = (row.pp, row.pp_cold, row.cold)
    {
        let _ = write!(
            text,
            "; {} has a prefill speed of {} tokens/s and {} of {}",
            scenario(suite, row.row),
            fmt::number(pp),
            scenario(suite, cold),
            fmt::number(pp_cold)
        );
    }
    let apart = |row: &Contaminated| Some(row.ttft_ms_mean? / row.ttft_ms_p50?);
    if let Some((row, _)) = best(apart).filter(|(_, apart)| MEAN_OVER_MEDIAN <= *apart)
        && let (Some(mean), Some(median)) = (row.ttft_ms_mean, row.ttft_ms_p50)
    {
        let _ = write!(
            text,
            "; the mean TTFT of {} is {} ms and its median {} ms: some of its prompts \
             were cached and some were not",
            scenario(suite, row.row),
            fmt::number(mean),
            fmt::number(median)
        );
    }
    let longest = rows.iter().max_by_key(|row| row.sent_before.len());
    if let Some((first, more)) = longest.and_then(|row| row.sent_before.split_first()) {
        let others = if more.is_empty() { "" } else { " and later scenarios" };
        let first = scenario(suite, *first);
        let _ = write!(text, "; {first}{others} sent prompts with the same beginning and seed");
    }
    text
}

impl SetContext<'_> {
    /// The number of cells with such a row, and the first few of them by name, each with the detail of
    /// its first row that has one. `None` without any.
    fn cells(
        &self,
        is_so: impl Fn(&MatrixRow) -> bool,
        detail: impl Fn(&MatrixRow) -> Option<String>,
    ) -> Option<(String, String)> {
        let rows = self.matrix?.rows.iter().filter(|row| is_so(row));
        self.named(rows.map(|row| row.cell).collect(), detail)
    }

    fn named(
        &self,
        mut cells: Vec<u32>,
        detail: impl Fn(&MatrixRow) -> Option<String>,
    ) -> Option<(String, String)> {
        let rows = &self.matrix?.rows;
        cells.dedup();
        let named = cells.iter().take(NAMED_MAX).map(|cell| {
            let condition = self.study.conditions.get(*cell as usize);
            let name = condition.map_or("a cell that is not in the plan", |it| it.name.as_str());
            let mut own = rows.iter().filter(|row| row.cell == *cell);
            match own.find_map(&detail) {
                Some(detail) => format!("{name} ({detail})"),
                None => name.to_owned(),
            }
        });
        let more = cells.len().saturating_sub(NAMED_MAX);
        let named = named.chain((0 < more).then(|| format!("and {more} more")));
        let count = format!("{} of {} cells", cells.len(), self.study.conditions.len());
        (!cells.is_empty()).then(|| (count, named.collect::<Vec<_>>().join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_has_a_remedy() {
        let keys = LEVEL_RULES.iter().map(|rule| rule.key);
        let keys = keys.chain(SET_RULES.iter().map(|rule| rule.key));
        for key in keys.chain(MATRIX_RULES.iter().map(|rule| rule.key)) {
            let suffixes: &[&'static str] = match key {
                "few-runs" => &["-repeat", "-sweep", "-search", "-suite", "-matrix"],
                "warm-cache" | "cache-suspected" => &["-same", "-fresh"],
                _ => &[""],
            };
            for suffix in suffixes {
                let raised = note("").map(|it| it.with_remedy(suffix));
                assert!(!rule(key, ()).warning(raised).unwrap().remedy.is_empty());
            }
        }
    }
}
