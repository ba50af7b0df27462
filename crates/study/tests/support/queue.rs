//! Queues whose theory is known: M/D/1 and M/M/c, served first come, first served.
//!
//! A request waits for a slot; its first token comes a fixed time after it has one, and it holds the
//! slot for a service time that is fixed (M/D/1) or exponential (M/M/c).

use inferometer_analysis::statistics::draws::Draws;
use inferometer_analysis::statistics::series::{Cluster, quantile_interval};
use inferometer_analysis::{Estimate, Percentile, Probability, Sample};

/// Latencies of a run, behind those that only fill the queue.
const REQUESTS: usize = 2_000;
const WARM_UP: usize = 1_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) slots: usize,
    /// Mean time in a slot, in seconds.
    pub(crate) service: f64,
    /// Whether every request holds its slot for the same time.
    pub(crate) is_steady: bool,
}

impl Queue {
    /// An engine, and the rate up to which it shall keep its promise.
    pub(crate) fn drawn(number: u64) -> (Self, f64) {
        let mut draws = Draws::new(7, number);
        let is_steady = draws.unit() < 0.5;
        let slots = if is_steady { 1 } else { 1 + draws.below(4) };
        let service = 0.005 * 10.0_f64.powf(draws.unit());
        let load = 0.55 + 0.35 * draws.unit();
        (Self { slots, service, is_steady }, load * slots as f64 / service)
    }

    /// Milliseconds to the first token, in the order of arrival, at so many requests per second.
    pub(crate) fn latencies(&self, rate: f64, count: usize, seed: u64) -> Vec<f64> {
        let (mut gaps, mut services) = (Draws::new(seed, 1), Draws::new(seed, 2));
        // Work left in each slot as an arrival sees it, the least first (Kiefer and Wolfowitz).
        let mut work = vec![0.0_f64; self.slots];
        let mut latencies = Vec::with_capacity(WARM_UP + count);
        for _ in 0..WARM_UP + count {
            let gap = gaps.exponential() / rate;
            for left in &mut work {
                *left = (*left - gap).max(0.0);
            }
            let drawn = self.service * services.exponential();
            latencies.push((work[0] + self.service) * 1e3);
            work[0] += if self.is_steady { self.service } else { drawn };
            work.sort_by(f64::total_cmp);
        }
        latencies.split_off(WARM_UP)
    }

    /// The p99 in milliseconds, as the theory has it.
    pub(crate) fn p99(&self, rate: f64) -> f64 {
        let waits_longer = |wait: f64| {
            if self.is_steady { self.steady_tail(wait, rate) } else { self.random_tail(wait, rate) }
        };
        let (mut low, mut high) = (0.0, self.service * 1e5);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if 0.01 < waits_longer(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low + self.service) * 1e3
    }

    /// M/M/c: who waits, by Erlang's C, waits an exponential time.
    fn random_tail(&self, wait: f64, rate: f64) -> f64 {
        let offered = rate * self.service;
        let blocked = (1..=self.slots)
            .map(|slots| slots as f64)
            .fold(1.0, |blocked, slots| offered * blocked / (slots + offered * blocked));
        let waits = blocked / (1.0 - offered / self.slots as f64 * (1.0 - blocked));
        let leaving = self.slots as f64 / self.service - rate;
        waits * (-leaving * wait).exp()
    }

    /// M/D/1: beyond a few service times the wait has an exponential tail (Cramér and Lundberg).
    fn steady_tail(&self, wait: f64, rate: f64) -> f64 {
        let load = rate * self.service;
        let (mut low, mut high) = (1e-9_f64, 100.0_f64);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if load * (middle.exp() - 1.0) < middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        (1.0 - load) / (load * low.exp() - 1.0) * (-low * wait / self.service).exp()
    }

    /// The p99 of one run as a summary has it: near its limit a queue remembers for long, so that few
    /// runs have the effective n of a certified p99, and the others have no interval.
    pub(crate) fn measured(&self, rate: f64, seed: u64) -> Estimate {
        let latencies = self.latencies(rate, REQUESTS, seed);
        let share = Probability::new(0.99).unwrap();
        let sample = Sample::new(latencies.clone()).unwrap();
        let value = sample.quantile(share);
        let within = |latency: &f64| Cluster::single(f64::from(u8::from(*latency <= value)));
        let below: Vec<Cluster> = latencies.iter().map(within).collect();
        let judged = quantile_interval(&sample, &below, share, 0).unwrap();
        let certified = Percentile::P99.certified_from() as f64 <= judged.effective_n;
        Estimate {
            value,
            interval: judged.interval.filter(|_| certified),
            n: sample.count(),
            effective_n: Some(judged.effective_n),
            certified,
        }
    }
}
