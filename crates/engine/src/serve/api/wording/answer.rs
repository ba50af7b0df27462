//! One answer, from its first byte to its last.

use std::rc::Rc;

use super::super::ask::{Ask, Endpoint};
use super::choice::{Choice, WholeText};
use super::completion::Completion;
use super::events;
use super::messages::Messages;
use super::responses::Responses;
use crate::framing::LAST_CHUNK;
use crate::http::{STREAM_HEAD, json_body};
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
pub(crate) struct Said {
    pub(crate) choice: u16,
    /// Of the token in its answer, from 0.
    pub(crate) index: u32,
    pub(crate) id: u32,
    /// With the last token of the choice: vLLM sends both in one event.
    pub(crate) finish: Option<Finish>,
}

/// A choice of an answer in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) ids: Vec<u32>,
    pub(crate) finish: Finish,
}

/// What an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the words of the wire")]
pub(crate) struct Usage {
    /// Of all prompts.
    pub(crate) prompt_tokens: u32,
    /// Of all choices.
    pub(crate) completion_tokens: u32,
    /// Told only when there are any.
    pub(crate) cached_tokens: u32,
}

/// Puts one answer into bytes.
#[derive(Debug)]
pub(crate) struct Wording {
    pub(super) ask: Rc<Ask>,
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

/// What one event says of one choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) choice: u16,
    pub(super) text: &'a str,
    /// The token at this place of the answer, if there is one.
    pub(super) token: Option<(u32, u32)>,
    /// Of the choice so far, this one included.
    pub(super) tokens: u32,
    /// Where in the choice's text the piece begins.
    pub(super) offset: usize,
    pub(super) finish: Option<Finish>,
}

impl Wording {
    pub(crate) fn new(
        ask: Rc<Ask>,
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

    /// Keeps only the first bytes of a choice's text: a stop string is going to end it. To be said
    /// ahead of the first token, and only if the stop comes before any other end.
    pub(crate) fn cut(&mut self, choice: u16, kept: usize) {
        if let Some(choice) = self.choices.get_mut(usize::from(choice)) {
            choice.cut(kept);
        }
    }

    /// What leaves as soon as the request is accepted: the head, and the first events of
    /// responses. (vLLM sends the role of a chat and `message_start` with the first token; so
    /// does [`Wording::token`].)
    pub(crate) fn opening(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(STREAM_HEAD);
        if let Style::Responses(responses) = &mut self.style {
            responses.created(&self.ask, out);
        }
    }

    /// A token came. Responses and messages say nothing of tokens without text.
    pub(crate) fn token(&mut self, said: &Said, out: &mut Vec<u8>) {
        self.begin(out);
        let Some(choice) = self.choices.get_mut(usize::from(said.choice)) else {
            return;
        };
        let offset = choice.offset();
        choice.say(said.id, said.finish, &self.ask, self.vocabulary, &mut self.text);
        let piece = Piece {
            choice: said.choice,
            text: &self.text,
            token: Some((said.index, said.id)),
            tokens: choice.tokens(),
            offset,
            finish: said.finish,
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
    pub(crate) fn whole(&self, answered: &[Answered], usage: &Usage) -> Rc<Vec<u8>> {
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
    pub(super) ask: &'a Ask,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) piece: Piece<'a>,
    /// Of its choice.
    pub(super) first: bool,
}

impl Event<'_> {
    fn write(&self, style: &mut Style, json: &mut Vec<u8>, out: &mut Vec<u8>) {
        match style {
            Style::Completion(completion) => {
                json.clear();
                completion.piece(self, json);
                events::data(out, json);
            }
            Style::Responses(responses) => responses.delta(&self.piece, out),
            Style::Messages(messages) => messages.delta(&self.piece, out),
        }
    }
}

/// The request's stop string of that number.
pub(super) fn stop_string(ask: &Ask, which: u16) -> &str {
    ask.stop.get(usize::from(which)).map_or("", String::as_str)
}
