//! Answers into bytes, as their tokens come or in one piece: chat and completions, `OpenAI`'s
//! responses and Anthropic's messages, with the fields and the order of fields of vLLM.
//!
//! Every event is an HTTP chunk of its own, as vLLM's server makes them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::rc::Rc;

use super::own_report::{OwnTimes, ReportForm};
use super::request::GenerationRequest;
use super::script::Script;
use crate::framing::LAST_CHUNK;
use crate::generation::{Envelope, Identity, usage_counts};
use crate::http::{self, STREAM_HEAD};
use crate::json::{Json, Members, members};
use crate::scheduler::blocks::{SPECIAL_TOKENS, VOCABULARY, mix};
use crate::serve::vocabulary::Vocabulary;
use crate::truth::Api;

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

/// What an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens of all prompts.
    pub(crate) prompt_tokens: u32,
    /// Tokens of all choices.
    pub(crate) completion_tokens: u32,
    /// Sent only when there are any.
    pub(crate) cached_tokens: u32,
    /// The engine's own times, where they are sent.
    pub(crate) report: Option<(ReportForm, OwnTimes)>,
}

/// Writes one answer as bytes.
#[derive(Debug)]
pub(crate) struct AnswerWriter {
    pub(crate) ask: Rc<GenerationRequest>,
    vocabulary: &'static Vocabulary,
    envelope: Envelope,
    choices: Vec<Choice>,
    /// A token has been generated.
    begun: bool,
    /// Reused for the text of every token.
    text: String,
    /// Where the answers to each prompt begin behind its repetition, in characters.
    answers_begin: Vec<usize>,
    /// The id of the one message of a response.
    item_id: String,
    /// The number of the next event of a response.
    next_event: u32,
    /// The text of a response so far.
    whole_text: String,
    /// Why the first choice of messages and responses ended.
    finish: Option<Finish>,
    /// Tokens at the beginning of each chat answer that are reasoning.
    reasoning: u32,
}

/// The part of one choice in one event.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    choice: u16,
    text: &'a str,
    /// The index and the id of each token, and where in the choice's text it begins.
    generated: &'a [(u32, u32, usize)],
    /// Tokens of the choice so far, these included.
    tokens: u32,
    finish: Option<Finish>,
    /// Whether it is the first of its choice.
    first: bool,
}

/// A choice that is over, with its text.
#[derive(Debug)]
struct WholeChoice<'a> {
    ids: &'a [u32],
    finish: Finish,
    text: String,
    /// Where each token begins; only where probabilities are sent.
    offsets: Vec<usize>,
    /// Bytes of the text that are reasoning.
    reasoning_bytes: usize,
}

impl AnswerWriter {
    pub(crate) fn new(
        ask: Rc<GenerationRequest>,
        identity: &Identity<'_>,
        vocabulary: &'static Vocabulary,
    ) -> Self {
        let echoes = ask.echo.as_deref().unwrap_or_default();
        Self {
            envelope: Envelope::new(ask.api, identity, ask.request_id.as_deref()),
            choices: vec![Choice::default(); usize::from(ask.choices())],
            begun: false,
            text: String::new(),
            answers_begin: echoes.iter().map(|echo| echo.chars().count() + 1).collect(),
            item_id: format!("msg_{:016x}", mix(identity.id.wrapping_add(1))),
            next_event: 0,
            whole_text: String::new(),
            finish: None,
            reasoning: 0,
            vocabulary,
            ask,
        }
    }

    /// The first tokens of each answer of a chat are reasoning.
    pub(crate) fn reasoning(mut self, tokens: u32) -> Self {
        self.reasoning = if self.envelope.is_chat { tokens } else { 0 };
        self
    }

    /// Lets a choice say this. To be called before the first token.
    pub(crate) fn follow(&mut self, choice: u16, script: Rc<Script>) {
        self.reasoning = 0;
        if let Some(choice) = self.choices.get_mut(usize::from(choice)) {
            choice.script = Some(script);
        }
    }

    /// Keeps only the first bytes of a choice's text: a stop string is going to end it. To be called
    /// before the first token, and only if the stop comes before any other end.
    pub(crate) fn cut(&mut self, choice: u16, kept: usize) {
        if let Some(choice) = self.choices.get_mut(usize::from(choice)) {
            choice.kept = Some(kept);
        }
    }

    /// What is sent as soon as the request is accepted: the head, and the first events of
    /// responses. (vLLM sends the role of a chat and `message_start` with the first token; so
    /// does [`AnswerWriter::piece`].)
    pub(crate) fn opening(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(STREAM_HEAD);
        if self.ask.api == Api::Responses {
            for name in ["response.created", "response.in_progress"] {
                let number = self.next_number();
                let response = self.response(None);
                let event =
                    members! {"response": response, "sequence_number": number, "type": name};
                named(out, event);
            }
        }
    }

    /// Writes tokens, given by their index in the answer and their id, the end of a choice, or both: vLLM
    /// sends the last token and the end in one event. Responses and messages have no event for tokens
    /// without text.
    pub(crate) fn piece(
        &mut self,
        choice: u16,
        generated: &[(u32, u32)],
        finish: Option<Finish>,
        out: &mut Vec<u8>,
    ) {
        self.begin(out);
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let Some(state) = self.choices.get_mut(usize::from(choice)) else { return };
        let first = state.tokens == 0;
        let (mut offsets, mut word) = (Vec::with_capacity(generated.len()), String::new());
        for (place, (index, id)) in generated.iter().enumerate() {
            offsets.push((*index, *id, state.offset()));
            let finish = finish.filter(|_| place + 1 == generated.len());
            word.clear();
            state.say(*id, finish, &self.ask, self.vocabulary, &mut word);
            text.push_str(&word);
        }
        self.finish = self.finish.or(finish);
        let tokens = state.tokens;
        let piece = Piece { choice, text: &text, generated: &offsets, tokens, finish, first };
        match self.ask.api {
            Api::Messages | Api::Responses if text.is_empty() => {}
            Api::Messages => {
                let delta = members! {"type": "text_delta", "text": &*text};
                named(out, members! {"type": "content_block_delta", "delta": delta, "index": 0});
            }
            Api::Responses => {
                self.whole_text.push_str(&text);
                let number = self.next_number();
                named(
                    out,
                    members! {
                        "content_index": 0, "delta": &*text, "item_id": &*self.item_id,
                        "logprobs": Json::List(Vec::new()), "output_index": 0,
                        "sequence_number": number, "type": "response.output_text.delta",
                    },
                );
            }
            Api::Chat | Api::Completions | Api::Embeddings => self.completion_piece(&piece, out),
        }
        self.text = text;
    }

    /// All choices are over: the last events, and the last chunk.
    pub(crate) fn closing(&mut self, usage: &Usage, out: &mut Vec<u8>) {
        self.begin(out);
        let finish = self.finish.unwrap_or(Finish::Length);
        match self.ask.api {
            Api::Messages => {
                named(out, members! {"type": "content_block_stop", "index": 0});
                let (reason, sequence) = message_stop(&self.ask, finish);
                let delta = members! {"stop_reason": reason, "stop_sequence": sequence};
                let usage = message_counts(usage);
                named(out, members! {"type": "message_delta", "delta": delta, "usage": usage});
                named(out, members! {"type": "message_stop"});
            }
            Api::Responses => self.close_response(finish, usage, out),
            Api::Chat | Api::Completions | Api::Embeddings => {
                if self.ask.include_usage {
                    let mut counts = usage_counts(usage.prompt_tokens, usage.completion_tokens);
                    if 0 < usage.cached_tokens {
                        counts.push(("prompt_tokens_details", cached_details(usage)));
                    }
                    if 0 < self.reasoning {
                        counts.push(("completion_tokens_details", self.reasoning_details(usage)));
                    }
                    let mut event = self.event(None);
                    event.push(("usage", counts.into()));
                    event.extend(usage.report.map(|(form, times)| {
                        let (name, report) = times.member(form, usage);
                        (name, report.into())
                    }));
                    event.push(("system_fingerprint", FINGERPRINT.into()));
                    data(out, event);
                }
                chunk(out, &[b"data: [DONE]\n\n"]);
            }
        }
        out.extend_from_slice(LAST_CHUNK);
    }

    /// The whole reply to a request that is not streamed, one element per choice.
    pub(crate) fn whole(&self, answered: &[(Vec<u32>, Finish)], usage: &Usage) -> Rc<Vec<u8>> {
        let choices = answered.iter().zip(&self.choices);
        let choices: Vec<WholeChoice<'_>> = choices
            .map(|((ids, finish), choice)| {
                choice.whole(ids, *finish, (&self.ask, self.vocabulary, self.reasoning))
            })
            .collect();
        let first = choices.first();
        let finish = first.map_or(Finish::Length, |first| first.finish);
        let json = match self.ask.api {
            Api::Responses => {
                let text = first.map_or("", |first| &*first.text);
                self.response(Some((text, finish, usage)))
            }
            Api::Messages => {
                let (reason, sequence) = message_stop(&self.ask, finish);
                let blocks =
                    choices.iter().map(|one| members! {"type": "text", "text": &*one.text}.into());
                let mut message = self.message(blocks.collect(), Some(reason));
                // A message in one piece leaves out the stop sequence if there is none.
                message.extend(sequence.map(|sequence| ("stop_sequence", sequence.into())));
                message.push(("usage", message_counts(usage)));
                message.into()
            }
            Api::Chat | Api::Completions | Api::Embeddings => {
                self.whole_completion(&choices, usage).into()
            }
        };
        http::body("application/json", json.bytes())
    }

    /// What vLLM sends ahead of the first token, and together with it.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        match self.ask.api {
            // The message without content, and the beginning of its one block.
            Api::Messages => {
                let prompt_tokens = self.ask.prompt_tokens();
                let mut message = self.message(Vec::new(), None);
                message.push(("stop_sequence", Json::Null));
                let usage = Usage { prompt_tokens, ..Usage::default() };
                message.push(("usage", message_counts(&usage)));
                named(out, members! {"type": "message_start", "message": message});
                let block = members! {"type": "text", "text": ""};
                let start =
                    members! {"type": "content_block_start", "content_block": block, "index": 0};
                named(out, start);
            }
            Api::Responses => {
                self.item_event(None, "response.output_item.added", out);
                let part = output_text("", Json::List(Vec::new()));
                self.part_event(part, "response.content_part.added", out);
            }
            // The role of each choice; completions have no roles.
            Api::Chat | Api::Completions | Api::Embeddings => {
                let ask = &self.ask;
                for choice in (0..ask.choices()).filter(|_| self.envelope.is_chat) {
                    let role = members! {
                        "index": u32::from(choice),
                        "delta": members! {"role": "assistant", "content": ""},
                        "logprobs": Json::Null, "finish_reason": Json::Null,
                    };
                    let mut event = self.event(Some(role));
                    event.extend(self.continuous_usage(choice, 0));
                    let ids = token_ids(ask.token_ids, ask.prompt_of(choice));
                    event.extend(members! {"prompt_token_ids": ids, "prompt_text": Json::Null});
                    data(out, event);
                }
            }
        }
    }
}

/// How far a choice's text has got.
#[derive(Clone, Debug, Default)]
struct Choice {
    script: Option<Rc<Script>>,
    tokens: u32,
    /// Bytes of text so far, as if nothing were cut.
    bytes: usize,
    kept: Option<usize>,
}

impl Choice {
    /// Where the next token's text begins.
    fn offset(&self) -> usize {
        self.kept.map_or(self.bytes, |kept| kept.min(self.bytes))
    }

    /// Takes a token; its text goes into `text`, which is empty.
    fn say(
        &mut self,
        id: u32,
        finish: Option<Finish>,
        ask: &GenerationRequest,
        vocabulary: &Vocabulary,
        text: &mut String,
    ) {
        self.tokens += 1;
        let ends = matches!(finish, Some(Finish::StopToken(_))) && !ask.include_stop;
        if ends || Vocabulary::is_special(id) {
            return;
        }
        let written = self.script.as_ref().and_then(|it| it.pieces.get(self.tokens as usize - 1));
        if 0 < self.bytes && written.is_none() {
            text.push(' ');
        }
        text.push_str(written.map_or_else(|| vocabulary.text(id), String::as_str));
        let room = self.kept.map_or(usize::MAX, |kept| kept.saturating_sub(self.bytes));
        self.bytes += text.len();
        // Words are ASCII, so the text can be cut at any byte.
        text.truncate(room);
    }

    /// The tool that is called, and whether nothing of the call was said yet.
    fn call(&self) -> Option<&str> {
        self.script.as_ref()?.call.as_deref()
    }

    /// The whole text of a choice that has no token yet.
    fn whole<'a>(
        &self,
        ids: &'a [u32],
        finish: Finish,
        (ask, vocabulary, reasoning): (&GenerationRequest, &Vocabulary, u32),
    ) -> WholeChoice<'a> {
        let mut choice = self.clone();
        let mut whole = WholeChoice {
            ids,
            finish,
            text: String::new(),
            offsets: Vec::new(),
            reasoning_bytes: 0,
        };
        let mut text = String::new();
        for (index, id) in ids.iter().enumerate() {
            if ask.logprobs.is_some() {
                whole.offsets.push(choice.offset());
            }
            text.clear();
            let finish = (index + 1 == ids.len()).then_some(finish);
            choice.say(*id, finish, ask, vocabulary, &mut text);
            whole.text.push_str(&text);
            if index < reasoning as usize {
                whole.reasoning_bytes = whole.text.len();
            }
        }
        whole
    }
}

/// The request's stop string of that number.
fn stop_string(ask: &GenerationRequest, which: u16) -> &str {
    ask.stop.get(usize::from(which)).map_or("", String::as_str)
}

/// An event without a name.
fn data(out: &mut Vec<u8>, event: Members<'_>) {
    chunk(out, &[b"data: ", &Json::from(event).bytes(), b"\n\n"]);
}

/// An event whose name is repeated in its data.
fn named(out: &mut Vec<u8>, event: Members<'_>) {
    let name = event.iter().find_map(|(name, value)| {
        if let ("type", Json::Text(text)) = (*name, value) { Some(text.clone()) } else { None }
    });
    let (name, json) = (name.unwrap_or_default(), Json::from(event).bytes());
    chunk(out, &[b"event: ", name.as_bytes(), b"\ndata: ", &json, b"\n\n"]);
}

fn chunk(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

/// Chat and completions.
impl AnswerWriter {
    fn event<'a>(&'a self, choice: Option<Members<'a>>) -> Members<'a> {
        self.envelope.around("chat.completion.chunk", choice.into_iter())
    }

    /// The logprobs of a choice: of the tokens of a prompt that is repeated, and of those of the
    /// answer, each given by its index, its id and where in the answer it begins.
    fn logprobs(
        &self,
        choice: u16,
        with_prompt: bool,
        generated: impl Iterator<Item = (u32, u32, usize)>,
    ) -> Json<'static> {
        let (ask, vocabulary) = (&self.ask, self.vocabulary);
        let Some(count) = ask.logprobs else { return Json::Null };
        let mut entries = if with_prompt { prompt_entries(ask, choice) } else { Vec::new() };
        let ahead = self.answers_begin.get(usize::from(choice / ask.n)).copied().unwrap_or(0);
        if !ask.echo_alone {
            entries.extend(generated.map(|(index, id, offset)| Entry {
                id,
                index,
                offset: ahead + offset,
                is_first_of_prompt: false,
            }));
        }
        let list =
            |of: &dyn Fn(&Entry) -> Json<'static>| Json::List(entries.iter().map(of).collect());
        let digits = |logprob: f64| Json::Digits(format!("{logprob:.6}"));
        if self.envelope.is_chat {
            let token = |(id, logprob): (u32, f64)| {
                let text = vocabulary.text(id);
                let bytes: Vec<Json<'_>> =
                    text.bytes().map(|byte| u32::from(byte).into()).collect();
                members! {"token": text, "logprob": digits(logprob), "bytes": bytes}
            };
            let content = list(&|entry| {
                let top = likeliest(*entry, count).map(|alternative| token(alternative).into());
                let mut chosen: Members<'_> = likeliest(*entry, 1).flat_map(token).collect();
                chosen.push(("top_logprobs", Json::List(top.collect())));
                chosen.into()
            });
            return members! {"content": content}.into();
        }
        // The first token of a prompt has no probability: nothing is ahead of it.
        let chosen = |entry: &Entry| match likeliest(*entry, 1).next() {
            Some((_, logprob)) if !entry.is_first_of_prompt => digits(logprob),
            _ => Json::Null,
        };
        // The chosen token is sent even if no alternatives are.
        let alternatives = |entry: &Entry| {
            let texts = likeliest(*entry, count.max(1))
                .map(|(id, logprob)| (vocabulary.text(id), digits(logprob)));
            if entry.is_first_of_prompt { Json::Null } else { Json::Object(texts.collect()) }
        };
        members! {
            "text_offset": list(&|entry| Json::Count(entry.offset as u64)),
            "token_logprobs": list(&chosen),
            "tokens": list(&|entry| vocabulary.text(entry.id).into()),
            "top_logprobs": list(&alternatives),
        }
        .into()
    }

    /// An event with a token, or with an end alone.
    fn completion_piece(&self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        let (ask, is_chat) = (&*self.ask, self.envelope.is_chat);
        let echo = prompt_text(ask, piece.choice).filter(|_| piece.first);
        let text = repeated(ask, echo, piece.text);
        let call = self.choices[usize::from(piece.choice)].call().filter(|_| is_chat);
        let (name, content): (_, Json<'_>) = if let Some(tool) = call {
            let tool = (piece.first).then_some(tool);
            ("delta", members! {"tool_calls": vec![self.tool_call(tool, &text)]}.into())
        } else if is_chat {
            let is_reasoning =
                piece.generated.first().is_some_and(|first| first.0 < self.reasoning);
            let name = if is_reasoning { "reasoning" } else { "content" };
            ("delta", Json::Object(vec![(name, text.into())]))
        } else {
            ("text", text.into())
        };
        let generated = piece.generated.iter().copied();
        let mut choice = members! {
            "index": u32::from(piece.choice),
            name: content,
            "logprobs": self.logprobs(piece.choice, piece.first, generated),
        };
        match piece.finish {
            Some(finish) => choice.extend(ending(ask, finish, call.is_some())),
            // A chat's events have no `stop_reason` while they go on.
            None if is_chat => choice.push(("finish_reason", Json::Null)),
            None => choice.extend([("finish_reason", Json::Null), ("stop_reason", Json::Null)]),
        }
        if !is_chat {
            let ids = token_ids(ask.token_ids && piece.first, ask.prompt_of(piece.choice));
            choice.push(("prompt_token_ids", ids));
        }
        let ids: Vec<u32> = piece.generated.iter().map(|token| token.1).collect();
        choice.push(("token_ids", token_ids(ask.token_ids, &ids)));
        let mut event = self.event(Some(choice));
        event.extend(self.continuous_usage(piece.choice, piece.tokens));
        if piece.finish.is_some() && !ask.include_usage {
            event.push(("system_fingerprint", FINGERPRINT.into()));
        }
        data(out, event);
    }

    fn whole_completion<'a>(
        &'a self,
        choices: &'a [WholeChoice<'_>],
        usage: &Usage,
    ) -> Members<'a> {
        let (ask, is_chat) = (&*self.ask, self.envelope.is_chat);
        let choices = (0..).zip(choices).map(|(choice, answered)| {
            let text = repeated(ask, prompt_text(ask, choice), &answered.text);
            let (thought, said) = answered.text.split_at(answered.reasoning_bytes);
            let said = if thought.is_empty() { text.clone() } else { Cow::Borrowed(said) };
            let thought = (!thought.is_empty()).then(|| Json::from(thought));
            let call = self.choices[usize::from(choice)].call().filter(|_| is_chat);
            let calls = call.map(|tool| vec![self.tool_call(Some(tool), &said)]);
            let said = if calls.is_some() { Json::Null } else { said.into() };
            let mut message = members! {
                "role": "assistant", "content": said, "refusal": Json::Null,
                "annotations": Json::Null, "audio": Json::Null, "function_call": Json::Null,
                "reasoning": thought.unwrap_or(Json::Null),
            };
            message.extend(calls.map(|calls| ("tool_calls", calls.into())));
            let (name, content): (_, Json<'_>) =
                if is_chat { ("message", message.into()) } else { ("text", text.into()) };
            let generated = (0..).zip(answered.ids.iter().zip(&answered.offsets));
            let generated = generated.map(|(index, (id, offset))| (index, *id, *offset));
            let logprobs = self.logprobs(choice, true, generated);
            let mut json =
                members! {"index": u32::from(choice), name: content, "logprobs": logprobs};
            json.extend(ending(ask, answered.finish, call.is_some()));
            json.push(("token_ids", token_ids(ask.token_ids, answered.ids)));
            if !is_chat {
                let ids = token_ids(ask.token_ids, ask.prompt_of(choice));
                json.extend(members! {"prompt_logprobs": Json::Null, "prompt_token_ids": ids});
            }
            json.push(("routed_experts", Json::Null));
            json
        });
        let mut counts = usage_counts(usage.prompt_tokens, usage.completion_tokens);
        counts.push(("prompt_tokens_details", cached_details(usage)));
        counts.push(("completion_tokens_details", self.reasoning_details(usage)));
        let mut json = self.envelope.around("chat.completion", choices);
        json.extend(members! {
            "service_tier": Json::Null, "system_fingerprint": FINGERPRINT, "usage": counts,
        });
        if is_chat {
            json.extend(members! {
                "prompt_logprobs": Json::Null,
                "prompt_token_ids": token_ids(ask.token_ids, ask.prompt_of(0)),
                "prompt_text": Json::Null,
            });
        }
        let report = usage.report.map(|(form, times)| times.member(form, usage));
        let absent = ["kv_transfer_params", "ec_transfer_params", "metrics"];
        let absent =
            absent.into_iter().filter(|name| report.as_ref().is_none_or(|it| it.0 != *name));
        json.extend(absent.map(|name| (name, Json::Null)));
        json.extend(report.map(|(name, report)| (name, report.into())));
        json
    }

    /// A call of a tool, or more of its arguments where the name was sent before.
    fn tool_call(&self, tool: Option<&str>, arguments: &str) -> Json<'static> {
        let text = |text: &str| Json::Text(Cow::Owned(text.to_owned()));
        let arguments = ("arguments", text(arguments));
        let mut call = members! {"index": 0};
        let Some(tool) = tool else {
            call.push(("function", Json::Object(vec![arguments])));
            return call.into();
        };
        let function = vec![("name", text(tool)), arguments];
        let id = text(&format!("call_{}", self.item_id));
        call.extend(members! {"id": id, "type": "function", "function": Json::Object(function)});
        call.into()
    }

    /// Reasoning tokens of all choices together.
    fn reasoning_details(&self, usage: &Usage) -> Json<'static> {
        let all = self.reasoning.saturating_mul(self.ask.choices().into());
        match all.min(usage.completion_tokens) {
            0 => Json::Null,
            tokens => members! {"reasoning_tokens": tokens}.into(),
        }
    }

    fn continuous_usage(&self, choice: u16, tokens: u32) -> Option<(&'static str, Json<'static>)> {
        self.ask.continuous_usage.then(|| {
            let prompt_tokens = self.ask.prompt_of(choice).len();
            let mut counts = usage_counts(u32::try_from(prompt_tokens).unwrap_or(u32::MAX), tokens);
            counts.push(("completion_tokens_details", Json::Null));
            ("usage", counts.into())
        })
    }
}

const FINGERPRINT: &str = concat!("inferometer-", env!("CARGO_PKG_VERSION"));

/// The text of the prompt that a choice answers, where it is to be repeated.
fn prompt_text(ask: &GenerationRequest, choice: u16) -> Option<&str> {
    ask.echo.as_ref()?.get(usize::from(choice / ask.n)).map(String::as_str)
}

/// The text of an answer, behind the repetition of its prompt.
fn repeated<'a>(ask: &GenerationRequest, echo: Option<&'a str>, text: &'a str) -> Cow<'a, str> {
    match echo {
        Some(echo) if ask.echo_alone => Cow::Borrowed(echo),
        Some(echo) => Cow::Owned(format!("{echo} {text}")),
        None => Cow::Borrowed(text),
    }
}

fn token_ids(wanted: bool, ids: &[u32]) -> Json<'static> {
    if wanted { Json::List(ids.iter().map(|id| (*id).into()).collect()) } else { Json::Null }
}

fn ending(ask: &GenerationRequest, finish: Finish, is_call: bool) -> Members<'_> {
    let (finish_reason, stop_reason) = match finish {
        Finish::EndOfSequence if is_call => ("tool_calls", Json::Null),
        Finish::Length => ("length", Json::Null),
        Finish::EndOfSequence => ("stop", Json::Null),
        Finish::StopString(which) => ("stop", stop_string(ask, which).into()),
        Finish::StopToken(id) => ("stop", id.into()),
        Finish::Abort => ("abort", Json::Null),
    };
    members! {"finish_reason": finish_reason, "stop_reason": stop_reason}
}

fn cached_details(usage: &Usage) -> Json<'static> {
    match usage.cached_tokens {
        0 => Json::Null,
        cached => members! {"cached_tokens": cached}.into(),
    }
}

/// A token with its probabilities.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    /// Its position in the answer.
    index: u32,
    /// Where in the text it begins.
    offset: usize,
    is_first_of_prompt: bool,
}

/// The tokens of a prompt that is repeated. As in the answer, the white space between two words
/// belongs to the second.
fn prompt_entries(ask: &GenerationRequest, choice: u16) -> Vec<Entry> {
    let Some(echo) = prompt_text(ask, choice) else { return Vec::new() };
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

/// The likeliest tokens, the chosen one first.
fn likeliest(entry: Entry, count: u32) -> impl Iterator<Item = (u32, f64)> {
    let words = VOCABULARY - SPECIAL_TOKENS;
    let first = entry.id.saturating_sub(SPECIAL_TOKENS);
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
        let id = SPECIAL_TOKENS + (first + rank * 7_919) % words;
        // At most 0.05, and each at most half of the one before: all of them less than 0.10.
        (id, -3.0 - 0.7 * f64::from(rank - 1) - 0.05 * unit(rank))
    })
}

/// Anthropic's messages.
impl AnswerWriter {
    fn message<'a>(&'a self, content: Vec<Json<'a>>, reason: Option<&'a str>) -> Members<'a> {
        members! {
            "id": &*self.envelope.id, "type": "message", "role": "assistant", "content": content,
            "model": &*self.envelope.model, "stop_reason": reason,
        }
    }
}

fn message_stop(ask: &GenerationRequest, finish: Finish) -> (&'static str, Option<&str>) {
    match finish {
        Finish::Length => ("max_tokens", None),
        Finish::StopString(which) => ("stop_sequence", Some(stop_string(ask, which))),
        Finish::EndOfSequence | Finish::StopToken(_) | Finish::Abort => ("end_turn", None),
    }
}

/// Anthropic's `input_tokens` does not include the tokens that came from the cache.
fn message_counts(usage: &Usage) -> Json<'static> {
    let mut counts = members! {
        "input_tokens": usage.prompt_tokens.saturating_sub(usage.cached_tokens),
        "output_tokens": usage.completion_tokens,
    };
    if 0 < usage.cached_tokens {
        counts.push(("cache_read_input_tokens", usage.cached_tokens.into()));
    }
    counts.into()
}

/// `OpenAI`'s responses: a response holds one message with one text.
impl AnswerWriter {
    fn next_number(&mut self) -> u32 {
        self.next_event += 1;
        self.next_event - 1
    }

    fn part_event(&mut self, part: Json<'_>, name: &'static str, out: &mut Vec<u8>) {
        let number = self.next_number();
        let event = members! {
            "content_index": 0, "item_id": &*self.item_id, "output_index": 0, "part": part,
            "sequence_number": number, "type": name,
        };
        named(out, event);
    }

    fn item_event(&mut self, text: Option<&str>, name: &'static str, out: &mut Vec<u8>) {
        let number = self.next_number();
        let item = self.item(text);
        let event =
            members! {"item": item, "output_index": 0, "sequence_number": number, "type": name};
        named(out, event);
    }

    fn item<'a>(&'a self, text: Option<&'a str>) -> Json<'a> {
        let parts: Vec<Json<'_>> =
            text.map(|text| output_text(text, Json::Null)).into_iter().collect();
        let status = if text.is_some() { "completed" } else { "in_progress" };
        members! {
            "id": &*self.item_id, "content": parts, "role": "assistant", "status": status,
            "type": "message", "phase": Json::Null,
        }
        .into()
    }

    /// The response before its end, or with its text, its end and its usage.
    fn response<'a>(&'a self, over: Option<(&'a str, Finish, &'a Usage)>) -> Json<'a> {
        let status = match over.map(|(_, finish, _)| finish) {
            None => "in_progress",
            Some(Finish::Length) => "incomplete",
            Some(Finish::Abort) => "cancelled",
            Some(Finish::EndOfSequence | Finish::StopString(_) | Finish::StopToken(_)) => {
                "completed"
            }
        };
        let cut = (status == "incomplete").then(|| members! {"reason": "max_output_tokens"});
        let output: Vec<Json<'_>> =
            over.map(|(text, ..)| self.item(Some(text))).into_iter().collect();
        let echoed = &self.ask.echo_fields;
        members! {
            "id": &*self.envelope.id, "created_at": Json::Count(self.envelope.created_s),
            "incomplete_details": cut,
            "instructions": echoed.instructions.as_deref(),
            "metadata": echoed.metadata.as_ref().map(Json::Value),
            "model": &*self.envelope.model, "object": "response", "output": output,
            "parallel_tool_calls": Json::Bool(true),
            "temperature": Json::Number(echoed.temperature),
            "tool_choice": "none", "tools": Json::List(Vec::new()),
            "top_p": Json::Number(echoed.top_p),
            "background": Json::Bool(false),
            "max_output_tokens": self.ask.max_tokens,
            "max_tool_calls": Json::Null, "previous_response_id": Json::Null,
            "prompt": Json::Null, "reasoning": Json::Null,
            "service_tier": "auto", "status": status,
            "text": Json::Null, "top_logprobs": Json::Null, "truncation": "disabled",
            "usage": over.map(|(.., usage)| response_counts(usage)),
            "user": echoed.user.as_deref(),
            "presence_penalty": Json::Number(echoed.presence_penalty),
            "frequency_penalty": Json::Number(echoed.frequency_penalty),
            "kv_transfer_params": Json::Null, "ec_transfer_params": Json::Null,
            "input_messages": Json::Null, "output_messages": Json::Null,
        }
        .into()
    }

    /// The text, the message and the response end.
    fn close_response(&mut self, finish: Finish, usage: &Usage, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.whole_text);
        let number = self.next_number();
        let done = members! {
            "content_index": 0, "item_id": &*self.item_id, "logprobs": Json::List(Vec::new()),
            "output_index": 0, "sequence_number": number, "text": &*text,
            "type": "response.output_text.done",
        };
        named(out, done);
        self.part_event(output_text(&text, Json::Null), "response.content_part.done", out);
        self.item_event(Some(&text), "response.output_item.done", out);
        let number = self.next_number();
        let response = self.response(Some((&text, finish, usage)));
        let name = "response.completed";
        named(out, members! {"response": response, "sequence_number": number, "type": name});
    }
}

fn output_text<'a>(text: &'a str, logprobs: Json<'a>) -> Json<'a> {
    let annotations = Json::List(Vec::new());
    members! {"annotations": annotations, "text": text, "type": "output_text", "logprobs": logprobs}
        .into()
}

fn response_counts(usage: &Usage) -> Members<'static> {
    let none = || Json::List(Vec::new());
    members! {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": members! {
            "cached_tokens": usage.cached_tokens, "cache_write_tokens": 0,
            "input_tokens_per_turn": none(), "cached_tokens_per_turn": none(),
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": members! {
            "reasoning_tokens": 0, "tool_output_tokens": 0,
            "output_tokens_per_turn": none(), "tool_output_tokens_per_turn": none(),
        },
        "total_tokens": usage.prompt_tokens.saturating_add(usage.completion_tokens),
    }
}
