//! What all users together get against what each of them gets.

use inferometer_analysis::{Interval, Summary, metric};

use super::{measure, pair};
use crate::chart::{Chart, Pareto, ParetoPoint, Plot, ScaleKind};
use crate::fmt::{counted, level_name, number};
use crate::pages::rows::{Row, Series};

/// `None` with fewer than two points.
pub(in crate::pages) fn pareto(series: &[Series<'_>]) -> Option<Chart> {
    let gpus = gpus(series);
    let share = f64::from(gpus.unwrap_or(1));
    let mut points: Vec<ParetoPoint> = series
        .iter()
        .flat_map(|one| one.rows.iter().filter_map(|row| point(&one.name, row, share)))
        .collect();
    if points.len() < 2 {
        return None;
    }
    mark_frontier(&mut points);
    let label = if gpus.is_some() { "Output throughput per GPU" } else { "Output throughput" };
    let n = match gpus {
        Some(gpus) => {
            format!("{}, {}", counted(points.len() as u64, "level"), counted(gpus.into(), "GPU"))
        }
        None => format!(
            "{}; how many GPUs answered is not known, so throughput is of all of them",
            counted(points.len() as u64, "level")
        ),
    };
    Some(Chart {
        id: "throughput-against-speed".to_owned(),
        title: format!("{label} against speed for each user"),
        finding: finding(&points, 1 < series.len(), gpus.is_some()),
        n,
        plot: Plot::Pareto(Pareto {
            x: measure("Speed for each user", "tok/s", ScaleKind::Linear),
            y: measure(label, "tok/s", ScaleKind::Linear),
            points,
        }),
    })
}

/// GPUs of a server, where all rows know the same number of them.
fn gpus(series: &[Series<'_>]) -> Option<u32> {
    let rows = series.iter().flat_map(|one| &one.rows);
    let mut known = rows.filter_map(|row| row.drawn()).map(gpus_used);
    let first = known.next()??;
    (0 < first && known.all(|other| other == Some(first))).then_some(first)
}

/// As the server's facts say, else as the GPUs do on which its processes were seen.
fn gpus_used(run: &Summary) -> Option<u32> {
    run.system.gpus_used().or_else(|| {
        let gpus = run.machines.gpus.as_ref().filter(|gpus| gpus.servers_by.is_some())?;
        u32::try_from(gpus.devices.iter().filter(|device| device.counts()).count()).ok()
    })
}

fn point(series: &str, row: &Row<'_>, share: f64) -> Option<ParetoPoint> {
    let reservation = row.reservation();
    let (speed, total) =
        (row.quantity(&metric::PER_USER_THROUGHPUT), row.quantity(&metric::OUTPUT_THROUGHPUT));
    let divided =
        |interval: Option<Interval>| pair(interval).map(|(low, high)| (low / share, high / share));
    Some(ParetoPoint {
        series: series.to_owned(),
        label: row.level.map_or_else(|| row.name.clone(), |level| level_name(level.level)),
        x: speed.mean?,
        y: total.mean? / share,
        x_interval: pair(speed.doubt()),
        y_interval: divided(total.doubt()),
        on_frontier: false,
        hollow: reservation.is_some(),
        note: reservation,
    })
}

fn mark_frontier(points: &mut [ParetoPoint]) {
    let places: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
    for point in points {
        let beaten =
            |(x, y): &(f64, f64)| point.x <= *x && point.y <= *y && (point.x < *x || point.y < *y);
        point.on_frontier = !places.iter().any(beaten);
    }
}

fn finding(points: &[ParetoPoint], named: bool, per_gpu: bool) -> String {
    let mut best: Vec<&ParetoPoint> = points.iter().filter(|point| point.on_frontier).collect();
    best.sort_by(|a, b| b.x.total_cmp(&a.x));
    let name = |point: &ParetoPoint| {
        if named { format!("{} {}", point.series, point.label) } else { point.label.clone() }
    };
    let told = |point: &ParetoPoint| {
        format!(
            "{} ({} tok/s for each user, {} tok/s {})",
            name(point),
            number(point.x),
            number(point.y),
            if per_gpu { "per GPU" } else { "in all" }
        )
    };
    match best.as_slice() {
        [only] => {
            format!("{} is best in both, and no other level is better in either.", told(only))
        }
        [first, .., last] => format!(
            "{} of {} levels are not beaten in both at once, from {} to {}.",
            best.len(),
            points.len(),
            told(first),
            told(last)
        ),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, y: f64) -> ParetoPoint {
        ParetoPoint {
            series: "s".to_owned(),
            label: format!("{x}/{y}"),
            x,
            y,
            x_interval: None,
            y_interval: None,
            on_frontier: false,
            hollow: false,
            note: None,
        }
    }

    #[test]
    fn what_is_divided_by_gpus_is_said_to_be() {
        let mut points = vec![point(50.0, 100.0), point(40.0, 160.0)];
        mark_frontier(&mut points);
        let shared = finding(&points, false, true);
        assert!(shared.contains("160.0 tok/s per GPU") && !shared.contains("in all"), "{shared}");
        assert!(finding(&points, false, false).contains("160.0 tok/s in all"));
    }

    #[test]
    fn a_point_is_on_the_frontier_unless_another_is_better_in_both() {
        let mut points = vec![point(50.0, 100.0), point(40.0, 160.0), point(30.0, 150.0)];
        points.push(point(40.0, 160.0));
        mark_frontier(&mut points);
        let marks: Vec<bool> = points.iter().map(|point| point.on_frontier).collect();
        assert_eq!(marks, [true, true, false, true]);
    }
}
