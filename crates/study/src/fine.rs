//! More levels around the knee of throughput, once the others are measured.
//!
//! Each condition has its own knee; all conditions are measured at the levels of all knees, so
//! that they stay paired. The stretch between the knee's two neighbours is cut into equal steps.

use inferometer_analysis::set::kneedle;
use inferometer_model::study::{Dimension, Fine, Level, Point, Stage, StudySpec, Sweep};

use crate::search::{level_at, round_level};
use crate::{History, Reading};

/// The new levels, from the lowest to the highest; empty where no condition has a knee.
pub(crate) fn levels(spec: &StudySpec, sweep: &Sweep, fine: Fine, history: &History) -> Vec<Level> {
    let mut places: Vec<f64> = Vec::new();
    for condition in 0..spec.conditions.len() {
        let Ok(condition) = u32::try_from(condition) else { continue };
        // Throughput in output tokens; in requests where nothing is generated, as for the knee of the set.
        let mut curve = curve_of(history, condition, |reading| reading.output_throughput);
        if curve.is_empty() {
            curve = curve_of(history, condition, |reading| reading.request_throughput);
        }
        places.extend(around_knee(&curve, sweep.dimension, fine));
    }
    places.sort_by(f64::total_cmp);
    places.dedup();
    let exists = |place: &f64| sweep.levels.iter().any(|level| level.place() == Some(*place));
    let new = places.into_iter().filter(|place| !exists(place));
    new.filter_map(|place| level_at(sweep.dimension, place)).collect()
}

/// The mean over the planned levels that have a place and a value and were not cut.
fn curve_of(
    history: &History,
    condition: u32,
    throughput: fn(&Reading) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let counts = |(point, reading): &&(Point, Reading)| {
        point.stage == Stage::Planned && point.condition == condition && reading.is_valid
    };
    let runs = || history.iter().filter(counts);
    let is_whole =
        |level: Level| !runs().any(|(point, reading)| point.level == level && reading.is_cut);
    let mut values: Vec<(f64, f64)> = runs()
        .filter(|(point, _)| is_whole(point.level))
        .filter_map(|(point, reading)| Some((point.level.place()?, throughput(reading)?)))
        .filter(|(place, _)| place.is_finite())
        .collect();
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let levels = values.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq());
    let mean = |runs: &[(f64, f64)]| {
        let sum: f64 = runs.iter().map(|(_, throughput)| throughput).sum();
        (runs[0].0, sum / runs.len() as f64)
    };
    levels.map(mean).collect()
}

fn around_knee(curve: &[(f64, f64)], dimension: Dimension, fine: Fine) -> Vec<f64> {
    let Some(knee) = kneedle(curve) else { return Vec::new() };
    let low = curve[knee.saturating_sub(1)].0;
    let high = curve[(knee + 1).min(curve.len() - 1)].0;
    let steps = fine.steps.get();
    let step = (high - low) / f64::from(steps);
    (1..steps)
        .map(|number| round_level(dimension, low + step * f64::from(number)))
        // Rounded, a step may be one of the two ends or beyond it.
        .filter(|place| low < *place && *place < high)
        .collect()
}

#[cfg(test)]
mod tests;
