//! The confidence intervals of the single numbers of a run, from this run alone.

use std::borrow::Borrow;
use std::ops::Range;

use inferometer_model::spec::{Arrivals, LoadShape};
use inferometer_model::whole::{to_u64, to_usize};
use inferometer_model::{Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::judge::{Threshold, latency_origin, rounded_up};
use crate::metric::{self, ByMetric, Distribution, LatencyOrigin, Metric, Missing, NOTHING_OK};
use crate::record::{Attempt, Attempts, Brief, Flight, Output, OutputTokens, delivered, ns_to_ms};
use crate::statistics::series::{Cluster, Clusters, mean_interval, share_interval};
use crate::statistics::{Estimate, Interval, Probability, Sample, runs::mean};
use crate::steady::{self, SteadyKind, SteadyState, Talks};

/// The part of a run that its confidence intervals come from: after its start, and before it drains.
/// What they bound is the steady state of the server under this load.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    part: Flight,
    /// The attempts that were sent in it.
    pub(crate) inside: Range<usize>,
    /// Parts of it whose means are compared with each other.
    pub(crate) batches: usize,
    /// The latencies of the requests that were sent in it.
    pub(crate) latencies: ByMetric<Distribution>,
}

/// Why a run has no confidence intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    pub reason: String,
    /// The number of requests that would do under the same load; null where no number would.
    pub requests_needed: Option<u64>,
}

/// Rounds (as `steady.rs` counts them) below which the start and the drain are too much of a run:
/// of a closed loop, and of an open one, whose requests in flight vary.
const ROUNDS_MIN: (f64, f64) = (10.0, 15.0);
/// The fewest requests of a closed loop.
const FEWEST_CLOSED: f64 = 30.0;
/// The fewest arrivals of an open loop if they are as random as Poisson's; bursts count as one.
const FEWEST_OPEN: f64 = 100.0;
/// The fewest requests of an open loop in which requests wait for each other: delays then last for
/// hundreds of requests, and the longest of them are rare.
const FEWEST_QUEUED: f64 = 2_000.0;
/// Requests that arrive during the delay of a request, from where they wait for each other.
const QUEUED: f64 = 0.2;
/// Batches, and how many times as long as a request or a conversation each is, if the run is long enough.
const BATCHES: (f64, f64) = (5.0, 8.0);
const BATCH_ROUNDS: f64 = 4.0;

impl Basis {
    /// The latencies are still to be gathered.
    pub(crate) fn find(
        observations: &Observations,
        steady: &SteadyState,
        attempts: &Attempts<'_>,
        talks: &Talks,
    ) -> Result<Self, Withheld> {
        if let (SteadyKind::NeverSettled | SteadyKind::NotJudged, Some(reason)) =
            (steady.state, &steady.reason)
        {
            return Err(Withheld { reason: reason.clone(), requests_needed: None });
        }
        let nothing = || Withheld { reason: NOTHING_OK.to_owned(), requests_needed: None };
        let shape = &observations.manifest.spec.load.shape;
        let mean_s = talks.mean_s.ok_or_else(nothing)?;
        let horizon =
            steady::horizon(shape, &attempts.columns).ok().flatten().ok_or_else(nothing)?;
        let from_ns = horizon.from_ns.saturating_add(to_u64(mean_s * 1e9));
        let part = Flight { from_ns, to_ns: horizon.to_ns.max(from_ns) };
        let inside = attempts.columns.left_within(part);
        let length_s = ns_to_ms(part.to_ns - part.from_ns) / 1e3;
        let delayed_s = delayed_by(attempts.range(inside.clone())).unwrap_or(0.0);
        let queued = delayed_s * inside.len() as f64 / length_s.max(f64::MIN_POSITIVE);
        let (needed, reason) = fewest_requests(observations, queued, talks);
        if (attempts.len() as f64) < needed {
            let requests_needed = needed.is_finite().then(|| rounded_up(needed));
            return Err(Withheld { reason: reason.to_owned(), requests_needed });
        }
        let batches = (length_s / (BATCH_ROUNDS * mean_s)).clamp(BATCHES.0, BATCHES.1);
        Ok(Self { part, inside, batches: to_usize(batches), latencies: ByMetric::default() })
    }

    pub(crate) fn set_latencies(&mut self, mut found: ByMetric<Distribution>) {
        // The lengths of answers hide in E2E how long the delays last that are part of it.
        for origin in [LatencyOrigin::Sent, LatencyOrigin::Schedule] {
            let around = |found: &Distribution| Some((found.mean?, found.intervals.mean?));
            let ttft = found.get(origin.ttft()).and_then(around);
            let Some(e2e) = found.get_mut(origin.e2e()) else { continue };
            if let Some(((mean, own), (ttft, around))) = around(e2e).zip(ttft) {
                let low = mean - libm::hypot(mean - own.low, ttft - around.low);
                let high = mean + libm::hypot(own.high - mean, around.high - ttft);
                e2e.intervals.mean = Interval::new(low.max(0.0), high);
            }
        }
        self.latencies = found;
    }
}

/// How many requests a run needs under its load, and what for; `queued` of them arrive during the delay
/// of one.
fn fewest_requests(observations: &Observations, queued: f64, talks: &Talks) -> (f64, &'static str) {
    let shape = &observations.manifest.spec.load.shape;
    // Requests that take no time are never too few.
    let rounds = talks.rounds.unwrap_or(f64::INFINITY);
    let is_slotted = steady::is_slotted(shape);
    let least = if is_slotted { ROUNDS_MIN.0 } else { ROUNDS_MIN.1 };
    let for_rounds = observations.records.len() as f64 * least / rounds;
    let short = "its start and its drain are a large part of the run";
    let alone = match shape {
        LoadShape::Open { .. } if !is_slotted && QUEUED < queued => {
            (FEWEST_QUEUED, "requests wait for each other, so a delay lasts for many of them")
        }
        LoadShape::Open { arrivals, .. } if !is_slotted => {
            // Arrivals that vary as much as so many Poisson ones.
            let burst = match arrivals {
                Arrivals::Constant | Arrivals::Poisson => 1.0,
                Arrivals::Gamma { burstiness } | Arrivals::Stretched { burstiness } => {
                    burstiness.recip().max(1.0)
                }
            };
            (FEWEST_OPEN * burst, "there are few requests for random arrivals")
        }
        LoadShape::Closed { .. } | LoadShape::Open { .. } => {
            (FEWEST_CLOSED, "there are few requests")
        }
    };
    if alone.0 < for_rounds { (for_rounds, short) } else { alone }
}

/// By how much requests were delayed, in seconds, weighed by the delay itself: the mean is of requests
/// most of which need not wait. `None` without an answer.
fn delayed_by(attempts: impl Iterator<Item = Attempt>) -> Option<f64> {
    let shown = |attempt: Attempt| {
        attempt.latencies.get(&metric::TTFT).or_else(|| attempt.latencies.get(&metric::E2E))
    };
    let mut values = Vec::with_capacity(attempts.size_hint().1.unwrap_or(0));
    values.extend(attempts.filter_map(shown));
    let undelayed = Sample::new(values.clone())?.quantile(Probability::TENTH);
    let delays = values.iter().map(|value| value - undelayed);
    let (sum, squares) =
        delays.fold((0.0, 0.0), |(sum, squares), delay| (sum + delay, squares + delay * delay));
    Some(if 0.0 < sum { squares / sum / 1e3 } else { 0.0 })
}

/// The intervals of single numbers; `None` where the run says too little.
#[derive(Debug, Default)]
pub(crate) struct RunIntervals {
    pub(crate) requests: Option<Interval>,
    pub(crate) input: Option<Interval>,
    pub(crate) output: Option<Interval>,
    pub(crate) total: Option<Interval>,
    pub(crate) good: Option<Interval>,
    pub(crate) failed: Option<Interval>,
    pub(crate) kept: Option<Interval>,
    pub(crate) prefill: Option<Interval>,
    pub(crate) decode: Option<Interval>,
}

/// What an answer adds to a rate: of requests, of input, output and all tokens, and of good answers.
fn worths(attempt: &Attempt) -> [f64; 5] {
    let (input, output) = (attempt.input.count as f64, attempt.output.count as f64);
    [1.0, input, output, input + output, f64::from(u8::from(attempt.meets_slos))]
}

impl RunIntervals {
    /// With the rates of single requests. `unsent` requests were due and kept nothing.
    pub(crate) fn from_attempts(
        attempts: &Attempts<'_>,
        basis: Option<&Basis>,
        unsent: u64,
    ) -> (Self, RequestRates) {
        let share_of = |is: fn(&Brief) -> bool, unsent: usize| {
            let share = move |brief: Brief| Cluster::single(f64::from(u8::from(is(&brief))));
            let none = std::iter::repeat_n(Cluster::single(0.0), unsent);
            let counted = attempts.columns.iter().filter(|brief| !brief.is_abandoned());
            share_interval(counted.map(share).chain(none))?.interval
        };
        let listed = usize::try_from(unsent).unwrap_or(usize::MAX).min(UNSENT_MAX);
        let ([requests, input, output, total, good], request_rates) = rates(attempts, basis);
        let [prefill, decode] = basis.map_or([None; 2], |basis| speeds(attempts, basis));
        let intervals = Self {
            requests,
            input,
            output,
            total,
            good,
            failed: share_of(|brief| !brief.is_ok(), 0),
            kept: share_of(Brief::meets_slos, listed),
            prefill,
            decode,
        };
        (intervals, request_rates)
    }
}

/// In one pass: what was done per second, by the answers that the server worked on in a part of the run,
/// and what each request saw.
fn rates(attempts: &Attempts<'_>, basis: Option<&Basis>) -> ([Option<Interval>; 5], RequestRates) {
    let (part, batches) = basis.map_or((0..0, 0), |it| (it.inside.clone(), it.batches));
    let worked_on =
        |flight: &Flight| basis.is_some_and(|basis| flight.within(basis.part).is_some());
    let ok = attempts.columns.iter().filter(Brief::is_ok);
    let flights = ok.filter_map(|brief| brief.flight()).filter(worked_on);
    let slices = basis.and_then(|basis| Slices::new(basis.part, flights));
    let empty = || slices.as_ref().map(Slices::empty).unwrap_or_default();
    let mut found: [Vec<Cluster>; 5] = std::array::from_fn(|_| empty());
    let (mut written, mut prompts) = (Rates::new(attempts.len()), Rates::new(attempts.len()));
    for (position, attempt) in attempts.iter().enumerate().filter(|(_, it)| it.is_ok()) {
        if let Some(slices) = &slices
            && let Some(flight) = attempt.flight().filter(worked_on)
        {
            for (rates, worth) in found.iter_mut().zip(worths(&attempt)) {
                slices.add(rates, flight, worth);
            }
        }
        let e2e_ms = attempt.latencies.get(&metric::E2E).filter(|ms| 0.0 < *ms);
        let Some(e2e_ms) = e2e_ms else { continue };
        let is_inside = part.contains(&position);
        let per_s = |tokens: u64| tokens as f64 / (e2e_ms / 1e3);
        if 0 < attempt.output.count {
            written.push(per_s(attempt.output.count), is_inside);
        }
        prompts.push(per_s(attempt.input.count), is_inside);
    }
    let intervals = match slices {
        Some(_) => found.map(|rates| positive(&rates, batches)),
        None => [None; 5],
    };
    let [generation_tps, prompt_tps] = [written, prompts].map(|rates| rates.estimate(batches));
    (intervals, RequestRates { generation_tps, prompt_tps })
}

/// Input tokens over seconds of TTFT, and a token over seconds of TPOT.
fn speeds(attempts: &Attempts<'_>, basis: &Basis) -> [Option<Interval>; 2] {
    if !attempts.reader.streaming {
        return [None; 2];
    }
    let (mut prefill, mut decode) = (Vec::new(), Vec::new());
    for attempt in attempts.range(basis.inside.clone()).filter(Attempt::is_ok) {
        let cluster = |metric: &Metric, sum: f64| {
            Some(Cluster { count: attempt.latencies.get(metric)? / 1e3, sum })
        };
        prefill.extend(cluster(&metric::TTFT, attempt.input.count as f64));
        decode.extend(cluster(&metric::TPOT, 1.0));
    }
    [prefill, decode].map(|clusters| positive(&clusters, basis.batches))
}

/// The ratio of two sums, where it is a speed: not below zero, and unknown where nothing moved.
fn positive(clusters: impl Clusters, batches: usize) -> Option<Interval> {
    let moved = clusters.clone().into_iter().any(|cluster| 0.0 < cluster.borrow().sum);
    let interval = mean_interval(clusters, batches).filter(|_| moved)?.interval?;
    Some(interval.clamped(0.0, f64::INFINITY))
}

/// Equal parts of the window. None is shorter than a request on average: what one long answer
/// brings is not news in each of many parts.
struct Slices {
    from_ns: u64,
    length_ns: f64,
    count: usize,
}

/// Fewer say too little about how they differ.
const SLICES_MIN: f64 = 8.0;
const SLICES_MAX: f64 = 100.0;
/// As many requests that were not sent take part in an interval: a plan that was hardly begun says no
/// more with more of it.
const UNSENT_MAX: usize = 1_000_000;

impl Slices {
    fn new(part: Flight, work: impl Iterator<Item = Flight> + Clone) -> Option<Self> {
        let Flight { from_ns, to_ns } = part;
        let duration_ns = to_ns.checked_sub(from_ns).filter(|ns| 0 < *ns)? as f64;
        let length_ns = |flight: Flight| (flight.to_ns - flight.from_ns) as f64;
        let flights_ns: f64 = work.clone().map(length_ns).sum();
        let answers = work.count() as f64;
        let flights = duration_ns * answers / flights_ns.max(1.0);
        let count = flights.min(answers).min(SLICES_MAX).floor();
        if count < SLICES_MIN {
            return None;
        }
        Some(Self { from_ns, length_ns: duration_ns / count, count: to_usize(count) })
    }

    fn empty(&self) -> Vec<Cluster> {
        vec![Cluster { count: self.length_ns / 1e9, sum: 0.0 }; self.count]
    }

    /// Adds an answer to what was done in each slice. It is spread evenly over the time it took: counted
    /// at its end, streams that run in step would make a steady server look like a pulse.
    fn add(&self, slices: &mut [Cluster], flight: Flight, worth: f64) {
        let (from, to) = (self.at(flight.from_ns), self.at(flight.to_ns));
        let (first, last) = (self.place(from), self.place(to));
        if to <= from {
            slices[first].sum += worth;
            return;
        }
        let per_slice = worth / (to - from);
        for (place, slice) in slices.iter_mut().enumerate().take(last + 1).skip(first) {
            let within = to.min(place as f64 + 1.0) - from.max(place as f64);
            slice.sum += per_slice * within;
        }
    }

    /// In slices since the beginning; negative before it.
    fn at(&self, ns: u64) -> f64 {
        let since = ns.saturating_sub(self.from_ns) as f64 - self.from_ns.saturating_sub(ns) as f64;
        since / self.length_ns
    }

    fn place(&self, slices: f64) -> usize {
        to_usize(slices).min(self.count - 1)
    }
}

/// Means over `ok` requests with output, in tokens per second; null without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRates {
    pub generation_tps: Option<Estimate>,
    pub prompt_tps: Option<Estimate>,
}

/// A rate of each request, and which of them were sent in the basis.
#[derive(Debug)]
struct Rates {
    values: Vec<f64>,
    inside: Range<usize>,
}

impl Rates {
    fn new(at_most: usize) -> Self {
        Self { values: Vec::with_capacity(at_most), inside: 0..0 }
    }

    fn push(&mut self, value: f64, is_inside: bool) {
        self.values.push(value);
        if is_inside {
            let end = self.values.len();
            let start = if self.inside.is_empty() { end - 1 } else { self.inside.start };
            self.inside = start..end;
        }
    }

    fn estimate(self, batches: usize) -> Option<Estimate> {
        let clusters = self.values.iter().copied().map(Cluster::single);
        let inside = self.values[self.inside].iter().copied().map(Cluster::single);
        let value = mean(&self.values);
        let judged = mean_interval(clusters, 0);
        let interval = positive(inside, batches);
        let estimate = Estimate {
            value,
            interval: interval.map(|interval| interval.including(value)),
            n: self.values.len() as u64,
            effective_n: judged.map(|judged| judged.effective_n),
            certified: true,
        };
        (!self.values.is_empty()).then_some(estimate)
    }
}

/// When tokens are due: the first after the TTFT of its SLO, and each later one the TPOT of its SLO after
/// the one before it. Time that a token saves is kept for those after it; a token that misses its
/// deadline is forgiven, and the count begins anew with it. The tokens of one arrival come at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Deadlines {
    origin: LatencyOrigin,
    first_ms: f64,
    next_ms: f64,
}

/// The share of tokens that came when a reader needed them, while the records are read.
///
/// A request that failed, or was due and not sent, misses as many tokens as it would have brought: the
/// mean of the answers that came, or the requested length where the length is forced.
#[derive(Debug, Default)]
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

const NO_DEADLINES: Missing =
    "deadlines need SLOs on ttft and tpot of each request (--slo ttft<500ms --slo tpot<50ms)";

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
        let is_abandoned = record.ending.outcome == Outcome::Abandoned;
        let Some(deadlines) = self.deadlines.filter(|_| !is_abandoned) else { return };
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
        let share = if 0.0 < due { Ok(met / due) } else { Err("no token was due") };
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
