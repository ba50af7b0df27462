//! The turns of a chat, as three APIs write them.

use serde_json::Value;

use super::super::fields::{Fields, wrong};
use super::super::problem::Problem;
use crate::serve::vocabulary::{Role, Turn};

/// `messages`, as OpenAI's chat has them.
pub(in crate::serve::api) fn chat_turns(fields: &Fields<'_>) -> Result<Vec<Turn>, Problem> {
    fields.required("messages")?;
    let place = fields.place("messages");
    let messages = fields.list("messages")?.map_or([].as_slice(), Vec::as_slice);
    messages.iter().enumerate().map(|(at, item)| turn(item, &format!("{place}.{at}"))).collect()
}

/// `system` and `messages`, as Anthropic has them.
pub(super) fn message_turns(fields: &Fields<'_>) -> Result<Vec<Turn>, Problem> {
    let mut turns = Vec::new();
    if let Some(system) = fields.value("system") {
        let text = content(system, &fields.place("system"))?;
        turns.push(Turn { role: Role::System, text });
    }
    turns.extend(chat_turns(fields)?);
    Ok(turns)
}

/// `instructions` and `input`, as OpenAI's responses have them.
pub(super) fn response_turns(fields: &Fields<'_>) -> Result<Vec<Turn>, Problem> {
    let mut turns = Vec::new();
    if let Some(instructions) = fields.text("instructions")? {
        turns.push(Turn { role: Role::System, text: instructions.to_owned() });
    }
    let input = fields.required("input")?;
    if let Value::String(text) = input {
        turns.push(Turn { role: Role::User, text: text.clone() });
        return Ok(turns);
    }
    let Value::Array(items) = input else {
        return Err(wrong("input", "string_type", "a valid string or list"));
    };
    for (at, item) in items.iter().enumerate() {
        turns.extend(input_item(item, &format!("input.{at}"))?);
    }
    Ok(turns)
}

/// Items without words of their own, such as reasoning, are no turns.
fn input_item(item: &Value, place: &str) -> Result<Option<Turn>, Problem> {
    let fields = Fields::at(item, place)?;
    let (role, name) = match fields.text("type")? {
        None | Some("message") => return turn(item, place).map(Some),
        Some("function_call") => (Role::Assistant, "arguments"),
        Some("function_call_output") => (Role::Tool, "output"),
        Some(_) => return Ok(None),
    };
    let text = fields.value(name).map(|value| content(value, &fields.place(name))).transpose()?;
    Ok(Some(Turn { role, text: text.unwrap_or_default() }))
}

fn turn(item: &Value, place: &str) -> Result<Turn, Problem> {
    let fields = Fields::at(item, place)?;
    fields.required("role")?;
    let role = Role::named(fields.text("role")?.unwrap_or_default());
    let text = match fields.value("content") {
        Some(value) => content(value, &fields.place("content"))?,
        None => String::new(),
    };
    Ok(Turn { role, text })
}

/// The text of a string or of a list of parts. Parts without text (pictures) have no tokens here;
/// the results of tools have their text one storey deeper.
fn content(value: &Value, place: &str) -> Result<String, Problem> {
    if let Value::String(text) = value {
        return Ok(text.clone());
    }
    let Value::Array(parts) = value else {
        return Err(wrong(place, "string_type", "a valid string or list"));
    };
    let mut texts = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let fields = Fields::at(part, &format!("{place}.{at}"))?;
        match (fields.text("text")?, fields.value("content")) {
            (Some(text), _) => texts.push(text.to_owned()),
            (None, Some(nested)) => texts.push(content(nested, &fields.place("content"))?),
            (None, None) => {}
        }
    }
    Ok(texts.join("\n"))
}
