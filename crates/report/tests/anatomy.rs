//! The section about where the time went.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::steps::{Confidence, NoStructure};
use inferometer_analysis::{
    Anatomy, BatchFigure, BetweenTokens, FirstToken, StepTimes, StripFigure, Summary,
};
use inferometer_report::document::{html, markdown, terminal as writer};
use inferometer_report::pages;
use inferometer_report::terminal::Style;

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
        }),
        first_token: Some(FirstToken {
            mean_ms: 304.0,
            other_prefill_ms: 152.0,
            other_steps_ms: 8.0,
            own_step_ms: 144.0,
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
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("longer than usual although"), "5 % are not notable: {text}");
    let charts: Vec<String> = page.charts().into_iter().map(|chart| chart.id).collect();
    assert_eq!(charts, ["steps-by-batch", "steps-strip"]);
    assert!(html::render(&page).contains("Where the time went"));
    for line in writer::render(&page, Style::Plain).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_run_without_visible_steps_says_why() {
    let missing = Anatomy { missing: Some(NoStructure::Gathered), ..Anatomy::default() };
    let text = writer::render(&pages::anatomy(&summary(Some(missing))), Style::Plain);
    assert!(text.contains("No step structure is visible"), "{text}");
    let text = writer::render(&pages::anatomy(&summary(None)), Style::Plain);
    assert!(text.contains("Too few streamed tokens arrived"), "{text}");
}
