//! What the request bodies of all dialects have in common: how members are written, the
//! conversation, the fields besides the prompt, and images.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use inferometer_model::endpoint::Api;
use inferometer_model::{Content, Message, Prompt};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{BodyRecipe, Dialect};

/// A member's value. Texts are borrowed, because prompts can be long.
pub(super) enum Field<'a> {
    /// The member is left out.
    Absent,
    Text(Cow<'a, str>),
    Count(u32),
    Flag(bool),
    Json(Box<RawValue>),
    Messages(Vec<Cow<'a, Message>>),
    List(Vec<Field<'a>>),
    Values(Vec<Value>),
    Object(Vec<(&'static str, Field<'a>)>),
}

impl<'a> Field<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A flag that is left out unless it is set.
    pub(super) fn only_if(is_set: bool) -> Self {
        if is_set { Self::Flag(true) } else { Self::Absent }
    }

    pub(super) fn optional_count(count: Option<u32>) -> Self {
        count.map_or(Self::Absent, Self::Count)
    }
}

/// The JSON of an object.
fn object(members: Vec<(&'static str, Field<'_>)>) -> Vec<u8> {
    let mut json = Vec::new();
    write_field(&mut json, &Field::Object(members));
    json
}

fn write_field(json: &mut Vec<u8>, field: &Field<'_>) {
    match field {
        Field::Absent => json.extend_from_slice(b"null"),
        Field::Text(text) => write_text(json, text),
        Field::Count(count) => write_value(json, count),
        Field::Flag(flag) => write_value(json, flag),
        Field::Json(raw) => json.extend_from_slice(raw.get().as_bytes()),
        Field::Values(values) => write_value(json, values),
        Field::List(fields) => write_joined(json, *b"[]", fields, write_field),
        Field::Messages(messages) => write_joined(json, *b"[]", messages, |json, message| {
            write_joined(json, *b"{}", &message.0, |json, (name, value)| {
                write_text(json, name);
                json.push(b':');
                match value {
                    Value::String(text) => write_text(json, text),
                    value @ (Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_)) => write_value(json, value),
                }
            });
        }),
        Field::Object(members) => {
            let present = members.iter().filter(|(_, value)| !matches!(value, Field::Absent));
            write_joined(json, *b"{}", present, |json, (name, value)| {
                write_text(json, name);
                json.push(b':');
                write_field(json, value);
            });
        }
    }
}

/// Items between brackets, with commas.
fn write_joined<T>(
    json: &mut Vec<u8>,
    [open, close]: [u8; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    json.push(open);
    for (place, item) in items.into_iter().enumerate() {
        if 0 < place {
            json.push(b',');
        }
        write(json, item);
    }
    json.push(close);
}

/// A text that needs no escapes, as nearly every prompt, is copied and not walked through letter by
/// letter.
fn write_text(json: &mut Vec<u8>, text: &str) {
    // Without an early end the compiler looks at many bytes at once.
    let needs_escape = |byte| u8::from(matches!(byte, 0..b' ' | b'"' | b'\\'));
    if text.bytes().fold(0, |found, byte| found | needs_escape(byte)) != 0 {
        return write_value(json, text);
    }
    json.reserve(text.len() + 2);
    json.push(b'"');
    json.extend_from_slice(text.as_bytes());
    json.push(b'"');
}

fn write_value(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Cannot fail: memory takes everything, and numbers, texts and parsed values are all JSON.
    let _ = serde_json::to_writer(json, value);
}

/// The JSON of a body, followed by the additional fields: the content's own, then those of all
/// bodies that it does not have. A field that the body has already is never repeated.
pub(super) fn write<'a>(
    recipe: &BodyRecipe<'a>,
    members: impl Into<Vec<(&'static str, Field<'a>)>>,
) -> Vec<u8> {
    write_with(recipe, members, |_| true)
}

/// The JSON of a body with only the additional fields that `belongs` to the body itself; the
/// others are in an object further in.
pub(super) fn write_with<'a>(
    recipe: &BodyRecipe<'a>,
    members: impl Into<Vec<(&'static str, Field<'a>)>>,
    belongs: impl Fn(&str) -> bool,
) -> Vec<u8> {
    let json = object(members.into());
    let own = &recipe.content.fields;
    if own.is_empty() && recipe.fields.is_empty() {
        return json;
    }
    let shared = recipe.fields.iter().filter(|(name, _)| !own.contains_key(*name));
    append(json, own.iter().chain(shared).filter(|(name, _)| belongs(name)))
}

/// An object called `name` inside a body, with the additional fields that `belongs` in it: those at
/// the top level, and those of an object of this name, which win because they are more explicit.
pub(super) fn object_with<'a>(
    recipe: &BodyRecipe<'a>,
    name: &str,
    members: impl Into<Vec<(&'static str, Field<'a>)>>,
    belongs: impl Fn(&str) -> bool,
) -> Field<'a> {
    let mut inner: Map<String, Value> = Map::new();
    for layer in [recipe.fields, &recipe.content.fields] {
        let bare = layer.iter().filter(|(field, _)| *field != name && belongs(field));
        let members = layer.get(name).and_then(Value::as_object).into_iter().flatten();
        inner.extend(bare.chain(members).map(|(field, value)| (field.clone(), value.clone())));
    }
    let json = object(members.into());
    let json = String::from_utf8(append(json, inner.iter())).ok();
    Field::Json(json.and_then(|json| RawValue::from_string(json).ok()).unwrap_or_default())
}

/// Adds fields to an object that it does not have yet.
fn append<'a>(mut json: Vec<u8>, fields: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<u8> {
    let mut fields = fields.peekable();
    if fields.peek().is_none() {
        return json;
    }
    let object: BTreeMap<String, &RawValue> = serde_json::from_slice(&json).unwrap_or_default();
    let written: BTreeSet<String> = object.into_keys().collect();
    for (name, value) in fields.filter(|(name, _)| !written.contains(*name)) {
        if json.pop() != Some(b'}') {
            return json;
        }
        let comma: &[u8] = if json.ends_with(b"{") { b"" } else { b"," };
        json.extend_from_slice(comma);
        write_text(&mut json, name);
        json.push(b':');
        write_value(&mut json, value);
        json.push(b'}');
    }
    json
}

/// The conversation so far and the new turn.
pub(super) fn messages<'a>(recipe: &BodyRecipe<'a>) -> Vec<Cow<'a, Message>> {
    let history = recipe.history.iter().copied().map(Cow::Borrowed);
    match &recipe.content.prompt {
        Prompt::Messages(new) if recipe.content.images.is_empty() => {
            history.chain(new.iter().map(Cow::Borrowed)).collect()
        }
        Prompt::Text(_) | Prompt::Messages(_) => {
            let new = turn(recipe.api, recipe.content).into_iter();
            history.chain(new.map(Cow::Owned)).collect()
        }
    }
}

/// A content as messages, in the form in which the API sends them, with its images in the last
/// message of the user.
pub(super) fn turn(api: Api, content: &Content) -> Vec<Message> {
    let mut messages = match &content.prompt {
        Prompt::Text(text) => vec![Message::new("user", text.as_str())],
        Prompt::Messages(messages) => messages.clone(),
    };
    let last = messages.iter_mut().rfind(|message| message.role() == "user");
    if let Some(last) = last.filter(|_| !content.images.is_empty()) {
        (Dialect::for_api(api).add_images)(last, &content.images);
    }
    messages
}

/// The prompt as one text, for APIs without messages.
pub(super) fn prompt_text<'a>(recipe: &BodyRecipe<'a>) -> Field<'a> {
    if recipe.history.is_empty()
        && let Prompt::Text(text) = &recipe.content.prompt
    {
        return Field::text(text);
    }
    let messages = messages(recipe);
    let texts: Vec<String> = messages.iter().map(|message| message.text()).collect();
    Field::Text(Cow::Owned(texts.join("\n")))
}

/// The texts of a prompt one by one, for APIs that answer several at once.
pub(super) fn texts(recipe: &BodyRecipe<'_>) -> Vec<String> {
    messages(recipe).iter().map(|message| message.text()).collect()
}

/// For APIs that take no images; a spec that asks for them is refused.
pub(super) fn no_images(_message: &mut Message, _images: &[String]) {}

/// Puts the images behind the text, in a list of parts.
pub(super) fn add_parts(message: &mut Message, images: &[String], part: fn(&str) -> Value) {
    let text = json!({"type": "text", "text": message.text()});
    let parts = std::iter::once(text).chain(images.iter().map(|url| part(url)));
    message.0.insert("content".to_owned(), parts.collect());
}

/// Media type and Base64 of an image in a `data:` URL; `None` for other URLs.
pub(super) fn embedded(url: &str) -> Option<(&str, &str)> {
    let (kind, base64) = url.strip_prefix("data:")?.split_once(',')?;
    Some((kind.strip_suffix(";base64")?, base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_serde_json_writes_them() {
        let letters = (0..0x250).filter_map(char::from_u32);
        let long = letters.map(|letter| format!("a long enough text {letter} with more behind"));
        for text in long.chain(["", "\u{7f}", "😀", "\\", "\"", "\n"].map(str::to_owned)) {
            let mut json = Vec::new();
            write_text(&mut json, &text);
            assert_eq!(json, serde_json::to_vec(&text).unwrap(), "{text:?}");
        }
    }

    #[test]
    fn objects_leave_absent_members_out() {
        let members = vec![
            ("a", Field::Absent),
            ("b", Field::List(vec![Field::Count(1), Field::Absent])),
            ("c", Field::Messages(vec![Cow::Owned(Message::new("user", "x\ny"))])),
            ("d", Field::Object(vec![("e", Field::Flag(true)), ("f", Field::Absent)])),
            ("g", Field::Messages(Vec::new())),
        ];
        let written: Value = serde_json::from_slice(&object(members)).unwrap();
        let messages = json!([{"role": "user", "content": "x\ny"}]);
        let wanted = json!({"b": [1, null], "c": messages, "d": {"e": true}, "g": []});
        assert_eq!(written, wanted);
    }
}
