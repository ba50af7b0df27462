//! Sentences in any number, each with what the tables say of it.

use inferometer_report::narrative::Facts;
use inferometer_report::narrative::claims::{Ruling, Scope, check};
use proptest::prelude::*;

use crate::claims::published::r1;

const LEVELS: [u32; 5] = [2, 4, 8, 16, 32];
const METRICS: [(&str, &str); 2] = [("TTFT", "ttft"), ("TPOT", "tpot")];
const STATISTICS: [(&str, &str); 3] = [("mean", "mean"), ("median", "p50"), ("p99", "p99")];

type Cell = (usize, usize, usize);

fn cell() -> impl Strategy<Value = Cell> {
    (0..METRICS.len(), 0..STATISTICS.len(), 0..LEVELS.len())
}

/// The number that the published table has, found without the checker.
fn value(facts: &Facts, (metric, statistic, level): Cell) -> f64 {
    let scenario = format!("Concurrency Scaling (c={})", LEVELS[level]);
    let place = facts.find(Some(&scenario), METRICS[metric].1, Some(STATISTICS[statistic].1));
    facts.facts[place.expect("the table has it")].value
}

fn names((metric, statistic, level): Cell) -> (&'static str, &'static str, u32) {
    (METRICS[metric].0, STATISTICS[statistic].0, LEVELS[level])
}

fn holds(text: &str, facts: &Facts) -> bool {
    matches!(check(text, Scope::Page, facts), Ruling::Holds { .. })
}

/// True sentences to spoil.
const TRUE: [&str; 4] = [
    "TTFT mean at c=4 is 115.15 ms",
    "Output throughput is highest at c=32 with 387.1 tok/s",
    "TTFT p99 at c=8 (186.29 ms) is higher than at c=4 (146.19 ms)",
    "TPOT p99 rises from 20.83 ms at c=2 to 76.97 ms at c=32",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_a_claim_by_chance(text in "\\PC{0,700}", page in any::<bool>()) {
        let facts = r1();
        let scope = if page { Scope::Page } else { Scope::Scenario("Mixed Traffic") };
        let ruling = check(&text, scope, &facts);
        prop_assert!(!matches!(ruling, Ruling::Holds { .. }), "{text}: {ruling:?}");
    }

    #[test]
    fn one_unknown_word_spoils_a_true_sentence(
        sentence in proptest::sample::select(TRUE.to_vec()),
        word in "[xz]q[a-z]{0,8}",
        place in 0_usize..12,
    ) {
        let facts = r1();
        prop_assert!(holds(sentence, &facts));
        let mut words: Vec<&str> = sentence.split(' ').collect();
        words.insert(place.min(words.len()), &word);
        prop_assert!(!holds(&words.join(" "), &facts), "{}", words.join(" "));
    }

    /// A number of one cell said of another holds where the two are the same, and else not.
    #[test]
    fn a_number_is_that_of_its_cell(said in cell(), of in cell()) {
        let facts = r1();
        let (metric, statistic, level) = names(said);
        let text = format!("{metric} {statistic} at c={level} is {:.2} ms.", value(&facts, of));
        let is_true = (value(&facts, said) - value(&facts, of)).abs() < 0.005;
        prop_assert_eq!(holds(&text, &facts), is_true, "{}", text);
    }

    #[test]
    fn a_comparison_is_that_of_its_cells(left in cell(), level in 0..LEVELS.len(), higher in any::<bool>()) {
        let facts = r1();
        let right = (left.0, left.1, level);
        let (metric, statistic, at) = names(left);
        let (a, b) = (value(&facts, left), value(&facts, right));
        let word = if higher { "higher" } else { "lower" };
        let text = format!("{metric} {statistic} at c={at} is {word} than at c={}.", LEVELS[level]);
        let is_true = if higher { b < a } else { a < b };
        prop_assert_eq!(holds(&text, &facts), is_true, "{}", text);
        let sized = format!(
            "{metric} {statistic} at c={at} ({a:.2} ms) is {word} than at c={} by {:.2} ms.",
            LEVELS[level],
            (a - b).abs(),
        );
        prop_assert_eq!(holds(&sized, &facts), is_true, "{}", sized);
    }

    /// `Rises from A to B` is said of every level between them.
    #[test]
    fn a_trend_is_that_of_all_its_levels(
        (metric, statistic, first) in cell(),
        last in 0..LEVELS.len(),
        rises in any::<bool>(),
    ) {
        let facts = r1();
        let at = |level| value(&facts, (metric, statistic, level));
        let mut levels: Vec<usize> = (first.min(last)..=first.max(last)).collect();
        if last < first {
            levels.reverse();
        }
        let goes = |pair: &[usize]| if rises { at(pair[0]) < at(pair[1]) } else { at(pair[1]) < at(pair[0]) };
        let is_true = first != last && levels.windows(2).all(goes);
        let text = format!(
            "{} {} {} from c={} to c={}.",
            METRICS[metric].0,
            STATISTICS[statistic].0,
            if rises { "rises" } else { "falls" },
            LEVELS[first],
            LEVELS[last],
        );
        prop_assert_eq!(holds(&text, &facts), is_true, "{}", text);
    }

    /// Sentences of the checker's own words in any order: what holds has its numbers from the facts
    /// that it names, or from two of them.
    #[test]
    fn numbers_in_any_order_of_words_are_those_of_the_facts(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "TTFT", "TPOT", "mean", "median", "p99", "is", "higher", "than", "at", "c=4",
                "c=32", "from", "to", "rises", "about", "43.29 ms", "17.76 ms", "25 %",
                "nearly equal", "gap", "between", "high", "low", "highest", "while", "(", ")", "/",
                "with concurrency", "sweet spot", "Long Context", "4 x", "stable", "by",
                "Decode Stress Test", "very", "output throughput", "387.1 tok/s", "use", "~", "-",
            ]),
            0..9,
        ),
    ) {
        let facts = r1();
        let text = words.join(" ");
        if let Ruling::Holds { facts: rests } = check(&text, Scope::Page, &facts) {
            prop_assert!(!rests.is_empty());
            let rests: Vec<f64> = rests.into_iter().map(|fact| facts.facts[fact].value).collect();
            for said in words.iter().filter_map(|word| word.split_once(' ')?.0.parse::<f64>().ok()) {
                prop_assert!(comes_from(said, &rests), "{text}: {said} of {rests:?}");
            }
        }
    }
}

/// Within what `about` allows: a value, a difference, a ratio or a change in per cent.
fn comes_from(said: f64, values: &[f64]) -> bool {
    let near = |value: f64| (value - said).abs() <= said * 0.05;
    values.iter().any(|a| {
        near(*a)
            || values
                .iter()
                .any(|b| near((a - b).abs()) || near(a / b) || near((a / b - 1.0).abs() * 100.0))
    })
}
