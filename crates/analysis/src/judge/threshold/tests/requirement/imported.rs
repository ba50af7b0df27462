//! Requirements on results of other tools.

use inferometer_model::spec::Slo;

use super::*;
use crate::metric::LatencyOrigin;
use crate::tool_result::{CountsFrom, Grain, LatencyKind, ResultSource, Tool};

fn result(completed: u64, p99: f64) -> ToolResult {
    let source = ResultSource { tool: Tool::Vllm, ..ResultSource::default() };
    let mut sheet = ToolResult {
        source,
        completed: Some(completed),
        output_throughput: Some(2_000.0),
        ..ToolResult::default()
    };
    let ttft = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
    ttft.percentiles_ms.insert("99".to_owned(), p99);
    sheet
}

fn judge(limit: &str, sheets: &[ToolResult]) -> RequirementOutcome {
    let slo: Slo = limit.parse().unwrap();
    Requirement::from_slo(&slo, LatencyOrigin::Sent).unwrap().judge_results(sheets)
}

#[test]
fn one_result_decides_by_its_value_and_says_so() {
    for (p99, verdict) in [(499.0, ThresholdVerdict::Met), (501.0, ThresholdVerdict::Missed)] {
        let found = judge("ttft.p99<500ms", &[result(1_024, p99)]);
        assert_eq!((found.verdict, found.value), (verdict, Some(p99)));
        assert!(found.interval.is_none() && found.n == Some(1_024));
        assert!(found.reason.unwrap().contains("no confidence interval"));
    }
    let found = judge("output_throughput>1000", &[result(1_024, 1.0)]);
    assert_eq!(found.verdict, ThresholdVerdict::Met);
}

#[test]
fn too_few_requests_show_no_tail() {
    let found = judge("ttft.p99<500ms", &[result(300, 100.0)]);
    assert_eq!(found.verdict, ThresholdVerdict::Undecided);
    assert!(found.reason.unwrap().contains("662"));
}

#[test]
fn repeats_decide_by_the_interval_between_them() {
    let repeats = [400.0, 410.0, 390.0].map(|p99| result(1_000, p99));
    let found = judge("ttft.p99<500ms", &repeats);
    assert_eq!((found.verdict, found.runs), (ThresholdVerdict::Met, 3));
    assert!(found.interval.is_some());
    let wide = [400.0, 600.0].map(|p99| result(1_000, p99));
    assert_eq!(judge("ttft.p99<550ms", &wide).verdict, ThresholdVerdict::Undecided);
}

#[test]
fn a_cut_result_may_break_a_limit_and_keeps_none() {
    let mut cut = result(1_015, 400.0);
    cut.requests_planned = Some(2_000);
    let kept = judge("ttft.p99<500ms", &[cut.clone()]);
    assert_eq!(kept.verdict, ThresholdVerdict::Undecided);
    assert!(kept.reason.unwrap().contains("1015 of 2000"));
    assert_eq!(judge("ttft.p99<300ms", &[cut]).verdict, ThresholdVerdict::Missed);
}

#[test]
fn what_is_not_there_is_undecided_with_the_reason() {
    let missing = judge("tpot.p99<50ms", &[result(1_000, 1.0)]);
    assert_eq!((missing.verdict, missing.value), (ThresholdVerdict::Undecided, None));
    assert!(missing.reason.unwrap().contains("has no TPOT"));
    let mut open = result(1_000, 1.0);
    open.latencies[0].from = CountsFrom::Unknown;
    let open = judge("ttft.p99<500ms", &[open]);
    assert_eq!(open.verdict, ThresholdVerdict::Undecided);
    assert!(open.reason.unwrap().contains("does not define what its TTFT counts"));
}
