//! The pages of sets of runs, as a person sees them, from made-up runs of a plausible server.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::set::{Finding, FoundLimit, PointResult, Saturation, SetSummary};
use inferometer_analysis::{Notice, Severity, Summary, Verdict};
use inferometer_model::SpecDraft;
use inferometer_model::campaign::{
    CampaignSpec, Condition, Dimension, Level, Order, Point, Prompts, Question, Repetition,
    Scenario, Search, SetManifest, Stage, StopAt, Suite, Sweep,
};
use inferometer_model::spec::LoadDraft;
use inferometer_report::json;
use inferometer_report::terminal::Style;
use inferometer_report::terminal::set::{SetFiles, render};
use serde_json::{Value, json};

/// What a run of a made-up server measures.
struct Made {
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
        let mut document: Value = serde_json::from_slice(include_bytes!("summary.json")).unwrap();
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
        Summary::from_json_bytes(document.to_string().as_bytes()).unwrap()
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
        let mut scalar = |name: &str, value: Value| metrics[name]["value"] = value;
        scalar("request_throughput", self.request_per_s.into());
        scalar("output_throughput", (self.request_per_s * 256.0).into());
        scalar("input_throughput", (self.request_per_s * 1024.0).into());
        scalar("total_throughput", (self.request_per_s * 1280.0).into());
        scalar("per_user_throughput", self.per_user.map_or(Value::Null, Value::from));
        scalar("goodput", Value::Null);
        scalar("attainment", Value::Null);
        let share = self.failed as f64 / (self.ok + self.failed) as f64;
        scalar("error_rate", share.into());
    }
}

/// A few parts in a hundred around one, the same for the same run.
fn noise(number: u32, what: u32) -> f64 {
    let mixed = (number * 31 + what * 17 + 7).wrapping_mul(2_654_435_761) >> 16;
    1.0 + (f64::from(mixed % 1_000) / 1_000.0 - 0.5) * 0.03
}

/// Towards 400 tokens a second, half of it at `half` users.
fn closed(number: u32, concurrency: u32, half: f64, ok: u64) -> Made {
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
fn open(number: u32, rate: Option<f64>) -> Made {
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

fn manifest(question: Question, names: &[&str], runs: u32) -> SetManifest {
    let spec = SpecDraft { seed: Some(7), ..SpecDraft::default() }.resolve().unwrap();
    let condition = |name: &&str| Condition { name: (*name).to_owned(), spec: spec.clone() };
    SetManifest {
        key_files: Vec::new(),
        format: 1,
        set: "20260102-030405-set1".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        simulated: false,
        campaign: CampaignSpec {
            question,
            conditions: names.iter().map(condition).collect(),
            repetition: Repetition {
                runs: NonZeroU32::new(runs).unwrap(),
                cool_down: Duration::from_mins(1),
                restart: None,
                stop_at: None,
            },
            order: Order::Interleaved,
            seed: 7,
        },
    }
}

fn sweep(dimension: Dimension, find: Option<Search>) -> Question {
    Question::Sweep(Sweep { dimension, levels: Vec::new(), waves: None, fine: None, find })
}

fn result(number: u32, condition: u32, level: Level, made: &Made) -> PointResult {
    let point = Point { number, condition, level, repetition: 0, seed: 7, stage: Stage::Planned };
    PointResult { point, summary: made.summary(number) }
}

fn at_once(requests: u32) -> Level {
    Level::Concurrency(NonZeroU32::new(requests).unwrap())
}

/// Two servers, seven levels, five runs of each; one run is invalid.
fn concurrency_sweep() -> SetSummary {
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
    SetSummary::of(&manifest, &results)
}

/// Rates up to twice what the server can do, and everything at once, which a limit cuts.
fn rate_sweep() -> SetSummary {
    let mut results = Vec::new();
    for rate in [1.0, 3.0, 5.0, 7.0, 9.0, 11.0] {
        for _ in 0..3 {
            let number = u32::try_from(results.len()).unwrap();
            results.push(result(number, 0, Level::Rate(rate), &open(number, Some(rate))));
        }
    }
    results.push(result(18, 0, Level::Unlimited, &open(18, None)));
    SetSummary::of(&manifest(sweep(Dimension::Rate, None), &["stock"], 3), &results)
}

fn repeated() -> SetSummary {
    let results: Vec<PointResult> = (0..5)
        .map(|number| result(number, 0, Level::AsAsked, &closed(number, 16, 6.0, 200)))
        .collect();
    let mut manifest = manifest(Question::Repeat, &["stock"], 5);
    manifest.campaign.repetition.restart = Some("systemctl restart server".to_owned());
    SetSummary::of(&manifest, &results)
}

/// A user alone, a crowd and four levels; the scaling prompts were in the server's prefix cache.
fn suite() -> SetSummary {
    let scenario = |category: &str, levels: Vec<Level>| Scenario {
        category: category.to_owned(),
        purpose: "shows something".to_owned(),
        levels,
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
    manifest.campaign.order = Order::Listed;
    for condition in &mut manifest.campaign.conditions {
        let load = LoadDraft { concurrency: Some(16), ..LoadDraft::default() };
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
                found.summary.warnings.push(Notice {
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
    SetSummary::of(&manifest, &results)
}

fn search() -> SetSummary {
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
    SetSummary::of(&manifest(sweep(Dimension::Rate, Some(search)), &["stock"], 1), &results)
        .with_limits(vec![limit])
}

fn page(set: &SetSummary) -> String {
    let files = SetFiles {
        set: "runs/20260102-030405-set1".to_owned(),
        summary: "runs/20260102-030405-set1/summary.json".to_owned(),
        report: None,
    };
    let page = render(set, &files, Style::Plain);
    for line in page.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    page
}

#[test]
fn a_sweep_of_concurrency_on_two_servers() {
    insta::assert_snapshot!(page(&concurrency_sweep()));
}

#[test]
fn a_sweep_of_rates_with_a_level_that_was_cut() {
    insta::assert_snapshot!(page(&rate_sweep()));
}

#[test]
fn five_runs_of_the_same() {
    insta::assert_snapshot!(page(&repeated()));
}

#[test]
fn a_suite_with_a_warm_cache_and_a_scenario_that_failed() {
    insta::assert_snapshot!(page(&suite()));
}

#[test]
fn a_search_for_the_highest_rate() {
    insta::assert_snapshot!(page(&search()));
}

#[test]
fn the_limits_of_several_servers_are_told_by_their_names() {
    let mut set = search();
    let mut second = set.limits[0].clone();
    (second.condition, second.confirmed, second.runs) = (1, false, 1);
    second.words = "4 requests/s met ttft.p99<500ms at first and is not confirmed".to_owned();
    set.limits.push(second);
    set.conditions.push(set.conditions[0].clone());
    set.conditions[1].name = "tuned".to_owned();
    let page = page(&set);
    assert!(page.contains("\nlimit  stock: 6.5 requests/s meets"), "{page}");
    assert!(page.contains("\nlimit  tuned: 4 requests/s met"), "{page}");
    assert!(page.contains("the search took 1 run\n"), "{page}");
    assert_eq!(page.matches("confirmed on a fresh seed").count(), 1, "{page}");
}

#[test]
fn a_rate_that_piles_up_is_not_given_a_share_above_one() {
    let mut set = rate_sweep();
    let findings = set.conditions[0].findings.as_mut().unwrap();
    let mut found = Saturation {
        highest_served: Some(47.8),
        lowest_missed: Some(48.3),
        missed_share: Some(1.075),
        missed_piling_up: true,
        served_above: None,
    };
    findings.saturation = Finding::Found(found);
    let piling = page(&set);
    assert!(!piling.contains("107.5") && piling.contains("(requests pile up there)"), "{piling}");
    found.served_above = Some(50.0);
    set.conditions[0].findings.as_mut().unwrap().saturation = Finding::Found(found);
    let torn = page(&set).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(torn.contains("NOT clear, because 50 requests/s was served again"), "{torn}");
}

#[test]
fn too_few_levels_to_choose_a_law_say_so() {
    let results: Vec<PointResult> = (0..12)
        .map(|number| {
            let concurrency = [1, 4, 16, 64][number as usize / 3];
            result(number, 0, at_once(concurrency), &closed(number, concurrency, 6.0, 700))
        })
        .collect();
    let manifest = manifest(sweep(Dimension::Concurrency, None), &["stock"], 3);
    let page = page(&SetSummary::of(&manifest, &results));
    assert!(page.contains("scalability  – 4 levels are too few to tell"), "{page}");
}

#[test]
fn a_simulated_set_says_so_first() {
    let mut set = repeated();
    set.simulated = true;
    assert!(page(&set).starts_with("SIMULATED in virtual time: no server was measured."));
}

#[test]
fn a_server_cannot_steer_the_terminal_and_colour_changes_nothing_but_colour() {
    let set = concurrency_sweep();
    let plain = page(&set);
    assert!(!plain.contains('\u{1b}') && plain.contains("tuned\\u{1b}[2J"));
    let files = SetFiles {
        set: "runs/20260102-030405-set1".to_owned(),
        summary: "runs/20260102-030405-set1/summary.json".to_owned(),
        report: None,
    };
    let coloured = render(&set, &files, Style::Coloured);
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    let trimmed: String = bare.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    assert_eq!(trimmed, plain);
}

#[test]
fn a_target_that_was_missed_is_told_with_what_to_do() {
    let mut manifest = manifest(Question::Repeat, &["stock"], 3);
    manifest.campaign.repetition.stop_at =
        Some(StopAt { quantity: "output_throughput".to_owned(), half_width: 0.001 });
    let results: Vec<PointResult> = (0..3)
        .map(|number| result(number, 0, Level::AsAsked, &closed(number, 16, 6.0, 200)))
        .collect();
    let set = SetSummary::of(&manifest, &results);
    let notice = set.warnings.iter().find(|notice| notice.key == "half-width").unwrap();
    assert_eq!(notice.severity, Severity::Note);
    assert!(page(&set).contains("runs until output_throughput is known to ±0.1 %, 3 at most"));
}

#[test]
fn the_document_is_the_summary_of_the_set_and_its_files() {
    let set = search();
    let (folder, summary) = ("runs/s".to_owned(), "runs/s/summary.json".to_owned());
    let files = SetFiles { set: folder, summary, report: Some("runs/s/report.html".to_owned()) };
    let document: Value = serde_json::from_str(&json::render_set(&set, &files, &[])).unwrap();
    let stored: Value = serde_json::from_slice(&set.to_json_bytes()).unwrap();
    for (key, value) in stored.as_object().unwrap() {
        assert_eq!(&document[key], value, "{key}");
    }
    assert_eq!(document["files"]["set"], "runs/s");
    assert_eq!(document["files"]["report"], "runs/s/report.html");
    let page = render(&set, &files, Style::Plain);
    assert!(page.ends_with("summary.json\n       runs/s/report.html\n"), "{page}");
    assert_eq!(document["limits"][0]["level"], 6.5);
}
