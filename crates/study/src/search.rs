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

use crate::history::{History, Reading};
use crate::judgement::{LevelVerdict, leans_to_met, verdict};

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
        let of_condition = |search: LimitSearch<'_>| match search.step() {
            Step::Measure { place, stage } => Some((search.condition, place, stage)),
            Step::Over(_) => None,
        };
        let open = self.each().filter_map(of_condition);
        let (condition, place, stage) = open.min_by_key(|(condition, ..)| self.runs(*condition))?;
        let level = level_at(self.sweep.dimension, place)?;
        let repetition = self.history.repetition(condition, level, stage);
        Some(Point { number: 0, condition, level, repetition, seed: 0, stage })
    }

    pub(crate) fn found(&self) -> Vec<FoundLimit> {
        let over = |search: LimitSearch<'_>| match search.step() {
            Step::Over(found) => Some(*found),
            Step::Measure { .. } => None,
        };
        self.each().filter_map(over).collect()
    }

    /// `None` of a run that no search asked for.
    pub(crate) fn why(&self, point: &Point) -> Option<String> {
        match point.stage {
            Stage::Planned | Stage::Fine => None,
            Stage::Confirmation => {
                Some(format!("confirms {} as the limit, on a fresh seed", point.level))
            }
            Stage::Probe => {
                let bracket = self.of(point.condition).bracket();
                let read = |place: f64| level_at(self.sweep.dimension, place);
                Some(match (bracket.met.and_then(read), bracket.missed.and_then(read)) {
                    (None, None) => "searches the limit: the first level".to_owned(),
                    (Some(met), None) => format!("searches the limit: above {met}"),
                    (None, Some(missed)) => format!("searches the limit: below {missed}"),
                    (Some(met), Some(missed)) => {
                        format!("searches the limit: between {met} and {missed}")
                    }
                })
            }
        }
    }

    fn each(&self) -> impl Iterator<Item = LimitSearch<'_>> {
        let conditions = u32::try_from(self.spec.conditions.len()).unwrap_or(u32::MAX);
        (0..conditions).map(|condition| self.of(condition))
    }

    fn of(&self, condition: u32) -> LimitSearch<'_> {
        let (mut known, mut fresh) = (Vec::new(), Vec::new());
        for (point, reading) in
            self.history.runs().filter(|(point, _)| point.condition == condition)
        {
            let is_fresh = point.stage == Stage::Confirmation;
            if let Some(place) = point.level.place().filter(|place| place.is_finite()) {
                add(if is_fresh { &mut fresh } else { &mut known }, place, reading);
            }
        }
        let places = self.sweep.levels.iter().filter_map(|level| level.place());
        LimitSearch {
            condition,
            runs: self.runs(condition),
            find: self.find,
            lowest_named: places.fold(self.find.from, f64::min),
            ladder: Ladder {
                dimension: self.sweep.dimension,
                step: self.find.resolution / STEPS_OF_RESOLUTION,
            },
            known: self.judged(known),
            fresh: self.judged(fresh),
        }
    }

    fn judged(&self, mut levels: Vec<(f64, Vec<&Reading>)>) -> Vec<Evidence> {
        levels.sort_by(|one, other| one.0.total_cmp(&other.0));
        let judge = |(place, runs): (f64, Vec<&Reading>)| Evidence {
            place,
            verdict: verdict(&runs, self.goals, self.find.runs_at_most.get()),
            leans_to_met: leans_to_met(&runs, self.goals),
        };
        levels.into_iter().map(judge).collect()
    }

    fn runs(&self, condition: u32) -> u32 {
        let asked = |point: &Point| {
            point.condition == condition
                && matches!(point.stage, Stage::Probe | Stage::Confirmation)
        };
        let runs = self.history.runs().filter(|(point, _)| asked(point)).count();
        u32::try_from(runs).unwrap_or(u32::MAX)
    }
}

fn add<'run>(levels: &mut Vec<(f64, Vec<&'run Reading>)>, place: f64, reading: &'run Reading) {
    match levels.iter_mut().find(|(known, _)| known.total_cmp(&place).is_eq()) {
        Some((_, runs)) => runs.push(reading),
        None => levels.push((place, vec![reading])),
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

enum Step {
    Measure { place: f64, stage: Stage },
    Over(Box<FoundLimit>),
}

/// Where the limit lies.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    met: Option<f64>,
    missed: Option<f64>,
}

impl LimitSearch<'_> {
    fn step(&self) -> Step {
        let bracket = self.bracket();
        if let Some(place) = self.unsettled(bracket).or_else(|| self.further(bracket)) {
            return Step::Measure { place, stage: Stage::Probe };
        }
        let Some(best) = bracket.met else {
            return Step::Over(Box::new(self.found(bracket, &Confirmation::default())));
        };
        let confirmation = self.confirm(best);
        match confirmation.pending {
            Some(place) => Step::Measure { place, stage: Stage::Confirmation },
            None => Step::Over(Box::new(self.found(bracket, &confirmation))),
        }
    }

    fn bracket(&self) -> Bracket {
        let places = |wanted: fn(LevelVerdict) -> bool| {
            let known = self.known.iter().filter(move |level| wanted(level.verdict));
            known.map(|level| level.place)
        };
        let missed = places(LevelVerdict::is_not_met).next();
        let below = |place: &f64| missed.is_none_or(|missed| *place < missed);
        let met = places(|verdict| verdict == LevelVerdict::Met).rfind(below);
        Bracket { met, missed }
    }

    /// The middle one of the levels inside the bracket that more runs may settle.
    fn unsettled(&self, bracket: Bracket) -> Option<f64> {
        let inside = |place: f64| {
            bracket.met.is_none_or(|met| met < place)
                && bracket.missed.is_none_or(|missed| place < missed)
                && place <= self.at_most()
        };
        let open = self.known.iter().filter(|level| inside(level.place));
        let open: Vec<f64> = open
            .filter(|level| level.verdict == LevelVerdict::Open)
            .map(|level| level.place)
            .collect();
        open.get(open.len() / 2).copied()
    }

    /// The next level that has no run yet; `None` when the bracket is as narrow as it gets.
    fn further(&self, bracket: Bracket) -> Option<f64> {
        let at_most = self.at_most();
        match (bracket.met, bracket.missed) {
            (None, None) => Some(round_level(self.ladder.dimension, self.find.from).min(at_most)),
            (Some(met), None) => (met < at_most).then(|| self.ladder.double(met).min(at_most)),
            (None, Some(missed)) if at_most < missed => Some(at_most),
            // Less load makes no run longer.
            (None, Some(missed)) if self.is_too_short(missed) => None,
            (None, Some(missed)) => {
                let lowest = self.lowest_named / f64::from(1_u32 << HALVINGS_MAX);
                self.ladder.halve(missed).filter(|place| lowest <= *place)
            }
            (Some(met), Some(missed)) => {
                let middle = self.ladder.between(met, missed)?.min(at_most);
                (met < middle).then_some(middle)
            }
        }
    }

    /// Whether runs of this length cannot show what is asked of them.
    fn is_too_short(&self, place: f64) -> bool {
        let known = self.known.iter().find(|level| level.place.total_cmp(&place).is_eq());
        known.is_some_and(|level| level.verdict == LevelVerdict::TooFewRequests)
    }

    /// The highest level that may be asked.
    fn at_most(&self) -> f64 {
        match self.ladder.dimension {
            Dimension::Rate => self.find.at_most,
            Dimension::Concurrency => self.find.at_most.floor(),
        }
    }

    fn found(&self, bracket: Bracket, confirmation: &Confirmation) -> FoundLimit {
        let refuted = confirmation.refuted.last().copied();
        let lowest_missed = refuted.or(bracket.missed);
        let level = confirmation.confirmed.or_else(|| self.best_below(lowest_missed));
        let undecided = self.known.iter().filter(|one| one.verdict.is_undecided());
        FoundLimit {
            condition: self.condition,
            goals: self.find.goals.iter().map(ToString::to_string).collect(),
            level,
            lowest_missed,
            confirmed: confirmation.confirmed.is_some(),
            open_ended: level.is_some() && lowest_missed.is_none(),
            runs: self.runs,
            undecided: undecided.map(|level| level.place).collect(),
            words: self.words(confirmation, level, lowest_missed),
        }
    }
}

/// So many levels may fail to be confirmed before the search gives up.
const REFUTED_MAX: usize = 6;

#[derive(Clone, Debug, Default)]
pub(super) struct Confirmation {
    /// The level that needs another fresh run.
    pub(super) pending: Option<f64>,
    pub(super) confirmed: Option<f64>,
    /// From the highest to the lowest.
    pub(super) refuted: Vec<f64>,
}

impl LimitSearch<'_> {
    /// Goes down from the best level, step by step, to one that fresh runs confirm.
    pub(super) fn confirm(&self, best: f64) -> Confirmation {
        let mut confirmation = Confirmation::default();
        let mut candidate = Some(best);
        while let Some(place) = candidate.filter(|_| confirmation.refuted.len() < REFUTED_MAX) {
            match self.fresh_verdict(place) {
                LevelVerdict::Open => {
                    confirmation.pending = Some(place);
                    break;
                }
                LevelVerdict::Met => {
                    confirmation.confirmed = Some(place);
                    break;
                }
                LevelVerdict::Missed
                | LevelVerdict::PilesUp
                | LevelVerdict::Undecided
                | LevelVerdict::TooFewRequests
                | LevelVerdict::NoNumbers => confirmation.refuted.push(place),
            }
            candidate = self.ladder.step_down(place);
        }
        confirmation
    }

    fn fresh_verdict(&self, place: f64) -> LevelVerdict {
        let fresh = self.fresh.iter().find(|level| level.place.total_cmp(&place).is_eq());
        let Some(fresh) = fresh else { return LevelVerdict::Open };
        let leans = fresh.verdict == LevelVerdict::Undecided && fresh.leans_to_met;
        if leans { LevelVerdict::Met } else { fresh.verdict }
    }

    /// The highest level that is met as far as its first runs say, below what is not.
    pub(super) fn best_below(&self, missed: Option<f64>) -> Option<f64> {
        let below = |level: &&Evidence| missed.is_none_or(|missed| level.place < missed);
        let met = self.known.iter().filter(below);
        met.filter(|level| level.verdict == LevelVerdict::Met).map(|level| level.place).next_back()
    }
}

impl LimitSearch<'_> {
    pub(super) fn words(
        &self,
        confirmation: &Confirmation,
        level: Option<f64>,
        lowest_missed: Option<f64>,
    ) -> String {
        let goals = self.goals_typed();
        let Some(level) = level else {
            return match (confirmation.refuted.first(), self.known.first()) {
                (Some(&first), _) => format!(
                    "no level that meets {goals} could be confirmed, from {} down; ask for longer \
                     runs or a coarser resolution",
                    self.read(first)
                ),
                (None, Some(lowest)) => self.none_met(&goals, lowest.place),
                (None, None) => format!("no level was measured for {goals}"),
            };
        };
        let met = if confirmation.confirmed.is_some() {
            format!("{} meets {goals}", self.read(level))
        } else {
            format!("{} met {goals} at first and is not confirmed on fresh seeds", self.read(level))
        };
        match lowest_missed {
            Some(missed) => {
                let why = self.why_missed(confirmation, missed);
                format!("{met}; {} {why}", self.read(missed))
            }
            None => format!("{met}, and more may not be asked: the limit lies above"),
        }
    }

    fn why_missed(&self, confirmation: &Confirmation, missed: f64) -> &'static str {
        if confirmation.refuted.contains(&missed) {
            return "did not on fresh seeds";
        }
        let known = self.known.iter().find(|level| level.place.total_cmp(&missed).is_eq());
        match known.map(|level| level.verdict) {
            Some(LevelVerdict::Undecided) => {
                "stayed undecided and counts as missed: the limit is inside the confidence interval"
            }
            Some(LevelVerdict::TooFewRequests) => {
                "stayed undecided and counts as missed: n too small, run longer (--requests)"
            }
            Some(LevelVerdict::PilesUp) => "does not: requests pile up",
            Some(LevelVerdict::NoNumbers) => {
                "gave no numbers that can be trusted and counts as missed"
            }
            Some(LevelVerdict::Met | LevelVerdict::Missed | LevelVerdict::Open) | None => {
                "does not"
            }
        }
    }

    /// No level met the goals, which does not mean that all missed them.
    fn none_met(&self, goals: &str, lowest: f64) -> String {
        let down_to = self.read(lowest);
        let is = |verdict| self.known.iter().any(|level| level.verdict == verdict);
        if is(LevelVerdict::TooFewRequests) {
            format!(
                "no level was seen to meet {goals}, down to {down_to}: n too small, run longer \
                 (--requests)"
            )
        } else if is(LevelVerdict::Undecided) {
            format!("no level was seen to meet {goals}, down to {down_to}: some stayed undecided")
        } else {
            format!("no level meets {goals}, down to {down_to}")
        }
    }

    fn goals_typed(&self) -> String {
        let goals: Vec<String> = self.find.goals.iter().map(ToString::to_string).collect();
        match goals.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }

    fn read(&self, place: f64) -> String {
        level_at(self.ladder.dimension, place).map_or(place.to_string(), |it| it.to_string())
    }
}

/// `None` of a place that is no level.
pub(crate) fn level_at(dimension: Dimension, place: f64) -> Option<Level> {
    match dimension {
        Dimension::Rate => (place.is_finite() && 0.0 < place).then_some(Level::Rate(place)),
        Dimension::Concurrency => whole(place).map(Level::Concurrency),
    }
}

/// The nearest level to a positive number that reads well.
pub(crate) fn round_level(dimension: Dimension, place: f64) -> f64 {
    match dimension {
        Dimension::Rate => format!("{place:.2e}").parse().unwrap_or(place),
        Dimension::Concurrency => place.round().max(1.0),
    }
}

fn whole(place: f64) -> Option<NonZeroU32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and zero is refused"
    )]
    NonZeroU32::new(place.round() as u32)
}

/// The steps of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    pub(crate) dimension: Dimension,
    /// The width of the last step, as a share of the level.
    pub(crate) step: f64,
}

impl Ladder {
    pub(crate) fn double(&self, place: f64) -> f64 {
        round_level(self.dimension, place * 2.0)
    }

    /// `None` below one request at once.
    pub(crate) fn halve(&self, place: f64) -> Option<f64> {
        let half = round_level(self.dimension, place / 2.0);
        (half < place).then_some(half)
    }

    /// A level in the geometric middle; `None` when they are one step apart.
    pub(crate) fn between(&self, low: f64, high: f64) -> Option<f64> {
        // The ends were rounded, so a step may be wider than asked by what rounding adds.
        const ROUNDING: f64 = 1.000_000_1;
        if high <= low * (1.0 + self.step) * ROUNDING {
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
