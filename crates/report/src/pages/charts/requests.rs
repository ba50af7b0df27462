//! Requests one by one, and the gaps between their tokens.

use inferometer_analysis::{Metric, RequestRow, RowReason, Summary};
use inferometer_model::Outcome;

use super::{id, measure};
use crate::chart::{Chart, Gantt, GanttEnding, GanttRow, HeatMap, Plot, ScaleKind};
use crate::fmt::{count, counted, latency, number};

/// A wait before sending is drawn where it can be seen.
const WAIT_SEEN_MS: f64 = 1.0;

pub(in crate::pages) fn requests(summary: &Summary, of: &str) -> Option<Chart> {
    let found = &summary.figures.requests;
    if found.rows.is_empty() {
        return None;
    }
    let choice = format!(
        "{}, {} and an even choice of the others",
        counted(tally(&found.rows, RowReason::Slowest), "slowest request"),
        counted(tally(&found.rows, RowReason::Failed), "failed one"),
    );
    Some(Chart {
        id: id(of, "requests"),
        title: "Requests one by one".to_owned(),
        finding: finding(summary),
        n: format!("{} of {}", found.rows.len(), counted(found.of, "request")),
        plot: Plot::Gantt(Gantt {
            rows: found.rows.iter().map(row).collect(),
            of: found.of,
            choice,
        }),
    })
}

fn tally(rows: &[RequestRow], why: RowReason) -> u64 {
    rows.iter().filter(|row| row.why == why).count() as u64
}

fn row(request: &RequestRow) -> GanttRow {
    // What never left began and ended where the plan wanted it.
    let sent_ms = request.sent_ms.unwrap_or(request.intended_ms);
    let waited = WAIT_SEEN_MS <= sent_ms - request.intended_ms;
    let tokens = request
        .output_tokens
        .map_or_else(String::new, |n| format!(", {} out", counted(n, "token")));
    GanttRow {
        label: format!("#{}", request.id),
        intended_s: waited.then_some(request.intended_ms / 1e3),
        sent_s: sent_ms / 1e3,
        first_s: request.first_ms.map(|ms| ms / 1e3),
        ended_s: request.ended_ms / 1e3,
        ending: match (request.outcome, request.why) {
            (Outcome::Ok, RowReason::Slowest) => GanttEnding::Slowest,
            (Outcome::Ok, _) => GanttEnding::Ok,
            (Outcome::Cancelled, _) => GanttEnding::Cancelled,
            _ => GanttEnding::Failed,
        },
        note: format!(
            "{}, {} s{tokens}",
            request.outcome,
            number((request.ended_ms - sent_ms) / 1e3)
        ),
    }
}

fn finding(summary: &Summary) -> String {
    let rows = &summary.figures.requests.rows;
    let began = |row: &RequestRow| row.sent_ms.unwrap_or(row.intended_ms);
    let took = |row: &&RequestRow| row.ended_ms - began(row);
    let ok = rows.iter().filter(|row| row.outcome == Outcome::Ok);
    let slowest = ok.max_by(|a, b| took(a).total_cmp(&took(b)));
    let failed = summary
        .attempted
        .saturating_sub(summary.count(Outcome::Ok) + summary.count(Outcome::Cancelled));
    let failures = match failed {
        0 => format!("none of the {} sent failed", count(summary.attempted)),
        some => format!("{} of the {} sent failed", count(some), count(summary.attempted)),
    };
    let Some(slowest) = slowest else {
        return format!("No request that is drawn ended ok; {failures}.");
    };
    let before = slowest.first_ms.map_or_else(String::new, |first| {
        format!(", {} s of it before its first token", number((first - began(slowest)) / 1e3))
    });
    format!("The slowest request took {} s{before}; {failures}.", number(took(&slowest) / 1e3))
}

pub(in crate::pages) fn gaps(summary: &Summary, of: &str) -> Option<Chart> {
    let gaps = summary.figures.gaps.as_ref()?;
    if gaps.columns.is_empty() || gaps.edges_ms.len() < 2 {
        return None;
    }
    let metric = Metric::named(&gaps.metric)?;
    let found = summary.metrics.distribution(metric)?;
    let (middle, tail) = (found.p50?, found.p99?);
    let total: u64 = gaps.columns.iter().flatten().sum();
    Some(Chart {
        id: id(of, "token-gaps"),
        title: format!("{} over time", metric.title),
        finding: format!(
            "Half of the gaps are at most {} long, and one in a hundred is longer than {}.",
            latency(middle),
            latency(tail),
        ),
        n: counted(total, "gap"),
        plot: Plot::HeatMap(HeatMap {
            from_s: gaps.from_ms / 1e3,
            step_s: gaps.step_ms / 1e3,
            y: measure(metric.title, "ms", ScaleKind::Log),
            edges: gaps.edges_ms.clone(),
            columns: gaps.columns.clone(),
            counted: "token gaps".to_owned(),
        }),
    })
}
