//! What is compared with what: peaks, saturation, levels that do not count, and rows that nobody can
//! tell apart.

use serde_json::{Value, json};

use crate::narrative::made::{Change, rates, suite, sweep_with};
use crate::narrative::narrated;
use crate::narrative::reading::says;

/// The throughput of a level, known to within a share of it.
fn throughput(document: &mut Value, value: f64, within: f64) {
    let users = document["run"]["load"]["concurrency"].as_f64().unwrap();
    for (name, value) in [("output_throughput", value), ("per_user_throughput", value / users)] {
        let found = &mut document["metrics"][name];
        found["value"] = value.into();
        found["interval"] =
            json!({ "low": value * (1.0 - within), "high": value * (1.0 + within) });
    }
}

fn users(document: &Value) -> u64 {
    document["run"]["load"]["concurrency"].as_u64().unwrap()
}

fn says_nothing_of(text: &str, wrong: &[&str]) {
    for words in wrong {
        assert!(!text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn a_peak_of_the_scaling_levels_is_not_that_of_all() {
    let single_is_fastest: Change = |document| {
        if users(document) == 1 {
            throughput(document, 900.0, 0.01);
        }
    };
    let text = narrated(&suite(1, 1, single_is_fastest));
    says(
        &text,
        &[
            "The highest throughput of the scaling levels is 296.7 tok/s at c=16; Single User has \
             900.0 tok/s.",
            "For throughput use c=16: 296.7 tok/s, the most of these levels.",
        ],
    );
    let as_much: Change = |document| {
        if users(document) == 1 {
            throughput(document, 296.0, 0.01);
        }
    };
    says(&narrated(&suite(1, 1, as_much)), &["; Single User has 296.0 tok/s."]);
}

/// Six levels from 1 to 32 users.
fn curve(document: &mut Value, values: [f64; 6], within: f64) {
    let place = usize::try_from(users(document).ilog2()).unwrap();
    throughput(document, values[place], within);
}

#[test]
fn a_small_step_is_no_saturation_where_later_ones_are_large() {
    let late: Change =
        |document| curve(document, [100.0, 105.0, 200.0, 390.0, 700.0, 1_200.0], 0.005);
    let text = narrated(&sweep_with(1, 1, late));
    says_nothing_of(&text, &["saturates"]);
    says(&text, &["The last step, to c=32, still adds 71.4 %"]);
    let bent: Change =
        |document| curve(document, [100.0, 190.0, 300.0, 305.0, 300.0, 310.0], 0.005);
    let text = narrated(&sweep_with(1, 1, bent));
    says(&text, &["Output throughput saturates at c=4: the step to c=8 adds 1.7 %"]);
    says_nothing_of(&text, &["Measure higher levels"]);
}

#[test]
fn wide_intervals_tell_nothing_of_saturation() {
    let vague: Change = |document| curve(document, [100.0, 190.0, 300.0, 305.0, 300.0, 310.0], 0.2);
    let text = narrated(&sweep_with(1, 1, vague));
    says(
        &text,
        &["Whether output throughput saturates at c=4 is uncertain: the step to c=8 adds 1.7 %"],
    );
    says_nothing_of(&text, &["Output throughput saturates"]);
}

#[test]
fn a_level_that_was_never_reached_is_in_no_comparison() {
    let few: Change = |document| {
        if users(document) == 32 {
            for name in ["concurrency_peak", "concurrency_mean"] {
                document["metrics"][name]["value"] = 20.0.into();
            }
            throughput(document, 5_000.0, 0.01);
        }
    };
    let text = narrated(&sweep_with(1, 1, few));
    says(
        &text,
        &[
            "Levels that were not reached: c=32 (at most 20 in flight; 30 requests in total). They are \
             in no comparison.",
            "Per-user throughput falls from 56.65 tok/s at c=1 to 18.54 tok/s at c=16.",
            "At most 20 of the 32 users were ever in flight",
            "For throughput use c=16: 296.7 tok/s, the most of these levels.",
        ],
    );
    let scaling = text.split("\n# ").find(|part| part.starts_with("Scaling")).unwrap();
    says_nothing_of(scaling, &["5000.00", "to c=32"]);
    says_nothing_of(&text, &["peak at c=32", "highest throughput is 5000.00"]);
}

#[test]
fn a_level_that_was_cut_is_in_no_comparison() {
    let cut: Change = |document| {
        if users(document) == 32 {
            throughput(document, 5_000.0, 0.01);
            (document["outcomes"]["ok"], document["outcomes"]["cancelled"]) =
                (20.into(), 10.into());
            for name in ["tpot_ms", "ttft_ms"] {
                document["metrics"][name]["mean"] = 0.001.into();
                document["metrics"][name]["intervals"]["mean"] =
                    json!({ "low": 0.0, "high": 0.001 });
            }
        }
    };
    let made = sweep_with(1, 1, cut);
    assert!(made.set.conditions[0].levels[5].cut.as_ref().unwrap().answers_missing);
    let text = narrated(&made);
    says(&text, &["A time limit ended runs before their answers had come at c=32: they are in no"]);
    let summary = text.split("\n# ").find(|part| part.starts_with("Summary")).unwrap();
    let scaling = text.split("\n# ").find(|part| part.starts_with("Scaling")).unwrap();
    for part in [summary, scaling] {
        says_nothing_of(part, &["c=32"]);
    }
}

#[test]
fn rows_that_cannot_be_told_apart_share_the_first_place() {
    // The second by its value has a narrow interval; the third, a wide one, reaches the first.
    let third_reaches: Change = |document| {
        let (value, within) = match users(document) {
            1 => (10.0, 0.01),
            2 => (12.0, 0.01),
            4 => (13.0, 0.5),
            _ => (100.0, 0.01),
        };
        document["metrics"]["tpot_ms"]["mean"] = value.into();
        document["metrics"]["tpot_ms"]["intervals"]["mean"] =
            json!({ "low": value * (1.0 - within), "high": value * (1.0 + within) });
    };
    says(
        &narrated(&sweep_with(1, 1, third_reaches)),
        &["not distinguishable from it: c=4 (13.00 ms)."],
    );
    let equal: Change = |document| {
        let value = if users(document) < 3 { 10.0 } else { 100.0 };
        let found = &mut document["metrics"]["tpot_ms"];
        found["mean"] = value.into();
        found["intervals"]["mean"] = Value::Null;
    };
    let text = narrated(&sweep_with(1, 1, equal));
    says(&text, &["not distinguishable from it: "]);
}

#[test]
fn a_rival_of_the_peak_need_not_be_the_second() {
    let fourth_reaches: Change = |document| {
        let (value, within) = match users(document) {
            32 => (1_000.0, 0.01),
            16 => (900.0, 0.01),
            8 => (800.0, 0.4),
            _ => (10.0, 0.01),
        };
        throughput(document, value, within);
    };
    let text = narrated(&sweep_with(1, 1, fourth_reaches));
    let known = "1,000 tok/s at c=32 and 800.0 tok/s at c=8 cannot be distinguished";
    says(&text, &[known, "; c=8 cannot be distinguished from it"]);
}

#[test]
fn where_no_level_meets_the_slos_there_is_no_sweet_spot() {
    let slow: Change = |document| {
        let ttft = &mut document["metrics"]["ttft_ms"];
        ttft["p99"] = 36_000.0.into();
        ttft["intervals"]["p99"] = Value::Null;
    };
    let text = narrated(&sweep_with(2, 1, slow));
    says_nothing_of(&text, &["nteractive", "sweet spot"]);
}

#[test]
fn an_overloaded_rate_is_told_in_its_own_place() {
    let text = narrated(&rates(2, 1));
    says(
        &text,
        &[
            "The server is overloaded at 16.00 req/s: it serves ",
            "Lower the rate to less than 16.00 req/s: the server falls behind",
        ],
    );
}
