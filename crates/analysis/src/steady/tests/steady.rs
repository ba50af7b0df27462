//! Runs whose course is known, and whether it is found.

use std::time::Duration;

use inferometer_model::Observations;
use inferometer_model::spec::{Arrivals, RampCurve, RampSegment};

use crate::fixture::{Given, calm, calm_of, raised, run};
use crate::judge::{Severity, Verdict};
use crate::metric;
use crate::statistics::draws::Draws;
use crate::steady::*;
use crate::summarize;

/// What one request of a queue takes.
const SERVICE_MS: f64 = 100.0;

/// Poisson arrivals at a server that takes [`SERVICE_MS`] for each of `at_once` requests.
fn queue(load: f64, at_once: usize, requests: u64, seed: u64) -> Observations {
    let mut draws = Draws::new(6, seed);
    let mut free_at = vec![0.0_f64; at_once];
    let mut now = 0.0;
    let per_ms = load * at_once as f64 / SERVICE_MS;
    let records = (0..requests).map(|id| {
        now += draws.exponential() / per_ms;
        let first = free_at.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
        let begun = first.max(now);
        *first = begun + SERVICE_MS;
        let (sent, end) = (whole_ms(now), whole_ms(*first));
        let begun = whole_ms(begun) + 20;
        Given::ok(id)
            .moments(sent, sent, sent)
            .arrival(begun, &[Some(1)])
            .arrival(end.max(begun + 1), &[Some(2)])
            .usage(512, 3)
            .record()
    });
    open(run(records.collect()), per_ms * 1e3)
}

fn whole_ms(ms: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(ms / 1e3).as_millis()).unwrap()
}

fn open(mut observations: Observations, per_s: f64) -> Observations {
    let rate = Rate::Steady { per_s };
    observations.manifest.spec.load.shape =
        LoadShape::Open { rate, arrivals: Arrivals::Poisson, cap: None };
    observations
}

/// One user whose answers take `length_ms` at each place of the run, one after the other.
fn user(requests: u64, length_ms: impl Fn(u64) -> u64) -> Observations {
    let mut at = 0;
    let records = (0..requests).map(|id| {
        let sent = at;
        at += length_ms(id);
        Given::ok(id)
            .moments(sent, sent, sent)
            .arrival(sent + 10, &[Some(1)])
            .arrival(at, &[Some(9)])
            .asked(512, 10)
            .usage(512, 10)
            .record()
    });
    let mut observations = run(records.collect());
    observations.manifest.spec.load.shape = calm_of(1).manifest.spec.load.shape;
    observations
}

fn steady(observations: &Observations) -> SteadyState {
    summarize(observations).steady
}

#[test]
fn a_queue_below_its_capacity_settles() {
    for (load, at_once) in [(0.5, 1), (0.8, 1), (0.7, 16), (0.9, 16)] {
        let runs = 200;
        let settled = (0..runs)
            .filter(|seed| {
                let found = steady(&queue(load, at_once, 600, *seed));
                assert_eq!(found.piling_up(), None, "load {load}, seed {seed}: {found:?}");
                found.state == SteadyKind::Settled
            })
            .count();
        assert!(190 <= settled, "load {load} on {at_once}: {settled} of {runs} settled");
    }
}

/// Faults: 77.
#[test]
fn a_queue_past_its_capacity_piles_up_and_degrades_the_run() {
    let runs = 40;
    let piled: Vec<f64> =
        (0..runs).filter_map(|seed| steady(&queue(1.3, 4, 1_000, seed)).piling_up()).collect();
    assert!(38 <= piled.len(), "{} of {runs}", piled.len());
    // Twelve of fifty-two a second find no place.
    let mean = piled.iter().sum::<f64>() / piled.len() as f64;
    assert!((10.0..14.0).contains(&mean), "{mean}");
    let piling = queue(1.3, 4, 1_000, 1);
    assert!(raised(&piling).contains(&("piling-up", Severity::Degraded)));
    let summary = summarize(&piling);
    assert_eq!(summary.verdict, Verdict::Degraded);
    assert_eq!((summary.steady.state, &summary.steady.window), (SteadyKind::NeverSettled, &None));
}

#[test]
fn the_window_begins_after_the_warm_up_and_ends_where_the_drain_does() {
    // The first hundred answers take three times as long.
    let slow_at_first = user(600, |id| if id < 100 { 300 } else { 100 });
    let found = steady(&slow_at_first);
    assert_eq!((found.state, &found.reason), (SteadyKind::Settled, &None));
    let window = found.window.unwrap();
    assert_eq!(window.kind, WindowKind::Steady);
    let (from, to) = (window.from_ms.unwrap(), window.to_ms.unwrap());
    assert!((30_000.0..34_000.0).contains(&from), "{from}");
    assert!((79_900.0..=80_000.0).contains(&to), "{to}");
    let figures = found.figures.unwrap();
    let close = |found: Option<f64>, expected: f64| {
        let found = found.unwrap();
        assert!((found - expected).abs() < 0.01 * expected, "{found}, expected {expected}");
    };
    // Ten tokens each tenth of a second, and the input with the first of them.
    close(figures.output_throughput, 100.0);
    close(figures.request_throughput, 10.0);
    close(figures.total_throughput, 100.0 + 5_120.0);
    close(figures.concurrency_mean, 1.0);
    close(figures.latencies.get(&metric::E2E).unwrap().mean, 100.0);
    assert!(figures.requests <= 500 && 450 < figures.requests);
    assert_eq!(figures.latencies.get(&metric::TTFT).unwrap().n, figures.requests);
}

/// All slots begin and end together, and the wave that ends where the drain begins is neither lost nor
/// counted twice.
#[test]
fn a_closed_loop_in_waves_has_the_throughput_of_its_tokens() {
    const SLOTS: u64 = 8;
    for (streams, wave_ms) in [(true, 700), (true, 701), (false, 700)] {
        let records = (0..SLOTS * 30).map(|id| {
            let (wave, slot) = (id / SLOTS, id % SLOTS);
            let (sent, end) = (wave * wave_ms, (wave + 1) * wave_ms);
            let given = Given::ok(id).moments(sent, sent, sent);
            let given = if streams {
                (1..=9).fold(given, |given, n| {
                    given.arrival(sent + n * (end - sent) / 10 + slot / 4, &[Some(1)])
                })
            } else {
                given
            };
            given
                .arrival(end, &[Some(if streams { 1 } else { 10 })])
                .asked(512, 10)
                .usage(512, 10)
                .record()
        });
        let slots = std::num::NonZeroU32::new(8).unwrap();
        let mut observations = run(records.collect());
        observations.manifest.spec.load.shape =
            LoadShape::Closed { concurrency: slots, think: Think::None };
        observations.manifest.spec.workload.streaming = streams;
        let found = steady(&observations);
        assert_eq!((found.state, &found.reason), (SteadyKind::Settled, &None));
        let figures = found.figures.unwrap();
        let rate = |value: Option<f64>| value.unwrap() / (1e3 * 8.0 / wave_ms as f64);
        let (requests, tokens) =
            (rate(figures.request_throughput), rate(figures.output_throughput));
        assert!((0.99..1.01).contains(&requests), "{requests} in waves of {wave_ms} ms");
        assert!((9.8..10.2).contains(&tokens), "{tokens} in waves of {wave_ms} ms");
        // Every prompt has 512 tokens.
        let input = rate(figures.input_throughput) / 512.0;
        assert!((input - requests).abs() < 1e-9, "{input} of {requests}");
    }
}

#[test]
fn a_closed_loop_that_slows_down_never_settles_and_is_degraded() {
    let slowing = user(400, |id| 50 + id);
    let found = steady(&slowing);
    assert_eq!(found.state, SteadyKind::NeverSettled);
    assert!(found.reason.unwrap().contains("output rate"));
    assert_eq!(raised(&slowing), [("never-settled", Severity::Degraded)]);
    let even = user(400, |_| 100);
    assert_eq!(steady(&even).state, SteadyKind::Settled);
    assert_eq!(raised(&even), []);
}

#[test]
fn few_requests_are_too_few_to_tell() {
    let found = steady(&calm());
    assert_eq!(found.state, SteadyKind::TooShort);
    assert!(found.reason.unwrap().starts_with("40 requests"), "the drain is after the last");
    assert_eq!(steady(&run(vec![])).state, SteadyKind::TooShort);
}

#[test]
fn a_load_that_is_not_to_be_steady_is_not_judged() {
    let segments =
        vec![RampSegment { from_per_s: 1.0, to_per_s: 9.0, over: Duration::from_secs(9) }];
    let ramp = Rate::Ramp { segments, curve: RampCurve::Linear };
    for rate in [ramp, Rate::Unlimited] {
        let mut observations = calm_of(300);
        observations.manifest.spec.load.shape =
            LoadShape::Open { rate, arrivals: Arrivals::Constant, cap: None };
        assert_eq!(steady(&observations).state, SteadyKind::NotJudged);
    }
}

#[test]
fn a_cap_over_everything_at_once_is_like_slots() {
    let mut observations = user(400, |_| 100);
    observations.manifest.spec.load.shape = LoadShape::Open {
        rate: Rate::Unlimited,
        arrivals: Arrivals::Constant,
        cap: std::num::NonZeroU32::new(1),
    };
    assert_eq!(steady(&observations).state, SteadyKind::Settled);
}

/// So many users at once, whose answers of 20 to 79 tokens take about 10 ms a token; `pace` slows a
/// token of the answer with this id down.
fn users(at_once: usize, requests: u64, seed: u64, pace: impl Fn(u64) -> f64) -> Observations {
    let mut draws = Draws::new(9, seed);
    let mut free_at = vec![0.0_f64; at_once];
    let records = (0..requests).map(|id| {
        let free = free_at.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
        let sent = whole_ms(*free);
        let tokens = 20 + draws.below(60) as u64;
        let mut given = Given::ok(id).moments(sent, sent, sent).asked(512, 100);
        let mut at = *free + 30.0 + 20.0 * draws.unit();
        for _ in 0..tokens {
            given = given.arrival(whole_ms(at), &[Some(1)]);
            at += pace(id) * (8.0 + 4.0 * draws.unit());
        }
        *free = at;
        given.usage(512, tokens).record()
    });
    let mut observations = run(records.collect());
    let concurrency = std::num::NonZeroU32::new(u32::try_from(at_once).unwrap()).unwrap();
    observations.manifest.spec.load.shape = LoadShape::Closed { concurrency, think: Think::None };
    observations
}

#[test]
fn sixty_requests_of_a_closed_loop_tell() {
    let runs = 100;
    let settled = |pace: fn(u64) -> f64| {
        let found = (0..runs).map(|seed| steady(&users(8, 60, seed, pace)));
        found.filter(|found| found.state == SteadyKind::Settled).count()
    };
    assert!(95 <= settled(|_| 1.0), "{} of {runs} settled", settled(|_| 1.0));
    // Twice as slow at the end as at the beginning.
    let slowing = settled(|id| 1.0 + id as f64 / 60.0);
    assert!(slowing <= 20, "{slowing} of {runs} settled");
    assert_eq!(steady(&users(8, 59, 0, |_| 1.0)).state, SteadyKind::TooShort);
}

#[test]
fn the_default_run_has_steady_throughputs_with_intervals() {
    let found = steady(&users(8, 100, 1, |_| 1.0));
    assert_eq!(found.state, SteadyKind::Settled);
    let figures = found.figures.unwrap();
    let bounds = |value: Option<f64>, interval: Option<crate::Interval>| {
        let (value, interval) = (value.unwrap(), interval.unwrap());
        assert!(interval.contains(value), "{value} in {interval:?}");
        (interval.low / value, interval.high / value)
    };
    let found = figures.intervals;
    let (low, high) = bounds(figures.output_throughput, found.output_throughput);
    assert!(0.9 < low && high < 1.1, "{low} to {high}");
    let (low, high) = bounds(figures.request_throughput, found.request_throughput);
    assert!(0.7 < low && low < high && high < 1.3, "{low} to {high}");
    bounds(figures.total_throughput, found.total_throughput);
}

#[test]
fn steady_intervals_cover_the_truth() {
    // One token of each of eight users every 10 ms, but for 40 ms before each answer's first.
    let runs = 200;
    let truth = 8.0 * 49.5 / (0.040 + 0.495);
    let covered = (0..runs)
        .filter(|seed| {
            let figures = steady(&users(8, 200, *seed, |_| 1.0)).figures.unwrap();
            figures.intervals.output_throughput.unwrap().contains(truth)
        })
        .count();
    assert!(180 <= covered, "{covered} of {runs}");
}
