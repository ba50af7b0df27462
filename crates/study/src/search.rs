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
//!    on fresh seeds must say so without the old ones (`confirmation`); otherwise the answer is a
//!    step lower, and that is to be confirmed instead.
//!
//! Retrying a level until it passes would find limits that are too high. Here no level gets a second
//! chance: what was once not met stays not met.

mod confirmation;
mod words;

use inferometer_analysis::set::FoundLimit;
use inferometer_model::campaign::{CampaignSpec, Dimension, Point, Search, Stage, Sweep};

use self::confirmation::Confirmation;
use crate::goal::Goal;
use crate::history::{History, Slot};
use crate::judgement::{Standing, leans_to_met, standing};
use crate::ladder::{self, Ladder};
use crate::reading::Told;

/// How often the load is halved below the lowest level that was typed, before no level is
/// expected to meet the goals. A rate that low takes hours.
const HALVINGS_MAX: u32 = 4;
/// Levels of the search in one step of the resolution.
const STEPS_OF_RESOLUTION: f64 = 3.0;

/// The searches of all conditions. They take turns, so that drift meets all alike.
#[derive(Clone, Debug)]
pub(crate) struct Searches<'campaign> {
    pub(crate) spec: &'campaign CampaignSpec,
    pub(crate) sweep: &'campaign Sweep,
    pub(crate) find: &'campaign Search,
    pub(crate) goals: &'campaign [Goal],
    pub(crate) history: &'campaign History,
}

impl Searches<'_> {
    /// The next run of the condition that has had the fewest.
    pub(crate) fn next(&self) -> Option<Slot> {
        let of_condition = |search: LimitSearch<'_>| match search.step() {
            Step::Measure { place, stage } => Some((search.condition, place, stage)),
            Step::Over(_) => None,
        };
        let open = self.each().filter_map(of_condition);
        let (condition, place, stage) = open.min_by_key(|(condition, ..)| self.runs(*condition))?;
        let level = ladder::level(self.sweep.dimension, place)?;
        let repetition = self.history.repetition(condition, level, stage);
        Some(Slot { condition, level, repetition, stage })
    }

    pub(crate) fn found(&self) -> Vec<FoundLimit> {
        let over = |search: LimitSearch<'_>| match search.step() {
            Step::Over(found) => Some(*found),
            Step::Measure { .. } => None,
        };
        self.each().filter_map(over).collect()
    }

    /// `None` of a run that no search asked for.
    pub(crate) fn why(&self, slot: &Slot) -> Option<String> {
        match slot.stage {
            Stage::Planned | Stage::Fine => None,
            Stage::Confirmation => {
                Some(format!("confirms {} as the limit, on a fresh seed", slot.level))
            }
            Stage::Probe => {
                let bracket = self.of(slot.condition).bracket();
                let read = |place: f64| ladder::level(self.sweep.dimension, place);
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
        for (point, told) in self.history.runs().filter(|(point, _)| point.condition == condition) {
            let is_fresh = point.stage == Stage::Confirmation;
            if let Some(place) = point.level.place().filter(|place| place.is_finite()) {
                add(if is_fresh { &mut fresh } else { &mut known }, place, told);
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

    fn judged(&self, mut levels: Vec<(f64, Vec<&Told>)>) -> Vec<Evidence> {
        levels.sort_by(|one, other| one.0.total_cmp(&other.0));
        let judge = |(place, runs): (f64, Vec<&Told>)| Evidence {
            place,
            standing: standing(&runs, self.goals, self.find.runs_at_most.get()),
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

fn add<'told>(levels: &mut Vec<(f64, Vec<&'told Told>)>, place: f64, told: &'told Told) {
    match levels.iter_mut().find(|(known, _)| known.total_cmp(&place).is_eq()) {
        Some((_, runs)) => runs.push(told),
        None => levels.push((place, vec![told])),
    }
}

/// What the runs at one level say.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    place: f64,
    standing: Standing,
    /// Whether the mean is on the good side, whatever its doubt.
    leans_to_met: bool,
}

/// The search of one condition, as far as it has come.
#[derive(Clone, Debug)]
struct LimitSearch<'campaign> {
    condition: u32,
    /// That it has taken so far.
    runs: u32,
    find: &'campaign Search,
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
        let places = |wanted: fn(Standing) -> bool| {
            let known = self.known.iter().filter(move |level| wanted(level.standing));
            known.map(|level| level.place)
        };
        let missed = places(Standing::is_not_met).next();
        let below = |place: &f64| missed.is_none_or(|missed| *place < missed);
        let met = places(|standing| standing == Standing::Met).rfind(below);
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
            .filter(|level| level.standing == Standing::Open)
            .map(|level| level.place)
            .collect();
        open.get(open.len() / 2).copied()
    }

    /// The next level that has no run yet; `None` when the bracket is as narrow as it gets.
    fn further(&self, bracket: Bracket) -> Option<f64> {
        let at_most = self.at_most();
        match (bracket.met, bracket.missed) {
            (None, None) => Some(ladder::round(self.ladder.dimension, self.find.from).min(at_most)),
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
        known.is_some_and(|level| level.standing == Standing::TooFewRequests)
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
        let undecided = self.known.iter().filter(|one| one.standing.is_undecided());
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
