//! The pages of sets of runs, as a person sees them, from made-up runs of a plausible server.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod made;

use inferometer_analysis::Severity;
use inferometer_analysis::set::{Finding, PointResult, Saturation, SetSummary};
use inferometer_model::study::{Dimension, Level, Question, StopAt};
use inferometer_report::json;
use inferometer_report::terminal::Style;
use inferometer_report::terminal::set::{SetFiles, render};
use serde_json::Value;

use self::made::{
    at_once, closed, concurrency_sweep, manifest, rate_sweep, repeated, result, search, suite,
    sweep,
};

fn page(set: &SetSummary) -> String {
    let files = SetFiles {
        set: "runs/20260102-030405-set1".to_owned(),
        summary: Some("runs/20260102-030405-set1/summary.json".to_owned()),
        ..SetFiles::default()
    };
    let page = render(set, &files, Style::Plain);
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
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
    assert!(page.contains("  Limit  stock: 6.5 requests/s meets"), "{page}");
    assert!(page.contains("  Limit  tuned: 4 requests/s met"), "{page}");
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
    assert!(!piling.contains("107.5") && piling.contains("(requests queue up there)"), "{piling}");
    found.served_above = Some(50.0);
    set.conditions[0].findings.as_mut().unwrap().saturation = Finding::Found(found);
    let torn = page(&set).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(torn.contains("NOT clear, because 50 req/s was served again"), "{torn}");
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
    let page = page(&SetSummary::summarize(&manifest, &results));
    assert!(page.contains("scalability  – 4 levels are too few to tell"), "{page}");
}

/// A hundred requests at two hundred users: half of them were never there.
#[test]
fn a_level_that_was_never_reached_is_marked_and_in_no_finding() {
    let results: Vec<PointResult> = (0..)
        .zip([1, 8, 32, 100, 200, 400])
        .map(|(number, users)| result(number, 0, at_once(users), &closed(number, users, 6.0, 100)))
        .collect();
    let manifest = manifest(sweep(Dimension::Concurrency, None), &["stock"], 1);
    let page = page(&SetSummary::summarize(&manifest, &results));
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let marked: Vec<&str> = page.lines().filter(|line| line.ends_with("  not reached")).collect();
    assert_eq!(marked.len(), 2, "{page}");
    assert!(words.contains("left out c=200, c=400: fewer requests were in flight"), "{page}");
    assert!(words.contains("peak c=100 ("), "{page}");
    assert!(words.contains("at most 100 of 200, 100 of 400 in flight"), "{page}");
}

/// One figure of one level has no interval: that is no reason to say that none has.
#[test]
fn how_sure_a_finding_is_says_what_is_missing() {
    let mut set = concurrency_sweep();
    let findings = set.conditions[0].findings.as_mut().unwrap();
    let Finding::Found(spot) = &mut findings.sweet_spot else { panic!("it has one") };
    spot.same_share = None;
    let page = page(&set).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("±") && page.contains("not every value has an interval"), "{page}");
}

#[test]
fn a_long_name_keeps_its_level_and_levels_are_no_scenarios() {
    let mut set = suite();
    let suite = set.suite.as_mut().unwrap();
    for row in &mut suite.rows {
        row.name = row.name.replace("Concurrency Scaling", "A Team of Many at the Cursor");
        row.scenario = row.scenario.replace("Concurrency Scaling", "A Team of Many at the Cursor");
    }
    let page = page(&set);
    assert!(page.contains("A Team of Many at … (c=32) "), "{page}");
    assert!(page.contains("3 scenarios, 6 levels"), "{page}");
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
        summary: Some("runs/20260102-030405-set1/summary.json".to_owned()),
        ..SetFiles::default()
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
    manifest.study.repetition.stop_at =
        Some(StopAt { quantity: "output_throughput".to_owned(), half_width: 0.001 });
    let results: Vec<PointResult> = (0..3)
        .map(|number| result(number, 0, Level::AsAsked, &closed(number, 16, 6.0, 200)))
        .collect();
    let set = SetSummary::summarize(&manifest, &results);
    let notice = set.warnings.iter().find(|notice| notice.key == "half-width").unwrap();
    assert_eq!(notice.severity, Severity::Note);
    assert!(page(&set).contains("runs until output_throughput is known to ±0.1 %, 3 at most"));
}

#[test]
fn the_document_is_the_summary_of_the_set_and_its_files() {
    let set = search();
    let file = |name: &str| Some(format!("runs/s/{name}"));
    let files = SetFiles {
        set: "runs/s".to_owned(),
        summary: file("summary.json"),
        report: file("report.html"),
        table: file("matrix.csv"),
        markdown: None,
    };
    let page = render(&set, &files, Style::Plain);
    assert!(page.ends_with("runs/s/report.html\n         runs/s/matrix.csv\n"), "{page}");
    let document: Value = serde_json::from_str(&json::render(&set, &files, &[])).unwrap();
    let stored: Value = serde_json::from_slice(&set.to_json_bytes()).unwrap();
    for (key, value) in stored.as_object().unwrap().iter().filter(|(key, _)| *key != "checksum") {
        assert_eq!(&document[key], value, "{key}");
    }
    assert_eq!(document["files"]["set"], "runs/s");
    assert_eq!(document["files"]["report"], "runs/s/report.html");
    assert_eq!(document["limits"][0]["level"], 6.5);
}
