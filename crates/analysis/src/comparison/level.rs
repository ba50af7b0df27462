//! Which runs stand against which: those at the same level, and of suites and matrices those of the same row.

use std::num::NonZeroU32;

use inferometer_model::campaign::Level;

use super::document::UnmatchedLevel;
use super::{SheetSide, Side};
use crate::judge::Verdict;
use crate::run::{LoadFacts, RateFacts};
use crate::sheet::Sheet;
use crate::summary::Summary;

/// The runs of every side at one level, in the order of the sides. None is empty.
#[derive(Debug)]
pub(super) struct Group<'a, R> {
    /// The row of a suite or a matrix.
    pub(super) scenario: Option<&'a str>,
    pub(super) level: Level,
    pub(super) runs: Vec<Vec<&'a R>>,
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

/// A run that may be compared, its level, and the row that it is of.
#[derive(Debug)]
struct Placed<'a, R> {
    scenario: Option<&'a str>,
    level: Level,
    run: &'a R,
}

/// What runs have in common that stand against each other.
type Place<'a> = (Option<&'a str>, Level);

/// Groups, and the levels that not all sides have.
type Matched<'a, R> = (Vec<Group<'a, R>>, Vec<UnmatchedLevel>);

impl<'a, R> Placed<'a, R> {
    fn place(&self) -> Place<'a> {
        (self.scenario, self.level)
    }
}

pub(super) fn groups(sides: &[Side]) -> Matched<'_, Summary> {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let valid: Vec<Vec<Placed<'_, Summary>>> = sides.iter().map(may_be_compared).collect();
    matched(&names, &valid)
}

pub(super) fn sheet_groups(sides: &[SheetSide]) -> Matched<'_, Sheet> {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let valid: Vec<Vec<Placed<'_, Sheet>>> = sides.iter().map(sheets_compared).collect();
    matched(&names, &valid)
}

/// Matches levels. Sides of one level each stand against each other whatever it is: whether they
/// may is for the objections to say. Rows have names, and only the same are matched.
fn matched<'a, R>(names: &[&str], valid: &[Vec<Placed<'a, R>>]) -> Matched<'a, R> {
    let has_one_each = valid.iter().all(|runs| {
        let mut found = runs.iter().map(Placed::place);
        found.next().is_some_and(|first| first.0.is_none() && found.all(|place| place == first))
    });
    if has_one_each && let Some(base) = valid.first().and_then(|runs| runs.first()) {
        let runs = valid.iter().map(|runs| runs.iter().map(|placed| placed.run).collect());
        let group = Group { scenario: None, level: base.level, runs: runs.collect() };
        return (vec![group], Vec::new());
    }
    let (mut groups, mut unmatched) = (Vec::new(), Vec::new());
    for place in places(valid) {
        let (scenario, level) = place;
        let at = |runs: &Vec<Placed<'_, R>>| runs.iter().any(|placed| placed.place() == place);
        let sides_at = names.iter().zip(valid).filter(|(_, runs)| at(runs));
        let sides: Vec<String> = sides_at.map(|(name, _)| (*name).to_owned()).collect();
        if sides.len() == names.len() {
            let runs = valid.iter().map(|runs| {
                let own = runs.iter().filter(|placed| placed.place() == place);
                own.map(|placed| placed.run).collect()
            });
            groups.push(Group { scenario, level, runs: runs.collect() });
        } else {
            let scenario = scenario.map(str::to_owned);
            unmatched.push(UnmatchedLevel { scenario, level, sides });
        }
    }
    (groups, unmatched)
}

fn may_be_compared(side: &Side) -> Vec<Placed<'_, Summary>> {
    let placed = side.runs.iter().enumerate().map(|(place, run)| Placed {
        scenario: side.row_of(place),
        level: level_of(run),
        run,
    });
    placed.filter(|placed| placed.run.verdict != Verdict::Invalid).collect()
}

fn sheets_compared(side: &SheetSide) -> Vec<Placed<'_, Sheet>> {
    let placed = |run| Placed { scenario: None, level: Sheet::level(run), run };
    side.compared().map(placed).collect()
}

/// From the lowest to the highest, rates and concurrencies apart; rows in their order.
fn places<'a, R>(sides: &[Vec<Placed<'a, R>>]) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::new();
    for place in sides.iter().flatten().map(Placed::place) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let kind = |level: &Level| match level {
        Level::AsAsked => 0,
        Level::Rate(_) | Level::Unlimited => 1,
        Level::Concurrency(_) => 2,
    };
    places.sort_by(|(row, a), (other_row, b)| {
        if row.is_some() || other_row.is_some() {
            return row.is_some().cmp(&other_row.is_some());
        }
        let places = a.place().unwrap_or(0.0).total_cmp(&b.place().unwrap_or(0.0));
        kind(a).cmp(&kind(b)).then(places)
    });
    places
}
