//! What was promised, and what became of it.

use std::fmt::Write;

use inferometer_analysis::{Metric, RequestSlos, SloOutcome, Summary, ThresholdVerdict};

use super::style::{Ink, Style};
use crate::escape::{terminal, terminal_line};
use crate::fmt::{NOTHING, count, number, percent, with_unit};
use crate::lines::{PAGE_WIDTH, broken};

const WORD_WIDTH: usize = 11;
const DOUBT_WIDTH: usize = PAGE_WIDTH - WORD_WIDTH - 2;
/// Characters of a promise; names are bounded, but limits have any number of digits.
const PROMISE_MAX: usize = 36;

pub(super) fn promises(summary: &Summary, style: Style) -> String {
    let mut rows: Vec<Row> = summary.request_slos.iter().flat_map(of_each_request).collect();
    rows.extend(summary.slos.iter().map(of_run));
    if rows.is_empty() {
        return String::new();
    }
    let width = rows.iter().map(|row| row.promise.chars().count()).max().unwrap_or(0);
    let mut text = style.paint(Ink::Bold, "promises") + "\n";
    for row in rows {
        let word = style.paint(row.ink, &format!("{:<WORD_WIDTH$}", row.word));
        let promise = &row.promise;
        let _ = writeln!(text, "  {word}{promise:<width$}  {}", row.found);
        for doubt in row.doubt.iter().flat_map(|doubt| broken(doubt, DOUBT_WIDTH)) {
            let _ = writeln!(text, "  {:WORD_WIDTH$}{}", "", style.paint(Ink::Dim, &doubt));
        }
    }
    text
}

struct Row {
    word: &'static str,
    ink: Ink,
    promise: String,
    found: String,
    /// Why nothing is decided.
    doubt: Option<String>,
}

fn of_each_request(slos: &RequestSlos) -> Vec<Row> {
    let row = |promise: String, metric: Option<&str>, met: u64, reason: Option<&str>| Row {
        word: "each",
        ink: Ink::Dim,
        found: match reason {
            None => kept(met, slos.scheduled) + &meaning(&promise, metric),
            Some(_) => NOTHING.to_owned() + &meaning(&promise, metric),
        },
        promise: terminal_line(&promise, PROMISE_MAX),
        doubt: reason.map(terminal),
    };
    let mut rows: Vec<Row> = slos
        .promises
        .iter()
        .map(|slo| row(slo.promise.clone(), Some(&slo.metric), slo.met, slo.reason.as_deref()))
        .collect();
    // Together they are known only where each is.
    if 1 < rows.len() && slos.promises.iter().all(|slo| slo.reason.is_none()) {
        rows.push(row("all of these".to_owned(), None, slos.met, None));
    }
    rows
}

fn kept(met: u64, scheduled: u64) -> String {
    // Without a request there is no share.
    let share = (0 < scheduled).then(|| met as f64 / scheduled as f64);
    format!("{} of {} requests ({})", count(met), count(scheduled), percent(share))
}

fn of_run(slo: &SloOutcome) -> Row {
    let ink = match slo.verdict {
        ThresholdVerdict::Met => Ink::Good,
        ThresholdVerdict::Missed => Ink::Bad,
        ThresholdVerdict::Undecided => Ink::Doubtful,
    };
    let metric = slo.metric.as_deref();
    Row {
        word: slo.verdict.key(),
        ink,
        promise: terminal_line(&slo.promise, PROMISE_MAX),
        found: value(metric, slo.value) + &meaning(&slo.promise, metric),
        doubt: slo.reason.as_deref().map(terminal),
    }
}

fn value(metric: Option<&str>, value: Option<f64>) -> String {
    match metric.and_then(Metric::named) {
        Some(metric) => with_unit(value, metric.unit),
        None => number(value),
    }
}

/// Says which metric was compared, where the promise leaves it to the load.
fn meaning(promise: &str, metric: Option<&str>) -> String {
    let Some(metric) = metric.filter(|metric| !promise.starts_with(metric)) else {
        return String::new();
    };
    Metric::named(metric).map_or_else(String::new, |metric| format!(", {}", metric.title))
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::RequestSlo;

    use super::*;

    fn outcome(metric: &str, value: Option<f64>) -> String {
        let slo = SloOutcome {
            promise: format!("{}<5", metric.trim_end_matches("_schedule")),
            metric: Some(metric.to_owned()),
            verdict: ThresholdVerdict::Met,
            value,
            reason: None,
        };
        of_run(&slo).found
    }

    #[test]
    fn values_have_their_units() {
        assert_eq!(outcome("ttft", Some(95.19)), "95.19 ms");
        assert_eq!(outcome("ttft_schedule", Some(95.19)), "95.19 ms, TTFT from schedule");
        assert_eq!(outcome("error_rate", Some(0.05)), "5 %");
        assert_eq!(outcome("goodput", Some(4.5)), "4.50 req/s");
        assert_eq!(outcome("goodput", None), "–");
    }

    #[test]
    fn what_nothing_shows_has_its_reason_and_no_share() {
        let promise = |reason: Option<&str>| RequestSlo {
            promise: "ttft<1s".to_owned(),
            metric: "ttft".to_owned(),
            met: 0,
            reason: reason.map(str::to_owned),
        };
        let promises = vec![promise(None), promise(Some("not streamed"))];
        let rows = of_each_request(&RequestSlos { promises, scheduled: 40, met: 0 });
        let found: Vec<&str> = rows.iter().map(|row| row.found.as_str()).collect();
        assert_eq!(found, ["0 of 40 requests (0 %)", "–"]);
        assert_eq!(rows[1].doubt.as_deref(), Some("not streamed"));
    }

    #[test]
    fn no_request_keeps_no_share() {
        assert_eq!(kept(0, 0), "0 of 0 requests (–)");
        assert_eq!(kept(19, 20), "19 of 20 requests (95 %)");
    }
}
