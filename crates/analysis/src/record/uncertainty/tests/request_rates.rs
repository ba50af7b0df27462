//! Tests of `request_rates`.

use crate::fixture::{Given, run};
use crate::summary::summarize;

#[test]
fn a_request_counts_by_its_own_time_and_failures_do_not_count() {
    let ok = |id: u64, end: u64, tokens: u64| {
        Given::ok(id)
            .asked(100, 50)
            .moments(0, 0, 0)
            .arrival(10, &[Some(1)])
            .arrival(end, &[Some(1)])
            .usage(100, tokens)
            .record()
    };
    let fast_failure = Given::failed(2, inferometer_model::Outcome::Truncated)
        .moments(0, 0, 0)
        .arrival(1, &[Some(1)])
        .usage(100, 1)
        .record();
    let rates = summarize(&run(vec![ok(0, 1_000, 50), ok(1, 2_000, 50), fast_failure]));
    let rates = rates.request_rates;
    let (generation, prompt) = (rates.generation_tps.unwrap(), rates.prompt_tps.unwrap());
    // 50 tokens in one second and in two: 50 and 25. Not 100 tokens in three seconds.
    assert!((generation.value - 37.5).abs() < 1e-9, "{generation:?}");
    assert!((prompt.value - 75.0).abs() < 1e-9, "{prompt:?}");
    assert_eq!((generation.n, prompt.n), (2, 2));
}

#[test]
fn nothing_has_no_rate() {
    let summary = summarize(&run(Vec::new()));
    assert_eq!(summary.request_rates, crate::RequestRates::default());
}
