//! What the bodies of all dialects have in common: a conversation, and fields beside the prompt.

use std::borrow::Cow;

use inferometer_model::endpoint::Api;
use inferometer_model::{Content, Message, Prompt};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{BodyRecipe, pictures};

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
    let json = serde_json::to_vec(body).unwrap_or_default();
    let own = &recipe.content.fields;
    if own.is_empty() && recipe.fields.is_empty() {
        return json;
    }
    let shared = recipe.fields.iter().filter(|(name, _)| !own.contains_key(*name));
    append(json, own.iter().chain(shared).filter(|(name, _)| belongs(name)))
}

/// An object called `name` inside a body, with the fields that `belongs` in it: those that stand
/// bare among the fields, and those of an object of this name, which win as they are more explicit.
pub(super) fn object_with(
    object: &impl Serialize,
    recipe: &BodyRecipe<'_>,
    name: &str,
    belongs: impl Fn(&str) -> bool,
) -> Box<RawValue> {
    let mut inner: Map<String, Value> = Map::new();
    for layer in [recipe.fields, &recipe.content.fields] {
        let bare = layer.iter().filter(|(field, _)| *field != name && belongs(field));
        let members = layer.get(name).and_then(Value::as_object).into_iter().flatten();
        inner.extend(bare.chain(members).map(|(field, value)| (field.clone(), value.clone())));
    }
    let json = serde_json::to_vec(object).unwrap_or_default();
    let json = String::from_utf8(append(json, inner.iter())).ok();
    json.and_then(|json| RawValue::from_string(json).ok()).unwrap_or_default()
}

/// An object with further fields behind those that it has, of which none is repeated.
fn append<'a>(mut json: Vec<u8>, fields: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<u8> {
    let mut fields = fields.peekable();
    if fields.peek().is_none() {
        return json;
    }
    let written = written_names(&json);
    for (name, value) in fields.filter(|(name, _)| !written.contains(*name)) {
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

fn written_names(json: &[u8]) -> std::collections::BTreeSet<String> {
    let object: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_slice(json).unwrap_or_default();
    object.into_keys().collect()
}

/// The conversation so far and the new turn.
pub(super) fn messages<'a>(recipe: &BodyRecipe<'a>) -> Vec<Cow<'a, Message>> {
    let history = recipe.history.iter().map(Cow::Borrowed);
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

/// What a content says as messages, in the form in which this API sends them: its pictures are in
/// the last message of the user.
pub(super) fn turn(api: Api, content: &Content) -> Vec<Message> {
    let mut messages = match &content.prompt {
        Prompt::Text(text) => vec![Message::new("user", text.as_str())],
        Prompt::Messages(messages) => messages.clone(),
    };
    let last = messages.iter_mut().rfind(|message| message.role() == "user");
    if let Some(last) = last.filter(|_| !content.images.is_empty()) {
        pictures::add(api, last, &content.images);
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
    let messages = messages(recipe);
    let texts: Vec<String> = messages.iter().map(|message| message.text()).collect();
    Cow::Owned(texts.join("\n"))
}

/// The texts of a prompt, each for itself: what APIs take that answer several at once.
pub(super) fn texts(recipe: &BodyRecipe<'_>) -> Vec<String> {
    messages(recipe).iter().map(|message| message.text()).collect()
}

/// Whether a message tells the model how to behave, rather than being part of the talk.
pub(super) fn is_instruction(message: &Message) -> bool {
    matches!(message.role(), "system" | "developer")
}
