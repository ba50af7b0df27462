//! Facts and the findings made from them: on published figures, and on made-up sets.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod causes;
mod comparing;
mod made;
mod places;
mod published;
mod reading;

use inferometer_analysis::Unit;
use inferometer_analysis::set::FoundLimit;
use inferometer_report::narrative::claims::{self, ReasonKind, Ruling, Scope};
use inferometer_report::narrative::findings;
use inferometer_report::narrative::{Author, FactUnit, Facts, Narrative};
use inferometer_report::pages::{self, SuiteInput};
use serde_json::{Value, json};

use crate::narrative::made::{MadeSet, rates, repeated, suite, summary, sweep, unchanged};
use crate::narrative::reading::{all, check, page, words};

fn value(facts: &Facts, scenario: Option<&str>, quantity: &str, statistic: Option<&str>) -> f64 {
    facts.facts[facts.find(scenario, quantity, statistic).unwrap()].value
}

fn narrated(made: &MadeSet) -> String {
    let facts = Facts::from_set(&made.set, &made.points);
    let narrative = findings::from_set(&made.set, &made.points, &facts);
    check(&narrative, &facts);
    page(&narrative)
}

#[test]
fn published_figures_are_told_as_they_are() {
    insta::assert_snapshot!(narrated(&published::mi100()));
}

#[test]
fn published_figures_give_their_own_answers() {
    let made = published::mi100();
    let text = narrated(&made);
    for known in [
        "sweet spot is c=32 with an output throughput of 387.1 tok/s, a TTFT p99 of 376.3 ms",
        "highest throughput is 387.1 tok/s at c=32",
        "saturates at c=16: the step to c=32 adds 0.6 % and each user loses 49.7 %",
        "TTFT p99 is 3,402 ms, 3.0 times its median of 1,140 ms",
        "Prefill speed is 8,893 tok/s, 4.7 times the 1,892 tok/s of Single User Latency",
    ] {
        assert!(text.contains(known), "{known}\n{text}");
    }
    let facts = Facts::from_set(&made.set, &made.points);
    let (spot, printed) = (Some("Concurrency Scaling (c=4)"), |quantity| {
        let place = facts.find(Some("Concurrency Scaling (c=4)"), quantity, None);
        facts.facts[place.unwrap()].printed.clone()
    });
    assert_eq!(format!("{:.1}", value(&facts, spot, "per_user_throughput", None)), "42.0");
    assert_eq!([printed("pp"), printed("tg")], ["8,893", "45.19"]);
}

#[test]
fn a_suite_is_told() {
    insta::assert_snapshot!(narrated(&suite(1, 1, unchanged)));
}

#[test]
fn a_sweep_is_told() {
    insta::assert_snapshot!(narrated(&sweep(2, 3, &["stock"])));
}

#[test]
fn rates_that_are_not_served_are_told() {
    let text = narrated(&rates(2, 2));
    assert!(text.contains("The server keeps up with 8.00 req/s; of 16.00 req/s"), "{text}");
}

#[test]
fn a_run_is_told() {
    let run = summary(&serde_json::from_slice(include_bytes!("../summary.json")).unwrap());
    let facts = Facts::from_run(&run);
    let narrative = findings::from_run(&run, &facts);
    check(&narrative, &facts);
    insta::assert_snapshot!(page(&narrative));
}

#[test]
fn every_number_of_every_sentence_is_a_fact() {
    for seed in 0..12 {
        let runs = 1 + seed % 3;
        let sets = [
            suite(seed, runs, unchanged),
            sweep(seed, runs, &["stock"]),
            sweep(seed, runs, &["stock", "tuned 2"]),
            repeated(seed, runs),
            rates(seed, runs),
        ];
        for made in sets {
            assert!(!narrated(&made).contains("–"), "a dash is no number");
        }
        let run = summary(&made::document(seed, 1 + seed % 20));
        let facts = Facts::from_run(&run);
        check(&findings::from_run(&run, &facts), &facts);
    }
}

#[test]
fn facts_are_finite_and_told_apart() {
    for made in [suite(3, 2, unchanged), sweep(3, 1, &["a", "b"]), repeated(3, 5)] {
        let facts = Facts::from_set(&made.set, &made.points);
        let mut abouts: Vec<_> = facts.facts.iter().map(|fact| &fact.about).collect();
        abouts.sort();
        assert!(abouts.windows(2).all(|two| two[0] != two[1]), "{abouts:#?}");
        for fact in &facts.facts {
            assert!(fact.value.is_finite() && !fact.table.is_empty(), "{fact:?}");
            assert!(
                fact.unit != FactUnit::Metric(Unit::Share) || fact.printed.ends_with('%'),
                "{fact:?}"
            );
        }
    }
}

#[test]
fn what_has_no_value_has_no_sentence() {
    let without = |change: fn(&mut Value), words: &[&str]| {
        let text = narrated(&suite(5, 1, change));
        for word in words {
            assert!(!text.contains(word), "{word}: {text}");
        }
    };
    let whole = narrated(&suite(5, 1, unchanged));
    for word in ["TTFT", "TPOT", "er-user", "utput throughput", "preempted"] {
        assert!(whole.contains(word), "{word}: {whole}");
    }
    without(|document| nothing(document, "ttft_ms", "pp"), &["TTFT", "refill speed"]);
    without(|document| nothing(document, "tpot_ms", "tg"), &["TPOT", "Decode"]);
    without(
        |document| nothing(document, "itl_ms", "per_user_throughput"),
        &["ITL", "per user", "er-user", "each user"],
    );
    without(|document| document["server"] = Value::Null, &["KV cache", "preempted", "queue,"]);
}

/// A distribution and a number without values.
fn nothing(document: &mut Value, distribution: &str, scalar: &str) {
    let found = document["metrics"][distribution].as_object_mut().unwrap();
    for (_, value) in found.iter_mut().filter(|(key, _)| !["n", "intervals"].contains(&&***key)) {
        *value = Value::Null;
    }
    (found["n"], found["not_certified"]) = (0.into(), json!([]));
    document["metrics"][scalar]["value"] = Value::Null;
}

#[test]
fn the_machine_is_named_where_it_is_known() {
    let on_gpus = |document: &mut Value| {
        let gpu = json!({ "name": "Example 80GB" });
        document["system"] =
            json!({ "server": { "machine": { "gpus": [gpu, gpu, gpu, gpu] } }, "client": null });
    };
    let text = narrated(&suite(1, 1, on_gpus));
    let known = "example/model-24b was measured on 4× Example 80GB by the suite standard";
    assert!(text.contains(known), "{text}");
}

#[test]
fn a_search_says_what_it_found() {
    let mut made = rates(2, 1);
    made.set.limits.push(FoundLimit {
        condition: 0,
        goals: vec!["ttft.p99<500ms".to_owned()],
        level: Some(4.0),
        lowest_missed: Some(8.0),
        confirmed: false,
        open_ended: false,
        runs: 4,
        undecided: Vec::new(),
        words: String::new(),
    });
    let text = narrated(&made);
    let known = "The highest level that meets ttft.p99<500ms is 4 req/s; no further run has";
    assert!(text.contains(known), "{text}");
}

#[test]
fn failures_come_first() {
    let failing = |document: &mut Value| {
        (document["outcomes"]["ok"], document["outcomes"]["rejected"]) = (25.into(), 5.into());
        document["failures"] = json!([{
            "outcome": "rejected", "cause": null, "stage": "first_token", "status": 503, "count": 5,
            "first_ms": 1.0, "last_ms": 2.0, "example": "busy\u{1b}[2J",
        }]);
    };
    let made = suite(1, 1, failing);
    let facts = Facts::from_set(&made.set, &made.points);
    let narrative = findings::from_set(&made.set, &made.points, &facts);
    let first = words(&narrative.scenarios["Single User"][0].text);
    assert!(first.starts_with("5 of 30 requests failed; the most frequent class is rejected."));
    let text = page(&narrative);
    assert!(text.contains("Look at the failures first: 5 requests failed in "), "{text}");
    assert!(!text.contains("busy"), "a server's words are no finding");
}

#[test]
fn a_warm_cache_is_told_with_its_share() {
    let warm = |document: &mut Value| {
        document["workload"]["audit"]["cache"]["share"] = 0.625.into();
        document["verdict"] = "degraded".into();
        document["warnings"] = json!([{
            "key": "cache-contamination", "severity": "degraded", "text": "x", "remedy": "y",
        }]);
    };
    let text = narrated(&suite(1, 1, warm));
    for known in [
        "62.5 % of the input came from the prefix cache though every prompt was meant to be new",
        "The prefix cache held prompts that were meant to be new, up to 62.5 %",
        "inferometer suite standard --seed N",
        "The result is degraded (degraded levels: 5 of 5; levels with an invalid run: 0).",
    ] {
        assert!(text.contains(known), "{known}\n{text}");
    }
}

#[test]
fn levels_whose_intervals_overlap_are_not_told_apart() {
    let flat = |document: &mut Value| {
        let found = &mut document["metrics"]["output_throughput"];
        found["interval"] = json!({ "low": 1.0, "high": 1_000.0 });
    };
    assert!(narrated(&suite(1, 1, flat)).contains("cannot be distinguished"));
    let sharp = |document: &mut Value| {
        let found = &mut document["metrics"]["output_throughput"];
        found["interval"] = json!({ "low": found["value"], "high": found["value"] });
    };
    assert!(!narrated(&suite(1, 1, sharp)).contains("cannot be distinguished"));
}

/// Rules speak of causes and commands too, which the checker of claims does not read; whatever it
/// reads to the end must hold.
#[test]
fn the_checker_of_claims_contradicts_no_finding() {
    let made = published::mi100();
    let facts = Facts::from_set(&made.set, &made.points);
    let mut held = contradicted(&findings::from_set(&made.set, &made.points, &facts), &facts);
    for seed in 0..12 {
        let made = suite(seed, 1 + seed % 3, unchanged);
        let facts = Facts::from_set(&made.set, &made.points);
        held += contradicted(&findings::from_set(&made.set, &made.points, &facts), &facts);
    }
    assert!(50 < held, "{held}");
}

/// How many sentences hold; none that was read may be wrong.
fn contradicted(narrative: &Narrative, facts: &Facts) -> usize {
    let page = all(narrative).into_iter().map(|sentence| (Scope::Page, sentence));
    let page =
        page.filter(|(_, one)| !narrative.scenarios.values().flatten().any(|own| own == *one));
    let rows = narrative.scenarios.iter().flat_map(|(name, sentences)| {
        sentences.iter().map(|sentence| (Scope::Scenario(name), sentence))
    });
    let mut held = 0;
    for (scope, sentence) in page.chain(rows) {
        let text = words(&sentence.text);
        match claims::check(&text, scope, facts) {
            Ruling::Holds { .. } => held += 1,
            Ruling::Uncheckable { .. } => {}
            Ruling::Fails { reasons } => {
                let is_read =
                    !reasons.iter().any(|reason| reason.kind == ReasonKind::UncheckedClause);
                assert!(!is_read, "{scope:?}: {text}\n{reasons:?}");
            }
        }
    }
    held
}

#[test]
fn links_lead_to_where_the_numbers_stand() {
    let sets = [suite(1, 1, unchanged), suite(4, 3, unchanged), sweep(2, 3, &["stock"])];
    for made in sets {
        let facts = Facts::from_set(&made.set, &made.points);
        let narrative = findings::from_set(&made.set, &made.points, &facts);
        // The page without the words, or they would prove themselves.
        let input =
            SuiteInput { set: &made.set, points: &made.points, narrative: &Narrative::default() };
        places::check(&narrative, &pages::of_set(&input));
    }
    let run = summary(&made::document(3, 8));
    let facts = Facts::from_run(&run);
    places::check(&findings::from_run(&run, &facts), &pages::run(&run, &Narrative::default()));
}

#[test]
fn what_was_never_measured_has_nothing_to_say() {
    let unmeasured = [
        made::suite_of(&[], ("Scaling", &[]), &[]),
        made::suite_of(&[], ("Scaling", &[2, 4]), &[]),
        made::suite_of(&[("bare", 1)], ("Scaling", &[2, 4]), &[]),
    ];
    for none in unmeasured {
        let facts = Facts::from_set(&none.set, &none.points);
        let narrative = findings::from_set(&none.set, &none.points, &facts);
        let Narrative { author, summary, scenarios, scaling, uncertainties, recommendations } =
            narrative;
        assert_eq!(author, Author::Rules);
        assert_eq!(summary, []);
        assert!(scenarios.values().all(Vec::is_empty), "{scenarios:?}");
        assert_eq!(scaling, []);
        assert_eq!(uncertainties, []);
        assert_eq!(recommendations, []);
    }
    // The same sections have sentences where something was published.
    let known = published::mi100();
    let facts = Facts::from_set(&known.set, &known.points);
    let narrative = findings::from_set(&known.set, &known.points, &facts);
    let Narrative { author: _, summary, scenarios, scaling, uncertainties, recommendations } =
        narrative;
    assert!(!scenarios.is_empty() && scenarios.values().all(|sentences| !sentences.is_empty()));
    for sentences in [summary, scaling, uncertainties, recommendations] {
        assert!(!sentences.is_empty());
    }
}
