//! What answers say and when: words, JSON, schedules, and streams as sequences of writes.
//!
//! Shared by the modes; pure, without sockets or clocks.

use std::time::Duration;

use inferometer_model::whole::to_u64;

use crate::clock::Moment;
use crate::faults::{Fault, Faults};
use crate::framing::{BYTE_ORDER_MARK, Framing, LAST_CHUNK, SEVERAL, Write};
use crate::http::{JSON_HEAD, STREAM_HEAD};
use crate::json::{Json, Members, members};
use crate::options::Pacing;
use crate::scheduler::blocks::mix;
use crate::truth::Api;

/// The tokens of one answer, in order.
#[derive(Clone, Debug)]
pub(crate) struct Words(Draws);

impl Words {
    pub(crate) fn new(seed: u64, ordinal: u64) -> Self {
        Self(Draws::new(seed, ordinal, Purpose::Words))
    }

    pub(crate) fn next(&mut self) -> WordId {
        // The top six bits choose one of the 64 words evenly.
        WordId((self.0.next() >> 58) as u8)
    }
}

/// A token's position in the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordId(u8);

impl WordId {
    /// The word; in an answer, a space goes ahead of it.
    pub(crate) fn word(self) -> &'static str {
        VOCABULARY[usize::from(self.0) % VOCABULARY.len()]
    }

    /// The token id as a tokenizer would number it.
    pub(crate) fn token_id(self) -> u32 {
        // Lower ids are those that tokenizers keep for special tokens.
        256 + u32::from(self.0)
    }
}

/// Plain ASCII without quotes, so that a word needs no escaping in JSON.
const VOCABULARY: [&str; 64] = [
    "amber", "anchor", "apple", "autumn", "basil", "beacon", "birch", "bridge", "candle", "canyon",
    "cedar", "cinder", "cloud", "cobalt", "copper", "coral", "cotton", "crane", "delta", "dune",
    "ember", "falcon", "fern", "field", "flint", "forest", "garnet", "glacier", "granite",
    "harbor", "hazel", "heron", "indigo", "iris", "island", "ivory", "jasper", "juniper",
    "lantern", "lichen", "linen", "maple", "marble", "meadow", "mint", "north", "oak", "olive",
    "opal", "orchard", "pearl", "pine", "quartz", "raven", "river", "saffron", "sage", "silver",
    "slate", "spruce", "tide", "valley", "willow", "winter",
];

/// When the tokens of an answer are due, one after another, without an end.
///
/// The times depend on the receipt and the seed alone: a late token never delays the next ones.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// When the last token was due; the receipt, ahead of the first token.
    last: Moment,
    /// The next interval: the time to the first token, then gaps.
    next_ns: u64,
    gap_ns: u64,
    jitter: f64,
    draws: Draws,
}

impl Schedule {
    pub(crate) fn new(received: Moment, pacing: &Pacing, seed: u64, ordinal: u64) -> Self {
        let whole_ns = |interval: Duration| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Self {
            last: received,
            next_ns: whole_ns(pacing.ttft),
            gap_ns: whole_ns(pacing.gap),
            jitter: pacing.jitter,
            draws: Draws::new(seed, ordinal, Purpose::Schedule),
        }
    }

    /// When the next token is due.
    pub(crate) fn next(&mut self) -> Moment {
        let factor = 1.0 + self.jitter * (2.0 * self.draws.unit() - 1.0);
        let interval_ns = to_u64((self.next_ns as f64 * factor).round());
        self.last = self.last.plus_ns(interval_ns);
        self.next_ns = self.gap_ns;
        self.last
    }

    /// When the last of `tokens` is due.
    pub(crate) fn nth(mut self, tokens: u32) -> Moment {
        (0..tokens).fold(self.last, |_, _| self.next())
    }
}

/// What is the same in all JSON of one answer.
#[derive(Clone, Debug)]
pub(crate) struct AnswerJson {
    envelope: Envelope,
    prompt_tokens: u32,
    detail: Detail,
}

/// What all documents of an answer begin with.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) is_chat: bool,
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created_s: u64,
}

impl Envelope {
    pub(crate) fn new(api: Api, identity: &Identity<'_>, name: Option<&str>) -> Self {
        let prefix = match api {
            // vLLM makes messages out of chats, and the id shows it.
            Api::Chat | Api::Messages => "chatcmpl-",
            Api::Responses => "resp_",
            Api::Completions | Api::Embeddings => "cmpl-",
        };
        let (id, model) = (identity.text(prefix, name), identity.model.to_owned());
        Self { is_chat: api == Api::Chat, id, model, created_s: identity.created_s }
    }

    /// The members of a chat's or a completion's document.
    pub(crate) fn around<'a>(
        &'a self,
        chat_object: &'a str,
        choices: impl Iterator<Item = Members<'a>>,
    ) -> Members<'a> {
        members! {
            "id": &*self.id,
            "object": if self.is_chat { chat_object } else { "text_completion" },
            "created": Json::Count(self.created_s), "model": &*self.model,
            "choices": Json::List(choices.map(Json::from).collect()),
        }
    }
}

pub(crate) fn usage_counts(prompt: u32, tokens: u32) -> Members<'static> {
    members! {
        "prompt_tokens": prompt,
        "total_tokens": prompt.saturating_add(tokens),
        "completion_tokens": tokens,
    }
}

/// What the client asked for with every token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Detail {
    pub(crate) continuous_usage: bool,
    pub(crate) token_ids: bool,
}

/// The identity of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    /// Unique; 16 hexadecimal digits of it are shown.
    pub(crate) id: u64,
    pub(crate) created_s: u64,
    pub(crate) model: &'a str,
}

impl Identity<'_> {
    /// As vLLM makes it: the client's name for the request, else a number.
    pub(crate) fn text(&self, prefix: &str, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("{prefix}{name}"),
            None => format!("{prefix}{:016x}", self.id),
        }
    }
}

/// The tokens of one event, and its position in the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenEvent<'a> {
    pub(crate) words: &'a [WordId],
    /// Tokens of the answer so far, these included.
    pub(crate) tokens_so_far: u32,
    pub(crate) is_last: bool,
    /// Usage is sent even if it was not asked for.
    pub(crate) with_usage: bool,
}

impl AnswerJson {
    pub(crate) fn new(
        api: Api,
        identity: &Identity<'_>,
        prompt_tokens: u32,
        detail: Detail,
    ) -> Self {
        Self { envelope: Envelope::new(api, identity, None), prompt_tokens, detail }
    }

    /// Where an event may be broken into two lines: behind its id.
    pub(crate) fn seam(&self) -> usize {
        self.envelope.id.len() + "{\"id\":\"\",".len()
    }

    /// The event that names the role: alone as transformers sends it, or as vLLM sends it with the
    /// first token.
    pub(crate) fn role(&self, is_alone: bool) -> Vec<u8> {
        let mut delta = members! {"role": "assistant"};
        delta.extend((!is_alone).then(|| ("content", "".into())));
        let choice = members! {
            "index": 0, "delta": delta, "logprobs": Json::Null, "finish_reason": Json::Null,
        };
        self.document(EVENT, Some(choice), self.detail.continuous_usage.then_some(0))
    }

    /// An event with tokens.
    pub(crate) fn tokens(&self, event: &TokenEvent<'_>) -> Vec<u8> {
        let text = joined(event.words);
        let (name, content): (_, Json<'_>) = if self.envelope.is_chat {
            ("delta", members! {"content": &*text}.into())
        } else {
            ("text", text.as_str().into())
        };
        let mut choice = members! {
            "index": 0, name: content, "logprobs": Json::Null,
            "finish_reason": event.is_last.then_some("length"),
        };
        if event.is_last || !self.envelope.is_chat {
            choice.push(("stop_reason", Json::Null));
        }
        choice.push(("token_ids", self.token_ids(event.words)));
        let usage = self.detail.continuous_usage || event.with_usage;
        self.document(EVENT, Some(choice), usage.then_some(event.tokens_so_far))
    }

    /// The event with the usage, which has no choices.
    pub(crate) fn usage(&self, tokens: u32) -> Vec<u8> {
        self.document(EVENT, None, Some(tokens))
    }

    /// An answer in one piece.
    pub(crate) fn whole(&self, words: &[WordId]) -> Vec<u8> {
        let text = joined(words);
        let message = members! {"role": "assistant", "content": &*text, "refusal": Json::Null};
        let (name, content): (_, Json<'_>) = if self.envelope.is_chat {
            ("message", message.into())
        } else {
            ("text", (&*text).into())
        };
        let choice = members! {
            "index": 0, name: content, "logprobs": Json::Null, "finish_reason": "length",
            "stop_reason": Json::Null, "token_ids": self.token_ids(words),
        };
        let tokens = u32::try_from(words.len()).unwrap_or(u32::MAX);
        self.document("chat.completion", Some(choice), Some(tokens))
    }

    /// `usage` counts the tokens of the answer so far.
    fn document(
        &self,
        chat_object: &str,
        choice: Option<Members<'_>>,
        usage: Option<u32>,
    ) -> Vec<u8> {
        let mut document = self.envelope.around(chat_object, choice.into_iter());
        document.extend(usage.map(|tokens| {
            let mut usage = usage_counts(self.prompt_tokens, tokens);
            usage.push(("prompt_tokens_details", members! {"cached_tokens": 0}.into()));
            ("usage", usage.into())
        }));
        Json::from(document).bytes()
    }

    fn token_ids(&self, words: &[WordId]) -> Json<'static> {
        let ids = || words.iter().map(|word| word.token_id().into()).collect();
        if self.detail.token_ids { Json::List(ids()) } else { Json::Null }
    }
}

/// What vLLM calls an event of a chat.
const EVENT: &str = "chat.completion.chunk";

/// Words with a space ahead of each.
fn joined(words: &[WordId]) -> String {
    words.iter().flat_map(|word| [" ", word.word()]).collect()
}

/// An answer that is not streamed, as one write.
pub(crate) fn whole_answer(
    json: &AnswerJson,
    mut words: Words,
    tokens: u32,
    due: Option<Moment>,
) -> Write {
    let chosen: Vec<WordId> = (0..tokens).map(|_| words.next()).collect();
    let body = json.whole(&chosen);
    let mut write = Write::default();
    write.due = due;
    write.raw(format!("{JSON_HEAD}{}\r\n\r\n", body.len()).as_bytes());
    write.raw(&body);
    write.mark_tokens(tokens);
    write
}

/// What a stream consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamShape {
    pub(crate) api: Api,
    pub(crate) tokens: u32,
    pub(crate) tokens_per_event: u32,
    pub(crate) events_per_write: u32,
    /// Usage has an event of its own.
    pub(crate) usage_event: bool,
    pub(crate) faults: Faults,
}

impl StreamShape {
    pub(crate) fn new(api: Api, pacing: &Pacing, include_usage: bool, faults: Faults) -> Self {
        let held_back = faults.contains(Fault::SeveralEvents) && pacing.events_per_write == 1;
        Self {
            api,
            tokens: pacing.tokens,
            tokens_per_event: pacing.tokens_per_write,
            events_per_write: if held_back { SEVERAL } else { pacing.events_per_write },
            usage_event: include_usage && !faults.contains(Fault::UsageOnLastChoice),
            faults,
        }
    }
}

/// A streamed answer; what of it has been built is not kept.
#[derive(Debug)]
pub(crate) struct TokenStream {
    shape: StreamShape,
    framing: Framing,
    json: AnswerJson,
    schedule: Schedule,
    words: Words,
    stage: Stage,
    head_built: bool,
    tokens_built: u32,

    /// Reused for the words of every event.
    event_words: Vec<WordId>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The `comments` fault: one leaves ahead of the first token.
    EarlyComment,
    /// The `role-first` fault.
    EarlyRole,
    /// The role, together with the first token.
    Role,
    Tokens,
    Usage,
    Done,
    LastChunk,
    Over,
}

impl TokenStream {
    pub(crate) fn new(
        shape: StreamShape,
        json: AnswerJson,
        schedule: Schedule,
        words: Words,
    ) -> Self {
        Self {
            framing: Framing::with(shape.faults),
            stage: if shape.faults.contains(Fault::Comments) {
                Stage::EarlyComment
            } else {
                Stage::after_comment(&shape)
            },
            shape,
            json,
            schedule,
            words,
            head_built: false,
            tokens_built: 0,
            event_words: Vec::new(),
        }
    }

    /// Builds the next write; false if there is none.
    pub(crate) fn next_write(&mut self, write: &mut Write) -> bool {
        write.clear();
        if self.stage == Stage::Over {
            return false;
        }
        if self.stage == Stage::LastChunk {
            write.raw(LAST_CHUNK);
            self.stage = Stage::Over;
            return true;
        }
        // The head leaves together with the first bytes of the body.
        if !std::mem::replace(&mut self.head_built, true) {
            write.raw(STREAM_HEAD);
            if self.shape.faults.contains(Fault::Bom) {
                write.payload(BYTE_ORDER_MARK);
            }
        }
        while self.stage != Stage::LastChunk {
            let leaves = self.add(write);
            self.stage = self.following();
            if leaves {
                break;
            }
        }
        write.close_chunk();
        true
    }

    /// Adds the events of the stage; true if the write must not wait for more.
    fn add(&mut self, write: &mut Write) -> bool {
        match self.stage {
            Stage::EarlyComment => {
                self.framing.comment(write);
                return true;
            }
            Stage::EarlyRole | Stage::Role => {
                let is_alone = self.stage == Stage::EarlyRole;
                self.add_event(write, &self.json.role(is_alone), 0);
                return is_alone;
            }
            Stage::Tokens => self.add_tokens(write),
            Stage::Usage => self.add_event(write, &self.json.usage(self.tokens_built), 0),
            Stage::Done => self.framing.done_event(write),
            Stage::LastChunk | Stage::Over => return true,
        }
        self.shape.events_per_write as usize <= write.events()
    }

    fn add_tokens(&mut self, write: &mut Write) {
        let left = self.shape.tokens - self.tokens_built;
        let count = self.shape.tokens_per_event.min(left);
        self.event_words.clear();
        for _ in 0..count {
            self.event_words.push(self.words.next());
            write.due = Some(self.schedule.next());
        }
        self.tokens_built += count;
        let is_last = self.tokens_built == self.shape.tokens;
        let event = TokenEvent {
            words: &self.event_words,
            tokens_so_far: self.tokens_built,
            is_last,
            with_usage: is_last && self.shape.faults.contains(Fault::UsageOnLastChoice),
        };
        self.add_event(write, &self.json.tokens(&event), count);
    }

    fn add_event(&self, write: &mut Write, json: &[u8], tokens: u32) {
        self.framing.json_event(write, json, self.json.seam(), tokens);
    }

    fn following(&self) -> Stage {
        let shape = &self.shape;
        let done =
            if shape.faults.contains(Fault::NoDone) { Stage::LastChunk } else { Stage::Done };
        match self.stage {
            Stage::EarlyComment => Stage::after_comment(shape),
            Stage::EarlyRole | Stage::Role => Stage::Tokens,
            Stage::Tokens if self.tokens_built < shape.tokens => Stage::Tokens,
            Stage::Tokens if shape.usage_event => Stage::Usage,
            Stage::Tokens | Stage::Usage => done,
            Stage::Done => Stage::LastChunk,
            Stage::LastChunk | Stage::Over => Stage::Over,
        }
    }
}

impl Stage {
    fn after_comment(shape: &StreamShape) -> Self {
        if shape.api != Api::Chat {
            Self::Tokens
        } else if shape.faults.contains(Fault::RoleFirst) {
            Self::EarlyRole
        } else {
            Self::Role
        }
    }
}

/// One stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    state: u64,
}

/// What a stream is for, so that changing one does not change another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Schedule = 1,
    Words = 2,
    AnswerId = 3,
    StepNoise = 4,
    Length = 5,
    Jitter = 6,
    Rightness = 7,
}

impl Draws {
    pub(crate) fn new(seed: u64, ordinal: u64, purpose: Purpose) -> Self {
        Self { state: mix(mix(mix(seed) ^ ordinal) ^ purpose as u64) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number drawn evenly from `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        // The upper 53 bits fill a mantissa exactly.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A draw of the standard normal distribution (Box and Muller 1958, one of the pair).
    pub(crate) fn normal(&mut self) -> f64 {
        // The even draw is turned around, because zero has no logarithm.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod words_tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_words() {
        let say = |seed| {
            let mut words = Words::new(seed, 0);
            [words.next(), words.next(), words.next()].map(WordId::word).join(" ")
        };
        assert_eq!(say(1), say(1));
        assert_ne!(say(1), say(2));
    }

    #[test]
    fn every_word_comes_up_and_needs_no_escaping() {
        let mut words = Words::new(0, 0);
        let mut seen = [false; 64];
        (0..2_000).for_each(|_| seen[usize::from(words.next().0)] = true);
        assert!(seen.iter().all(|seen| *seen));
        assert!(VOCABULARY.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}

#[cfg(test)]
mod schedule_tests {
    use super::*;

    fn pacing(jitter: f64) -> Pacing {
        let (ttft, gap) = (Duration::from_micros(1), Duration::from_nanos(100));
        Pacing { ttft, gap, jitter, ..Pacing::default() }
    }

    fn first(jitter: f64, seed: u64, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(Moment::from_ns(5), &pacing(jitter), seed, 0);
        (0..count).map(|_| schedule.next().ns()).collect()
    }

    #[test]
    fn without_jitter_tokens_are_evenly_spaced_after_the_first() {
        assert_eq!(first(0.0, 1, 4), [1_005, 1_105, 1_205, 1_305]);
        let schedule = Schedule::new(Moment::from_ns(5), &pacing(0.0), 1, 0);
        assert_eq!(schedule.nth(4).ns(), 1_305);
    }

    #[test]
    fn jitter_stays_within_its_share_of_every_interval() {
        for seed in 0..200 {
            let due = first(0.25, seed, 50);
            assert!((755..=1_255).contains(&due[0]), "seed {seed}: {due:?}");
            let fits = due.windows(2).all(|pair| (75..=125).contains(&(pair[1] - pair[0])));
            assert!(fits, "seed {seed}: {due:?}");
        }
    }

    #[test]
    fn a_seed_fixes_the_schedule() {
        assert_eq!(first(0.5, 9, 20), first(0.5, 9, 20));
        assert_ne!(first(0.5, 9, 20), first(0.5, 10, 20));
    }
}

#[cfg(test)]
mod json_tests {
    use serde_json::Value;

    use super::*;

    fn json(api: Api, detail: Detail) -> AnswerJson {
        let identity = Identity { id: 0xab, created_s: 17, model: "a \"quoted\" \\ id" };
        AnswerJson::new(api, &identity, 5, detail)
    }

    fn parsed(json: &[u8]) -> Value {
        serde_json::from_slice(json).unwrap()
    }

    fn two_words() -> [WordId; 2] {
        let mut words = Words::new(1, 1);
        [words.next(), words.next()]
    }

    #[test]
    fn a_chat_event_has_the_fields_of_vllm() {
        let words = two_words();
        let event =
            TokenEvent { words: &words, tokens_so_far: 2, is_last: false, with_usage: false };
        let out = json(Api::Chat, Detail::default()).tokens(&event);
        let text = words.map(|word| format!(" {}", word.word())).concat();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(
                "{{\"id\":\"chatcmpl-00000000000000ab\",\"object\":\"chat.completion.chunk\",\
                 \"created\":17,\"model\":\"a \\\"quoted\\\" \\\\ id\",\"choices\":[{{\"index\":0,\
                 \"delta\":{{\"content\":\"{text}\"}},\"logprobs\":null,\"finish_reason\":null,\
                 \"token_ids\":null}}]}}"
            )
        );
    }

    #[test]
    fn details_are_told_only_when_asked_for() {
        let words = two_words();
        let event =
            TokenEvent { words: &words, tokens_so_far: 9, is_last: true, with_usage: false };
        let detail = Detail { continuous_usage: true, token_ids: true };
        let value = parsed(&json(Api::Completions, detail).tokens(&event));
        assert_eq!(value["usage"]["completion_tokens"], 9);
        assert_eq!(value["usage"]["total_tokens"], 14);
        assert_eq!(value["choices"][0]["finish_reason"], "length");
        assert_eq!(value["choices"][0]["token_ids"][1], words[1].token_id());
        let without = parsed(&json(Api::Completions, Detail::default()).tokens(&event));
        assert_eq!(without.get("usage"), None);
    }

    #[test]
    fn every_kind_of_json_is_json_and_may_be_broken_at_the_seam() {
        for api in [Api::Chat, Api::Completions] {
            let json = json(api, Detail::default());
            let whole = parsed(&json.whole(&two_words()));
            assert_eq!(whole["usage"]["completion_tokens"], 2);
            let mut out = json.usage(3);
            out.insert(json.seam(), b'\n');
            let usage: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(
                (&usage["choices"], &usage["usage"]["total_tokens"]),
                (&Value::from(Vec::<u8>::new()), &Value::from(8))
            );
            assert_eq!(parsed(&json.role(false))["choices"][0]["delta"]["content"], "");
            let bare = parsed(&json.role(true));
            assert_eq!(bare["choices"][0]["delta"].get("content"), None);
        }
    }
}

#[cfg(test)]
mod stream_tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Moment;

    /// One write, in short.
    #[derive(Debug, PartialEq)]
    struct Brief {
        due_ns: Option<u64>,
        events: usize,
        tokens: u32,
    }

    fn brief(due_ns: u64, events: usize, tokens: u32) -> Brief {
        Brief { due_ns: Some(due_ns), events, tokens }
    }

    fn follow_up(events: usize) -> Brief {
        Brief { due_ns: None, events, tokens: 0 }
    }

    fn writes(api: Api, pacing: &Pacing, faults: &[Fault]) -> Vec<Brief> {
        let faults = faults.iter().copied().collect();
        let shape = StreamShape::new(api, pacing, true, faults);
        let identity = Identity { id: 1, created_s: 1, model: "m" };
        let json = AnswerJson::new(api, &identity, 1, Detail::default());
        let schedule = Schedule::new(Moment::from_ns(0), pacing, 0, 0);
        let mut stream = TokenStream::new(shape, json, schedule, Words::new(0, 0));
        let mut write = Write::default();
        let mut briefs = Vec::new();
        while stream.next_write(&mut write) {
            let tokens = write.marks.iter().map(|mark| mark.tokens).sum();
            let due_ns = write.due.map(Moment::ns);
            briefs.push(Brief { due_ns, events: write.events(), tokens });
        }
        briefs
    }

    fn pacing(tokens: u32) -> Pacing {
        let (ttft, gap) = (Duration::from_nanos(100), Duration::from_nanos(10));
        Pacing { ttft, gap, tokens, ..Pacing::default() }
    }

    #[test]
    fn the_role_shares_the_first_write_and_the_ending_is_three_writes() {
        assert_eq!(
            writes(Api::Chat, &pacing(2), &[]),
            [brief(100, 2, 1), brief(110, 1, 1), follow_up(1), follow_up(1), follow_up(0)]
        );
    }

    #[test]
    fn an_event_of_several_tokens_is_due_with_its_last() {
        let pacing = Pacing { tokens_per_write: 3, ..pacing(4) };
        assert_eq!(
            writes(Api::Completions, &pacing, &[]),
            [brief(120, 1, 3), brief(130, 1, 1), follow_up(1), follow_up(1), follow_up(0)]
        );
    }

    #[test]
    fn events_held_back_leave_when_the_last_of_them_is_due() {
        assert_eq!(
            writes(Api::Completions, &pacing(6), &[Fault::SeveralEvents]),
            [brief(130, 4, 4), brief(150, 4, 2), follow_up(0)]
        );
    }

    #[test]
    fn early_parts_wait_for_nothing() {
        assert_eq!(
            writes(Api::Chat, &pacing(1), &[Fault::Comments, Fault::RoleFirst, Fault::NoDone]),
            [follow_up(0), follow_up(1), brief(100, 1, 1), follow_up(1), follow_up(0)]
        );
    }

    #[test]
    fn usage_on_the_last_choice_has_no_event_of_its_own() {
        assert_eq!(
            writes(Api::Chat, &pacing(1), &[Fault::UsageOnLastChoice]),
            [brief(100, 2, 1), follow_up(1), follow_up(0)]
        );
    }
}

#[cfg(test)]
mod draws_tests {
    use super::*;

    /// The first outputs of the reference implementation for the state 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut draws = Draws { state: 1_234_567 };
        let first = [draws.next(), draws.next(), draws.next()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn streams_of_other_requests_and_purposes_differ() {
        let first = |seed, ordinal, purpose| Draws::new(seed, ordinal, purpose).next();
        let base = first(7, 3, Purpose::Words);
        assert_eq!(base, first(7, 3, Purpose::Words));
        assert_ne!(base, first(8, 3, Purpose::Words));
        assert_ne!(base, first(7, 4, Purpose::Words));
        assert_ne!(base, first(7, 3, Purpose::Schedule));
    }

    #[test]
    fn a_unit_draw_stays_in_range() {
        let mut draws = Draws::new(0, 0, Purpose::Schedule);
        assert!((0..10_000).map(|_| draws.unit()).all(|x| (0.0..1.0).contains(&x)));
    }
}
