//! Chat and completions, laid out field by field as vLLM lays them out.
//!
//! Built by hand, because it is built once per token.

use std::borrow::Cow;

use super::answer::{self, push_text, stop_string};
use super::{Event, Finish, FinishedChoice, Identity, Piece, Usage, WholeText};
use crate::scheduler::blocks::{SPECIAL_TOKENS, VOCABULARY, mix};
use crate::serve::api::ask::{Endpoint, GenerationRequest};
use crate::serve::vocabulary::Vocabulary;

/// What is the same in all JSON of one answer.
#[derive(Debug)]
pub(super) struct Completion {
    is_chat: bool,
    /// From the first brace to the bracket that opens the choices, for an event.
    event_start: Vec<u8>,
    /// The same for an answer in one piece.
    whole_start: Vec<u8>,
    /// Where the answers to each prompt begin behind what is repeated of it, in characters.
    answers_begin: Vec<usize>,
}

impl Completion {
    pub(super) fn new(ask: &GenerationRequest, identity: &Identity<'_>) -> Self {
        let is_chat = ask.endpoint == Endpoint::Chat;
        let (prefix, event_object, whole_object) = if is_chat {
            ("chatcmpl-", "chat.completion.chunk", "chat.completion")
        } else {
            ("cmpl-", "text_completion", "text_completion")
        };
        let id = identity.text(prefix, ask.request_id.as_deref());
        let start = |object: &str| {
            let mut out = b"{\"id\":".to_vec();
            answer::push_text(&mut out, &id);
            let created = identity.created_s;
            push(&mut out, &format!(",\"object\":\"{object}\",\"created\":{created},\"model\":"));
            answer::push_text(&mut out, identity.model);
            push(&mut out, ",\"choices\":[");
            out
        };
        let echoes = ask.echo.as_deref().unwrap_or_default();
        let answers_begin = echoes.iter().map(|echo| echo.chars().count() + 1).collect();
        let (event_start, whole_start) = (start(event_object), start(whole_object));
        Self { is_chat, event_start, whole_start, answers_begin }
    }

    /// The events that name the role, one per choice; completions have no roles.
    pub(super) fn roles(&self, ask: &GenerationRequest, out: &mut Vec<u8>) {
        if !self.is_chat {
            return;
        }
        for choice in 0..ask.choices() {
            let mut json = self.event_start.clone();
            push(
                &mut json,
                &format!(
                    "{{\"index\":{choice},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\
                     \"logprobs\":null,\"finish_reason\":null}}]"
                ),
            );
            push_continuous_usage(&mut json, ask, choice, 0);
            push(&mut json, ",\"prompt_token_ids\":");
            push_ids(&mut json, ask.token_ids, ask.prompt_of(choice));
            push(&mut json, ",\"prompt_text\":null}");
            answer::data(out, &json);
        }
    }

    /// An event with a token, or with an end alone.
    pub(super) fn piece(&self, event: &Event<'_>, json: &mut Vec<u8>) {
        let Event { ask, vocabulary, piece, first } = event;
        let echo = if *first { echo_of(ask, piece.choice) } else { None };
        json.extend_from_slice(&self.event_start);
        push(json, &format!("{{\"index\":{},", piece.choice));
        push(json, if self.is_chat { "\"delta\":{\"content\":" } else { "\"text\":" });
        answer::push_text(json, &behind(ask, echo, piece.text));
        push(json, if self.is_chat { "},\"logprobs\":" } else { ",\"logprobs\":" });
        self.logprobs(json, ask, vocabulary, &self.entries(ask, piece, *first));
        self.ending(json, ask, piece.finish);
        if !self.is_chat {
            push(json, ",\"prompt_token_ids\":");
            push_ids(json, ask.token_ids && *first, ask.prompt_of(piece.choice));
        }
        push(json, ",\"token_ids\":");
        push_ids(json, ask.token_ids, piece.token.map(|(_, id)| id).as_slice());
        push(json, "}]");
        push_continuous_usage(json, ask, piece.choice, piece.tokens);
        if piece.finish.is_some() && !ask.include_usage {
            push_fingerprint(json);
        }
        push(json, "}");
    }

    /// Usage if it was asked for, and the end.
    pub(super) fn closing(&self, ask: &GenerationRequest, usage: &Usage, out: &mut Vec<u8>) {
        if ask.include_usage {
            let mut json = self.event_start.clone();
            push(&mut json, "],\"usage\":{");
            push_counts(&mut json, usage);
            if 0 < usage.cached_tokens {
                push(&mut json, ",\"prompt_tokens_details\":");
                push_cached(&mut json, usage);
            }
            push(&mut json, "}");
            push_fingerprint(&mut json);
            push(&mut json, "}");
            answer::data(out, &json);
        }
        answer::data(out, b"[DONE]");
    }

    /// An answer in one piece.
    pub(super) fn whole(
        &self,
        ask: &GenerationRequest,
        vocabulary: &Vocabulary,
        answered: &[FinishedChoice],
        texts: &[WholeText],
        usage: &Usage,
    ) -> Vec<u8> {
        let mut json = self.whole_start.clone();
        for (choice, (answered, text)) in (0..).zip(answered.iter().zip(texts)) {
            if 0 < choice {
                push(&mut json, ",");
            }
            push(&mut json, &format!("{{\"index\":{choice},"));
            self.whole_text(&mut json, &behind(ask, echo_of(ask, choice), &text.text));
            let entries = self.whole_entries(ask, choice, answered, text);
            self.logprobs(&mut json, ask, vocabulary, &entries);
            push_ending(&mut json, ask, answered.finish);
            push(&mut json, ",\"token_ids\":");
            push_ids(&mut json, ask.token_ids, &answered.ids);
            if !self.is_chat {
                push(&mut json, ",\"prompt_logprobs\":null,\"prompt_token_ids\":");
                push_ids(&mut json, ask.token_ids, ask.prompt_of(choice));
            }
            push(&mut json, ",\"routed_experts\":null}");
        }
        push(&mut json, "],\"service_tier\":null");
        push_fingerprint(&mut json);
        self.whole_end(&mut json, ask, usage);
        json
    }

    fn whole_text(&self, json: &mut Vec<u8>, text: &str) {
        push(
            json,
            if self.is_chat {
                "\"message\":{\"role\":\"assistant\",\"content\":"
            } else {
                "\"text\":"
            },
        );
        answer::push_text(json, text);
        push(
            json,
            if self.is_chat {
                ",\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,\
                 \"reasoning\":null},\"logprobs\":"
            } else {
                ",\"logprobs\":"
            },
        );
    }

    fn whole_end(&self, json: &mut Vec<u8>, ask: &GenerationRequest, usage: &Usage) {
        push(json, ",\"usage\":{");
        push_counts(json, usage);
        push(json, ",\"prompt_tokens_details\":");
        push_cached(json, usage);
        push(json, ",\"completion_tokens_details\":null}");
        if self.is_chat {
            push(json, ",\"prompt_logprobs\":null,\"prompt_token_ids\":");
            push_ids(json, ask.token_ids, ask.prompt_of(0));
            push(json, ",\"prompt_text\":null");
        }
        push(json, ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":null}");
    }

    fn logprobs(
        &self,
        json: &mut Vec<u8>,
        ask: &GenerationRequest,
        vocabulary: &Vocabulary,
        entries: &[Entry],
    ) {
        match ask.logprobs {
            None => push(json, "null"),
            Some(count) if self.is_chat => {
                push_chat(json, vocabulary, entries, count);
            }
            Some(count) => push_completion(json, vocabulary, entries, count),
        }
    }

    /// The tokens that an event tells probabilities of.
    fn entries(&self, ask: &GenerationRequest, piece: &Piece<'_>, first: bool) -> Vec<Entry> {
        if ask.logprobs.is_none() {
            return Vec::new();
        }
        let mut entries = if first { prompt_entries(ask, piece.choice) } else { Vec::new() };
        let ahead = self.answer_begins(ask, piece.choice);
        let token = piece.token.filter(|_| !ask.echo_alone);
        entries.extend(token.map(|(index, id)| Entry::generated(id, index, ahead + piece.offset)));
        entries
    }

    fn whole_entries(
        &self,
        ask: &GenerationRequest,
        choice: u16,
        answered: &FinishedChoice,
        text: &WholeText,
    ) -> Vec<Entry> {
        if ask.logprobs.is_none() {
            return Vec::new();
        }
        let mut entries = prompt_entries(ask, choice);
        if ask.echo_alone {
            return entries;
        }
        let ahead = self.answer_begins(ask, choice);
        let generated = (0..).zip(answered.ids.iter().zip(&text.offsets));
        entries.extend(
            generated.map(|(index, (id, offset))| Entry::generated(*id, index, ahead + offset)),
        );
        entries
    }

    fn answer_begins(&self, ask: &GenerationRequest, choice: u16) -> usize {
        self.answers_begin.get(usize::from(choice / ask.n)).copied().unwrap_or(0)
    }

    /// A chat's events have no `stop_reason` while they go on.
    fn ending(&self, json: &mut Vec<u8>, ask: &GenerationRequest, finish: Option<Finish>) {
        match finish {
            Some(finish) => push_ending(json, ask, finish),
            None if self.is_chat => push(json, ",\"finish_reason\":null"),
            None => push(json, ",\"finish_reason\":null,\"stop_reason\":null"),
        }
    }
}

/// The prompt's text, which with a space precedes the answer's where that was asked for.
fn echo_of(ask: &GenerationRequest, choice: u16) -> Option<&str> {
    ask.echo.as_ref()?.get(usize::from(choice / ask.n)).map(String::as_str)
}

/// The text of an answer, behind what is repeated of its prompt.
fn behind<'a>(ask: &GenerationRequest, echo: Option<&'a str>, text: &'a str) -> Cow<'a, str> {
    match echo {
        Some(echo) if ask.echo_alone => Cow::Borrowed(echo),
        Some(echo) => Cow::Owned(format!("{echo} {text}")),
        None => Cow::Borrowed(text),
    }
}

/// The tokens of a prompt that is repeated. As in the answer, the white space between two words
/// belongs to the second.
fn prompt_entries(ask: &GenerationRequest, choice: u16) -> Vec<Entry> {
    let Some(echo) = echo_of(ask, choice) else { return Vec::new() };
    let mut entries = Vec::new();
    let (mut chars, mut bytes) = (0, 0);
    let words = echo.split_whitespace().chain(std::iter::repeat(""));
    for ((index, id), word) in (0..).zip(ask.prompt_of(choice)).zip(words) {
        entries.push(Entry { id: *id, index, offset: chars, is_first_of_prompt: index == 0 });
        let rest = &echo[bytes..];
        let length = rest.find(word).unwrap_or(0) + word.len();
        chars += rest[..length].chars().count();
        bytes += length;
    }
    entries
}

fn push(json: &mut Vec<u8>, text: &str) {
    json.extend_from_slice(text.as_bytes());
}

fn push_ids(json: &mut Vec<u8>, wanted: bool, ids: &[u32]) {
    if !wanted {
        return push(json, "null");
    }
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    push(json, &format!("[{}]", ids.join(",")));
}

fn push_ending(json: &mut Vec<u8>, ask: &GenerationRequest, finish: Finish) {
    let reason = match finish {
        Finish::Length => "length",
        Finish::EndOfSequence | Finish::StopString(_) | Finish::StopToken(_) => "stop",
        Finish::Abort => "abort",
    };
    push(json, &format!(",\"finish_reason\":\"{reason}\",\"stop_reason\":"));
    match finish {
        Finish::StopString(which) => answer::push_text(json, stop_string(ask, which)),
        Finish::StopToken(id) => push(json, &id.to_string()),
        Finish::Length | Finish::EndOfSequence | Finish::Abort => push(json, "null"),
    }
}

fn push_continuous_usage(json: &mut Vec<u8>, ask: &GenerationRequest, choice: u16, tokens: u32) {
    if !ask.continuous_usage {
        return;
    }
    let prompt_tokens = u32::try_from(ask.prompt_of(choice).len()).unwrap_or(u32::MAX);
    let usage = Usage { prompt_tokens, completion_tokens: tokens, cached_tokens: 0 };
    push(json, ",\"usage\":{");
    push_counts(json, &usage);
    push(json, ",\"completion_tokens_details\":null}");
}

fn push_counts(json: &mut Vec<u8>, usage: &Usage) {
    let (prompt, tokens) = (usage.prompt_tokens, usage.completion_tokens);
    let total = prompt.saturating_add(tokens);
    push(
        json,
        &format!(
            "\"prompt_tokens\":{prompt},\"total_tokens\":{total},\"completion_tokens\":{tokens}"
        ),
    );
}

fn push_cached(json: &mut Vec<u8>, usage: &Usage) {
    match usage.cached_tokens {
        0 => push(json, "null"),
        cached => push(json, &format!("{{\"cached_tokens\":{cached}}}")),
    }
}

fn push_fingerprint(json: &mut Vec<u8>) {
    push(json, concat!(",\"system_fingerprint\":\"inferometer-", env!("CARGO_PKG_VERSION"), "\""));
}

/// A token whose probabilities are sent.
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
    pub(super) fn generated(id: u32, index: u32, offset: usize) -> Self {
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
    // The chosen token is sent even if no alternatives are.
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
            let listed: Vec<(u32, f64)> = likeliest(entry, 20).collect();
            assert!(listed.is_sorted_by(|(_, more), (_, less)| less < more));
            let sum: f64 = listed.iter().map(|(_, logprob)| logprob.exp()).sum();
            assert!(sum < 1.0, "{sum}");
            let mut ids: Vec<u32> = listed.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 20);
        }
    }
}
