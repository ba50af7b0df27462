//! OpenTelemetry spans of calls to models, with the attributes that begin with `gen_ai.`.

use std::collections::HashMap;
use std::io::BufReader;
use std::time::Duration;

use inferometer_model::Message;
use inferometer_model::spec::TOKENS_MAX;
use serde_json::{Map, Value, json};

use super::super::{After, Gathering, Part, Raw, Said};
use super::{DELAY_MAX_S, Result, in_turn};
use crate::data_file::{DataFile, Position, reason_of};
use crate::trace::date_nanos;

/// A call to a model.
struct Call {
    number: u64,
    id: String,
    session: String,
    start_ns: i64,
    end_ns: i64,
    attributes: Map<String, Value>,
}

/// One document, or one to a line.
pub(super) fn read(file: &mut DataFile, gathering: &mut Gathering<'_>) -> Result<()> {
    let mut spans = Vec::new();
    let documents = serde_json::Deserializer::from_reader(BufReader::new(&mut *file));
    let mut failure = None;
    for document in documents.into_iter::<Value>() {
        match document {
            Ok(document) => collect_spans(document, &mut spans),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    if let Some(error) = failure {
        if error.is_io() {
            return Err(file.failed(error.into()));
        }
        return Err(file.wrong(Position::Line(error.line() as u64), reason_of(&error)));
    }
    let mut calls = Vec::new();
    for (number, span) in (1..).zip(spans) {
        calls.extend(call(gathering, number, span)?);
    }
    // Those of a session are linked by their times.
    calls.sort_by_key(|a| (a.start_ns, a.number));
    let mut sessions: Vec<(String, Vec<Call>)> = Vec::new();
    let mut by_name = HashMap::new();
    for call in calls {
        let place = *by_name.entry(call.session.clone()).or_insert(sessions.len());
        if place == sessions.len() {
            sessions.push((call.session.clone(), Vec::new()));
        }
        sessions[place].1.push(call);
    }
    sessions.into_iter().try_for_each(|(name, calls)| link(gathering, &name, &calls))
}

fn collect_spans(value: Value, spans: &mut Vec<Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            let has = |names: [&str; 2]| names.iter().any(|name| object.contains_key(*name));
            if has(["spanId", "span_id"]) && has(["traceId", "trace_id"]) {
                spans.push(object);
            } else {
                object.into_iter().for_each(|(_, value)| collect_spans(value, spans));
            }
        }
        Value::Array(values) => {
            for value in values {
                collect_spans(value, spans);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `None` for other work, and for calls that failed.
fn call(
    gathering: &mut Gathering<'_>,
    number: u64,
    mut span: Map<String, Value>,
) -> Result<Option<Call>> {
    let attributes = attributes(span.remove("attributes").unwrap_or_default());
    let operation = attributes.get("gen_ai.operation.name").and_then(Value::as_str);
    let is_call = attributes.contains_key("gen_ai.input.messages")
        || matches!(operation, Some("chat" | "text_completion" | "generate_content"));
    if !is_call {
        gathering.leave_out("a span that is no call to a model");
        return Ok(None);
    }
    let status = &span.get("status").unwrap_or(&Value::Null)["code"];
    if *status == json!(2) || matches!(status.as_str(), Some("ERROR" | "STATUS_CODE_ERROR")) {
        gathering.leave_out("a call that failed");
        return Ok(None);
    }
    let mut text = |names: [&str; 2]| {
        let value = names.iter().find_map(|name| span.remove(*name));
        value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let place = Position::Item(number);
    let missing = |what: &str| gathering.wrong(place, format!("the span has no {what}"));
    let trace = text(["traceId", "trace_id"]).unwrap_or_default();
    let id = text(["spanId", "span_id"]).unwrap_or_default();
    let start = text(["startTimeUnixNano", "start_time"]);
    let end = text(["endTimeUnixNano", "end_time"]);
    let moment = |text: Option<String>, what: &str| {
        let read = |text: String| text.parse().ok().or_else(|| date_nanos(&text));
        text.and_then(read).ok_or_else(|| missing(what))
    };
    let start_ns = moment(start, "start time (`startTimeUnixNano` or `start_time`)")?;
    let end_ns: i64 = moment(end, "end time (`endTimeUnixNano` or `end_time`)")?;
    let conversation = attributes.get("gen_ai.conversation.id").and_then(Value::as_str);
    let session = conversation.map_or(trace, str::to_owned);
    let end_ns = end_ns.max(start_ns);
    Ok(Some(Call { number, id, session, start_ns, end_ns, attributes }))
}

/// A request waits for those that had ended when it began, but for those that another of them
/// waited for.
fn link(gathering: &mut Gathering<'_>, session: &str, calls: &[Call]) -> Result<()> {
    let begins_ns = calls.first().map_or(0, |call| call.start_ns);
    for (index, call) in calls.iter().enumerate() {
        // In the order of their starts, so that none of the later ones had ended.
        let ended = calls[..index].iter().filter(|other| other.end_ns <= call.start_ns);
        let latest_ns = ended.clone().map(|other| other.start_ns).max().unwrap_or(i64::MIN);
        let after: Vec<&Call> = ended.filter(|other| latest_ns < other.end_ns).collect();
        let since_ns = after.iter().map(|other| other.end_ns).max().unwrap_or(begins_ns);
        let delay = u64::try_from(call.start_ns - since_ns).unwrap_or(0);
        let raw = Raw {
            place: Position::Item(call.number),
            id: call.id.clone(),
            after: After::Ids(after.iter().map(|other| other.id.clone()).collect()),
            delay: Duration::from_nanos(delay).min(Duration::from_secs_f64(DELAY_MAX_S)),
            at_ns: Some(call.start_ns),
            ..request(gathering, call)?
        };
        gathering.push(session, raw)?;
    }
    Ok(())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only texts are parsed")]
fn request(gathering: &mut Gathering<'_>, call: &Call) -> Result<Raw> {
    let place = Position::Item(call.number);
    let count = |names: [&str; 2]| {
        let value = names.iter().find_map(|name| call.attributes.get(*name))?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u32::try_from(number).ok().filter(|tokens| (1..=TOKENS_MAX).contains(tokens))
    };
    let input = count(["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]);
    let output = count(["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]);
    let mut list = |name: &str, role: &str| -> Vec<Part> {
        let found = call.attributes.get(name).cloned().unwrap_or_default();
        let found = match found {
            Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            other => other,
        };
        let messages = messages(found, role);
        messages.into_iter().map(|message| gathering.message(message)).collect()
    };
    let mut parts = list("gen_ai.system_instructions", "system");
    parts.extend(list("gen_ai.input.messages", "user"));
    let answer = list("gen_ai.output.messages", "assistant").into_iter().next();
    let said = match input {
        _ if !parts.is_empty() => Said::Whole(parts),
        Some(tokens) => Said::Length(tokens, Vec::new()),
        None => {
            let reason = "the span has neither `gen_ai.input.messages` nor \
                          `gen_ai.usage.input_tokens`, so there is nothing to send";
            return Err(gathering.wrong(place, reason));
        }
    };
    Ok(Raw { output_tokens: output, ..in_turn(place, 0, said, answer) })
}

/// Attributes by name, plain or as the protocol writes them.
fn attributes(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(attributes) => attributes,
        Value::Array(list) => {
            let pair = |pair: Value| {
                Some((pair["key"].as_str()?.to_owned(), plain(pair["value"].clone())))
            };
            list.into_iter().filter_map(pair).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Map::new(),
    }
}

/// A value as the protocol writes it: an object with the name of its type.
fn plain(value: Value) -> Value {
    let Value::Object(object) = value else { return value };
    let Some((kind, inner)) = object.into_iter().next() else { return Value::Null };
    match (kind.as_str(), inner) {
        ("arrayValue", Value::Object(mut list)) => {
            let values = list.remove("values").unwrap_or_default();
            let values = values.as_array().cloned().unwrap_or_default();
            values.into_iter().map(plain).collect()
        }
        ("kvlistValue", Value::Object(mut list)) => {
            Value::Object(attributes(list.remove("values").unwrap_or_default()))
        }
        (_, inner) => inner,
    }
}

/// Messages as chat APIs take them, from messages with parts, messages with content, or text.
fn messages(value: Value, role: &str) -> Vec<Message> {
    match value {
        Value::String(text) => vec![Message::new(role, text)],
        Value::Array(values) => {
            // A list of parts is one message.
            if values.iter().all(|value| value.get("type").is_some()) && !values.is_empty() {
                return vec![from_parts(role, &values)];
            }
            values.into_iter().flat_map(|value| messages(value, role)).collect()
        }
        Value::Object(object) => {
            let own = object.get("role").and_then(Value::as_str).unwrap_or(role).to_owned();
            if let Some(Value::Array(parts)) = object.get("parts") {
                vec![from_parts(&own, parts)]
            } else {
                let mut message = Message(object);
                message.0.entry("role").or_insert_with(|| own.into());
                vec![message]
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn from_parts(role: &str, parts: &[Value]) -> Message {
    let (mut text, mut calls, mut answers) = (String::new(), Vec::new(), None);
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for part in parts {
        match part["type"].as_str() {
            Some("tool_call") => calls.push(json!({
                "id": part["id"],
                "type": "function",
                "function": {"name": part["name"], "arguments": words(&part["arguments"])},
            })),
            Some("tool_call_response") => {
                answers = answers.or_else(|| Some(part["id"].clone()));
                let keys = ["response", "result", "content"];
                let found = keys.iter().find_map(|key| part.get(*key));
                text.push_str(&found.map(words).unwrap_or_default());
            }
            _ => {
                let found = part.get("content").or_else(|| part.get("text"));
                text.push_str(&found.map(words).unwrap_or_default());
            }
        }
    }
    let role = if answers.is_some() { "tool" } else { role };
    let mut message = Message::new(role, text);
    if let Some(id) = answers {
        message.0.insert("tool_call_id".to_owned(), id);
    }
    if !calls.is_empty() {
        message.0.insert("tool_calls".to_owned(), calls.into());
    }
    message
}
