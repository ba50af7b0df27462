//! OpenAI chat and completions, as vLLM, SGLang, llama.cpp, transformers and others speak them.

use std::borrow::Cow;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::UsageAsk;
use inferometer_model::{Message, Prompt};
use serde::Serialize;

use super::chunk::Document;
use super::cursor::NotOrdinary;
use super::wire::document;
use super::{BodyRecipe, Saying, SayingError, fields, quick};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Messages<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Cow<'a, str>>,
    /// `max_completion_tokens` is newer, but several servers ignore it in silence.
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignore_eos: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens: Option<u32>,
}

/// A chat: mostly one message of the user's, which is written without being taken apart.
#[derive(Serialize)]
#[serde(untagged)]
enum Messages<'a> {
    One([Plain<'a>; 1]),
    Many(Vec<Cow<'a, Message>>),
}

#[derive(Serialize)]
struct Plain<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    continuous_usage_stats: bool,
}

pub(super) fn body(recipe: &BodyRecipe<'_>) -> Vec<u8> {
    let stream_options = match recipe.usage {
        UsageAsk::Continuous => {
            Some(StreamOptions { include_usage: true, continuous_usage_stats: true })
        }
        UsageAsk::Final => {
            Some(StreamOptions { include_usage: true, continuous_usage_stats: false })
        }
        UsageAsk::None => None,
    };
    let (messages, prompt) = if recipe.api == Api::Chat {
        (Some(messages(recipe)), None)
    } else {
        (None, Some(fields::prompt_text(recipe)))
    };
    let body = Body {
        model: recipe.model,
        messages,
        prompt,
        max_tokens: recipe.output_tokens,
        stream: recipe.streaming,
        stream_options: stream_options.filter(|_| recipe.streaming),
        ignore_eos: recipe.pinned.ignore_eos,
        min_tokens: recipe.pinned.min_tokens.then_some(recipe.output_tokens),
    };
    fields::body(&body, recipe)
}

fn messages<'a>(recipe: &BodyRecipe<'a>) -> Messages<'a> {
    if let Prompt::Text(text) = &recipe.content.prompt
        && recipe.history.is_empty()
        && recipe.content.images.is_empty()
    {
        return Messages::One([Plain { role: "user", content: text }]);
    }
    Messages::Many(fields::messages(recipe))
}

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    quick::read(json).or_else(|NotOrdinary| read_any(json))
}

/// Reads any document, within bounds, and says what is wrong with one that it refuses.
pub(super) fn read_any(json: &[u8]) -> Result<Saying<'_>, SayingError> {
    let Document { mut saying, error } = document(json)?;
    saying.error = error.map(|error| error_text(&error));
    Ok(saying)
}

/// The words of an error body: `{"error": {...}}`, `{"error": "text"}`, `{"detail": ...}`, or text.
pub fn error_body_text(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else {
        return String::from_utf8_lossy(body).trim().to_owned();
    };
    let error = ["error", "detail", "message"].iter().find_map(|key| value.get(key));
    error_text(error.unwrap_or(&value))
}

pub(super) fn error_text(error: &serde_json::Value) -> String {
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use inferometer_model::Content;
    use inferometer_model::observations::PinnedOutput;
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
        String::from_utf8(body(recipe)).unwrap()
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
        let pinned = PinnedOutput { ignore_eos: true, min_tokens: true };
        let recipe = BodyRecipe {
            content: &content,
            history: &history,
            fields: shared.as_object().unwrap(),
            pinned,
            ..recipe(Api::Chat, UsageAsk::None)
        };
        let body: Value = serde_json::from_slice(&body(&recipe)).unwrap();
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
        let saying =
            read(br#"{"model":"m","choices":[{"index":1,"delta":{"content":"ab"}}]}"#).unwrap();
        let part = &saying.choices[0];
        assert_eq!(part.index, 1);
        assert!(matches!(part.content, Some(std::borrow::Cow::Borrowed(b"ab"))));
        assert!(!part.role && part.finish.is_none() && part.marked_tokens.is_none());
    }

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
            let saying = read(json.as_bytes()).unwrap();
            assert_eq!(saying.usage.unwrap().completion_tokens, meant, "{written}");
        }
    }

    #[test]
    fn duplicate_keys_and_numbers_beyond_range_are_refused() {
        assert!(read(br#"{"choices":[],"choices":[]}"#).is_err());
        assert!(read(br#"{"usage":{"completion_tokens":NaN}}"#).is_err());
        assert!(read(br#"{"usage":{"completion_tokens":1e400}}"#).is_err());
    }

    #[test]
    fn lone_surrogates_are_text() {
        let saying = read(br#"{"choices":[{"delta":{"content":"a\ud800b"}}]}"#).unwrap();
        let content = saying.choices[0].content.as_deref().unwrap();
        assert!(content.starts_with(b"a") && content.ends_with(b"b"));
    }

    #[test]
    fn reasoning_and_tool_calls_are_output_of_their_own() {
        let saying = read(
            br#"{"choices":[{"delta":{"reasoning_content":"hm","tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}"#,
        )
        .unwrap();
        assert_eq!(saying.choices[0].reasoning.as_deref(), Some(&b"hm"[..]));
        assert_eq!(saying.choices[0].tool_call_bytes, Some(3));
    }

    #[test]
    fn output_in_another_form_is_output_all_the_same() {
        let part = |choice: &str| {
            let json = format!(r#"{{"choices":[{{"delta":{choice}}}]}}"#);
            let saying = read(json.as_bytes()).unwrap();
            let part = &saying.choices[0];
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
