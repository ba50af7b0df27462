//! A simulation without records: what is asked of many requests, in memory that does not grow with
//! them beyond the plan.

use std::collections::BTreeMap;

use inferometer_engine::scheduler::Counters;
use inferometer_model::journal::RunStop;
use inferometer_model::observations::Simulated;
use inferometer_model::{Moment, NotSent, Outcome, RunEnding, StartedRequest};
use serde::Serialize;

use super::flights::Flight;
use super::histogram::Histogram;
use super::observer::{End, Observer, Sample};
use crate::failure::Failure;

#[derive(Debug, Default)]
pub struct Tally {
    /// Of an answer in one piece nobody sees when its tokens were made.
    streaming: bool,
    ttft: Histogram,
    tpot: Histogram,
    itl: Histogram,
    e2e: Histogram,
    outcomes: BTreeMap<Outcome, u64>,
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    first_sent: Option<Moment>,
    last_end: Moment,
    samples: u64,
    kv_usage_sum: f64,
    kv_usage_max: f64,
    running_max: u32,
    waiting_max: u32,
}

impl Observer for Tally {
    type Notes = ();

    fn started(&mut self, started: &StartedRequest) -> Result<(), Failure> {
        self.first_sent.get_or_insert(started.admitted);
        Ok(())
    }

    fn token(&mut self, (): &mut (), before: Option<Moment>, at: Moment) {
        if let Some(before) = before.filter(|_| self.streaming) {
            self.itl.add(at.as_nanos() - before.as_nanos());
        }
    }

    fn ended(&mut self, flight: Flight<()>, end: End) -> Result<(), Failure> {
        let ending = &end.ending;
        *self.outcomes.entry(ending.outcome).or_default() += 1;
        self.last_end = self.last_end.max(ending.at);
        let (Outcome::Ok, Some(first), Some(last)) = (ending.outcome, flight.first, flight.last)
        else {
            return Ok(());
        };
        let since = |later: Moment, earlier: Moment| later.as_nanos() - earlier.as_nanos();
        self.e2e.add(since(ending.at, flight.sent));
        if self.streaming {
            self.ttft.add(since(first, flight.sent));
            let gaps = u64::from(flight.tokens).checked_sub(1).filter(|gaps| 0 < *gaps);
            if let Some(gaps) = gaps {
                self.tpot.add(since(last, first) / gaps);
            }
        }
        self.input_tokens += u64::from(flight.prompt_tokens);
        self.cached_tokens += u64::from(end.cached_tokens.unwrap_or_default());
        self.output_tokens += u64::from(flight.tokens);
        Ok(())
    }

    fn not_sent(&mut self, part: NotSent) -> Result<(), Failure> {
        *self.outcomes.entry(Outcome::NotSent).or_default() += part.count;
        Ok(())
    }

    fn sampled(&mut self, sample: &Sample) {
        let gauges = sample.gauges;
        self.samples += sample.stands_for;
        self.kv_usage_sum += gauges.kv_usage * sample.stands_for as f64;
        self.kv_usage_max = self.kv_usage_max.max(gauges.kv_usage);
        self.running_max = self.running_max.max(gauges.running);
        self.waiting_max = self.waiting_max.max(gauges.waiting);
    }
}

/// What is told of it.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    pub schema: &'static str,
    pub simulated: Simulated,
    pub seed: u64,
    /// Why the plan was not played to its end, where it was not.
    pub stopped: Option<RunStop>,
    /// From the first request to the end of the last, in virtual seconds.
    pub duration_s: f64,
    pub outcomes: BTreeMap<Outcome, u64>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub request_throughput: Option<f64>,
    pub output_throughput: Option<f64>,
    pub total_throughput: Option<f64>,
    pub ttft_ms: Times,
    pub tpot_ms: Times,
    pub itl_ms: Times,
    pub e2e_ms: Times,
    /// Of the input tokens of ok requests, those that the prefix cache held.
    pub cached_share: Option<f64>,
    pub prefix_hit_rate: Option<f64>,
    pub preemptions: u64,
    pub steps: u64,
    /// Sampled at even steps of virtual time.
    pub kv_usage_mean: Option<f64>,
    pub kv_usage_max: Option<f64>,
    pub running_max: u32,
    pub waiting_max: u32,
}

/// Mean and maximum are exact; percentiles are within a hundredth.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
    pub n: u64,
}

impl Times {
    fn of(times: &Histogram) -> Self {
        let ms = |ns: u64| ns as f64 / 1e6;
        let at = |share| times.quantile_ns(share).map(ms);
        Self {
            mean: times.mean_ns().map(|ns| ns / 1e6),
            p50: at(0.50),
            p90: at(0.90),
            p95: at(0.95),
            p99: at(0.99),
            max: times.max_ns().map(ms),
            n: times.count(),
        }
    }
}

impl Tally {
    pub fn new(streaming: bool) -> Self {
        Self { streaming, ..Self::default() }
    }

    pub fn tell(
        self,
        ending: &RunEnding,
        simulated: Simulated,
        seed: u64,
        counters: &Counters,
    ) -> Told {
        let began = self.first_sent.or(ending.began).unwrap_or_default();
        let duration_s = self.last_end.since(began).map_or(0.0, |duration| duration.as_secs_f64());
        let share = |part: u64, whole: u64| (0 < whole).then(|| part as f64 / whole as f64);
        let per_s = |number: u64| (0.0 < duration_s).then(|| number as f64 / duration_s);
        let sampled = 0 < self.samples;
        Told {
            schema: "inferometer.simulation/1",
            simulated,
            seed,
            stopped: Some(ending.stop).filter(|stop| stop.is_partial()),
            duration_s,
            request_throughput: per_s(self.e2e.count()),
            output_throughput: per_s(self.output_tokens),
            total_throughput: per_s(self.input_tokens + self.output_tokens),
            ttft_ms: Times::of(&self.ttft),
            tpot_ms: Times::of(&self.tpot),
            itl_ms: Times::of(&self.itl),
            e2e_ms: Times::of(&self.e2e),
            cached_share: share(self.cached_tokens, self.input_tokens),
            prefix_hit_rate: share(counters.prefix_hits, counters.prefix_queries),
            preemptions: counters.preemptions,
            steps: counters.steps,
            kv_usage_mean: sampled.then(|| self.kv_usage_sum / self.samples as f64),
            kv_usage_max: sampled.then_some(self.kv_usage_max),
            running_max: self.running_max,
            waiting_max: self.waiting_max,
            outcomes: self.outcomes,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
        }
    }
}

impl Told {
    pub fn is_partial(&self) -> bool {
        self.stopped.is_some()
    }

    pub fn duration_s(&self) -> f64 {
        self.duration_s
    }

    /// Of all requests, however they ended.
    pub fn requests(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Of the requests that ended well: read and written.
    pub fn tokens(&self) -> (u64, u64) {
        (self.input_tokens, self.output_tokens)
    }

    pub fn ok(&self) -> u64 {
        self.outcomes.get(&Outcome::Ok).copied().unwrap_or_default()
    }

    pub fn json(&self) -> Result<String, Failure> {
        serde_json::to_string_pretty(self).map_err(|error| Failure::internal(error.to_string()))
    }
}
