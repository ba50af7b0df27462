//! The tables of a sweep: one line for each level.

use inferometer_analysis::set::{AcrossRuns, ConditionSummary, LevelSummary};
use inferometer_analysis::{LatencyOrigin, Metric, Verdict, metric};

use crate::escape::terminal;
use crate::fmt::{across, count, marked_mean, mean, percent, percentile};
use crate::lines::PAGE_WIDTH;
use crate::table::Table;
use crate::terminal::Style;

/// Failures above this share of a level are worth a mark.
const FAILED_SHARE: f64 = 0.01;

pub(super) fn throughputs(
    condition: &ConditionSummary,
    name: Option<&str>,
    style: Style,
) -> String {
    let open = is_open(condition);
    let mut table = Table {
        title: titled(name, "throughput"),
        heads: vec![
            level_head(open),
            "runs",
            "ok/failed",
            "request/s",
            "output tok/s",
            "CoV",
            if open { "served" } else { "tok/s per user" },
            "marks",
        ],
        rows: condition.levels.iter().map(|level| throughput_row(level, open)).collect(),
        remarks: Vec::new(),
    };
    if condition.levels.iter().all(|level| marks(level).is_empty()) {
        table.remove_column("marks");
    } else {
        table.remarks.extend(legend(&condition.levels));
    }
    table.remarks.push(doubt_remark(&condition.levels));
    for column in ["request/s", "CoV"] {
        if PAGE_WIDTH < width(&table) {
            // The document has it.
            table.remove_column(column);
        }
    }
    table.to_terminal(style)
}

pub(super) fn width(table: &Table) -> usize {
    let page = table.to_terminal(Style::Plain);
    page.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
}

fn throughput_row(level: &LevelSummary, open: bool) -> Vec<String> {
    let tally = &level.requests;
    let throughput = level.quantity(metric::OUTPUT_THROUGHPUT.quantity());
    vec![
        crate::fmt::level(level.level),
        count(level.points.len() as u64),
        format!("{}/{}", count(tally.ok), count(tally.failed)),
        across(level.quantity(metric::REQUEST_THROUGHPUT.quantity())),
        across(throughput),
        percent(throughput.and_then(|found| found.cov)),
        if open {
            percent(level.served.map(|served| served.share.min(1.0)))
        } else {
            across(level.quantity(metric::PER_USER_THROUGHPUT.quantity()))
        },
        marks(level).join(", "),
    ]
}

pub(super) fn latencies(condition: &ConditionSummary, name: Option<&str>, style: Style) -> String {
    let whole = latency_table(condition, name, across, percentile);
    if width(&whole) <= PAGE_WIDTH {
        return whole.to_terminal(style);
    }
    // The document has what is left out.
    let mut narrow = latency_table(condition, name, mean, marked_mean);
    narrow.remarks.push(DOUBT_ELSEWHERE.to_owned());
    narrow.to_terminal(style)
}

/// How a number of a level is written.
pub(super) type Cell = fn(Option<&AcrossRuns>) -> String;

pub(super) const DOUBT_ELSEWHERE: &str = "the intervals of these figures are in the document";

fn latency_table(
    condition: &ConditionSummary,
    name: Option<&str>,
    of_mean: Cell,
    of_percentile: Cell,
) -> Table {
    let open = is_open(condition);
    let origin = LatencyOrigin::for_load(open);
    let (ttft, e2e) = (origin.ttft(), origin.e2e());
    let row = |level: &LevelSummary| {
        let mean = |metric: &'static Metric| of_mean(level.quantity(metric.mean()));
        let p99 = |metric: &'static Metric| of_percentile(level.quantity(metric.p99()));
        vec![
            crate::fmt::level(level.level),
            mean(ttft),
            p99(ttft),
            mean(&metric::TPOT),
            p99(&metric::TPOT),
            mean(e2e),
        ]
    };
    let rows: Vec<Vec<String>> = condition.levels.iter().map(row).collect();
    let uncertain = rows.iter().flatten().any(|cell| cell.starts_with('~'));
    let mut remarks = Vec::new();
    if open {
        remarks.push(
            "TTFT and E2E count from the schedule: waiting in the client is in them".to_owned(),
        );
    }
    if uncertain {
        remarks.push("~ too few samples in a run to certify this percentile".to_owned());
    }
    Table {
        title: titled(name, "latency (ms)"),
        heads: vec![level_head(open), "TTFT mean", "TTFT p99", "TPOT mean", "TPOT p99", "E2E mean"],
        rows,
        remarks,
    }
}

pub(super) fn titled(name: Option<&str>, title: &str) -> String {
    name.map_or_else(|| title.to_owned(), |name| format!("{name}: {title}"))
}

/// What a level is, in the head of its column.
pub(super) const fn level_head(open: bool) -> &'static str {
    if open { "asked/s" } else { "at once" }
}

pub(super) fn is_open(condition: &ConditionSummary) -> bool {
    condition.subject.as_ref().is_some_and(|subject| subject.open_loop)
}

fn marks(level: &LevelSummary) -> Vec<&'static str> {
    let mut marks: Vec<&'static str> = [
        (!level.left_out.is_empty(), "invalid"),
        (level.failed_share.is_some_and(|share| FAILED_SHARE < share), "errors"),
        (level.cut.as_ref().is_some_and(|cut| cut.answers_missing), "cut"),
        (level.cut.as_ref().is_some_and(|cut| !cut.answers_missing), "short"),
        (!level.is_reached(), "not reached"),
        (0 < level.partial, "partial"),
        (level.is_saturated(), "saturated"),
    ]
    .into_iter()
    .filter_map(|(is_so, mark)| is_so.then_some(mark))
    .collect();
    // Whatever else is marked is degraded.
    if marks.iter().all(|mark| matches!(*mark, "short" | "not reached"))
        && level.verdict == Verdict::Degraded
    {
        marks.push("degraded");
    }
    marks
}

/// What the marks that occur mean.
fn legend(levels: &[LevelSummary]) -> Vec<String> {
    let seen: Vec<&str> = levels.iter().flat_map(marks).collect();
    [
        ("invalid", "invalid: runs of this level are left out of its means"),
        ("degraded", "degraded: a run of this level holds with a reservation"),
        ("errors", "errors: more than 1 % of its requests failed"),
        ("cut", "cut: a limit of time ended it before its requests did"),
        (
            "short",
            "short: its time was over before all of its requests had left; all that left ended",
        ),
        (
            "not reached",
            "not reached: so many were never in flight, so its users were not there; it is in no finding",
        ),
        ("partial", "partial: a run was stopped before its end"),
        (
            "saturated",
            "saturated: less than 95 % of the asked rate was served, or requests pile up",
        ),
    ]
    .into_iter()
    .filter(|(mark, _)| seen.contains(mark))
    .map(|(_, words)| words.to_owned())
    .collect()
}

/// What ± means here.
pub(super) fn doubt_remark(levels: &[LevelSummary]) -> String {
    let throughputs =
        || levels.iter().filter_map(|level| level.quantity(metric::REQUEST_THROUGHPUT.quantity()));
    let between = throughputs().any(|found| found.interval.is_some());
    let within = throughputs().any(|found| found.interval.is_none() && found.within.is_some());
    let mean = throughputs().any(|found| found.mean.is_some() && found.doubt().is_none());
    let mut parts = Vec::new();
    if between {
        parts.push("± or from–to: 95 % between runs (Student's t)".to_owned());
    }
    if let Some(enough) = levels.iter().find_map(|level| level.enough.as_ref()) {
        parts.push(format!("of {} wider, for every look at it", terminal(&enough.quantity)));
    }
    if within {
        parts.push("± or from–to of one run: 95 % within it alone".to_owned());
    }
    if mean {
        parts.push("a single run has no ± where too little is in it".to_owned());
    }
    parts.join("; ")
}
