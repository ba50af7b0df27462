//! Bodies as clients send them, and as nobody should.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{GenerationRequest, Serving, detokenize, parse, parse_embeddings, tokenize};
use crate::serve::vocabulary::Vocabulary;
use crate::truth::Api;

fn serving() -> Serving<'static> {
    Serving { model: "tiny", max_model_len: 100, vocabulary: Vocabulary::standard() }
}

fn asked(api: Api, body: &Value) -> GenerationRequest {
    parse(api, body.to_string().as_bytes(), &serving()).unwrap()
}

/// The status line and the body of the refusal.
fn refused(api: Api, body: &str) -> (String, Value) {
    let reply = parse(api, body.as_bytes(), &serving()).unwrap_err().reply();
    let text = str::from_utf8(&reply).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap().to_owned();
    (status, serde_json::from_str(body).unwrap())
}

fn message(api: Api, body: &Value) -> String {
    let (status, error) = refused(api, &body.to_string());
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    error["error"]["message"].as_str().unwrap().to_owned()
}

const CHAT: Api = Api::Chat;
const COMPLETIONS: Api = Api::Completions;

#[test]
fn a_chat_is_read_with_all_that_it_asks_for() {
    let ask = asked(
        CHAT,
        &json!({
            "model": "tiny", "messages": [{"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "why not"},
                    {"type": "image_url", "image_url": {"url": "data:"}}]}],
            "stream": true, "stream_options": {"include_usage": true,
                "continuous_usage_stats": true},
            "max_tokens": 7, "max_completion_tokens": 9, "min_tokens": 2, "ignore_eos": true,
            "n": 3, "stop": "end", "seed": -1, "priority": 5, "logprobs": true,
            "top_logprobs": 4, "return_token_ids": true, "temperature": 0, "unknown": [1],
        }),
    );
    assert_eq!(ask.prompts.iter().map(Vec::len).collect::<Vec<_>>(), [2 + 2 + 2 * 2 + 1]);
    assert_eq!((ask.max_tokens, ask.min_tokens, ask.n, ask.choices()), (Some(9), 2, 3, 3));
    assert!(ask.streamed && ask.include_usage && ask.continuous_usage && ask.token_ids);
    assert!(ask.ignore_eos);
    assert_eq!((ask.stop, ask.seed, ask.priority), (vec!["end".to_owned()], Some(u64::MAX), 5));
    assert_eq!(ask.logprobs, Some(4));
}

#[test]
fn what_is_left_open_has_the_values_of_vllm() {
    let chat = asked(CHAT, &json!({"messages": [{"role": "user", "content": "a"}], "n": null}));
    assert_eq!((chat.max_tokens, chat.n, chat.streamed), (None, 1, false));
    assert_eq!(chat.most_tokens(&chat.prompts[0], 100), 96);
    assert_eq!(asked(COMPLETIONS, &json!({"prompt": "a"})).max_tokens, Some(16));
    let filled = asked(COMPLETIONS, &json!({"prompt": "a", "max_tokens": null}));
    assert_eq!(filled.max_tokens, None);
}

#[test]
fn a_prompt_may_be_text_or_ids_and_one_or_several() {
    let prompts = |prompt: Value| asked(COMPLETIONS, &json!({ "prompt": prompt })).prompts;
    let ids = Vocabulary::standard().encode("bana mika");
    assert_eq!(prompts(json!("bana mika")), vec![ids.clone()]);
    assert_eq!(prompts(json!(ids)), vec![ids.clone()]);
    assert_eq!(prompts(json!(["bana mika", "bana"])), [ids.clone(), vec![ids[0]]]);
    assert_eq!(prompts(json!([ids, [20.0]])), [ids, vec![20]]);
    let two = asked(COMPLETIONS, &json!({"prompt": [[20], [21, 22]], "n": 2, "echo": true}));
    assert_eq!((two.choices(), two.prompt_of(1), two.prompt_of(2)), (4, &[20][..], &[21, 22][..]));
    assert_eq!(two.echo.unwrap().len(), 2);
}

#[test]
fn a_long_prompt_has_fewer_answers() {
    let long = Serving { max_model_len: 1 << 20, ..serving() };
    let ask = |tokens: usize, n: u32| {
        let prompt = vec!["a"; tokens].join(" ");
        let body = json!({"prompt": prompt, "n": n, "max_tokens": 1}).to_string();
        parse(COMPLETIONS, body.as_bytes(), &long)
    };
    assert_eq!(ask(256, 16_384).unwrap().choices(), 16_384);
    let refused = ask(257, 16_384).unwrap_err().reply();
    let text = String::from_utf8_lossy(&refused);
    assert!(text.contains("n must be at most 16320, got 16384."), "{text}");
    assert_eq!(ask(500_000, 1).unwrap().choices(), 1);
}

#[test]
fn only_with_an_echo_an_answer_may_be_empty() {
    let ask = asked(COMPLETIONS, &json!({"prompt": "a", "max_tokens": 0, "echo": true}));
    assert_eq!((ask.max_tokens, ask.echo_alone), (Some(1), true));
    let said = message(COMPLETIONS, &json!({"prompt": "a", "max_tokens": 0}));
    assert!(said.contains("max_tokens must be at least 1, got 0."), "{said}");
}

#[test]
fn responses_and_messages_are_chats_in_other_words() {
    let chat = asked(
        CHAT,
        &json!({"messages": [{"role": "system", "content": "be"},
            {"role": "user", "content": "why"}, {"role": "tool", "content": "so"}]}),
    );
    let response = asked(
        Api::Responses,
        &json!({"instructions": "be", "max_output_tokens": 5, "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "why"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call_output", "call_id": "x", "output": "so"}]}),
    );
    assert_eq!((&response.prompts, response.max_tokens), (&chat.prompts, Some(5)));
    let anthropic = asked(
        Api::Messages,
        &json!({"system": [{"type": "text", "text": "be"}], "max_tokens": 5,
            "stop_sequences": ["x"], "messages": [{"role": "user", "content": "why"},
            {"role": "tool", "content": [{"type": "tool_result",
                "content": [{"type": "text", "text": "so"}]}]}]}),
    );
    assert_eq!((&anthropic.prompts, &anthropic.stop), (&chat.prompts, &vec!["x".to_owned()]));
    let short = asked(Api::Responses, &json!({"input": "why not"}));
    assert_eq!(short.prompt_tokens(), 5);
}

#[test]
fn errors_are_worded_as_vllm_words_them() {
    let (status, error) = refused(CHAT, r#"{"model":"tiny","max_tokens":5,"stream":true}"#);
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    assert_eq!(
        error,
        json!({"error": {"message": "1 validation error:\n  {'type': 'missing', 'loc': \
            'body.messages', 'msg': 'Field required', 'input': '<dict of 3 items>'}",
            "type": "Bad Request", "param": "body.messages", "code": 400}})
    );
    let (status, error) = refused(CHAT, r#"{"model":"no-such-model","messages":[]}"#);
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    assert_eq!(
        error,
        json!({"error": {"message": "The model `no-such-model` does not exist. Valid aliases: \
            tiny.", "type": "NotFoundError", "param": "model", "code": 404}})
    );
    let (_, error) = refused(CHAT, r#"{"messages":[],"max_tokens":-5}"#);
    assert_eq!(
        error,
        json!({"error": {"message": "max_tokens must be at least 1, got -5. \
            (parameter=max_tokens, value=-5)", "type": "BadRequestError", "param": "max_tokens",
            "code": 400}})
    );
}

#[test]
fn a_body_that_is_no_json_is_told_where() {
    let (status, error) = refused(CHAT, "{\"model\": 1,\n}");
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
    assert_eq!(
        (&error["error"]["type"], &error["error"]["code"]),
        (&json!("Bad Request"), &json!(400))
    );
    assert_eq!(error["error"]["param"], "body.13");
    let said = error["error"]["message"].as_str().unwrap();
    assert!(said.starts_with("1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.13', "));
    assert!(said.contains("'trailing comma'"), "{said}");
}

#[test]
fn messages_have_the_errors_of_anthropic() {
    let body = r#"{"messages":[{"role":"user","content":"a"}],"max_tokens":0}"#;
    let (_, error) = refused(Api::Messages, body);
    let said = "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)";
    let expected = json!({"type": "error", "error": {"type": "BadRequestError", "message": said}});
    assert_eq!(error, expected);
    let body = json!({"messages": [{"role": "user", "content": "a"}]});
    assert!(message(Api::Messages, &body).contains("'loc': 'body.max_tokens'"));
}

#[test]
fn a_request_that_does_not_fit_is_refused_and_one_that_just_fits_is_not() {
    let prompt = vec!["a"; 60].join(" ");
    let said = message(COMPLETIONS, &json!({"prompt": prompt, "max_tokens": 41}));
    assert_eq!(
        said,
        "This model's maximum context length is 100 tokens. However, you requested 41 output \
         tokens and your prompt contains 60 input tokens, for a total of 101 tokens. Please reduce \
         the length of the input prompt or the number of requested output tokens. \
         (parameter=input_tokens, value=60)"
    );
    asked(COMPLETIONS, &json!({"prompt": prompt, "max_tokens": 40}));
    let full = vec!["a"; 97].join(" ");
    let chat = json!({"messages": [{"role": "user", "content": full}]});
    assert!(message(CHAT, &chat).contains("your prompt contains 100 input tokens. Please"));
    assert!(message(CHAT, &json!({"messages": [], "max_tokens": 101})).contains("max_tokens=101"));
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let cases = [
        (json!({"temperature": -0.1}), "temperature must be non-negative, got -0.1."),
        (json!({"top_p": 0}), "top_p must be in (0, 1], got 0."),
        (json!({"n": 0}), "n must be at least 1, got 0."),
        (json!({"n": 1e300}), "n must be at most 16384, got 9223372036854775807."),
        (json!({"min_tokens": 9, "max_tokens": 8}), "less than or equal to max_tokens=8, got 9."),
        (json!({"min_tokens": -1}), "min_tokens must be greater than or equal to 0, got -1."),
        (json!({"logprobs": 21}), "logprobs must be between 0 and 20, got 21."),
        (json!({"stop": vec!["a"; 65]}), "stop must be at most 64 strings, got 65."),
        (json!({"stop": "a".repeat(1025)}), "of strings of at most 1024 bytes, got 1025."),
        (json!({"request_id": "r".repeat(257)}), "request_id must be at most 256 bytes long"),
        (json!({"stop": ["a", ""]}), "stop cannot contain an empty string."),
        (json!({"stream_options": {}}), "Stream options can only be defined when `stream=True`."),
        (json!({"stop_token_ids": [-1]}), "Token id -1 is out of vocabulary"),
        (json!({"prompt": [1, 99_999]}), "Token id 99999 is out of vocabulary"),
        (json!({"prompt": " "}), "The decoder prompt cannot be empty"),
        (json!({"stream": "yes"}), "'loc': 'body.stream', 'msg': 'Input should be a valid boolean"),
        (json!({"max_tokens": 1.5}), "'loc': 'body.max_tokens'"),
    ];
    for (changes, expected) in cases {
        let mut body = json!({"prompt": "a"});
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let said = message(COMPLETIONS, &body);
        assert!(said.contains(expected), "{said}");
    }
    let chat = json!({"messages": [], "top_logprobs": 2});
    assert!(message(CHAT, &chat).contains("`logprobs` must be set to true"));
    let user = json!({"input": "a", "user": "u".repeat(257)});
    assert!(message(Api::Responses, &user).contains("user must be at most 256 bytes long"));
    let metadata = json!({"input": "a", "metadata": {"m": "m".repeat(16 << 10)}});
    assert!(message(Api::Responses, &metadata).contains("metadata must be at most 16384"));
    let (status, error) = refused(Api::Responses, r#"{"input":"a","previous_response_id":"r"}"#);
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    assert_eq!(error["error"]["message"], "Response with id 'r' not found.");
}

fn read_in_every_way(body: &[u8]) {
    let serving = serving();
    for api in [CHAT, COMPLETIONS, Api::Responses, Api::Messages] {
        if let Err(error) = parse(api, body, &serving) {
            assert!(error.reply().starts_with(b"HTTP/1.1 4"));
        }
    }
    let _ = parse_embeddings(body, &serving).map_err(|error| error.reply());
    let _ = tokenize(body, &serving).map_err(|error| error.reply());
    let _ = detokenize(body, &serving).map_err(|error| error.reply());
}

#[test]
fn hostile_bodies_are_refused_and_nothing_worse() {
    let deep = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let nested = "{\"content\":[".repeat(60) + &"]}".repeat(60);
    let bodies = [
        String::new(),
        "null".to_owned(),
        "\n\n\n".to_owned(),
        "\"\\ud800\"".to_owned(),
        deep(100_000),
        format!("{{\"prompt\":{}}}", deep(100)),
        format!("{{\"prompt\":\"a\",\"n\":{}}}", "9".repeat(400)),
        "{\"prompt\":\"a\",\"max_tokens\":1e400}".to_owned(),
        "{\"prompt\":[18446744073709551615]}".to_owned(),
        format!("{{\"messages\":[{{\"role\":\"user\",\"content\":[{nested}]}}]}}"),
    ];
    for body in &bodies {
        read_in_every_way(body.as_bytes());
    }
}

/// Any JSON, under the names that are read.
fn any_body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z ]{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        let name = prop::sample::select(vec!["role", "content", "text", "type", "include_usage"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|map| map.into_iter().map(|(name, x)| (name.to_owned(), x)).collect()),
        ]
    });
    let names = vec![
        "messages",
        "prompt",
        "input",
        "max_tokens",
        "n",
        "stop",
        "stream",
        "stream_options",
        "system",
        "logprobs",
        "top_logprobs",
        "tokens",
        "dimensions",
        "min_tokens",
        "echo",
    ];
    prop::collection::btree_map(prop::sample::select(names), value, 0..6)
        .prop_map(|map| map.into_iter().map(|(name, x)| (name.to_owned(), x)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_in_every_way(&bytes);
    }

    #[test]
    fn any_json_is_answered(body in any_body()) {
        read_in_every_way(body.to_string().as_bytes());
    }
}
