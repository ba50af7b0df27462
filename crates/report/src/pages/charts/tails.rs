//! How latencies are distributed, tail included.

use inferometer_analysis::{
    DistributionFigure, LatencyOrigin, Metric, Percentile, Summary, metric,
};
use inferometer_model::campaign::Level;

use super::{id, measure};
use crate::chart::{Chart, Curve, Distribution, Plot, ScaleKind};
use crate::fmt::{count, counted, latency, level_name, number};
use crate::pages::rows::Row;

/// More lines than colours cannot be told apart.
const CURVES_MAX: usize = 8;

/// Times to the first token: on an open loop from their moments in the schedule.
pub(in crate::pages) fn first_tokens(rows: &[&Row<'_>], of: &str) -> Option<Chart> {
    tails(rows, first_token_metric(rows), of)
}

pub(in crate::pages) fn first_token_metric(rows: &[&Row<'_>]) -> &'static Metric {
    let is_open = |row: &&Row<'_>| row.drawn().is_some_and(|run| run.run.load.is_open());
    LatencyOrigin::for_load(rows.iter().any(is_open)).ttft()
}

/// Gaps between tokens, or between what came at once where tokens cannot be told apart.
pub(in crate::pages) fn token_gaps(rows: &[&Row<'_>], of: &str) -> Option<Chart> {
    tails(rows, &metric::ITL, of).or_else(|| tails(rows, &metric::ICL, of))
}

/// One curve for each row, from the run of it that is drawn.
fn tails(rows: &[&Row<'_>], metric: &'static Metric, of: &str) -> Option<Chart> {
    let found: Vec<(&Row<'_>, &Summary, &DistributionFigure)> = rows
        .iter()
        .filter_map(|row| {
            let run = row.drawn()?;
            let figure =
                run.figures.distributions.iter().find(|found| found.metric == metric.name)?;
            (!figure.points.is_empty()).then_some((*row, run, figure))
        })
        .collect();
    let drawn = spread(&found);
    let (first, last) = (drawn.first()?, drawn.last()?);
    let alone = drawn.len() == 1;
    let curves = drawn.iter().map(|(row, _, found)| Curve {
        name: if alone { metric.title.to_owned() } else { curve_name(row, &drawn) },
        n: found.n,
        points: found.points.clone(),
    });
    let several = rows.iter().any(|row| 1 < row.runs.len());
    let which = match (alone, several) {
        (_, false) => String::new(),
        (true, true) => first.0.which_run(),
        (false, true) => "; of the first run of each".to_owned(),
    };
    Some(Chart {
        id: id(of, &format!("{}-tail", metric.name).replace('_', "-")),
        title: format!("{} distribution", metric.title),
        finding: if alone { of_one(first.1, metric)? } else { of_several(first, last, metric)? },
        n: format!(
            "{}{}{}",
            behind(&drawn),
            which,
            if drawn.len() < found.len() {
                format!("; {} of {} rows are drawn", drawn.len(), found.len())
            } else {
                String::new()
            }
        ),
        plot: Plot::Distribution(Distribution {
            x: measure(metric.title, "ms", ScaleKind::Log),
            curves: curves.collect(),
        }),
    })
}

/// The level alone where all are levels of one scenario, which the page has named already.
fn curve_name(row: &Row<'_>, drawn: &[Drawn<'_>]) -> String {
    let scenario = |row: &Row<'_>| row.scenario.map(|asked| asked.scenario.clone());
    let is_shared = drawn.iter().all(|(other, _, _)| scenario(other) == scenario(row));
    match row.level.map(|level| level.level) {
        Some(level @ Level::Concurrency(_)) if is_shared && row.scenario.is_some() => {
            level_name(level)
        }
        _ => row.name.clone(),
    }
}

/// Evenly chosen, the first and the last among them.
fn spread<T: Copy>(found: &[T]) -> Vec<T> {
    if found.len() <= CURVES_MAX {
        return found.to_vec();
    }
    let last = found.len() - 1;
    (0..CURVES_MAX)
        .filter_map(|place| found.get(place * last / (CURVES_MAX - 1)).copied())
        .collect()
}

fn behind(drawn: &[(&Row<'_>, &Summary, &DistributionFigure)]) -> String {
    let counts = || drawn.iter().map(|(_, _, found)| found.n);
    match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least != most => {
            format!("{} to {} each", count(least), counted(most, "value"))
        }
        (Some(least), _) => counted(least, "value") + if 1 < drawn.len() { " each" } else { "" },
        (None, _) => String::new(),
    }
}

fn of_one(run: &Summary, metric: &Metric) -> Option<String> {
    let found = run.metrics.distribution(metric)?;
    let (middle, tail) = (found.p50?, found.p99?);
    let certain = found.is_certified(Percentile::P99);
    let times = if 0.0 < middle {
        format!(", {} times the median", number(tail / middle))
    } else {
        String::new()
    };
    let doubt = if certain { "" } else { "; too few independent values to certify it" };
    Some(format!(
        "Half of the values are at or below {}, 99 % at or below {}{times}{doubt}.",
        latency(middle),
        latency(tail),
    ))
}

type Drawn<'a> = (&'a Row<'a>, &'a Summary, &'a DistributionFigure);

fn of_several(first: &Drawn<'_>, last: &Drawn<'_>, metric: &Metric) -> Option<String> {
    let told = |(row, run, _): &Drawn<'_>| {
        let found = run.metrics.distribution(metric)?;
        Some(format!("{}: median {}, p99 {}", row.name, latency(found.p50?), latency(found.p99?)))
    };
    Some(format!("{}; {}.", told(first)?, told(last)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_keeps_both_ends() {
        let all: Vec<u32> = (0..20).collect();
        let chosen = spread(&all);
        assert_eq!(
            (chosen.len(), chosen.first(), chosen.last()),
            (CURVES_MAX, Some(&0), Some(&19))
        );
        assert_eq!(spread(&all[..3]), [0, 1, 2]);
    }
}
