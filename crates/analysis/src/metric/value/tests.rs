//! Tests of `value`.

use super::*;
use crate::metric;

fn distribution(n: u32) -> Distribution {
    Distribution::from_sample(&Sample::new((0..n).map(f64::from).collect()).unwrap())
}

#[test]
fn percentiles_are_certified_from_their_floors_on() {
    use Percentile::{P50, P90, P95, P99, P999};
    for (n, expected) in [
        (10, vec![P50, P90, P95, P99, P999]),
        (11, vec![P90, P95, P99, P999]),
        (63, vec![P90, P95, P99, P999]),
        (64, vec![P95, P99, P999]),
        (129, vec![P95, P99, P999]),
        (130, vec![P99, P999]),
        (661, vec![P99, P999]),
        (662, vec![P999]),
        (6_635, vec![P999]),
        (6_636, vec![]),
    ] {
        let found = distribution(n);
        assert_eq!(found.not_certified, expected, "n = {n}");
        assert!(found.p99.is_some(), "the number is kept");
        assert_eq!(found.is_certified(P999), expected.is_empty());
    }
}

#[test]
fn nothing_is_null_with_a_reason() {
    let written = serde_json::to_value(Distribution::nothing("no output")).unwrap();
    for key in ["mean", "std", "p50", "p90", "p95", "p99", "p999", "min", "max", "effective_n"] {
        assert!(written[key].is_null(), "{key}");
    }
    assert!(written["intervals"]["p99"].is_null());
    assert_eq!((&written["n"], &written["reason"]), (&0.into(), &"no output".into()));
    assert!(!Distribution::nothing("no output").is_certified(Percentile::P50));
}

#[test]
fn an_unknown_metric_is_passed_over() {
    let found: MetricValues = serde_json::from_str(
        "{\"ttft_of_tomorrow\": {\"x\": 1}, \"tg\": {\"value\": 2.0, \"unit\": \"tok/s\"}}",
    )
    .unwrap();
    assert_eq!(found.iter().count(), 1);
    assert_eq!(found.scalar(&metric::TG).unwrap().value, Some(2.0));
    assert_eq!(found.distribution(&metric::TG), None);
}
