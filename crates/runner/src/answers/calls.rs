//! Calls of tools in the documents that a server sent, whatever the API: whole, or in pieces.

use std::collections::BTreeMap;

use serde_json::Value;

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    /// JSON, if the model did as it was told.
    pub(super) arguments: String,
}

/// The calls of the first choice, in their order. What is no JSON was refused by the reader before.
pub(super) fn read_calls(documents: &[u8]) -> Vec<Call> {
    let mut calls = BTreeMap::<u64, Call>::new();
    for document in documents.split(|byte| *byte == b'\n') {
        if let Ok(document) = serde_json::from_slice::<Value>(document) {
            read_document(&document, &mut calls);
        }
    }
    calls.into_values().filter(|call| *call != Call::default()).collect()
}

fn read_document(document: &Value, calls: &mut BTreeMap<u64, Call>) {
    // Chat completions, streamed and whole, and Ollama's chats.
    let choice = document["choices"].as_array().and_then(|choices| {
        choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0)
    });
    let message = choice.map_or(&document["message"], |choice| {
        let delta = &choice["delta"];
        if delta.is_null() { &choice["message"] } else { delta }
    });
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        // Some versions of Ollama count calls in the function, others not at all.
        let index = call["index"].as_u64().or_else(|| function["index"].as_u64());
        let index = index.unwrap_or_else(|| {
            let last = calls.last_key_value().map(|(index, _)| *index);
            // A call that is not counted begins with its name.
            if function["name"].as_str().is_some_and(|name| !name.is_empty()) {
                last.map_or(0, |last| last.saturating_add(1))
            } else {
                last.unwrap_or(0)
            }
        });
        add(calls, index, &function["name"], &function["arguments"]);
    }
    // Anthropic's messages and OpenAI's responses, whole.
    for list in ["content", "output"] {
        for (place, part) in (0_u64..).zip(document[list].as_array().into_iter().flatten()) {
            add_part(calls, place, part);
        }
    }
    // The events of both.
    let index = document["index"].as_u64().or_else(|| document["output_index"].as_u64());
    let index = index.unwrap_or(0);
    match document["type"].as_str() {
        Some("content_block_start") => add_part(calls, index, &document["content_block"]),
        Some("content_block_delta") => {
            add(calls, index, &Value::Null, &document["delta"]["partial_json"]);
        }
        Some("response.output_item.added") => add_part(calls, index, &document["item"]),
        Some("response.function_call_arguments.delta") => {
            add(calls, index, &Value::Null, &document["delta"]);
        }
        _ => {}
    }
}

fn add_part(calls: &mut BTreeMap<u64, Call>, index: u64, part: &Value) {
    if matches!(part["type"].as_str(), Some("tool_use" | "function_call")) {
        // A block whose arguments follow in pieces begins with an empty object.
        let arguments = [&part["input"], &part["arguments"]];
        let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
        let arguments = arguments.into_iter().find(|it| !it.is_null() && !is_empty(it));
        add(calls, index, &part["name"], arguments.unwrap_or(&Value::Null));
    }
}

fn add(calls: &mut BTreeMap<u64, Call>, index: u64, name: &Value, arguments: &Value) {
    let call = calls.entry(index).or_default();
    call.name.push_str(name.as_str().unwrap_or_default());
    match arguments.as_str() {
        Some(piece) => call.arguments.push_str(piece),
        None if arguments.is_null() => {}
        None => call.arguments.push_str(&arguments.to_string()),
    }
}
