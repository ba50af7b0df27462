//! Probabilities that look like a model's: the same for the same token at the same place, the
//! chosen token the likeliest, and all that are told add up to less than one.

use super::events::push_text;
use crate::scheduler::tokens::{SPECIAL_TOKENS, VOCABULARY, mix};
use crate::serve::vocabulary::Vocabulary;

/// A token of which probabilities are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) id: u32,
    /// Its place in the answer.
    pub(super) index: u32,
    /// Where in the text it begins.
    pub(super) offset: usize,
    /// The first token of a prompt has no probability: nothing is ahead of it.
    pub(super) is_first_of_prompt: bool,
}

impl Entry {
    /// A token of an answer.
    pub(super) fn said(id: u32, index: u32, offset: usize) -> Self {
        Self { id, index, offset, is_first_of_prompt: false }
    }
}

/// The likeliest tokens, the chosen one first.
fn likeliest(entry: Entry, count: u32) -> impl Iterator<Item = (u32, f64)> {
    let words = VOCABULARY - SPECIAL_TOKENS;
    let place = entry.id.saturating_sub(SPECIAL_TOKENS);
    let unit = move |rank: u32| {
        let seed = (u64::from(entry.id) << 32) | (u64::from(entry.index) ^ u64::from(rank) << 27);
        (mix(seed.wrapping_add(1)) >> 44) as f64 / f64::from(1_u32 << 20)
    };
    (0..count).map(move |rank| {
        if rank == 0 {
            // Between 0.49 and 0.90.
            return (entry.id, -0.11 - 0.6 * unit(0));
        }
        // A prime stride: no two ranks give the same word.
        let id = SPECIAL_TOKENS + (place + rank * 7_919) % words;
        // At most 0.05, and each at most half of the one before: all of them less than 0.10.
        (id, -3.0 - 0.7 * f64::from(rank - 1) - 0.05 * unit(rank))
    })
}

/// As chat tells them.
pub(super) fn push_chat(out: &mut Vec<u8>, vocabulary: &Vocabulary, entries: &[Entry], count: u32) {
    out.extend_from_slice(b"{\"content\":[");
    for (at, entry) in entries.iter().enumerate() {
        separate(out, at);
        for chosen in likeliest(*entry, 1) {
            push_chat_token(out, vocabulary, chosen);
        }
        out.extend_from_slice(b",\"top_logprobs\":[");
        for (rank, token) in likeliest(*entry, count).enumerate() {
            separate(out, rank);
            push_chat_token(out, vocabulary, token);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
    out.extend_from_slice(b"]}");
}

/// Leaves the object open.
fn push_chat_token(out: &mut Vec<u8>, vocabulary: &Vocabulary, (id, logprob): (u32, f64)) {
    let text = vocabulary.text(id);
    out.extend_from_slice(b"{\"token\":");
    push_text(out, text);
    out.extend_from_slice(format!(",\"logprob\":{logprob:.6},\"bytes\":[").as_bytes());
    let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    out.extend_from_slice(bytes.join(",").as_bytes());
    out.push(b']');
}

/// As completions tell them: four lists.
pub(super) fn push_completion(
    out: &mut Vec<u8>,
    vocabulary: &Vocabulary,
    entries: &[Entry],
    count: u32,
) {
    let offsets: Vec<String> = entries.iter().map(|entry| entry.offset.to_string()).collect();
    push_list(out, b"{\"text_offset\":[", &offsets);
    let chosen: Vec<String> = entries.iter().map(|entry| chosen_logprob(*entry)).collect();
    push_list(out, b"],\"token_logprobs\":[", &chosen);
    out.extend_from_slice(b"],\"tokens\":[");
    for (at, entry) in entries.iter().enumerate() {
        separate(out, at);
        push_text(out, vocabulary.text(entry.id));
    }
    out.extend_from_slice(b"],\"top_logprobs\":[");
    for (at, entry) in entries.iter().enumerate() {
        separate(out, at);
        push_alternatives(out, vocabulary, *entry, count);
    }
    out.extend_from_slice(b"]}");
}

fn push_list(out: &mut Vec<u8>, opening: &[u8], items: &[String]) {
    out.extend_from_slice(opening);
    out.extend_from_slice(items.join(",").as_bytes());
}

fn chosen_logprob(entry: Entry) -> String {
    match likeliest(entry, 1).next() {
        Some((_, logprob)) if !entry.is_first_of_prompt => format!("{logprob:.6}"),
        _ => "null".to_owned(),
    }
}

fn push_alternatives(out: &mut Vec<u8>, vocabulary: &Vocabulary, entry: Entry, count: u32) {
    if entry.is_first_of_prompt {
        return out.extend_from_slice(b"null");
    }
    out.push(b'{');
    // The chosen token is told even if no alternatives are.
    for (rank, (id, logprob)) in likeliest(entry, count.max(1)).enumerate() {
        separate(out, rank);
        push_text(out, vocabulary.text(id));
        out.extend_from_slice(format!(":{logprob:.6}").as_bytes());
    }
    out.push(b'}');
}

fn separate(out: &mut Vec<u8>, at: usize) {
    if 0 < at {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_fall_with_the_rank_and_add_up_to_less_than_one() {
        for id in SPECIAL_TOKENS..VOCABULARY {
            let entry = Entry { id, index: id % 97, offset: 0, is_first_of_prompt: false };
            let told: Vec<(u32, f64)> = likeliest(entry, 20).collect();
            assert!(told.is_sorted_by(|(_, more), (_, less)| less < more));
            let sum: f64 = told.iter().map(|(_, logprob)| logprob.exp()).sum();
            assert!(sum < 1.0, "{sum}");
            let mut ids: Vec<u32> = told.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 20);
        }
    }
}
