//! The claim checker against a published report: its numbers are true, its prose is not always.
#![expect(clippy::print_stdout, reason = "the figures of the checker are what this test shows")]

mod any;
mod places;
mod published;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use inferometer_report::narrative::Facts;
use inferometer_report::narrative::claims::{Reason, ReasonKind, Ruling, Scope, check};
use published::r1;
use serde::Deserialize;

#[derive(Deserialize)]
struct Claims {
    claim: Vec<Claim>,
}

#[derive(Deserialize)]
struct Claim {
    scenario: String,
    text: String,
    label: Label,
    why: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "lowercase")]
enum Label {
    True,
    False,
    Uncheckable,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Ruled {
    Holds,
    /// Something in it is not so.
    Fails,
    /// What can be checked is so, but it says more than that.
    Unbacked,
    Uncheckable,
}

const LABELS: [(Label, &str); 3] =
    [(Label::True, "true"), (Label::False, "false"), (Label::Uncheckable, "uncheckable")];
const RULED: [Ruled; 4] = [Ruled::Holds, Ruled::Fails, Ruled::Unbacked, Ruled::Uncheckable];

fn scope(scenario: &str) -> Scope<'_> {
    if scenario.is_empty() { Scope::Page } else { Scope::Scenario(scenario) }
}

fn ruled(text: &str, scenario: &str, facts: &Facts) -> (Ruled, Ruling) {
    let ruling = check(text, scope(scenario), facts);
    let ruled = match ruling {
        Ruling::Holds { .. } => Ruled::Holds,
        Ruling::Fails { ref reasons }
            if reasons.iter().all(|reason| reason.kind == ReasonKind::UncheckedClause) =>
        {
            Ruled::Unbacked
        }
        Ruling::Fails { .. } => Ruled::Fails,
        Ruling::Uncheckable { .. } => Ruled::Uncheckable,
    };
    (ruled, ruling)
}

/// How often each label was ruled each way.
fn confusion(claims: &[Claim], facts: &Facts) -> BTreeMap<(Label, Ruled), usize> {
    let mut counts = BTreeMap::new();
    for claim in claims {
        let (ruled, ruling) = ruled(&claim.text, &claim.scenario, facts);
        *counts.entry((claim.label, ruled)).or_insert(0) += 1;
        let as_labelled = matches!(
            (claim.label, ruled),
            (Label::True, Ruled::Holds)
                | (Label::False, Ruled::Fails)
                | (Label::Uncheckable, Ruled::Uncheckable | Ruled::Unbacked)
        );
        if !as_labelled {
            let Claim { text, label, why, scenario } = claim;
            println!("{label:?} ({why}), ruled {ruling:?}: {text} [{scenario}]");
        }
    }
    counts
}

#[test]
fn claims_of_a_published_report_are_ruled_as_labelled() {
    let claims: Claims = toml::from_str(include_str!("claims/r1.toml")).unwrap();
    let facts = r1();
    let counts = confusion(&claims.claim, &facts);
    let count = |label, ruled| counts.get(&(label, ruled)).copied().unwrap_or(0);
    let labelled = |label| claims.claim.iter().filter(|claim| claim.label == label).count();
    let accepted: usize = LABELS.iter().map(|(label, _)| count(*label, Ruled::Holds)).sum();
    let rejected: usize = LABELS.iter().map(|(label, _)| count(*label, Ruled::Fails)).sum();
    let mut figures = "| labelled | claims | holds | fails | unbacked words | uncheckable |\n\
                       |---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for (label, name) in LABELS {
        let row = RULED.map(|ruled| count(label, ruled).to_string()).join(" | ");
        writeln!(figures, "| {name} | {} | {row} |", labelled(label)).unwrap();
    }
    let share = |part: usize, of: usize| part as f64 / of as f64;
    let accepted_true = count(Label::True, Ruled::Holds);
    let rejected_false = count(Label::False, Ruled::Fails);
    writeln!(
        figures,
        "\nAccepted as true: precision {:.3}, recall {:.3}. Rejected as false: precision {:.3}, \
         recall {:.3}.",
        share(accepted_true, accepted),
        share(accepted_true, labelled(Label::True)),
        share(rejected_false, rejected),
        share(rejected_false, labelled(Label::False)),
    )
    .unwrap();
    println!("{figures}");
    let docs = include_str!("../../../docs/narrative.md");
    assert!(docs.contains(&figures), "docs/narrative.md has other figures");
    assert_eq!(accepted, accepted_true, "what is accepted is true");
    assert_eq!(rejected_false, labelled(Label::False), "what is false is rejected");
    assert!(0.9 <= share(accepted_true, labelled(Label::True)));
    assert!(0.85 <= share(rejected_false, rejected));
}

fn reasons(text: &str, scenario: &str, facts: &Facts) -> Vec<Reason> {
    match check(text, scope(scenario), facts) {
        Ruling::Fails { reasons } => reasons,
        other @ (Ruling::Holds { .. } | Ruling::Uncheckable { .. }) => {
            panic!("{text}: {other:?}")
        }
    }
}

#[test]
fn the_known_mistakes_fail_for_their_own_reasons() {
    let facts = r1();
    let decode = "Decode Stress Test";
    let nearly_equal = "TTFT and TPOT are nearly equal (~18 ms).";
    let found = reasons(nearly_equal, decode, &facts);
    assert!(found.iter().any(|reason| reason.kind == ReasonKind::FalseEquality), "{found:?}");
    let found = reasons("Output throughput is low at high concurrency.", decode, &facts);
    assert!(found.iter().all(|reason| reason.kind == ReasonKind::FalseLevel), "{found:?}");
    let long = "Long Context (16K)";
    let found = reasons("ITL (input token latency) is about 46 ms.", long, &facts);
    assert!(found.iter().any(|reason| reason.kind == ReasonKind::UnknownExpansion), "{found:?}");
    let found = reasons("TTFT is 115 ms median.", "Concurrency Scaling (c=4)", &facts);
    assert!(found.iter().all(|reason| reason.kind == ReasonKind::WrongSubject), "{found:?}");
    let found = reasons("TPOT is 17.76 tok/s.", decode, &facts);
    assert!(found.iter().all(|reason| reason.kind == ReasonKind::WrongUnit), "{found:?}");
    let found = reasons("TPOT is 17.76 ms, due to efficient batching.", decode, &facts);
    assert!(found.iter().all(|reason| reason.kind == ReasonKind::UncheckedClause), "{found:?}");
}

#[test]
fn the_page_of_one_run_has_no_scenarios() {
    let mut facts = r1();
    facts.facts.retain(|fact| fact.about.scenario.as_deref() == Some("Mixed Traffic"));
    for fact in &mut facts.facts {
        fact.about.scenario = None;
    }
    for text in [
        "TTFT p99 is 5916 ms at c=8.",
        "TTFT median (1539 ms) is much lower than mean (2097 ms).",
        "The gap between TTFT median and p99 is large.",
        "Concurrency is 8.",
    ] {
        let (ruled, ruling) = ruled(text, "", &facts);
        assert_eq!(ruled, Ruled::Holds, "{text}: {ruling:?}");
    }
    for text in ["TTFT p99 is 5916 ms at c=4.", "Concurrency is high.", "TTFT is highest."] {
        let (ruled, ruling) = ruled(text, "", &facts);
        assert_ne!(ruled, Ruled::Holds, "{text}: {ruling:?}");
    }
}

#[test]
fn what_chance_may_have_done_is_no_difference() {
    let mut facts = r1();
    let sentence = "Output throughput at c=32 exceeds output throughput at c=16.";
    assert!(matches!(check(sentence, Scope::Page, &facts), Ruling::Holds { .. }));
    for fact in &mut facts.facts {
        fact.interval = Some((fact.value * 0.98, fact.value * 1.02));
    }
    let found = reasons(sentence, "", &facts);
    assert!(found.iter().all(|reason| reason.kind == ReasonKind::FalseComparison), "{found:?}");
}

#[derive(Deserialize)]
struct Comparisons {
    r#true: Vec<String>,
    r#false: Vec<String>,
}

#[test]
fn true_numbers_do_not_carry_false_comparisons() {
    let lists: Comparisons = toml::from_str(include_str!("claims/comparisons.toml")).unwrap();
    let facts = r1();
    assert!(25 <= lists.r#false.len() && 25 <= lists.r#true.len());
    let is_accepted = |text: &&String| ruled(text, "", &facts).0 == Ruled::Holds;
    let accepted: Vec<&String> = lists.r#false.iter().filter(is_accepted).collect();
    assert!(accepted.is_empty(), "false, and accepted: {accepted:#?}");
    let mut held = 0;
    for text in &lists.r#true {
        let (ruled, ruling) = ruled(text, "", &facts);
        held += usize::from(ruled == Ruled::Holds);
        if ruled != Ruled::Holds {
            println!("{text}: {ruling:?}");
        }
    }
    println!("{held} of {} true comparisons hold", lists.r#true.len());
    assert!(lists.r#true.len() * 9 <= held * 10);
}

/// What holds, no longer holds with its relation turned round, or with another number.
#[test]
fn a_true_sentence_that_is_turned_round_does_not_hold() {
    let lists: Comparisons = toml::from_str(include_str!("claims/comparisons.toml")).unwrap();
    let facts = r1();
    let mut turned = 0;
    for text in &lists.r#true {
        let other = opposite(text);
        if other != *text {
            turned += 1;
            assert_ne!(ruled(&other, "", &facts).0, Ruled::Holds, "{other}");
        }
        for number in text.split(' ').filter(|word| word.contains('.')) {
            let digits = number.trim_matches(|c: char| !c.is_ascii_digit());
            let Ok(value) = digits.parse::<f64>() else { continue };
            let wrong = text.replace(digits, &format!("{:.2}", value * 1.01 + 0.1));
            assert_ne!(ruled(&wrong, "", &facts).0, Ruled::Holds, "{wrong}");
        }
    }
    assert!(20 <= turned, "{turned}");
}

fn opposite(text: &str) -> String {
    const PAIRS: [(&str, &str); 8] = [
        ("higher", "lower"),
        ("rises", "falls"),
        ("highest", "lowest"),
        ("above", "below"),
        ("faster", "slower"),
        ("large", "small"),
        ("more than double", "half"),
        ("exceeds", "is lower than"),
    ];
    let mut turned = text.to_owned();
    for (one, other) in PAIRS {
        turned = if turned.contains(one) {
            turned.replace(one, other)
        } else {
            turned.replace(other, one)
        };
        if turned != text {
            break;
        }
    }
    turned
}

/// The published page, where it is at hand: it is not ours to copy.
#[test]
fn the_published_page_does_not_pass_as_it_stands() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/suite-report.md");
    let Ok(page) = std::fs::read_to_string(&path) else {
        println!("skipped: the published page is not at hand");
        return;
    };
    let facts = r1();
    let mut counts: BTreeMap<Ruled, usize> = BTreeMap::new();
    let mut mistakes = 0;
    for (scenario, bullet) in bullets(&page) {
        let (ruled, ruling) = ruled(bullet, scenario, &facts);
        *counts.entry(ruled).or_insert(0) += 1;
        if ruled == Ruled::Holds {
            println!("holds: {bullet}");
        }
        let is_mistake = (scenario == "Decode Stress Test"
            && (bullet.contains("nearly equal") || bullet.contains("high concurrency")))
            || bullet.contains("input token latency");
        if is_mistake {
            mistakes += 1;
            assert_ne!(ruled, Ruled::Holds, "{bullet}");
            println!("{ruling:?}");
        }
    }
    println!("bullets of the published page: {counts:?}");
    assert!(3 <= mistakes, "the page has the mistakes that it is known for");
}

/// The interpretations of the page, each with its scenario; key metrics are not prose.
fn bullets(page: &str) -> Vec<(&str, &str)> {
    let mut scenario = "";
    let mut is_prose = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            (scenario, is_prose) = (title.trim(), false);
        } else if let Some(title) = line.strip_prefix("## ") {
            (scenario, is_prose) = ("", title.trim() == "Recommendations");
        } else if line.starts_with("**Interpretation") {
            is_prose = true;
        } else if let Some(bullet) = line.strip_prefix("- ")
            && is_prose
        {
            found.push((scenario, bullet));
        }
    }
    found
}

#[test]
fn a_sentence_without_an_end_is_not_read() {
    let long = "TTFT is 43 ms ".repeat(10_000);
    let facts = r1();
    assert_eq!(
        check(&long, Scope::Page, &facts),
        Ruling::Uncheckable { reason: Reason { kind: ReasonKind::TooLong, detail: String::new() } }
    );
}
