//! Responses, and Anthropic's messages.

use serde_json::{Value, json};

use super::super::Finish;
use super::{events, keys, streamed, whole, wording};
use crate::truth::Api;

#[test]
fn responses_have_the_events_of_vllm() {
    let body = json!({"input": "why", "max_output_tokens": 3, "stream": true});
    let wording = wording(Api::Responses, &body);
    let alone = whole(&wording, Finish::Length);
    let seen = events(&streamed(wording, Finish::Length));
    let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
    let delta = "response.output_text.delta";
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            delta,
            delta,
            delta,
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let values: Vec<Value> =
        seen.iter().map(|(_, text)| serde_json::from_str(text).unwrap()).collect();
    for (number, value) in values.iter().enumerate() {
        assert_eq!(value["sequence_number"], number);
        assert_eq!(value["type"], names[number]);
    }
    assert_eq!(
        seen[5].1,
        format!(
            "{{\"content_index\":0,\"delta\":\" bado\",\"item_id\":{},\"logprobs\":[],\
             \"output_index\":0,\"sequence_number\":5,\"type\":\"{delta}\"}}",
            values[5]["item_id"]
        )
    );
    let response = &values[10]["response"];
    assert_eq!(response, &alone);
    assert_eq!(response["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(response["output"][0]["content"][0]["text"], "zuzu bado mika");
    assert_eq!(keys(&values[0]["response"]), RESPONSE_KEYS);
    assert_eq!(keys(response), RESPONSE_KEYS);
    assert_eq!(keys(&response["output"][0]), ["content", "id", "phase", "role", "status", "type"]);
    assert_eq!(keys(&values[3]["part"]), ["annotations", "logprobs", "text", "type"]);
    assert_eq!(
        keys(&response["usage"]),
        [
            "input_tokens",
            "input_tokens_details",
            "output_tokens",
            "output_tokens_details",
            "total_tokens",
        ]
    );
}

const RESPONSE_KEYS: [&str; 32] = [
    "background",
    "created_at",
    "ec_transfer_params",
    "frequency_penalty",
    "id",
    "incomplete_details",
    "input_messages",
    "instructions",
    "kv_transfer_params",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "object",
    "output",
    "output_messages",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "reasoning",
    "service_tier",
    "status",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "usage",
    "user",
];

#[test]
fn messages_have_the_events_of_vllm() {
    let body = json!({"messages": [{"role": "user", "content": "why"}], "max_tokens": 3,
        "stream": true, "stop_sequences": ["x"]});
    let message = wording(Api::Messages, &body);
    let seen = events(&streamed(message, Finish::Length));
    let texts: Vec<&str> = seen.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "{\"type\":\"message_start\",\"message\":{\"id\":\"chatcmpl-00000000000000ab\",\
             \"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"tiny\",\
             \"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":4,\
             \"output_tokens\":0}}}",
            "{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"},\
             \"index\":0}",
            "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\
             \"text\":\"zuzu\"},\"index\":0}",
            "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\
             \"text\":\" bado\"},\"index\":0}",
            "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\
             \"text\":\" mika\"},\"index\":0}",
            "{\"type\":\"content_block_stop\",\"index\":0}",
            "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\",\
             \"stop_sequence\":null},\"usage\":{\"input_tokens\":5,\"output_tokens\":3}}",
            "{\"type\":\"message_stop\"}",
        ]
    );
    for (name, text) in &seen {
        assert!(text.starts_with(&format!("{{\"type\":\"{name}\"")), "{name}: {text}");
    }
    let all = whole(&wording(Api::Messages, &body), Finish::StopString(0));
    assert_eq!(
        (&all["stop_reason"], &all["stop_sequence"]),
        (&json!("stop_sequence"), &json!("x"))
    );
    assert_eq!(all["content"], json!([{"type": "text", "text": "zuzu bado mika"}]));
    let ended = whole(&wording(Api::Messages, &body), Finish::EndOfSequence);
    assert_eq!(keys(&ended), ["content", "id", "model", "role", "stop_reason", "type", "usage"]);
}
