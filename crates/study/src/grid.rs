//! Runs that are laid out in advance: every level and condition so many times, in which order and
//! with which seed, and when repeated runs are enough.
//!
//! A server drifts: it heats up, its caches fill, other programs run. Measured level by
//! level, that would look like an effect of the level. Therefore every round has its own order,
//! and conditions change places from run to run: A B, B A.
//!
//! Servers that are compared are paired by their seeds, so a seed never depends on the condition. The
//! scenarios of a suite are not compared with each other and share no seed unless that is requested.

use std::collections::BTreeSet;

use inferometer_analysis::statistics::draws::Draws;
use inferometer_analysis::statistics::runs::half_width_over_looks;
use inferometer_model::study::{
    Level, Point, Prompts, Question, RunOrder, Stage, StudySpec, Suite,
};

use crate::{History, Reading, count_stage};

/// Every place, so many times.
#[derive(Clone, Debug)]
pub(crate) struct Grid<'study> {
    pub(crate) spec: &'study StudySpec,
    pub(crate) history: &'study History,
    pub(crate) places: Vec<GridLevel>,
    /// With `half_width`, the most that there will be.
    pub(crate) runs: u32,
    /// Repetitions end when the confidence interval is this narrow, as a share of the mean.
    pub(crate) half_width: Option<f64>,
    pub(crate) stage: Stage,
}

/// A level, and the conditions that are measured at it side by side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GridLevel {
    pub(crate) level: Level,
    pub(crate) conditions: Vec<u32>,
}

/// The levels that are known in advance.
pub(crate) fn planned_levels(spec: &StudySpec) -> Vec<GridLevel> {
    let conditions = spec.conditions.len();
    match &spec.question {
        Question::Repeat => crossed(&[Level::AsAsked], conditions),
        Question::Suite(suite) => in_turn(suite),
        Question::Sweep(sweep) => crossed(&sweep.levels, conditions),
        Question::Matrix(matrix) => crossed(&matrix.levels, conditions),
    }
}

/// Every level for all conditions alike.
pub(crate) fn crossed(levels: &[Level], conditions: usize) -> Vec<GridLevel> {
    let conditions: Vec<u32> = (0..u32::try_from(conditions).unwrap_or(u32::MAX)).collect();
    let place = |level: &Level| GridLevel { level: *level, conditions: conditions.clone() };
    levels.iter().map(place).collect()
}

/// The levels of one scenario after those of the other.
fn in_turn(suite: &Suite) -> Vec<GridLevel> {
    let of_scenario = |(condition, levels): (u32, &Vec<Level>)| {
        let place = move |level: &Level| GridLevel { level: *level, conditions: vec![condition] };
        levels.iter().map(place).collect::<Vec<_>>()
    };
    (0..)
        .zip(suite.scenarios.iter().map(|scenario| &scenario.levels))
        .flat_map(of_scenario)
        .collect()
}

impl Grid<'_> {
    /// Points are measured in their order, so as many are behind us as the stage has runs.
    pub(crate) fn next(&self) -> Option<Point> {
        self.points().nth(count_stage(self.history, self.stage) as usize)
    }

    /// All runs of the grid; `None` when that depends on what they show.
    pub(crate) fn expected(&self) -> Option<u32> {
        let in_round: usize = self.places.iter().map(|place| place.conditions.len()).sum();
        let in_round = u32::try_from(in_round).unwrap_or(u32::MAX);
        self.half_width.is_none().then_some(self.runs.saturating_mul(in_round))
    }

    /// All points, without numbers and seeds.
    fn points(&self) -> Box<dyn Iterator<Item = Point> + '_> {
        let is_suite = self.spec.suite().is_some();
        let listed = 0..self.places.len();
        match self.spec.order {
            RunOrder::Interleaved => Box::new((0..self.runs).flat_map(move |round| {
                let draws = round_draws(self.spec.seed, self.stage, round);
                self.round(round, shuffled(self.places.len(), draws))
            })),
            // A suite is measured round by round, so that drift is no difference between scenarios.
            RunOrder::Listed if is_suite => Box::new(
                (0..self.runs).flat_map(move |round| self.round(round, listed.clone().collect())),
            ),
            RunOrder::Listed => Box::new(listed.flat_map(move |place| {
                let open = move |&round: &u32| self.is_open(place, round);
                (0..self.runs).take_while(open).flat_map(move |round| {
                    self.at(place, round, self.places[place].conditions.clone())
                })
            })),
        }
    }

    fn round(&self, round: u32, places: Vec<usize>) -> impl Iterator<Item = Point> {
        places.into_iter().filter(move |&place| self.is_open(place, round)).flat_map(move |place| {
            let conditions = self.places[place].conditions.clone();
            self.at(place, round, alternating(conditions, place, round))
        })
    }

    fn at(&self, place: usize, round: u32, conditions: Vec<u32>) -> impl Iterator<Item = Point> {
        let (level, stage, repetition) = (self.places[place].level, self.stage, round);
        let point =
            move |condition| Point { number: 0, condition, level, repetition, seed: 0, stage };
        conditions.into_iter().map(point)
    }

    /// Whether the runs before this round were not enough. Conditions stop together, so that they stay
    /// paired.
    fn is_open(&self, place: usize, round: u32) -> bool {
        let Some(half_width) = self.half_width else { return true };
        let GridLevel { level, conditions } = &self.places[place];
        let is_reached = |condition: &u32| {
            let counts = |(point, reading): &&(Point, Reading)| {
                reading.is_valid
                    && point.stage == Stage::Planned
                    && (point.condition, point.level) == (*condition, *level)
                    && point.repetition < round
            };
            let runs = self.history.iter().filter(counts);
            let values: Vec<f64> = runs.filter_map(|(_, reading)| reading.repeated).collect();
            half_width_over_looks(&values, self.runs).is_some_and(|share| share <= half_width)
        };
        !conditions.iter().all(is_reached)
    }
}

/// The numbers below `count`, shuffled.
pub(crate) fn shuffled(count: usize, mut draws: Draws) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        places.swap(last, draws.below(last + 1));
    }
    places
}

/// The conditions, each in every place equally often: at one level over the repetitions, and in
/// one repetition over the levels.
pub(crate) fn alternating(mut conditions: Vec<u32>, level: usize, repetition: u32) -> Vec<u32> {
    let turns = (level + repetition as usize) % conditions.len().max(1);
    conditions.rotate_left(turns);
    conditions
}

/// Repeated runs count up from the given seed, so that any of them can be run alone.
fn repeated_seed(seed: u64, repetition: u32) -> u64 {
    seed.wrapping_add(repetition.into())
}

/// Runs of a sweep share nothing with each other, whatever their levels: a mix, cut to 32 bits so
/// that it can be read and typed.
pub(crate) fn swept_seed(seed: u64, level: Level, stage: Stage, repetition: u32) -> u64 {
    let parts = [bits(level), class(stage), repetition.into()];
    cut(parts.into_iter().fold(seed, |state, part| Draws::new(state, part).bits()))
}

/// The seed of a point that has none yet.
pub(crate) fn seed(spec: &StudySpec, point: &Point) -> u64 {
    let &Point { level, stage, repetition, .. } = point;
    match &spec.question {
        Question::Repeat => repeated_seed(spec.seed, repetition),
        Question::Suite(suite) => match suite.prompts {
            Prompts::Same => repeated_seed(spec.seed, repetition),
            Prompts::Fresh => fresh_seed(spec, suite, point),
        },
        Question::Sweep(_) | Question::Matrix(_) => swept_seed(spec.seed, level, stage, repetition),
    }
}

/// A mix of the scenario's name and the level, so that a scenario alone sends what it sends within
/// its suite. Where two mixes meet, the later one is mixed again: no run may find its prompts in the
/// cache of another.
fn fresh_seed(spec: &StudySpec, suite: &Suite, point: &Point) -> u64 {
    let places = in_turn(suite);
    let mut taken = BTreeSet::new();
    for repetition in 0..=point.repetition {
        for place in &places {
            for &condition in &place.conditions {
                let name = spec.conditions.get(condition as usize).map_or("", |it| &it.name);
                let mut seed = scenario_seed(spec.seed, name, place.level, repetition);
                while !taken.insert(seed) {
                    seed = cut(Draws::new(seed, 0).bits());
                }
                if (condition, place.level, repetition)
                    == (point.condition, point.level, point.repetition)
                {
                    return seed;
                }
            }
        }
    }
    spec.seed
}

fn scenario_seed(seed: u64, name: &str, level: Level, repetition: u32) -> u64 {
    let named = name.bytes().fold(seed, |state, byte| Draws::new(state, byte.into()).bits());
    let parts = [bits(level), repetition.into()];
    cut(parts.into_iter().fold(named, |state, part| Draws::new(state, part).bits()))
}

fn cut(mixed: u64) -> u64 {
    mixed & u64::from(u32::MAX)
}

/// The stream that shuffles the levels of one round.
pub(crate) fn round_draws(seed: u64, stage: Stage, round: u32) -> Draws {
    let named = Draws::new(seed, u64::from_be_bytes(*b"order\0\0\0")).bits();
    Draws::new(named ^ class(stage), round.into())
}

fn bits(level: Level) -> u64 {
    match level {
        Level::AsAsked => 0,
        Level::Rate(per_s) => per_s.to_bits(),
        Level::Unlimited => f64::INFINITY.to_bits(),
        Level::Concurrency(requests) => requests.get().into(),
    }
}

fn class(stage: Stage) -> u64 {
    match stage {
        Stage::Planned => 1,
        Stage::Fine => 2,
        Stage::Probe => 3,
        Stage::Confirmation => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_conditions_alternate_and_more_rotate() {
        let two = || vec![0, 1];
        let orders: Vec<Vec<u32>> = (0..4).map(|round| alternating(two(), 0, round)).collect();
        assert_eq!(orders, [[0, 1], [1, 0], [0, 1], [1, 0]]);
        assert_eq!(alternating(two(), 1, 0), [1, 0]);
        assert_eq!(alternating(vec![0, 1, 2], 1, 1), [2, 0, 1]);
        assert_eq!(alternating(vec![7], 5, 3), [7]);
    }

    #[test]
    fn a_shuffle_keeps_every_level_and_rounds_differ() {
        let round = |number| shuffled(8, Draws::new(1, number));
        let mut sorted = round(0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        assert_ne!(round(0), round(1));
        assert_eq!(round(0), round(0));
    }

    #[test]
    fn looking_often_needs_a_narrower_spread() {
        let values = [100.0, 101.0, 99.0];
        // SciPy: t.ppf(0.975, 2) / sqrt(3) and t.ppf(1 - 0.025 / 8, 2) / sqrt(3), of s = 1.
        let once = half_width_over_looks(&values, 3).unwrap();
        let often = half_width_over_looks(&values, 10).unwrap();
        assert!((once - 0.024_841_377_117_503_15).abs() < 1e-9, "{once}");
        assert!(2.7 < often / once && often / once < 3.0, "{often}");
        assert_eq!(half_width_over_looks(&values[..2], 3), None);
    }

    #[test]
    fn seeds_are_golden() {
        // Stored sets are resumed by these: a change makes them measure something else.
        assert_eq!(repeated_seed(u64::MAX, 2), 1);
        assert_eq!(swept_seed(1, Level::Rate(1.5), Stage::Planned, 0), 2_812_275_241);
        assert_eq!(swept_seed(1, Level::Unlimited, Stage::Probe, 3), 1_194_033_033);
        assert_eq!(scenario_seed(1, "Decode Stress Test", Level::AsAsked, 0), 3_637_656_606);
    }
}
