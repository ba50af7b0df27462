//! The section about where the time went.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::machines::GpuTimeline;
use inferometer_analysis::steps::{Confidence, NoStructure};
use inferometer_analysis::{
    Anatomy, BatchFigure, BetweenTokens, FirstToken, ReportedParts, StepTimes, StripFigure, Summary,
};
use inferometer_report::document::{html, markdown, terminal as writer};
use inferometer_report::pages;
use inferometer_report::terminal::Style;
use serde_json::json;

/// As of llama.cpp with 64 requests in flight.
fn anatomy() -> Anatomy {
    let times =
        |n, p50_ms| Some(StepTimes { n, p10_ms: p50_ms * 0.8, p50_ms, p90_ms: p50_ms * 1.4 });
    let figure = |batch, decode, prefill| BatchFigure { batch, decode, prefill };
    Anatomy {
        missing: None,
        confidence: Some(Confidence::Low),
        reason: "the tokens of a step are not clearly apart from those of the next".to_owned(),
        steps: 1_047,
        cut: false,
        idle_share: Some(0.0),
        between_tokens: Some(BetweenTokens {
            mean_ms: 42.0,
            decode_ms: 25.2,
            prefill_ms: 14.7,
            stall_ms: 2.1,
            queue_ms: 0.0,
            delivery_ms: 0.0,
        }),
        first_token: Some(FirstToken {
            mean_ms: 304.0,
            other_prefill_ms: 152.0,
            other_steps_ms: 8.0,
            own_step_ms: 144.0,
            reported: Some(ReportedParts {
                requests: 512,
                mean_ms: 304.0,
                queue_ms: None,
                prefill_ms: Some(140.0),
                network_ms: Some(4.0),
                client_ms: Some(0.0),
                rest_ms: 160.0,
            }),
        }),
        spread_ms: Some(15.9),
        spread_share: Some(0.525),
        batches: vec![
            figure(4.0, times(40, 7.2), None),
            figure(64.0, times(856, 26.6), times(41, 115.0)),
        ],
        strip: StripFigure {
            from_ms: 1_000.0,
            column_ms: 40.0,
            batch: vec![Some(64.0), None, Some(63.0)],
            step_ms: vec![Some(26.0), None, Some(115.0)],
            prefill_tokens: vec![0, 0, 512],
        },
    }
}

fn summary(anatomy: Option<Anatomy>) -> Summary {
    let summary = Summary::from_json_bytes(include_bytes!("summary.json")).unwrap();
    Summary { anatomy, ..summary }
}

#[test]
fn what_takes_long_is_said_with_its_remedy() {
    let page = pages::anatomy(&summary(Some(anatomy())));
    let text = markdown::render(&page).text;
    for expected in [
        "LOW confidence",
        "35 % of the time between tokens is waiting for other requests' prefill",
        "52.6 % of TTFT passes before the step of the first token, 95 % of that",
        "The tokens of one step arrive over",
        "A step without prefill takes",
        "| TTFT by the server's timings | prefill | 140.0 ",
        "| TTFT by the server's timings | queue, and all else | 160.0 ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("longer than usual although"), "5 % are not notable: {text}");
    let charts: Vec<String> = page.charts().into_iter().map(|chart| chart.id).collect();
    assert_eq!(charts, ["steps-by-batch", "steps-strip"]);
    assert!(html::render(&page).contains("Where the time went"));
    assert!(!text.contains("| TTFT by the server's timings | queue |"), "not known: {text}");
    for line in writer::render(&page, Style::Plain).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// The summary of a run whose GPUs were in use for this share of the time.
fn with_gpus(use_share: f64, anatomy: Anatomy) -> Summary {
    let used = json!({ "n": 9, "mean": use_share, "min": use_share, "max": use_share });
    let device = json!({ "index": 0, "idle": false, "newcomers": 0, "use_share": used });
    let timeline = GpuTimeline::default();
    let gpus = json!({ "source": "nvml", "looks": 9, "devices": [device], "timeline": timeline });
    let mut summary = summary(Some(anatomy));
    summary.machines.gpus = Some(serde_json::from_value(gpus).unwrap());
    summary
}

#[test]
fn an_idle_gpu_and_a_server_without_requests_are_told_apart() {
    let text = |summary: &Summary| markdown::render(&pages::anatomy(summary)).text;
    let [idle, empty] = ["GPUs were idle 50 % of the time", "The server had no request for 60 %"];
    let limited = text(&with_gpus(0.5, anatomy()));
    assert!(limited.contains(idle) && !limited.contains("had no request"), "{limited}");
    // Without requests, a GPU is idle in any case.
    let unused = Anatomy { idle_share: Some(0.6), ..anatomy() };
    let unused = text(&with_gpus(0.3, unused));
    assert!(unused.contains(empty) && !unused.contains("GPUs were idle"), "{unused}");
    let busy = text(&with_gpus(0.9, anatomy()));
    assert!(!busy.contains("GPUs were idle") && !busy.contains("had no request"), "{busy}");
}

#[test]
fn a_run_without_visible_steps_says_why() {
    let missing = Anatomy { missing: Some(NoStructure::Gathered), ..Anatomy::default() };
    let text = writer::render(&pages::anatomy(&summary(Some(missing))), Style::Plain);
    assert!(text.contains("No step structure is visible"), "{text}");
    let text = writer::render(&pages::anatomy(&summary(None)), Style::Plain);
    assert!(text.contains("Too few streamed tokens arrived"), "{text}");
}
