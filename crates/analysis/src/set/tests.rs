//! Sets of made-up runs, and what they come to.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_model::study::{Condition, Dimension, Repetition, RunOrder, Sweep};

use super::fixture::{summary, with_throughput};
use super::*;
use crate::fixture::calm;
use crate::metric;

fn at_once(requests: u32) -> Level {
    Level::Concurrency(NonZeroU32::new(requests).unwrap())
}

fn manifest(question: Question, conditions: &[&str]) -> SetManifest {
    let condition =
        |name: &&str| Condition { name: (*name).to_owned(), spec: calm().manifest.spec };
    SetManifest {
        key_files: Vec::new(),
        workers: None,
        format: 1,
        set: "20260101-000000-set".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        simulated: false,
        study: StudySpec {
            question,
            conditions: conditions.iter().map(condition).collect(),
            repetition: Repetition {
                runs: NonZeroU32::new(3).unwrap(),
                cool_down: Duration::from_mins(1),
                restart: None,
                stop_at: None,
            },
            order: RunOrder::Interleaved,
            seed: 7,
        },
    }
}

fn sweep() -> Question {
    Question::Sweep(Sweep {
        dimension: Dimension::Concurrency,
        levels: Vec::new(),
        waves: None,
        fine: None,
        find: None,
    })
}

fn result(number: u32, condition: u32, level: Level, throughput: f64) -> PointResult {
    PointResult {
        point: Point {
            number,
            condition,
            level,
            repetition: 0,
            seed: number.into(),
            stage: inferometer_model::study::Stage::Planned,
        },
        summary: with_throughput(&summary(), throughput),
    }
}

fn throughput(level: &LevelSummary) -> &AcrossRuns {
    level.quantity(&metric::OUTPUT_THROUGHPUT).unwrap()
}

#[test]
fn runs_are_gathered_by_condition_and_level_in_the_order_of_the_load() {
    let results = vec![
        result(3, 0, at_once(2), 22.0),
        result(0, 0, at_once(16), 90.0),
        result(1, 1, at_once(2), 5.0),
        result(2, 0, at_once(2), 20.0),
    ];
    let found = SetSummary::summarize(&manifest(sweep(), &["one", "two"]), &results);
    let [one, two] = found.conditions.as_slice() else { panic!("two conditions") };
    let levels: Vec<Level> = one.levels.iter().map(|level| level.level).collect();
    assert_eq!(levels, [at_once(2), at_once(16)]);
    assert_eq!(one.levels[0].points, [2, 3]);
    assert_eq!(throughput(&one.levels[0]).values, [Some(20.0), Some(22.0)]);
    assert_eq!(throughput(&one.levels[0]).mean, Some(21.0));
    assert_eq!((two.levels.len(), throughput(&two.levels[0]).mean), (1, Some(5.0)));
    assert_eq!(found.points.iter().map(|line| line.point.number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(one.findings.is_some());
}

#[test]
fn levels_with_fewer_requests_than_users_are_told() {
    let of = |levels: &[(u32, f64)]| {
        let results: Vec<PointResult> = (0..)
            .zip(levels)
            .map(|(number, (asked, most))| PointResult {
                summary: super::fixture::with_users(*asked, Some(*most)),
                ..result(number, 0, at_once(*asked), 90.0)
            })
            .collect();
        SetSummary::summarize(&manifest(sweep(), &["one"]), &results)
    };
    let warning = |set: &SetSummary| {
        set.warnings.iter().find(|notice| notice.key == "level-not-reached").cloned()
    };
    assert_eq!(warning(&of(&[(8, 8.0), (32, 30.0)])), None);
    let note = warning(&of(&[(100, 100.0), (200, 100.0)])).unwrap();
    assert_eq!(note.severity, Severity::Note);
    let set = of(&[(100, 100.0), (200, 100.0), (400, 100.0)]);
    let grave = warning(&set).unwrap();
    assert_eq!((grave.severity, set.verdict), (Severity::Degraded, Verdict::Degraded));
    assert!(grave.text.ends_with("at most 100 of 200, 100 of 400 in flight"), "{}", grave.text);
    assert!(grave.remedy.contains("--waves"), "{}", grave.remedy);
    let findings = set.conditions[0].findings.as_ref().unwrap();
    assert_eq!(findings.not_reached, [at_once(200), at_once(400)]);
    assert_eq!(findings.peak.found().unwrap().level, at_once(100));
}

#[test]
fn a_simulation_that_repeats_itself_says_so() {
    let of = |throughputs: [f64; 3]| {
        let mut results: Vec<PointResult> = (0..)
            .zip(throughputs)
            .map(|(number, value)| result(number, 0, Level::AsAsked, value))
            .collect();
        for result in &mut results {
            let (profile, engine) = ("default".to_owned(), "as it is".to_owned());
            result.summary.run.simulated = Some(inferometer_model::observations::Simulated {
                profile,
                engine,
                model_error: None,
                prediction: None,
            });
        }
        let set = SetSummary::summarize(&manifest(Question::Repeat, &["a"]), &results);
        set.warnings.iter().any(|notice| notice.key == "identical-runs")
    };
    assert!(of([0.1, 0.1, 0.1]) && !of([0.1, 0.1, 0.1 + 1e-15]));
}

#[test]
fn what_people_publish_is_there_by_name() {
    let found = SetSummary::summarize(
        &manifest(Question::Repeat, &["a"]),
        &[result(0, 0, Level::AsAsked, 1.0)],
    );
    let level = &found.conditions[0].levels[0];
    for name in [
        "ttft.mean",
        "ttft.p99",
        "tpot.p50",
        "e2e.p90",
        "itl.p95",
        "ttft.p99.9",
        "e2e.max",
        "output_throughput",
    ] {
        assert_eq!(level.quantities[name].n, 1, "{name}");
    }
    let goodput = level.quantity(&metric::GOODPUT).unwrap();
    assert!(goodput.mean.is_none() && goodput.reason.is_some());
    assert_eq!(found.conditions[0].findings, None);
    assert_eq!(found.asked.question, QuestionKind::Repeat);
}

#[test]
fn an_invalid_run_is_kept_in_the_list_and_counts_nowhere_else() {
    let mut results: Vec<PointResult> =
        (0..3).map(|number| result(number, 0, at_once(4), 100.0 + f64::from(number))).collect();
    results[2].summary.verdict = Verdict::Invalid;
    let found = SetSummary::summarize(&manifest(sweep(), &["a"]), &results);
    let level = &found.conditions[0].levels[0];
    assert_eq!((level.points.as_slice(), level.left_out.as_slice()), (&[0, 1][..], &[2][..]));
    assert_eq!(throughput(level).mean, Some(100.5));
    assert_eq!((level.verdict, found.verdict), (Verdict::Invalid, Verdict::Degraded));
    assert_eq!(level.requests.ok, 120, "what became of requests is told of all runs");
    let notice = &found.warnings[0];
    assert_eq!((notice.key.as_str(), notice.severity), ("invalid-runs", Severity::Degraded));
    assert!(notice.text.starts_with("1 run is invalid and excluded"), "{}", notice.text);
}

#[test]
fn a_level_of_invalid_runs_has_no_numbers_and_says_why() {
    let mut only = result(0, 0, at_once(4), 100.0);
    only.summary.verdict = Verdict::Invalid;
    let found = SetSummary::summarize(&manifest(sweep(), &["a"]), &[only]);
    let level = &found.conditions[0].levels[0];
    assert_eq!((throughput(level).mean, throughput(level).n), (None, 0));
    assert!(throughput(level).reason.is_some());
    assert_eq!(found.verdict, Verdict::Invalid);
    assert!(found.warnings[0].text.ends_with("no valid run is left of c=4"));
    let findings = found.conditions[0].findings.as_ref().unwrap();
    assert!(findings.peak.found().is_none() && findings.sweet_spot.found().is_none());
}

#[test]
fn a_level_that_failed_does_not_spoil_the_others() {
    let mut results = [result(0, 0, at_once(4), 100.0), result(1, 0, at_once(64), 1.0)];
    let of = |results: &[PointResult]| {
        SetSummary::summarize(&manifest(sweep(), &["a"]), results).verdict
    };
    assert_eq!(of(&results), Verdict::Valid);
    results[1].summary.verdict = Verdict::Invalid;
    assert_eq!(of(&results), Verdict::Degraded);
    results[0].summary.verdict = Verdict::Invalid;
    assert_eq!(of(&results), Verdict::Invalid);
    assert_eq!(of(&[]), Verdict::Invalid);
}

#[test]
fn what_runs_warn_of_is_told_once_for_each_kind() {
    let mut results: Vec<PointResult> =
        (0..3).map(|number| result(number, 0, at_once(4), 100.0)).collect();
    for result in &mut results[..2] {
        result.summary.warnings = vec![Warning {
            key: "client-lag".to_owned(),
            check: None,
            severity: Severity::Degraded,
            text: "the client was late".to_owned(),
            remedy: "give it more cores".to_owned(),
        }];
    }
    let found = SetSummary::summarize(&manifest(sweep(), &["a"]), &results);
    let texts: Vec<&str> = found.warnings.iter().map(|notice| notice.text.as_str()).collect();
    assert_eq!(texts, ["2 of 3 runs: the client was late"]);
}

#[test]
fn one_or_two_runs_of_a_level_are_few() {
    for (runs, words) in [(1, Some("one run")), (2, Some("two runs")), (3, None)] {
        let results: Vec<PointResult> =
            (0..runs).map(|number| result(number, 0, at_once(4), 100.0)).collect();
        let found = SetSummary::summarize(&manifest(sweep(), &["a"]), &results);
        let few = found.warnings.iter().find(|notice| notice.key == "few-runs");
        assert_eq!(few.is_some(), words.is_some(), "{runs}");
        assert!(few.is_none_or(|few| few.text.contains(words.unwrap_or_default())));
    }
}

#[test]
fn a_stored_document_is_read_back_and_the_same_runs_give_the_same_bytes() {
    let results: Vec<PointResult> = (0..15)
        .map(|number| {
            let concurrency = [1, 2, 4, 8, 16][number as usize / 3];
            let noise = f64::from(number % 3);
            result(number, 0, at_once(concurrency), 40.0 * f64::from(concurrency.min(8)) + noise)
        })
        .collect();
    let of = || SetSummary::summarize(&manifest(sweep(), &["a"]), &results);
    assert_eq!(of().to_json_bytes(), of().to_json_bytes());
    let found = of().with_limits(vec![FoundLimit {
        condition: 0,
        goals: vec!["ttft.p99<500ms".to_owned()],
        level: Some(8.0),
        lowest_missed: Some(9.0),
        confirmed: true,
        open_ended: false,
        runs: 9,
        undecided: vec![8.5],
        words: "c=8".to_owned(),
    }]);
    let read = SetSummary::from_json_bytes(&found.to_json_bytes()).unwrap();
    assert_eq!(read, found);
    let text = String::from_utf8(found.to_json_bytes()).unwrap();
    let other = text.replace("inferometer.set/1", "inferometer.set/9");
    let error = SetSummary::from_json_bytes(other.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("inferometer.set/9"), "{error}");
}

#[test]
fn only_runs_that_count_say_whether_a_rate_was_served_or_cut() {
    let mut results: Vec<PointResult> =
        (0..3).map(|number| result(number, 0, Level::Rate(4.0), 100.0)).collect();
    for bad in &mut results[1..] {
        bad.summary.verdict = Verdict::Invalid;
        bad.summary.outcomes.insert(inferometer_model::Outcome::Cancelled, 7);
        bad.summary.warnings = vec![Warning {
            key: "piling-up".to_owned(),
            check: None,
            severity: Severity::Degraded,
            text: String::new(),
            remedy: String::new(),
        }];
    }
    let found = SetSummary::summarize(&manifest(sweep(), &["a"]), &results);
    let level = &found.conditions[0].levels[0];
    assert_eq!(level.served.unwrap().piling_up, 0);
    assert_eq!(level.cut, None);
    results[1].summary.verdict = Verdict::Degraded;
    let found = SetSummary::summarize(&manifest(sweep(), &["a"]), &results);
    let level = &found.conditions[0].levels[0];
    assert_eq!((level.served.unwrap().piling_up, level.cut.as_ref().unwrap().runs), (1, 1));
}

#[test]
fn the_quantity_that_ended_the_runs_has_the_interval_of_all_looks() {
    let results: Vec<PointResult> = [100.0, 101.0, 99.0]
        .into_iter()
        .zip(0..)
        .map(|(value, number)| result(number, 0, Level::AsAsked, value))
        .collect();
    let mut manifest = manifest(Question::Repeat, &["a"]);
    manifest.study.repetition.runs = NonZeroU32::new(10).unwrap();
    let half = |manifest: &SetManifest| {
        let found = SetSummary::summarize(manifest, &results);
        throughput(&found.conditions[0].levels[0]).interval.unwrap().half_width()
    };
    let once = half(&manifest);
    let quantity = "output_throughput".to_owned();
    manifest.study.repetition.stop_at =
        Some(inferometer_model::study::StopAt { quantity, half_width: 0.1 });
    let often = half(&manifest);
    assert!((once - 2.484_137_7).abs() < 1e-6 && 2.7 < often / once, "{once} and {often}");
    let enough =
        SetSummary::summarize(&manifest, &results).conditions[0].levels[0].enough.clone().unwrap();
    assert!((enough.half_width.unwrap() * 100.0 - often).abs() < 1e-9);
}
