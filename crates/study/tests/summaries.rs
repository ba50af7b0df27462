//! What a study reads in a stored summary.

use crate::support;

use inferometer_analysis::{Severity, Summary, Verdict, Warning};
use inferometer_model::study::{Dimension, Level, Question, Search, StopAt, StudySpec, Sweep};
use inferometer_study::Study;
use support::{number, search, study};

/// Valid, on a closed loop, 60 requests: TTFT p50 75.9 ± 3.5 ms from the send and 76.6 ± 3.5 ms from
/// the schedule; three such runs know theirs to ± 1.7 ms.
fn summary() -> Summary {
    let stored = include_bytes!("../../report/tests/summary.json");
    let mut summary = Summary {
        verdict: Verdict::Valid,
        ..Summary::from_json_bytes(stored).expect("it is stored")
    };
    // The numbers are those of the whole run.
    summary.steady.figures = None;
    summary
}

fn found(dimension: Dimension, goal: &str) -> Option<f64> {
    found_of(dimension, goal, &summary())
}

fn found_of(dimension: Dimension, goal: &str, summary: &Summary) -> Option<f64> {
    let goals = vec![goal.parse().expect("it is a goal")];
    let find = Search { goals, runs_at_most: number(3), ..search(1.0, 4.0, 8.0) };
    let level = match dimension {
        Dimension::Rate => Level::Rate(8.0),
        Dimension::Concurrency => Level::Concurrency(number(8)),
    };
    let sweep = Sweep { dimension, levels: vec![level], waves: None, fine: None, find: Some(find) };
    let mut study = Study::new(study(Question::Sweep(sweep), 3)).expect("it can be asked");
    while study.next().is_some() {
        study.finished(summary);
    }
    study.limits()[0].level
}

#[test]
fn a_bare_latency_is_from_the_schedule_on_rates_and_from_the_send_on_concurrencies() {
    assert_eq!(found(Dimension::Rate, "ttft.p50<78ms"), None);
    assert_eq!(found(Dimension::Concurrency, "ttft.p50<78ms"), Some(8.0));
    assert_eq!(found(Dimension::Rate, "ttft.sent.p50<78ms"), Some(8.0));
}

#[test]
fn sixty_requests_have_no_p99_that_meets_a_goal() {
    assert_eq!(found(Dimension::Concurrency, "ttft.p99<1000ms"), None);
}

#[test]
fn a_run_that_warns_of_piling_up_meets_no_goal() {
    let goal = "ttft.p50<200ms";
    let mut piling = summary();
    assert_eq!(found_of(Dimension::Rate, goal, &piling), Some(8.0));
    piling.warnings.push(Warning {
        key: "piling-up".to_owned(),
        check: None,
        severity: Severity::Degraded,
        text: String::new(),
        remedy: String::new(),
    });
    assert_eq!(found_of(Dimension::Rate, goal, &piling), None);
}

#[test]
fn an_invalid_summary_counts_for_nothing() {
    let quantity = "output_throughput".to_owned();
    let stopping = |runs| {
        let mut spec: StudySpec = study(Question::Repeat, runs);
        spec.repetition.stop_at = Some(StopAt { quantity: quantity.clone(), half_width: 0.1 });
        Study::new(spec).unwrap()
    };
    let runs = |verdict| {
        let mut study = stopping(9);
        while study.next().is_some() {
            study.finished(&Summary { verdict, ..summary() });
        }
        study.progress().done
    };
    assert_eq!(runs(Verdict::Valid), 3);
    assert_eq!(runs(Verdict::Degraded), 3);
    assert_eq!(runs(Verdict::Invalid), 9);
}
