//! What the tests of studies share: specs, and queues whose limit is known.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

pub(crate) mod queue;

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::{Estimate, Interval};
use inferometer_model::SpecDraft;
use inferometer_model::study::{
    Condition, Dimension, Level, Question, Repetition, RunOrder, Search, StudySpec, Sweep,
};
use inferometer_study::{Reading, Study};

pub(crate) fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

pub(crate) fn conditions(count: usize) -> Vec<Condition> {
    let draft =
        SpecDraft { url: Some("http://127.0.0.1:8000".parse().unwrap()), ..SpecDraft::default() };
    vec![Condition { name: "server".to_owned(), spec: draft.resolve().unwrap() }; count]
}

pub(crate) fn study(question: Question, runs: u32) -> StudySpec {
    StudySpec {
        question,
        conditions: conditions(1),
        repetition: Repetition {
            runs: number(runs),
            cool_down: Duration::ZERO,
            restart: None,
            stop_at: None,
        },
        order: RunOrder::Interleaved,
        seed: 1,
    }
}

pub(crate) fn rates(levels: &[f64], find: Option<Search>) -> Question {
    let levels = levels.iter().map(|rate| Level::Rate(*rate)).collect();
    Question::Sweep(Sweep { dimension: Dimension::Rate, levels, waves: None, fine: None, find })
}

/// The highest level below a limit in milliseconds.
pub(crate) fn search(limit: f64, from: f64, at_most: f64) -> Search {
    Search {
        goals: vec![format!("ttft.p99<{limit}ms").parse().unwrap()],
        from,
        at_most,
        resolution: 0.1,
        runs_at_most: number(10),
    }
}

/// A run whose p99 lies within so many milliseconds of its value.
pub(crate) fn latency(value: f64, reach: f64) -> Reading {
    let interval = Interval::new(value - reach, value + reach);
    let estimate = Estimate { value, interval, n: 2_000, effective_n: None, certified: true };
    Reading { is_valid: true, goals: vec![Some(estimate)], ..Reading::default() }
}

/// A study that cannot be measured, and words of the reason.
#[track_caller]
pub(crate) fn assert_refused(spec: StudySpec, why: &str) {
    let refused = Study::new(spec).unwrap_err().to_string();
    assert!(refused.contains(why), "`{why}` is not in `{refused}`");
}
