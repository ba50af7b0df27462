//! How far off the single numbers of a run may be, judged from this run alone.

use inferometer_model::RequestRecord;
use serde::{Deserialize, Serialize};

use crate::metric;
use crate::record::{Extremes, Flight, InputTokens, OutputTokens, RequestLatencies};
use crate::statistics::series::{Cluster, mean_interval, share_interval};
use crate::statistics::{Estimate, Interval, runs::mean};

/// `None` where the run says too little.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
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

/// What grows while the records are read, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    work: Vec<Work>,
    failed: Vec<Cluster>,
    kept: Vec<Cluster>,
    /// Input tokens over seconds of TTFT, and a token over seconds of TPOT.
    prefill: Vec<Cluster>,
    decode: Vec<Cluster>,
}

/// What one answer was worth, and when it was made.
#[derive(Clone, Copy, Debug)]
struct Work {
    from_ns: u64,
    to_ns: u64,
    input: f64,
    output: f64,
    kept: bool,
}

impl Evidence {
    pub(crate) fn add_failed(&mut self) {
        self.failed.push(Cluster::single(1.0));
        self.kept.push(Cluster::single(0.0));
    }

    pub(crate) fn add_ok(
        &mut self,
        record: &RequestRecord,
        answer: &RequestLatencies,
        output: OutputTokens,
        kept: bool,
    ) {
        self.failed.push(Cluster::single(0.0));
        self.kept.push(Cluster::single(f64::from(u8::from(kept))));
        let input = InputTokens::from_record(record).count as f64;
        if let Some(ttft) = answer.get(&metric::TTFT) {
            self.prefill.push(Cluster { count: ttft / 1e3, sum: input });
        }
        if let Some(tpot) = answer.get(&metric::TPOT) {
            self.decode.push(Cluster { count: tpot / 1e3, sum: 1.0 });
        }
        if let Some(sent) = record.sent.filter(|sent| *sent <= record.ending.at) {
            let (from_ns, to_ns) = (sent.as_nanos(), record.ending.at.as_nanos());
            self.work.push(Work { from_ns, to_ns, input, output: output.count as f64, kept });
        }
    }

    /// What the answers of a part of the run were worth, for the intervals of its rates.
    pub(crate) fn within(&self, stretch: Flight) -> PartOfRun {
        let overlaps = |work: &&Work| {
            Flight { from_ns: work.from_ns, to_ns: work.to_ns }.within(stretch).is_some()
        };
        let work: Vec<Work> = self.work.iter().filter(overlaps).copied().collect();
        PartOfRun { slices: Slices::new((stretch.from_ns, stretch.to_ns), &work), work }
    }

    /// `unsent` requests were due and kept nothing.
    pub(crate) fn finish(mut self, window: Extremes, unsent: u64) -> Doubt {
        let attempted = self.kept.len();
        let due = attempted.saturating_add(usize::try_from(unsent).unwrap_or(usize::MAX));
        self.kept.resize(due.min(attempted.saturating_add(UNSENT_MAX)), Cluster::single(0.0));
        let share = |clusters: &[Cluster]| share_interval(clusters)?.interval;
        let rate = |worth: fn(&Work) -> f64| {
            positive(&Slices::new(window.bounds_ns()?, &self.work)?.rates(&self.work, worth))
        };
        Doubt {
            requests: rate(|_| 1.0),
            input: rate(|work| work.input),
            output: rate(|work| work.output),
            total: rate(|work| work.input + work.output),
            good: rate(|work| f64::from(u8::from(work.kept))),
            failed: share(&self.failed),
            kept: share(&self.kept),
            prefill: positive(&self.prefill),
            decode: positive(&self.decode),
        }
    }
}

/// A stretch of the run, and the answers that were made in it, in whole or in part.
pub(crate) struct PartOfRun {
    slices: Option<Slices>,
    work: Vec<Work>,
}

impl PartOfRun {
    pub(crate) fn requests(&self, per_s: Option<f64>) -> Option<Interval> {
        self.about(per_s?, |_| 1.0)
    }

    pub(crate) fn output(&self, per_s: Option<f64>) -> Option<Interval> {
        self.about(per_s?, |work| work.output)
    }

    pub(crate) fn total(&self, per_s: Option<f64>) -> Option<Interval> {
        self.about(per_s?, |work| work.input + work.output)
    }

    /// Slices spread an answer over its time, and a rate counts what came: at the edges of a part they
    /// differ by a few answers, so the interval is moved to where the rate is.
    fn about(&self, per_s: f64, worth: fn(&Work) -> f64) -> Option<Interval> {
        let slices = self.slices.as_ref()?.rates(&self.work, worth);
        let interval = positive(&slices)?;
        let (done, over_s) = slices
            .iter()
            .fold((0.0, 0.0), |(done, over_s), slice| (done + slice.sum, over_s + slice.count));
        let moved = per_s - done / over_s;
        let interval = Interval::new(interval.low + moved, interval.high + moved)?;
        Some(interval.clamped(0.0, f64::INFINITY))
    }
}

/// The ratio of two sums, where it is a speed: not below zero, and unknown where nothing moved.
fn positive(clusters: &[Cluster]) -> Option<Interval> {
    let moved = clusters.iter().any(|cluster| 0.0 < cluster.sum);
    let interval = mean_interval(clusters).filter(|_| moved)?.interval?;
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
const SLICES_MIN: f64 = 10.0;
const SLICES_MAX: f64 = 100.0;
/// As many requests that were not sent take part in an interval: a plan that was hardly begun says no
/// more with more of it.
pub(crate) const UNSENT_MAX: usize = 1_000_000;

impl Slices {
    fn new((from_ns, to_ns): (u64, u64), work: &[Work]) -> Option<Self> {
        let duration_ns = to_ns.checked_sub(from_ns).filter(|ns| 0 < *ns)? as f64;
        let flights_ns: f64 = work.iter().map(|work| (work.to_ns - work.from_ns) as f64).sum();
        let flights = duration_ns * work.len() as f64 / flights_ns.max(1.0);
        let count = flights.min(work.len() as f64).min(SLICES_MAX).floor();
        if count < SLICES_MIN {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "10 to 100")]
        let slices = count as usize;
        Some(Self { from_ns, length_ns: duration_ns / count, count: slices })
    }

    /// What was done in each slice. An answer is spread evenly over the time it took: counted at its
    /// end, streams that run in step would make a steady server look like a pulse.
    fn rates(&self, work: &[Work], worth: fn(&Work) -> f64) -> Vec<Cluster> {
        let mut slices = vec![Cluster { count: self.length_ns / 1e9, sum: 0.0 }; self.count];
        for work in work {
            let (from, to) = (self.at(work.from_ns), self.at(work.to_ns));
            let (first, last) = (self.place(from), self.place(to));
            if to <= from {
                slices[first].sum += worth(work);
                continue;
            }
            let per_slice = worth(work) / (to - from);
            for (place, slice) in slices.iter_mut().enumerate().take(last + 1).skip(first) {
                let within = to.min(place as f64 + 1.0) - from.max(place as f64);
                slice.sum += per_slice * within;
            }
        }
        slices
    }

    /// In slices since the beginning; negative before it.
    fn at(&self, ns: u64) -> f64 {
        let since = ns.saturating_sub(self.from_ns) as f64 - self.from_ns.saturating_sub(ns) as f64;
        since / self.length_ns
    }

    fn place(&self, slices: f64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what is before the beginning counts for it"
        )]
        let place = slices.floor() as usize;
        place.min(self.count - 1)
    }
}

/// Means over `ok` requests with output, in tokens per second; null without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRates {
    pub generation_tps: Option<Estimate>,
    pub prompt_tps: Option<Estimate>,
}

/// What grows while the records are read, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct RequestRatesTally {
    generation: Vec<f64>,
    prompt: Vec<f64>,
}

impl RequestRatesTally {
    pub(crate) fn add_ok(&mut self, e2e_ms: Option<f64>, input_tokens: u64, output_tokens: u64) {
        let Some(seconds) = e2e_ms.filter(|ms| 0.0 < *ms).map(|ms| ms / 1e3) else { return };
        self.prompt.push(input_tokens as f64 / seconds);
        if 0 < output_tokens {
            self.generation.push(output_tokens as f64 / seconds);
        }
    }

    pub(crate) fn finish(&self) -> RequestRates {
        RequestRates {
            generation_tps: estimate(&self.generation),
            prompt_tps: estimate(&self.prompt),
        }
    }
}

fn estimate(rates: &[f64]) -> Option<Estimate> {
    if rates.is_empty() {
        return None;
    }
    let clusters: Vec<Cluster> = rates.iter().copied().map(Cluster::single).collect();
    let judged = mean_interval(&clusters);
    Some(Estimate {
        value: mean(rates),
        interval: judged
            .and_then(|judged| judged.interval)
            .map(|interval| interval.clamped(0.0, f64::INFINITY)),
        n: rates.len() as u64,
        effective_n: judged.map(|judged| judged.effective_n),
        certified: true,
    })
}

#[cfg(test)]
mod tests;
