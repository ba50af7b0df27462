//! The highest level at which every goal is met.
//!
//! 1. **Bracket.** What the sweep measured is the first evidence. More load never makes a service
//!    better, so the limit lies below the lowest level that is not met, and the highest met level
//!    below that one is the best known. Without a met level the load is halved, without a missed
//!    one doubled, up to the highest that may be asked.
//! 2. **Bisect** geometrically until the two ends are a third of the resolution apart. A level takes
//!    as many runs as `judgement` needs, up to its cap: one where its interval is certain and clear of
//!    the limit, three and more where a percentile is not certified. One that stays undecided counts
//!    as not met. That makes the answer low rather than high, by the width of what cannot be decided;
//!    the narrow steps are what keeps it within the resolution all the same.
//! 3. **Confirm.** The best level was chosen because it looked good, so its own runs flatter it. Runs
//!    on fresh seeds must meet the goals without the old ones; otherwise the answer is a
//!    step lower, and that is to be confirmed instead.
//!
//! Retrying a level until it passes would find limits that are too high. Here no level gets a second
//! chance: what was once not met stays not met.

use std::num::NonZeroU32;

use inferometer_analysis::Threshold;
use inferometer_analysis::set::FoundLimit;
use inferometer_model::study::{Dimension, Level, Point, Search, Stage, StudySpec, Sweep};
use inferometer_model::whole::to_u32;
use inferometer_report::fmt;

use crate::judgement::{LevelVerdict, leans_to_met, verdict};
use crate::{History, Reading, count};

/// How often the load is halved below the lowest level that was typed, before no level is
/// expected to meet the goals. A rate that low takes hours.
const HALVINGS_MAX: u32 = 4;
/// Levels of the search in one step of the resolution.
const STEPS_OF_RESOLUTION: f64 = 3.0;

/// The searches of all conditions. They take turns, so that drift affects all in the same way.
#[derive(Clone, Debug)]
pub(crate) struct Searches<'study> {
    pub(crate) spec: &'study StudySpec,
    pub(crate) sweep: &'study Sweep,
    pub(crate) find: &'study Search,
    pub(crate) goals: &'study [Threshold],
    pub(crate) history: &'study History,
}

impl Searches<'_> {
    /// The next run of the condition that has had the fewest.
    pub(crate) fn next(&self) -> Option<Point> {
        let open = self.all().filter_map(|search| Some((search.step().ok()?, search)));
        let ((place, stage), search) = open.min_by_key(|(_, search)| search.runs)?;
        let (condition, level) = (search.condition, level_at(self.sweep.dimension, place)?);
        // Each stage counts for itself, so that conditions that came to a level by different stages
        // still share their seeds there.
        let is_same = |(point, _): &&(Point, Reading)| {
            (point.condition, point.level, point.stage) == (condition, level, stage)
        };
        let repetition = count(self.history.iter().filter(is_same));
        Some(Point { number: 0, condition, level, repetition, seed: 0, stage })
    }

    pub(crate) fn found(&self) -> Vec<FoundLimit> {
        self.all().filter_map(|search| search.step().err()).map(|found| *found).collect()
    }

    /// `None` for a run that is not part of a search.
    pub(crate) fn why(&self, point: &Point) -> Option<String> {
        match point.stage {
            Stage::Planned | Stage::Fine => None,
            Stage::Confirmation => {
                Some(format!("confirms {} as the limit, on a fresh seed", point.level))
            }
            Stage::Probe => {
                let Bracket { met, missed } = self.search(point.condition).bracket();
                let read = |place: f64| level_at(self.sweep.dimension, place);
                let place = match (met.and_then(read), missed.and_then(read)) {
                    (None, None) => "the first level".to_owned(),
                    (Some(met), None) => format!("above {met}"),
                    (None, Some(missed)) => format!("below {missed}"),
                    (Some(met), Some(missed)) => format!("between {met} and {missed}"),
                };
                Some(format!("searches the limit: {place}"))
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = LimitSearch<'_>> {
        (0..).take(self.spec.conditions.len()).map(|condition| self.search(condition))
    }

    fn search(&self, condition: u32) -> LimitSearch<'_> {
        let runs = || self.history.iter().filter(move |(point, _)| point.condition == condition);
        let is_asked = |point: &Point| matches!(point.stage, Stage::Probe | Stage::Confirmation);
        let judged = |is_fresh: bool| {
            let counts = |point: &Point| (point.stage == Stage::Confirmation) == is_fresh;
            let mut readings: Vec<(f64, &Reading)> = runs()
                .filter(|(point, _)| counts(point))
                .filter_map(|(point, reading)| Some((point.level.place()?, reading)))
                .filter(|(place, _)| place.is_finite())
                .collect();
            readings.sort_by(|one, other| one.0.total_cmp(&other.0));
            let levels = readings.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq());
            let judge = |runs: &[(f64, &Reading)]| {
                let place = runs[0].0;
                let runs: Vec<&Reading> = runs.iter().map(|(_, reading)| *reading).collect();
                let verdict = verdict(&runs, self.goals, self.find.runs_at_most.get());
                Evidence { place, verdict, leans_to_met: leans_to_met(&runs, self.goals) }
            };
            levels.map(judge).collect()
        };
        let places = self.sweep.levels.iter().filter_map(|level| level.place());
        let step = self.find.resolution / STEPS_OF_RESOLUTION;
        LimitSearch {
            condition,
            runs: count(runs().filter(|(point, _)| is_asked(point))),
            find: self.find,
            lowest_named: places.fold(self.find.from, f64::min),
            ladder: Ladder { dimension: self.sweep.dimension, step },
            known: judged(false),
            fresh: judged(true),
        }
    }
}

/// The runs at one level, judged.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    place: f64,
    verdict: LevelVerdict,
    /// Whether the mean is on the good side, whatever its uncertainty.
    leans_to_met: bool,
}

fn find(levels: &[Evidence], place: f64) -> Option<&Evidence> {
    levels.iter().find(|level| level.place.total_cmp(&place).is_eq())
}

/// The search of one condition, as far as it has come.
#[derive(Clone, Debug)]
struct LimitSearch<'study> {
    condition: u32,
    /// Runs that the search has taken so far.
    runs: u32,
    find: &'study Search,
    /// The lowest level that was typed.
    lowest_named: f64,
    ladder: Ladder,
    /// From the lowest level to the highest.
    known: Vec<Evidence>,
    /// The runs that were to confirm an answer.
    fresh: Vec<Evidence>,
}

/// Where the limit lies.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    met: Option<f64>,
    missed: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct Confirmation {
    /// The level that needs another fresh run.
    pending: Option<f64>,
    confirmed: Option<f64>,
    /// From the highest to the lowest.
    refuted: Vec<f64>,
}

impl LimitSearch<'_> {
    /// What to measure next, or the result.
    fn step(&self) -> Result<(f64, Stage), Box<FoundLimit>> {
        let bracket = self.bracket();
        if let Some(place) = self.unsettled(bracket).or_else(|| self.further(bracket)) {
            return Ok((place, Stage::Probe));
        }
        let confirmation = bracket.met.map(|best| self.confirm(best)).unwrap_or_default();
        match confirmation.pending {
            Some(place) => Ok((place, Stage::Confirmation)),
            None => Err(Box::new(self.found(bracket, &confirmation))),
        }
    }

    fn bracket(&self) -> Bracket {
        let is_not_met =
            |level: &&Evidence| !matches!(level.verdict, LevelVerdict::Met | LevelVerdict::Open);
        let missed = self.known.iter().find(is_not_met).map(|level| level.place);
        Bracket { met: self.best_below(missed), missed }
    }

    /// The highest level that is met as far as its first runs say, below what is not.
    fn best_below(&self, missed: Option<f64>) -> Option<f64> {
        let is_met = |level: &&Evidence| {
            level.verdict == LevelVerdict::Met && missed.is_none_or(|missed| level.place < missed)
        };
        self.known.iter().rfind(is_met).map(|level| level.place)
    }

    /// The middle one of the levels inside the bracket that more runs may settle.
    fn unsettled(&self, bracket: Bracket) -> Option<f64> {
        let is_inside = |place: f64| {
            bracket.met.is_none_or(|met| met < place)
                && bracket.missed.is_none_or(|missed| place < missed)
                && place <= self.at_most()
        };
        let open = self.known.iter().filter(|level| level.verdict == LevelVerdict::Open);
        let open: Vec<f64> = open.map(|level| level.place).filter(|it| is_inside(*it)).collect();
        open.get(open.len() / 2).copied()
    }

    /// The next level that has no run yet; `None` when the bracket is as narrow as it gets.
    fn further(&self, bracket: Bracket) -> Option<f64> {
        let at_most = self.at_most();
        match (bracket.met, bracket.missed) {
            (None, None) => Some(round_level(self.ladder.dimension, self.find.from).min(at_most)),
            (Some(met), None) => {
                (met < at_most).then(|| round_level(self.ladder.dimension, met * 2.0).min(at_most))
            }
            (None, Some(missed)) if at_most < missed => Some(at_most),
            (None, Some(missed)) => {
                // Less load makes no run longer.
                let verdict = find(&self.known, missed).map(|level| level.verdict);
                if verdict == Some(LevelVerdict::TooFewRequests) {
                    return None;
                }
                let lowest = self.lowest_named / f64::from(1_u32 << HALVINGS_MAX);
                self.ladder.halve(missed).filter(|place| lowest <= *place)
            }
            (Some(met), Some(missed)) => {
                let middle = self.ladder.between(met, missed)?.min(at_most);
                (met < middle).then_some(middle)
            }
        }
    }

    /// The highest level that may be asked.
    fn at_most(&self) -> f64 {
        match self.ladder.dimension {
            Dimension::Rate => self.find.at_most,
            Dimension::Concurrency => self.find.at_most.floor(),
        }
    }

    /// Goes down from the best level, step by step, to one that fresh runs confirm.
    fn confirm(&self, best: f64) -> Confirmation {
        let mut confirmation = Confirmation::default();
        let mut candidate = Some(best);
        // So many levels may fail to be confirmed before the search gives up.
        while let Some(place) = candidate.filter(|_| confirmation.refuted.len() < 6) {
            match find(&self.fresh, place) {
                None | Some(Evidence { verdict: LevelVerdict::Open, .. }) => {
                    confirmation.pending = Some(place);
                    break;
                }
                Some(
                    Evidence { verdict: LevelVerdict::Met, .. }
                    | Evidence { verdict: LevelVerdict::Undecided, leans_to_met: true, .. },
                ) => {
                    confirmation.confirmed = Some(place);
                    break;
                }
                Some(_) => confirmation.refuted.push(place),
            }
            candidate = self.ladder.step_down(place);
        }
        confirmation
    }

    fn found(&self, bracket: Bracket, confirmation: &Confirmation) -> FoundLimit {
        let lowest_missed = confirmation.refuted.last().copied().or(bracket.missed);
        let level = confirmation.confirmed.or_else(|| self.best_below(lowest_missed));
        let undecided = self.known.iter().filter(|level| {
            matches!(level.verdict, LevelVerdict::Undecided | LevelVerdict::TooFewRequests)
        });
        FoundLimit {
            condition: self.condition,
            goals: self.find.goals.iter().map(ToString::to_string).collect(),
            level,
            lowest_missed,
            confirmed: confirmation.confirmed.is_some(),
            open_ended: level.is_some() && lowest_missed.is_none(),
            runs: self.runs,
            undecided: undecided.map(|level| level.place).collect(),
            words: self.explain(confirmation, level, lowest_missed),
        }
    }

    /// The result as a sentence.
    fn explain(
        &self,
        confirmation: &Confirmation,
        level: Option<f64>,
        lowest_missed: Option<f64>,
    ) -> String {
        let goals: Vec<String> = self.find.goals.iter().map(ToString::to_string).collect();
        let goals = fmt::list(&goals);
        let read = |place: f64| {
            let level = level_at(self.ladder.dimension, place);
            level.map_or_else(|| place.to_string(), |level| level.to_string())
        };
        let Some(level) = level else {
            return match (confirmation.refuted.first(), self.known.first()) {
                (Some(&first), _) => format!(
                    "no level that meets {goals} could be confirmed, from {} down; use longer runs or \
                     a coarser resolution",
                    read(first)
                ),
                (None, Some(lowest)) => self.explain_none(&goals, &read(lowest.place)),
                (None, None) => format!("no level was measured for {goals}"),
            };
        };
        let met = if confirmation.confirmed.is_some() {
            format!("{} meets {goals}", read(level))
        } else {
            format!("{} met {goals} at first and is not confirmed on fresh seeds", read(level))
        };
        let Some(missed) = lowest_missed else {
            return format!("{met}, the highest level that is allowed: the limit lies above it");
        };
        let why = match find(&self.known, missed).map(|level| level.verdict) {
            _ if confirmation.refuted.contains(&missed) => "did not on fresh seeds",
            Some(LevelVerdict::Undecided) => {
                "stayed undecided and counts as missed: the limit is inside the confidence interval"
            }
            Some(LevelVerdict::TooFewRequests) => {
                "stayed undecided and counts as missed: n too small, run longer (--requests)"
            }
            Some(LevelVerdict::PilesUp) => "does not: requests pile up",
            Some(LevelVerdict::NoNumbers) => "had no valid results and counts as missed",
            Some(LevelVerdict::Met | LevelVerdict::Missed | LevelVerdict::Open) | None => {
                "does not"
            }
        };
        format!("{met}; {} {why}", read(missed))
    }

    /// No level met the goals, which does not mean that all missed them.
    fn explain_none(&self, goals: &str, down_to: &str) -> String {
        let is = |verdict| self.known.iter().any(|level| level.verdict == verdict);
        let why = if is(LevelVerdict::TooFewRequests) {
            "n too small, run longer (--requests)"
        } else if is(LevelVerdict::Undecided) {
            "some stayed undecided"
        } else {
            return format!("no level meets {goals}, down to {down_to}");
        };
        format!("no level was shown to meet {goals}, down to {down_to}: {why}")
    }
}

/// `None` for a number that is not a level.
pub(crate) fn level_at(dimension: Dimension, place: f64) -> Option<Level> {
    match dimension {
        Dimension::Rate => (place.is_finite() && 0.0 < place).then_some(Level::Rate(place)),
        Dimension::Concurrency => NonZeroU32::new(to_u32(place.round())).map(Level::Concurrency),
    }
}

/// The nearest level to a positive number that reads well.
pub(crate) fn round_level(dimension: Dimension, place: f64) -> f64 {
    match dimension {
        Dimension::Rate => format!("{place:.2e}").parse().unwrap_or(place),
        Dimension::Concurrency => place.round().max(1.0),
    }
}

/// The steps of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    pub(crate) dimension: Dimension,
    /// The width of the last step, as a share of the level.
    pub(crate) step: f64,
}

impl Ladder {
    /// `None` below one request at once.
    pub(crate) fn halve(&self, place: f64) -> Option<f64> {
        let half = round_level(self.dimension, place / 2.0);
        (half < place).then_some(half)
    }

    /// A level in the geometric middle; `None` when they are one step apart.
    pub(crate) fn between(&self, low: f64, high: f64) -> Option<f64> {
        // The ends were rounded, so a step may be wider than asked by what rounding adds.
        if high <= low * (1.0 + self.step) * 1.000_000_1 {
            return None;
        }
        let middle = round_level(self.dimension, (low * high).sqrt());
        (low < middle && middle < high).then_some(middle)
    }

    /// The last step down; `None` below one request at once.
    pub(crate) fn step_down(&self, place: f64) -> Option<f64> {
        let near = round_level(self.dimension, place / (1.0 + self.step));
        let below = match self.dimension {
            Dimension::Rate => near,
            Dimension::Concurrency => near.min(place - 1.0),
        };
        (0.0 < below && below < place).then_some(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Ladder = Ladder { dimension: Dimension::Rate, step: 0.05 };
    const CONCURRENCIES: Ladder = Ladder { dimension: Dimension::Concurrency, step: 0.05 };

    #[test]
    fn levels_read_well() {
        assert_eq!(round_level(Dimension::Rate, 12.345).to_string(), "12.3");
        assert_eq!(round_level(Dimension::Rate, 0.001_239_9).to_string(), "0.00124");
        assert_eq!(round_level(Dimension::Rate, 98_765.0).to_string(), "98800");
        assert_eq!(round_level(Dimension::Concurrency, 0.2).to_string(), "1");
        assert_eq!(level_at(Dimension::Concurrency, 0.2), None);
        assert_eq!(level_at(Dimension::Rate, f64::INFINITY), None);
    }

    #[test]
    fn bisection_ends_at_the_last_step_or_at_neighbours() {
        assert_eq!(RATES.between(4.0, 9.0), Some(6.0));
        assert_eq!(RATES.between(4.0, 4.2), None);
        assert_eq!(CONCURRENCIES.between(8.0, 32.0), Some(16.0));
        assert_eq!(CONCURRENCIES.between(8.0, 9.0), None);
        assert_eq!(CONCURRENCIES.between(8.0, 10.0), Some(9.0));
    }

    #[test]
    fn a_step_down_is_never_the_same_level() {
        assert_eq!(RATES.step_down(10.5), Some(10.0));
        assert_eq!(CONCURRENCIES.step_down(4.0), Some(3.0));
        assert_eq!(CONCURRENCIES.step_down(1.0), None);
        assert_eq!(CONCURRENCIES.halve(1.0), None);
    }
}
