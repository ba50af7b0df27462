//! The share of tokens that came when a reader needed them.
//!
//! The first token is due after the TTFT of its SLO, and each later one the TPOT of its SLO after the
//! one before it. Time that a token saves is kept for those after it; a token that misses its deadline
//! is forgiven, and the count begins anew with it. The tokens of one arrival come at one time.
//!
//! A request that failed, or was due and not sent, misses as many tokens as it would have brought: the
//! mean of the answers that came, or the requested length where the length is forced.

use inferometer_model::{Observations, Outcome, RequestRecord};

use crate::judge::{Threshold, latency_origin};
use crate::metric::{self, LatencyOrigin, Metric, Missing};
use crate::record::{Output, OutputTokens, UNSENT_MAX, delivered, ns_to_ms};
use crate::statistics::Interval;
use crate::statistics::series::{Cluster, share_interval};

/// When tokens are due.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Deadlines {
    origin: LatencyOrigin,
    first_ms: f64,
    next_ms: f64,
}

/// What grows while the records are read.
#[derive(Debug)]
pub(crate) struct FluidityTally {
    deadlines: Option<Deadlines>,
    /// Tokens that were due of each request, and those of them that came in time.
    requests: Vec<Cluster>,
    /// Which of them failed.
    failed: Vec<usize>,
    asked: f64,
    /// Whether the server generates the requested length whatever the answer.
    is_forced: bool,
}

/// The share of tokens in time, and its interval.
pub(crate) type Fluidity = (Result<f64, Missing>, Option<Interval>);

const NO_DEADLINES: Missing = Missing(
    "deadlines need SLOs on ttft and tpot of each request (--slo ttft<500ms --slo tpot<50ms)",
);

impl FluidityTally {
    pub(crate) fn new(observations: &Observations) -> Self {
        let pinned = observations.manifest.endpoint.pinned;
        Self {
            deadlines: Deadlines::from_slos(observations),
            requests: Vec::new(),
            failed: Vec::new(),
            asked: 0.0,
            is_forced: pinned.ignore_eos || pinned.min_tokens,
        }
    }

    pub(crate) fn add(&mut self, record: &RequestRecord, output: &Output, tokens: OutputTokens) {
        let Some(deadlines) = self.deadlines else { return };
        let asked = f64::from(record.asked.output_tokens);
        self.asked += asked;
        let answer = if record.ending.outcome == Outcome::Ok {
            deadlines.met(record, output, tokens)
        } else {
            self.failed.push(self.requests.len());
            Cluster { count: asked, sum: 0.0 }
        };
        self.requests.push(answer);
    }

    /// `unsent` requests were due and brought nothing.
    pub(crate) fn finish(mut self, unsent: u64) -> Fluidity {
        if self.deadlines.is_none() {
            return (Err(NO_DEADLINES), None);
        }
        // What a request that brought nothing misses. Where nothing came at all, the requested length
        // stands in for what would have come: the share is zero either way.
        let count_of = |requests: &[Cluster]| -> f64 { requests.iter().map(|it| it.count).sum() };
        let ok = self.requests.len() - self.failed.len();
        let count = if self.is_forced || ok == 0 {
            self.asked / (self.requests.len() as f64).max(1.0)
        } else {
            let failed: f64 = self.failed.iter().map(|index| self.requests[*index].count).sum();
            (count_of(&self.requests) - failed) / ok as f64
        };
        let missed = Cluster { count, sum: 0.0 };
        if !self.is_forced {
            self.failed.iter().for_each(|index| self.requests[*index] = missed);
        }
        let met: f64 = self.requests.iter().map(|request| request.sum).sum();
        let due = count_of(&self.requests) + unsent as f64 * missed.count;
        let share = if 0.0 < due { Ok(met / due) } else { Err(Missing("no token was due")) };
        let listed = usize::try_from(unsent).unwrap_or(usize::MAX).min(UNSENT_MAX);
        self.requests.extend(std::iter::repeat_n(missed, listed));
        let interval = share_interval(&self.requests).and_then(|judged| judged.interval);
        (share, interval)
    }
}

impl Deadlines {
    /// `None` unless both are limited for each request; the first SLO of each counts.
    fn from_slos(observations: &Observations) -> Option<Self> {
        let origin = latency_origin(observations);
        let slos = observations.manifest.spec.slos.iter();
        let slos: Vec<Threshold> =
            slos.filter_map(|slo| Threshold::from_slo(slo, origin).ok()).collect();
        let limit_on = |metrics: &[&'static Metric]| {
            let mut of_requests = slos.iter().filter(|slo| slo.is_per_request());
            of_requests.find(|slo| metrics.contains(&slo.quantity.metric()))
        };
        let first = limit_on(&[&metric::TTFT, &metric::TTFT_SCHEDULE])?;
        let next = limit_on(&[&metric::TPOT])?;
        Some(Self {
            origin: LatencyOrigin::for_load(*first.quantity.metric() != metric::TTFT),
            first_ms: first.limit,
            next_ms: next.limit,
        })
    }

    /// The tokens of an answer, and those of them that came in time.
    fn met(self, record: &RequestRecord, output: &Output, tokens: OutputTokens) -> Cluster {
        let mut before = match self.origin {
            LatencyOrigin::Sent => record.sent.unwrap_or(record.intended),
            LatencyOrigin::Schedule => record.intended,
        };
        let (mut due_ms, mut slack_ms) = (self.first_ms, 0.0);
        let mut found = Cluster { count: 0.0, sum: 0.0 };
        for (at, count) in delivered(output, tokens) {
            if count == 0 {
                continue;
            }
            let took_ms = ns_to_ms(at.as_nanos().saturating_sub(before.as_nanos()));
            let is_met = took_ms <= due_ms + slack_ms;
            slack_ms = if is_met { slack_ms + due_ms - took_ms } else { 0.0 };
            // Those that come with it take no time of their own.
            let with_it = (count - 1) as f64;
            slack_ms += with_it * self.next_ms;
            found.count += count as f64;
            found.sum += with_it + f64::from(u8::from(is_met));
            (before, due_ms) = (at, self.next_ms);
        }
        // Tokens without an arrival met no deadline.
        let unseen = if found.count <= 0.0 { tokens.count as f64 } else { 0.0 };
        Cluster { count: found.count + unseen, ..found }
    }
}

#[cfg(test)]
mod tests;
