//! The paced mode: tokens on a schedule that is fixed when the request arrives, and the truth of
//! what became of it.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::clock::{Clock, Moment};
use crate::faults::{Fault, Faults};
use crate::framing::Write;
use crate::generation::{
    AnswerJson, Detail, Dialect, Draws, Identity, Purpose, Schedule, StreamShape, TokenStream,
    Words, whole_answer,
};
use crate::http::{self, ErrorBody, Request, Route, Status};
use crate::options::{EngineOptions, Limits, OptionsError, Pacing};
use crate::server::Housekeeping;
use crate::service::{Context, Next, NextWrite, Reply, Service, Written};
use crate::socket::Received;
use crate::truth::{Ended, Entry, Passed, RequestTruth};

/// A generation request with nothing left open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generation {
    pub(crate) streamed: bool,
    pub(crate) prompt_tokens: u32,
    pub(crate) pacing: Pacing,
    pub(crate) faults: Faults,
    pub(crate) include_usage: bool,
    pub(crate) detail: Detail,
}

/// Reads a body; `options` say what the request leaves open.
pub(crate) fn parse(
    body: &[u8],
    dialect: Dialect,
    options: &EngineOptions,
) -> Result<Generation, RequestError> {
    let draft: Draft = serde_json::from_slice(body)?;
    if let Some(model) = draft.model.as_deref().filter(|model| *model != options.model_id()) {
        let known = options.model_id().to_owned();
        return Err(RequestError::UnknownModel { model: model.to_owned(), known });
    }
    draft.resolve(dialect, options)
}

/// Why a generation request cannot be carried out; where vLLM has words for it, in those.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("invalid request body: {0}")]
    Body(#[from] serde_json::Error),
    #[error("The model `{model}` does not exist. Valid aliases: {known}.")]
    UnknownModel { model: String, known: String },
    #[error("field required: {0}")]
    Missing(&'static str),
    #[error("{param} must be at least 1, got {value}. (parameter={param}, value={value})")]
    TooFewTokens { param: &'static str, value: i64 },
    #[error("{param} must be at most {limit}, got {value}. (parameter={param}, value={value})")]
    TooManyTokens { param: &'static str, value: i64, limit: u32 },
    #[error("`{name}` is {value}; it must be a number of milliseconds, 0 or more")]
    BadInterval { name: &'static str, value: f64 },
    #[error("paced: {0}")]
    Pacing(#[from] OptionsError),
}

impl RequestError {
    /// The error as an answer in vLLM's shape.
    pub(crate) fn error_body(&self) -> ErrorBody {
        let (status, param) = match self {
            Self::UnknownModel { .. } => (Status::NotFound, Some("model")),
            Self::Body(_) => (Status::BadRequest, None),
            Self::Missing(param)
            | Self::TooFewTokens { param, .. }
            | Self::TooManyTokens { param, .. } => (Status::BadRequest, Some(*param)),
            Self::BadInterval { .. } | Self::Pacing(_) => (Status::BadRequest, Some("paced")),
        };
        ErrorBody::new(status, self.to_string()).about(param)
    }
}

/// The body as sent. Fields that are not listed are accepted and ignored, as vLLM does.
#[derive(Debug, Deserialize)]
struct Draft {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Length<TokenId>>,
    stream: Option<bool>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    stream_options: Option<StreamOptions>,
    return_token_ids: Option<bool>,
    paced: Option<PacedDraft>,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<Length<Part>>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// Our own extension. Here a misspelt key would silently test nothing, so it is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PacedDraft {
    ttft_ms: Option<f64>,
    gap_ms: Option<f64>,
    tokens: Option<u32>,
    tokens_per_write: Option<u32>,
    events_per_write: Option<u32>,
    jitter: Option<f64>,
    faults: Option<Vec<Fault>>,
}

impl Draft {
    fn resolve(
        self,
        dialect: Dialect,
        options: &EngineOptions,
    ) -> Result<Generation, RequestError> {
        let prompt_tokens = self.prompt_tokens(dialect)?;
        let tokens = self.tokens(&options.limits)?;
        let paced = self.paced.unwrap_or_default();
        let stream_options = self.stream_options.unwrap_or_default();
        let faults = match &paced.faults {
            Some(faults) => faults.iter().copied().collect(),
            None => options.faults,
        };
        Ok(Generation {
            streamed: self.stream.unwrap_or(false),
            prompt_tokens,
            pacing: paced.pacing(tokens, &options.pacing, &options.limits)?,
            faults,
            include_usage: stream_options.include_usage.unwrap_or(false),
            detail: Detail {
                continuous_usage: stream_options.continuous_usage_stats.unwrap_or(false),
                token_ids: self.return_token_ids.unwrap_or(false),
            },
        })
    }

    fn prompt_tokens(&self, dialect: Dialect) -> Result<u32, RequestError> {
        match dialect {
            Dialect::Chat => {
                let messages = self.messages.as_ref().ok_or(RequestError::Missing("messages"))?;
                let contents = messages.iter().filter_map(|message| message.content.as_ref());
                Ok(contents.fold(0, |sum, content| content.tokens.saturating_add(sum)))
            }
            Dialect::Completions => {
                let prompt = self.prompt.as_ref().ok_or(RequestError::Missing("prompt"))?;
                Ok(prompt.tokens)
            }
        }
    }

    /// The token count that the standard fields ask for; the newer name wins.
    fn tokens(&self, limits: &Limits) -> Result<Option<u32>, RequestError> {
        let asked = match (self.max_completion_tokens, self.max_tokens) {
            (Some(value), _) => ("max_completion_tokens", value),
            (None, Some(value)) => ("max_tokens", value),
            (None, None) => return Ok(None),
        };
        let (param, value) = asked;
        if value < 1 {
            return Err(RequestError::TooFewTokens { param, value });
        }
        let limit = limits.tokens;
        match u32::try_from(value) {
            Ok(tokens) if tokens <= limit => Ok(Some(tokens)),
            _ => Err(RequestError::TooManyTokens { param, value, limit }),
        }
    }
}

impl PacedDraft {
    /// `tokens` is what the standard fields ask for; the extension is more specific and wins.
    fn pacing(
        &self,
        tokens: Option<u32>,
        default: &Pacing,
        limits: &Limits,
    ) -> Result<Pacing, RequestError> {
        let pacing = Pacing {
            ttft: interval("ttft_ms", self.ttft_ms)?.unwrap_or(default.ttft),
            gap: interval("gap_ms", self.gap_ms)?.unwrap_or(default.gap),
            tokens: self.tokens.or(tokens).unwrap_or(default.tokens),
            tokens_per_write: self.tokens_per_write.unwrap_or(default.tokens_per_write),
            events_per_write: self.events_per_write.unwrap_or(default.events_per_write),
            jitter: self.jitter.unwrap_or(default.jitter),
        };
        pacing.check()?;
        if limits.tokens < pacing.tokens {
            let (tokens, limit) = (pacing.tokens, limits.tokens);
            return Err(OptionsError::TooManyTokens { tokens, limit }.into());
        }
        Ok(pacing)
    }
}

fn interval(name: &'static str, ms: Option<f64>) -> Result<Option<Duration>, RequestError> {
    let Some(value) = ms else { return Ok(None) };
    let seconds = value / 1e3;
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map(Some).map_err(|_| RequestError::BadInterval { name, value })
}

/// The length of a string in words, or of a list in the tokens of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Length<T> {
    tokens: u32,
    element: PhantomData<T>,
}

/// An element of a list that may stand in place of a string.
trait Element {
    /// What a value must be, for the error message.
    const EXPECTED: &'static str;

    fn tokens(&self) -> u32;
}

/// A token id, in the prompt of the completions API.
#[derive(Debug, Deserialize)]
struct TokenId(#[expect(dead_code, reason = "that it is a number is all that is asked of it")] u32);

/// A part of a chat message; parts that are not text count nothing.
#[derive(Debug, Deserialize)]
struct Part {
    text: Option<String>,
}

impl Element for TokenId {
    const EXPECTED: &'static str = "one prompt, which is a string or a list of token ids";

    fn tokens(&self) -> u32 {
        1
    }
}

impl Element for Part {
    const EXPECTED: &'static str = "a message's content, which is a string or a list of parts";

    fn tokens(&self) -> u32 {
        self.text.as_deref().map_or(0, words)
    }
}

impl<'de, T: Element + Deserialize<'de>> Deserialize<'de> for Length<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Counting(PhantomData))
    }
}

struct Counting<T>(PhantomData<T>);

impl<'de, T: Element + Deserialize<'de>> Visitor<'de> for Counting<T> {
    type Value = Length<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Length { tokens: words(text), element: PhantomData })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut tokens = 0_u32;
        while let Some(element) = elements.next_element::<T>()? {
            tokens = tokens.saturating_add(element.tokens());
        }
        Ok(Length { tokens, element: PhantomData })
    }
}

fn words(text: &str) -> u32 {
    u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX)
}

/// Answers on a schedule and keeps the truth.
#[derive(Debug)]
pub(crate) struct Paced {
    house: Housekeeping,
    next_ordinal: u64,
}

impl Paced {
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self { house: Housekeeping::new(options), next_ordinal: 0 }
    }

    fn generate(
        &mut self,
        dialect: Dialect,
        request: &Request<'_>,
        visit: Context<'_>,
    ) -> Reply<PacedAnswer> {
        let received = visit.received;
        let generation = match parse(request.body, dialect, &self.house.options) {
            Ok(generation) => generation,
            Err(error) => return Reply::Plain(error.error_body().reply()),
        };
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let entry = self.open_entry(ordinal, dialect, request, &generation, received);
        let options = &self.house.options;
        let seed = options.seed;
        let identity = Identity {
            id: Draws::new(seed, ordinal, Purpose::AnswerId).next(),
            created_s: visit.clock.wall_seconds(),
            model: options.model_id(),
        };
        let plan = Plan {
            dialect,
            json: AnswerJson::new(dialect, &identity, generation.prompt_tokens, generation.detail),
            schedule: Schedule::new(received.at(), &generation.pacing, seed, ordinal),
            words: Words::new(seed, ordinal),
        };
        Reply::Generated(plan.answer(entry, &generation))
    }

    fn open_entry(
        &mut self,
        ordinal: u64,
        dialect: Dialect,
        request: &Request<'_>,
        generation: &Generation,
        received: &Received,
    ) -> Entry {
        self.house.ledger.open(RequestTruth {
            ordinal,
            request_id: request.id_text(),
            api: dialect.api(),
            streamed: generation.streamed,
            received_kernel_ns: received.kernel.map(|stamp| stamp.at.ns()),
            received_mapping_error_ns: received.kernel.map(|stamp| stamp.error_ns),
            received_user_ns: received.user.ns(),
            prompt_tokens: generation.prompt_tokens,
            tokens: generation.pacing.tokens,
            writes: Vec::new(),
            ended: Ended::Running,
        })
    }
}

impl Service for Paced {
    type Answer = PacedAnswer;

    const KEEPS_TRUTH: bool = true;

    fn answer(&mut self, request: &Request<'_>, visit: Context<'_>) -> Reply<PacedAnswer> {
        let route = match http::route(request) {
            Ok(route) => route,
            Err(error) => return Reply::Plain(error.reply()),
        };
        if let Route::Generate(api) = route
            && let Some(dialect) = Dialect::from_api(api)
        {
            return self.generate(dialect, request, visit);
        }
        Reply::Plain(self.house.reply(route, request.path, visit.clock))
    }

    fn next<'a>(&mut self, answer: &'a mut PacedAnswer) -> Next<'a> {
        answer.next_write().map_or(Next::End, Next::Write)
    }

    fn wrote(&mut self, answer: &mut PacedAnswer, written: &Written) {
        let due = answer.due();
        let passed = answer.pass(written.bytes);
        self.house.ledger.written(answer.entry(), due, written, passed);
    }

    fn completed(&mut self, answer: PacedAnswer) {
        self.house.ledger.close(answer.entry(), Ended::Complete);
    }

    fn abandoned(&mut self, answer: PacedAnswer, _clock: &Clock) {
        self.house.ledger.close(answer.entry(), Ended::Aborted);
    }

    fn refused_connection(&mut self) {
        self.house.ledger.refused_connection();
    }
}

/// The whole answer, and when each part is sent.
#[derive(Debug)]
struct Plan {
    dialect: Dialect,
    json: AnswerJson,
    schedule: Schedule,
    words: Words,
}

impl Plan {
    fn answer(self, entry: Entry, generation: &Generation) -> PacedAnswer {
        let (pacing, faults) = (&generation.pacing, generation.faults);
        let byte_wise = faults.contains(Fault::ByteWise);
        if !generation.streamed {
            let due = self.schedule.nth(pacing.tokens);
            let write = whole_answer(&self.json, self.words, pacing.tokens, Some(due));
            return PacedAnswer::in_one_piece(entry, write, byte_wise);
        }
        let shape = StreamShape::new(self.dialect, pacing, generation.include_usage, faults);
        let stream = TokenStream::new(shape, self.json, self.schedule, self.words);
        PacedAnswer::streamed(entry, stream, byte_wise)
    }
}

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct PacedAnswer {
    entry: Entry,
    /// What further writes come from; none for an answer in one piece.
    stream: Option<TokenStream>,
    write: Write,
    /// How much of `write` the socket has taken.
    sent: usize,
    /// How many of `write`'s marks lie in that.
    marks_passed: usize,
    byte_wise: bool,
}

impl PacedAnswer {
    pub(crate) fn streamed(entry: Entry, stream: TokenStream, byte_wise: bool) -> Self {
        let write = Write::default();
        Self { entry, stream: Some(stream), write, sent: 0, marks_passed: 0, byte_wise }
    }

    pub(crate) fn in_one_piece(entry: Entry, write: Write, byte_wise: bool) -> Self {
        Self { entry, stream: None, write, sent: 0, marks_passed: 0, byte_wise }
    }

    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    /// When the write at hand is due.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.write.due
    }

    pub(crate) fn next_write(&mut self) -> Option<NextWrite<'_>> {
        if self.sent == self.write.bytes.len() {
            let stream = self.stream.as_mut()?;
            if !stream.next_write(&mut self.write) {
                return None;
            }
            self.sent = 0;
            self.marks_passed = 0;
        }
        let end = if self.byte_wise { self.sent + 1 } else { self.write.bytes.len() };
        Some(NextWrite { bytes: &self.write.bytes[self.sent..end], due: self.write.due })
    }

    /// Moves past `bytes` that the socket has taken.
    pub(crate) fn pass(&mut self, bytes: usize) -> Passed {
        let mut passed = Passed { is_start: self.sent == 0, ..Passed::default() };
        self.sent += bytes;
        while let Some(mark) = self.write.marks.get(self.marks_passed)
            && mark.end <= self.sent
        {
            passed.events += mark.events;
            passed.tokens += mark.tokens;
            self.marks_passed += 1;
        }
        passed
    }
}

#[cfg(test)]
mod request_tests {
    use super::*;
    use crate::options::Mode;

    fn chat(body: &str) -> Result<Generation, RequestError> {
        parse(body.as_bytes(), Dialect::Chat, &EngineOptions::new(Mode::Paced))
    }

    fn chat_with(fields: &str) -> Result<Generation, RequestError> {
        chat(&format!(r#"{{"messages":[{{"role":"user","content":"a b c"}}],{fields}}}"#))
    }

    fn message(result: Result<Generation, RequestError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_bare_request_gets_the_options_defaults() {
        let generation = chat(r#"{"messages":[{"role":"user","content":"a b c"}]}"#).unwrap();
        assert_eq!(generation.pacing, Pacing::default());
        assert_eq!((generation.prompt_tokens, generation.streamed), (3, false));
    }

    #[test]
    fn the_more_specific_token_count_wins() {
        let tokens = |fields: &str| chat_with(fields).unwrap().pacing.tokens;
        assert_eq!(tokens(r#""max_tokens":5"#), 5);
        assert_eq!(tokens(r#""max_tokens":5,"max_completion_tokens":6"#), 6);
        assert_eq!(tokens(r#""max_tokens":5,"paced":{"tokens":7}"#), 7);
    }

    #[test]
    fn the_extension_sets_the_pace() {
        let fields = r#""paced":{"ttft_ms":1.5,"gap_ms":0,"jitter":0.5,"faults":["cr","bom"]}"#;
        let generation = chat_with(fields).unwrap();
        assert_eq!(generation.pacing.ttft, Duration::from_micros(1_500));
        assert_eq!(generation.pacing.gap, Duration::ZERO);
        assert!(generation.faults.contains(Fault::Cr) && generation.faults.contains(Fault::Bom));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let cases = [
            (r#""max_tokens":0"#, "max_tokens must be at least 1, got 0"),
            (r#""max_completion_tokens":-5"#, "max_completion_tokens must be at least 1, got -5"),
            (r#""max_tokens":99999999999"#, "max_tokens must be at most 131072"),
            (r#""model":"other""#, "The model `other` does not exist. Valid aliases: paced."),
            (r#""paced":{"ttft":1}"#, "invalid request body: unknown field `ttft`"),
            (r#""paced":{"faults":["x"]}"#, "invalid request body: unknown fault `x`"),
            (r#""paced":{"gap_ms":-1}"#, "`gap_ms` is -1"),
            (r#""paced":{"jitter":2}"#, "paced: `jitter` is 2"),
            (r#""paced":{"events_per_write":0}"#, "paced: `events_per_write` is 0"),
            (r#""paced":{"tokens":9999999}"#, "paced: `tokens` is 9999999"),
        ];
        for (fields, start) in cases {
            let error = message(chat_with(fields));
            assert!(error.starts_with(start), "{fields}: {error}");
        }
        assert_eq!(message(chat("{}")), "field required: messages");
    }
}

#[cfg(test)]
mod prompt_tests {
    use super::*;

    fn length<T: Element + for<'de> Deserialize<'de>>(json: &str) -> Result<u32, String> {
        let length = serde_json::from_str::<Length<T>>(json);
        length.map(|length| length.tokens).map_err(|error| error.to_string())
    }

    #[test]
    fn words_of_a_string_are_counted_after_unescaping() {
        assert_eq!(length::<TokenId>(r#"" one\ttwo\u0020three ""#), Ok(3));
        assert_eq!(length::<Part>(r#""""#), Ok(0));
    }

    #[test]
    fn a_list_has_the_tokens_of_its_elements() {
        assert_eq!(length::<TokenId>("[5, 6, 7, 8]"), Ok(4));
        let parts = r#"[{"type":"text","text":"a b"},{"type":"image_url","image_url":{}}]"#;
        assert_eq!(length::<Part>(parts), Ok(2));
    }

    #[test]
    fn other_values_are_refused_with_what_was_expected() {
        let error = length::<TokenId>("7").unwrap_err();
        assert!(error.contains("a string or a list of token ids"), "{error}");
        assert!(length::<TokenId>(r#"["several", "prompts"]"#).is_err());
    }
}

#[cfg(test)]
mod answer_tests {
    use super::*;
    use crate::framing::Mark;
    use crate::options::{Limits, Mode};
    use crate::truth::Ledger;

    fn answer(byte_wise: bool) -> PacedAnswer {
        let entry = Ledger::new(Mode::Paced, &Limits::default()).unkept();
        let mut write = Write::default();
        write.raw(b"abcdef");
        write.marks = vec![
            Mark { end: 2, events: 1, tokens: 1 },
            Mark { end: 3, events: 1, tokens: 2 },
            Mark { end: 6, events: 1, tokens: 4 },
        ];
        PacedAnswer::in_one_piece(entry, write, byte_wise)
    }

    fn bytes_of(answer: &mut PacedAnswer) -> Option<Vec<u8>> {
        answer.next_write().map(|next| next.bytes.to_vec())
    }

    #[test]
    fn a_part_counts_the_events_that_end_in_it() {
        let mut answer = answer(false);
        assert_eq!(bytes_of(&mut answer).as_deref(), Some(b"abcdef".as_slice()));
        assert_eq!(answer.pass(1), Passed { events: 0, tokens: 0, is_start: true });
        assert_eq!(answer.pass(2), Passed { events: 2, tokens: 3, is_start: false });
        assert_eq!(bytes_of(&mut answer).as_deref(), Some(b"def".as_slice()));
        assert_eq!(answer.pass(3), Passed { events: 1, tokens: 4, is_start: false });
        assert_eq!(bytes_of(&mut answer), None);
    }

    #[test]
    fn byte_wise_is_one_byte_after_another() {
        let mut answer = answer(true);
        let mut seen = Vec::new();
        while let Some(bytes) = bytes_of(&mut answer) {
            assert_eq!(bytes.len(), 1);
            seen.extend(bytes);
            answer.pass(1);
        }
        assert_eq!(seen, b"abcdef");
    }
}
