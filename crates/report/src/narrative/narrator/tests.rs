//! What becomes of the answers of models, well-behaved and not.

use super::*;
use crate::document::Span;
use crate::narrative::facts::FactRow;

fn facts() -> Facts {
    let mut facts = Facts::default();
    for (name, users, ttft) in [("Chat", 1, 43.29), ("Batch", 8, 158.72)] {
        let row = FactRow { scenario: Some(name.to_owned()), concurrency: Some(users) };
        for (quantity, value) in [
            ("concurrency", f64::from(users)),
            ("output_throughput", f64::from(users) * 40.0),
            ("per_user_throughput", 40.0),
            ("ttft.mean", ttft),
            ("ttft.p50", ttft),
        ] {
            facts.add(&row, "performance-summary", quantity, Some(value));
        }
    }
    facts
}

fn by_rules() -> Narrative {
    let sentence = Sentence { text: document::plain("By the rules."), facts: Vec::new() };
    Narrative {
        summary: vec![sentence.clone()],
        uncertainties: vec![sentence.clone()],
        scenarios: BTreeMap::from([("Batch".to_owned(), vec![sentence])]),
        ..Narrative::default()
    }
}

fn page(question: Question, said: &str) -> Narrative {
    let facts = facts();
    let answers = vec![Answer { question, said: said.to_owned() }];
    Narration::new("writer", answers, None, &facts).narrative(&facts, by_rules())
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
    assert_eq!(texts(&page.uncertainties), ["By the rules."]);
    let Author::Model { kept, rejected, sections, .. } = page.author else { panic!() };
    assert_eq!(kept, 4);
    assert_eq!(rejected, BTreeMap::from([("text around the report".to_owned(), 2)]));
    assert_eq!(sections, ["summary", "Chat", "recommendations"]);
}

#[test]
fn names_keep_their_marks_and_headings_of_nothing_are_dropped() {
    let mut facts = facts();
    for fact in &mut facts.facts {
        if fact.about.scenario.as_deref() == Some("Chat") {
            fact.about.scenario = Some("rag_8k".to_owned());
        }
    }
    let said = "SCENARIO: rag_8k\n- Mean TTFT in rag_8k is 43.29 ms.\n\
                SCENARIO: Batch\n- Mean TTFT is 158.72 ms.\n\
                SCENARIO: Chatting\n- Output throughput is 320 tok/s.\n\
                ## Details\n- Output throughput is 320 tok/s.\n\
                **Scenario: `rag_8k`**\n- Output throughput is 40 tok/s.";
    let answers = vec![Answer { question: Question::Whole, said: said.to_owned() }];
    let page = Narration::new("writer", answers, None, &facts).narrative(&facts, by_rules());
    assert_eq!(
        texts(&page.scenarios["rag_8k"]),
        ["Mean TTFT in rag_8k is 43.29 ms.", "Output throughput is 40 tok/s."]
    );
    assert_eq!(texts(&page.scenarios["Batch"]), ["Mean TTFT is 158.72 ms."]);
    let Author::Model { rejected, .. } = page.author else { panic!() };
    let dropped = "under a heading that the page does not have".to_owned();
    assert_eq!(rejected, BTreeMap::from([(dropped, 2)]));
}

#[test]
fn a_heading_of_another_scenario_does_not_pass_for_this_one() {
    let said = "Mean TTFT is 43.29 ms.\nSCENARIO: Batch\nOutput throughput is 40 tok/s.\n\
                SCENARIO: Chat\nOutput throughput at c=1 is 40 tok/s.";
    let page = page(Question::Scenario("Chat".to_owned()), said);
    assert_eq!(
        texts(&page.scenarios["Chat"]),
        ["Mean TTFT is 43.29 ms.", "Output throughput at c=1 is 40 tok/s."]
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

/// How many stand on the page, and how many do not, by the reason.
fn counts(page: Narrative) -> (u32, BTreeMap<String, u32>) {
    match page.author {
        Author::Model { kept, rejected, .. } => (kept, rejected),
        other @ (Author::Rules | Author::RulesInstead { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn what_is_said_twice_is_printed_once_and_a_flood_is_cut() {
    let chat = || Question::Scenario("Chat".to_owned());
    let twice = page(chat(), &"Mean TTFT is 43.29 ms.\n".repeat(9));
    assert_eq!(twice.scenarios["Chat"].len(), 1);
    let (kept, rejected) = counts(twice);
    assert_eq!((kept, rejected["repeated in the same section"]), (1, 8));
    let flood = page(Question::Whole, &"TTFT is 9 ms. ".repeat(100_000));
    assert!(
        matches!(flood.author, Author::RulesInstead { ref why, .. } if why.contains("100000")),
        "{:?}",
        flood.author
    );
}

#[test]
fn every_sentence_that_was_written_is_counted() {
    let mut said = "Sure, here it is. Let me begin.\nSurely mean TTFT is 43.29 ms.\n".to_owned();
    let over = (1..=20).map(|step| format!("Mean TTFT is over 42.{step:02} ms.\n"));
    said.extend(over);
    said.push_str(&"TTFT is 9 ms.\n".repeat(300));
    let (kept, rejected) = counts(page(Question::Scenario("Chat".to_owned()), &said));
    assert_eq!(kept, 12);
    assert_eq!(rejected["more sentences than a section may have"], 8);
    assert_eq!(rejected["text around the report"], 2);
    assert_eq!(rejected["words that the data does not support"], 1);
    assert_eq!(rejected["beyond the part of an answer that is read"], 300 - (200 - 21));
    assert_eq!(kept + rejected.values().sum::<u32>(), 2 + 1 + 20 + 300);
}

/// Half of a sentence may be true where the whole is not.
#[test]
fn an_answer_is_cut_behind_a_whole_sentence() {
    let told = "Mean TTFT is 43.29 ms in Batch.";
    let said = format!("{}{told}", "\n".repeat((64 << 10) - "Mean TTFT is 43.29 ms".len()));
    let found = sentences(&Answer { question: Question::Whole, said }, &["Chat", "Batch"]);
    assert_eq!((found.0, found.2), (Vec::new(), 1));
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
        Narration::new("writer", Vec::new(), Some("it did not answer".to_owned()), &facts());
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
