//! `OpenAI`'s responses, as vLLM words them: a response holds one message with one text.

use super::super::ask::Ask;
use super::{Answered, Finish, Identity, Piece, Usage, WholeText, events};
use crate::scheduler::tokens::mix;

mod shapes;

use shapes::{
    Event, Incomplete, InputDetails, Item, ItemEvent, OutputDetails, Part, PartEvent, Response,
    ResponseEvent, TextDelta, TextDone, UsageCounts,
};

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

/// How far a response is.
#[derive(Clone, Copy)]
enum State<'a> {
    UnderWay,
    Over { text: &'a str, finish: Finish, usage: &'a Usage },
}

impl Responses {
    pub(super) fn new(ask: &Ask, identity: &Identity<'_>) -> Self {
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

    /// What vLLM says before anything is computed.
    pub(super) fn created(&mut self, ask: &Ask, out: &mut Vec<u8>) {
        for name in ["response.created", "response.in_progress"] {
            let event = self.event(name);
            let response = self.response(ask, State::UnderWay);
            events::named(out, name, &ResponseEvent { response, event });
        }
    }

    /// The message and its text begin.
    pub(super) fn item_added(&mut self, out: &mut Vec<u8>) {
        let name = "response.output_item.added";
        let event = self.event(name);
        events::named(out, name, &ItemEvent { item: self.item(None), output_index: 0, event });
        let name = "response.content_part.added";
        let event = self.event(name);
        let part = Part { annotations: [], text: "", r#type: "output_text", logprobs: Some([]) };
        let (item_id, output_index) = (self.item_id.as_str(), 0);
        events::named(
            out,
            name,
            &PartEvent { content_index: 0, item_id, output_index, part, event },
        );
    }

    pub(super) fn delta(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        self.finish = self.finish.or(piece.finish);
        if piece.text.is_empty() {
            return;
        }
        self.text.push_str(piece.text);
        let name = "response.output_text.delta";
        let event = self.event(name);
        let delta = TextDelta {
            content_index: 0,
            delta: piece.text,
            item_id: &self.item_id,
            logprobs: [],
            output_index: 0,
            event,
        };
        events::named(out, name, &delta);
    }

    /// The text, the message and the response end.
    pub(super) fn closing(&mut self, ask: &Ask, usage: &Usage, out: &mut Vec<u8>) {
        let name = "response.output_text.done";
        let done = self.event(name);
        let (item_id, output_index) = (self.item_id.as_str(), 0);
        let text_done = TextDone {
            content_index: 0,
            item_id,
            logprobs: [],
            output_index,
            sequence_number: done.sequence_number,
            text: &self.text,
            r#type: name,
        };
        events::named(out, name, &text_done);
        let name = "response.content_part.done";
        let event = self.event(name);
        let (item_id, part) = (self.item_id.as_str(), part(&self.text));
        events::named(
            out,
            name,
            &PartEvent { content_index: 0, item_id, output_index, part, event },
        );
        let name = "response.output_item.done";
        let event = self.event(name);
        let item = self.item(Some(&self.text));
        events::named(out, name, &ItemEvent { item, output_index, event });
        let name = "response.completed";
        let event = self.event(name);
        let finish = self.finish.unwrap_or(Finish::Length);
        let response = self.response(ask, State::Over { text: &self.text, finish, usage });
        events::named(out, name, &ResponseEvent { response, event });
    }

    pub(super) fn whole(
        &self,
        ask: &Ask,
        answered: &[Answered],
        texts: &[WholeText],
        usage: &Usage,
    ) -> Vec<u8> {
        let finish = answered.first().map_or(Finish::Length, |answered| answered.finish);
        let text = texts.first().map_or("", |whole| whole.text.as_str());
        events::json(&self.response(ask, State::Over { text, finish, usage }))
    }

    /// The next number; what every event ends with.
    fn event(&mut self, name: &'static str) -> Event {
        let sequence_number = self.next_event;
        self.next_event += 1;
        Event { sequence_number, r#type: name }
    }

    fn item<'a>(&'a self, text: Option<&'a str>) -> Item<'a> {
        Item {
            id: &self.item_id,
            content: text.map(part).into_iter().collect(),
            role: "assistant",
            status: if text.is_some() { "completed" } else { "in_progress" },
            r#type: "message",
            phase: (),
        }
    }

    fn response<'a>(&'a self, ask: &'a Ask, state: State<'a>) -> Response<'a> {
        let (output, finish, usage) = match state {
            State::UnderWay => (Vec::new(), None, None),
            State::Over { text, finish, usage } => {
                (vec![self.item(Some(text))], Some(finish), Some(counts(usage)))
            }
        };
        let is_cut = finish == Some(Finish::Length);
        let status = match finish {
            None => "in_progress",
            Some(Finish::Length) => "incomplete",
            Some(Finish::Abort) => "cancelled",
            Some(Finish::EndOfSequence | Finish::StopString(_) | Finish::StopToken(_)) => {
                "completed"
            }
        };
        Response {
            id: &self.id,
            created_at: self.created_s,
            incomplete_details: is_cut.then_some(Incomplete { reason: "max_output_tokens" }),
            instructions: ask.told.instructions.as_deref(),
            metadata: ask.told.metadata.as_ref(),
            model: &self.model,
            output,
            temperature: ask.told.temperature,
            top_p: ask.told.top_p,
            max_output_tokens: ask.max_tokens,
            status,
            usage,
            user: ask.told.user.as_deref(),
            presence_penalty: ask.told.presence_penalty,
            frequency_penalty: ask.told.frequency_penalty,
            ..Response::default()
        }
    }
}

fn part(text: &str) -> Part<'_> {
    Part { annotations: [], text, r#type: "output_text", logprobs: None }
}

fn counts(usage: &Usage) -> UsageCounts {
    UsageCounts {
        input_tokens: usage.prompt_tokens,
        input_tokens_details: InputDetails {
            cached_tokens: usage.cached_tokens,
            ..InputDetails::default()
        },
        output_tokens: usage.completion_tokens,
        output_tokens_details: OutputDetails::default(),
        total_tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
    }
}
