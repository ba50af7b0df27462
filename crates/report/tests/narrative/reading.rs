//! Sentences as a reader has them, and what must hold of every one.

use std::fmt::Write;

use inferometer_report::document::{Span, Text};
use inferometer_report::narrative::{Facts, Narrative, Sentence};

pub(crate) fn all(narrative: &Narrative) -> Vec<&Sentence> {
    let parts = [
        &narrative.summary,
        &narrative.scaling,
        &narrative.uncertainties,
        &narrative.recommendations,
    ];
    parts.into_iter().chain(narrative.scenarios.values()).flatten().collect()
}

pub(crate) fn words(text: &Text) -> String {
    let word = |span: &Span| match span {
        Span::Plain(text) | Span::Strong(text) | Span::Code(text) | Span::Link { text, .. } => {
            text.clone()
        }
    };
    text.iter().map(word).collect()
}

/// The whole narrative, for a person to look at.
pub(crate) fn page(narrative: &Narrative) -> String {
    let mut page = String::new();
    let mut part = |title: &str, sentences: &[Sentence]| {
        writeln!(page, "\n# {title}").unwrap();
        for sentence in sentences {
            writeln!(page, "- {}", words(&sentence.text)).unwrap();
        }
    };
    part("Summary", &narrative.summary);
    part("Scaling", &narrative.scaling);
    for (name, sentences) in &narrative.scenarios {
        part(name, sentences);
    }
    part("Doubts", &narrative.uncertainties);
    part("Recommendations", &narrative.recommendations);
    page
}

/// All of these words stand in the text.
pub(crate) fn says(text: &str, known: &[&str]) {
    for words in known {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

/// What stands as a number in a sentence; names and commands are no claims, and `p99` is a name.
fn numbers(text: &Text) -> Vec<String> {
    let mut found = Vec::new();
    for span in text {
        let (Span::Plain(words) | Span::Link { text: words, .. }) = span else { continue };
        let mut before = ' ';
        let mut number = String::new();
        for letter in words.chars().chain([' ']) {
            let is_digit = letter.is_ascii_digit();
            let continues = !number.is_empty() && (is_digit || letter == '.' || letter == ',');
            if continues || (is_digit && !before.is_alphanumeric()) {
                number.push(letter);
            } else if !number.is_empty() {
                found.push(number.trim_end_matches(['.', ',']).to_owned());
                number.clear();
            }
            before = letter;
        }
    }
    found
}

/// Every number of a sentence is printed by a fact that it rests on, and it reads as one.
pub(crate) fn check(narrative: &Narrative, facts: &Facts) {
    for sentence in all(narrative) {
        let text = words(&sentence.text);
        let own: Vec<_> = sentence.facts.iter().map(|place| &facts.facts[*place]).collect();
        for number in numbers(&sentence.text) {
            let is_known = own
                .iter()
                .any(|fact| fact.printed.trim_start_matches("< ").trim_end_matches(" %") == number);
            assert!(is_known, "{number} is in no fact of: {text}\n{own:#?}");
        }
        for span in &sentence.text {
            if let Span::Link { to, .. } = span {
                assert!(own.iter().any(|fact| fact.table == *to), "{to}: {text}");
            }
        }
        assert!(text.ends_with('.') && !text.contains("  "), "{text}");
        for wrong in ["NaN", "inf ", "None", "Some(", " .", " ,"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
        let is_about_all = text.starts_with("All of this") || text.starts_with("The result is");
        assert!(!own.is_empty() || is_about_all, "rests on nothing: {text}");
    }
}

#[test]
fn numbers_are_found_in_words_and_not_in_names() {
    let text = vec![
        Span::from("TTFT p99 is 3,402 ms at c=16, "),
        Span::Strong("MI100".to_owned()),
        Span::from(" 0.6 % and 7."),
    ];
    assert_eq!(numbers(&text), ["3,402", "16", "0.6", "7"]);
}
