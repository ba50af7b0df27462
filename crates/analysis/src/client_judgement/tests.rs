//! Grades on hand-made reports beside a hand-made truth.

use super::*;

fn result(completed: u64, tokens: u64, ttft_ms: f64) -> ToolResult {
    let mut result = ToolResult {
        completed: Some(completed),
        failed: Some(0),
        output_tokens: Some(tokens),
        request_throughput: Some(10.0),
        ..ToolResult::default()
    };
    result.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request).mean_ms = Some(ttft_ms);
    result
}

fn load(reported: Result<ToolResult, String>, failed: u64) -> JudgedLoad {
    let truth = TrueLoad {
        result: result(20, 200, 100.0),
        ok: 20,
        failed,
        in_flight: Some(4.0),
        ..TrueLoad::default()
    };
    let (name, about) = ("clean".to_owned(), String::new());
    JudgedLoad { name, about, requests: 20, concurrency: 4, truth, reported }
}

fn reasons(load: JudgedLoad) -> (Grade, Vec<String>) {
    let judged = judge_load(load);
    (judged.grade, judged.reasons.into_iter().map(|reason| reason.text).collect())
}

#[test]
fn an_exact_report_has_the_best_grade_and_small_errors_do_not_count() {
    assert_eq!(reasons(load(Ok(result(20, 200, 100.0)), 0)), (Grade::A, vec![]));
    assert_eq!(reasons(load(Ok(result(20, 200, 101.9)), 0)).0, Grade::A);
    let (grade, found) = reasons(load(Ok(result(20, 200, 130.0)), 0));
    assert_eq!((grade, found), (Grade::B, vec!["TTFT mean is 30 % too high".to_owned()]));
    assert_eq!(reasons(load(Ok(result(20, 200, 20.0)), 0)).0, Grade::C);
}

#[test]
fn wrong_counts_weigh_more_than_wrong_times_and_failures_taken_for_success_the_most() {
    assert_eq!(reasons(load(Ok(result(19, 190, 100.0)), 0)).0, Grade::D);
    assert_eq!(reasons(load(Ok(result(20, 180, 100.0)), 0)).0, Grade::D);
    let (grade, found) = reasons(load(Ok(result(25, 250, 100.0)), 5));
    assert_eq!(grade, Grade::F);
    assert_eq!(found[0], "5 failed answers counted as success");
    // It counts them neither as success nor as failure.
    assert_eq!(reasons(load(Ok(result(20, 200, 100.0)), 5)).0, Grade::C);
    assert_eq!(reasons(load(Err("it crashed".to_owned()), 0)).0, Grade::D);
    // Where nothing could be measured, a client may say so.
    let mut refused = load(Err("nothing was measured".to_owned()), 1);
    (refused.truth.ok, refused.requests, refused.truth.in_flight) = (0, 1, None);
    assert_eq!(reasons(refused).0, Grade::A);
}

#[test]
fn probes_are_no_errors_and_a_late_server_is_not_held_against_the_client() {
    let mut probing = load(Ok(result(21, 200, 100.0)), 0);
    probing.truth.extra = 1;
    assert_eq!(reasons(probing).0, Grade::A);
    let mut late = load(Ok(result(20, 200, 500.0)), 0);
    late.truth.late_ms = Some(20.0);
    let judged = judge_load(late);
    assert!(judged.is_untimed && judged.grade == Grade::A && !judged.figures.is_empty());
}

#[test]
fn a_load_that_was_not_delivered_is_named() {
    let mut empty = load(Ok(result(20, 200, 100.0)), 0);
    empty.truth.in_flight = Some(2.0);
    assert_eq!(reasons(empty).1, ["2 in flight on average instead of 4.00"]);
    let mut short = load(Ok(result(20, 200, 100.0)), 0);
    short.requests = 30;
    assert_eq!(reasons(short).1, ["20 of 30 requests reached the server"]);
}
