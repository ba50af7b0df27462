//! The summary of a suite: the rows of its tables, in the order of its scenarios, and whether a prefix
//! cache answered them, by the server's report or by the speed of prefill.

use inferometer_model::spec::{Extent, LoadShape, Source};
use inferometer_model::study::{
    Condition, Level, Point, Prompts, Question, Scenario, Stage, StudySpec,
};
use serde::{Deserialize, Serialize};

use super::warnings::CONTAMINATION;
use super::{ConditionSummary, LevelSummary, PointResult};
use crate::judge::{CACHED_SHARE, new_prompts};
use crate::metric::{self, Quantity};
use crate::run::asked_lengths;
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteSummary {
    pub name: String,
    pub title: String,
    /// Results are comparable when it is equal.
    pub hash: String,
    /// Flags that changed it; empty for the suite as it is defined.
    pub changes: Vec<String>,
    pub prompts: Prompts,
    /// One for each level of each scenario. Its numbers are in the conditions of the set.
    pub rows: Vec<SuiteRow>,
    /// The condition whose levels are the scaling table: the first with several levels of
    /// concurrency.
    pub scaling: Option<u32>,
    /// Rows that a prefix cache answered, with the evidence.
    #[serde(default)]
    pub contaminated: Vec<Contaminated>,
}

/// One level of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteRow {
    /// Name on pages: the scenario, and its level where it has several, such as
    /// `Concurrency Scaling (c=4)`.
    pub name: String,
    pub scenario: String,
    pub category: String,
    pub purpose: String,
    /// Index of its scenario among the conditions of the set.
    pub condition: u32,
    pub level: Level,
    /// In flight at most; null for an open loop without a cap.
    pub concurrency: Option<u32>,
    /// As requested, such as `2048` or `2048±50%`; null where the data defines it.
    pub input_tokens: Option<String>,
    pub output_tokens: Option<String>,
    /// Requests of one run; null where time ends it.
    pub requests: Option<u64>,
    /// The runs that it comes from, by their numbers.
    pub points: Vec<u32>,
    /// Share of the input tokens that came from the server's prefix cache; null where the server does not
    /// report it.
    pub cached_share: Option<f64>,
}

impl SuiteSummary {
    /// `None` where the study is no suite. The results are in the order of their numbers.
    pub(super) fn summarize(
        study: &StudySpec,
        conditions: &[ConditionSummary],
        results: &[&PointResult],
    ) -> Option<Self> {
        let Question::Suite(suite) = &study.question else { return None };
        let mut rows: Vec<SuiteRow> = Vec::new();
        for (place, (condition, scenario)) in
            (0_u32..).zip(study.conditions.iter().zip(&suite.scenarios))
        {
            let levels = scenario.levels.iter();
            rows.extend(levels.map(|it| SuiteRow::new(study, (place, condition, scenario), *it)));
        }
        // The runs that count.
        for row in &mut rows {
            row.points = row.summary(conditions).map_or_else(Vec::new, |it| it.points.clone());
            let shares: Vec<f64> = cached_shares(row, results).collect();
            let mean = || shares.iter().sum::<f64>() / shares.len() as f64;
            row.cached_share = (!shares.is_empty()).then(mean);
        }
        let varied = |scenario: &Scenario| 1 < scenario.levels.len();
        let scaling = suite.scenarios.iter().position(varied);
        Some(Self {
            name: suite.name.clone(),
            title: suite.title.clone(),
            hash: suite.hash.clone(),
            changes: suite.changes.clone(),
            prompts: suite.prompts,
            contaminated: contaminated(study, &rows, conditions, results),
            rows,
            scaling: scaling.and_then(|place| u32::try_from(place).ok()),
        })
    }
}

impl SuiteRow {
    fn new(
        study: &StudySpec,
        (place, condition, scenario): (u32, &Condition, &Scenario),
        level: Level,
    ) -> Self {
        let stage = Stage::Planned;
        let point =
            Point { number: 0, condition: place, level, repetition: 0, seed: study.seed, stage };
        let spec = study.spec_of(&point).unwrap_or_else(|| condition.spec.clone());
        let concurrency = match &spec.load.shape {
            LoadShape::Closed { concurrency, .. } => Some(concurrency.get()),
            LoadShape::Open { cap, .. } => cap.map(std::num::NonZeroU32::get),
        };
        let (input, output) = asked_lengths(&spec.workload.source);
        let mut name = condition.name.clone();
        if let Level::Concurrency(users) = level
            && 1 < scenario.levels.len()
        {
            name = format!("{name} (c={users})");
        }
        Self {
            name,
            scenario: condition.name.clone(),
            category: scenario.category.clone(),
            purpose: scenario.purpose.clone(),
            condition: place,
            level,
            concurrency,
            input_tokens: input.map(|lengths| lengths.to_string()),
            output_tokens: output
                .filter(|_| spec.api.generates())
                .map(|lengths| lengths.to_string()),
            requests: if let Extent::Requests(requests) = spec.load.extent {
                Some(requests.get())
            } else {
                None
            },
            points: Vec::new(),
            cached_share: None,
        }
    }

    /// Its numbers; `None` while it has no run.
    pub fn summary<'a>(&self, conditions: &'a [ConditionSummary]) -> Option<&'a LevelSummary> {
        let condition = conditions.get(self.condition as usize)?;
        condition.levels.iter().find(|level| level.level == self.level)
    }
}

fn of_points<'a>(
    points: &'a [u32],
    results: &'a [&PointResult],
) -> impl Iterator<Item = &'a PointResult> {
    results.iter().copied().filter(|result| points.contains(&result.point.number))
}

fn cached_shares<'a>(row: &'a SuiteRow, results: &'a [&PointResult]) -> impl Iterator<Item = f64> {
    of_points(&row.points, results).filter_map(|it| cached_share(&it.summary))
}

/// By each answer's usage, else by the server's counters over the run.
pub(crate) fn cached_share(summary: &Summary) -> Option<f64> {
    let by_counters = || summary.server.as_ref()?.own_hit_share();
    summary.workload.audit.cache.share.or_else(by_counters)
}

/// A row whose prompts were in the server's prefix cache: they should be new, or its data had been sent
/// before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contaminated {
    /// Its index among the rows.
    pub row: u32,
    /// Whether the only evidence is its speed or the same data before it, because the server does not
    /// report cached tokens.
    pub suspected: bool,
    /// Whether its prompts need not be new and the same data was sent before, which may be intended.
    #[serde(default)]
    pub same_data: bool,
    /// The largest of its runs.
    pub cached_share: Option<f64>,
    /// Prompt tokens per second.
    pub pp: Option<f64>,
    /// The same of a row that was not in the cache and was no harder to read; null without one.
    pub pp_cold: Option<f64>,
    /// The index of that row.
    pub cold: Option<u32>,
    pub ttft_ms_mean: Option<f64>,
    /// Far below the mean where some prompts were in the cache and some were not.
    pub ttft_ms_p50: Option<f64>,
    /// Rows that had sent prompts with the same beginning, or the same data, in the order in which they
    /// did.
    pub sent_before: Vec<u32>,
}

fn contaminated(
    study: &StudySpec,
    rows: &[SuiteRow],
    conditions: &[ConditionSummary],
    results: &[&PointResult],
) -> Vec<Contaminated> {
    let mean = |row: &SuiteRow, of: Quantity| row.summary(conditions)?.quantity(of)?.mean;
    let pp = |row| mean(row, Quantity::from(&metric::PP));
    let ttft_ms_mean = |row| mean(row, metric::TTFT.mean());
    let states: Vec<Option<CacheState>> =
        rows.iter().map(|row| cache_state(study, row, results)).collect();
    let prefills: Vec<Option<Prefill>> = rows
        .iter()
        .zip(&states)
        .map(|(row, state)| {
            let speed = pp(row)?;
            let input_tokens = speed * ttft_ms_mean(row)? / 1e3;
            let state = (*state)?;
            // An open loop has no fixed concurrency.
            let condition = study.conditions.get(row.condition as usize)?;
            let is_closed = matches!(condition.spec.load.shape, LoadShape::Closed { .. });
            let concurrency = row.concurrency.filter(|_| is_closed)?;
            Some(Prefill { concurrency, input_tokens, speed, state })
        })
        .collect();
    let shown = compare_prefills(&prefills);
    let sent_before = rows.iter().map(|row| sent_before(study, row, rows, results));
    (0_u32..)
        .zip(rows)
        .zip(states.into_iter().zip(shown))
        .zip(sent_before)
        .filter_map(|(((place, row), (state, shown)), sent_before)| {
            // The run with the warmest cache counts.
            let cached_share = cached_shares(row, results).max_by(f64::total_cmp);
            let is_resent = state.is_none() && !sent_before.is_empty();
            let same_data = is_resent && cached_share.is_none_or(|share| CACHED_SHARE < share);
            let is_warm = state == Some(CacheState::Warm);
            (is_warm || shown.suspected || same_data).then(|| Contaminated {
                row: place,
                suspected: shown.suspected || same_data && cached_share.is_none(),
                same_data,
                cached_share,
                pp: pp(row),
                pp_cold: shown.cold.and_then(|cold| prefills[cold]).map(|cold| cold.speed),
                cold: shown.cold.and_then(|cold| u32::try_from(cold).ok()),
                ttft_ms_mean: ttft_ms_mean(row),
                ttft_ms_p50: mean(row, metric::TTFT.p50()),
                sent_before,
            })
        })
        .collect()
}

/// What is known of the cache of a row; `None` where its prompts need not be new.
fn cache_state(study: &StudySpec, row: &SuiteRow, results: &[&PointResult]) -> Option<CacheState> {
    let condition = study.conditions.get(row.condition as usize)?;
    new_prompts(&condition.spec.workload.source)?;
    let says_so = |result: &PointResult| {
        result.summary.warnings.iter().any(|notice| notice.key == CONTAMINATION)
    };
    Some(match row.cached_share {
        _ if of_points(&row.points, results).any(says_so) => CacheState::Warm,
        Some(_) => CacheState::Cold,
        None => CacheState::NotKnown,
    })
}

/// Prompt tokens of a scenario over its mean TTFT.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prefill {
    /// Requests in flight of the closed loop.
    concurrency: u32,
    /// Mean tokens of a prompt.
    input_tokens: f64,
    /// Tokens per second.
    speed: f64,
    state: CacheState,
}

/// Whether the prompts of a row were in the server's prefix cache, as the server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheState {
    Cold,
    Warm,
    NotKnown,
}

/// Lengths that differ by less are equal: a server adds a few tokens.
const SAME_LENGTH: f64 = 0.98;
/// Prompts that are longer by more than this cost more per token.
const TIMES_LONGER: f64 = 4.0;
/// From here on a speed is not explained by noise.
const TIMES_SUSPICIOUS: f64 = 2.0;

impl Prefill {
    /// Whether a token of the other's prompts costs at most as much.
    fn is_no_easier_than(&self, other: &Self) -> bool {
        let is_longer = self.input_tokens * SAME_LENGTH <= other.input_tokens;
        let is_near = other.input_tokens * SAME_LENGTH <= self.input_tokens * TIMES_LONGER;
        other.concurrency <= self.concurrency && is_longer && is_near
    }
}

/// What the prefill speeds show of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shown {
    /// The fastest comparable row that is not warm.
    cold: Option<usize>,
    /// Whether it is several times faster than that row without a known reason.
    suspected: bool,
}

/// Compares the speeds of all rows, in their order; rows without a speed show nothing.
fn compare_prefills(rows: &[Option<Prefill>]) -> Vec<Shown> {
    let mut order: Vec<(usize, Prefill)> =
        rows.iter().enumerate().filter_map(|(place, row)| Some((place, (*row)?))).collect();
    // The cheapest first, so that all rows that a row is compared with are judged before it.
    order.sort_by(|(_, one), (_, other)| {
        let by_users = one.concurrency.cmp(&other.concurrency);
        by_users.then(other.input_tokens.total_cmp(&one.input_tokens))
    });
    let mut shown = vec![Shown::default(); rows.len()];
    let mut cold: Vec<(usize, Prefill)> = Vec::new();
    for (place, row) in order {
        let easier = cold.iter().filter(|(_, other)| row.is_no_easier_than(other));
        let fastest = easier.max_by(|(_, one), (_, other)| one.speed.total_cmp(&other.speed));
        let is_fast = |(_, other): &(usize, Prefill)| TIMES_SUSPICIOUS * other.speed < row.speed;
        let suspected = row.state == CacheState::NotKnown && fastest.is_some_and(is_fast);
        shown[place] = Shown { cold: fastest.map(|(place, _)| *place), suspected };
        if row.state != CacheState::Warm && !suspected {
            cold.push((place, row));
        }
    }
    shown
}

/// The rows that had sent prompts with the same beginning, or the same data, before this row, in the
/// order in which they did.
fn sent_before(
    study: &StudySpec,
    row: &SuiteRow,
    rows: &[SuiteRow],
    results: &[&PointResult],
) -> Vec<u32> {
    let source = |condition: u32| {
        let condition = study.conditions.get(condition as usize)?;
        Some(&condition.spec.workload.source)
    };
    let Some(own) = source(row.condition) else { return Vec::new() };
    let mut found: Vec<u32> = Vec::new();
    for earlier in results {
        let Some(theirs) = source(earlier.point.condition) else { continue };
        let is_sent_before = of_points(&row.points, results)
            .filter(|later| earlier.point.number < later.point.number)
            .any(|later| sends_again(theirs, own, earlier.point.seed == later.point.seed));
        let place = rows.iter().position(|other| {
            (other.condition, other.level) == (earlier.point.condition, earlier.point.level)
        });
        let place = place.and_then(|place| u32::try_from(place).ok());
        found.extend(place.filter(|place| is_sent_before && !found.contains(place)));
    }
    found
}

/// Generated text depends on the seed: with the same one, prompts of any length begin alike. Files and
/// fixed prompts are the same with any seed.
fn sends_again(earlier: &Source, later: &Source, same_seed: bool) -> bool {
    match (earlier, later) {
        (Source::Dataset(one), Source::Dataset(other)) => one.path == other.path,
        (Source::Fixed(one), Source::Fixed(other)) => one.prompt == other.prompt,
        (Source::Trace(one), Source::Trace(other)) => one.path == other.path,
        (Source::Sessions(one), Source::Sessions(other)) => one.path == other.path,
        (Source::Saved { path: one, .. }, Source::Saved { path: other, .. }) => one == other,
        (Source::Mix(parts), other) | (other, Source::Mix(parts)) => {
            parts.iter().any(|part| sends_again(&part.source, other, same_seed))
        }
        (one, other) => same_seed && one.writes_words() && one.kind() == other.kind(),
    }
}

#[cfg(test)]
mod tests;
