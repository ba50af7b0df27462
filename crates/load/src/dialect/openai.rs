//! OpenAI chat and completions, as vLLM, SGLang, llama.cpp, transformers and others serve them.
//!
//! The full reader here decides what is accepted and reports why a document is refused; ordinary
//! documents are read by `quick.rs` in half the time. Known keys must not come twice; unknown
//! keys are passed over.

use std::fmt;

use inferometer_model::Prompt;
use inferometer_model::endpoint::Api;
use inferometer_model::observations::UsageAsk;
use inferometer_model::record::Usage;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json};

use super::body::{self, Field};
use super::json::{CachedTokens, Loose, Parts, Text, WireToolCall, document};
use super::quick::{self, NotOrdinary};
use super::{BodyRecipe, ChoiceDelta, Chunk, ChunkError, Dialect};

pub(super) static DIALECTS: &[Dialect] = &[
    Dialect {
        add_images: |message, images| {
            body::add_parts(message, images, media_part);
        },
        has_alike_events: true,
        ..Dialect::new(Api::Chat, chat_body, read)
    },
    Dialect { has_alike_events: true, ..Dialect::new(Api::Completions, completions_body, read) },
];

fn chat_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let messages = match &recipe.content.prompt {
        // Mostly one message of the user's, which is written without being taken apart.
        Prompt::Text(text) if recipe.history.is_empty() && recipe.content.images.is_empty() => {
            let message = vec![("role", Field::text("user")), ("content", Field::text(text))];
            Field::List(vec![Field::Object(message)])
        }
        Prompt::Text(_) | Prompt::Messages(_) => Field::Messages(body::messages(recipe)),
    };
    openai_body(recipe, ("messages", messages))
}

fn completions_body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    openai_body(recipe, ("prompt", body::prompt_text(recipe)))
}

fn openai_body<'a>(recipe: &BodyRecipe<'a>, prompt: (&'static str, Field<'a>)) -> Vec<u8> {
    let stream_options = if recipe.streaming && recipe.usage != UsageAsk::None {
        let is_continuous = recipe.usage == UsageAsk::Continuous;
        Field::Object(vec![
            ("include_usage", Field::Flag(true)),
            ("continuous_usage_stats", Field::only_if(is_continuous)),
        ])
    } else {
        Field::Absent
    };
    let min_tokens = recipe.pinned.min_tokens.then_some(recipe.output_tokens);
    let members = [
        ("model", Field::text(recipe.model)),
        prompt,
        // `max_completion_tokens` is newer, but several servers ignore it in silence.
        ("max_tokens", Field::Count(recipe.output_tokens)),
        ("stream", Field::Flag(recipe.streaming)),
        ("stream_options", stream_options),
        ("ignore_eos", Field::only_if(recipe.pinned.ignore_eos)),
        ("min_tokens", Field::optional_count(min_tokens)),
    ];
    body::write(recipe, members)
}

/// A recording, or a picture.
fn media_part(url: &str) -> Value {
    match body::embedded(url) {
        Some((kind, data)) if kind.starts_with("audio/") => {
            let format = kind.trim_start_matches("audio/").replace("mpeg", "mp3");
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        _ => json!({"type": "image_url", "image_url": {"url": url}}),
    }
}

fn read(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    quick::read(json).or_else(|NotOrdinary| read_any(json))
}

/// Reads any document within bounds, and reports what is wrong with one that it refuses.
pub(super) fn read_any(json: &[u8]) -> Result<Chunk<'_>, ChunkError> {
    let document: Document<'_> = document(json)?;
    let mut error = document.error;
    let mut choices = Vec::new();
    for choice in document.choices.into_iter().flatten() {
        choices.push(choice.delta);
        error = error.or(choice.error);
    }
    Ok(Chunk {
        choices,
        usage: document.usage.map(Usage::from),
        model: document.model.map(Text::into_name),
        error: error.as_ref().map(error_text),
        ends: false,
    })
}

/// The text of an error body: `{"error": {...}}`, `{"error": "text"}`, `{"detail": ...}`, or text.
pub fn error_body_text(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return String::from_utf8_lossy(body).trim().to_owned();
    };
    let error = ["error", "detail", "message"].iter().find_map(|key| value.get(key));
    error_text(error.unwrap_or(&value))
}

pub(super) fn error_text(error: &Value) -> String {
    if let Some(text) = error.as_str() {
        return text.to_owned();
    }
    if let Some(text) = ["message", "msg", "detail"].iter().find_map(|key| error.get(key)?.as_str())
    {
        return text.to_owned();
    }
    match error.as_array() {
        Some(parts) => parts.iter().map(error_text).collect::<Vec<_>>().join("; "),
        None => error.to_string(),
    }
}

/// A stream's event or a whole answer.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Document<'a> {
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<WireUsage>,
    model: Option<Text<'a>>,
    error: Option<Value>,
}

/// A set of the keys that an object had so far.
#[derive(Default)]
struct Keys(u32);

impl Keys {
    /// Notes a key; the second time is an error.
    fn note<E: Error>(&mut self, place: u32, name: &'static str) -> Result<(), E> {
        let bit = 1 << place;
        if self.0 & bit != 0 {
            return Err(E::duplicate_field(name));
        }
        self.0 |= bit;
        Ok(())
    }
}

struct Choice<'a> {
    delta: ChoiceDelta<'a>,
    error: Option<Value>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ChoiceVisitor)
    }
}

struct ChoiceVisitor;

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = Choice<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a choice")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Choice<'de>, A::Error> {
        let mut choice = Choice { delta: ChoiceDelta::default(), error: None };
        let mut keys = Keys::default();
        let mut logprobs = None;
        while let Some(key) = members.next_key::<Text<'de>>()? {
            match key.bytes() {
                b"index" => {
                    keys.note(0, "index")?;
                    let index = members.next_value::<Loose>()?.number();
                    choice.delta.index = index.and_then(|n| u16::try_from(n).ok()).unwrap_or(0);
                }
                b"delta" | b"message" => {
                    keys.note(1, "delta")?;
                    if let Some(ChoiceMessage(message)) = members.next_value()? {
                        let ChoiceDelta { index, finish, marked_tokens, .. } = choice.delta;
                        choice.delta = ChoiceDelta { index, finish, marked_tokens, ..message };
                    }
                }
                b"text" => {
                    keys.note(2, "text")?;
                    choice.delta.content = members.next_value::<Option<Parts<'de>>>()?.map(|p| p.0);
                }
                b"finish_reason" => {
                    keys.note(3, "finish_reason")?;
                    let finish = members.next_value::<Option<Text<'de>>>()?;
                    choice.delta.finish = finish.map(Text::into_name);
                }
                b"logprobs" => {
                    keys.note(4, "logprobs")?;
                    logprobs = members.next_value::<Option<WireLogprobs>>()?;
                }
                b"token_ids" => {
                    keys.note(5, "token_ids")?;
                    let ids = members.next_value::<Loose>()?.list_length();
                    choice.delta.marked_tokens = ids.filter(|length| 0 < *length);
                }
                b"error" => {
                    keys.note(6, "error")?;
                    choice.error = members.next_value::<Option<Value>>()?;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        // Token ids count better than logprobs, whichever stood first.
        let counted = logprobs.and_then(|logprobs| logprobs.tokens());
        choice.delta.marked_tokens = choice.delta.marked_tokens.or(counted);
        Ok(choice)
    }
}

/// A delta, or a whole message: role, content, reasoning and tool calls.
struct ChoiceMessage<'a>(ChoiceDelta<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for ChoiceMessage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ChoiceMessageVisitor)
    }
}

struct ChoiceMessageVisitor;

impl<'de> Visitor<'de> for ChoiceMessageVisitor {
    type Value = ChoiceMessage<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message, or a part of one")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<ChoiceMessage<'de>, A::Error> {
        let mut message = ChoiceDelta::default();
        let mut keys = Keys::default();
        while let Some(key) = members.next_key::<Text<'de>>()? {
            match key.bytes() {
                b"role" => {
                    keys.note(0, "role")?;
                    message.role = members.next_value::<Option<IgnoredAny>>()?.is_some();
                }
                b"content" => {
                    keys.note(1, "content")?;
                    message.content = members.next_value::<Option<Parts<'de>>>()?.map(|p| p.0);
                }
                // Servers have two names for it, and some send both.
                b"reasoning_content" | b"reasoning" => {
                    let reasoning = members.next_value::<Option<Parts<'de>>>()?.map(|p| p.0);
                    message.reasoning = message.reasoning.or(reasoning);
                }
                b"tool_calls" => {
                    keys.note(2, "tool_calls")?;
                    let calls = members.next_value::<Option<Vec<WireToolCall>>>()?;
                    message.tool_call_bytes = calls
                        .filter(|calls| !calls.is_empty())
                        .map(|calls| calls.iter().map(WireToolCall::bytes).sum());
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(ChoiceMessage(message))
    }
}

/// Chat has `content`, completions have `tokens`: a list with one entry per token.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireLogprobs {
    content: Loose,
    tokens: Loose,
}

impl WireLogprobs {
    fn tokens(&self) -> Option<u32> {
        self.content.list_length().or_else(|| self.tokens.list_length())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Loose,
    completion_tokens: Loose,
    prompt_tokens_details: Option<CachedTokens>,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens.number(),
            completion_tokens: usage.completion_tokens.number(),
            cached_tokens: usage
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens.number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use inferometer_model::observations::PinnedOutput;
    use inferometer_model::{Content, Message};
    use serde_json::{Map, Value, json};

    use super::*;

    static HI: LazyLock<Content> = LazyLock::new(|| Content::text("hi"));
    static NO_FIELDS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

    fn recipe(api: Api, usage: UsageAsk) -> BodyRecipe<'static> {
        BodyRecipe {
            api,
            model: "m\"x",
            content: &HI,
            history: &[],
            output_tokens: 5,
            streaming: true,
            usage,
            fields: &NO_FIELDS,
            pinned: PinnedOutput::default(),
        }
    }

    fn body_text(recipe: &BodyRecipe<'_>) -> String {
        String::from_utf8(super::super::body(recipe)).unwrap()
    }

    #[test]
    fn bodies_hold_only_what_was_asked() {
        assert_eq!(
            body_text(&recipe(Api::Chat, UsageAsk::Final)),
            r#"{"model":"m\"x","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}"#
        );
        assert_eq!(
            body_text(&recipe(Api::Completions, UsageAsk::Continuous)),
            r#"{"model":"m\"x","prompt":"hi","max_tokens":5,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#
        );
        let whole = BodyRecipe { streaming: false, ..recipe(Api::Completions, UsageAsk::Final) };
        assert_eq!(
            body_text(&whole),
            r#"{"model":"m\"x","prompt":"hi","max_tokens":5,"stream":false}"#
        );
    }

    #[test]
    fn a_conversation_and_fields_of_its_own_go_into_the_body() {
        let mut content = Content::text("and now?");
        content.images.push("data:image/png;base64,AA==".to_owned());
        content.fields.insert("temperature".to_owned(), json!(0.5));
        let shared = json!({"temperature": 1, "top_p": 0.9, "stream": false});
        let history = [Message::new("user", "hi"), Message::new("assistant", "ho")];
        let history = [&history[0], &history[1]];
        let pinned = PinnedOutput { ignore_eos: true, min_tokens: true };
        let recipe = BodyRecipe {
            content: &content,
            history: &history,
            fields: shared.as_object().unwrap(),
            pinned,
            ..recipe(Api::Chat, UsageAsk::None)
        };
        let body: Value = serde_json::from_slice(&super::super::body(&recipe)).unwrap();
        assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "ho"}));
        assert_eq!(body["messages"][2]["content"][0], json!({"type": "text", "text": "and now?"}));
        assert_eq!(body["messages"][2]["content"][1]["type"], "image_url");
        assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.5), &json!(0.9)));
        assert_eq!((&body["ignore_eos"], &body["min_tokens"]), (&json!(true), &json!(5)));
        assert_eq!(body["stream"], json!(true), "the measurement's own fields win");
        let text = BodyRecipe { api: Api::Completions, ..recipe };
        assert!(
            body_text(&text).contains(r#""prompt":"hi\nho\nand now?""#),
            "{}",
            body_text(&text)
        );
    }

    #[test]
    fn a_delta_is_read_without_copying_its_text() {
        let chunk =
            read(br#"{"model":"m","choices":[{"index":1,"delta":{"content":"ab"}}]}"#).unwrap();
        let part = &chunk.choices[0];
        assert_eq!(part.index, 1);
        assert!(matches!(part.content, Some(std::borrow::Cow::Borrowed(b"ab"))));
        assert!(!part.role && part.finish.is_none() && part.marked_tokens.is_none());
    }

    /// Faults: 49.
    #[test]
    fn errors_are_recognised_in_every_place_servers_put_them() {
        for (json, words) in [
            (r#"{"error":"too long"}"#, "too long"),
            (r#"{"error":{"message":"too long","code":400}}"#, "too long"),
            (r#"{"choices":[{"index":0,"error":{"message":"too long"}}]}"#, "too long"),
            (r#"{"error":{"code":400}}"#, r#"{"code":400}"#),
        ] {
            assert_eq!(read(json.as_bytes()).unwrap().error.as_deref(), Some(words), "{json}");
        }
        assert_eq!(read(br#"{"error":null,"choices":[]}"#).unwrap().error, None);
    }

    /// Faults: 61.
    #[test]
    fn a_wrong_count_costs_the_count_and_not_the_answer() {
        for (written, meant) in [
            ("24", Some(24)),
            ("24.0", Some(24)),
            ("-1", None),
            ("\"24\"", None),
            ("null", None),
            ("2.5", None),
            ("[1]", None),
        ] {
            let json = format!(r#"{{"usage":{{"completion_tokens":{written}}}}}"#);
            let chunk = read(json.as_bytes()).unwrap();
            assert_eq!(chunk.usage.unwrap().completion_tokens, meant, "{written}");
        }
    }

    /// Faults: 55.
    #[test]
    fn duplicate_keys_and_numbers_beyond_range_are_refused() {
        assert!(read(br#"{"choices":[],"choices":[]}"#).is_err());
        assert!(read(br#"{"usage":{"completion_tokens":NaN}}"#).is_err());
        assert!(read(br#"{"usage":{"completion_tokens":1e400}}"#).is_err());
    }

    /// Faults: 56.
    #[test]
    fn lone_surrogates_are_text() {
        let chunk = read(br#"{"choices":[{"delta":{"content":"a\ud800b"}}]}"#).unwrap();
        let content = chunk.choices[0].content.as_deref().unwrap();
        assert!(content.starts_with(b"a") && content.ends_with(b"b"));
    }

    /// Faults: 60.
    #[test]
    fn reasoning_and_tool_calls_are_output_of_their_own() {
        let chunk = read(
            br#"{"choices":[{"delta":{"reasoning_content":"hm","tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}"#,
        )
        .unwrap();
        assert_eq!(chunk.choices[0].reasoning.as_deref(), Some(&b"hm"[..]));
        assert_eq!(chunk.choices[0].tool_call_bytes, Some(3));
    }

    #[test]
    fn output_in_another_form_is_output_all_the_same() {
        let part = |choice: &str| {
            let json = format!(r#"{{"choices":[{{"delta":{choice}}}]}}"#);
            let chunk = read(json.as_bytes()).unwrap();
            let part = &chunk.choices[0];
            (part.content.as_ref().map(|text| text.len()), part.tool_call_bytes)
        };
        assert_eq!(part(r#"{"content":[{"type":"text","text":"hi"}]}"#), (Some(2), None));
        assert_eq!(part(r#"{"content":[]}"#), (Some(0), None));
        assert_eq!(part(r#"{"content":null}"#), (None, None));
        let call = r#"{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}"#;
        assert_eq!(part(call), (None, Some(8)));
    }

    #[test]
    fn marks_count_tokens() {
        let marked = |choice: &str| {
            let json = format!(r#"{{"choices":[{choice}]}}"#);
            read(json.as_bytes()).unwrap().choices[0].marked_tokens
        };
        assert_eq!(marked(r#"{"token_ids":[1,2,3]}"#), Some(3));
        assert_eq!(marked(r#"{"token_ids":null}"#), None);
        assert_eq!(marked(r#"{"logprobs":{"content":[{"token":"a"}]}}"#), Some(1));
        assert_eq!(marked(r#"{"text":"x","logprobs":{"tokens":["a","b"]}}"#), Some(2));
        assert_eq!(marked(r#"{"logprobs":null}"#), None);
    }
}
