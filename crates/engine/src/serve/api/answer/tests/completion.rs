//! Chat and completions.

use serde_json::{Value, json};

use super::super::{Entry, Finish, Usage, likeliest};
use super::{USAGE, chat, completion, events, ids, keys, streamed, values, whole};
use crate::scheduler::blocks::{SPECIAL_TOKENS, VOCABULARY};
use crate::serve::vocabulary::END_OF_SEQUENCE;

#[test]
fn a_chat_streams_byte_for_byte_as_vllm_does() {
    let seen = events(&streamed(chat(&json!({})), Finish::Length));
    let start = "{\"id\":\"chatcmpl-00000000000000ab\",\"object\":\"chat.completion.chunk\",\
        \"created\":17,\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{";
    let fingerprint = env!("CARGO_PKG_VERSION");
    let expected = [
        format!(
            "{start}\"role\":\"assistant\",\"content\":\"\"}},\"logprobs\":null,\
             \"finish_reason\":null}}],\"prompt_token_ids\":null,\"prompt_text\":null}}"
        ),
        format!(
            "{start}\"content\":\"zuzu\"}},\"logprobs\":null,\"finish_reason\":null,\
             \"token_ids\":null}}]}}"
        ),
        format!(
            "{start}\"content\":\" bado\"}},\"logprobs\":null,\"finish_reason\":null,\
             \"token_ids\":null}}]}}"
        ),
        format!(
            "{start}\"content\":\" mika\"}},\"logprobs\":null,\"finish_reason\":\"length\",\
             \"stop_reason\":null,\"token_ids\":null}}],\
             \"system_fingerprint\":\"inferometer-{fingerprint}\"}}"
        ),
        "[DONE]".to_owned(),
    ];
    assert_eq!(seen.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), expected);
}

#[test]
fn completions_stream_with_the_fields_of_vllm() {
    let seen = values(&streamed(completion(&json!({})), Finish::EndOfSequence));
    assert_eq!(seen.len(), 3);
    for event in &seen {
        let choice = [
            "finish_reason",
            "index",
            "logprobs",
            "prompt_token_ids",
            "stop_reason",
            "text",
            "token_ids",
        ];
        assert_eq!(keys(&event["choices"][0]), choice);
    }
    assert_eq!(keys(&seen[0]), ["choices", "created", "id", "model", "object"]);
    assert_eq!(seen[2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(seen[2]["choices"][0]["stop_reason"], Value::Null);
    assert_eq!(seen[0]["id"], "cmpl-00000000000000ab");
}

#[test]
fn usage_comes_where_it_was_asked_for() {
    let options = json!({"stream_options": {"include_usage": true}});
    for wording in [chat(&options), completion(&options)] {
        let seen = values(&streamed(wording, Finish::Length));
        let last = seen.last().unwrap();
        let usage = json!({"prompt_tokens": 5, "total_tokens": 8, "completion_tokens": 3});
        assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &usage));
        assert!(last.get("system_fingerprint").is_some());
        let others = &seen[..seen.len() - 1];
        assert!(others.iter().all(|event| event.get("system_fingerprint").is_none()));
        assert!(others.iter().all(|event| event.get("usage").is_none()));
    }
    let options = json!({"stream_options": {"include_usage": true, "continuous_usage_stats": true},
        "return_token_ids": true});
    let seen = values(&streamed(chat(&options), Finish::Length));
    let counts = |event: &Value| event["usage"]["completion_tokens"].as_u64().unwrap();
    assert_eq!(seen.iter().map(counts).collect::<Vec<_>>(), [0, 1, 2, 3, 3]);
    assert_eq!(
        keys(&seen[1]["usage"]),
        ["completion_tokens", "completion_tokens_details", "prompt_tokens", "total_tokens"]
    );
    assert_eq!(seen[0]["prompt_token_ids"].as_array().unwrap().len(), 5);
    assert_eq!(seen[1]["choices"][0]["token_ids"], json!([ids()[0]]));
}

#[test]
fn cached_tokens_are_told_when_there_are_any() {
    let mut wording = chat(&json!({"stream_options": {"include_usage": true}}));
    let mut out = Vec::new();
    wording.opening(&mut out);
    wording.piece(0, &[], Some(Finish::Abort), &mut out);
    wording.closing(&Usage { cached_tokens: 4, ..USAGE }, &mut out);
    let seen = values(&out);
    assert_eq!(seen[1]["choices"][0]["finish_reason"], "abort");
    assert_eq!(seen[2]["usage"]["prompt_tokens_details"], json!({"cached_tokens": 4}));
}

#[test]
fn every_choice_has_its_role_first_and_its_own_index() {
    let seen = values(&streamed(chat(&json!({"n": 2})), Finish::Length));
    let index = |event: &Value| event["choices"][0]["index"].as_u64().unwrap();
    assert_eq!(seen.iter().map(index).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1, 0, 1]);
    let roles = seen.iter().filter(|event| event["choices"][0]["delta"].get("role").is_some());
    assert_eq!(roles.count(), 2);
}

#[test]
fn probabilities_have_the_shapes_of_their_apis() {
    let seen =
        values(&streamed(chat(&json!({"logprobs": true, "top_logprobs": 2})), Finish::Length));
    let entry = &seen[2]["choices"][0]["logprobs"]["content"][0];
    assert_eq!(keys(entry), ["bytes", "logprob", "token", "top_logprobs"]);
    assert_eq!((&entry["token"], &entry["bytes"]), (&json!("bado"), &json!(b"bado")));
    assert_eq!(entry["top_logprobs"].as_array().unwrap().len(), 2);
    assert_eq!(keys(&entry["top_logprobs"][0]), ["bytes", "logprob", "token"]);
    let seen = values(&streamed(completion(&json!({"logprobs": 2})), Finish::Length));
    let logprobs = &seen[1]["choices"][0]["logprobs"];
    assert_eq!(keys(logprobs), ["text_offset", "token_logprobs", "tokens", "top_logprobs"]);
    assert_eq!((&logprobs["text_offset"], &logprobs["tokens"]), (&json!([4]), &json!(["bado"])));
    assert_eq!(logprobs["top_logprobs"][0].as_object().unwrap().len(), 2);
    let all = whole(&completion(&json!({"logprobs": 0, "stream": false})), Finish::Length);
    assert_eq!(all["choices"][0]["logprobs"]["text_offset"], json!([0, 4, 9]));
}

#[test]
fn an_echo_goes_ahead_of_the_answer_and_is_escaped() {
    let options = json!({"prompt": "say \"x\"", "echo": true, "logprobs": 1});
    let seen = values(&streamed(completion(&options), Finish::Length));
    let text = |event: &Value| event["choices"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(seen.iter().map(text).collect::<String>(), "say \"x\" zuzu bado mika");
    let first = &seen[0]["choices"][0]["logprobs"];
    assert_eq!(first["tokens"].as_array().unwrap().len(), 3);
    assert_eq!((&first["token_logprobs"][0], &first["text_offset"][2]), (&Value::Null, &json!(8)));
    let mut options = options;
    options["stream"] = json!(false);
    let all = whole(&completion(&options), Finish::Length);
    assert_eq!(all["choices"][0]["text"], "say \"x\" zuzu bado mika");
}

#[test]
fn whole_chats_have_the_fields_of_vllm() {
    let seen = whole(&chat(&json!({"stream": false})), Finish::Length);
    assert_eq!(
        keys(&seen),
        [
            "choices",
            "created",
            "ec_transfer_params",
            "id",
            "kv_transfer_params",
            "metrics",
            "model",
            "object",
            "prompt_logprobs",
            "prompt_text",
            "prompt_token_ids",
            "service_tier",
            "system_fingerprint",
            "usage",
        ]
    );
    let choice = &seen["choices"][0];
    assert_eq!(
        keys(choice),
        [
            "finish_reason",
            "index",
            "logprobs",
            "message",
            "routed_experts",
            "stop_reason",
            "token_ids"
        ]
    );
    let message =
        ["annotations", "audio", "content", "function_call", "reasoning", "refusal", "role"];
    assert_eq!(keys(&choice["message"]), message);
    assert_eq!(choice["message"]["content"], "zuzu bado mika");
    let usage = [
        "completion_tokens",
        "completion_tokens_details",
        "prompt_tokens",
        "prompt_tokens_details",
        "total_tokens",
    ];
    assert_eq!(keys(&seen["usage"]), usage);
}

#[test]
fn whole_completions_have_the_fields_of_vllm() {
    let seen = whole(&completion(&json!({"stream": false, "n": 2})), Finish::Length);
    assert_eq!(
        keys(&seen),
        [
            "choices",
            "created",
            "ec_transfer_params",
            "id",
            "kv_transfer_params",
            "metrics",
            "model",
            "object",
            "service_tier",
            "system_fingerprint",
            "usage",
        ]
    );
    assert_eq!(
        keys(&seen["choices"][1]),
        [
            "finish_reason",
            "index",
            "logprobs",
            "prompt_logprobs",
            "prompt_token_ids",
            "routed_experts",
            "stop_reason",
            "text",
            "token_ids",
        ]
    );
}

#[test]
fn a_stop_string_is_cut_off_wherever_it_begins() {
    let mut wording = chat(&json!({"stop": ["o mi"]}));
    wording.cut(0, 8);
    let all = whole(&wording, Finish::StopString(0));
    assert_eq!(all["choices"][0]["message"]["content"], "zuzu bad");
    let seen = values(&streamed(wording, Finish::StopString(0)));
    let text = |event: &Value| event["choices"][0]["delta"]["content"].as_str().unwrap().to_owned();
    assert_eq!(seen.iter().map(text).collect::<Vec<_>>(), ["", "zuzu", " bad", ""]);
    assert_eq!(seen[3]["choices"][0]["stop_reason"], "o mi");
}

#[test]
fn ends_that_have_no_text_say_none() {
    let id = ids()[2];
    let seen = values(&streamed(chat(&json!({"stop_token_ids": [id]})), Finish::StopToken(id)));
    assert_eq!(seen[3]["choices"][0]["delta"]["content"], "");
    assert_eq!(seen[3]["choices"][0]["stop_reason"], id);
    let mut wording = chat(&json!({}));
    let (mut out, id) = (Vec::new(), END_OF_SEQUENCE);
    wording.opening(&mut out);
    let finish = Some(Finish::EndOfSequence);
    wording.piece(0, &[(0, id)], finish, &mut out);
    wording.closing(&USAGE, &mut out);
    assert_eq!(values(&out)[1]["choices"][0]["delta"]["content"], "");
}

#[test]
fn the_clients_name_is_the_answers_id() {
    let wording = chat(&json!({"request_id": "a \"b\""}));
    assert_eq!(whole(&wording, Finish::Length)["id"], "chatcmpl-a \"b\"");
}

/// The lists of a completion's probabilities, from one event or many.
fn told_offsets(seen: &[Value]) -> (String, Vec<u64>, Vec<String>) {
    let (mut text, mut offsets, mut tokens) = (String::new(), Vec::new(), Vec::new());
    for choice in seen.iter().map(|event| &event["choices"][0]) {
        text += choice["text"].as_str().unwrap();
        let told = &choice["logprobs"];
        offsets.extend(told["text_offset"].as_array().unwrap().iter().filter_map(Value::as_u64));
        let names = told["tokens"].as_array().unwrap().iter().filter_map(Value::as_str);
        tokens.extend(names.map(str::to_owned));
    }
    (text, offsets, tokens)
}

#[test]
fn an_echo_has_the_places_of_its_words_streamed_or_whole() {
    let options = json!({"prompt": "bana \u{e9}t\u{e9}  mika", "echo": true, "logprobs": 1,
        "stop": ["do"]});
    let made = || {
        let mut wording = completion(&options);
        wording.cut(0, 7);
        wording
    };
    let streamed = told_offsets(&values(&streamed(made(), Finish::StopString(0))));
    let (text, offsets, _) = &streamed;
    assert_eq!(text, "bana \u{e9}t\u{e9}  mika zuzu ba");
    assert_eq!(offsets, &[0, 4, 8, 15, 19, 22]);
    assert_eq!(streamed, told_offsets(&[whole(&made(), Finish::StopString(0))]));
}

#[test]
fn an_echo_alone_has_the_prompt_and_no_more() {
    let options = json!({"echo": true, "logprobs": 0, "max_tokens": 0});
    let mut wording = completion(&options);
    let mut out = Vec::new();
    wording.opening(&mut out);
    let finish = Some(Finish::Length);
    wording.piece(0, &[(0, ids()[0])], finish, &mut out);
    wording.closing(&USAGE, &mut out);
    let streamed = told_offsets(&values(&out));
    let expected = vec!["bana".to_owned(), "mika".to_owned()];
    assert_eq!(streamed, ("bana mika".to_owned(), vec![0, 4], expected));
    assert_eq!(streamed, told_offsets(&[whole(&completion(&options), Finish::Length)]));
}

#[test]
fn probabilities_fall_with_the_rank_and_add_up_to_less_than_one() {
    for id in SPECIAL_TOKENS..VOCABULARY {
        let entry = Entry { id, index: id % 97, offset: 0, is_first_of_prompt: false };
        let listed: Vec<(u32, f64)> = likeliest(entry, 20).collect();
        assert!(listed.is_sorted_by(|(_, more), (_, less)| less < more));
        let sum: f64 = listed.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!(sum < 1.0, "{sum}");
        let mut ids: Vec<u32> = listed.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 20);
    }
}
