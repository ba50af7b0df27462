//! Processes whose truth is known, and how often what a summary says of simulated runs is true.
//!
//! The tests draw a few hundred runs of the shorter processes. `cargo xtask statistics` sets
//! `INFEROMETER_RUNS` and `INFEROMETER_SEED`, and then they draw that many runs of all processes and
//! print their tables.

mod comparison;
mod coverage;
mod queues;

use crate::statistics::draws::Draws;
use crate::statistics::normal;

/// The number of runs and their seed, where `cargo xtask statistics` asks for the tables.
fn asked_tables() -> Option<(u64, u64)> {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse().unwrap());
    // Of forty rows of a thousand runs each, another seed may put one just outside by chance.
    Some((number("INFEROMETER_RUNS")?, number("INFEROMETER_SEED").unwrap_or(2)))
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "DOES NOT HOLD" }
}

/// A kind of run that can be simulated any number of times.
#[derive(Clone, Copy, Debug)]
struct Process {
    name: &'static str,
    requests: usize,
    /// Whether neighbours resemble each other, so that the naive interval must fail.
    dependent: bool,
    draw: fn(&mut Draws, usize) -> Run,
    mean: fn() -> f64,
    quantile: fn(f64) -> f64,
}

/// What a simulated run measured, in the order of time.
#[derive(Clone, Debug)]
struct Run {
    values: Vec<f64>,
    /// How many of the values belong to each request.
    sizes: Vec<usize>,
}

impl Run {
    fn one_each(values: Vec<f64>) -> Self {
        Self { sizes: vec![1; values.len()], values }
    }
}

const PROCESSES: &[Process] = &[
    Process {
        dependent: false,
        ..log_normal("independent", 2_000, |draws, n| slow(draws, n, 0.0))
    },
    log_normal("autoregressive, 0.8", 1_000, |draws, n| slow(draws, n, 0.8)),
    log_normal("autoregressive, 0.8", 8_000, |draws, n| slow(draws, n, 0.8)),
    log_normal("autoregressive, 0.9", 2_000, |draws, n| slow(draws, n, 0.9)),
    log_normal("autoregressive, 0.9", 4_000, |draws, n| slow(draws, n, 0.9)),
    log_normal("slow load under noise", 5_000, slow_under_noise),
    log_normal("gaps of tokens by request", 1_000, gaps),
    queues::md1(5_000),
    queues::mm1(10_000),
    queues::mm1(60_000),
];

/// The standard deviation of the logarithm of a latency.
const SPREAD: f64 = 0.5;

const fn log_normal(
    name: &'static str,
    requests: usize,
    draw: fn(&mut Draws, usize) -> Run,
) -> Process {
    Process {
        name,
        requests,
        dependent: true,
        draw,
        mean: || libm::exp(0.5 * SPREAD * SPREAD),
        quantile: |p| libm::exp(SPREAD * normal::quantile(p)),
    }
}

fn latency(standard: f64) -> f64 {
    libm::exp(SPREAD * standard)
}

/// An autoregression of order one whose every value is standard normal.
fn standard_load(draws: &mut Draws, n: usize, phi: f64) -> Vec<f64> {
    let mut load = draws.normal();
    let mut next = |_| {
        let now = load;
        load = phi * load + (1.0 - phi * phi).sqrt() * draws.normal();
        now
    };
    (0..n).map(&mut next).collect()
}

fn slow(draws: &mut Draws, n: usize, phi: f64) -> Run {
    Run::one_each(standard_load(draws, n, phi).into_iter().map(latency).collect())
}

/// A load that changes slowly beneath the differences between single requests: the next request tells
/// little, and the next hundred tell much.
fn slow_under_noise(draws: &mut Draws, n: usize) -> Run {
    let (common, own) = (0.4_f64.sqrt(), 0.6_f64.sqrt());
    let load = standard_load(draws, n, 0.95).into_iter();
    Run::one_each(load.map(|load| latency(common * load + own * draws.normal())).collect())
}

/// Requests of a random number of tokens, whose gaps share the load of their request.
fn gaps(draws: &mut Draws, n: usize) -> Run {
    let mut run = Run { values: Vec::new(), sizes: Vec::new() };
    for load in standard_load(draws, n, 0.9) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few times fifteen"
        )]
        let size = 1 + (15.0 * draws.exponential()) as usize;
        run.sizes.push(size);
        run.values.extend((0..size).map(|_| latency(0.6 * load + 0.8 * draws.normal())));
    }
    run
}
