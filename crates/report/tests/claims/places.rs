//! Where a sentence stands, and of which server it speaks.

use inferometer_analysis::Unit;
use inferometer_report::narrative::claims::{Ruling, Scope, check};
use inferometer_report::narrative::{FactUnit, Facts};

use crate::claims::published::{add_row, r1};

fn holds(text: &str, scenario: &str, facts: &Facts) -> bool {
    let scope = if scenario.is_empty() { Scope::Page } else { Scope::Scenario(scenario) };
    matches!(check(text, scope, facts), Ruling::Holds { .. })
}

fn assert_ruled(facts: &Facts, scenario: &str, expected: bool, texts: &[&str]) {
    for text in texts {
        assert_eq!(holds(text, scenario, facts), expected, "{text} [{scenario}]");
    }
}

#[test]
fn a_section_speaks_of_its_own_scenario() {
    let facts = r1();
    let elsewhere = [
        "Output throughput rises from 97.72 tok/s to 387.1 tok/s.",
        "Output throughput rises from 97.72 tok/s at c=2 to 387.1 tok/s at c=32.",
        "Output throughput rises with concurrency.",
        "TTFT mean at c=4 (115.15 ms) is lower than at c=8 (2097.25 ms).",
        "TTFT mean is 158.72 ms at c=8.",
        "TTFT of Concurrency Scaling is 2097.25 ms.",
        "The sweet spot is c=4.",
    ];
    assert_ruled(&facts, "Mixed Traffic", false, &elsewhere);
    let own = [
        "TTFT mean is 2097.25 ms at c=8.",
        "Output throughput of Concurrency Scaling rises from c=2 to c=32.",
        "TTFT in Mixed Traffic is higher than in Concurrency Scaling at c=8.",
    ];
    assert_ruled(&facts, "Mixed Traffic", true, &own);
    let scaling = [
        "Output throughput rises from 97.72 tok/s to 387.1 tok/s.",
        "Output throughput rises with concurrency.",
        "TTFT p99 is higher than at c=4.",
    ];
    assert_ruled(&facts, "Concurrency Scaling (c=8)", true, &scaling);
}

/// Two servers at the same levels: `stock` is slower than `quick`, and best at another level.
fn two_servers() -> Facts {
    let mut facts = Facts::default();
    for (server, users, tokens, p99) in [
        ("stock", 4_u32, 100.0, 400.0),
        ("stock", 8, 90.0, 500.0),
        ("quick", 4, 80.0, 900.0),
        ("quick", 8, 300.0, 300.0),
    ] {
        let numbers = [
            ("concurrency", f64::from(users)),
            ("output_throughput", tokens),
            ("per_user_throughput", tokens / f64::from(users)),
            ("ttft.p99", p99),
            ("tpot.p99", p99 / 10.0),
        ];
        add_row(&mut facts, &format!("{server} (c={users})"), users, &numbers);
    }
    add_row(&mut facts, "stock (c=4)", 4, &[("sweet_spot", 4.0)]);
    add_row(&mut facts, "quick (c=8)", 8, &[("sweet_spot", 8.0)]);
    facts
}

#[test]
fn each_level_is_of_the_server_that_it_stands_beside() {
    let facts = two_servers();
    let wrong = [
        "TTFT p99 of quick at c=8 is higher than of stock at c=4.",
        "TTFT p99 at c=8 of quick is higher than at c=4 of stock.",
        "TTFT p99 at c=4 is 400 ms.",
        "TTFT p99 at c=8 of quick is higher than at c=4.",
        "Output throughput of quick falls with concurrency.",
        "Output throughput falls with concurrency.",
        "Output throughput falls from 100 tok/s to 90 tok/s.",
        "TTFT p99 of quick is 500 ms at c=8.",
        "TTFT p99 of stock, quick at c=8 is 300 ms.",
        "The sweet spot of quick is c=4.",
        "The sweet spot of stock is c=8.",
        "The sweet spot is c=4.",
        "Peak throughput is 300 tok/s.",
    ];
    assert_ruled(&facts, "", false, &wrong);
    let right = [
        "TTFT p99 of quick at c=8 is lower than of stock at c=4.",
        "TTFT p99 at c=8 of quick is lower than at c=4 of stock.",
        "TTFT p99 of quick at c=8 is lower than at c=4.",
        "TTFT p99 of stock (c=4) is 400 ms.",
        "Output throughput of quick rises with concurrency.",
        "Output throughput of stock falls from 100 tok/s to 90 tok/s.",
        "The sweet spot of quick is c=8.",
        "The sweet spot of stock is c=4.",
    ];
    assert_ruled(&facts, "", true, &right);
    assert_ruled(&facts, "quick (c=4)", true, &["TTFT p99 at c=8 is 300 ms."]);
}

/// Shares of two levels, which per cent may be read as, or as a change.
fn shares(quantity: &str, (low, high): (f64, f64)) -> Facts {
    let mut facts = two_servers();
    facts.facts.retain(|fact| {
        fact.about.quantity == "output_throughput"
            && fact.about.scenario.as_deref().is_some_and(|name| name.starts_with("stock"))
    });
    for (fact, value) in facts.facts.iter_mut().zip([low, high]) {
        quantity.clone_into(&mut fact.about.quantity);
        fact.unit = FactUnit::Metric(Unit::Share);
        fact.value = value;
        fact.printed = format!("{:.1} %", value * 100.0);
        fact.better = inferometer_analysis::Better::Lower;
    }
    facts
}

#[test]
fn per_cent_of_a_share_is_its_value() {
    let cached = shares("cached_share", (0.10, 0.15));
    let wrong = [
        "Cached share rises from 50 % at c=4 to c=8.",
        "Cached share rises 50 % from c=4 to c=8.",
        "Cached share at c=8 is 50 % higher than at c=4.",
        "Cached share rises from c=4 to c=8 by 50 %.",
    ];
    assert_ruled(&cached, "", false, &wrong);
    let right = [
        "Cached share rises from 10 % at c=4 to 15 % at c=8.",
        "Cached share at c=8 is 15 %, higher than at c=4.",
    ];
    assert_ruled(&cached, "", true, &right);
    let errors = shares("error_rate", (0.02, 0.03));
    let wrong = [
        "Error rate at c=8 is 50 %, higher than at c=4.",
        "Error rate at c=8 is higher than 4 %.",
        "Error rate at c=4 is 2.4 %.",
    ];
    assert_ruled(&errors, "", false, &wrong);
    assert_ruled(&errors, "", true, &["Error rate at c=8 is higher than 2 %."]);
    let few = shares("error_rate", (0.004, 0.0));
    assert_ruled(
        &few,
        "",
        false,
        &["Error rate at c=4 is 0 %.", "Error rate at c=4 is about 0 %."],
    );
    assert_ruled(&few, "", true, &["Error rate at c=8 is 0 %."]);
    let slow = shares("error_rate", (0.0, 0.0));
    assert_ruled(&slow, "", true, &["Error rate at c=4 and c=8 is the same."]);
}

#[test]
fn a_thousand_is_no_rounding_of_five_hundred() {
    let mut facts = two_servers();
    facts.facts[0..].iter_mut().for_each(|fact| {
        if fact.about.quantity == "output_throughput" {
            fact.value = 501.0;
        }
    });
    let texts = [
        "Output throughput of stock at c=4 is 1k tok/s.",
        "Output throughput of stock at c=4 is nearly 1k tok/s.",
        "Output throughput of stock at c=4 is about 1k tok/s.",
    ];
    assert_ruled(&facts, "", false, &texts);
    assert_ruled(&facts, "", true, &["Output throughput of stock at c=4 is 501 tok/s."]);
}
