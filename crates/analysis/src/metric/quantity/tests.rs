//! Tests of `quantity`.

use super::*;
use crate::fixture::calm;
use crate::summary::summarize;

fn named(name: &str, origin: LatencyOrigin) -> String {
    Quantity::named(name, origin).unwrap().to_string()
}

#[test]
fn a_bare_latency_begins_where_the_load_says() {
    assert_eq!(named("ttft.p99", LatencyOrigin::Sent), "ttft.p99");
    assert_eq!(named("ttft.p99", LatencyOrigin::Schedule), "ttft_schedule.p99");
    assert_eq!(named("ttft.sent.p99", LatencyOrigin::Schedule), "ttft.p99");
    assert_eq!(named("e2e.schedule.p99.9", LatencyOrigin::Sent), "e2e_schedule.p99.9");
    assert_eq!(named("tpot.mean", LatencyOrigin::Schedule), "tpot.mean");
    assert_eq!(named("output_throughput", LatencyOrigin::Schedule), "output_throughput");
}

#[test]
fn what_is_no_quantity_is_refused_by_name() {
    use QuantityProblem::{OneValue, UnknownMetric, UnknownStatistic, WhichStatistic};
    let problem = |name| Quantity::named(name, LatencyOrigin::Sent).unwrap_err();
    assert!(matches!(problem("tftt.p99"), UnknownMetric { nearest: "ttft", .. }));
    assert!(matches!(problem("ttft.p98"), UnknownStatistic { .. }));
    assert!(matches!(problem("tpot.sent.p99"), UnknownStatistic { .. }));
    assert!(matches!(problem("goodput.p99"), OneValue { .. }));
    assert!(matches!(problem("ttft"), WhichStatistic { .. }));
    assert!(matches!(problem("ttft.schedule"), WhichStatistic { .. }));
}

#[test]
fn a_quantity_is_read_from_the_summary() {
    let summary = summarize(&calm());
    let ttft = Quantity::named("ttft.mean", LatencyOrigin::Sent).unwrap();
    let mean = summary.metrics.distribution(&metric::TTFT).unwrap().mean;
    assert_eq!(Some(ttft.value_in(&summary).unwrap().value), mean);
    let goodput = Quantity::named("goodput", LatencyOrigin::Sent).unwrap();
    assert_eq!(goodput.value_in(&summary).unwrap_err(), "no SLO was set for each request");
}
