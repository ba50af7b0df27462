//! What a model is told: the facts as a table, and how to speak so that it can be checked.

use std::fmt::Write as _;

use super::Question;
use crate::narrative::claims::name_of;
use crate::narrative::{Fact, FactUnit, Facts};

/// Facts of more bytes than this are asked about scenario by scenario.
const WHOLE_BYTES_MAX: usize = 16 << 10;
/// What the page as a whole is judged by where the facts are many.
const HEADLINES: [(&str, Option<&str>); 6] = [
    ("sweet_spot", None),
    ("concurrency", None),
    ("output_throughput", None),
    ("per_user_throughput", None),
    ("ttft", Some("p99")),
    ("tpot", Some("p99")),
];

const RULES: &str = "\
You write the prose of a benchmark report. Below are the facts, and nothing else is known.
Rules:
- Use only numbers of the facts, with their digits and units. Name the metric, the statistic (mean, \
median, p99) and the scenario or the level (such as c=4) of every number.
- One claim in each sentence. At most 20 words. No causes, no guesses, no praise, no advice on \
hardware.
- Compare only numbers of the facts: higher than, lower than, twice, rises from … to …, falls from \
… to …, highest, lowest, nearly equal.
- Every sentence is checked against the facts by a program, and what it cannot check is thrown away.
- No Markdown beyond the headings and hyphens asked for.
Sentences that pass look like these, with the right numbers:
- Mean TTFT is 12.3 ms and p99 TTFT is 45.6 ms.
- Output throughput rises from 12.3 tok/s at c=2 to 45.6 tok/s at c=4.
- TPOT p99 at c=8 is higher than at c=4.
- TPOT is stable across mean, median and p99.
- The gap between TTFT median and p99 is 7.8 ms.
- Output throughput is highest at c=8.
";

/// What to ask, so that no question is too long.
pub fn questions(facts: &Facts) -> Vec<Question> {
    if table(facts, |_| true).len() <= WHOLE_BYTES_MAX {
        return vec![Question::Whole];
    }
    let scenarios = facts.scenarios().into_iter().filter_map(|(name, _)| name);
    let scenarios = scenarios.map(|name| Question::Scenario(name.to_owned()));
    std::iter::once(Question::Page).chain(scenarios).collect()
}

pub fn prompt(facts: &Facts, question: &Question) -> String {
    let (asked, table) = match question {
        Question::Whole => (
            "Write three sections with exactly these headings, and a hyphen before each \
             sentence.\nSUMMARY\n(3 to 6 sentences)\nSCENARIO: name as in the facts\n(2 to 5 \
             sentences, one such section for each scenario)\nRECOMMENDATIONS\n(1 to 3 sentences)"
                .to_owned(),
            table(facts, |_| true),
        ),
        Question::Page => (
            "Write two sections with exactly these headings, and a hyphen before each \
             sentence.\nSUMMARY\n(3 to 6 sentences)\nRECOMMENDATIONS\n(1 to 3 sentences)"
                .to_owned(),
            table(facts, |fact| fact.about.scenario.is_none() || is_headline(fact)),
        ),
        Question::Scenario(name) => (
            format!("Write 2 to 5 sentences about {name}, a hyphen before each."),
            table(facts, |fact| fact.about.scenario.as_ref() == Some(name) || is_headline(fact)),
        ),
    };
    format!("{RULES}\n{asked}\n\nFACTS\n{table}")
}

fn is_headline(fact: &Fact) -> bool {
    let about = &fact.about;
    HEADLINES.contains(&(about.quantity.as_str(), about.statistic.as_deref()))
}

/// One line for each scenario, with what the checker has words for.
fn table(facts: &Facts, is_shown: impl Fn(&Fact) -> bool) -> String {
    let mut text = String::new();
    for (scenario, _) in facts.scenarios() {
        let own = facts.facts.iter().filter(|fact| fact.about.scenario.as_deref() == scenario);
        let shown: Vec<String> = own.filter(|fact| is_shown(fact)).filter_map(words).collect();
        if !shown.is_empty() {
            let name = scenario.unwrap_or("The whole page");
            let _ = writeln!(text, "{name}: {}", shown.join("; "));
        }
    }
    text
}

fn words(fact: &Fact) -> Option<String> {
    let name = name_of(&fact.about.quantity)?;
    let statistic = match fact.about.statistic.as_deref() {
        None => "",
        Some("p50") => " median",
        Some("mean") => " mean",
        Some("p99") => " p99",
        Some(_) => return None,
    };
    let unit = match fact.unit {
        // Both stand in the name already.
        FactUnit::Tokens | FactUnit::Requests => "",
        FactUnit::Milliseconds
        | FactUnit::Seconds
        | FactUnit::TokensPerSecond
        | FactUnit::RequestsPerSecond
        | FactUnit::Watts
        | FactUnit::JoulesPerToken
        | FactUnit::TokensPerJoule
        | FactUnit::Share
        | FactUnit::Number => fact.unit.word(),
    };
    Some(format!("{name}{statistic} {}{unit}", fact.printed))
}
