//! Anthropic's messages, as vLLM words them.

use serde::Serialize;

use super::super::ask::Ask;
use super::{Answered, Finish, Identity, Piece, Usage, WholeText, events, stop_string};

#[derive(Debug)]
pub(super) struct Messages {
    id: String,
    model: String,
    finish: Option<Finish>,
}

#[derive(Serialize)]
struct Message<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    content: Vec<Block<'a>>,
    model: &'a str,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'a str>,
    usage: Counts,
}

/// A message in one piece leaves out what it has not.
#[derive(Serialize)]
struct WholeMessage<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    content: Vec<Block<'a>>,
    model: &'a str,
    stop_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequence: Option<&'a str>,
    usage: Counts,
}

#[derive(Serialize)]
struct Block<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the words of the wire")]
struct Counts {
    input_tokens: u32,
    output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u32>,
}

#[derive(Serialize)]
struct Start<'a> {
    r#type: &'static str,
    message: Message<'a>,
}

#[derive(Serialize)]
struct BlockStart<'a> {
    r#type: &'static str,
    content_block: Block<'a>,
    index: u32,
}

#[derive(Serialize)]
struct BlockDelta<'a> {
    r#type: &'static str,
    delta: Block<'a>,
    index: u32,
}

#[derive(Serialize)]
struct BlockStop {
    r#type: &'static str,
    index: u32,
}

#[derive(Serialize)]
struct MessageDelta<'a> {
    r#type: &'static str,
    delta: Stop<'a>,
    usage: Counts,
}

#[derive(Serialize)]
struct Stop<'a> {
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
}

#[derive(Serialize)]
struct MessageStop {
    r#type: &'static str,
}

impl Messages {
    pub(super) fn new(ask: &Ask, identity: &Identity<'_>) -> Self {
        // vLLM makes messages out of chats, and the id shows it.
        let id = identity.text("chatcmpl-", ask.request_id.as_deref());
        Self { id, model: identity.model.to_owned(), finish: None }
    }

    /// The message without content, and the beginning of its one block.
    pub(super) fn start(&self, ask: &Ask, out: &mut Vec<u8>) {
        let usage = Usage { prompt_tokens: ask.prompt_tokens(), ..Usage::default() };
        let message = Message {
            id: &self.id,
            r#type: "message",
            role: "assistant",
            content: Vec::new(),
            model: &self.model,
            stop_reason: None,
            stop_sequence: None,
            usage: counts(&usage),
        };
        events::named(out, "message_start", &Start { r#type: "message_start", message });
        let content_block = Block { r#type: "text", text: "" };
        let start = BlockStart { r#type: "content_block_start", content_block, index: 0 };
        events::named(out, "content_block_start", &start);
    }

    pub(super) fn delta(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        self.finish = self.finish.or(piece.finish);
        if piece.text.is_empty() {
            return;
        }
        let delta = Block { r#type: "text_delta", text: piece.text };
        let event = BlockDelta { r#type: "content_block_delta", delta, index: 0 };
        events::named(out, "content_block_delta", &event);
    }

    pub(super) fn closing(&self, ask: &Ask, usage: &Usage, out: &mut Vec<u8>) {
        let name = "content_block_stop";
        events::named(out, name, &BlockStop { r#type: name, index: 0 });
        let name = "message_delta";
        let delta = stop(ask, self.finish.unwrap_or(Finish::Length));
        events::named(out, name, &MessageDelta { r#type: name, delta, usage: counts(usage) });
        let name = "message_stop";
        events::named(out, name, &MessageStop { r#type: name });
    }

    pub(super) fn whole(
        &self,
        ask: &Ask,
        answered: &[Answered],
        texts: &[WholeText],
        usage: &Usage,
    ) -> Vec<u8> {
        let finish = answered.first().map_or(Finish::Length, |answered| answered.finish);
        let Stop { stop_reason, stop_sequence } = stop(ask, finish);
        let blocks = texts.iter().map(|text| Block { r#type: "text", text: &text.text });
        events::json(&WholeMessage {
            id: &self.id,
            r#type: "message",
            role: "assistant",
            content: blocks.collect(),
            model: &self.model,
            stop_reason,
            stop_sequence,
            usage: counts(usage),
        })
    }
}

fn stop(ask: &Ask, finish: Finish) -> Stop<'_> {
    match finish {
        Finish::Length => Stop { stop_reason: "max_tokens", stop_sequence: None },
        Finish::StopString(which) => {
            let stop_sequence = Some(stop_string(ask, which));
            Stop { stop_reason: "stop_sequence", stop_sequence }
        }
        Finish::EndOfSequence | Finish::StopToken(_) | Finish::Abort => {
            Stop { stop_reason: "end_turn", stop_sequence: None }
        }
    }
}

/// In Anthropic's words what came from the cache is not in `input_tokens`.
fn counts(usage: &Usage) -> Counts {
    Counts {
        input_tokens: usage.prompt_tokens.saturating_sub(usage.cached_tokens),
        output_tokens: usage.completion_tokens,
        cache_read_input_tokens: (0 < usage.cached_tokens).then_some(usage.cached_tokens),
    }
}
