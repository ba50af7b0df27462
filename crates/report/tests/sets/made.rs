//! Sets of made-up runs of a plausible server.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::set::{FoundLimit, PointResult, SetSummary};
use inferometer_analysis::{Severity, Summary, Verdict, Warning};
use inferometer_model::SpecDraft;
use inferometer_model::spec::{LoadTable, WorkloadTable};
use inferometer_model::study::{
    Condition, Dimension, Level, Point, Prompts, Question, Repetition, RunOrder, Scenario, Search,
    SetManifest, Stage, StudySpec, Suite, Sweep,
};
use serde_json::{Value, json};

/// What a run of a made-up server measures.
pub(super) struct Made {
    load: Value,
    extent: Value,
    ok: u64,
    failed: u64,
    cancelled: u64,
    window_s: f64,
    request_per_s: f64,
    per_user: Option<f64>,
    ttft_ms: (f64, f64),
    tpot_ms: (f64, f64),
    e2e_ms: f64,
}

impl Made {
    fn summary(&self, number: u32) -> Summary {
        let mut document: Value =
            serde_json::from_slice(include_bytes!("../summary.json")).unwrap();
        let run = &mut document["run"];
        (run["load"], run["extent"], run["warm_up"]) =
            (self.load.clone(), self.extent.clone(), Value::Null);
        run["id"] = format!("{number:03}").into();
        run["model"] = "example/model-24b".into();
        document["verdict"] = "valid".into();
        document["warnings"] = json!([]);
        document["time_over"] = 0.into();
        document["failures"] = json!([]);
        document["workload"]["source"] = "synthetic".into();
        document["workload"]["input_tokens"] = 1024.into();
        document["workload"]["output_tokens"] = 256.into();
        let attempted = self.ok + self.failed + self.cancelled;
        (document["scheduled"], document["attempted"]) = (attempted.into(), attempted.into());
        for (outcome, count) in [
            ("ok", self.ok),
            ("rejected", self.failed),
            ("cancelled", self.cancelled),
            ("truncated", 0),
            ("not_sent", 0),
        ] {
            document["outcomes"][outcome] = count.into();
        }
        document["window"]["duration_s"] = self.window_s.into();
        self.metrics(&mut document["metrics"]);
        // The figures are those of the whole run.
        document["steady"]["figures"] = Value::Null;
        Summary::from_json_bytes(document.to_string().as_bytes()).unwrap()
    }

    /// All that were asked for, where there are as many requests.
    fn users(&self) -> u64 {
        let asked = self.load["concurrency"].as_u64().unwrap_or(8);
        asked.min(self.ok + self.failed + self.cancelled)
    }

    fn metrics(&self, metrics: &mut Value) {
        let mut distribution = |name: &str, (mean, p99): (f64, f64)| {
            let found = &mut metrics[name];
            for (key, value) in [
                ("mean", mean),
                ("min", mean.min(100.0)),
                ("p50", mean * 0.95),
                ("p90", p99 * 0.8),
                ("p95", p99 * 0.9),
                ("p99", p99),
                ("p999", p99 * 1.05),
                ("max", p99 * 1.1),
            ] {
                found[key] = value.into();
            }
            for (key, value) in [("mean", mean), ("p50", mean * 0.95)] {
                found["intervals"][key] = around(value);
            }
            (found["n"], found["not_certified"]) = (
                self.ok.into(),
                if self.ok < 662 { json!(["p99", "p999"]) } else { json!(["p999"]) },
            );
        };
        for (name, values) in [
            ("ttft_ms", self.ttft_ms),
            ("ttft_schedule_ms", self.ttft_ms),
            ("tpot_ms", self.tpot_ms),
            ("itl_ms", self.tpot_ms),
            ("e2e_ms", (self.e2e_ms, self.e2e_ms * 1.4)),
            ("e2e_schedule_ms", (self.e2e_ms, self.e2e_ms * 1.4)),
        ] {
            distribution(name, values);
        }
        let mut scalar = |name: &str, value: Value| {
            let interval = value.as_f64().filter(|_| name.ends_with("_throughput")).map(around);
            metrics[name]["interval"] = interval.unwrap_or_default();
            metrics[name]["value"] = value;
        };
        scalar("request_throughput", self.request_per_s.into());
        scalar("output_throughput", (self.request_per_s * 256.0).into());
        scalar("input_throughput", (self.request_per_s * 1024.0).into());
        scalar("total_throughput", (self.request_per_s * 1280.0).into());
        scalar("per_user_throughput", self.per_user.map_or(Value::Null, Value::from));
        scalar("goodput", Value::Null);
        scalar("attainment", Value::Null);
        let share = self.failed as f64 / (self.ok + self.failed) as f64;
        scalar("error_rate", share.into());
        scalar("concurrency_peak", self.users().into());
    }
}

/// The interval within a run.
fn around(value: f64) -> Value {
    json!({ "low": value * 0.98, "high": value * 1.02 })
}

/// A few parts in a hundred around one, the same for the same run.
fn noise(number: u32, what: u32) -> f64 {
    let mixed = (number * 31 + what * 17 + 7).wrapping_mul(2_654_435_761) >> 16;
    1.0 + (f64::from(mixed % 1_000) / 1_000.0 - 0.5) * 0.03
}

/// Towards 400 tokens a second, half of it at `half` users.
pub(super) fn closed(number: u32, concurrency: u32, half: f64, ok: u64) -> Made {
    let n = f64::from(concurrency);
    let output = 400.0 * n / (n + half) * noise(number, 0);
    let tpot = 1e3 * n / output * 0.94;
    let ttft = 90.0 + 9.0 * n;
    Made {
        load: json!({ "kind": "closed", "concurrency": concurrency, "think": { "kind": "none" } }),
        extent: json!({ "requests": ok }),
        ok,
        failed: 0,
        cancelled: 0,
        window_s: ok as f64 * 256.0 / output,
        request_per_s: output / 256.0,
        per_user: Some(output / n),
        ttft_ms: (ttft * noise(number, 1), 1.6 * ttft * noise(number, 2)),
        tpot_ms: (tpot, 1.05 * tpot * noise(number, 3)),
        e2e_ms: ttft + 255.0 * tpot,
    }
}

/// Serves up to eight requests a second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "about a thousand requests"
)]
pub(super) fn open(number: u32, rate: Option<f64>) -> Made {
    let served = rate.unwrap_or(f64::INFINITY).min(8.0) * noise(number, 0);
    let behind = rate.is_none_or(|rate| 8.0 < rate);
    let ttft = if behind { 9_000.0 } else { 120.0 + 20.0 * served };
    let rate = rate.map_or(
        json!({ "kind": "unlimited" }),
        |per_s| json!({ "kind": "steady", "per_s": per_s }),
    );
    let cancelled = if rate["kind"] == "unlimited" { 985 } else { 0 };
    let ok = if rate["kind"] == "unlimited" { 1_015 } else { (served * 120.0).round() as u64 };
    // The last answers take as long as an answer takes.
    let window_s = ok as f64 / served + 7.75;
    Made {
        load: json!({ "kind": "open", "rate": rate, "arrivals": "poisson", "max_concurrency": null }),
        extent: json!({ "requests": ok + cancelled }),
        ok,
        failed: 3,
        cancelled,
        window_s,
        request_per_s: ok as f64 / window_s,
        per_user: None,
        ttft_ms: (ttft * noise(number, 1), 2.0 * ttft * noise(number, 2)),
        tpot_ms: (30.0 * noise(number, 3), 41.0),
        e2e_ms: ttft + 30.0 * 255.0,
    }
}

pub(super) fn manifest(question: Question, names: &[&str], runs: u32) -> SetManifest {
    let spec = SpecDraft {
        workload: WorkloadTable { seed: Some(7), ..WorkloadTable::default() },
        ..SpecDraft::default()
    }
    .resolve()
    .unwrap();
    let condition = |name: &&str| Condition { name: (*name).to_owned(), spec: spec.clone() };
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
            conditions: names.iter().map(condition).collect(),
            repetition: Repetition {
                runs: NonZeroU32::new(runs).unwrap(),
                cool_down: Duration::from_mins(1),
                restart: None,
                stop_at: None,
            },
            order: RunOrder::Interleaved,
            seed: 7,
        },
    }
}

pub(super) fn sweep(dimension: Dimension, find: Option<Search>) -> Question {
    Question::Sweep(Sweep { dimension, levels: Vec::new(), waves: None, fine: None, find })
}

pub(super) fn result(number: u32, condition: u32, level: Level, made: &Made) -> PointResult {
    let point = Point { number, condition, level, repetition: 0, seed: 7, stage: Stage::Planned };
    PointResult { point, summary: made.summary(number) }
}

pub(super) fn at_once(requests: u32) -> Level {
    Level::Concurrency(NonZeroU32::new(requests).unwrap())
}

/// Two servers, seven levels, five runs of each; one run is invalid.
pub(super) fn concurrency_sweep() -> SetSummary {
    let mut results = Vec::new();
    for (condition, half) in [(0, 6.0), (1, 9.0)] {
        for concurrency in [1, 2, 4, 8, 16, 32, 64] {
            for _ in 0..5 {
                let number = u32::try_from(results.len()).unwrap();
                let made = closed(number, concurrency, half, 700);
                results.push(result(number, condition, at_once(concurrency), &made));
            }
        }
    }
    results[17].summary.verdict = Verdict::Invalid;
    results[33].summary.attempted += 40;
    let manifest = manifest(sweep(Dimension::Concurrency, None), &["stock", "tuned\u{1b}[2J"], 5);
    SetSummary::summarize(&manifest, &results)
}

/// Rates up to twice what the server can do, and everything at once, which a limit cuts.
pub(super) fn rate_sweep() -> SetSummary {
    let mut results = Vec::new();
    for rate in [1.0, 3.0, 5.0, 7.0, 9.0, 11.0] {
        for _ in 0..3 {
            let number = u32::try_from(results.len()).unwrap();
            results.push(result(number, 0, Level::Rate(rate), &open(number, Some(rate))));
        }
    }
    results.push(result(18, 0, Level::Unlimited, &open(18, None)));
    SetSummary::summarize(&manifest(sweep(Dimension::Rate, None), &["stock"], 3), &results)
}

pub(super) fn repeated() -> SetSummary {
    let results: Vec<PointResult> = (0..5)
        .map(|number| result(number, 0, Level::AsAsked, &closed(number, 16, 6.0, 200)))
        .collect();
    let mut manifest = manifest(Question::Repeat, &["stock"], 5);
    manifest.study.repetition.restart = Some("systemctl restart server".to_owned());
    SetSummary::summarize(&manifest, &results)
}

/// A user alone, a crowd and four levels; the scaling prompts were in the server's prefix cache.
pub(super) fn suite() -> SetSummary {
    let scenario = |category: &str, levels: Vec<Level>| Scenario {
        category: category.to_owned(),
        purpose: "shows something".to_owned(),
        levels,
        waves: None,
    };
    let question = Question::Suite(Suite {
        name: "standard".to_owned(),
        title: "Standard".to_owned(),
        hash: "0123456789abcdef0123".to_owned(),
        changes: vec!["--requests".to_owned()],
        prompts: Prompts::Same,
        scenarios: vec![
            scenario("Latency", vec![Level::AsAsked]),
            scenario("Throughput", vec![Level::AsAsked]),
            scenario("Scaling", [2, 4, 8, 32].map(at_once).to_vec()),
        ],
    });
    let names =
        ["Single User Latency", "Crowd\u{1b}[2J of Many Users Who Wait", "Concurrency Scaling"];
    let mut manifest = manifest(question, &names, 1);
    manifest.study.order = RunOrder::Listed;
    for condition in &mut manifest.study.conditions {
        let load = LoadTable { concurrency: Some(16), ..LoadTable::default() };
        condition.spec = SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap();
    }
    let places = [(0, Level::AsAsked, 1), (1, Level::AsAsked, 16)];
    let scaling = [2, 4, 8, 32].map(|users| (2, at_once(users), users));
    let results: Vec<PointResult> = (0..)
        .zip(places.into_iter().chain(scaling))
        .map(|(number, (condition, level, users))| {
            let mut found = result(number, condition, level, &closed(number, users, 6.0, 30));
            if condition == 2 {
                found.summary.workload.audit.cache.share = Some(0.98);
                found.summary.verdict = Verdict::Degraded;
                found.summary.warnings.push(Warning {
                    key: "cache-contamination".to_owned(),
                    check: None,
                    severity: Severity::Degraded,
                    text: "every prompt was to be new".to_owned(),
                    remedy: "restart the server".to_owned(),
                });
            }
            found
        })
        .collect();
    let mut results = results;
    results[1].summary.verdict = Verdict::Invalid;
    SetSummary::summarize(&manifest, &results)
}

pub(super) fn search() -> SetSummary {
    let search = Search {
        goals: vec!["ttft.p99<500ms".parse().unwrap(), "tpot.p99<50ms".parse().unwrap()],
        from: 1.0,
        at_most: 64.0,
        resolution: 0.05,
        runs_at_most: NonZeroU32::new(3).unwrap(),
    };
    let results: Vec<PointResult> = [1.0, 2.0, 4.0, 8.0, 6.0, 7.0, 6.5]
        .into_iter()
        .enumerate()
        .map(|(number, rate)| {
            let number = u32::try_from(number).unwrap();
            result(number, 0, Level::Rate(rate), &open(number, Some(rate)))
        })
        .collect();
    let limit = FoundLimit {
        condition: 0,
        goals: vec!["ttft.p99<500ms".to_owned(), "tpot.p99<50ms".to_owned()],
        level: Some(6.5),
        lowest_missed: Some(7.0),
        confirmed: true,
        open_ended: false,
        runs: 8,
        undecided: vec![6.75],
        words: "6.5 requests/s meets ttft.p99<500ms and tpot.p99<50ms; 7 requests/s does not"
            .to_owned(),
    };
    SetSummary::summarize(&manifest(sweep(Dimension::Rate, Some(search)), &["stock"], 1), &results)
        .with_limits(vec![limit])
}
