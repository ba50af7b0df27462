//! Time in a queue with one server, by Lindley's recursion, begun in its steady state. What a request
//! waits for, its neighbours wait for too.

use super::{Process, Run};
use crate::statistics::draws::Draws;
use crate::statistics::{Percentile, Sample};

/// Share of the server's time that is busy; a service takes one unit on average.
const LOAD: f64 = 0.7;

pub(super) const fn mm1(requests: usize) -> Process {
    Process {
        name: "M/M/1 queue, load 0.7",
        requests,
        dependent: true,
        draw: |draws, n| {
            let idle = draws.unit() > LOAD;
            let wait = if idle { 0.0 } else { draws.exponential() / (1.0 - LOAD) };
            queue(draws, n, wait, Draws::exponential)
        },
        // The time in the system is exponential.
        mean: || 1.0 / (1.0 - LOAD),
        quantile: |p| -libm::log1p(-p) / (1.0 - LOAD),
    }
}

pub(super) const fn md1(requests: usize) -> Process {
    Process {
        name: "M/D/1 queue, load 0.7",
        requests,
        dependent: true,
        draw: |draws, n| {
            let wait = md1_wait(draws.unit());
            queue(draws, n, wait, |_| 1.0)
        },
        mean: || 1.0 + 0.5 * LOAD / (1.0 - LOAD),
        quantile: |p| 1.0 + md1_wait(p),
    }
}

fn queue(draws: &mut Draws, n: usize, wait: f64, service: fn(&mut Draws) -> f64) -> Run {
    let mut wait = wait;
    let mut next = |_| {
        let stay = wait + service(draws);
        wait = (stay - draws.exponential() / LOAD).max(0.0);
        stay
    };
    Run::one_each((0..n).map(&mut next).collect())
}

/// The quantile of the wait, by halving: its distribution is a finite sum.
fn md1_wait(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 24.0);
    if p <= 1.0 - LOAD {
        return low;
    }
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if md1_share_below(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn md1_share_below(wait: f64) -> f64 {
    let (mut sum, mut k) = (0.0, 0.0);
    while k <= wait {
        let x = LOAD * (k - wait);
        sum += libm::pow(x, k) / libm::tgamma(k + 1.0) * libm::exp(-x);
        k += 1.0;
    }
    (1.0 - LOAD) * sum
}

/// What the coverage is measured against must itself be true.
#[test]
fn long_runs_have_the_mean_and_the_quantiles_that_are_claimed() {
    for process in [mm1(200_000), md1(200_000)] {
        let run = (process.draw)(&mut Draws::new(8, 0), process.requests);
        let sample = Sample::new(run.values).unwrap();
        let close = |found: f64, claimed: f64| {
            assert!((found / claimed - 1.0).abs() < 0.04, "{}: {found}", process.name);
        };
        close(sample.mean(), (process.mean)());
        for percentile in [Percentile::P50, Percentile::P90, Percentile::P99] {
            let claimed = (process.quantile)(percentile.probability().share());
            close(sample.percentile(percentile), claimed);
        }
    }
}
