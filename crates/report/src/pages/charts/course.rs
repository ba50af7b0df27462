//! A run over time: what the client had in flight, and what the server says of itself.

use inferometer_analysis::{CourseFigure, Metric, Summary, metric};

use super::{id, measure};
use crate::chart::{Chart, Measure, Plot, ScaleKind, Timeline, TimelinePanel, TimelineSeries};
use crate::fmt::{counted, number, percent, whole};

/// A page has a chart for each scenario, and readers tell no more steps apart.
const STEPS_MAX: usize = 100;

pub(in crate::pages) fn course(summary: &Summary, of: &str) -> Option<Chart> {
    let course = &summary.figures.course;
    if course.in_flight.is_empty() || course.step_ms <= 0.0 {
        return None;
    }
    let (stored, course) = (course, &coarse(course));
    let mut panels = vec![in_flight(summary, course), tokens(stored)];
    panels.extend(kv_use(summary, course));
    Some(Chart {
        id: id(of, "course"),
        title: "Requests in flight, output and KV use over time".to_owned(),
        finding: finding(summary),
        n: format!(
            "{} in steps of {} s{}",
            counted(summary.attempted, "request"),
            number(course.step_ms / 1e3),
            heard(summary),
        ),
        plot: Plot::Timeline(Timeline {
            from_s: course.from_ms / 1e3,
            step_s: course.step_ms / 1e3,
            panels,
        }),
    })
}

fn joined(course: &CourseFigure) -> usize {
    course.in_flight.len().div_ceil(STEPS_MAX).max(1)
}

/// Steps joined until there are few enough.
fn coarse(course: &CourseFigure) -> CourseFigure {
    let joined = joined(course);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    CourseFigure {
        from_ms: course.from_ms,
        step_ms: course.step_ms * joined as f64,
        in_flight: course.in_flight.chunks(joined).map(mean).collect(),
        ..CourseFigure::default()
    }
}

fn in_flight(summary: &Summary, course: &CourseFigure) -> TimelinePanel {
    let client = course.in_flight.iter().map(|value| Some(*value)).collect();
    let mut series = vec![TimelineSeries { name: "in flight (client)".to_owned(), points: client }];
    if let Some(server) = &summary.server {
        let line = &server.timeline;
        for (name, values) in
            [("running (server)", &line.running), ("waiting (server)", &line.waiting)]
        {
            let values = resampled(values, (line.from_ms, line.step_ms), course);
            if values.iter().any(Option::is_some) {
                series.push(TimelineSeries { name: name.to_owned(), points: values });
            }
        }
    }
    panel("Requests", measure("", "", ScaleKind::Linear), series)
}

/// Of the steps as they are stored: the last that are joined may be fewer than the others.
fn tokens(stored: &CourseFigure) -> TimelinePanel {
    let per_s = |part: &[u64]| {
        let seconds = stored.step_ms / 1e3 * part.len() as f64;
        Some(part.iter().sum::<u64>() as f64 / seconds)
    };
    let values = stored.output_tokens.chunks(joined(stored)).map(per_s).collect();
    let series = vec![TimelineSeries { name: "output tokens".to_owned(), points: values }];
    panel("Output", measure("", "tok/s", ScaleKind::Linear), series)
}

fn kv_use(summary: &Summary, course: &CourseFigure) -> Option<TimelinePanel> {
    let line = &summary.server.as_ref()?.timeline;
    let shares = resampled(&line.kv_usage, (line.from_ms, line.step_ms), course);
    let values: Vec<Option<f64>> =
        shares.into_iter().map(|share| share.map(|share| share * 100.0)).collect();
    let is_known = values.iter().any(Option::is_some);
    let series = vec![TimelineSeries { name: "KV use (server)".to_owned(), points: values }];
    is_known.then(|| panel("KV use", measure("", "%", ScaleKind::Linear), series))
}

fn panel(heading: &str, y: Measure, series: Vec<TimelineSeries>) -> TimelinePanel {
    TimelinePanel { heading: heading.to_owned(), y, series }
}

/// The server's steps on the client's: the mean of those whose middles lie in a step. A reading is
/// of its moment and is not held until the next one, so that rare readings are points with gaps.
fn resampled(
    values: &[Option<f64>],
    (from_ms, step_ms): (f64, f64),
    course: &CourseFigure,
) -> Vec<Option<f64>> {
    let middle = |place: usize| from_ms + (place as f64 + 0.5) * step_ms;
    let at = |low: f64, high: f64| {
        let inside: Vec<f64> = values
            .iter()
            .enumerate()
            .filter(|(place, _)| (low..high).contains(&middle(*place)))
            .filter_map(|(_, value)| *value)
            .collect();
        (!inside.is_empty()).then(|| inside.iter().sum::<f64>() / inside.len() as f64)
    };
    if step_ms <= 0.0 {
        return vec![None; course.in_flight.len()];
    }
    (0..course.in_flight.len())
        .map(|step| {
            let low = course.from_ms + step as f64 * course.step_ms;
            at(low, low + course.step_ms)
        })
        .collect()
}

fn finding(summary: &Summary) -> String {
    let scalar = |metric: &Metric| summary.metrics.scalar(metric).and_then(|found| found.value);
    let mut parts = Vec::new();
    if let Some(mean) = scalar(&metric::CONCURRENCY_MEAN) {
        parts.push(format!("{} requests were in flight on average", number(mean)));
    }
    // The steps that are drawn are means: none of them is the most.
    if let Some(peak) = scalar(&metric::CONCURRENCY_PEAK) {
        let unit = if parts.is_empty() { " requests were in flight" } else { "" };
        parts.push(format!("{}{unit} at most", whole(peak)));
    }
    let mut parts: Vec<String> = match parts.as_slice() {
        [] => vec!["How many requests were in flight, step by step".to_owned()],
        known => vec![known.join(", ")],
    };
    if let Some(server) = &summary.server {
        if let Some(waiting) = server.waiting {
            parts.push(if 0.0 < waiting.max {
                format!("up to {} were seen waiting in the server", whole(waiting.max))
            } else {
                "none was seen waiting in the server".to_owned()
            });
        }
        if let Some(kv) = server.kv_usage {
            parts.push(format!("the highest KV use that was read is {}", percent(kv.max)));
        }
    }
    let mut text = parts.join("; ") + ".";
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    text
}

fn heard(summary: &Summary) -> String {
    match &summary.server {
        Some(server) => format!(", {} of the server", counted(server.scrapes.inside, "reading")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(from_ms: f64, step_ms: f64, steps: usize) -> CourseFigure {
        CourseFigure { from_ms, step_ms, in_flight: vec![1.0; steps], ..CourseFigure::default() }
    }

    #[test]
    fn a_reading_is_of_its_moment_and_gaps_stay_gaps() {
        let values = [Some(1.0), None, Some(3.0)];
        let found = resampled(&values, (0.0, 1_000.0), &grid(0.0, 500.0, 8));
        let expected = [None, Some(1.0), None, None, None, Some(3.0), None, None];
        assert_eq!(found, expected);
    }

    #[test]
    fn joined_steps_keep_their_means_and_rates() {
        let stored = CourseFigure { output_tokens: vec![2; 250], ..grid(0.0, 10.0, 250) };
        let found = coarse(&stored);
        assert_eq!(found.in_flight.len(), 84);
        assert!((found.step_ms - 30.0).abs() < 1e-9);
        assert!(found.in_flight.iter().all(|mean| (mean - 1.0).abs() < 1e-12));
        let rates = &tokens(&stored).series[0].points;
        assert_eq!(rates.len(), 84);
        assert!(rates.iter().flatten().all(|rate| (rate - 200.0).abs() < 1e-9), "{rates:?}");
    }

    #[test]
    fn fine_readings_are_averaged_and_time_before_them_is_empty() {
        let values = [Some(2.0), Some(4.0), None, Some(8.0)];
        let found = resampled(&values, (1_000.0, 500.0), &grid(0.0, 1_000.0, 4));
        assert_eq!(found, [None, Some(3.0), Some(8.0), None]);
    }
}
