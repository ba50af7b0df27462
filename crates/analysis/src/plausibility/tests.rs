//! Each rule on hand-made figures: what it finds, and what it leaves alone.

use super::*;
use crate::tool_result::{CountsFrom, Grain, ResultRate};

/// A closed loop whose figures agree with each other.
fn clean(slots: u32) -> ToolResult {
    let n = 1_000_u64;
    let (ttft, tpot, output) = (100.0, 10.0, 101.0);
    let per_s = f64::from(slots) / ((ttft + tpot * (output - 1.0)) / 1e3);
    let mut result = ToolResult {
        request_rate: Some(ResultRate::Unlimited),
        max_concurrency: Some(slots),
        requests_planned: Some(n),
        completed: Some(n),
        failed: Some(0),
        duration_s: Some(n as f64 / per_s),
        input_tokens: Some(n * 1_000),
        output_tokens: Some(n * 101),
        request_throughput: Some(per_s),
        output_throughput: Some(per_s * output),
        total_token_throughput: Some(per_s * (output + 1_000.0)),
        ..ToolResult::default()
    };
    for (kind, from, mean) in [
        (LatencyKind::Ttft, CountsFrom::Send, ttft),
        (LatencyKind::Tpot, CountsFrom::Output, tpot),
        (LatencyKind::E2e, CountsFrom::Send, ttft + tpot * (output - 1.0)),
    ] {
        let latency = result.latency_mut(kind, from, Grain::Request);
        latency.mean_ms = Some(mean);
        latency.percentiles_ms = [("50", 1.0), ("95", 1.1), ("99", 1.2)]
            .map(|(rank, times)| (rank.to_owned(), mean * times))
            .into();
    }
    result
}

fn keys(results: &[ToolResult]) -> Vec<(&'static str, Severity)> {
    with_claims(results, &[])
}

fn with_claims(results: &[ToolResult], claims: &[Claim]) -> Vec<(&'static str, Severity)> {
    let roofline = |_: &ToolResult| {
        Some(Roofline { name: "a GPU".to_owned(), tokens_per_s: 20_000.0, step_ms: 2.0 })
    };
    let found = examine(&Published { results, claims, roofline: &roofline });
    found.iter().map(|finding| (finding.key, finding.severity)).collect()
}

#[test]
fn figures_that_agree_raise_nothing() {
    assert_eq!(keys(&[clean(1), clean(4), clean(16)]), []);
    assert_eq!(keys(&[]), []);
    assert_eq!(keys(&[ToolResult::default()]), []);
}

#[test]
fn every_rule_has_its_texts() {
    for rule in &RULES {
        let (title, settled_by) = texts(rule.key);
        assert!(!title.is_empty() && settled_by.ends_with('.'), "{}", rule.key);
    }
}

#[test]
fn lost_requests_weigh_by_their_share() {
    let lost = |failed: u64| {
        let left = 1_000 - failed;
        let mut result = ToolResult { failed: Some(failed), ..clean(4) };
        result.completed = Some(left);
        (result.duration_s, result.input_tokens, result.output_tokens) = (None, None, None);
        result
    };
    assert_eq!(keys(&[lost(1)]), [("lost-requests", Severity::Note)]);
    assert_eq!(keys(&[lost(50)]), [("lost-requests", Severity::Degraded)]);
    assert_eq!(keys(&[lost(300)])[0], ("lost-requests", Severity::Invalid));
    let of_unknown = ToolResult { failed: Some(10), ..ToolResult::default() };
    assert_eq!(keys(&[of_unknown]), [("lost-requests", Severity::Degraded)]);
}

#[test]
fn a_cut_run_and_a_rate_that_was_not_reached_are_found() {
    let cut = ToolResult { requests_planned: Some(2_000), failed: None, ..clean(4) };
    assert_eq!(keys(&[cut]), [("cut", Severity::Invalid)]);
    let behind = ToolResult {
        request_rate: Some(ResultRate::PerSecond(11.0)),
        max_concurrency: None,
        ..clean(8)
    };
    assert_eq!(keys(&[behind]), [("rate-not-reached", Severity::Degraded)]);
}

#[test]
fn arithmetic_that_does_not_add_up_is_found() {
    let base = clean(4);
    let rates =
        ToolResult { output_throughput: base.output_throughput.map(|it| it * 1.2), ..base.clone() };
    assert_eq!(keys(&[rates]), [("rates", Severity::Degraded)]);
    let crowded = ToolResult { max_concurrency: Some(2), ..base.clone() };
    assert_eq!(keys(&[crowded]), [("in-flight", Severity::Invalid)]);
    let empty = ToolResult { max_concurrency: Some(64), ..base.clone() };
    assert_eq!(keys(&[empty]), [("in-flight", Severity::Degraded)]);
    let mut sum = base.clone();
    sum.latencies[2].mean_ms = Some(2_000.0);
    assert!(keys(&[sum]).contains(&("latency-sum", Severity::Degraded)));
    let mut falling = base;
    falling.latencies[0].percentiles_ms.insert("99".to_owned(), 90.0);
    assert_eq!(keys(&[falling]), [("order", Severity::Invalid)]);
}

#[test]
fn nothing_is_faster_than_the_hardware() {
    let mut prompt = clean(4);
    prompt.latencies[0].mean_ms = Some(40.0);
    assert_eq!(keys(&[prompt])[0], ("prefill-peak", Severity::Invalid));
    let mut decode = clean(4);
    decode.latencies[1].mean_ms = Some(1.5);
    assert_eq!(keys(&[decode])[0], ("decode-peak", Severity::Invalid));
}

#[test]
fn a_prompt_that_is_faster_than_a_longer_one_under_less_load_came_from_a_cache() {
    let mut long = clean(1);
    long.input_tokens = Some(2_000_000);
    long.total_token_throughput = None;
    long.latencies[0].mean_ms = Some(1_000.0);
    let warm = clean(4);
    let found = keys(&[long.clone(), warm.clone()]);
    assert!(found.contains(&("warm-cache", Severity::Invalid)), "{found:?}");
    // Of another server nothing follows.
    let other = ToolResult { configuration: "other".to_owned(), ..warm };
    assert!(!keys(&[long, other]).iter().any(|(key, _)| *key == "warm-cache"));
}

#[test]
fn a_claim_is_held_against_the_typical_times() {
    let claim = |kind| Claim { line: 7, text: "a claim".to_owned(), kind };
    let below = |ms| with_claims(&[clean(4)], &[claim(ClaimKind::BelowMs(ms))]);
    assert_eq!(below(1.0), [("claim", Severity::Invalid)]);
    assert_eq!(below(50.0), []);
    let same = with_claims(&[clean(4)], &[claim(ClaimKind::SamePrompt)]);
    assert_eq!(same, [("same-prompt", Severity::Degraded)]);
}

#[test]
fn few_samples_and_near_rows_are_notes_until_a_percentile_is_the_largest_value() {
    let of = |n: u64| ToolResult {
        completed: Some(n),
        requests_planned: Some(n),
        duration_s: None,
        input_tokens: None,
        output_tokens: None,
        ..clean(4)
    };
    assert_eq!(keys(&[of(200)]), [("few-samples", Severity::Note)]);
    assert_eq!(keys(&[of(20)]), [("few-samples", Severity::Degraded)]);
    let rows: Vec<ToolResult> = [100.0, 101.0, 50.0]
        .map(|output_throughput| ToolResult {
            output_throughput: Some(output_throughput),
            ..ToolResult::default()
        })
        .into();
    assert_eq!(keys(&rows), [("no-spread", Severity::Note)]);
}
