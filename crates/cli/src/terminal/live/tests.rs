//! The bar and the page of a run that goes on, as they are drawn.

use std::collections::BTreeMap;

use inferometer_load::ProgressView;
use inferometer_model::Outcome;
use inferometer_model::plan::Bounds;
use inferometer_model::telemetry::Gauges;

use super::*;

fn tick(elapsed_s: u64, ok: u64) -> ProgressTick {
    let server = Gauges {
        running: Some(16.0),
        waiting: Some(3.0),
        kv_usage: Some(0.42),
        ..Gauges::default()
    };
    let live = LiveFigures {
        requests_per_s: 12.3,
        output_tokens_per_s: 1_234.0,
        ttft_ms: Some(Spread { p50: 25.3, p99: 80.1 }),
        itl_ms: None,
        failures: BTreeMap::from([(Outcome::Rejected, 2)]),
        server,
        gpu_power_w: None,
        client_cpus: Some(0.31),
        send_lag_ms: Some(Spread { p50: 0.02, p99: 0.25 }),
    };
    let bounds = Bounds { requests: Some(100), release_before: None, requests_min: 0, slots: None };
    ProgressTick {
        counts: ProgressView { started: ok + 18, ok, failed: 2, abandoned: 0, output_events: 0 },
        bounds,
        elapsed: Duration::from_secs(elapsed_s),
        live,
    }
}

#[test]
fn the_page_has_a_line_for_each_figure_and_fits() {
    let mut view = LiveView::default();
    (0..200).for_each(|second| view.remember(&tick(second, 48)));
    for width in [40, 80, 200] {
        let lines = view.page(&tick(10, 48), width);
        let fits = |line: &String| line.trim_end().chars().count() < usize::from(width);
        assert!(lines.iter().all(fits), "{lines:#?}");
    }
    let lines = view.page(&tick(10, 48), 80);
    let starts = [
        "50 %  10 s, 10 s left",
        "requests",
        "req/s",
        "tokens/s",
        "TTFT",
        "ITL",
        "server",
        "client",
    ];
    assert_eq!(lines.len(), starts.len());
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line:?} does not begin with {start:?}");
    }
    assert!(lines[1].contains("48 ok, 16 in flight, 2 rejected"), "{}", lines[1]);
    assert!(
        lines[4].contains("p50 25.30 ms, p99 80.10 ms") && lines[4].contains('█'),
        "{}",
        lines[4]
    );
    assert!(lines[6].contains("16 running, 3 waiting, KV cache 42 %"), "{}", lines[6]);
    assert!(lines[7].contains("0.310 CPUs, send lag p99 0.250 ms"), "{}", lines[7]);
}

#[test]
fn runs_that_are_long_together_have_a_page() {
    let mut view = LiveView::default();
    assert!(!view.is_long(&tick(2, 48)), "it takes four seconds");
    assert!(view.is_long(&tick(10, 38)), "it takes 25 seconds");
    view.is_study = true;
    assert!(view.is_long(&tick(2, 48)), "a study has the page from its start");
    view.is_study = false;
    for _ in 0..3 {
        view.remember(&tick(6, 98));
        view.end_run();
    }
    assert!(view.is_long(&tick(2, 48)), "three runs took 18 seconds");
}

#[test]
fn a_short_run_has_one_line() {
    let [line] = &bar(&tick(10, 48), 80)[..] else { panic!("one line") };
    assert!(line.starts_with("50 %  10 s, 10 s left  48 ok, 16 in flight, 2 rejected"), "{line:?}");
}
