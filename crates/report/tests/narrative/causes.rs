//! What findings say of causes: caches, failures, queues and pauses, and how sure they are of them.

use inferometer_model::study::Prompts;
use serde_json::{Value, json};

use crate::narrative::made::{Change, MadeSet, suite, sweep_with};
use crate::narrative::narrated;
use crate::narrative::reading::says;

const WARM: Change = |document| {
    document["workload"]["audit"]["cache"]["share"] = 0.25.into();
    document["warnings"] = json!([{
        "key": "cache-contamination", "severity": "degraded", "text": "x", "remedy": "y",
    }]);
};

fn warm_suite(prompts: Prompts) -> MadeSet {
    let mut made = suite(1, 1, WARM);
    made.set.suite.as_mut().unwrap().prompts = prompts;
    made
}

#[test]
fn the_remedy_of_a_warm_cache_is_one_that_helps() {
    let same = narrated(&warm_suite(Prompts::Same));
    says(&same, &["Send different prompts in each scenario", "standard --prompts fresh)."]);
    assert!(!same.contains("--seed"), "another seed is shared as well: {same}");
    says(&narrated(&warm_suite(Prompts::Fresh)), &["(inferometer suite standard --seed N)."]);
    let mut fixed = warm_suite(Prompts::Fresh);
    for point in &mut fixed.points {
        point.summary.workload.source = inferometer_model::spec::SourceKind::VllmRandom;
    }
    let text = narrated(&fixed);
    says(&text, &["the same in every run", "(inferometer suite standard --restart COMMAND)."]);
    assert!(!text.contains("--seed"), "{text}");
}

#[test]
fn advice_from_a_warm_cache_says_so_itself() {
    let text = narrated(&warm_suite(Prompts::Same));
    let advice = text.lines().find(|line| line.contains("For interactive use")).unwrap();
    assert!(advice.contains("with a warm prefix cache; new prompts take longer"), "{advice}");
}

#[test]
fn a_warning_rests_on_the_worst_run() {
    let mut made = suite(1, 2, WARM);
    made.points[1].summary.workload.audit.cache.share = Some(0.75);
    let text = narrated(&made);
    says(&text, &["prompts that were meant to be new, up to 75 % of the input in Single User"]);
}

/// What the server says goes before what its speed shows, whatever the numbers are.
#[test]
fn a_known_cache_goes_before_a_suspected_one() {
    let mut made = warm_suite(Prompts::Fresh);
    let found = &mut made.set.suite.as_mut().unwrap().contaminated;
    found.clear();
    for point in &mut made.points[1..] {
        point.summary.warnings.clear();
        point.summary.workload.audit.cache.share = None;
    }
    found.push(inferometer_analysis::set::Contaminated {
        row: 2,
        suspected: true,
        same_data: false,
        cached_share: None,
        pp: Some(9_000.0),
        pp_cold: Some(1_000.0),
        cold: Some(1),
        ttft_ms_mean: None,
        ttft_ms_p50: None,
        sent_before: Vec::new(),
    });
    let text = narrated(&made);
    says(&text, &["up to 25 % of the input in Single User"]);
    made.points[0].summary.warnings.clear();
    let text = narrated(&made);
    says(&text, &["prefill in Scaling (c=4) is 9.0 times as fast as that of Scaling (c=2)."]);
}

#[test]
fn failures_are_counted_by_how_they_ended() {
    let failing: Change = |document| {
        let outcomes = &mut document["outcomes"];
        (outcomes["ok"], outcomes["rejected"]) = (15.into(), 6.into());
        (outcomes["http_error"], outcomes["truncated"]) = (4.into(), 5.into());
        let group = |outcome: &str, status: u32, count: u32| {
            json!({
                "outcome": outcome, "cause": null, "stage": "headers", "status": status,
                "count": count, "first_ms": 1.0, "last_ms": 2.0, "example": null,
            })
        };
        // The largest group is not of the most frequent outcome.
        document["failures"] = json!([
            group("truncated", 200, 5),
            group("rejected", 503, 3),
            group("rejected", 429, 3),
            group("http_error", 500, 4),
        ]);
    };
    let text = narrated(&suite(1, 1, failing));
    says(&text, &["failed; the most frequent class is rejected. Latencies", "failed in "]);
    let advice = text.lines().find(|line| line.contains("Look at the failures first")).unwrap();
    assert!(advice.ends_with("; the most frequent class is rejected."), "{advice}");
    assert!(!text.contains("most of them"), "six of fifteen are not most: {text}");
}

fn server(document: &mut Value, (readings, mean, max): (u32, f64, f64), waiting: f64) {
    let server = &mut document["server"];
    server["scrapes"]["inside"] = readings.into();
    (server["running"]["mean"], server["running"]["max"]) = (mean.into(), max.into());
    (server["waiting"]["max"], server["kv_usage"]["max"]) = (waiting.into(), 0.4.into());
}

#[test]
fn a_server_that_was_hardly_read_is_not_explained() {
    let seldom: Change = |document| server(document, (2, 1.0, 1.0), 7.0);
    let text = narrated(&sweep_with(1, 1, seldom));
    for wrong in ["in flight the server ran", "--max-num-seqs", "neither is the limit"] {
        assert!(!text.contains(wrong), "{wrong}\n{text}");
    }
    let often: Change = |document| server(document, (60, 3.9, 4.0), 7.0);
    says(
        &narrated(&sweep_with(1, 1, often)),
        &[
            "Of 8 in flight the server ran at most 4 at once by 60 readings of a run; the others \
             waited.",
            "Let more requests run at once: at c=32 the server ran at most 4 though the KV cache had \
             room, by 60 readings of a run (vLLM: --max-num-seqs).",
        ],
    );
    // A queue beside a full batch waits for something else.
    let queue: Change = |document| {
        let users = document["run"]["load"]["concurrency"].as_f64().unwrap();
        server(document, (60, users * 0.5, users), 7.0);
    };
    let text = narrated(&sweep_with(1, 1, queue));
    assert!(!text.contains("--max-num-seqs"), "{text}");
}

/// A TPOT p99 close to its median, from enough requests, with a longest gap this many times as long.
fn even(document: &mut Value, longest: f64) {
    let metrics = &mut document["metrics"];
    for (name, p99) in [("tpot_ms", 10.2), ("itl_ms", 11.0)] {
        let found = &mut metrics[name];
        (found["p50"], found["p99"], found["max"]) = (10.0.into(), p99.into(), p99.into());
        found["intervals"]["p50"] = json!({ "low": 9.99, "high": 10.01 });
        found["intervals"]["p99"] = json!({ "low": p99 - 0.1, "high": p99 + 0.1 });
        (found["n"], found["not_certified"]) = (700.into(), json!([]));
    }
    metrics["itl_ms"]["max"] = (10.0 * longest).into();
}

#[test]
fn decode_that_pauses_is_not_called_steady() {
    let steady = "Decode is steady: TPOT p99 is 10.20 ms, 2 % above its median of 10.00 ms.";
    says(&narrated(&suite(1, 1, |document| even(document, 1.5))), &[steady]);
    let text = narrated(&suite(1, 1, |document| even(document, 40.0)));
    assert!(!text.contains("steady"), "{text}");
    says(
        &text,
        &[
            "Answers pause now and then: the longest gap between tokens is 400.0 ms, 40.0 times the \
           ITL median of 10.00 ms.",
        ],
    );
    let few: Change = |document| {
        even(document, 1.5);
        document["metrics"]["tpot_ms"]["not_certified"] = json!(["p99", "p999"]);
    };
    assert!(!narrated(&suite(1, 1, few)).contains("steady"));
}

#[test]
fn one_level_is_and_several_are() {
    let one: Change = |document| {
        if document["run"]["load"]["concurrency"] == 4 {
            document["verdict"] = "degraded".into();
        }
    };
    says(
        &narrated(&suite(1, 1, one)),
        &[
            "with 2 scenarios, 5 levels and 150 requests.",
            "The result is degraded (degraded levels: 1 of 5; levels with an invalid run: 0).",
            "Degraded levels, 1 of 5: Scaling (c=4).",
        ],
    );
}

#[test]
fn a_pretending_engine_has_a_sentence_of_its_own() {
    let pretended: Change = |document| {
        document["system"] = json!({ "server": { "pretended": "Example 80GB" }, "client": null });
    };
    says(
        &narrated(&suite(1, 1, pretended)),
        &["150 requests. It ran on the embedded engine, which simulates Example 80GB."],
    );
}

#[test]
fn an_interpretation_says_more_than_its_table() {
    let same: Change = |document| {
        let ttft = &mut document["metrics"]["ttft_ms"];
        ttft["p99"] = ttft["p50"].clone();
    };
    let text = narrated(&suite(1, 1, same));
    let repeated = text.lines().find(|line| line.starts_with("- TTFT p99 is "));
    assert_eq!(repeated, None, "{text}");
}
