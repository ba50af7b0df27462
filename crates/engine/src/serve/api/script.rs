//! Answers that can be right or wrong: sums, JSON by a schema, and calls of tools. With them a client's
//! judgement of answers can be held against the truth.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::generation::{Draws, Purpose};

/// What one choice says instead of words by chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// The text of each token.
    pub(crate) pieces: Vec<String>,
    /// The name of the tool that is called; the pieces are then its arguments.
    pub(crate) call: Option<String>,
    pub(crate) is_right: bool,
}

/// Bytes of a token of JSON, about as many as models have.
const PIECE_BYTES: usize = 4;
const DEPTH_MAX: u32 = 32;

impl Script {
    /// The answer of this seed to a body; `None` where it asks for nothing that can be right. A `share` of
    /// all answers is right.
    pub(crate) fn new(body: &Map<String, Value>, seed: u64, share: f64) -> Option<Rc<Self>> {
        let is_right = Draws::new(seed, 0, Purpose::Rightness).unit() < share;
        let script = |text: String, call: Option<String>| {
            let pieces = pieces(&text);
            Some(Rc::new(Self { pieces, call, is_right }))
        };
        // What is wrong lacks its end.
        let json = |value: &Value| {
            let mut text = value.to_string();
            text.truncate(if is_right { text.len() } else { text.len() - 1 });
            text
        };
        if let Some(tool) = body.get("tools").and_then(|tools| tools.get(0))
            && body.get("tool_choice").is_none_or(|choice| choice != "none")
        {
            let function = tool.get("function").unwrap_or(tool);
            let name = function["name"].as_str()?.to_owned();
            let schema = function.get("parameters").cloned().unwrap_or_else(|| json!({}));
            return script(json(&instance(&schema, &schema, DEPTH_MAX)), Some(name));
        }
        if let Some(format) = body.get("response_format") {
            let schema = format.pointer("/json_schema/schema").cloned();
            let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
            return script(json(&instance(&schema, &schema, DEPTH_MAX)), None);
        }
        let prompt = body.get("messages").or_else(|| body.get("prompt"))?.to_string();
        let result = last_sum(&prompt)?;
        let said = if is_right { result } else { result.wrapping_add(1) };
        script(format!("The answer is {said}."), None)
    }
}

/// A text in pieces: each word with the blank ahead of it, long ones cut.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for letter in text.chars() {
        match pieces.last_mut() {
            Some(last) if letter != ' ' && last.len() < PIECE_BYTES => last.push(letter),
            Some(_) | None => pieces.push(letter.into()),
        }
    }
    pieces
}

/// The result of the last `12 + 30`, `7 - 9` or `6 * 7` of a text.
fn last_sum(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number =
        |word: &str| word.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<i64>().ok();
    words.windows(3).rev().find_map(|words| {
        let (one, other) = (number(words[0])?, number(words[2])?);
        match words[1] {
            "+" => one.checked_add(other),
            "-" => one.checked_sub(other),
            "*" => one.checked_mul(other),
            _ => None,
        }
    })
}

/// A small document that keeps a schema.
fn instance(schema: &Value, root: &Value, depth_left: u32) -> Value {
    let Some(depth_left) = depth_left.checked_sub(1) else { return Value::Null };
    let below = |schema: &Value| instance(schema, root, depth_left);
    let target = |reference: &str| root.pointer(reference.strip_prefix('#')?);
    if let Some(target) = schema["$ref"].as_str().and_then(target) {
        return below(target);
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    let first = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema[*key].get(0));
    if let Some(schema) = first {
        return below(schema);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    let least = |name: &str| schema[name].as_u64().unwrap_or(0);
    match kind {
        Some("array") => {
            (0..least("minItems").clamp(1, 16)).map(|_| below(&schema["items"])).collect()
        }
        Some("string") => {
            "word".repeat(usize::try_from(least("minLength") / 4 + 1).unwrap_or(1)).into()
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("null") => Value::Null,
        _ => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Value::Object(fields.map(|(name, schema)| (name.clone(), below(schema))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(body: &Value, share: f64) -> Option<Rc<Script>> {
        Script::new(body.as_object().unwrap(), 7, share)
    }

    #[test]
    fn the_last_sum_of_a_chat_is_answered() {
        let chat =
            json!({"messages": [{"role": "user", "content": "Not 1 + 1, but what is 12 * 30?"}]});
        let said = |share| script(&chat, share).unwrap().pieces.concat();
        assert_eq!(said(1.0), "The answer is 360.");
        assert_eq!(said(0.0), "The answer is 361.");
        assert_eq!(script(&json!({"prompt": "Hello."}), 1.0), None);
    }

    #[test]
    fn a_schema_is_kept_or_broken() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"$ref": "#/$defs/b"}},
            "$defs": {"b": {"type": "array", "items": {"enum": ["x"]}}},
        });
        let body = json!({"response_format": {"json_schema": {"schema": schema}}, "messages": []});
        assert_eq!(script(&body, 1.0).unwrap().pieces.concat(), "{\"a\":3,\"b\":[\"x\"]}");
        let wrong = script(&body, 0.0).unwrap().pieces.concat();
        assert!(serde_json::from_str::<Value>(&wrong).is_err(), "{wrong}");
    }

    #[test]
    fn a_tool_is_called_unless_none_may_be() {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let tool = json!({"type": "function", "function": {"name": "f", "parameters": parameters}});
        let call = script(&json!({"tools": [tool], "messages": []}), 1.0).unwrap();
        assert_eq!(call.call.as_deref(), Some("f"));
        assert_eq!(call.pieces.concat(), "{\"city\":\"word\"}");
        assert_eq!(
            script(&json!({"tools": [tool], "tool_choice": "none", "messages": []}), 1.0),
            None
        );
    }
}
