//! Which prompts were sent before.

use inferometer_model::spec::{DatasetSpec, FixedPrompt, Lengths, VllmRandom};

use super::*;

fn dataset(path: &str) -> Source {
    let path = path.into();
    Source::Dataset(DatasetSpec { path, ..DatasetSpec::default() })
}

fn fixed(prompt: &str) -> Source {
    Source::Fixed(FixedPrompt { prompt: prompt.to_owned(), output: Lengths::from(8) })
}

#[test]
fn data_is_the_same_with_any_seed_and_words_with_the_same_one() {
    let random = |tokens: u32| {
        let (input, output) = (Lengths::from(tokens), Lengths::from(8));
        Source::VllmRandom(VllmRandom { input, output, prefix_tokens: 0 })
    };
    assert!(sends_again(&dataset("a.jsonl"), &dataset("a.jsonl"), false));
    assert!(!sends_again(&dataset("a.jsonl"), &dataset("b.jsonl"), true));
    assert!(sends_again(&fixed("why?"), &fixed("why?"), false));
    assert!(!sends_again(&fixed("why?"), &fixed("how?"), true));
    assert!(!sends_again(&fixed("why?"), &dataset("a.jsonl"), true));
    assert!(sends_again(&random(64), &random(128), true));
    assert!(!sends_again(&random(64), &random(64), false));
}
