//! Rows that no published suite has: open loops, data of files, and rounds that differ.

use inferometer_model::spec::{Arrivals, DatasetSpec, Rate};

use super::*;

/// Rows as they are asked and measured, one after the other.
fn asked(conditions: Vec<(Condition, Summary)>) -> SetSummary {
    let mut manifest = manifest(Prompts::Fresh, &published());
    let (conditions, summaries): (Vec<Condition>, Vec<Summary>) = conditions.into_iter().unzip();
    let Question::Suite(suite) = &mut manifest.study.question else { panic!("a suite") };
    suite.scenarios.truncate(conditions.len());
    manifest.study.conditions = conditions;
    let results: Vec<PointResult> = (0..)
        .zip(summaries)
        .map(|(number, summary)| {
            let (level, stage) = (Level::AsAsked, Stage::Planned);
            let point = Point {
                number,
                condition: number,
                level,
                repetition: 0,
                seed: number.into(),
                stage,
            };
            PointResult { point, summary }
        })
        .collect();
    SetSummary::summarize(&manifest, &results)
}

#[test]
fn an_open_loop_that_does_not_wait_is_not_suspected() {
    let mut crowd = published().remove(0);
    (crowd.input_tokens, crowd.concurrency, crowd.ttft_mean_ms) = (1_024, 32, Some(5_000.0));
    let mut calm_rate = published().remove(0);
    (calm_rate.input_tokens, calm_rate.ttft_mean_ms) = (1_024, Some(300.0));
    let mut open = condition(&calm_rate);
    open.spec.load.shape = LoadShape::Open {
        rate: Rate::Steady { per_s: 0.5 },
        arrivals: Arrivals::Poisson,
        cap: None,
    };
    let rows = || vec![(condition(&crowd), summary(&crowd)), (open.clone(), summary(&calm_rate))];
    let set = asked(rows());
    assert_eq!(set.suite.as_ref().unwrap().contaminated, []);
    // A closed loop of as many is another matter.
    let mut rows = rows();
    rows[1].0.spec.load.shape =
        LoadShape::Closed { concurrency: NonZeroU32::new(32).unwrap(), think: Think::None };
    assert_eq!(asked(rows).suite.unwrap().contaminated.len(), 1);
}

#[test]
fn the_same_file_in_two_scenarios_is_told_with_what_the_server_cached_of_it() {
    let row = published().remove(0);
    let of = |path: &str, share: Option<f64>| {
        let mut condition = condition(&row);
        condition.spec.workload.source = Source::Dataset(DatasetSpec {
            path: path.into(),
            keep_order: true,
            ..DatasetSpec::default()
        });
        condition.name = format!("{path} {share:?}");
        let mut summary = summary(&row);
        summary.workload.audit.cache.share = share;
        (condition, summary)
    };
    let set = asked(vec![
        of("a.jsonl", Some(0.3)),
        of("b.jsonl", Some(0.3)),
        of("a.jsonl", Some(0.97)),
        of("b.jsonl", Some(0.01)),
        of("a.jsonl", None),
    ]);
    let suite = set.suite.as_ref().unwrap();
    let found = |row: &Contaminated| (row.row, row.same_data, row.suspected, row.cached_share);
    let rows: Vec<_> = suite.contaminated.iter().map(found).collect();
    assert_eq!(rows, [(2, true, false, Some(0.97)), (4, true, true, None)]);
    assert_eq!(suite.contaminated[1].sent_before, [0, 2]);
    let told = notice(&set, "same-data").unwrap();
    assert_eq!(told.severity, Severity::Note);
    assert!(told.text.contains("97 %") && told.remedy.contains("may be intended"), "{told:?}");
    assert!(notice(&set, "warm-cache").is_none() && notice(&set, "cache-suspected").is_none());
}

#[test]
fn one_warm_round_is_not_made_cold_by_the_others() {
    let rows = published();
    let mut manifest = manifest(Prompts::Fresh, &rows);
    let Question::Suite(suite) = &mut manifest.study.question else { panic!("a suite") };
    suite.scenarios.truncate(1);
    manifest.study.conditions.truncate(1);
    let results: Vec<PointResult> = (0..5)
        .map(|number| {
            let (level, stage, seed) = (Level::AsAsked, Stage::Planned, number.into());
            let point = Point { number, condition: 0, level, repetition: number, seed, stage };
            let mut summary = summary(&rows[0]);
            told(if number == 4 { 6 } else { 0 }, &mut summary);
            PointResult { point, summary }
        })
        .collect();
    let set = SetSummary::summarize(&manifest, &results);
    let suite = set.suite.as_ref().unwrap();
    assert_eq!(suite.contaminated[0].cached_share, Some(0.98));
    assert_eq!(notice(&set, "warm-cache").unwrap().severity, Severity::Degraded);
    assert!(suite.rows[0].cached_share.is_some_and(|mean| mean < 0.2), "the mean of all its runs");
}

#[test]
fn what_another_run_sent_before_the_suite_reaches_its_page() {
    let set = played(Prompts::Fresh, |place, summary| {
        if place == 3 {
            summary.warnings.push(Warning {
                key: "seen-before".to_owned(),
                check: None,
                severity: Severity::Note,
                text: "run 7 may have sent the same prompts to this server".to_owned(),
                remedy: "use another --seed".to_owned(),
            });
        }
    });
    let told = notice(&set, "seen-before").unwrap();
    assert!(told.text.starts_with("1 of 10 runs: run 7 may have sent"), "{}", told.text);
}
