//! Pictures in the messages of a chat: each API has its own place and form for them.

use inferometer_model::Message;
use inferometer_model::endpoint::Api;
use serde_json::{Value, json};

/// The message with pictures, in the form in which it is sent. Where an API has no place for any
/// the message stays as it is; a spec that asks for them there is refused.
pub(super) fn add(api: Api, message: &mut Message, images: &[String]) {
    let part = match api {
        Api::Chat => chat_part,
        Api::Responses => responses_part,
        Api::Messages => messages_part,
        Api::OllamaChat | Api::OllamaGenerate => {
            let images: Vec<&str> = images.iter().map(|url| bare(url)).collect();
            message.0.insert(BESIDE.to_owned(), images.into());
            return;
        }
        Api::Completions
        | Api::Embeddings
        | Api::Rerank
        | Api::TgiGenerate
        | Api::SglangGenerate
        | Api::LlamaCompletion
        | Api::TritonGenerate => return,
    };
    let text = json!({"type": "text", "text": message.text()});
    let parts = std::iter::once(text).chain(images.iter().map(|url| part(url)));
    message.0.insert("content".to_owned(), parts.collect());
}

/// Ollama's pictures stand beside the text.
const BESIDE: &str = "images";

/// The pictures that stand beside a message's text.
pub(super) fn beside(message: &Message) -> impl Iterator<Item = &Value> {
    message.0.get(BESIDE).and_then(Value::as_array).into_iter().flatten()
}

fn chat_part(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

pub(super) const RESPONSES_KIND: &str = "input_image";

fn responses_part(url: &str) -> Value {
    json!({"type": RESPONSES_KIND, "image_url": url})
}

fn messages_part(url: &str) -> Value {
    let source = match embedded(url) {
        Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
        None => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

/// Base64 without the head of a `data:` URL.
fn bare(url: &str) -> &str {
    embedded(url).map_or(url, |(_kind, data)| data)
}

/// What kind a picture in a `data:` URL is, and its Base64; `None` for a picture elsewhere.
fn embedded(url: &str) -> Option<(&str, &str)> {
    let (kind, base64) = url.strip_prefix("data:")?.split_once(',')?;
    Some((kind.strip_suffix(";base64")?, base64))
}
