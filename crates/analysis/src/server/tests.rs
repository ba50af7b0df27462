//! Servers that go on, fall silent, begin anew, or never say a word.

use std::time::Duration;

use inferometer_model::Moment;
use inferometer_model::observations::Simulated;
use inferometer_model::telemetry::{Absence, MissReason, MissedScrape};

use super::*;
use crate::fixture::{calm, ms, sample, scraped};
use crate::summary::summarize;

/// A scrape at each second with this total of generated tokens; a hole where there is none.
fn generated(totals: &[Option<f64>]) -> Vec<TelemetrySample> {
    let samples = (0..).zip(totals).filter_map(|(second, total)| {
        let mut found = sample(ms(1_000 * second));
        found.counters.generation_tokens = Some((*total)?);
        Some(found)
    });
    samples.collect()
}

fn recorded(samples: Vec<TelemetrySample>) -> Observations {
    let telemetry = Telemetry::Recorded(Recording { samples, missed: Vec::new(), skipped: 0 });
    Observations { telemetry, ..calm() }
}

fn server(samples: Vec<TelemetrySample>) -> ServerSide {
    summarize(&recorded(samples)).server.unwrap()
}

#[test]
fn a_counter_is_the_difference_over_the_run() {
    let found = server(generated(&[Some(100.0), Some(150.0), Some(300.0)]));
    assert_eq!(
        found.generation_tokens,
        Some(CounterFigures { total: 200.0, per_s: Some(100.0), over_s: 2.0 })
    );
    assert_eq!(found.restarts, 0);
    assert_eq!(found.timeline.generation_tokens_per_s, [None, Some(50.0), Some(150.0)]);
}

#[test]
fn what_the_server_never_said_is_null_and_not_zero() {
    let found = server(generated(&[Some(1.0), Some(2.0)]));
    assert_eq!(
        (found.running, found.kv_usage, found.waiting, found.swapped, found.cpu_kv_usage),
        (None, None, None, None, None)
    );
    assert_eq!((found.prompt_tokens, found.preemptions, found.prefix_hits), (None, None, None));
    assert_eq!((found.prefix_hit_share, found.ttft_ms_mean), (None, None));
    assert_eq!(found.timeline.running, [None, None]);
    let written = serde_json::to_string(&found).unwrap();
    assert!(written.contains("\"running\":null") && written.contains("\"preemptions\":null"));
}

#[test]
fn the_cache_in_the_hosts_memory_is_told_and_old_documents_do_not_know_it() {
    let mut samples = generated(&[Some(1.0), Some(2.0)]);
    samples[0].gauges.cpu_kv_usage = Some(0.25);
    samples[1].gauges.cpu_kv_usage = Some(0.75);
    let found = server(samples);
    assert_eq!(found.cpu_kv_usage, Some(GaugeFigures { mean: 0.5, max: 0.75, n: 2 }));
    let mut old = serde_json::to_value(&found).unwrap();
    old.as_object_mut().unwrap().remove("cpu_kv_usage");
    let read: ServerSide = serde_json::from_value(old).unwrap();
    assert_eq!(read.cpu_kv_usage, None);
}

#[test]
fn one_scrape_has_no_difference() {
    let found = server(generated(&[Some(100.0)]));
    assert_eq!(found.generation_tokens, None);
    let nothing_asked = {
        let mut samples = generated(&[Some(1.0), Some(1.0)]);
        for sample in &mut samples {
            (sample.counters.prefix_queries, sample.counters.prefix_hits) = (Some(5.0), Some(5.0));
        }
        server(samples)
    };
    let none = CounterFigures { total: 0.0, per_s: Some(0.0), over_s: 1.0 };
    assert_eq!(nothing_asked.prefix_hits, Some(none));
    assert_eq!(nothing_asked.prefix_hit_share, None, "nothing was asked, so nothing was found");
}

/// Faults: 102.
#[test]
fn a_counter_that_falls_is_a_restart_and_each_life_counts_by_itself() {
    let found = server(generated(&[Some(900.0), Some(1_000.0), Some(40.0), Some(100.0)]));
    assert_eq!(found.restarts, 1);
    let figures = found.generation_tokens.unwrap();
    assert_eq!(figures, CounterFigures { total: 160.0, per_s: Some(80.0), over_s: 2.0 });
    assert_eq!(
        found.timeline.generation_tokens_per_s,
        [None, Some(100.0), None, Some(60.0)],
        "nothing is known of the second in between"
    );
    assert_eq!(found.tokens_apart, TokensApart::default());
}

/// Faults: 97.
#[test]
fn a_restart_shows_through_a_gap_and_by_the_process() {
    let found = server(generated(&[Some(900.0), None, None, Some(40.0)]));
    assert_eq!((found.restarts, found.generation_tokens), (1, None));
    let mut samples = generated(&[Some(900.0), Some(950.0), Some(990.0)]);
    samples[2].process_start_s = Some(1_001.5);
    assert_eq!(server(samples).restarts, 1);
    // A word that is missing for a while hides nothing.
    let mut samples = generated(&[Some(900.0), Some(0.0), Some(40.0)]);
    samples[1].counters.generation_tokens = None;
    assert_eq!(server(samples).restarts, 1);
}

#[test]
fn processes_that_come_back_are_replicas_and_no_restarts() {
    let mut samples = generated(&[Some(900.0), Some(40.0), Some(950.0), Some(60.0)]);
    for (sample, start) in samples.iter_mut().zip([1_000.0, 5_000.0, 1_000.5, 5_000.0]) {
        sample.process_start_s = Some(start);
        sample.gauges.running = Some(2.0);
        sample.timings.ttft = Some(SumCount { sum_s: 1.0, count: 2.0 });
    }
    let found = server(samples.clone());
    assert_eq!((found.replicas, found.restarts), (Some(2), 0));
    assert_eq!((found.generation_tokens, found.ttft_ms_mean), (None, None));
    assert_eq!(found.timeline.generation_tokens_per_s, [None; 4]);
    assert_eq!(found.tokens_apart, TokensApart::default());
    assert_eq!(found.running.map(|gauge| gauge.n), Some(4));
    // Who begins anew begins later, and stays.
    samples[2].process_start_s = Some(5_000.0);
    let found = server(samples);
    assert_eq!((found.replicas, found.restarts), (None, 2), "its counter fell once more");
}

/// Faults: 101.
#[test]
fn a_gap_in_the_scrapes_is_a_gap_in_the_figure() {
    let mut samples = generated(&[Some(0.0), Some(10.0), None, None, Some(100.0)]);
    for (sample, running) in samples.iter_mut().zip([1.0, 2.0, 4.0]) {
        sample.gauges.running = Some(running);
    }
    let found = server(samples);
    assert_eq!(found.timeline.running, [Some(1.0), Some(2.0), None, None, Some(4.0)]);
    assert_eq!(found.timeline.generation_tokens_per_s, [None, Some(10.0), None, None, Some(30.0)]);
    assert_eq!((found.timeline.from_ms, found.timeline.step_ms), (0.0, 1_000.0));
}

#[test]
fn a_long_run_is_drawn_in_a_bounded_number_of_steps() {
    let mut samples = generated(&vec![Some(5.0); 7_201]);
    for sample in &mut samples {
        sample.gauges.running = Some(3.0);
        // As a poller would: a little late, each time otherwise.
        let late = sample.at.as_nanos() / 1_000_000_000 * 7_919 % 90;
        sample.at = sample.at + Duration::from_millis(late);
    }
    let timeline = server(samples).timeline;
    assert_eq!((timeline.step_ms, timeline.running.len()), (13_000.0, 554));
    assert!(timeline.running.iter().all(|value| *value == Some(3.0)), "no step is empty");
}

#[test]
fn gauges_are_of_the_run_and_not_of_the_rest_before_and_after() {
    let at = |at: Moment, running| {
        let mut found = sample(at);
        found.gauges.running = Some(running);
        found
    };
    let mut observations = recorded(vec![at(ms(500), 0.0), at(ms(1_500), 6.0), at(ms(9_000), 0.0)]);
    observations.ending.began = Some(ms(501));
    let found = summarize(&observations).server.unwrap();
    let inside = GaugeFigures { mean: 6.0, max: 6.0, n: 1 };
    assert_eq!((found.running, found.scrapes.inside), (Some(inside), 1));
    observations.ending.began = None;
    let all = GaugeFigures { mean: 2.0, max: 6.0, n: 3 };
    assert_eq!(summarize(&observations).server.unwrap().running, Some(all));
}

#[test]
fn means_by_the_servers_clock_are_of_the_requests_of_the_run() {
    let mut samples = generated(&[Some(0.0), Some(1.0)]);
    samples[0].timings.ttft = Some(SumCount { sum_s: 90.0, count: 3.0 });
    samples[1].timings.ttft = Some(SumCount { sum_s: 91.0, count: 13.0 });
    let found = server(samples);
    assert_eq!((found.ttft_ms_mean, found.e2e_ms_mean), (Some(100.0), None));
}

#[test]
fn missed_scrapes_are_counted_by_their_reason() {
    let reasons = [MissReason::Status(503), MissReason::Status(500), MissReason::BackedOff];
    let missed = reasons.map(|reason| MissedScrape { at: ms(1), reason }).to_vec();
    let telemetry = Telemetry::Recorded(Recording {
        samples: generated(&[Some(1.0), Some(1.0)]),
        missed,
        skipped: 4_999,
    });
    let scrapes = summarize(&Observations { telemetry, ..calm() }).server.unwrap().scrapes;
    assert_eq!((scrapes.ok, scrapes.missed), (2, 5_002));
    let expected = [("backed_off".to_owned(), 5_000), ("status".to_owned(), 2)];
    assert_eq!(scrapes.missed_by, BTreeMap::from(expected));
    assert_eq!((scrapes.took_ms_mean, scrapes.took_ms_max), (Some(2.0), Some(2.0)));
}

#[test]
fn a_simulation_has_samples_and_no_exchanges() {
    let mut observations = recorded(generated(&[Some(1.0), Some(1.0)]));
    let engine = Simulated {
        profile: "p".to_owned(),
        engine: "e".to_owned(),
        model_error: None,
        prediction: None,
    };
    observations.manifest.simulated = Some(engine);
    let scrapes = summarize(&observations).server.unwrap().scrapes;
    assert_eq!((scrapes.ok, scrapes.took_ms_mean, scrapes.took_ms_max), (2, None, None));
}

#[test]
fn silence_has_its_reason_in_the_document() {
    let telemetry = Telemetry::Absent(Absence::Refused(MissReason::Status(404)));
    let summary = summarize(&Observations { telemetry, ..calm() });
    assert_eq!(summary.server, None);
    let reason = "the server's metrics cannot be read: HTTP 404";
    assert_eq!(summary.server_missing.as_deref(), Some(reason));
}

#[test]
fn totals_are_compared_with_the_clients_own() {
    let apart = summarize(&scraped(calm(), 20_480.0, 150.0)).server.unwrap().tokens_apart;
    assert_eq!(apart, TokensApart { prompt: Some(0.0), generation: Some(0.25) });
    // A scrape that begins after the first request has missed some of its tokens.
    let mut late = scraped(calm(), 20_480.0, 150.0);
    if let Telemetry::Recorded(recording) = &mut late.telemetry {
        recording.samples[0].at = ms(1);
    }
    let found = summarize(&late).server.unwrap();
    assert_eq!(found.tokens_apart, TokensApart::default());
    let reason = "its counters were not read both before and after all requests";
    assert_eq!(found.tokens_not_compared.as_deref(), Some(reason));
}
