//! Requests share text where their trace says so, and nowhere else.

use std::collections::BTreeMap;

use inferometer_model::Prompt;
use inferometer_model::observations::{Correction, FileFacts};

use super::*;

mod decorated;
use crate::prompts::planned;
use crate::trace::TraceEntry;

/// Entries by their lengths and hash ids.
fn prompts(seed: u64, entries: &[(u32, &[u64])]) -> TracePrompts {
    let mut hash_ids = Vec::new();
    let entries = entries.iter().map(|(input_tokens, ids)| {
        let start = u32::try_from(hash_ids.len()).unwrap();
        hash_ids.extend_from_slice(ids);
        let blocks = start..u32::try_from(hash_ids.len()).unwrap();
        TraceEntry { at_ns: 0, input_tokens: *input_tokens, output_tokens: 9, blocks }
    });
    let entries = entries.collect();
    let (name, kind, sha256) = (String::new(), String::new(), String::new());
    let facts = FileFacts { name, kind, sha256, items: 0, dropped: BTreeMap::new() };
    let trace = Trace { entries, hash_ids, block_tokens: 16, facts, notes: Vec::new() };
    TracePrompts { seed, text: Arc::new(TextMaker::Estimating(None)), trace: Arc::new(trace) }
}

fn words(prompts: &TracePrompts, id: u64) -> Vec<String> {
    let prompt = prompts.content(&planned(prompts, id)).prompt;
    let Prompt::Text(text) = prompt else { panic!("{prompt:?} is not a text") };
    text.split(' ').map(str::to_owned).collect()
}

fn shared(first: &[String], second: &[String]) -> usize {
    first.iter().zip(second).take_while(|(first, second)| first == second).count()
}

#[test]
fn equal_leading_ids_are_equal_leading_text() {
    let prompts = prompts(1, &[(48, &[1, 2, 3]), (40, &[1, 2, 4]), (30, &[1, 2]), (32, &[5, 2])]);
    let texts: Vec<_> = (0..4).map(|id| words(&prompts, id)).collect();
    assert_eq!(texts.iter().map(Vec::len).collect::<Vec<_>>(), [48, 40, 30, 32]);
    // A stranger's word is equal by chance once in 256.
    assert!((32..36).contains(&shared(&texts[0], &texts[1])));
    assert_eq!(shared(&texts[0], &texts[2]), 30);
    assert!(shared(&texts[0], &texts[3]) < 4);
    assert_eq!(texts[0][16..32], texts[3][16..32]);
}

#[test]
fn ids_that_are_missing_are_text_of_its_own_and_ids_too_many_are_ignored() {
    let prompts = prompts(1, &[(40, &[1]), (40, &[1]), (10, &[1, 2, 3]), (20, &[])]);
    let [first, second, cut, own] = [0, 1, 2, 3].map(|id| words(&prompts, id));
    assert_eq!([first.len(), second.len(), cut.len(), own.len()], [40, 40, 10, 20]);
    assert!((16..20).contains(&shared(&first, &second)));
    assert_eq!(first[..10], cut[..]);
    assert!(shared(&first, &own) < 4);
}

#[test]
fn after_the_last_entry_the_first_comes_again_with_new_words() {
    let prompts = prompts(1, &[(40, &[1]), (7, &[]), (32, &[1, 2])]);
    let recipe = |id| prompts.recipe(PromptIndex { id, turn: 0 });
    assert_eq!((recipe(0).item, recipe(1).item, recipe(3).item), (0, 1, 0));
    assert_eq!((recipe(1).input_tokens, recipe(1).output_tokens), (7, 9));
    assert_ne!(recipe(0).prompt_seed, recipe(3).prompt_seed);
    assert!((16..20).contains(&shared(&words(&prompts, 0), &words(&prompts, 2))));
    for id in 0..3 {
        assert!(shared(&words(&prompts, id), &words(&prompts, id + 3)) < 4, "{id}");
        assert!(shared(&words(&prompts, id + 3), &words(&prompts, id + 6)) < 4, "{id}");
    }
    let shared_again = shared(&words(&prompts, 3), &words(&prompts, 5));
    assert!((16..20).contains(&shared_again), "within a pass they share: {shared_again}");
}

#[test]
fn another_seed_has_other_words() {
    let entries: [(u32, &[u64]); 1] = [(40, &[1, 2])];
    let [one, two] = [1, 2].map(|seed| words(&prompts(seed, &entries), 0));
    assert!(shared(&one, &two) < 4);
}

#[test]
fn a_prompt_is_recorded_no_shorter_than_it_can_be() {
    let correction = Correction { tokens_per_word: 1.0, overhead_tokens: 10.0 };
    let text = Arc::new(TextMaker::Estimating(Some(correction)));
    let prompts = TracePrompts { text, ..prompts(1, &[(3, &[]), (40, &[])]) };
    let tokens = [0, 1].map(|id| planned(&prompts, id).input_tokens);
    assert_eq!(tokens, [11, 40]);
}

#[test]
fn segments_share_what_the_texts_share() {
    let prompts = prompts(1, &[(48, &[1, 2, 3]), (40, &[1, 2, 4]), (30, &[1, 2]), (20, &[])]);
    let segments = [0, 1, 2, 3].map(|id| prompts.segments(&planned(&prompts, id)));
    let lengths = segments.iter().map(|parts| parts.iter().map(|part| part.tokens).sum());
    assert_eq!(lengths.collect::<Vec<u32>>(), [48, 40, 30, 20]);
    assert_eq!(segments[0][..2], segments[1][..2]);
    assert_ne!(segments[0][2].seed, segments[1][2].seed);
    assert_eq!(segments[0][1].seed, segments[2][1].seed);
    assert_eq!(segments[2][1].tokens, 14);
}
