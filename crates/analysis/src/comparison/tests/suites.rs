//! Suites and matrices are compared row by row.

use super::*;

/// Three runs of each of these rows: a name, a concurrency, and what each run gave.
fn suite(name: &str, hash: &str, rows: &[(&str, u32, [f64; 3])]) -> Side<Summary> {
    let (mut all, mut names) = (Vec::new(), Vec::new());
    for (seed, (row, concurrency, throughputs)) in (0..).step_by(10).zip(rows) {
        all.extend(runs(seed, throughputs).into_iter().map(|run| at(*concurrency, run)));
        names.extend(throughputs.map(|_| (*row).to_owned()));
    }
    let suite = Some(("standard".to_owned(), hash.to_owned()));
    Side { suite, rows: names, ..side(name, all) }
}

const SHORT: (&str, u32, [f64; 3]) = ("Short", 8, [100.0, 101.0, 99.0]);
/// As many at once as the other, and another workload.
const LONG: (&str, u32, [f64; 3]) = ("Long", 8, [50.0, 51.0, 49.0]);
const SCALING: (&str, u32, [f64; 3]) = ("Scaling (c=2)", 2, [20.0, 21.0, 19.0]);

#[test]
fn suites_are_compared_row_by_row_in_their_order() {
    let slower = ("Long", 8, [40.0, 41.0, 39.0]);
    let base = suite("A", "aa", &[SHORT, LONG, SCALING]);
    let found = compare(&[base, suite("B", "aa", &[SHORT, slower, SCALING])]);
    let rows: Vec<String> = found.levels.iter().map(|level| level.at.to_string()).collect();
    assert_eq!(rows, ["Short", "Long", "Scaling (c=2)"]);
    let mean = |row: usize| {
        let change = found.levels[row].quantity(0, "output_throughput").unwrap().change;
        change.unwrap().value
    };
    assert!((mean(0) - 1.0).abs() < 1e-9 && (mean(1) - 0.8).abs() < 0.01, "each by itself");
    assert!(found.unmatched.is_empty());
    assert!(found.objections.iter().all(|objection| objection.key != "suite"));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["levels"][1]["scenario"], "Long");
    assert_eq!(json["sides"][0]["runs"][8]["scenario"], "Scaling (c=2)");
}

#[test]
fn of_suites_that_differ_only_rows_that_ask_the_same_are_compared() {
    let base = suite("A", "aa", &[SHORT, LONG]);
    let found = compare(&[base.clone(), suite("B", "bb", &[LONG, SCALING])]);
    let rows: Vec<String> = found.levels.iter().map(|level| level.at.to_string()).collect();
    assert_eq!(rows, ["Long"]);
    assert_eq!(found.unmatched.len(), 2);
    let told = found.objections.iter().find(|objection| objection.key == "suite").unwrap();
    assert_eq!(told.weight, Weight::Note);
    let mut other = suite("B", "bb", &[SHORT, LONG]);
    for run in &mut other.results[3..] {
        run.workload.fingerprint = "another".to_owned();
    }
    let Err(ComparisonProblem::NotComparable(why)) = Comparison::new(&[base, other], &terms())
    else {
        panic!("a row asks something else")
    };
    let told = why.iter().find(|objection| objection.key == "suite").unwrap();
    assert!(told.text.contains("(aa)") && told.text.contains("(bb)"), "{}", told.text);
    assert!(told.text.ends_with("rows differs: Long"), "{}", told.text);
}

#[test]
fn matrices_are_compared_cell_by_cell_although_all_have_one_load() {
    let matrix = |name: &str, cells: &[(&str, u32, [f64; 3])]| Side {
        suite: None,
        ..suite(name, "none", cells)
    };
    let (old, new) = (("h100 · 8B", 8, [50.0, 51.0, 49.0]), ("h100 · 8B", 8, [60.0, 61.0, 59.0]));
    let other = ("mi210 · 8B", 8, [30.0, 31.0, 29.0]);
    let found = compare(&[matrix("A", &[other, old]), matrix("B", &[new])]);
    let rows: Vec<String> = found.levels.iter().map(|level| level.at.to_string()).collect();
    assert_eq!(rows, ["h100 · 8B"]);
    let change = found.levels[0].quantity(0, "output_throughput").unwrap().change.unwrap();
    assert!((change.value - 1.2).abs() < 0.01, "{change:?}");
    assert_eq!(found.unmatched[0].at.to_string(), "mi210 · 8B");
}

#[test]
fn cells_that_came_to_nothing_are_told_with_their_reasons() {
    let failing = |name: &str, failed: &[&str]| {
        let mut side = Side { suite: None, ..suite(name, "none", &[SHORT]) };
        let reason = |row: &&str| ((*row).to_owned(), "out of memory".to_owned());
        side.failed = failed.iter().map(reason).collect();
        side
    };
    let whole = Side { suite: None, ..suite("A", "none", &[SHORT, LONG]) };
    let found = compare(&[whole, failing("B", &["Long", "Vast"])]);
    let told = |key: &str| found.objections.iter().find(|it| it.key == key).cloned();
    let lost = told("failed_rows").unwrap();
    assert_eq!((lost.weight, lost.side.as_str()), (Weight::Warning, "B"));
    assert_eq!(lost.text, "1 row of B failed, but not on every side: Long (out of memory)");
    let nowhere = told("rows_of_nobody").unwrap();
    assert_eq!(
        (nowhere.weight, nowhere.text.as_str()),
        (Weight::Note, "1 row of B failed, as on every side: Vast (out of memory)")
    );
}

#[test]
fn a_suite_and_a_run_have_nothing_in_common() {
    let base = suite("A", "aa", &[SHORT]);
    let problem = Comparison::new(&[base, side("B", runs(1, &[100.0]))], &terms());
    assert!(
        matches!(problem, Err(ComparisonProblem::NoCommonLevel(told)) if told.contains("Short (A)"))
    );
}
