//! What becomes of the answers of models, well-behaved and not.

use super::*;
use crate::document::Span;
use crate::narrative::facts::{PublishedFacts, of_published};

fn facts() -> Facts {
    let row = |scenario: &str, concurrency: u32, ttft: f64| PublishedFacts {
        scenario: scenario.to_owned(),
        concurrency: Some(concurrency),
        output_throughput: Some(f64::from(concurrency) * 40.0),
        ttft_ms_mean: Some(ttft),
        ttft_ms_p50: Some(ttft),
        ..PublishedFacts::default()
    };
    of_published(&[row("Chat", 1, 43.29), row("Batch", 8, 158.72)])
}

fn by_rules() -> Narrative {
    let sentence = Sentence { text: plain("By the rules."), facts: Vec::new() };
    Narrative {
        summary: vec![sentence.clone()],
        doubts: vec![sentence.clone()],
        scenarios: BTreeMap::from([("Batch".to_owned(), vec![sentence])]),
        ..Narrative::default()
    }
}

fn page(question: Question, said: &str) -> Narrative {
    let facts = facts();
    let answers = vec![Answer { question, said: said.to_owned() }];
    Narration::of("writer", answers, None, &facts).narrative(&facts, by_rules())
}

fn texts(sentences: &[Sentence]) -> Vec<String> {
    sentences
        .iter()
        .map(|sentence| match sentence.text.as_slice() {
            [Span::Plain(text)] => text.clone(),
            other => panic!("not plain: {other:?}"),
        })
        .collect()
}

#[test]
fn sections_and_sentences_are_found_in_markdown() {
    let said = "Sure! Here is it.\n```markdown\n## **Executive Summary**\n\
                1. TTFT in **Batch** is higher than in Chat. Mean TTFT in Chat is 43.29 ms.\n\
                ### Scenario: chat\n* Mean `TTFT` is 43.29 ms.\n\
                Recommendations:\n- Mean TTFT in Batch is 158.72 ms.\n```\n";
    let page = page(Question::Whole, said);
    assert_eq!(
        texts(&page.summary),
        ["TTFT in Batch is higher than in Chat.", "Mean TTFT in Chat is 43.29 ms."]
    );
    assert_eq!(texts(&page.scenarios["Chat"]), ["Mean TTFT is 43.29 ms."]);
    assert_eq!(texts(&page.scenarios["Batch"]), ["By the rules."], "where the model was silent");
    assert_eq!(texts(&page.recommendations), ["Mean TTFT in Batch is 158.72 ms."]);
    assert_eq!(texts(&page.doubts), ["By the rules."]);
    assert!(
        matches!(page.author, Author::Model { kept: 4, ref rejected, .. } if rejected.is_empty())
    );
}

#[test]
fn reasoning_is_no_part_of_an_answer() {
    for said in [
        "<think>TTFT is 1 ms.\nMean TTFT in Batch is 158.72 ms.</think>\nMean TTFT in Chat is 43.29 ms.",
        "TTFT is 1 ms. Mean TTFT in Batch is 158.72 ms.</THINK>Mean TTFT in Chat is 43.29 ms.",
        "Mean TTFT in Chat is 43.29 ms.\n<reasoning>Mean TTFT in Batch is 158.72 ms.",
    ] {
        let page = page(Question::Whole, said);
        assert_eq!(texts(&page.summary), ["Mean TTFT in Chat is 43.29 ms."], "{said}");
        assert!(
            matches!(page.author, Author::Model { kept: 1, ref rejected, .. } if rejected.is_empty())
        );
    }
}

#[test]
fn markup_and_links_do_not_pass() {
    let said = "- Mean TTFT is 43.29 ms <script>alert(1)</script>.\n\
                - [Mean TTFT is 43.29 ms](https://example.org).\n\
                - Mean TTFT is 43.29 ms &amp;.\n- Mean TTFT is 43.29\u{202e} ms.";
    let page = page(Question::Scenario("Chat".to_owned()), said);
    assert!(matches!(page.author, Author::RulesInstead { .. }), "{page:?}");
}

#[test]
fn what_is_said_twice_is_printed_once_and_a_flood_is_cut() {
    let twice = page(Question::Scenario("Chat".to_owned()), &"Mean TTFT is 43.29 ms.\n".repeat(9));
    assert_eq!(twice.scenarios["Chat"].len(), 1);
    let flood = page(Question::Whole, &"TTFT is 9 ms. ".repeat(100_000));
    assert!(matches!(flood.author, Author::RulesInstead { ref why, .. } if why.contains("200")));
}

#[test]
fn rejected_sentences_are_counted_by_their_reason() {
    let said = "- Mean TTFT is 43.29 ms.\n- Mean TTFT is 44 ms.\n- TTFT is lower than TPOT.\n\
                - Everything is fine.";
    let page = page(Question::Scenario("Chat".to_owned()), said);
    let Author::Model { kept, rejected, .. } = page.author else { panic!("{:?}", page.author) };
    assert_eq!(kept, 1);
    let counts: Vec<(&str, u32)> = rejected.iter().map(|(why, n)| (why.as_str(), *n)).collect();
    assert_eq!(
        counts,
        [
            ("a number that is not in the data", 1),
            ("no claim that can be checked", 1),
            ("something that was not measured", 1),
        ]
    );
}

#[test]
fn a_failure_is_the_reason_that_is_told() {
    let narration =
        Narration::of("writer", Vec::new(), Some("it did not answer".to_owned()), &facts());
    let page = narration.narrative(&facts(), by_rules());
    assert_eq!(
        page.author,
        Author::RulesInstead { name: "writer".to_owned(), why: "it did not answer".to_owned() }
    );
    assert_eq!(page.summary, by_rules().summary);
}

#[test]
fn few_facts_are_one_question_and_many_are_several() {
    let few = facts();
    assert_eq!(questions(&few), [Question::Whole]);
    let text = prompt(&few, &Question::Whole);
    assert!(text.contains("Chat: ") && text.contains("ttft mean 43.29 ms"), "{text}");
    let mut many = Facts::default();
    for scenario in 0..80 {
        many.facts.extend(few.facts.iter().filter(|f| f.about.scenario.is_some()).map(|fact| {
            let mut fact = fact.clone();
            fact.about.scenario = Some(format!("A scenario with a rather long name {scenario}"));
            fact
        }));
    }
    let asked = questions(&many);
    assert_eq!(asked.len(), 81);
    assert_eq!(asked[0], Question::Page);
    assert!(asked.iter().all(|question| prompt(&many, question).len() < 64 << 10));
}
