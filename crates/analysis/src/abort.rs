//! The conditions of `--abort-on`, judged while a run goes on.
//!
//! A condition on a share (failed requests, requests that miss the SLOs, values above a percentile) holds
//! when even the lower end of the share's confidence interval is above what is allowed. Requests pile up
//! when more come than are answered, by more than chance explains, over a time in which many answers end.

use std::collections::VecDeque;
use std::time::Duration;

use inferometer_model::journal::RunStop;
use inferometer_model::spec::{AbortOn, LoadShape, Relation, Slo};
use inferometer_model::{RequestRecord, Spec, fmt};

use crate::judge::{SloProblem, Threshold, check_slos};
use crate::metric::{self, LatencyOrigin, Statistic};
use crate::record::{Attempt, AttemptReader, Output, Ruler};
use crate::statistics::proportion::wilson_at;

/// Judges one run.
#[derive(Debug)]
pub struct AbortWatch {
    reader: AttemptReader,
    budgets: Vec<Budget>,
    backlog: Option<Backlog>,
}

/// A share of requests that must not be exceeded.
#[derive(Debug)]
struct Budget {
    /// As the user wrote it.
    text: String,
    over: Over,
    allowed: f64,
    requests: u64,
    found: u64,
}

/// What a request is counted for.
#[derive(Debug)]
enum Over {
    Failed,
    MissesSlos,
    /// Its latency is on the wrong side of this limit.
    Limit(Threshold),
}

/// With fewer requests nothing is certain.
const REQUESTS_MIN: u64 = 20;
/// Standard errors of 99.9 %: the share is looked at many times.
const REACH: f64 = 3.29;

impl AbortWatch {
    /// `None` without conditions; or why one cannot be watched.
    pub fn new(spec: &Spec) -> Result<Option<Self>, SloProblem> {
        let conditions = &spec.control.abort_on;
        if conditions.is_empty() {
            return Ok(None);
        }
        let origin = LatencyOrigin::for_load(spec.is_open_loop());
        let mut budgets = Vec::new();
        for condition in conditions {
            match condition {
                AbortOn::Limit(limit) => {
                    // What must not be is the opposite of an SLO.
                    let mut slo = limit.clone();
                    slo.relation = match limit.relation {
                        Relation::Above => Relation::Below,
                        Relation::Below => Relation::Above,
                    };
                    budgets.push(Budget::new(limit, &slo, origin)?.ok_or_else(|| unfit(limit))?);
                }
                AbortOn::Slo => {
                    let known = budgets.len();
                    for slo in &spec.slos {
                        budgets.extend(Budget::new(slo, slo, origin)?);
                    }
                    if known == budgets.len() {
                        let why = "--abort-on slo needs an SLO of the run, such as --slo \
                                   'ttft.p99<500ms', error_rate<1% or attainment>95%";
                        return Err(SloProblem::plain(why));
                    }
                }
                AbortOn::Saturation => {}
            }
        }
        let is_open = matches!(spec.load.shape, LoadShape::Open { cap: None, .. });
        let has_backlog = conditions.contains(&AbortOn::Saturation);
        if has_backlog && !is_open {
            let why = "--abort-on saturation needs an open loop without a cap (--rate, --ramp): a \
                       closed loop sends no faster than the server answers";
            return Err(SloProblem::plain(why));
        }
        let thresholds = spec.slos.iter().filter_map(|slo| {
            let threshold = Threshold::from_slo(slo, origin).ok()?;
            threshold.is_per_request().then(|| (slo.to_string(), threshold))
        });
        let reader = AttemptReader {
            streaming: spec.workload.streaming,
            generates: spec.api.generates(),
            servers: 1,
            slos: thresholds.collect(),
            ruler: Ruler::new(0),
            output: Output::default(),
        };
        Ok(Some(Self { reader, budgets, backlog: has_backlog.then(Backlog::default) }))
    }

    /// Takes in a request that has ended.
    pub fn add(&mut self, record: &RequestRecord) {
        if record.ending.outcome.is_by_client() {
            return;
        }
        let attempt = self.reader.read(record);
        self.budgets.iter_mut().for_each(|budget| budget.add(&attempt));
        if let Some(backlog) = self.backlog.as_mut().filter(|_| attempt.is_ok()) {
            backlog.add(attempt.ended.since(attempt.left).unwrap_or_default());
        }
    }

    /// Whether the run shall end, and why. To be asked several times per second, with the time of the
    /// run, the requests that were started and those of them that are in flight.
    pub fn verdict(
        &mut self,
        elapsed: Duration,
        started: u64,
        in_flight: u64,
    ) -> Option<(RunStop, String)> {
        let spent = self.budgets.iter().find_map(Budget::verdict);
        let backlog = self.backlog.as_mut();
        spent.or_else(|| backlog?.verdict(Look { elapsed, started, in_flight }))
    }
}

/// Checks that the SLOs and the conditions of `--abort-on` can be judged, before a run is spent on them.
pub fn check_goals(spec: &Spec) -> Result<(), SloProblem> {
    check_slos(&spec.slos, spec.workload.streaming)?;
    AbortWatch::new(spec).map(|_| ())
}

fn unfit(limit: &Slo) -> SloProblem {
    SloProblem::new(
        limit,
        ": --abort-on watches error_rate, attainment, and percentiles of the latencies of requests, \
         such as ttft.p99>2s",
    )
}

impl Budget {
    /// `None` of what no share of requests decides.
    fn new(typed: &Slo, slo: &Slo, origin: LatencyOrigin) -> Result<Option<Self>, SloProblem> {
        let threshold = Threshold::from_slo(slo, origin)?;
        let metric = threshold.quantity.metric();
        let (over, allowed) = match threshold.quantity.statistic() {
            _ if *metric == metric::ERROR_RATE => (Over::Failed, threshold.limit),
            _ if *metric == metric::ATTAINMENT => (Over::MissesSlos, 1.0 - threshold.limit),
            Some(Statistic::Percentile(percentile)) if metric.per_request().is_some() => {
                (Over::Limit(threshold), 1.0 - percentile.probability().share())
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { text: typed.to_string(), over, allowed, requests: 0, found: 0 }))
    }

    fn add(&mut self, attempt: &Attempt) {
        let is_found = match &self.over {
            Over::Failed => !attempt.is_ok(),
            Over::MissesSlos => !attempt.meets_slos,
            Over::Limit(_) if !attempt.is_ok() => return,
            Over::Limit(threshold) => !attempt.latencies.meet(threshold),
        };
        self.requests += 1;
        self.found += u64::from(is_found);
    }

    fn verdict(&self) -> Option<(RunStop, String)> {
        if self.requests < REQUESTS_MIN {
            return None;
        }
        let share = wilson_at(self.found as f64, self.requests as f64, REACH)?;
        if share.low <= self.allowed {
            return None;
        }
        let (found, requests) = (fmt::count(self.found), fmt::count(self.requests));
        let (stop, what) = match &self.over {
            Over::Failed => (RunStop::ErrorBudget, "failed"),
            Over::MissesSlos => (RunStop::SloMissed, "did not meet the SLOs of each request"),
            Over::Limit(_) => (RunStop::SloMissed, "were above the limit"),
        };
        Some((stop, format!("{}: {found} of {requests} requests {what}", self.text)))
    }
}

/// Whether requests come faster than they are answered.
#[derive(Debug, Default)]
struct Backlog {
    answers: u64,
    /// The longest of the first answers, which waited for few others.
    usual: Duration,
    /// One for each second.
    looks: VecDeque<Look>,
}

/// The run at one time.
#[derive(Clone, Copy, Debug)]
struct Look {
    elapsed: Duration,
    started: u64,
    in_flight: u64,
}

impl Backlog {
    /// No shorter time is judged, and none that is shorter than so many answers.
    const SPAN_MIN: Duration = Duration::from_secs(10);
    const ANSWERS_LONG: u32 = 5;
    /// The growth that is tolerated: as a share of the requests that came, and in standard errors of
    /// a random number of arrivals. A server that just keeps up lets the number in flight vary by about
    /// one of these.
    const SHARE: f64 = 0.05;
    const ERRORS: f64 = 2.0;
    const LOOKS_MAX: usize = 4_096;

    fn add(&mut self, took: Duration) {
        self.answers += 1;
        if self.answers <= REQUESTS_MIN {
            self.usual = self.usual.max(took);
        }
    }

    fn verdict(&mut self, now: Look) -> Option<(RunStop, String)> {
        let is_new = |last: &Look| last.elapsed.as_secs() < now.elapsed.as_secs();
        if self.looks.back().is_none_or(is_new) {
            self.looks.push_back(now);
        }
        if Self::LOOKS_MAX < self.looks.len() {
            self.looks.pop_front();
        }
        let span = Self::SPAN_MIN.max(self.usual * Self::ANSWERS_LONG).max(now.elapsed / 2);
        // Of a run of hours, only so much is remembered.
        let oldest = self.looks.front().map_or(Duration::ZERO, |look| look.elapsed);
        let oldest = now.elapsed.saturating_sub(oldest);
        let span = if self.looks.len() < Self::LOOKS_MAX { span } else { span.min(oldest) };
        let from = now.elapsed.checked_sub(span)?;
        let then = self.looks.iter().rev().find(|look| look.elapsed <= from)?;
        let came = (now.started - then.started) as f64;
        let grown = now.in_flight as f64 - then.in_flight as f64;
        let is_early = self.answers < REQUESTS_MIN || then.elapsed < self.usual * 2;
        if is_early || grown <= Self::SHARE * came + Self::ERRORS * came.sqrt() {
            return None;
        }
        let [before, after] = [then.in_flight, now.in_flight].map(fmt::count);
        let over =
            fmt::duration(Duration::from_secs(now.elapsed.saturating_sub(then.elapsed).as_secs()));
        let why = format!("saturation: {before} requests were in flight, and {after} after {over}");
        Some((RunStop::Saturated, why))
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::spec::{ControlTable, LoadTable, PerSecond};
    use inferometer_model::{Outcome, SpecDraft};

    use super::*;
    use crate::fixture::Given;

    fn spec(conditions: &[&str], slos: &[&str], load: LoadTable) -> Spec {
        let parsed = conditions.iter().map(|text| text.parse().unwrap()).collect();
        let control = ControlTable { abort_on: Some(parsed), ..ControlTable::default() };
        let slos = slos.iter().map(|slo| slo.parse().unwrap()).collect();
        SpecDraft { control, slos, load, ..SpecDraft::default() }.resolve().unwrap()
    }

    fn open() -> LoadTable {
        LoadTable { rate: Some(PerSecond(20.0)), ..LoadTable::default() }
    }

    fn verdict_of(watch: &mut AbortWatch) -> Option<RunStop> {
        watch.verdict(Duration::from_secs(1), 100, 0).map(|(stop, _)| stop)
    }

    /// Requests of which every `one_of`-th failed, and which had their first token after 30 ms.
    fn fed(watch: &mut AbortWatch, requests: u64, one_of: u64) -> Option<(u64, RunStop)> {
        (0..requests).find_map(|id| {
            let given = if id % one_of == 0 {
                Given::failed(id, Outcome::HttpError).moments(0, 0, 0)
            } else {
                Given::ok(id).moments(0, 0, 0).arrival(30, &[Some(1)]).arrival(40, &[Some(1)])
            };
            watch.add(&given.record());
            verdict_of(watch).map(|stop| (id, stop))
        })
    }

    #[test]
    fn an_error_budget_ends_a_run_only_when_it_is_surely_spent() {
        let watch = |text| AbortWatch::new(&spec(&[text], &[], open())).unwrap().unwrap();
        let (at, stop) = fed(&mut watch("error_rate>5%"), 1_000, 2).unwrap();
        assert_eq!((at, stop), (19, RunStop::ErrorBudget), "as soon as there are enough");
        assert_eq!(fed(&mut watch("error_rate>5%"), 1_000, 20), None, "5 % are allowed");
        assert_eq!(fed(&mut watch("error_rate>60%"), 1_000, 2), None);
    }

    #[test]
    fn a_missed_slo_ends_a_run_whichever_way_it_is_set() {
        let first = |conditions: &[&str], slos: &[&str]| {
            let mut watch = AbortWatch::new(&spec(conditions, slos, open())).unwrap().unwrap();
            fed(&mut watch, 200, 1_000).map(|(_, stop)| stop)
        };
        let missed = Some(RunStop::SloMissed);
        assert_eq!(first(&["ttft.p99>20ms"], &[]), missed);
        assert_eq!(first(&["ttft.p99>35ms"], &[]), None);
        assert_eq!(first(&["slo"], &["ttft.p50<20ms"]), missed);
        assert_eq!(first(&["slo"], &["ttft.p50<35ms"]), None);
        assert_eq!(first(&["attainment<90%"], &["ttft<20ms"]), missed);
        assert_eq!(first(&["attainment<90%"], &["ttft<35ms"]), None);
    }

    #[test]
    fn requests_that_pile_up_end_an_open_loop() {
        let grows_by = |per_s: u64| {
            let mut watch = AbortWatch::new(&spec(&["saturation"], &[], open())).unwrap().unwrap();
            assert_eq!(fed(&mut watch, 100, 1_000), None);
            (1..600).find(|second| {
                let elapsed = Duration::from_secs(*second);
                watch.verdict(elapsed, 20 * second, 5 + per_s * second).is_some()
            })
        };
        assert_eq!(grows_by(0), None);
        assert!((10..20).contains(&grows_by(12).unwrap()));
        assert!((10..20).contains(&grows_by(4).unwrap()));
        assert!((20..300).contains(&grows_by(2).unwrap()), "a small overload shows later");
    }

    #[test]
    fn what_cannot_be_watched_is_refused() {
        let refused = |conditions: &[&str], slos: &[&str], load| {
            AbortWatch::new(&spec(conditions, slos, load)).unwrap_err().to_string()
        };
        assert!(refused(&["saturation"], &[], LoadTable::default()).contains("open loop"));
        assert!(refused(&["slo"], &[], open()).contains("needs an SLO of the run"));
        assert!(refused(&["output_throughput<5"], &[], open()).contains("percentiles"));
        assert!(refused(&["ttft.p99<2s"], &[], open()).contains("wrong side"));
    }
}
