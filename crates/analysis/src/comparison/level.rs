//! Which runs stand against which: those at the same level.

use std::num::NonZeroU32;

use inferometer_model::campaign::Level;

use super::Side;
use super::document::UnmatchedLevel;
use crate::run::{LoadFacts, RateFacts};
use crate::summary::Summary;
use crate::verdict::Verdict;

/// The runs of every side at one level, in the order of the sides. None is empty.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) level: Level,
    pub(super) runs: Vec<Vec<&'a Summary>>,
}

/// How much was asked of the server at once. A load that changes over the run is at no level.
pub(super) fn level_of(summary: &Summary) -> Level {
    match &summary.run.load {
        LoadFacts::Closed { concurrency, .. } => {
            NonZeroU32::new(*concurrency).map_or(Level::AsAsked, Level::Concurrency)
        }
        LoadFacts::Open { rate: RateFacts::Steady { per_s }, .. } => Level::Rate(*per_s),
        LoadFacts::Open { rate: RateFacts::Unlimited, .. } => Level::Unlimited,
        LoadFacts::Open { rate: RateFacts::Ramp { .. } | RateFacts::Recorded { .. }, .. } => {
            Level::AsAsked
        }
    }
}

/// Matches levels. Sides of one level each stand against each other whatever it is: whether they
/// may is for the objections to say.
pub(super) fn groups(sides: &[Side]) -> (Vec<Group<'_>>, Vec<UnmatchedLevel>) {
    let valid: Vec<Vec<&Summary>> = sides.iter().map(may_be_compared).collect();
    let levels = levels(&valid);
    let has_one_each = valid.iter().all(|runs| {
        let mut found = runs.iter().map(|run| level_of(run));
        found.next().is_some_and(|first| found.all(|level| level == first))
    });
    if has_one_each && let Some(base) = valid.first().and_then(|runs| runs.first()) {
        return (vec![Group { level: level_of(base), runs: valid.clone() }], Vec::new());
    }
    let (mut matched, mut unmatched) = (Vec::new(), Vec::new());
    for level in levels {
        let at = |runs: &Vec<&'_ Summary>| runs.iter().any(|run| level_of(run) == level);
        let sides_at = sides.iter().zip(&valid).filter(|(_, runs)| at(runs));
        let names: Vec<String> = sides_at.map(|(side, _)| side.name.clone()).collect();
        if names.len() == sides.len() {
            let runs = valid
                .iter()
                .map(|runs| runs.iter().copied().filter(|run| level_of(run) == level).collect());
            matched.push(Group { level, runs: runs.collect() });
        } else {
            unmatched.push(UnmatchedLevel { level, sides: names });
        }
    }
    (matched, unmatched)
}

fn may_be_compared(side: &Side) -> Vec<&Summary> {
    side.runs.iter().filter(|run| run.verdict != Verdict::Invalid).collect()
}

/// From the lowest to the highest, rates and concurrencies apart.
fn levels(sides: &[Vec<&Summary>]) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for level in sides.iter().flatten().map(|run| level_of(run)) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let kind = |level: &Level| match level {
        Level::AsAsked => 0,
        Level::Rate(_) | Level::Unlimited => 1,
        Level::Concurrency(_) => 2,
    };
    levels.sort_by(|a, b| {
        let places = a.place().unwrap_or(0.0).total_cmp(&b.place().unwrap_or(0.0));
        kind(a).cmp(&kind(b)).then(places)
    });
    levels
}
