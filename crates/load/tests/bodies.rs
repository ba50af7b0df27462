//! What each dialect sends, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::sync::LazyLock;

use inferometer_load::dialect::{BodyRecipe, body, messages};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{PinnedOutput, UsageAsk};
use inferometer_model::{Content, Message, Prompt};
use serde_json::{Map, Value, json};

static HI: LazyLock<Content> = LazyLock::new(|| Content::text("hi"));
static NO_FIELDS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
const PICTURE: &str = "data:image/png;base64,AA==";

fn recipe(api: Api) -> BodyRecipe<'static> {
    BodyRecipe {
        api,
        model: "m",
        content: &HI,
        history: &[],
        output_tokens: 5,
        streaming: true,
        usage: UsageAsk::Final,
        fields: &NO_FIELDS,
        pinned: PinnedOutput::default(),
    }
}

fn text(recipe: &BodyRecipe<'_>) -> String {
    String::from_utf8(body(recipe)).unwrap()
}

fn parsed(recipe: &BodyRecipe<'_>) -> Value {
    serde_json::from_slice(&body(recipe)).unwrap()
}

/// A system message, what was said before, and a new turn with a picture.
fn conversation() -> (Content, [Message; 2]) {
    let messages = vec![Message::new("system", "be brief"), Message::new("user", "and now?")];
    let mut content = Content::new(Prompt::Messages(messages));
    content.images.push(PICTURE.to_owned());
    (content, [Message::new("user", "hi"), Message::new("assistant", "ho")])
}

#[test]
fn a_plain_text_becomes_the_plainest_body() {
    for (api, wanted) in [
        (Api::Responses, r#"{"model":"m","input":"hi","max_output_tokens":5,"stream":true}"#),
        (
            Api::Messages,
            r#"{"model":"m","messages":[{"content":"hi","role":"user"}],"max_tokens":5,"stream":true}"#,
        ),
        (Api::Embeddings, r#"{"model":"m","input":"hi"}"#),
        (Api::Rerank, r#"{"model":"m","query":"hi","documents":["hi"]}"#),
        (Api::TgiGenerate, r#"{"inputs":"hi","parameters":{"max_new_tokens":5,"details":true}}"#),
        (
            Api::SglangGenerate,
            r#"{"text":"hi","sampling_params":{"max_new_tokens":5},"stream":true}"#,
        ),
        (Api::LlamaCompletion, r#"{"prompt":"hi","n_predict":5,"stream":true}"#),
        (
            Api::OllamaChat,
            r#"{"model":"m","messages":[{"content":"hi","role":"user"}],"stream":true,"options":{"num_predict":5}}"#,
        ),
        (
            Api::OllamaGenerate,
            r#"{"model":"m","prompt":"hi","stream":true,"options":{"num_predict":5}}"#,
        ),
        (Api::Pooling, r#"{"model":"m","input":"hi"}"#),
        (Api::Classify, r#"{"model":"m","input":"hi"}"#),
        (Api::TritonGenerate, r#"{"text_input":"hi","max_tokens":5,"stream":true}"#),
    ] {
        assert_eq!(text(&recipe(api)), wanted, "{api}");
    }
}

#[test]
fn what_has_a_field_for_it_asks_for_a_whole_answer() {
    for api in Api::all() {
        let body = parsed(&BodyRecipe { streaming: false, ..recipe(api) });
        // No streams at all, or at another path.
        let has_no_field = !api.generates() || api == Api::TgiGenerate;
        let asks = (!has_no_field).then_some(&Value::Bool(false));
        assert_eq!(body.get("stream"), asks, "{api}");
    }
}

#[test]
fn a_pinned_length_goes_where_the_api_has_a_place_for_it() {
    let pinned = PinnedOutput { ignore_eos: true, min_tokens: true };
    for (api, wanted) in [
        (
            Api::SglangGenerate,
            r#"{"text":"hi","sampling_params":{"max_new_tokens":5,"ignore_eos":true,"min_new_tokens":5},"stream":true}"#,
        ),
        (Api::LlamaCompletion, r#"{"prompt":"hi","n_predict":5,"stream":true,"ignore_eos":true}"#),
        (Api::Responses, r#"{"model":"m","input":"hi","max_output_tokens":5,"stream":true}"#),
        (Api::TgiGenerate, r#"{"inputs":"hi","parameters":{"max_new_tokens":5,"details":true}}"#),
    ] {
        assert_eq!(text(&BodyRecipe { pinned, ..recipe(api) }), wanted, "{api}");
    }
}

#[test]
fn further_fields_go_where_the_server_looks_for_them() {
    let mut content = Content::text("hi");
    content.fields.insert("temperature".to_owned(), json!(0));
    let shared = json!({
        "temperature": 1, "stream": false, "max_new_tokens": 9,
        "keep_alive": "1h", "lora_path": "l",
    });
    let shared = shared.as_object().unwrap();
    let with = |api| parsed(&BodyRecipe { content: &content, fields: shared, ..recipe(api) });

    let tgi = with(Api::TgiGenerate);
    assert_eq!(tgi.as_object().unwrap().len(), 2);
    assert_eq!(tgi["parameters"]["temperature"], 0, "the content's own field wins");
    assert_eq!(tgi["parameters"]["max_new_tokens"], 5, "the measurement's own field wins");

    let sglang = with(Api::SglangGenerate);
    assert_eq!(sglang["sampling_params"]["temperature"], 0);
    assert_eq!(sglang["lora_path"], "l");
    assert_eq!(sglang["sampling_params"].get("lora_path"), None);
    assert_eq!(sglang["stream"], true);

    let ollama = with(Api::OllamaChat);
    assert_eq!(ollama["options"]["temperature"], 0);
    assert_eq!(ollama["keep_alive"], "1h");
    assert_eq!(ollama["options"].get("keep_alive"), None);

    for api in [Api::Responses, Api::Messages, Api::LlamaCompletion, Api::TritonGenerate] {
        let body = with(api);
        assert_eq!((&body["temperature"], &body["stream"]), (&json!(0), &json!(true)), "{api}");
    }
}

#[test]
fn conversations_take_the_form_of_their_api() {
    let (content, history) = conversation();
    let history: Vec<&Message> = history.iter().collect();
    let with = |api| parsed(&BodyRecipe { content: &content, history: &history, ..recipe(api) });

    let input = |role: &str, text: &str| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    let mut said = input("assistant", "ho");
    said["content"][0]["annotations"] = json!([]);
    let mut asked = input("user", "and now?");
    let picture = json!({"type": "input_image", "image_url": PICTURE});
    asked["content"].as_array_mut().unwrap().push(picture);
    let items = json!([input("user", "hi"), said, input("system", "be brief"), asked]);
    assert_eq!(with(Api::Responses)["input"], items);

    let messages = with(Api::Messages);
    assert_eq!(messages["system"], "be brief");
    assert_eq!(
        messages["messages"],
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "ho"},
            {"role": "user", "content": [
                {"type": "text", "text": "and now?"},
                {"type": "image", "source":
                    {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            ]},
        ])
    );

    let ollama = with(Api::OllamaChat);
    assert_eq!(ollama["messages"][2], json!({"role": "system", "content": "be brief"}));
    assert_eq!(
        ollama["messages"][3],
        json!({"role": "user", "content": "and now?", "images": ["AA=="]})
    );
    let generate = with(Api::OllamaGenerate);
    assert_eq!(generate["prompt"], "hi\nho\nbe brief\nand now?");
    assert_eq!(generate["images"], json!(["AA=="]));
    for (api, field) in [
        (Api::TgiGenerate, "inputs"),
        (Api::SglangGenerate, "text"),
        (Api::LlamaCompletion, "prompt"),
        (Api::TritonGenerate, "text_input"),
    ] {
        assert_eq!(with(api)[field], "hi\nho\nbe brief\nand now?", "{api}");
    }
}

#[test]
fn a_turn_is_sent_again_as_it_was_sent_first() {
    let (content, _) = conversation();
    let next = Content::text("go on");
    for (api, field) in [
        (Api::Chat, "messages"),
        (Api::Responses, "input"),
        (Api::Messages, "messages"),
        (Api::OllamaChat, "messages"),
        (Api::OllamaGenerate, "images"),
    ] {
        let first = parsed(&BodyRecipe { content: &content, ..recipe(api) });
        let history = messages(api, &content);
        let history: Vec<&Message> = history.iter().collect();
        let then = parsed(&BodyRecipe { content: &next, history: &history, ..recipe(api) });
        let (first, then) = (first[field].as_array().unwrap(), then[field].as_array().unwrap());
        assert!(then.starts_with(first), "{api}: {then:?}");
        assert!(serde_json::to_string(then).unwrap().contains("AA=="), "{api}: no picture");
    }
}

#[test]
fn fields_in_the_shape_of_the_api_stay_in_their_place() {
    for (api, container, limit) in [
        (Api::OllamaChat, "options", "num_predict"),
        (Api::OllamaGenerate, "options", "num_predict"),
        (Api::SglangGenerate, "sampling_params", "max_new_tokens"),
        (Api::TgiGenerate, "parameters", "max_new_tokens"),
    ] {
        let shared = json!({"seed": 1, container: {"top_k": 4, "top_p": 1, limit: 9, "seed": 2}});
        let mut content = Content::text("hi");
        content.fields.insert(container.to_owned(), json!({"top_p": 0.5}));
        let fields = shared.as_object().unwrap();
        let body = parsed(&BodyRecipe { content: &content, fields, ..recipe(api) });
        let mut wanted = json!({"top_k": 4, "top_p": 0.5, limit: 5, "seed": 2});
        if api == Api::TgiGenerate {
            wanted["details"] = json!(true);
        }
        assert_eq!(body[container], wanted, "{api}");
    }
}

#[test]
fn an_adapter_is_asked_for_where_the_server_looks_for_it() {
    let mut content = Content::text("hi");
    content.model = Some("lora-1".to_owned());
    let body = parsed(&BodyRecipe { content: &content, ..recipe(Api::SglangGenerate) });
    assert_eq!(body["lora_path"], "lora-1");
}

#[test]
fn messages_are_a_batch_of_embeddings() {
    let messages = vec![Message::new("user", "one"), Message::new("user", "two")];
    let content = Content::new(Prompt::Messages(messages));
    let body = text(&BodyRecipe { content: &content, ..recipe(Api::Embeddings) });
    assert_eq!(body, r#"{"model":"m","input":["one","two"]}"#);
}

#[test]
fn a_prompt_is_split_into_a_query_and_documents() {
    for (prompt, query, documents) in [
        ("who?\n\nAda.\n Bob. \n", "who?", &["Ada.", "Bob."][..]),
        ("Who was it? It was Ada. Or 3.5 others.", "Who was it?", &["It was Ada. Or 3.5 others."]),
        ("version 3.5", "version 3.5", &["version 3.5"]),
    ] {
        let content = Content::text(prompt);
        let body = parsed(&BodyRecipe { content: &content, ..recipe(Api::Rerank) });
        assert_eq!(body, json!({"model": "m", "query": query, "documents": documents}));
    }
    let messages = ["who?", "Ada\nLovelace", "Bob"].map(|text| Message::new("user", text));
    let content = Content::new(Prompt::Messages(messages.to_vec()));
    let body = parsed(&BodyRecipe { content: &content, ..recipe(Api::Rerank) });
    assert_eq!(body, json!({"model": "m", "query": "who?", "documents": ["Ada\nLovelace", "Bob"]}));
}
