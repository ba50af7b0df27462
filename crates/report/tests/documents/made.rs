//! A small suite that no server answered: two scenarios of one level, and one of three.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary, SuiteRow, SuiteSummary};
use inferometer_model::SpecDraft;
use inferometer_model::spec::WorkloadTable;
use inferometer_model::study::{
    Condition, Level, Point, Prompts, Question, Repetition, RunOrder, Scenario, SetManifest, Stage,
    StudySpec, Suite,
};
use inferometer_report::document::plain;
use inferometer_report::narrative::{Narrative, Sentence};
use serde_json::{Value, json};

/// What a scenario of the made-up suite measures.
pub(crate) struct Made {
    scenario: &'static str,
    category: &'static str,
    lengths: (u32, u32),
    concurrency: u32,
    requests: u64,
    output_per_s: f64,
    ttft_ms: [f64; 3],
    tpot_ms: [f64; 3],
}

/// Two scenarios of one level, and one of three.
pub(crate) const SUITE: [Made; 5] = [
    made(
        "One User",
        "Latency",
        (2048, 512),
        1,
        20,
        49.26,
        [1082.2, 1135.06, 1142.34],
        [18.22, 18.22, 18.28],
    ),
    made(
        "Decode",
        "Decode",
        (128, 2048),
        1,
        5,
        56.28,
        [43.29, 43.29, 43.86],
        [17.76, 17.76, 17.77],
    ),
    made(
        "Scaling",
        "Concurrency Scaling",
        (1024, 256),
        2,
        30,
        97.72,
        [212.18, 90.37, 645.93],
        [19.71, 19.53, 20.83],
    ),
    made(
        "Scaling",
        "Concurrency Scaling",
        (1024, 256),
        4,
        30,
        167.97,
        [115.15, 135.27, 146.19],
        [22.13, 22.28, 22.61],
    ),
    made(
        "Scaling",
        "Concurrency Scaling",
        (1024, 256),
        8,
        30,
        255.92,
        [158.72, 173.96, 186.29],
        [28.83, 28.87, 29.42],
    ),
];

#[expect(clippy::too_many_arguments, reason = "a table of numbers")]
const fn made(
    scenario: &'static str,
    category: &'static str,
    lengths: (u32, u32),
    concurrency: u32,
    requests: u64,
    output_per_s: f64,
    ttft_ms: [f64; 3],
    tpot_ms: [f64; 3],
) -> Made {
    Made { scenario, category, lengths, concurrency, requests, output_per_s, ttft_ms, tpot_ms }
}

impl Made {
    fn name(&self) -> String {
        match self.scenario {
            "Scaling" => format!("Scaling (c={})", self.concurrency),
            other => other.to_owned(),
        }
    }

    fn level(&self) -> Level {
        match self.scenario {
            "Scaling" => Level::Concurrency(NonZeroU32::new(self.concurrency).unwrap()),
            _ => Level::AsAsked,
        }
    }

    fn summary(&self, number: u32) -> Summary {
        let mut document: Value =
            serde_json::from_slice(include_bytes!("../summary.json")).unwrap();
        document["run"]["load"]["concurrency"] = self.concurrency.into();
        document["run"]["extent"] = json!({ "requests": self.requests });
        document["metrics"]["concurrency_peak"]["value"] = self.concurrency.into();
        document["run"]["id"] = format!("{number:03}").into();
        document["verdict"] = "valid".into();
        document["warnings"] = json!([]);
        document["time_over"] = 0.into();
        document["failures"] = json!([]);
        (document["workload"]["input_tokens"], document["workload"]["output_tokens"]) =
            (self.lengths.0.into(), self.lengths.1.into());
        (document["scheduled"], document["attempted"]) =
            (self.requests.into(), self.requests.into());
        for outcome in ["rejected", "truncated", "not_sent"] {
            document["outcomes"][outcome] = 0.into();
        }
        document["outcomes"]["ok"] = self.requests.into();
        self.metrics(&mut document["metrics"]);
        // The figures are those of the whole run.
        document["steady"]["figures"] = Value::Null;
        document["figures"] = figures(self);
        Summary::from_json_bytes(document.to_string().as_bytes()).unwrap()
    }

    fn metrics(&self, metrics: &mut Value) {
        for (name, [mean, p50, p99]) in
            [("ttft_ms", self.ttft_ms), ("tpot_ms", self.tpot_ms), ("itl_ms", self.tpot_ms)]
        {
            let found = &mut metrics[name];
            for (key, value) in [("mean", mean), ("p50", p50), ("p99", p99), ("max", p99)] {
                found[key] = value.into();
            }
            (found["n"], found["not_certified"]) = (self.requests.into(), json!(["p99", "p999"]));
            found["effective_n"] = self.requests.into();
        }
        metrics["output_throughput"]["value"] = self.output_per_s.into();
        metrics["output_throughput"]["interval"] =
            json!({ "low": self.output_per_s * 0.98, "high": self.output_per_s * 1.02 });
        let per_user = self.output_per_s / f64::from(self.concurrency);
        metrics["per_user_throughput"]["value"] = per_user.into();
        metrics["per_user_throughput"]["interval"] =
            json!({ "low": per_user * 0.98, "high": per_user * 1.02 });
        metrics["pp"]["value"] = (f64::from(self.lengths.0) / self.ttft_ms[0] * 1e3).into();
        metrics["tg"]["value"] = (1e3 / self.tpot_ms[0]).into();
        for name in ["concurrency_mean", "concurrency_peak"] {
            metrics[name]["value"] = self.concurrency.into();
        }
        metrics["peak_output_throughput"]["value"] = (self.output_per_s * 1.1).round().into();
    }
}

pub(crate) fn figures(made: &Made) -> Value {
    let [_, middle, tail] = made.ttft_ms;
    json!({
        "distributions": [
            { "metric": "ttft", "n": made.requests, "points": [[0.0, middle * 0.8], [0.5, middle], [0.99, tail], [1.0, tail]] },
            { "metric": "itl", "n": made.requests * 10, "points": [[0.0, 10.0], [0.5, made.tpot_ms[1]], [1.0, made.tpot_ms[2] * 2.0]] },
        ],
        "course": {
            "from_ms": 0.0, "step_ms": 500.0, "in_flight": [1.0, 2.0, 2.0, 0.5],
            "output_tokens": [0, 40, 60, 12], "ended_ok": [0, 1, 2, 1], "ended_otherwise": [0, 0, 0, 0],
        },
        "requests": { "of": made.requests, "rows": [
            { "id": 1, "why": "sample", "outcome": "ok", "intended_ms": 0.0, "sent_ms": 0.1,
              "first_ms": 60.0, "ended_ms": 900.0, "output_tokens": 24 },
            { "id": 7, "why": "slowest", "outcome": "ok", "intended_ms": 100.0, "sent_ms": 250.0,
              "first_ms": 460.0, "ended_ms": 2000.0, "output_tokens": 24 },
        ] },
        "gaps": { "metric": "itl", "from_ms": 0.0, "step_ms": 1000.0, "edges_ms": [1.0, 10.0, 100.0],
                  "columns": [[3, 40], [1, 20]] },
    })
}

pub(crate) fn manifest(question: Question, names: &[&str]) -> SetManifest {
    let spec = SpecDraft {
        workload: WorkloadTable { seed: Some(7), ..WorkloadTable::default() },
        ..SpecDraft::default()
    }
    .resolve()
    .unwrap();
    SetManifest {
        key_files: Vec::new(),
        workers: None,
        format: 1,
        set: "20260102-030405-set1".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        simulated: false,
        study: StudySpec {
            question,
            conditions: names
                .iter()
                .map(|name| Condition { name: (*name).to_owned(), spec: spec.clone() })
                .collect(),
            repetition: Repetition {
                runs: NonZeroU32::MIN,
                cool_down: Duration::ZERO,
                restart: None,
                stop_at: None,
            },
            order: RunOrder::Listed,
            seed: 7,
        },
    }
}

pub(crate) fn results(condition: impl Fn(&Made) -> u32) -> Vec<PointResult> {
    (0_u32..)
        .zip(&SUITE)
        .map(|(number, made)| PointResult {
            point: Point {
                number,
                condition: condition(made),
                level: made.level(),
                repetition: 0,
                seed: 7,
                stage: Stage::Planned,
            },
            summary: made.summary(number),
        })
        .collect()
}

pub(crate) fn place(made: &Made) -> u32 {
    match made.scenario {
        "One User" => 0,
        "Decode" => 1,
        _ => 2,
    }
}

pub(crate) fn suite() -> (SetSummary, Vec<PointResult>) {
    let scenario = |made: &[Made]| Scenario {
        category: made[0].category.to_owned(),
        purpose: "To be seen".to_owned(),
        levels: made.iter().map(Made::level).collect(),
        waves: None,
    };
    let question = Question::Suite(Suite {
        name: "small".to_owned(),
        title: "A small suite".to_owned(),
        hash: "0123456789abcdef".repeat(4),
        changes: Vec::new(),
        prompts: Prompts::Fresh,
        scenarios: vec![scenario(&SUITE[..1]), scenario(&SUITE[1..2]), scenario(&SUITE[2..])],
    });
    let results = results(place);
    let manifest = manifest(question, &["One User", "Decode", "Scaling"]);
    let mut set = SetSummary::summarize(&manifest, &results);
    set.suite = Some(SuiteSummary {
        name: "small".to_owned(),
        title: "A small suite".to_owned(),
        hash: "0123456789abcdef".repeat(4),
        changes: Vec::new(),
        prompts: Prompts::Fresh,
        rows: (0_u32..).zip(&SUITE).map(|(number, made)| suite_row(number, made)).collect(),
        scaling: Some(2),
        contaminated: Vec::new(),
    });
    (set, results)
}

pub(crate) fn suite_row(number: u32, made: &Made) -> SuiteRow {
    SuiteRow {
        name: made.name(),
        scenario: made.scenario.to_owned(),
        category: made.category.to_owned(),
        purpose: "To be seen".to_owned(),
        condition: place(made),
        level: made.level(),
        concurrency: Some(made.concurrency),
        input_tokens: Some(made.lengths.0.to_string()),
        output_tokens: Some(made.lengths.1.to_string()),
        requests: Some(made.requests),
        points: vec![number],
        cached_share: Some(0.0),
    }
}

pub(crate) fn narrative() -> Narrative {
    let said = |words: &str| vec![Sentence { text: plain(words), facts: Vec::new() }];
    Narrative {
        summary: said("A summary."),
        scenarios: [("Decode".to_owned(), said("An interpretation."))].into(),
        recommendations: said("A recommendation."),
        ..Narrative::default()
    }
}
