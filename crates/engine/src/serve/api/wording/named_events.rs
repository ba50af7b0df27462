//! The APIs whose events have names: Anthropic's messages and `OpenAI`'s responses, with the fields
//! and the order of fields of vLLM.

use serde::Serialize;
use serde_json::Value;

use super::answer::{self, stop_string};
use super::{Finish, FinishedChoice, Identity, Piece, Usage, WholeText};
use crate::scheduler::blocks::mix;
use crate::serve::api::ask::GenerationRequest;

/// JSON whose members stay in the order in which they are written.
#[derive(Serialize)]
#[serde(untagged)]
enum Json<'a> {
    Null,
    Bool(bool),
    Count(u64),
    Number(f64),
    Text(&'a str),
    List(Vec<Json<'a>>),
    Object(#[serde(serialize_with = "write_object")] Vec<(&'static str, Json<'a>)>),
    Value(&'a Value),
}

fn write_object<S: serde::Serializer>(
    members: &[(&'static str, Json<'_>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
}

impl From<u32> for Json<'_> {
    fn from(number: u32) -> Self {
        Self::Count(number.into())
    }
}

impl<'a> From<&'a str> for Json<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a, T: Into<Json<'a>>> From<Option<T>> for Json<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'a> From<Vec<Json<'a>>> for Json<'a> {
    fn from(items: Vec<Json<'a>>) -> Self {
        Self::List(items)
    }
}

/// An object with these members, in this order.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        Json::Object(vec![$(($name, Json::from($value))),*])
    };
}

/// Writes an event that repeats its name in its data.
fn event(out: &mut Vec<u8>, event: &Json<'_>) {
    let Json::Object(members) = event else { return };
    let name = members.iter().find_map(|(name, value)| {
        let Json::Text(text) = value else { return None };
        (*name == "type").then_some(*text)
    });
    answer::named(out, name.unwrap_or_default(), event);
}

#[derive(Debug)]
pub(super) struct Messages {
    id: String,
    model: String,
    finish: Option<Finish>,
}

impl Messages {
    pub(super) fn new(ask: &GenerationRequest, identity: &Identity<'_>) -> Self {
        // vLLM makes messages out of chats, and the id shows it.
        let id = identity.text("chatcmpl-", ask.request_id.as_deref());
        Self { id, model: identity.model.to_owned(), finish: None }
    }

    /// The message without content, and the beginning of its one block.
    pub(super) fn start(&self, ask: &GenerationRequest, out: &mut Vec<u8>) {
        let usage = Usage { prompt_tokens: ask.prompt_tokens(), ..Usage::default() };
        let message = object! {
            "id": self.id.as_str(),
            "type": "message",
            "role": "assistant",
            "content": Vec::new(),
            "model": self.model.as_str(),
            "stop_reason": Json::Null,
            "stop_sequence": Json::Null,
            "usage": message_counts(&usage),
        };
        event(out, &object! {"type": "message_start", "message": message});
        let block = object! {"type": "text", "text": ""};
        event(out, &object! {"type": "content_block_start", "content_block": block, "index": 0});
    }

    pub(super) fn delta(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        self.finish = self.finish.or(piece.finish);
        if piece.text.is_empty() {
            return;
        }
        let delta = object! {"type": "text_delta", "text": piece.text};
        event(out, &object! {"type": "content_block_delta", "delta": delta, "index": 0});
    }

    pub(super) fn closing(&self, ask: &GenerationRequest, usage: &Usage, out: &mut Vec<u8>) {
        event(out, &object! {"type": "content_block_stop", "index": 0});
        let (reason, sequence) = message_stop(ask, self.finish.unwrap_or(Finish::Length));
        let delta = object! {"stop_reason": reason, "stop_sequence": sequence};
        let usage = message_counts(usage);
        event(out, &object! {"type": "message_delta", "delta": delta, "usage": usage});
        event(out, &object! {"type": "message_stop"});
    }

    /// A message in one piece leaves out the stop sequence if there is none.
    pub(super) fn whole(
        &self,
        ask: &GenerationRequest,
        answered: &[FinishedChoice],
        texts: &[WholeText],
        usage: &Usage,
    ) -> Vec<u8> {
        let finish = answered.first().map_or(Finish::Length, |answered| answered.finish);
        let (reason, sequence) = message_stop(ask, finish);
        let blocks = texts.iter().map(|text| object! {"type": "text", "text": text.text.as_str()});
        let mut members = vec![
            ("id", Json::from(self.id.as_str())),
            ("type", "message".into()),
            ("role", "assistant".into()),
            ("content", Json::List(blocks.collect())),
            ("model", self.model.as_str().into()),
            ("stop_reason", reason.into()),
        ];
        members.extend(sequence.map(|sequence| ("stop_sequence", sequence.into())));
        members.push(("usage", message_counts(usage)));
        answer::json(&Json::Object(members))
    }
}

fn message_stop(ask: &GenerationRequest, finish: Finish) -> (&'static str, Option<&str>) {
    match finish {
        Finish::Length => ("max_tokens", None),
        Finish::StopString(which) => ("stop_sequence", Some(stop_string(ask, which))),
        Finish::EndOfSequence | Finish::StopToken(_) | Finish::Abort => ("end_turn", None),
    }
}

/// Anthropic's `input_tokens` does not include what came from the cache.
fn message_counts(usage: &Usage) -> Json<'static> {
    let mut members = vec![
        ("input_tokens", Json::from(usage.prompt_tokens.saturating_sub(usage.cached_tokens))),
        ("output_tokens", usage.completion_tokens.into()),
    ];
    if 0 < usage.cached_tokens {
        members.push(("cache_read_input_tokens", usage.cached_tokens.into()));
    }
    Json::Object(members)
}

/// A response holds one message with one text.
#[derive(Debug)]
pub(super) struct Responses {
    id: String,
    item_id: String,
    model: String,
    created_s: u64,
    next_event: u32,
    text: String,
    finish: Option<Finish>,
}

impl Responses {
    pub(super) fn new(ask: &GenerationRequest, identity: &Identity<'_>) -> Self {
        Self {
            id: identity.text("resp_", ask.request_id.as_deref()),
            item_id: format!("msg_{:016x}", mix(identity.id.wrapping_add(1))),
            model: identity.model.to_owned(),
            created_s: identity.created_s,
            next_event: 0,
            text: String::new(),
            finish: None,
        }
    }

    /// What vLLM sends before anything is computed.
    pub(super) fn created(&mut self, ask: &GenerationRequest, out: &mut Vec<u8>) {
        for name in ["response.created", "response.in_progress"] {
            let number = self.next_number();
            let response = self.response(ask, None);
            event(out, &object! {"response": response, "sequence_number": number, "type": name});
        }
    }

    /// The message and its text begin.
    pub(super) fn item_added(&mut self, out: &mut Vec<u8>) {
        self.item_event(None, "response.output_item.added", out);
        let part = output_text("", Json::List(Vec::new()));
        self.part_event(part, "response.content_part.added", out);
    }

    pub(super) fn delta(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        self.finish = self.finish.or(piece.finish);
        if piece.text.is_empty() {
            return;
        }
        self.text.push_str(piece.text);
        let number = self.next_number();
        let delta = object! {
            "content_index": 0,
            "delta": piece.text,
            "item_id": self.item_id.as_str(),
            "logprobs": Vec::new(),
            "output_index": 0,
            "sequence_number": number,
            "type": "response.output_text.delta",
        };
        event(out, &delta);
    }

    /// The text, the message and the response end.
    pub(super) fn closing(&mut self, ask: &GenerationRequest, usage: &Usage, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        let number = self.next_number();
        let done = object! {
            "content_index": 0,
            "item_id": self.item_id.as_str(),
            "logprobs": Vec::new(),
            "output_index": 0,
            "sequence_number": number,
            "text": text.as_str(),
            "type": "response.output_text.done",
        };
        event(out, &done);
        self.part_event(output_text(&text, Json::Null), "response.content_part.done", out);
        self.item_event(Some(&text), "response.output_item.done", out);
        let number = self.next_number();
        let finish = self.finish.unwrap_or(Finish::Length);
        let completed = object! {
            "response": self.response(ask, Some((&text, finish, usage))),
            "sequence_number": number,
            "type": "response.completed",
        };
        event(out, &completed);
    }

    pub(super) fn whole(
        &self,
        ask: &GenerationRequest,
        answered: &[FinishedChoice],
        texts: &[WholeText],
        usage: &Usage,
    ) -> Vec<u8> {
        let finish = answered.first().map_or(Finish::Length, |answered| answered.finish);
        let text = texts.first().map_or("", |whole| whole.text.as_str());
        answer::json(&self.response(ask, Some((text, finish, usage))))
    }

    fn next_number(&mut self) -> u32 {
        let number = self.next_event;
        self.next_event += 1;
        number
    }

    fn part_event(&mut self, part: Json<'_>, name: &'static str, out: &mut Vec<u8>) {
        let number = self.next_number();
        let part = object! {
            "content_index": 0,
            "item_id": self.item_id.as_str(),
            "output_index": 0,
            "part": part,
            "sequence_number": number,
            "type": name,
        };
        event(out, &part);
    }

    fn item_event(&mut self, text: Option<&str>, name: &'static str, out: &mut Vec<u8>) {
        let number = self.next_number();
        let item = object! {
            "item": self.item(text),
            "output_index": 0,
            "sequence_number": number,
            "type": name,
        };
        event(out, &item);
    }

    fn item<'a>(&'a self, text: Option<&'a str>) -> Json<'a> {
        let parts = text.map(|text| output_text(text, Json::Null)).into_iter().collect();
        object! {
            "id": self.item_id.as_str(),
            "content": Json::List(parts),
            "role": "assistant",
            "status": if text.is_some() { "completed" } else { "in_progress" },
            "type": "message",
            "phase": Json::Null,
        }
    }

    /// The response as it is before its end, or with what it ended with.
    fn response<'a>(
        &'a self,
        ask: &'a GenerationRequest,
        over: Option<(&'a str, Finish, &'a Usage)>,
    ) -> Json<'a> {
        let finish = over.map(|(_, finish, _)| finish);
        let is_cut = finish == Some(Finish::Length);
        let status = match finish {
            None => "in_progress",
            Some(Finish::Length) => "incomplete",
            Some(Finish::Abort) => "cancelled",
            Some(Finish::EndOfSequence | Finish::StopString(_) | Finish::StopToken(_)) => {
                "completed"
            }
        };
        let output = over.map(|(text, ..)| self.item(Some(text))).into_iter().collect();
        object! {
            "id": self.id.as_str(),
            "created_at": Json::Count(self.created_s),
            "incomplete_details": is_cut.then(|| object! {"reason": "max_output_tokens"}),
            "instructions": ask.echo_fields.instructions.as_deref(),
            "metadata": ask.echo_fields.metadata.as_ref().map_or(Json::Null, Json::Value),
            "model": self.model.as_str(),
            "object": "response",
            "output": Json::List(output),
            "parallel_tool_calls": Json::Bool(true),
            "temperature": Json::Number(ask.echo_fields.temperature),
            "tool_choice": "none",
            "tools": Vec::new(),
            "top_p": Json::Number(ask.echo_fields.top_p),
            "background": Json::Bool(false),
            "max_output_tokens": ask.max_tokens,
            "max_tool_calls": Json::Null,
            "previous_response_id": Json::Null,
            "prompt": Json::Null,
            "reasoning": Json::Null,
            "service_tier": "auto",
            "status": status,
            "text": Json::Null,
            "top_logprobs": Json::Null,
            "truncation": "disabled",
            "usage": over.map(|(.., usage)| response_counts(usage)),
            "user": ask.echo_fields.user.as_deref(),
            "presence_penalty": Json::Number(ask.echo_fields.presence_penalty),
            "frequency_penalty": Json::Number(ask.echo_fields.frequency_penalty),
            "kv_transfer_params": Json::Null,
            "ec_transfer_params": Json::Null,
            "input_messages": Json::Null,
            "output_messages": Json::Null,
        }
    }
}

fn output_text<'a>(text: &'a str, logprobs: Json<'a>) -> Json<'a> {
    object! {"annotations": Vec::new(), "text": text, "type": "output_text", "logprobs": logprobs}
}

fn response_counts(usage: &Usage) -> Json<'static> {
    object! {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": object! {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": 0,
            "input_tokens_per_turn": Vec::new(),
            "cached_tokens_per_turn": Vec::new(),
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": object! {
            "reasoning_tokens": 0,
            "tool_output_tokens": 0,
            "output_tokens_per_turn": Vec::new(),
            "tool_output_tokens_per_turn": Vec::new(),
        },
        "total_tokens": usage.prompt_tokens.saturating_add(usage.completion_tokens),
    }
}
