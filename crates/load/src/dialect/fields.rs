//! What the bodies of all dialects have in common: a conversation, and fields beside the prompt.

use std::borrow::Cow;

use inferometer_model::{Message, Prompt};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::BodyRecipe;

/// The JSON of a body and behind it the fields that it carries besides: the content's own, then
/// those of all bodies that it does not have. A field that the body has already is never repeated.
pub(super) fn body(body: &impl Serialize, recipe: &BodyRecipe<'_>) -> Vec<u8> {
    body_with(body, recipe, |_| true)
}

/// The same with only the fields that `belongs` to the body itself; the others have a place
/// further in.
pub(super) fn body_with(
    body: &impl Serialize,
    recipe: &BodyRecipe<'_>,
    belongs: impl Fn(&str) -> bool,
) -> Vec<u8> {
    let mut json = serde_json::to_vec(body).unwrap_or_default();
    let own = &recipe.content.fields;
    if own.is_empty() && recipe.fields.is_empty() {
        return json;
    }
    let written = written_names(&json);
    let shared = recipe.fields.iter().filter(|(name, _)| !own.contains_key(*name));
    let fields = own.iter().chain(shared);
    for (name, value) in fields.filter(|(name, _)| belongs(name) && !written.contains(*name)) {
        if json.pop() != Some(b'}') {
            return json;
        }
        let comma: &[u8] = if json.ends_with(b"{") { b"" } else { b"," };
        json.extend_from_slice(comma);
        // Names and values came out of JSON, so they go into it.
        json.extend(serde_json::to_vec(name).unwrap_or_default());
        json.push(b':');
        json.extend(serde_json::to_vec(value).unwrap_or_default());
        json.push(b'}');
    }
    json
}

/// An object inside a body, with the fields that `belongs` in it.
pub(super) fn object_with(
    object: &impl Serialize,
    recipe: &BodyRecipe<'_>,
    belongs: impl Fn(&str) -> bool,
) -> Box<RawValue> {
    let json = String::from_utf8(body_with(object, recipe, belongs)).ok();
    json.and_then(|json| RawValue::from_string(json).ok()).unwrap_or_default()
}

fn written_names(json: &[u8]) -> std::collections::BTreeSet<String> {
    let object: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_slice(json).unwrap_or_default();
    object.into_keys().collect()
}

/// The conversation so far and the new turn. `pictures` go into the last message of the user.
pub(super) fn messages<'a>(recipe: &BodyRecipe<'a>, pictures: Vec<Value>) -> Vec<Cow<'a, Message>> {
    let history = recipe.history.iter().map(Cow::Borrowed);
    let new: Vec<Cow<'a, Message>> = match &recipe.content.prompt {
        Prompt::Text(text) => vec![Cow::Owned(Message::new("user", text.as_str()))],
        Prompt::Messages(messages) => messages.iter().map(Cow::Borrowed).collect(),
    };
    let mut messages: Vec<Cow<'a, Message>> = history.chain(new).collect();
    let last = messages.iter_mut().rfind(|message| message.role() == "user");
    if let Some(last) = last.filter(|_| !pictures.is_empty()) {
        let text = json!({"type": "text", "text": last.text()});
        let parts: Vec<Value> = std::iter::once(text).chain(pictures).collect();
        last.to_mut().0.insert("content".to_owned(), Value::Array(parts));
    }
    messages
}

/// The prompt as one text, for APIs that know no messages.
pub(super) fn prompt_text<'a>(recipe: &BodyRecipe<'a>) -> Cow<'a, str> {
    if recipe.history.is_empty()
        && let Prompt::Text(text) = &recipe.content.prompt
    {
        return Cow::Borrowed(text);
    }
    let messages = messages(recipe, Vec::new());
    let texts: Vec<String> = messages.iter().map(|message| message.text()).collect();
    Cow::Owned(texts.join("\n"))
}

/// The texts of a prompt, each for itself: what APIs take that answer several at once.
pub(super) fn texts(recipe: &BodyRecipe<'_>) -> Vec<String> {
    messages(recipe, Vec::new()).iter().map(|message| message.text()).collect()
}

/// What kind a picture in a `data:` URL is, and its Base64; `None` for a picture elsewhere.
pub(super) fn embedded_picture(url: &str) -> Option<(&str, &str)> {
    let (kind, base64) = url.strip_prefix("data:")?.split_once(',')?;
    Some((kind.strip_suffix(";base64")?, base64))
}

/// Whether a message tells the model how to behave, rather than being part of the talk.
pub(super) fn is_instruction(message: &Message) -> bool {
    matches!(message.role(), "system" | "developer")
}
