//! The paced mode: tokens on a schedule that is fixed when the request arrives, and the truth of
//! what became of it.

use std::time::Duration;

use serde::Deserialize;

use crate::clock::Clock;
use crate::faults::{Fault, Faults};
use crate::framing::Write;
use crate::generation::{
    AnswerJson, Detail, Draws, Identity, Purpose, Schedule, StreamShape, TokenStream, Words,
    whole_answer,
};
use crate::http::{ErrorBody, Request, Status};
use crate::options::{EngineOptions, Pacing};
use crate::server::Housekeeping;
use crate::server::{AfterAnswer, Context, Next, Reply, Service, Written};
use crate::truth::{Api, Ended, Entry, RequestTruth};

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

/// Reads a body; `options` say what the request leaves open. Where vLLM has words for an error, it
/// is in those.
pub(crate) fn parse(
    body: &[u8],
    api: Api,
    options: &EngineOptions,
) -> Result<Generation, ErrorBody> {
    let draft: Draft = serde_json::from_slice(body)
        .map_err(|error| bad_request(None, format!("invalid request body: {error}")))?;
    if let Some(model) = draft.model.as_deref().filter(|model| *model != options.model_id()) {
        return Err(ErrorBody::unknown_model(model, options.model_id()));
    }
    let missing = |name| bad_request(Some(name), format!("field required: {name}"));
    let prompt_tokens = if api == Api::Chat {
        let messages = draft.messages.as_ref().ok_or_else(|| missing("messages"))?;
        let contents = messages.iter().filter_map(|message| message.content.as_ref());
        contents.map(Content::tokens).fold(0, u32::saturating_add)
    } else {
        draft.prompt.as_ref().ok_or_else(|| missing("prompt"))?.tokens()
    };
    // The newer name wins.
    let asked = match (draft.max_completion_tokens, draft.max_tokens) {
        (Some(value), _) => Some(("max_completion_tokens", value)),
        (None, value) => value.map(|value| ("max_tokens", value)),
    };
    let limit = options.limits.tokens;
    let tokens = asked.map(|(param, value)| {
        let refuse = |rule: String| {
            let message =
                format!("{param} must be {rule}, got {value}. (parameter={param}, value={value})");
            bad_request(Some(param), message)
        };
        if value < 1 {
            return Err(refuse("at least 1".to_owned()));
        }
        let fitting = u32::try_from(value).ok().filter(|tokens| *tokens <= limit);
        fitting.ok_or_else(|| refuse(format!("at most {limit}")))
    });
    let paced = draft.paced.unwrap_or_default();
    let stream_options = draft.stream_options.unwrap_or_default();
    Ok(Generation {
        streamed: draft.stream.unwrap_or(false),
        prompt_tokens,
        pacing: paced.pacing(tokens.transpose()?, options)?,
        faults: paced.faults.map_or(options.faults, |faults| faults.into_iter().collect()),
        include_usage: stream_options.include_usage.unwrap_or(false),
        detail: Detail {
            continuous_usage: stream_options.continuous_usage_stats.unwrap_or(false),
            token_ids: draft.return_token_ids.unwrap_or(false),
        },
    })
}

fn bad_request(param: Option<&'static str>, message: String) -> ErrorBody {
    ErrorBody::new(Status::BAD_REQUEST, message).about(param)
}

/// The body as sent. Fields that are not listed are accepted and ignored, as vLLM does.
#[derive(Debug, Deserialize)]
struct Draft {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Prompt>,
    stream: Option<bool>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    stream_options: Option<StreamOptions>,
    return_token_ids: Option<bool>,
    paced: Option<PacedDraft>,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<Content>,
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

impl PacedDraft {
    /// `tokens` is what the standard fields ask for; the extension is more specific and wins.
    fn pacing(&self, tokens: Option<u32>, options: &EngineOptions) -> Result<Pacing, ErrorBody> {
        let default = &options.pacing;
        let interval = |name: &str, ms: Option<f64>, default: Duration| {
            let Some(value) = ms else { return Ok(default) };
            let rule = "it must be a number of milliseconds, 0 or more";
            Duration::try_from_secs_f64(value / 1e3)
                .map_err(|_| bad_request(Some("paced"), format!("`{name}` is {value}; {rule}")))
        };
        let pacing = Pacing {
            ttft: interval("ttft_ms", self.ttft_ms, default.ttft)?,
            gap: interval("gap_ms", self.gap_ms, default.gap)?,
            tokens: self.tokens.or(tokens).unwrap_or(default.tokens),
            tokens_per_write: self.tokens_per_write.unwrap_or(default.tokens_per_write),
            events_per_write: self.events_per_write.unwrap_or(default.events_per_write),
            jitter: self.jitter.unwrap_or(default.jitter),
        };
        let checked = pacing.check().and_then(|()| pacing.check_tokens(options.limits));
        checked.map_err(|error| bad_request(Some("paced"), format!("paced: {error}")))?;
        Ok(pacing)
    }
}

/// The prompt of the completions API.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`prompt` must be one prompt: a string or a list of token ids")]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
}

/// The content of a chat message; parts that are not text count nothing.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`content` must be a string or a list of parts")]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    text: Option<String>,
}

impl Prompt {
    fn tokens(&self) -> u32 {
        match self {
            Self::Text(text) => words(text),
            Self::Ids(ids) => u32::try_from(ids.len()).unwrap_or(u32::MAX),
        }
    }
}

impl Content {
    fn tokens(&self) -> u32 {
        match self {
            Self::Text(text) => words(text),
            Self::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| part.text.as_deref());
                texts.map(words).fold(0, u32::saturating_add)
            }
        }
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
        api: Api,
        request: &Request<'_>,
        context: Context<'_>,
    ) -> Result<PacedAnswer, ErrorBody> {
        let received = context.received;
        let generation = parse(request.body, api, &self.house.options)?;
        let Generation { streamed, prompt_tokens, pacing, faults, .. } = generation;
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let entry = self.house.ledger.open(RequestTruth {
            streamed,
            prompt_tokens,
            tokens: pacing.tokens,
            ..RequestTruth::new(ordinal, api, request, received)
        });
        let options = &self.house.options;
        let seed = options.seed;
        let identity = Identity {
            id: Draws::new(seed, ordinal, Purpose::AnswerId).next(),
            created_s: context.clock.wall_seconds(),
            model: options.model_id(),
        };
        let json = AnswerJson::new(api, &identity, prompt_tokens, generation.detail);
        let schedule = Schedule::new(received.at(), &pacing, seed, ordinal);
        let words = Words::new(seed, ordinal);
        let byte_wise = faults.contains(Fault::ByteWise);
        if !streamed {
            let due = schedule.nth(pacing.tokens);
            let write = whole_answer(&json, words, pacing.tokens, Some(due));
            return Ok(PacedAnswer { entry, stream: None, write, byte_wise });
        }
        let shape = StreamShape::new(api, &pacing, generation.include_usage, faults);
        let stream = Some(TokenStream::new(shape, json, schedule, words));
        Ok(PacedAnswer { entry, stream, write: Write::default(), byte_wise })
    }
}

impl Service for Paced {
    type Answer = PacedAnswer;

    const KEEPS_TRUTH: bool = true;

    fn answer(&mut self, request: &Request<'_>, context: Context<'_>) -> Reply<PacedAnswer> {
        let api = match self.house.route(request, context.clock) {
            Ok(api) => api,
            Err(reply) => return Reply::Plain(reply),
        };
        let answer = self.generate(api, request, context);
        answer.map_or_else(|error| Reply::Plain(error.reply()), Reply::Generated)
    }

    fn next<'a>(&mut self, answer: &'a mut PacedAnswer) -> Next<'a> {
        if answer.write.is_sent() {
            let more = answer.stream.as_mut().map(|stream| stream.next_write(&mut answer.write));
            if more != Some(true) {
                return Next::End;
            }
        }
        Next::Write(answer.write.rest(answer.byte_wise))
    }

    fn wrote(&mut self, answer: &mut PacedAnswer, written: &Written) {
        let passed = answer.write.pass(written.bytes);
        self.house.ledger.written(answer.entry, answer.write.due, written, passed);
    }

    fn completed(&mut self, answer: PacedAnswer) -> AfterAnswer {
        self.house.ledger.close(answer.entry, Ended::Complete);
        AfterAnswer::Keep
    }

    fn abandoned(&mut self, answer: PacedAnswer, _clock: &Clock) {
        self.house.ledger.close(answer.entry, Ended::Aborted);
    }

    fn refused_connection(&mut self) {
        self.house.ledger.refused_connection();
    }
}

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct PacedAnswer {
    entry: Entry,
    /// What further writes come from; none for an answer in one piece.
    stream: Option<TokenStream>,
    write: Write,
    byte_wise: bool,
}

#[cfg(test)]
mod request_tests {
    use super::*;
    use crate::options::Mode;

    fn chat(body: &str) -> Result<Generation, ErrorBody> {
        parse(body.as_bytes(), Api::Chat, &EngineOptions::new(Mode::Paced))
    }

    fn chat_with(fields: &str) -> Result<Generation, ErrorBody> {
        chat(&format!(r#"{{"messages":[{{"role":"user","content":"a b c"}}],{fields}}}"#))
    }

    fn message(result: Result<Generation, ErrorBody>) -> String {
        result.unwrap_err().message
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

    fn prompt(json: &str) -> Result<u32, String> {
        let prompt = serde_json::from_str::<Prompt>(json);
        prompt.map(|prompt| prompt.tokens()).map_err(|error| error.to_string())
    }

    fn content(json: &str) -> u32 {
        serde_json::from_str::<Content>(json).unwrap().tokens()
    }

    #[test]
    fn words_of_a_string_are_counted_after_unescaping() {
        assert_eq!(prompt(r#"" one\ttwo\u0020three ""#), Ok(3));
        assert_eq!(content(r#""""#), 0);
    }

    #[test]
    fn a_list_has_the_tokens_of_its_elements() {
        assert_eq!(prompt("[5, 6, 7, 8]"), Ok(4));
        let parts = r#"[{"type":"text","text":"a b"},{"type":"image_url","image_url":{}}]"#;
        assert_eq!(content(parts), 2);
    }

    #[test]
    fn other_values_are_refused_with_what_was_expected() {
        let error = prompt("7").unwrap_err();
        assert!(error.contains("a string or a list of token ids"), "{error}");
        assert!(prompt(r#"["several", "prompts"]"#).is_err());
    }
}

#[cfg(test)]
mod answer_tests {
    use super::*;
    use crate::framing::Mark;
    use crate::truth::Passed;

    fn write() -> Write {
        let mut write = Write::default();
        write.raw(b"abcdef");
        write.marks = vec![
            Mark { end: 2, events: 1, tokens: 1 },
            Mark { end: 3, events: 1, tokens: 2 },
            Mark { end: 6, events: 1, tokens: 4 },
        ];
        write
    }

    #[test]
    fn a_part_counts_the_events_that_end_in_it() {
        let mut write = write();
        assert_eq!(write.rest(false).bytes, b"abcdef");
        assert_eq!(write.pass(1), Passed { events: 0, tokens: 0, is_start: true });
        assert_eq!(write.pass(2), Passed { events: 2, tokens: 3, is_start: false });
        assert_eq!(write.rest(false).bytes, b"def");
        assert_eq!(write.pass(3), Passed { events: 1, tokens: 4, is_start: false });
        assert!(write.is_sent());
    }

    #[test]
    fn byte_wise_is_one_byte_after_another() {
        let mut write = write();
        let mut seen = Vec::new();
        while !write.is_sent() {
            let bytes = write.rest(true).bytes;
            assert_eq!(bytes.len(), 1);
            seen.extend_from_slice(bytes);
            write.pass(1);
        }
        assert_eq!(seen, b"abcdef");
    }
}
