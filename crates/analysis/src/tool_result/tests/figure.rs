//! Figures by the names of our metrics.

use super::*;
use crate::fixture::calm;
use crate::metric::LatencyOrigin;
use crate::summary::summarize;

fn quantity(name: &str) -> Quantity {
    Quantity::named(name, LatencyOrigin::Sent).unwrap()
}

#[test]
fn a_tool_has_the_same_key_wherever_it_is_written() {
    for tool in Tool::ALL {
        assert_eq!(serde_json::to_value(tool).unwrap(), tool.key());
    }
}

#[test]
fn the_load_is_the_rate_and_else_what_may_run_at_once() {
    let level = |request_rate, max_concurrency| {
        ToolResult { request_rate, max_concurrency, ..ToolResult::default() }.level().to_string()
    };
    let four = Level::Concurrency(NonZeroU32::new(4).unwrap()).to_string();
    assert_eq!(level(Some(ResultRate::PerSecond(2.5)), Some(4)), Level::Rate(2.5).to_string());
    assert_eq!(level(Some(ResultRate::Unlimited), Some(4)), four);
    assert_eq!(level(None, Some(4)), four);
    assert_eq!(level(Some(ResultRate::Unlimited), None), Level::Unlimited.to_string());
    assert_eq!(level(None, None), Level::AsAsked.to_string());
    assert_eq!(level(Some(ResultRate::PerSecond(f64::NAN)), None), Level::AsAsked.to_string());
}

#[test]
fn a_figure_has_the_meaning_that_it_is_asked_for() {
    let mut sheet = ToolResult { completed: Some(700), ..ToolResult::default() };
    let itl = sheet.latency_mut(LatencyKind::Itl, CountsFrom::Output, Grain::Chunk);
    itl.mean_ms = Some(20.0);
    itl.percentiles_ms.insert("99".to_owned(), 80.0);
    assert!(sheet.figure(&quantity("itl.mean")).unwrap_err().contains("has no"));
    let found = sheet.figure(&quantity("icl.p99")).unwrap();
    assert_eq!((found.value.to_bits(), found.n, found.certified), (80_f64.to_bits(), 700, true));
    assert!(found.interval.is_none());
    sheet.completed = Some(600);
    assert!(!sheet.figure(&quantity("icl.p99")).unwrap().certified);
    assert!(sheet.figure(&quantity("icl.max")).is_err(), "the source does not say it");
}

#[test]
fn answers_of_one_token_certify_no_gap() {
    let mut sheet =
        ToolResult { completed: Some(700), output_tokens: Some(7_000), ..ToolResult::default() };
    for (kind, from) in
        [(LatencyKind::Ttft, CountsFrom::Send), (LatencyKind::Tpot, CountsFrom::Output)]
    {
        let latency = sheet.latency_mut(kind, from, Grain::Request);
        latency.percentiles_ms.insert("99".to_owned(), 80.0);
    }
    let certified = |sheet: &ToolResult, name: &str| {
        let found = sheet.figure(&quantity(name)).unwrap();
        (found.n, found.certified)
    };
    assert_eq!(certified(&sheet, "tpot.p99"), (700, true));
    sheet.output_tokens = Some(750);
    assert_eq!(certified(&sheet, "tpot.p99"), (50, false), "most answers have no gap");
    assert_eq!(certified(&sheet, "ttft.p99"), (700, true));
    sheet.completed = None;
    assert_eq!(certified(&sheet, "ttft.p99"), (0, false), "of how many, nobody says");
}

#[test]
fn what_its_source_leaves_open_is_the_plain_metric() {
    let mut sheet = ToolResult::default();
    let ttft = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Unknown, Grain::Request);
    ttft.mean_ms = Some(200.0);
    assert!(sheet.figure(&quantity("ttft.mean")).is_ok());
    assert!(sheet.figure(&quantity("ttft.schedule.mean")).is_err());
    assert!(!sheet.latencies[0].is_defined());
}

#[test]
fn failures_that_nobody_counted_are_not_none() {
    let mut sheet = ToolResult { completed: Some(100), ..ToolResult::default() };
    assert!(sheet.figure(&quantity("error_rate")).is_err());
    sheet.failed = Some(0);
    let found = sheet.figure(&quantity("error_rate")).unwrap();
    assert!(found.value == 0.0 && 0.03 < found.interval.unwrap().high);
}

#[test]
fn a_run_beside_others_counts_as_they_do_and_keeps_what_only_it_has() {
    let sheet = ToolResult::beside_others(&summarize(&calm()));
    let meanings: Vec<_> = sheet.latencies.iter().map(|it| (it.kind, it.from, it.grain)).collect();
    let itl = |grain| (LatencyKind::Itl, CountsFrom::Output, grain);
    assert!(meanings.contains(&itl(Grain::Chunk)) && meanings.contains(&itl(Grain::Token)));
    let mut once = meanings.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), meanings.len());
}

#[test]
fn a_run_beside_others_keeps_its_doubt() {
    let sheet = ToolResult::beside_others(&summarize(&calm()));
    for name in ["request_throughput", "output_throughput", "ttft.mean", "tpot.p50", "e2e.mean"] {
        let found = sheet.figure(&quantity(name)).unwrap();
        let interval = found.interval.unwrap_or_else(|| panic!("{name} has no interval"));
        assert!(interval.low <= found.value && found.value <= interval.high, "{name}");
    }
    assert_eq!(moved(Interval { low: 8.0, high: 12.0 }, 10.0, 5.0).map(|i| i.low), Some(4.0));
    assert_eq!(moved(Interval { low: 0.0, high: 0.0 }, 0.0, 5.0), None);
}
