//! Texts by words: the estimate, and its correction.

use super::*;

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn segment(seed: u64, tokens: u32) -> Segment {
    Segment { seed, tokens }
}

#[test]
fn an_estimate_has_a_word_for_each_token() {
    let maker = TextMaker::Estimating(None);
    for tokens in [1, 7, 8, 9, 100] {
        assert_eq!(words(&maker.framed(&[segment(1, tokens)])), tokens as usize);
    }
    let text = maker.framed(&[segment(1, 20), segment(2, 5)]);
    assert_eq!(words(&text), 25);
    assert!(text.starts_with(&maker.framed(&[segment(1, 20)])));
    assert_eq!(maker.shortest(), 1);
}

#[test]
fn an_exact_text_is_the_same_on_every_machine() {
    let words = WORDS.iter().take(40).zip(1_u32..);
    let mut vocabulary: serde_json::Map<String, serde_json::Value> =
        words.map(|(word, id)| ((*word).to_owned(), id.into())).collect();
    vocabulary.insert("?".to_owned(), 0.into());
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "unk_token": "?", "vocab": vocabulary },
    });
    let tokenizer = Tokenizer::from_bytes("words", tokenizer.to_string().as_bytes()).unwrap();
    let maker = TextMaker::exact(Arc::new(tokenizer), Frame::None).unwrap();
    assert_eq!(maker.input_length(), InputLength::Exact);
    // Golden: a change here changes every plan that was made with a tokenizer.
    let text = maker.framed(&[segment(1, 6), segment(2, 5)]);
    assert_eq!(text, "in not you by can all they what or have to");
}

#[test]
fn a_correction_takes_the_overhead_off_whole_prompts_only() {
    let correction = Correction { tokens_per_word: 1.25, overhead_tokens: 10.0 };
    let maker = TextMaker::Estimating(Some(correction));
    assert_eq!(words(&maker.framed(&[segment(1, 110)])), 80);
    assert_eq!(words(&maker.bare(&[segment(1, 100)])), 80);
    assert_eq!(words(&maker.framed(&[segment(1, 60), segment(2, 50)])), 80);
    assert_eq!(words(&maker.framed(&[segment(1, 3)])), 1, "never nothing");
    assert_eq!(maker.shortest(), 11);
    let [one, other] = [3, 4].map(|seed| maker.framed(&[segment(1, 60), segment(seed, 50)]));
    let shared = maker.framed(&[segment(1, 60)]);
    assert!(one.starts_with(&shared) && other.starts_with(&shared) && one != other);
}
