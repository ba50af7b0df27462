//! One answer, from its first byte to its last.

use std::rc::Rc;

use serde::Serialize;

use super::completion::Completion;
use super::named_events::{Messages, Responses};
use crate::framing::LAST_CHUNK;
use crate::http::{STREAM_HEAD, json_body};
use crate::serve::api::ask::{Endpoint, GenerationRequest};
use crate::serve::vocabulary::Vocabulary;

/// What names an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    /// Unique; 16 hexadecimal digits of it are shown.
    pub(crate) id: u64,
    pub(crate) created_s: u64,
    pub(crate) model: &'a str,
}

impl Identity<'_> {
    /// As vLLM makes it: the client's name for the request, else a number.
    pub(in crate::serve::api) fn text(&self, prefix: &str, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("{prefix}{name}"),
            None => format!("{prefix}{:016x}", self.id),
        }
    }
}

/// Why a choice is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// `max_tokens`, or the model's length.
    Length,
    EndOfSequence,
    /// Which of the request's stop strings.
    StopString(u16),
    /// The token id.
    StopToken(u32),
    /// Taken back by the server.
    Abort,
}

/// One token of one choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GeneratedToken {
    pub(crate) choice: u16,
    /// The index of the token in its answer, from 0.
    pub(crate) index: u32,
    pub(crate) id: u32,
    /// With the last token of the choice: vLLM sends both in one event.
    pub(crate) finish: Option<Finish>,
}

/// A choice of an answer in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinishedChoice {
    pub(crate) ids: Vec<u32>,
    pub(crate) finish: Finish,
}

/// What an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the words of the wire")]
pub(crate) struct Usage {
    /// Tokens of all prompts.
    pub(crate) prompt_tokens: u32,
    /// Tokens of all choices.
    pub(crate) completion_tokens: u32,
    /// Sent only when there are any.
    pub(crate) cached_tokens: u32,
}

/// Puts one answer into bytes.
#[derive(Debug)]
pub(crate) struct AnswerWriter {
    pub(super) ask: Rc<GenerationRequest>,
    vocabulary: &'static Vocabulary,
    choices: Vec<Choice>,
    /// A token has come.
    begun: bool,
    style: Style,
    /// Reused for the text of every token.
    text: String,
    /// Reused for the JSON of every event.
    json: Vec<u8>,
}

/// Whose events they are.
#[derive(Debug)]
enum Style {
    Completion(Completion),
    Responses(Box<Responses>),
    Messages(Messages),
}

/// The part of one choice in one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) choice: u16,
    pub(super) text: &'a str,
    /// The token at this place of the answer, if there is one.
    pub(super) token: Option<(u32, u32)>,
    /// Tokens of the choice so far, this one included.
    pub(super) tokens: u32,
    /// Where in the choice's text the piece begins.
    pub(super) offset: usize,
    pub(super) finish: Option<Finish>,
}

impl AnswerWriter {
    pub(crate) fn new(
        ask: Rc<GenerationRequest>,
        identity: &Identity<'_>,
        vocabulary: &'static Vocabulary,
    ) -> Self {
        let style = match ask.endpoint {
            Endpoint::Responses => Style::Responses(Box::new(Responses::new(&ask, identity))),
            Endpoint::Messages => Style::Messages(Messages::new(&ask, identity)),
            Endpoint::Chat
            | Endpoint::Completions
            | Endpoint::Embeddings
            | Endpoint::Tokenize
            | Endpoint::Detokenize => Style::Completion(Completion::new(&ask, identity)),
        };
        let choices = vec![Choice::default(); usize::from(ask.choices())];
        let (text, json) = (String::new(), Vec::new());
        Self { ask, vocabulary, choices, begun: false, style, text, json }
    }

    /// Keeps only the first bytes of a choice's text: a stop string is going to end it. To be called
    /// before the first token, and only if the stop comes before any other end.
    pub(crate) fn cut(&mut self, choice: u16, kept: usize) {
        if let Some(choice) = self.choices.get_mut(usize::from(choice)) {
            choice.cut(kept);
        }
    }

    /// What leaves as soon as the request is accepted: the head, and the first events of
    /// responses. (vLLM sends the role of a chat and `message_start` with the first token; so
    /// does [`AnswerWriter::token`].)
    pub(crate) fn opening(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(STREAM_HEAD);
        if let Style::Responses(responses) = &mut self.style {
            responses.created(&self.ask, out);
        }
    }

    /// A token came. Responses and messages say nothing of tokens without text.
    pub(crate) fn token(&mut self, token: &GeneratedToken, out: &mut Vec<u8>) {
        self.begin(out);
        let Some(choice) = self.choices.get_mut(usize::from(token.choice)) else {
            return;
        };
        let offset = choice.offset();
        choice.say(token.id, token.finish, &self.ask, self.vocabulary, &mut self.text);
        let piece = Piece {
            choice: token.choice,
            text: &self.text,
            token: Some((token.index, token.id)),
            tokens: choice.tokens(),
            offset,
            finish: token.finish,
        };
        let first = choice.tokens() == 1;
        Event { ask: &self.ask, vocabulary: self.vocabulary, piece, first }.write(
            &mut self.style,
            &mut self.json,
            out,
        );
    }

    /// A choice is over without a further token.
    pub(crate) fn finish(&mut self, choice: u16, finish: Finish, out: &mut Vec<u8>) {
        self.begin(out);
        let Some(state) = self.choices.get_mut(usize::from(choice)) else {
            return;
        };
        let piece = Piece {
            choice,
            text: "",
            token: None,
            tokens: state.tokens(),
            offset: state.offset(),
            finish: Some(finish),
        };
        let first = state.tokens() == 0;
        Event { ask: &self.ask, vocabulary: self.vocabulary, piece, first }.write(
            &mut self.style,
            &mut self.json,
            out,
        );
    }

    /// All choices are over: what is left to say, and the last chunk.
    pub(crate) fn closing(&mut self, usage: &Usage, out: &mut Vec<u8>) {
        self.begin(out);
        match &mut self.style {
            Style::Completion(completion) => completion.closing(&self.ask, usage, out),
            Style::Responses(responses) => responses.closing(&self.ask, usage, out),
            Style::Messages(messages) => messages.closing(&self.ask, usage, out),
        }
        out.extend_from_slice(LAST_CHUNK);
    }

    /// The whole reply to a request that is not streamed, one element per choice.
    pub(crate) fn whole(&self, answered: &[FinishedChoice], usage: &Usage) -> Rc<Vec<u8>> {
        let texts: Vec<WholeText> = answered
            .iter()
            .zip(&self.choices)
            .map(|(answered, choice)| choice.whole(answered, &self.ask, self.vocabulary))
            .collect();
        json_body(match &self.style {
            Style::Completion(completion) => {
                completion.whole(&self.ask, self.vocabulary, answered, &texts, usage)
            }
            Style::Responses(responses) => responses.whole(&self.ask, answered, &texts, usage),
            Style::Messages(messages) => messages.whole(&self.ask, answered, &texts, usage),
        })
    }

    /// What vLLM sends ahead of the first token, and together with it.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.begun {
            return;
        }
        self.begun = true;
        match &mut self.style {
            Style::Completion(completion) => completion.roles(&self.ask, out),
            Style::Responses(responses) => responses.item_added(out),
            Style::Messages(messages) => messages.start(&self.ask, out),
        }
    }
}

/// A piece, and what it takes to write it down.
pub(super) struct Event<'a> {
    pub(super) ask: &'a GenerationRequest,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) piece: Piece<'a>,
    /// Whether it is the first of its choice.
    pub(super) first: bool,
}

impl Event<'_> {
    fn write(&self, style: &mut Style, json: &mut Vec<u8>, out: &mut Vec<u8>) {
        match style {
            Style::Completion(completion) => {
                json.clear();
                completion.piece(self, json);
                data(out, json);
            }
            Style::Responses(responses) => responses.delta(&self.piece, out),
            Style::Messages(messages) => messages.delta(&self.piece, out),
        }
    }
}

/// The request's stop string of that number.
pub(super) fn stop_string(ask: &GenerationRequest, which: u16) -> &str {
    ask.stop.get(usize::from(which)).map_or("", String::as_str)
}

#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    tokens: u32,
    /// Bytes of text so far, as if nothing were cut.
    bytes: usize,
    kept: Option<usize>,
}

impl Choice {
    pub(super) fn cut(&mut self, kept: usize) {
        self.kept = Some(kept);
    }

    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Where the next token's text begins.
    pub(super) fn offset(&self) -> usize {
        self.kept.map_or(self.bytes, |kept| kept.min(self.bytes))
    }

    /// Takes a token; its text goes into `text`.
    pub(super) fn say(
        &mut self,
        id: u32,
        finish: Option<Finish>,
        ask: &GenerationRequest,
        vocabulary: &Vocabulary,
        text: &mut String,
    ) {
        text.clear();
        self.tokens += 1;
        let ends = matches!(finish, Some(Finish::StopToken(_))) && !ask.include_stop;
        if ends || Vocabulary::is_special(id) {
            return;
        }
        if 0 < self.bytes {
            text.push(' ');
        }
        text.push_str(vocabulary.text(id));
        let room = self.kept.map_or(usize::MAX, |kept| kept.saturating_sub(self.bytes));
        self.bytes += text.len();
        // Words are ASCII, so any byte is a place to cut at.
        text.truncate(room);
    }

    /// The whole text of a choice that has no token yet.
    pub(super) fn whole(
        &self,
        answered: &FinishedChoice,
        ask: &GenerationRequest,
        vocabulary: &Vocabulary,
    ) -> WholeText {
        let mut choice = self.clone();
        let (mut whole, mut text) = (WholeText::default(), String::new());
        let last = answered.ids.len().saturating_sub(1);
        for (index, id) in answered.ids.iter().enumerate() {
            if ask.logprobs.is_some() {
                whole.offsets.push(choice.offset());
            }
            let finish = (index == last).then_some(answered.finish);
            choice.say(*id, finish, ask, vocabulary, &mut text);
            whole.text.push_str(&text);
        }
        whole
    }
}

/// The text of a choice that is over.
#[derive(Clone, Debug, Default)]
pub(super) struct WholeText {
    pub(super) text: String,
    /// Where each token begins; only where probabilities are sent.
    pub(super) offsets: Vec<usize>,
}

/// An event without a name.
pub(super) fn data(out: &mut Vec<u8>, json: &[u8]) {
    chunk(out, &[b"data: ", json, b"\n\n"]);
}

/// An event with a name.
pub(super) fn named(out: &mut Vec<u8>, name: &str, event: &impl Serialize) {
    let json = json(event);
    chunk(out, &[b"event: ", name.as_bytes(), b"\ndata: ", &json, b"\n\n"]);
}

pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs with string keys are always JSON")
}

/// Adds a text in quotes.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string is always JSON, and memory takes it");
}

fn chunk(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}
