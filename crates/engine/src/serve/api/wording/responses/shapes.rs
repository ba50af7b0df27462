//! The JSON of responses and their events; the order of the fields is vLLM's.

use serde::Serialize;
use serde_json::Value;

/// A list in which there is never anything here.
type Nothing = [(); 0];

#[derive(Serialize)]
pub(super) struct Response<'a> {
    pub(super) id: &'a str,
    pub(super) created_at: u64,
    pub(super) incomplete_details: Option<Incomplete>,
    pub(super) instructions: Option<&'a str>,
    pub(super) metadata: Option<&'a Value>,
    pub(super) model: &'a str,
    pub(super) object: &'static str,
    pub(super) output: Vec<Item<'a>>,
    pub(super) parallel_tool_calls: bool,
    pub(super) temperature: f64,
    pub(super) tool_choice: &'static str,
    pub(super) tools: Nothing,
    pub(super) top_p: f64,
    pub(super) background: bool,
    pub(super) max_output_tokens: Option<u32>,
    pub(super) max_tool_calls: (),
    pub(super) previous_response_id: (),
    pub(super) prompt: (),
    pub(super) reasoning: (),
    pub(super) service_tier: &'static str,
    pub(super) status: &'static str,
    pub(super) text: (),
    pub(super) top_logprobs: (),
    pub(super) truncation: &'static str,
    pub(super) usage: Option<UsageCounts>,
    pub(super) user: Option<&'a str>,
    pub(super) presence_penalty: f64,
    pub(super) frequency_penalty: f64,
    pub(super) kv_transfer_params: (),
    pub(super) ec_transfer_params: (),
    pub(super) input_messages: (),
    pub(super) output_messages: (),
}

impl Default for Response<'_> {
    fn default() -> Self {
        Self {
            id: "",
            created_at: 0,
            incomplete_details: None,
            instructions: None,
            metadata: None,
            model: "",
            object: "response",
            output: Vec::new(),
            parallel_tool_calls: true,
            temperature: 1.0,
            tool_choice: "none",
            tools: [],
            top_p: 1.0,
            background: false,
            max_output_tokens: None,
            max_tool_calls: (),
            previous_response_id: (),
            prompt: (),
            reasoning: (),
            service_tier: "auto",
            status: "in_progress",
            text: (),
            top_logprobs: (),
            truncation: "disabled",
            usage: None,
            user: None,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            kv_transfer_params: (),
            ec_transfer_params: (),
            input_messages: (),
            output_messages: (),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Incomplete {
    pub(super) reason: &'static str,
}

#[derive(Serialize)]
pub(super) struct Item<'a> {
    pub(super) id: &'a str,
    pub(super) content: Vec<Part<'a>>,
    pub(super) role: &'static str,
    pub(super) status: &'static str,
    pub(super) r#type: &'static str,
    pub(super) phase: (),
}

#[derive(Serialize)]
pub(super) struct Part<'a> {
    pub(super) annotations: Nothing,
    pub(super) text: &'a str,
    pub(super) r#type: &'static str,
    pub(super) logprobs: Option<Nothing>,
}

#[derive(Serialize)]
pub(super) struct UsageCounts {
    pub(super) input_tokens: u32,
    pub(super) input_tokens_details: InputDetails,
    pub(super) output_tokens: u32,
    pub(super) output_tokens_details: OutputDetails,
    pub(super) total_tokens: u32,
}

#[derive(Default, Serialize)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: u32,
    pub(super) cache_write_tokens: u32,
    pub(super) input_tokens_per_turn: Nothing,
    pub(super) cached_tokens_per_turn: Nothing,
}

#[derive(Default, Serialize)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: u32,
    pub(super) tool_output_tokens: u32,
    pub(super) output_tokens_per_turn: Nothing,
    pub(super) tool_output_tokens_per_turn: Nothing,
}

/// What stands last in most events.
#[derive(Serialize)]
pub(super) struct Event {
    pub(super) sequence_number: u32,
    pub(super) r#type: &'static str,
}

#[derive(Serialize)]
pub(super) struct ResponseEvent<'a> {
    pub(super) response: Response<'a>,
    #[serde(flatten)]
    pub(super) event: Event,
}

#[derive(Serialize)]
pub(super) struct ItemEvent<'a> {
    pub(super) item: Item<'a>,
    pub(super) output_index: u32,
    #[serde(flatten)]
    pub(super) event: Event,
}

#[derive(Serialize)]
pub(super) struct PartEvent<'a> {
    pub(super) content_index: u32,
    pub(super) item_id: &'a str,
    pub(super) output_index: u32,
    pub(super) part: Part<'a>,
    #[serde(flatten)]
    pub(super) event: Event,
}

#[derive(Serialize)]
pub(super) struct TextDelta<'a> {
    pub(super) content_index: u32,
    pub(super) delta: &'a str,
    pub(super) item_id: &'a str,
    pub(super) logprobs: Nothing,
    pub(super) output_index: u32,
    #[serde(flatten)]
    pub(super) event: Event,
}

#[derive(Serialize)]
pub(super) struct TextDone<'a> {
    pub(super) content_index: u32,
    pub(super) item_id: &'a str,
    pub(super) logprobs: Nothing,
    pub(super) output_index: u32,
    pub(super) sequence_number: u32,
    pub(super) text: &'a str,
    pub(super) r#type: &'static str,
}
