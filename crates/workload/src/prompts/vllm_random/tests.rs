//! The other program's own output is the truth here: hashes of what it made with a tokenizer of
//! bytes, whose ids often decode to nothing that is encoded alike, so that most prompts are mended.

use std::sync::Arc;

use serde_json::json;
use sha2::{Digest, Sha256};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::*;
use crate::tokenizer::Tokenizer;

fn bytes() -> Alphabet {
    let mut letters: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    letters.sort_unstable();
    let letters = std::iter::once("<s>".to_owned()).chain(letters.iter().map(char::to_string));
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        letters.zip(0..).map(|(letter, id): (String, u32)| (letter, id.into())).collect();
    let byte_level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
    });
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{
            "id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true,
        }],
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": "<s>", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
            ],
            "pair": [
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "Sequence": { "id": "B", "type_id": 1 } },
            ],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] } },
        },
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": vocabulary, "merges": [],
        },
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({ "bos_token": "<s>" });
    std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    Alphabet::Words(Arc::new(Tokenizer::open(folder.path().to_str().unwrap()).unwrap()))
}

fn random(input: &str, output: &str, prefix_tokens: u32, seed: u64) -> VllmRandom {
    let [input, output] = [input, output].map(|lengths| lengths.parse().unwrap());
    let spec = spec::VllmRandom { input, output, prefix_tokens };
    VllmRandom::new(&spec, bytes(), seed, Some(40)).unwrap()
}

fn hash(prompts: &[String]) -> String {
    let digest: [u8; 32] = Sha256::digest(prompts.join("\n")).into();
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn prompts(random: &VllmRandom) -> Vec<String> {
    (0..40).map(|place| random.prompt(place)).collect()
}

#[test]
fn prompts_and_lengths_are_those_of_the_other_program() {
    let spread = random("24±25%", "9±25%", 0, 3);
    assert_eq!(
        hash(&prompts(&spread)),
        "610c46b48cec3b817abc84392494f3a086356c98cb021c4222c4263bf5c3d59f"
    );
    let recipe = |id| spread.recipe(PromptIndex { id, turn: 0 });
    assert_eq!([0, 1, 2, 3, 4].map(|id| recipe(id).output_tokens), [12, 6, 6, 12, 12]);
    assert_eq!(recipe(41), recipe(1), "after the last they repeat");
    // The other program counts 939: 26 more than it asked for, which it warns of.
    assert_eq!((0..40).map(|id| recipe(id).input_tokens).sum::<u32>(), 939 - 26);

    let with_prefix = random("16", "5", 10, 0);
    assert_eq!(
        hash(&prompts(&with_prefix)),
        "96be2e632b7f6e2a4e96cd662988c25acf3ca50194d77e36fd929523587c4f73"
    );
    assert_eq!(with_prefix.recipe(PromptIndex { id: 3, turn: 0 }).input_tokens, 25);
}

#[test]
fn a_prompt_is_the_same_in_whatever_order_prompts_are_asked_for() {
    let in_order = prompts(&random("24±25%", "9", 0, 3));
    let other = random("24±25%", "9", 0, 3);
    for place in [17, 3, 39, 3, 0, 18, 17] {
        assert_eq!(other.prompt(place), in_order[place]);
    }
}

#[test]
fn inputs_that_are_all_special_tokens_are_refused() {
    let spec = spec::VllmRandom { input: 1.into(), output: 5.into(), prefix_tokens: 0 };
    let error = VllmRandom::new(&spec, bytes(), 0, None).unwrap_err().to_string();
    assert!(error.contains("an input of 1 tokens") && error.contains("longer prompts"), "{error}");
}

#[test]
fn what_lies_far_back_is_made_again_and_little_is_kept() {
    let spec = spec::VllmRandom { input: 6.into(), output: 1.into(), prefix_tokens: 0 };
    let count = RECENT_MAX + 2 * KEEP_EVERY;
    let made = VllmRandom::new(&spec, bytes(), 3, Some(count as u64)).unwrap();
    let in_order: Vec<String> = (0..count).map(|place| made.prompt(place)).collect();
    let fillings = made.fillings.lock().unwrap();
    assert_eq!(fillings.recent.len(), RECENT_MAX);
    assert_eq!(fillings.kept.len(), count / KEEP_EVERY + 1);
    drop(fillings);
    for place in [0, 1, KEEP_EVERY - 1, KEEP_EVERY, KEEP_EVERY + 3, count - RECENT_MAX, count - 1] {
        assert_eq!(made.prompt(place), in_order[place], "{place}");
    }
}

#[test]
fn more_than_can_be_drawn_is_refused() {
    let spec = spec::VllmRandom { input: 6.into(), output: 1.into(), prefix_tokens: 0 };
    let error = VllmRandom::new(&spec, bytes(), 3, Some(REQUESTS_MAX + 1)).unwrap_err();
    assert!(error.to_string().contains("16777217"), "{error}");
}

#[test]
fn equal_first_ids_are_equal_segments_in_every_run() {
    let [one, two] = [3, 4].map(|seed| random("24±25%", "9", 0, seed));
    let firsts = |random: &VllmRandom| (0..40).map(|place| random.first_of(place)).collect();
    let (firsts_one, firsts_two): (Vec<usize>, Vec<usize>) = (firsts(&one), firsts(&two));
    let mut alike = 0;
    for (place, first) in firsts_one.iter().enumerate() {
        for (other, second) in firsts_two.iter().enumerate() {
            let segment = |random: &VllmRandom, place: usize| {
                let request = crate::prompts::planned(random, place as u64);
                let [only] = random.segments(&request)[..] else { panic!("no prefix was asked") };
                assert_eq!(only.tokens, request.input_tokens);
                only.seed
            };
            let is_alike = segment(&one, place) == segment(&two, other);
            assert_eq!(is_alike, first == second, "{place} {other}");
            alike += u32::from(is_alike);
        }
    }
    assert!(0 < alike, "256 ids and 1,600 pairs");
}

#[test]
fn a_prefix_is_a_segment_that_all_prompts_of_a_seed_share() {
    let [one, two] = [0, 1].map(|seed| random("16", "5", 10, seed));
    let prefix = |random: &VllmRandom, id| random.segments(&crate::prompts::planned(random, id))[0];
    assert_eq!(prefix(&one, 0), prefix(&one, 7));
    assert_eq!(prefix(&one, 0).tokens, 10);
    assert_ne!(prefix(&one, 0).seed, prefix(&two, 0).seed);
}

#[test]
fn its_warm_up_is_its_first_prompt_again_and_again() {
    let random: Arc<dyn Prompts> = Arc::new(random("24±25%", "9±25%", 0, 3));
    let repeated = super::super::Repeated(Arc::clone(&random));
    for id in [0, 1, 5] {
        let request = crate::prompts::planned(&repeated, id);
        let first = crate::prompts::planned(random.as_ref(), 0);
        assert_eq!(repeated.content(&request), random.content(&first));
        assert_eq!(repeated.segments(&request), random.segments(&first));
        assert_eq!(request.output_tokens, first.output_tokens);
    }
}

#[test]
fn ids_without_words_are_drawn_as_those_of_a_tokenizer() {
    let spec = spec::VllmRandom { input: 24.into(), output: 9.into(), prefix_tokens: 0 };
    // As many ids as the tokenizer of bytes has, and its one special token.
    let ids = Alphabet::Ids { size: 257, special: 1 };
    let [with, without] =
        [bytes(), ids].map(|alphabet| VllmRandom::new(&spec, alphabet, 3, Some(40)).unwrap());
    for place in 0..40 {
        assert_eq!(with.first_of(place), without.first_of(place), "{place}");
    }
}
