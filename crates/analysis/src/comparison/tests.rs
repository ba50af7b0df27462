//! Sides made of whole summaries: what is compared with what, what is refused, and what decides.

mod quantities;
mod suites;
mod truth;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::Simulated;
use inferometer_model::spec::Lengths;

use super::*;
use crate::fixture::calm;
use crate::metric::{LatencyOrigin, METRICS, MetricValue};
use crate::run::{ExtentFacts, LoadFacts};
use crate::statistics::Interval;
use crate::summary::{Summary, summarize};
use crate::tool_result::ToolResult;

/// A run with this output throughput; all else is the calm run's.
fn run(seed: u64, throughput: f64) -> Summary {
    let mut summary = summarize(&calm());
    summary.verdict = Verdict::Valid;
    summary.run.id = format!("run-{seed}-{throughput}");
    summary.run.seed = seed;
    summary.plan.fingerprint = format!("plan-{seed}");
    // Who states it is not told that it is unknown.
    summary.run.metadata.insert("gpu".to_owned(), "H100".to_owned());
    let values = summary.metrics.iter().map(|(metric, value)| {
        let mut value = value.clone();
        if let (MetricValue::Scalar(scalar), "output_throughput") = (&mut value, metric.name) {
            scalar.value = Some(throughput);
            scalar.interval = Interval::new(throughput * 0.99, throughput * 1.01);
        }
        (metric, value)
    });
    summary.metrics = values.collect();
    summary
}

pub(super) fn at(concurrency: u32, mut summary: Summary) -> Summary {
    if let LoadFacts::Closed { concurrency: found, .. } = &mut summary.run.load {
        *found = concurrency;
    }
    summary.workload.fingerprint = format!("w-{concurrency}");
    summary
}

pub(super) fn side(name: &str, runs: Vec<Summary>) -> Side<Summary> {
    Side {
        name: name.to_owned(),
        source: format!("set-{name}"),
        results: runs,
        rows: Vec::new(),
        failed: Vec::new(),
        suite: None,
    }
}

pub(super) fn runs(seed: u64, throughputs: &[f64]) -> Vec<Summary> {
    (seed..).zip(throughputs).map(|(seed, throughput)| run(seed, *throughput)).collect()
}

pub(super) fn terms() -> Terms {
    Terms { primary: None, margins: Margins::DEFAULT, force: false, layouts: None }
}

pub(super) fn compare(sides: &[Side<Summary>]) -> Comparison {
    Comparison::new(sides, &terms()).unwrap()
}

fn refusal(sides: &[Side<Summary>]) -> Vec<Objection> {
    match Comparison::new(sides, &terms()) {
        Err(ComparisonProblem::NotComparable(objections)) => objections,
        other => panic!("refused nothing: {other:?}"),
    }
}

const BASE: [f64; 5] = [1_000.0, 1_010.0, 990.0, 1_005.0, 995.0];
const SLOW: [f64; 5] = [900.0, 912.0, 893.0, 905.0, 890.0];

#[test]
fn slower_runs_are_a_regression_and_faster_ones_are_not() {
    let [base, slow] = [runs(1, &BASE), runs(11, &SLOW)];
    let found = compare(&[side("A", base.clone()), side("B", slow.clone())]);
    assert_eq!(found.primary, "output_throughput");
    assert_eq!(found.outcomes[0].judgement, Judgement::Worse);
    assert_eq!(found.outcomes[0].basis, Basis::Unpaired);
    assert!(found.is_regression());
    let back = compare(&[side("A", slow), side("B", base)]);
    assert_eq!(back.outcomes[0].judgement, Judgement::Better);
    assert!(!back.is_regression());
}

#[test]
fn the_same_seeds_are_compared_in_pairs_whatever_their_order() {
    let mut other = runs(1, &BASE.map(|value| value * 1.001));
    other.reverse();
    let found = compare(&[side("A", runs(1, &BASE)), side("B", other)]);
    let primary = &found.levels[0].against[0].quantities[0];
    assert_eq!((primary.basis, primary.judgement), (Basis::Paired, Judgement::Same));
    assert!((primary.change.unwrap().value - 1.001).abs() < 1e-9);
    let twice = vec![run(1, 1.0), run(1, 1.1)];
    let found = compare(&[side("A", twice.clone()), side("B", runs(1, &[1.0, 1.2]))]);
    assert_eq!(
        found.outcomes[0].basis,
        Basis::Unpaired,
        "a seed that is there twice pairs nothing"
    );
}

#[test]
fn one_run_a_side_never_is_a_regression() {
    let found = compare(&[side("A", runs(1, &[1_000.0])), side("B", runs(2, &[500.0]))]);
    assert_eq!(found.outcomes[0].judgement, Judgement::Worse);
    assert_eq!(found.outcomes[0].basis, Basis::WithinRun);
    assert!(!found.is_regression());
    assert!(found.levels[0].against[0].quantities.iter().all(|found| found.permutation.is_none()));
}

#[test]
fn invalid_runs_are_left_out_and_counted() {
    let mut other = runs(11, &[900.0, 901.0, 5.0]);
    other[2].verdict = Verdict::Invalid;
    let found = compare(&[side("A", runs(1, &BASE)), side("B", other.clone())]);
    assert_eq!((found.sides[1].left_out, found.levels[0].against[0].runs), (1, 2));
    assert!(found.objections.iter().any(|found| found.key == "invalid_runs"));
    for run in &mut other {
        run.verdict = Verdict::Invalid;
    }
    let found = compare(&[side("A", runs(1, &BASE)), side("B", other)]);
    assert!(!found.has_runs() && found.outcomes.is_empty() && !found.is_regression());
}

#[test]
fn another_stimulus_is_refused_and_named() {
    let differing = |change: &dyn Fn(&mut Summary)| {
        let mut other = run(1, 1_000.0);
        other.workload.fingerprint = "another".to_owned();
        change(&mut other);
        let found = refusal(&[side("A", runs(1, &[1_000.0])), side("B", vec![other])]);
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].key.clone(), found[0].text.clone())
    };
    let longer = differing(&|run| run.workload.input_tokens = Some(Lengths::Fixed(1_024)));
    assert_eq!(longer.0, "input_tokens");
    assert!(longer.1.contains("512 in the base, 1024 in B"), "{}", longer.1);
    let fewer = differing(&|run| run.run.extent = ExtentFacts::Requests(7));
    assert_eq!(fewer.0, "extent");
    assert!(fewer.1.contains(" in the base, 7") && !fewer.1.contains('{'), "{}", fewer.1);
    assert_eq!(differing(&|run| run.run.api = Api::Chat).0, "api");
    assert_eq!(differing(&|run| run.run.streaming = !run.run.streaming).0, "streaming");
    let load = |run: &mut Summary| *run = at(16, run.clone());
    assert_eq!(differing(&load).0, "load");
    assert_eq!(differing(&|_| {}).0, "workload");
    let simulated = |run: &mut Summary| {
        run.workload.fingerprint = "w-1".to_owned();
        let (profile, engine) = ("p".to_owned(), "e".to_owned());
        run.run.simulated =
            Some(Simulated { profile, engine, model_error: None, prediction: None });
    };
    assert_eq!(differing(&simulated).0, "simulated");
}

#[test]
fn force_goes_on_and_the_document_says_so() {
    let sides = [
        side("A", runs(1, &BASE)),
        side("B", runs(1, &SLOW).into_iter().map(|run| at(16, run)).collect()),
    ];
    assert_eq!(refusal(&sides)[0].key, "load");
    let found = Comparison::new(&sides, &Terms { force: true, ..terms() }).unwrap();
    assert!(found.forced && found.has_runs());
    assert_eq!(found.objections[0].weight, Weight::Forbids);
}

#[test]
fn who_counted_tokens_otherwise_is_not_compared_in_tokens() {
    let mut other = runs(11, &BASE);
    for run in &mut other {
        run.tokens.output_source =
            crate::record::OutputSources { events: 40, ..Default::default() };
    }
    let found = compare(&[side("A", runs(1, &BASE)), side("B", other)]);
    let judged = |name: &str| found.levels[0].quantity(0, name).unwrap();
    for name in ["output_throughput", "total_throughput", "tpot.p50"] {
        assert_eq!(judged(name).judgement, Judgement::NotCompared, "{name}");
        assert!(
            judged(name).reason.as_ref().unwrap().contains("output token counts differs"),
            "{name}"
        );
    }
    assert_ne!(judged("request_throughput").judgement, Judgement::NotCompared);
    assert_ne!(judged("ttft.p50").judgement, Judgement::NotCompared);
    assert!(found.outcomes[0].reason.is_some() && !found.is_regression());
}

#[test]
fn another_model_is_a_warning() {
    let mut other = runs(11, &BASE);
    for run in &mut other {
        run.run.model = "larger".to_owned();
    }
    let found = compare(&[side("A", runs(1, &BASE)), side("B", other)]);
    assert_eq!(found.objections.len(), 1);
    assert_eq!(
        (found.objections[0].key.as_str(), found.objections[0].weight),
        ("model", Weight::Warning)
    );
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let sides = [side("A", runs(1, &BASE)), side("B", runs(1, &BASE))];
    assert_eq!(refusal(&sides)[0].key, "same_run");
    let forced = Comparison::new(&sides, &Terms { force: true, ..terms() }).unwrap();
    assert_eq!(forced.objections[0].key, "same_run");
}

#[test]
fn sweeps_are_matched_level_by_level_and_decide_together() {
    let sweep = |seed: u64, factor: f64, levels: &[u32]| -> Vec<Summary> {
        let runs = levels.iter().flat_map(|level| {
            let scale = f64::from(*level);
            runs(seed, &BASE.map(|value| value * scale * factor))
                .into_iter()
                .map(|run| at(*level, run))
        });
        runs.collect()
    };
    let sides = [side("A", sweep(1, 1.0, &[16, 8, 4])), side("B", sweep(11, 0.9, &[8, 16, 32]))];
    let found = compare(&sides);
    let levels: Vec<String> = found.levels.iter().map(|level| level.at.to_string()).collect();
    assert_eq!(levels, ["c=8", "c=16"]);
    let unmatched: Vec<(String, &[String])> = found
        .unmatched
        .iter()
        .map(|level| (level.at.to_string(), level.sides.as_slice()))
        .collect();
    assert_eq!(
        unmatched,
        [("c=4".to_owned(), &["A".to_owned()][..]), ("c=32".to_owned(), &["B".to_owned()][..]),]
    );
    assert!(found.is_regression());
    let (outcome, level) =
        (&found.outcomes[0], found.levels[0].quantity(0, "output_throughput").unwrap());
    let width = |change: Change| change.interval.high - change.interval.low;
    assert!(width(outcome.change.unwrap()) < width(level.change.unwrap()), "two levels know more");
    let apart = [side("A", sweep(1, 1.0, &[4, 8])), side("B", sweep(1, 1.0, &[16, 32]))];
    let problem = Comparison::new(&apart, &terms()).unwrap_err();
    assert!(matches!(problem, ComparisonProblem::NoCommonLevel(_)), "{problem}");
}

#[test]
fn a_level_that_says_nothing_is_named_and_the_others_decide() {
    let sweep = |seed: u64, factor: f64| -> Vec<Summary> {
        let levels = [4, 8, 16].into_iter();
        levels
            .flat_map(|level| {
                runs(seed, &BASE.map(|v| v * factor)).into_iter().map(move |run| at(level, run))
            })
            .collect()
    };
    let (base, mut other) = (sweep(1, 1.0), sweep(11, 0.9));
    let silence = |run: &mut Summary| *run = without_throughput(run.clone());
    other.iter_mut().take(BASE.len()).for_each(silence);
    let found = compare(&[side("A", base.clone()), side("B", other.clone())]);
    let outcome = &found.outcomes[0];
    assert_eq!((outcome.judgement, outcome.regression), (Judgement::Worse, true));
    assert_eq!(outcome.reason, None);
    let [without] = outcome.without.as_slice() else { panic!("{:?}", outcome.without) };
    assert_eq!(
        (without.at.to_string().as_str(), without.reason.as_str()),
        ("c=4", "no run of one side has it")
    );
    assert!(!found.decides_nothing());

    other.iter_mut().for_each(silence);
    let found = compare(&[side("A", base), side("B", other)]);
    let outcome = &found.outcomes[0];
    assert_eq!(outcome.judgement, Judgement::NotCompared);
    assert!(found.decides_nothing() && found.has_runs() && outcome.without.is_empty());
    assert_eq!(outcome.reason.as_deref(), Some("no run of one side has it (c=4)"));
}

/// A run that does not have what decides.
fn without_throughput(mut summary: Summary) -> Summary {
    let values = summary.metrics.iter().map(|(metric, value)| {
        let mut value = value.clone();
        if let (MetricValue::Scalar(scalar), "output_throughput") = (&mut value, metric.name) {
            (scalar.value, scalar.interval) = (None, None);
        }
        (metric, value)
    });
    summary.metrics = values.collect();
    summary
}

#[test]
fn several_sides_share_one_chance_of_a_false_alarm() {
    let sides = |count: u64| -> Vec<Side<Summary>> {
        let others =
            (0..count).map(|place| side(&format!("B{place}"), runs(100 + 10 * place, &SLOW)));
        [side("A", runs(1, &BASE))].into_iter().chain(others).collect()
    };
    let (one, three) = (compare(&sides(1)), compare(&sides(3)));
    assert!((one.primary_confidence - 0.95).abs() < 1e-12);
    assert!((three.primary_confidence - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    let width = |found: &Comparison, name: &str| {
        let interval = found.levels[0].quantity(0, name).unwrap().change.unwrap().interval;
        interval.high - interval.low
    };
    assert!(1.2 * width(&one, "output_throughput") < width(&three, "output_throughput"));
    assert!((width(&one, "ttft.p50") - width(&three, "ttft.p50")).abs() < 1e-12);
}

#[test]
fn what_has_no_good_direction_decides_nothing_and_says_why() {
    let primary = METRICS.iter().find(|metric| {
        metric.better == crate::metric::Better::Neither
            && metric.shape() == crate::metric::Shape::Scalar
    });
    let primary = primary.map(|metric| Quantity::from(*metric));
    let sides = [side("A", runs(1, &BASE)), side("B", runs(11, &SLOW))];
    let found = Comparison::new(&sides, &Terms { primary, ..terms() }).unwrap();
    assert!(found.decides_nothing() && found.outcomes[0].reason.is_some(), "{:?}", found.outcomes);
}

#[test]
fn advice_says_what_so_few_runs_can_reach_and_counts_the_comparisons() {
    let found = compare(&[side("A", runs(1, &BASE[..3])), side("B", runs(11, &SLOW[..3]))]);
    let quantities = &found.levels[0].against[0].quantities;
    let primary = quantities[0].permutation.unwrap();
    assert!((primary.p - 0.1).abs() < 1e-12 && (primary.smallest_attainable - 0.1).abs() < 1e-12);
    assert_eq!(primary.holm, None);
    let others = || quantities[1..].iter().filter_map(|found| found.permutation);
    assert!(others().all(|test| test.p <= test.false_discovery.unwrap()));
    assert!(others().all(|test| test.false_discovery.unwrap() <= test.holm.unwrap()));
    assert_eq!(found.comparisons as usize, 1 + others().count());
}

#[test]
fn what_is_said_to_decide_decides() {
    let primary = Some(Quantity::named("ttft.p50", LatencyOrigin::Sent).unwrap());
    let sides = [side("A", runs(1, &BASE)), side("B", runs(11, &SLOW))];
    let found = Comparison::new(&sides, &Terms { primary, ..terms() }).unwrap();
    assert_eq!(found.primary, "ttft.p50");
    assert_eq!(found.levels[0].against[0].quantities[0].quantity, "ttft.p50");
    assert_eq!(found.outcomes[0].judgement, Judgement::Same);
    assert!(!found.is_regression(), "the throughput is worse, and does not decide");
}

#[test]
fn fewer_than_two_sides_are_no_comparison() {
    for (sides, count) in [(vec![], 0), (vec![side("A", runs(1, &BASE))], 1)] {
        let problem = Comparison::new(&sides, &terms()).unwrap_err();
        assert_eq!(problem, ComparisonProblem::FewSides(count));
    }
}

#[test]
fn a_document_reads_back_as_it_was_written() {
    let sides = [side("A", runs(1, &BASE)), side("B", runs(11, &SLOW))];
    let degrees = [("A".to_owned(), 8), ("B".to_owned(), 4)];
    let named = ["A", "B"].map(|name| (name, None));
    let layouts = Some(Layouts::new(8, &degrees, &named).unwrap());
    let found = Comparison::new(&sides, &Terms { layouts, ..terms() }).unwrap();
    let read: Comparison = serde_json::from_slice(&found.to_json_bytes()).unwrap();
    assert_eq!(read, found);
    let [one, two] = found.layouts.as_slice() else { panic!("{:?}", found.layouts) };
    assert_eq!((one.replicas, two.replicas), (1, 2));
    assert!((one.per_gpu.value - 125.0).abs() < 1e-9 && (one.node.value - 1_000.0).abs() < 1e-9);
    let change = two.change.unwrap();
    assert!((change.value - 2.0 * found.outcomes[0].change.unwrap().value).abs() < 1e-12);
}

#[test]
fn every_fact_and_trouble_has_its_texts() {
    let texts = |noun: &str, key: &str| {
        let found = &FACTS[noun][key];
        assert!(!found.what.is_empty() && !found.remedy.is_empty(), "{noun} {key}");
    };
    let own =
        runs::SIMULATED.iter().chain(&runs::WORKLOAD).chain(&runs::FACTS).chain(&runs::SYSTEM);
    own.for_each(|(key, _)| texts(Summary::NOUN, key));
    let foreign = tool_results::LOAD_FACTS.iter().chain(&tool_results::SUBJECT_FACTS);
    foreign.for_each(|(key, _)| texts(ToolResult::NOUN, key));
    let troubles = <Summary as Compared>::troubles(&empty_side());
    let foreign = <ToolResult as Compared>::troubles(&empty_side());
    let own = ["invalid_runs", "degraded_runs"].map(|key| (key, 0));
    for (key, _) in own.into_iter().chain(troubles).chain(foreign) {
        texts("troubles", key);
    }
}

fn empty_side<R>() -> Side<R> {
    Side {
        name: String::new(),
        source: String::new(),
        results: Vec::new(),
        rows: Vec::new(),
        failed: Vec::new(),
        suite: None,
    }
}
