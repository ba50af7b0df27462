//! Made-up suites, sweeps and runs of a plausible server, each another by its number.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_model::SpecDraft;
use inferometer_model::spec::{LoadShape, Think, WorkloadTable};
use inferometer_model::study::{
    Condition, Dimension, Level, Point, Prompts, Question, Repetition, RunOrder, Scenario,
    SetManifest, Stage, StudySpec, Suite, Sweep,
};
use serde_json::{Value, json};

/// A set as a page gets it.
pub(crate) struct MadeSet {
    pub(crate) set: SetSummary,
    pub(crate) points: Vec<PointResult>,
}

/// Changes a summary, as JSON, before anybody looks at it.
pub(crate) type Change = fn(&mut Value);

pub(crate) fn unchanged(_: &mut Value) {}

/// From 0 to 1, the same for the same numbers.
fn chance(number: u32, what: u32) -> f64 {
    let mixed = (number * 31 + what * 17 + 7).wrapping_mul(2_654_435_761) >> 12;
    f64::from(mixed % 10_000) / 10_000.0
}

/// A run with this many in flight, valid and without failures.
pub(crate) fn document(number: u32, concurrency: u32) -> Value {
    let mut document: Value = serde_json::from_slice(include_bytes!("../summary.json")).unwrap();
    let users = f64::from(concurrency);
    let output = 400.0 * users / (users + 6.0) * (0.98 + 0.04 * chance(number, 0));
    document["run"]["id"] = format!("{number:03}").into();
    document["run"]["model"] = "example/model-24b".into();
    document["run"]["load"] =
        json!({ "kind": "closed", "concurrency": concurrency, "think": { "kind": "none" } });
    (document["verdict"], document["warnings"]) = ("valid".into(), json!([]));
    (document["failures"], document["time_over"]) = (json!([]), 0.into());
    for key in ["scheduled", "attempted"] {
        document[key] = 30.into();
    }
    for (key, count) in document["outcomes"].as_object_mut().unwrap() {
        *count = if key == "ok" { 30 } else { 0 }.into();
    }
    let workload = &mut document["workload"];
    (workload["source"], workload["input_tokens"]) = ("synthetic".into(), 1024.into());
    (workload["output_tokens"], workload["audit"]["cache"]["share"]) = (256.into(), 0.0.into());
    let server = &mut document["server"];
    server["waiting"]["max"] = (users / 4.0 * chance(number, 1)).floor().into();
    (server["running"]["max"], server["running"]["mean"]) = (users.into(), users.into());
    server["scrapes"]["inside"] = 40.into();
    server["kv_usage"]["max"] = (0.3 + 0.7 * chance(number, 2)).into();
    server["preemptions"]["total"] = (4.0 * chance(number, 3)).floor().into();
    metrics(&mut document["metrics"], number, (users, output));
    document["metrics"]["concurrency_peak"]["value"] = users.into();
    document
}

fn metrics(metrics: &mut Value, number: u32, (users, output): (f64, f64)) {
    let ttft = 90.0 + 9.0 * users;
    let tpot = 1e3 * users / output * 0.94;
    for (place, (name, median)) in
        (10..).zip([("ttft_ms", ttft), ("tpot_ms", tpot), ("itl_ms", tpot * 0.9)])
    {
        let found = &mut metrics[name];
        let p99 = median * (1.0 + 6.0 * chance(number, place).powi(3));
        for (key, value) in [
            ("p50", median),
            ("mean", median + (p99 - median) * 0.2),
            ("p95", median + (p99 - median) * 0.7),
            ("p99", p99),
            ("max", p99 * 1.1),
        ] {
            found[key] = value.into();
            found["intervals"][key] = json!({ "low": value * 0.97, "high": value * 1.03 });
        }
        found["intervals"].as_object_mut().unwrap().remove("max");
        (found["n"], found["not_certified"]) = (30.into(), json!(["p99", "p999"]));
    }
    for promised in ["goodput", "attainment"] {
        metrics[promised]["value"] = Value::Null;
    }
    for (name, value) in [
        ("output_throughput", output),
        ("per_user_throughput", output / users),
        ("peak_output_throughput", output * (1.0 + chance(number, 20))),
        ("request_throughput", output / 256.0),
        ("pp", 1_024.0 / ttft * 1e3),
        ("tg", 1e3 / tpot),
        ("concurrency_peak", users),
        ("concurrency_mean", users),
    ] {
        metrics[name]["value"] = value.into();
        metrics[name]["interval"] = json!({ "low": value * 0.98, "high": value * 1.02 });
    }
}

pub(crate) fn summary(document: &Value) -> Summary {
    let mut document = document.clone();
    // The figures are those of the whole run.
    document["steady"]["figures"] = Value::Null;
    Summary::from_json_bytes(document.to_string().as_bytes()).unwrap()
}

fn manifest(question: Question, names: &[&str], runs: u32) -> SetManifest {
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
                cool_down: Duration::ZERO,
                restart: None,
                stop_at: None,
            },
            order: RunOrder::Listed,
            seed: 7,
        },
    }
}

fn at_once(requests: u32) -> Level {
    Level::Concurrency(NonZeroU32::new(requests).unwrap())
}

/// The runs of one condition after another; a level as asked has one in flight.
fn played(levels: &[(u32, Level)], runs: u32, (seed, change): (u32, Change)) -> Vec<PointResult> {
    let mut points = Vec::new();
    for (condition, level) in levels {
        for repetition in 0..runs {
            let number = u32::try_from(points.len()).unwrap();
            let concurrency = if let Level::Concurrency(users) = level { users.get() } else { 1 };
            let mut document = document(number + 100 * seed, concurrency);
            change(&mut document);
            let point = Point {
                number,
                condition: *condition,
                level: *level,
                repetition,
                seed: u64::from(number),
                stage: Stage::Planned,
            };
            points.push(PointResult { point, summary: summary(&document) });
        }
    }
    points
}

/// A scenario of one user, and one at four levels.
pub(crate) fn suite(seed: u32, runs: u32, change: Change) -> MadeSet {
    let levels = [2, 4, 8, 16];
    let mut played_levels = vec![(0, Level::AsAsked)];
    played_levels.extend(levels.map(|users| (1, at_once(users))));
    let points = played(&played_levels, runs, (seed, change));
    let manifest = suite_manifest(&["Single User"], ("Scaling", &levels), runs);
    MadeSet { set: SetSummary::summarize(&manifest, &points), points }
}

/// Scenarios that are played once, each with its users, and one at several levels, with these runs.
pub(crate) fn suite_of(
    alone: &[(&str, u32)],
    (scaling, levels): (&str, &[u32]),
    documents: &[Value],
) -> MadeSet {
    let conditions = u32::try_from(alone.len()).unwrap();
    let mut played: Vec<(u32, Level)> = (0..conditions).map(|it| (it, Level::AsAsked)).collect();
    played.extend(levels.iter().map(|users| (conditions, at_once(*users))));
    let points = (0_u32..).zip(played).zip(documents).map(|((number, (condition, level)), run)| {
        let (seed, stage) = (u64::from(number), Stage::Planned);
        let point = Point { number, condition, level, repetition: 0, seed, stage };
        PointResult { point, summary: summary(run) }
    });
    let points: Vec<PointResult> = points.collect();
    let names: Vec<&str> = alone.iter().map(|(name, _)| *name).collect();
    let mut manifest = suite_manifest(&names, (scaling, levels), 1);
    for (condition, (_, users)) in manifest.study.conditions.iter_mut().zip(alone) {
        let concurrency = NonZeroU32::new(*users).unwrap();
        condition.spec.load.shape = LoadShape::Closed { concurrency, think: Think::None };
    }
    MadeSet { set: SetSummary::summarize(&manifest, &points), points }
}

fn suite_manifest(alone: &[&str], (scaling, levels): (&str, &[u32]), runs: u32) -> SetManifest {
    let scenario = |category: &str, levels| Scenario {
        category: category.to_owned(),
        purpose: "something".to_owned(),
        levels,
        waves: None,
    };
    let mut scenarios: Vec<Scenario> =
        alone.iter().map(|_| scenario("Latency", vec![Level::AsAsked])).collect();
    scenarios.push(scenario("Scaling", levels.iter().copied().map(at_once).collect()));
    let question = Question::Suite(Suite {
        name: "standard".to_owned(),
        title: "Standard".to_owned(),
        hash: "00".to_owned(),
        changes: Vec::new(),
        prompts: Prompts::Fresh,
        scenarios,
    });
    let names: Vec<&str> = alone.iter().copied().chain([scaling]).collect();
    manifest(question, &names, runs)
}

/// Rates up to twice the eight requests a second that the server can do.
pub(crate) fn rates(seed: u32, runs: u32) -> MadeSet {
    let question = Question::Sweep(Sweep {
        dimension: Dimension::Rate,
        levels: Vec::new(),
        waves: None,
        fine: None,
        find: None,
    });
    let levels = [2.0, 4.0, 8.0, 16.0].map(|per_s| (0, Level::Rate(per_s)));
    let mut points = played(&levels, runs, (seed, unchanged));
    for result in &mut points {
        let Level::Rate(per_s) = result.point.level else { continue };
        let mut document: Value = serde_json::from_slice(&result.summary.to_json_bytes()).unwrap();
        document["run"]["load"] = json!({
            "kind": "open", "rate": { "kind": "steady", "per_s": per_s }, "arrivals": "constant",
            "max_concurrency": null,
        });
        document["window"]["duration_s"] = (30.0 / per_s.min(8.0) + 0.2).into();
        document["metrics"]["per_user_throughput"]["value"] = Value::Null;
        document.as_object_mut().unwrap().remove("checksum");
        result.summary = summary(&document);
    }
    let set = SetSummary::summarize(&manifest(question, &["stock"], runs), &points);
    MadeSet { set, points }
}

pub(crate) fn sweep(seed: u32, runs: u32, names: &[&str]) -> MadeSet {
    swept(seed, runs, (names, unchanged))
}

/// A sweep of one server.
pub(crate) fn sweep_with(seed: u32, runs: u32, change: Change) -> MadeSet {
    swept(seed, runs, (&["stock"], change))
}

fn swept(seed: u32, runs: u32, (names, change): (&[&str], Change)) -> MadeSet {
    let question = Question::Sweep(Sweep {
        dimension: Dimension::Concurrency,
        levels: Vec::new(),
        waves: None,
        fine: None,
        find: None,
    });
    let conditions = 0..u32::try_from(names.len()).unwrap();
    let levels: Vec<(u32, Level)> = conditions
        .flat_map(|condition| [1, 2, 4, 8, 16, 32].map(|users| (condition, at_once(users))))
        .collect();
    let points = played(&levels, runs, (seed, change));
    MadeSet { set: SetSummary::summarize(&manifest(question, names, runs), &points), points }
}

pub(crate) fn repeated(seed: u32, runs: u32) -> MadeSet {
    let points = played(&[(0, Level::AsAsked)], runs, (seed, unchanged));
    MadeSet {
        set: SetSummary::summarize(&manifest(Question::Repeat, &["stock"], runs), &points),
        points,
    }
}
