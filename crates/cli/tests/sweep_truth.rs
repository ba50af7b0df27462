//! What a sweep finds on engines whose truth is known: the knee, and the limit of a promise.
//!
//! The engine is drawn at random and takes the same time for every step, so theory needs nothing of
//! its model of hardware. `INFEROMETER_ENGINES` sets how many are drawn; every day it is a handful.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::Path;

use inferometer_analysis::statistics::draws::Draws;
use serde_json::Value;

use support::{output, text};

/// What is found may be further off than its steps once in twenty: of a handful, never.
const MISSES: f64 = 0.05;
const RESOLUTION: f64 = 0.1;

fn engines() -> u64 {
    std::env::var("INFEROMETER_ENGINES").map_or(4, |count| count.parse().unwrap())
}

fn sweep(folder: &Path, arguments: &[String]) -> Value {
    let common = ["sweep", "--virtual", "--quiet", "--json", "--input-tokens", "16"];
    let arguments: Vec<&str> =
        common.into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let swept = output(&arguments, folder);
    assert_eq!(swept.status.code(), Some(0), "{arguments:?}: {}", text(&swept.stderr));
    serde_json::from_slice(&swept.stdout).unwrap()
}

/// What was typed, apart by spaces.
fn typed(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn drawn(draws: &mut Draws, from: u32, to: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below `to`")]
    let above = (draws.unit() * f64::from(to - from + 1)) as u32;
    (from + above).min(to)
}

/// Up to its most requests in a step every one more is as fast as the others, and then none is. Who has
/// an answer asks again while the next step already runs, which costs a user one step for each answer:
/// answers are long, so that it hardly moves the knee. Runs are long, too: a drain that comes at another
/// place in each of them makes a flat curve bumpy, and a bump of one step is a knee of its own.
fn knee_of(number: u64) -> (String, bool) {
    let draws = &mut Draws::new(11, number);
    let (most, step, least) = (drawn(draws, 8, 60), drawn(draws, 5, 40), drawn(draws, 70, 100));
    let answers = format!("uniform:{least}..{}", least + 100);
    let folder = tempfile::tempdir().unwrap();
    let found = sweep(
        folder.path(),
        &typed(&format!(
            "--concurrencies 1..128*2 --fine=8 --waves 64 --seed {number} --engine-step {step}ms \
             --max-num-seqs {most} --output-tokens {answers}"
        )),
    );
    let condition = &found["conditions"][0];
    let concurrency = |level: &Value| level["level"]["concurrency"].as_u64().unwrap();
    let knee = concurrency(&condition["findings"]["knee"]["found"]);
    let mut levels: Vec<u64> =
        condition["levels"].as_array().unwrap().iter().map(concurrency).collect();
    levels.sort_unstable();
    let place = levels.iter().position(|level| *level == knee).unwrap();
    let fine = (knee - levels[place - 1]).max(levels[place + 1] - knee);
    let told = format!("{most} at once, {step} ms, {answers}: {knee} of {levels:?}");
    assert!(8 < levels.len() && fine <= 16, "no fine steps: {told}");
    (told, knee.abs_diff(u64::from(most)) <= fine)
}

#[test]
fn the_knee_lies_within_one_fine_step_of_what_the_engine_can_hold() {
    let found: Vec<(String, bool)> = (0..engines()).map(knee_of).collect();
    let missed: Vec<&String> =
        found.iter().filter(|(_, is_near)| !is_near).map(|(told, _)| told).collect();
    assert!(missed.len() as f64 <= MISSES * found.len() as f64, "{missed:?}");
}

/// An engine whose answers have one token: whoever waits at the end of a step is in the next one, at
/// most so many at a time.
#[derive(Clone, Copy, Debug)]
struct Steps {
    ms: u32,
    most: u32,
    /// Threshold of the SLO on the 99th percentile.
    limit_ms: f64,
}

impl Steps {
    fn drawn(draws: &mut Draws) -> Self {
        let (ms, most) = (drawn(draws, 5, 50), drawn(draws, 1, 6));
        let limit_ms = (f64::from(ms) * (2.5 + 5.5 * draws.unit())).round();
        Self { ms, most, limit_ms }
    }

    /// The 99th percentile of the time to the only token, of Poisson arrivals at this rate.
    fn p99_ms(self, per_s: f64) -> f64 {
        const REQUESTS: usize = 300_000;
        let mut draws = Draws::new(12, 0);
        let mut at_ms = 0.0;
        let next = |_| {
            at_ms += 1_000.0 * draws.exponential() / per_s;
            at_ms
        };
        let arrivals: Vec<f64> = (0..REQUESTS).map(next).collect();
        let mut latencies = Vec::with_capacity(REQUESTS);
        let (mut waiting, mut now) = (arrivals.as_slice(), 0.0_f64);
        while let Some(first) = waiting.first() {
            now = now.max(*first);
            let due = waiting.iter().take(self.most as usize).take_while(|at| **at <= now).count();
            now += f64::from(self.ms);
            let (served, later) = waiting.split_at(due);
            latencies.extend(served.iter().map(|at| now - at));
            waiting = later;
        }
        let (_, p99, _) = latencies.select_nth_unstable_by(REQUESTS / 100 * 99, f64::total_cmp);
        *p99
    }

    /// The highest rate that keeps the promise, by halving.
    fn limit_per_s(self) -> f64 {
        let capacity = 1_000.0 * f64::from(self.most) / f64::from(self.ms);
        let (mut low, mut high) = (0.01 * capacity, capacity);
        for _ in 0..14 {
            let middle = f64::midpoint(low, high);
            if self.p99_ms(middle) <= self.limit_ms {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// How many steps of the resolution the rate that a search finds lies from the truth.
fn steps_off(number: u64) -> (Steps, f64) {
    let draws = &mut Draws::new(13, number);
    let engine = Steps::drawn(draws);
    let truth = engine.limit_per_s();
    let from = truth * (0.1 + 0.6 * draws.unit());
    let (Steps { ms, most, limit_ms }, at_most) = (engine, truth * 20.0);
    let mut arguments = typed(&format!(
        "--resolution 10% --from {from:.2} --at-most {at_most:.0} --seed {number} --requests 4000 \
         --engine-step {ms}ms --max-num-seqs {most} --output-tokens 1 --find"
    ));
    arguments.push(format!("max rate where ttft.p99<{limit_ms}ms"));
    let folder = tempfile::tempdir().unwrap();
    let found = sweep(folder.path(), &arguments);
    let limit = found["limits"][0]["level"].as_f64().unwrap();
    (engine, (limit / truth).ln() / (1.0 + RESOLUTION).ln())
}

#[test]
fn the_limit_of_a_promise_is_found_within_one_step() {
    let found: Vec<(Steps, f64)> = (0..engines()).map(steps_off).collect();
    let missed: Vec<_> = found.iter().filter(|(_, steps)| 1.0 < steps.abs()).collect();
    assert!(missed.len() as f64 <= MISSES * found.len() as f64, "{missed:?}");
    let above = found.iter().filter(|(_, steps)| 0.5 < *steps).count();
    assert!(above as f64 <= MISSES * found.len() as f64, "too much is promised: {found:?}");
}

/// The truth of the test must itself be true: an engine of one request is a queue whose percentiles are
/// in textbooks.
#[test]
fn one_request_in_a_step_is_the_queue_of_the_textbook() {
    let engine = Steps { ms: 10, most: 1, limit_ms: 0.0 };
    // M/D/1 at a load of 0.7: the 99th percentile of the wait is 6.485 services, by Erlang's sum.
    let found = engine.p99_ms(70.0);
    assert!((found / 74.85 - 1.0).abs() < 0.05, "{found}");
}
