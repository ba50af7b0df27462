//! The answer reader: body bytes in, facts out. Pure; the caller says which read brought the bytes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use inferometer_model::endpoint::Api;
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::record::{
    Carried, DoneMark, Event, Finish, FinishReason, ServerReport, Usage,
};

use crate::dialect::openai::error_body_text;
use crate::dialect::{
    Alike, ChoiceDelta, Chunk, ChunkError, Dialect, GrowingAnswer, server_report,
};
use crate::resources::Memory;
use crate::sse::{JsonLines, SseBounds, SseDecoder, SseError, SseEvent};

/// How the body is framed, by the response's content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    EventStream,
    /// One JSON document per line.
    JsonLines,
    /// One JSON document: not streamed, or a server that streams nothing although asked to.
    Whole,
}

/// Why an answer is not `ok`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub outcome: Outcome,
    pub cause: Option<Cause>,
    pub message: Option<String>,
}

impl Failure {
    pub fn new(outcome: Outcome, cause: Cause) -> Self {
        Self { outcome, cause: Some(cause), message: None }
    }

    /// Cause and message together, for a person.
    pub fn words(&self) -> String {
        match (self.cause, &self.message) {
            (Some(cause), Some(message)) => format!("{}: {message}", cause.text()),
            (Some(cause), None) => cause.text().to_owned(),
            (None, Some(message)) => message.clone(),
            (None, None) => self.outcome.help().to_owned(),
        }
    }

    pub fn with_message(outcome: Outcome, cause: Cause, message: impl Into<String>) -> Self {
        Self { outcome, cause: Some(cause), message: Some(message.into()) }
    }
}

/// What an answer held, whether it was whole or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub events: Vec<Event>,
    pub comments: u32,
    pub usage: Option<Usage>,
    /// What the server reported about its own work.
    pub server: Option<Box<ServerReport>>,
    pub finishes: Vec<Finish>,
    pub done: DoneMark,
    pub model: Option<String>,
    /// Text per choice, when it was asked to be kept.
    pub texts: Vec<Texts>,
    /// Then also the documents that call tools, one to a line.
    pub call_documents: Vec<u8>,
}

/// The generated text of one choice, as the server's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    pub content: Vec<u8>,
    pub reasoning: Vec<u8>,
}

#[derive(Debug)]
pub struct AnswerReader {
    dialect: &'static Dialect,
    framing: Framing,
    decoder: SseDecoder,
    lines: JsonLines,
    /// For a stream whose events repeat what came before.
    growing: Option<Box<GrowingAnswer>>,
    /// For a stream whose events are alike.
    alike: Option<Box<Alike>>,
    /// The body of an answer that is not streamed.
    whole: Vec<u8>,
    held: HeldBytes,
    body_bytes: usize,
    keep_text: bool,
    choices: Vec<ChoiceState>,
    has_output: bool,
    /// As far as the events tell: one for each that is not marked.
    output_tokens: u32,
    answer: Answer,
}

/// Bytes of answers that are held until they are whole, counted over all requests in flight: each
/// may be long, and all together must fit into memory.
#[derive(Debug, Default)]
struct HeldBytes(usize);

static ALL_HELD: AtomicUsize = AtomicUsize::new(0);

impl HeldBytes {
    fn add(&mut self, bytes: usize) -> Result<(), Failure> {
        static BOUND: OnceLock<usize> = OnceLock::new();
        // To read an answer takes more than twice its length.
        let quarter = || Memory::find().map_or(u64::MAX, |memory| memory.limit_bytes / 4);
        let bound = *BOUND.get_or_init(|| usize::try_from(quarter()).unwrap_or(usize::MAX));
        self.0 += bytes;
        if bound < ALL_HELD.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) {
            let words = format!("answers in flight are longer than {} MiB together", bound >> 20);
            let cause = Cause::ClientResource;
            return Err(Failure::with_message(Outcome::TransportError, cause, words));
        }
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        ALL_HELD.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// What must be remembered of a choice between events.
#[derive(Clone, Copy, Debug, Default)]
struct ChoiceState {
    index: u16,
    /// Completion tokens at this choice's last usage; growth is an event's tokens.
    usage_tokens: Option<u64>,
}

pub const BODY_BYTES_MAX: usize = 256 << 20;
/// Names come with every event; what is longer is no name.
const NAME_CHARS_MAX: usize = 256;

/// As much of a server's name for something as is kept.
fn first_chars(name: &str) -> &str {
    // Short names, which are nearly all, are not walked through.
    let end =
        if name.len() <= NAME_CHARS_MAX { None } else { name.char_indices().nth(NAME_CHARS_MAX) };
    end.map_or(name, |(end, _)| &name[..end])
}

impl AnswerReader {
    pub fn new(api: Api, framing: Framing) -> Self {
        let bounds = SseBounds::default();
        let dialect = Dialect::for_api(api);
        let streams = framing != Framing::Whole;
        Self {
            dialect,
            framing,
            decoder: SseDecoder::new(bounds),
            lines: JsonLines::new(bounds.line_bytes),
            growing: (dialect.repeats_text && streams).then(Box::default),
            alike: (dialect.has_alike_events && streams).then(Box::default),
            whole: Vec::new(),
            held: HeldBytes::default(),
            body_bytes: 0,
            keep_text: false,
            choices: Vec::new(),
            has_output: false,
            output_tokens: 0,
            answer: Answer::default(),
        }
    }

    /// Keeps the generated text too, for counting tokens or for conversations.
    #[must_use]
    pub fn keeping_text(mut self) -> Self {
        self.keep_text = true;
        self
    }

    pub fn has_output(&self) -> bool {
        self.has_output
    }

    /// Whether so many output tokens have come, as far as events tell, and no choice has ended.
    pub(crate) fn is_past(&self, tokens: u32) -> bool {
        tokens <= self.output_tokens && self.answer.finishes.is_empty()
    }

    /// Takes the next bytes of the body; `read` is the read that brought them.
    pub fn push(&mut self, bytes: &[u8], read: u32) -> Result<(), Failure> {
        self.body_bytes = self.body_bytes.saturating_add(bytes.len());
        if BODY_BYTES_MAX < self.body_bytes {
            return Err(Failure::new(Outcome::ProtocolError, Cause::BodyTooLarge));
        }
        match self.framing {
            Framing::Whole => {
                self.held.add(bytes.len())?;
                self.whole.extend_from_slice(bytes);
                Ok(())
            }
            Framing::EventStream => self.push_stream(bytes, read),
            Framing::JsonLines => self.push_lines(bytes, read),
        }
    }

    fn push_lines(&mut self, bytes: &[u8], read: u32) -> Result<(), Failure> {
        let mut lines = std::mem::replace(&mut self.lines, JsonLines::new(0));
        let mut failure = None;
        let pushed = lines.push(bytes, |line| {
            if failure.is_none() {
                failure = self.document(line, read).err();
            }
        });
        self.lines = lines;
        match failure {
            Some(failure) => Err(failure),
            None => pushed.map_err(|error| {
                Failure::with_message(
                    Outcome::ProtocolError,
                    Cause::LineTooLarge,
                    error.to_string(),
                )
            }),
        }
    }

    fn push_stream(&mut self, bytes: &[u8], read: u32) -> Result<(), Failure> {
        // The decoder lends each event; the rest of `self` takes it in meanwhile.
        let mut decoder = std::mem::take(&mut self.decoder);
        let mut failure = None;
        let pushed = decoder.push(bytes, |event| {
            if failure.is_none() {
                failure = self.event(event, read).err();
            }
        });
        self.answer.comments = decoder.comments();
        self.decoder = decoder;
        match failure {
            Some(failure) => Err(failure),
            None => pushed.map_err(|error| bound_failure(&error)),
        }
    }

    fn event(&mut self, event: SseEvent<'_>, read: u32) -> Result<(), Failure> {
        if event.data.is_empty() {
            // Some proxies keep a stream alive with `data:` alone.
            return Ok(());
        }
        if self.answer.done.seen && event.data != b"[DONE]" {
            self.answer.done.events_after = self.answer.done.events_after.saturating_add(1);
            return Ok(());
        }
        if event.data == b"[DONE]" {
            self.answer.done.seen = true;
            self.note(read, Carried::DONE);
            return Ok(());
        }
        if event.name == b"error" {
            let words = error_body_text(event.data);
            return Err(self.error_event(read, words));
        }
        self.document(event.data, read)
    }

    /// The document of one event or line.
    fn document(&mut self, json: &[u8], read: u32) -> Result<(), Failure> {
        if let Some((part, usage)) = self.alike.as_mut().and_then(|alike| alike.read(json)) {
            self.take_part(&part, usage, read);
            self.take_usage(usage);
            return Ok(());
        }
        let chunk = match &mut self.growing {
            None => (self.dialect.read)(json),
            Some(growing) => growing.read(json),
        };
        let chunk = chunk.map_err(|error| unreadable(&error))?;
        if let Some(words) = chunk.error {
            return Err(self.error_event(read, words));
        }
        self.take(&chunk, read);
        self.keep_calls(&chunk, json);
        if let Some(alike) = &mut self.alike {
            alike.learn(json, &chunk);
        }
        self.take_report(&chunk, json);
        if chunk.ends {
            self.answer.done.seen = true;
            self.note(read, Carried::DONE);
        }
        Ok(())
    }

    fn error_event(&mut self, read: u32, words: String) -> Failure {
        self.note(read, Carried::ERROR);
        Failure::with_message(Outcome::StreamError, Cause::ErrorEvent, words)
    }

    /// An event that belongs to no choice.
    fn note(&mut self, read: u32, carried: Carried) {
        self.answer.events.push(Event { read, choice: 0, carried, tokens: None, text_bytes: 0 });
    }

    fn take(&mut self, chunk: &Chunk<'_>, read: u32) {
        if let Some(model) = &chunk.model
            && self.answer.model.is_none()
        {
            self.answer.model = Some(first_chars(model).to_owned());
        }
        for part in &chunk.choices {
            self.take_part(part, chunk.usage, read);
        }
        self.take_usage(chunk.usage);
        if chunk.usage.is_some() && chunk.choices.is_empty() {
            self.note(read, Carried::USAGE);
        }
    }

    fn take_usage(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.answer.usage = Some(completed(usage, self.answer.usage));
        }
    }

    /// Servers report their times and the kinds of tokens where an answer ends.
    fn take_report(&mut self, chunk: &Chunk<'_>, json: &[u8]) {
        let is_last = chunk.usage.is_some() && chunk.choices.is_empty()
            || chunk.choices.iter().any(|part| part.finish.is_some());
        if !is_last || !self.dialect.generates() {
            return;
        }
        let Some((report, cached)) = server_report::read(json) else { return };
        if let Some(usage) = &mut self.answer.usage {
            usage.cached_tokens = usage.cached_tokens.or(cached);
        }
        let earlier = self.answer.server.take().map_or_else(ServerReport::default, |it| *it);
        let report = server_report::completed(report, earlier);
        self.answer.server = (!report.is_empty()).then(|| Box::new(report));
    }

    fn take_part(&mut self, part: &ChoiceDelta<'_>, usage: Option<Usage>, read: u32) {
        let counted = self.usage_growth(part, usage);
        let length =
            |text: &Option<std::borrow::Cow<'_, [u8]>>| text.as_ref().map_or(0, |t| t.len());
        let content_bytes = length(&part.content);
        let reasoning_bytes = length(&part.reasoning);
        let tool_bytes = part.tool_call_bytes.unwrap_or(0);
        let mut carried = Carried::CHOICE;
        carried.set(Carried::ROLE, part.role);
        carried.set(Carried::CONTENT, 0 < content_bytes);
        carried.set(Carried::REASONING, 0 < reasoning_bytes);
        carried.set(Carried::TOOL_CALL, part.tool_call_bytes.is_some());
        carried.set(Carried::FINISH, part.finish.is_some());
        carried.set(Carried::USAGE, usage.is_some());
        let event = Event {
            read,
            choice: part.index,
            carried,
            tokens: part.marked_tokens.or(counted),
            text_bytes: u32::try_from(content_bytes + reasoning_bytes + tool_bytes)
                .unwrap_or(u32::MAX),
        };
        if event.is_output() {
            self.has_output = true;
            self.output_tokens = self.output_tokens.saturating_add(event.tokens.unwrap_or(1));
        }
        self.answer.events.push(event);
        if let Some(reason) = &part.finish {
            let reason = FinishReason::parse(first_chars(reason));
            self.answer.finishes.push(Finish { choice: part.index, reason });
        }
        if self.keep_text {
            self.keep(part);
        }
    }

    /// Tokens of this event by the growth of a usage that comes with every chunk.
    ///
    /// Usage that comes for the first time together with the finish reason is a total, not a
    /// count of this event: transformers sends it so.
    fn usage_growth(&mut self, part: &ChoiceDelta<'_>, usage: Option<Usage>) -> Option<u32> {
        let state = self.choice_state(part.index);
        let total = usage?.completion_tokens?;
        if state.usage_tokens.is_none() && part.finish.is_some() {
            return None;
        }
        let before = state.usage_tokens.replace(total).unwrap_or(0);
        total.checked_sub(before).and_then(|grown| u32::try_from(grown).ok())
    }

    fn choice_state(&mut self, index: u16) -> &mut ChoiceState {
        let known = self.choices.iter().position(|state| state.index == index);
        let position = known.unwrap_or_else(|| {
            self.choices.push(ChoiceState { index, usage_tokens: None });
            self.choices.len() - 1
        });
        &mut self.choices[position]
    }

    /// Calls of tools are read later, and not where it would take time from tokens.
    fn keep_calls(&mut self, chunk: &Chunk<'_>, json: &[u8]) {
        let is_call = |part: &ChoiceDelta<'_>| part.tool_call_bytes.is_some();
        if self.keep_text && chunk.choices.iter().any(is_call) {
            // Between two tokens of JSON, a line end is as good as a blank.
            self.answer.call_documents.extend(json.iter().map(|byte| match byte {
                b'\n' | b'\r' => b' ',
                byte => *byte,
            }));
            self.answer.call_documents.push(b'\n');
        }
    }

    fn keep(&mut self, part: &ChoiceDelta<'_>) {
        let texts = &mut self.answer.texts;
        let wanted = usize::from(part.index) + 1;
        if texts.len() < wanted {
            texts.resize(wanted, Texts::default());
        }
        let choice = &mut texts[usize::from(part.index)];
        choice.content.extend_from_slice(part.content.as_deref().unwrap_or_default());
        choice.reasoning.extend_from_slice(part.reasoning.as_deref().unwrap_or_default());
    }

    /// The body ended as its framing promised: is the answer whole?
    pub fn end(&mut self, last_read: u32) -> Result<(), Failure> {
        match self.framing {
            Framing::EventStream => self.end_stream(),
            Framing::JsonLines => self.end_lines(last_read),
            Framing::Whole => {
                let whole = std::mem::take(&mut self.whole);
                self.end_whole(&whole, last_read)
            }
        }
    }

    fn end_stream(&self) -> Result<(), Failure> {
        if self.dialect.needs_end_event && !self.answer.done.seen {
            return Err(Failure::new(Outcome::Truncated, Cause::NoFinishReason));
        }
        self.check_finishes(Outcome::Truncated, Cause::NoFinishReason)
    }

    /// The last line may lack its end; what is half a document was cut off.
    fn end_lines(&mut self, last_read: u32) -> Result<(), Failure> {
        let rest = self.lines.take_rest();
        if !rest.is_empty() {
            self.document(&rest, last_read).map_err(|failure| match failure.cause {
                Some(Cause::BadJson) => Failure { outcome: Outcome::Truncated, ..failure },
                _ => failure,
            })?;
        }
        self.end_stream()
    }

    fn end_whole(&mut self, whole: &[u8], last_read: u32) -> Result<(), Failure> {
        let chunk = (self.dialect.read)(whole).map_err(|error| unreadable(&error))?;
        if let Some(words) = &chunk.error {
            return Err(Failure::with_message(
                Outcome::StreamError,
                Cause::ErrorEvent,
                words.clone(),
            ));
        }
        self.take(&chunk, last_read);
        self.keep_calls(&chunk, whole);
        self.take_report(&chunk, whole);
        // A whole answer of one choice carries all that usage counts, even where its text is empty.
        if let [event] = self.answer.events.as_mut_slice() {
            let total = chunk.usage.and_then(|usage| usage.completion_tokens);
            event.tokens = event.tokens.or(total.and_then(|total| u32::try_from(total).ok()));
        }
        self.check_finishes(Outcome::ProtocolError, Cause::UnexpectedAnswer)
    }

    /// Without a finish reason, what began and ended cleanly is whole.
    fn check_finishes(&self, outcome: Outcome, cause: Cause) -> Result<(), Failure> {
        let finished = |state: &ChoiceState| {
            !self.dialect.needs_finish_reason
                || self.answer.finishes.iter().any(|finish| finish.choice == state.index)
        };
        if self.choices.is_empty() || !self.choices.iter().all(finished) {
            return Err(Failure::new(outcome, cause));
        }
        match self.answer.finishes.iter().find(|finish| finish.reason.is_failure()) {
            None => Ok(()),
            Some(finish) => {
                let reason = format!("finish_reason is `{}`", finish.reason.name());
                Err(Failure::with_message(Outcome::StreamError, Cause::GivenUp, reason))
            }
        }
    }

    pub fn into_answer(self) -> Answer {
        self.answer
    }
}

fn unreadable(error: &ChunkError) -> Failure {
    Failure::with_message(Outcome::ProtocolError, error.cause(), error.to_string())
}

/// A usage with what it lacks taken from an earlier one: some APIs tell the input at the beginning
/// and the output at the end.
fn completed(usage: Usage, earlier: Option<Usage>) -> Usage {
    let Some(earlier) = earlier else { return usage };
    Usage {
        prompt_tokens: usage.prompt_tokens.or(earlier.prompt_tokens),
        completion_tokens: usage.completion_tokens.or(earlier.completion_tokens),
        cached_tokens: usage.cached_tokens.or(earlier.cached_tokens),
    }
}

fn bound_failure(error: &SseError) -> Failure {
    let cause = match error {
        SseError::LineTooLarge(_) => Cause::LineTooLarge,
        SseError::EventTooLarge(_) => Cause::EventTooLarge,
    };
    Failure::with_message(Outcome::ProtocolError, cause, error.to_string())
}

#[cfg(test)]
mod tests;
