//! What another client reported of a load, beside what the server that it measured knows of it.
//!
//! The truth is a [`ToolResult`] too, so that figures are compared by their definitions. A grade is that of
//! its gravest [`Reason`].

use inferometer_model::fmt::{compact, count, counted, number, percent};
use serde::Serialize;

use crate::metric::Statistic;
use crate::statistics::Percentile;
use crate::tool_result::{CountsFrom, Grain, LatencyKind, ResultLatency, ToolResult};

/// One load of one kind, as it was asked for, as it came, and as the client reported it.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedLoad {
    pub name: String,
    pub about: String,
    /// Requests that the client was to send, and how many of them at once.
    pub requests: u64,
    pub concurrency: u32,
    pub truth: TrueLoad,
    /// What the client reported, or why it reported nothing.
    pub reported: Result<ToolResult, String>,
}

/// What the server knows of the requests of one load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrueLoad {
    /// Those that were answered well, by our definitions.
    pub result: ToolResult,
    pub ok: u64,
    /// Answers that no client may count as a success.
    pub failed: u64,
    /// Requests of the client's own beside the load, such as probes.
    pub extra: u64,
    /// Requests in flight on average while the client still sent new ones.
    pub in_flight: Option<f64>,
    /// How late the server itself was, as a p99.
    pub late_ms: Option<f64>,
}

/// A figure that was reported, and the true one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    pub figure: String,
    pub unit: &'static str,
    pub reported: f64,
    pub truth: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
pub enum Grade {
    A,
    B,
    C,
    D,
    F,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    pub grade: Grade,
    pub text: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct LoadJudgement {
    #[serde(flatten)]
    pub load: JudgedLoad,
    pub grade: Grade,
    pub reasons: Vec<Reason>,
    pub figures: Vec<ComparedFigure>,
    /// Set where the server was late itself, so that times are not graded.
    pub is_untimed: bool,
}

/// A server that was later than this did not keep its pace: the machine was busy.
const LATE_MS_MAX: f64 = 5.0;
/// An error of a time or a rate that nobody would notice, as a share and in milliseconds.
const SMALL_ERROR: f64 = 0.1;
const SMALL_ERROR_MS: f64 = 2.0;
const LARGE_ERROR: f64 = 0.5;
/// Below this share of the stated concurrency a client has sent another load.
const HELD_SHARE: f64 = 0.9;
/// With fewer requests for each slot the ends of a load are most of it.
const TURNS_MIN: u64 = 4;

impl ComparedFigure {
    /// As a share of the truth; `None` where that is nothing.
    pub fn error(&self) -> Option<f64> {
        let share = (self.reported - self.truth) / self.truth;
        share.is_finite().then_some(share)
    }

    fn grade(&self) -> Grade {
        let is_time = self.unit == "ms";
        let is_small = is_time && (self.reported - self.truth).abs() <= SMALL_ERROR_MS;
        match self.error().map_or(0.0, f64::abs) {
            _ if is_small => Grade::A,
            share if share <= SMALL_ERROR => Grade::A,
            share if share <= LARGE_ERROR => Grade::B,
            _ => Grade::C,
        }
    }
}

/// Compares and grades one load.
pub fn judge_load(load: JudgedLoad) -> LoadJudgement {
    let is_untimed = load.truth.late_ms.is_some_and(|late| LATE_MS_MAX < late);
    let mut reasons = Vec::new();
    let mut figures = Vec::new();
    match &load.reported {
        // A client may refuse a load in which nothing can be measured.
        Err(_) if load.truth.ok == 0 && 0 < load.truth.failed => {}
        Err(why) => {
            let text = format!("no result: {why}");
            reasons.push(Reason { grade: Grade::D, text });
        }
        Ok(reported) => {
            judge_counts(reported, &load, &mut reasons);
            figures = compared(reported, &load.truth.result);
            // One answer has no rate.
            figures.retain(|figure| 1 < load.truth.ok || figure.unit == "ms");
            if !is_untimed {
                let of_figure = |it: &ComparedFigure| {
                    let error = percent(it.error().map(f64::abs));
                    let side = if it.truth < it.reported { "too high" } else { "too low" };
                    Reason { grade: it.grade(), text: format!("{} is {error} {side}", it.figure) }
                };
                reasons.extend(figures.iter().map(of_figure).filter(|it| Grade::A < it.grade));
            }
        }
    }
    judge_load_delivered(&load, is_untimed, &mut reasons);
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.grade));
    let grade = reasons.iter().map(|reason| reason.grade).max().unwrap_or(Grade::A);
    LoadJudgement { load, grade, reasons, figures, is_untimed }
}

fn judge_counts(reported: &ToolResult, load: &JudgedLoad, reasons: &mut Vec<Reason>) {
    let truth = &load.truth;
    let mut add = |grade, text: String| reasons.push(Reason { grade, text });
    match reported.completed {
        None => add(Grade::B, "it does not say how many requests succeeded".to_owned()),
        // Probes that are counted among the load are not failures that are taken for successes.
        Some(completed) if truth.ok + truth.extra < completed && 0 < truth.failed => add(
            Grade::F,
            format!("{} counted as success", counted(completed - truth.ok, "failed answer")),
        ),
        Some(completed) if truth.ok + truth.extra < completed => add(
            Grade::D,
            format!(
                "{} reported as successful, the server answered {}",
                count(completed),
                count(truth.ok)
            ),
        ),
        Some(completed) if completed < truth.ok => add(
            Grade::D,
            match truth.ok - completed {
                1 => "1 request that was answered well is missing".to_owned(),
                missing => {
                    format!("{} requests that were answered well are missing", count(missing))
                }
            },
        ),
        Some(_) => {}
    }
    if 0 < truth.failed && reported.failed.is_none_or(|failed| failed == 0) {
        let failed = counted(truth.failed, "request");
        add(Grade::C, format!("{failed} failed, and it reports no failure"));
    }
    let tokens = reported.output_tokens.zip(truth.result.output_tokens);
    if let Some((found, real)) =
        tokens.filter(|(found, real)| found != real && reported.completed == Some(truth.ok))
    {
        let text = format!("{} output tokens reported, {} sent", count(found), count(real));
        add(Grade::D, text);
    }
}

fn judge_load_delivered(load: &JudgedLoad, is_untimed: bool, reasons: &mut Vec<Reason>) {
    let truth = &load.truth;
    let sent = truth.ok + truth.failed;
    if sent < load.requests {
        let text =
            format!("{} of {} reached the server", count(sent), counted(load.requests, "request"));
        reasons.push(Reason { grade: Grade::C, text });
    }
    let slots = f64::from(load.concurrency);
    let is_long = u64::from(load.concurrency) * TURNS_MIN <= load.requests && !is_untimed;
    if let Some(in_flight) = truth.in_flight.filter(|it| is_long && *it < HELD_SHARE * slots) {
        let text =
            format!("{} in flight on average instead of {}", compact(in_flight), number(slots));
        reasons.push(Reason { grade: Grade::C, text });
    }
}

/// All figures that both have, by the definition of the one that was reported.
fn compared(reported: &ToolResult, truth: &ToolResult) -> Vec<ComparedFigure> {
    let rate = |name: &str, unit, found: Option<f64>, real: Option<f64>| {
        Some(ComparedFigure { figure: name.to_owned(), unit, reported: found?, truth: real? })
    };
    let mut figures: Vec<ComparedFigure> = [
        rate("Request throughput", "req/s", reported.request_throughput, truth.request_throughput),
        rate("Output throughput", "tok/s", reported.output_throughput, truth.output_throughput),
    ]
    .into_iter()
    .flatten()
    .collect();
    for latency in reported.latencies.iter().filter(|it| it.from != CountsFrom::Schedule) {
        let Some(real) = true_latency(truth, latency) else { continue };
        for statistic in [
            Statistic::Mean,
            Statistic::Percentile(Percentile::P50),
            Statistic::Percentile(Percentile::P99),
        ] {
            let value = |result: &ToolResult, latency| {
                result.statistic_of(latency, statistic).map(|it| it.value)
            };
            let pair = value(reported, latency).zip(value(truth, real));
            figures.extend(pair.map(|(reported, truth)| ComparedFigure {
                figure: format!("{} {}", latency.kind.name(), statistic.name()),
                unit: "ms",
                reported,
                truth,
            }));
        }
    }
    figures
}

/// The true latency by the same definition; one that is not stated is taken for that of single requests or
/// tokens.
fn true_latency<'a>(truth: &'a ToolResult, reported: &ResultLatency) -> Option<&'a ResultLatency> {
    let grain = match (reported.kind, reported.grain) {
        (LatencyKind::Itl, Grain::Unknown) => Grain::Token,
        (_, Grain::Unknown) => Grain::Request,
        (_, grain) => grain,
    };
    truth.latencies.iter().find(|it| it.kind == reported.kind && it.grain == grain)
}

#[cfg(test)]
mod tests;
