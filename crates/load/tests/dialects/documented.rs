//! Streams as the documentation of their servers shows them.

use inferometer_load::answer::{Answer, Failure};
use inferometer_model::endpoint::Api;
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::record::{Carried, Event, Usage};

use super::{events, finish, named, outputs, read, tokens, whole};

fn content(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.texts[0].content).unwrap()
}

fn reasoning(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.texts[0].reasoning).unwrap()
}

fn usage(prompt: u64, completion: u64, cached: Option<u64>) -> Usage {
    let (prompt_tokens, completion_tokens) = (Some(prompt), Some(completion));
    Usage { prompt_tokens, completion_tokens, cached_tokens: cached }
}

pub(crate) const TGI: [&str; 4] = [
    r#"{"index":1,"token":{"id":5,"text":"Deep","logprob":-0.5,"special":false},"generated_text":null,"details":null}"#,
    r#"{"index":2,"token":{"id":6,"text":"","logprob":-0.5,"special":false},"generated_text":null,"details":null}"#,
    r#"{"index":3,"token":{"id":7,"text":" sea","logprob":-0.1,"special":false},"generated_text":null,"details":null}"#,
    r#"{"index":4,"token":{"id":2,"text":"</s>","logprob":-0.1,"special":true},"generated_text":"Deep sea","details":{"finish_reason":"eos_token","generated_tokens":4,"input_length":9,"seed":null}}"#,
];

#[test]
fn documented_tgi_streams_have_one_token_per_event() {
    let (answer, ended) = read(Api::TgiGenerate, &events(&TGI));
    assert_eq!(ended, Ok(()));
    assert_eq!(content(&answer), "Deep sea");
    assert_eq!(tokens(&answer), [Some(1); 4]);
    assert_eq!(outputs(&answer), 4);
    assert_eq!(finish(&answer), "stop");
    assert_eq!(answer.usage, Some(usage(9, 4, None)));
}

#[test]
fn documented_tgi_answers_are_read_whole() {
    let (answer, ended) = whole(
        Api::TgiGenerate,
        r#"{"generated_text":"Deep","details":{"finish_reason":"length","generated_tokens":2,"seed":1,"prefill":[{"id":1,"text":"a","logprob":null}],"tokens":[{"id":5}]}}"#,
    );
    assert_eq!(ended, Ok(()));
    assert_eq!((content(&answer), finish(&answer)), ("Deep", "length"));
    assert_eq!(tokens(&answer), [Some(2)]);
    assert_eq!(answer.usage, Some(usage(1, 2, None)));
    let (answer, ended) = whole(Api::TgiGenerate, r#"{"generated_text":"Deep"}"#);
    assert_eq!(ended, Ok(()));
    assert_eq!(finish(&answer), "unstated");
}

pub(crate) fn sglang(text: &str, ids: &str, completion: u32, finish: &str) -> String {
    format!(
        r#"{{"text":"{text}",{ids}"meta_info":{{"id":"x","finish_reason":{finish},"prompt_tokens":5,"completion_tokens":{completion},"cached_tokens":3}}}}"#
    )
}

pub(crate) const LENGTH: &str = r#"{"type":"length","length":4}"#;

#[test]
fn documented_sglang_streams_repeat_the_text_and_only_what_is_new_counts() {
    let stream = [
        sglang("ha", "", 1, "null"),
        sglang("haha", "", 2, "null"),
        sglang("haha", "", 3, "null"),
        sglang("haha!", "", 4, LENGTH),
    ];
    let stream = events(&stream.each_ref().map(String::as_str)) + "data: [DONE]\n\n";
    let (answer, ended) = read(Api::SglangGenerate, &stream);
    assert_eq!(ended, Ok(()));
    assert_eq!(content(&answer), "haha!");
    let bytes: Vec<u32> = answer.events.iter().map(|event| event.text_bytes).collect();
    assert_eq!(bytes, [2, 2, 0, 1, 0]);
    assert_eq!(tokens(&answer), [Some(1), Some(1), Some(1), Some(1), None]);
    assert_eq!(finish(&answer), "length");
    assert_eq!(answer.usage, Some(usage(5, 4, Some(3))));
    assert!(answer.done.seen);
}

#[test]
fn documented_sglang_streams_of_pieces_are_told_by_their_token_ids() {
    let stream = [
        sglang("ha", r#""output_ids":[7],"#, 1, "null"),
        sglang("ha", r#""output_ids":[7],"#, 2, "null"),
        sglang("haha", r#""output_ids":[7,7],"#, 4, LENGTH),
    ];
    let (answer, ended) =
        read(Api::SglangGenerate, &events(&stream.each_ref().map(String::as_str)));
    assert_eq!(ended, Ok(()));
    assert_eq!(content(&answer), "hahahaha");
    let grown = [
        sglang("ha", r#""output_ids":[7],"#, 1, "null"),
        sglang("ha", r#""output_ids":[7,9],"#, 2, "null"),
        sglang("haha", r#""output_ids":[7,9,7],"#, 4, LENGTH),
    ];
    let (answer, _) = read(Api::SglangGenerate, &events(&grown.each_ref().map(String::as_str)));
    assert_eq!(content(&answer), "haha");
}

#[test]
fn documented_sglang_streams_of_pieces_without_ids_are_told_by_their_text() {
    let stream = [
        sglang("one", "", 1, "null"),
        sglang(" two", "", 2, "null"),
        sglang(" two", "", 3, r#"{"type":"stop","matched":2}"#),
    ];
    let (answer, ended) =
        read(Api::SglangGenerate, &events(&stream.each_ref().map(String::as_str)));
    assert_eq!(ended, Ok(()));
    assert_eq!((content(&answer), finish(&answer)), ("one two two", "stop"));
}

#[test]
fn documented_sglang_answers_of_several_choices_grow_apart() {
    let of = |index: u32, text: &str, finish: &str| {
        format!(r#"{{"index":{index},{}"#, &sglang(text, "", 2, finish)[1..])
    };
    let stream = [of(0, "a", "null"), of(1, "b", "null"), of(1, "bc", LENGTH), of(0, "ad", LENGTH)];
    let (answer, ended) =
        read(Api::SglangGenerate, &events(&stream.each_ref().map(String::as_str)));
    assert_eq!(ended, Ok(()));
    let texts: Vec<&[u8]> = answer.texts.iter().map(|texts| texts.content.as_slice()).collect();
    assert_eq!(texts, [b"ad", b"bc"]);
}

pub(crate) const OLLAMA_CHAT: &str = concat!(
    r#"{"model":"q","created_at":"t","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
    "\n",
    r#"{"model":"q","created_at":"t","message":{"role":"assistant","content":"Deep"},"done":false}"#,
    "\r\n",
    r#"{"model":"q","created_at":"t","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}"#,
    "\n",
    r#"{"model":"q","created_at":"t","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9,"prompt_eval_count":26,"eval_count":7}"#,
    "\n",
);

#[test]
fn documented_ollama_chats_are_lines() {
    for stream in [OLLAMA_CHAT, OLLAMA_CHAT.trim_end()] {
        let (answer, ended) = read(Api::OllamaChat, stream);
        assert_eq!(ended, Ok(()));
        assert_eq!((content(&answer), reasoning(&answer)), ("Deep", "hm"));
        assert_eq!(outputs(&answer), 3);
        assert!(answer.events[2].carried.contains(Carried::TOOL_CALL));
        assert_eq!(answer.events[2].text_bytes, 8);
        assert_eq!((finish(&answer), answer.model.as_deref()), ("stop", Some("q")));
        assert_eq!(answer.usage, Some(usage(26, 7, None)));
        assert_eq!(tokens(&answer), [None; 4], "a total is no count of one line");
    }
}

#[test]
fn documented_ollama_completions_are_lines_or_whole() {
    let piece = r#"{"model":"q","created_at":"t","response":"De","done":false}"#;
    let last = r#"{"model":"q","created_at":"t","response":"ep","done":true,"done_reason":"length","context":[1,2],"prompt_eval_count":6,"eval_count":2}"#;
    let (answer, ended) = read(Api::OllamaGenerate, &format!("{piece}\n{last}\n"));
    assert_eq!(ended, Ok(()));
    assert_eq!((content(&answer), finish(&answer)), ("Deep", "length"));
    let (answer, ended) = whole(Api::OllamaGenerate, last);
    assert_eq!(ended, Ok(()));
    assert_eq!(tokens(&answer), [Some(2)]);
    assert_eq!(answer.usage, Some(usage(6, 2, None)));
}

#[test]
fn documented_triton_streams_end_with_their_body() {
    let event = |text: &str| {
        format!(
            r#"{{"model_name":"ensemble","model_version":"1","sequence_end":false,"sequence_id":0,"sequence_start":false,"text_output":"{text}"}}"#
        )
    };
    let stream = [event("Deep"), event(""), event(" sea")];
    let (answer, ended) =
        read(Api::TritonGenerate, &events(&stream.each_ref().map(String::as_str)));
    assert_eq!(ended, Ok(()));
    assert_eq!((content(&answer), outputs(&answer)), ("Deep sea", 2));
    assert!(answer.events[1].is_silent());
    assert_eq!(answer.finishes, []);
    assert_eq!(read(Api::TritonGenerate, "").1.unwrap_err().outcome, Outcome::Truncated);
    let (answer, ended) = whole(Api::TritonGenerate, &event("Deep"));
    assert_eq!((ended, content(&answer)), (Ok(()), "Deep"));
    assert_eq!(
        whole(Api::TritonGenerate, "{}").1,
        Err(Failure::new(Outcome::ProtocolError, Cause::UnexpectedAnswer))
    );
}

#[test]
fn documented_triton_outputs_of_vllm_count_tokens() {
    let stream = events(&[
        r#"{"model_name":"v","text_output":"","finish_reason":"None","num_output_tokens":1,"num_input_tokens":4}"#,
        r#"{"model_name":"v","text_output":"é","finish_reason":"length","num_output_tokens":2,"num_input_tokens":4}"#,
    ]);
    let (answer, ended) = read(Api::TritonGenerate, &stream);
    assert_eq!(ended, Ok(()));
    assert_eq!(tokens(&answer), [Some(1), Some(2)]);
    assert_eq!(finish(&answer), "length");
    assert_eq!(answer.usage.unwrap().prompt_tokens, Some(4));
}

pub(crate) fn messages_stream() -> String {
    named(&[
        (
            "message_start",
            r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":20,"cache_creation_input_tokens":3,"cache_read_input_tokens":7,"output_tokens":1}}}"#,
        ),
        ("ping", r#"{"type":"ping"}"#),
        (
            "content_block_start",
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Deep"}}"#,
        ),
        (
            "content_block_start",
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"find","input":{}}}"#,
        ),
        (
            "content_block_delta",
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
        ),
        ("content_block_stop", r#"{"type":"content_block_stop","index":2}"#),
        ("tomorrow", r#"{"type":"tomorrow","delta":[17]}"#),
        (
            "message_delta",
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}"#,
        ),
        ("message_stop", r#"{"type":"message_stop"}"#),
    ])
}

#[test]
fn documented_messages_think_talk_and_call() {
    let (answer, ended) = read(Api::Messages, &messages_stream());
    assert_eq!(ended, Ok(()));
    assert_eq!((content(&answer), reasoning(&answer)), ("Deep", "hm"));
    let output: Vec<&Event> = answer.events.iter().filter(|event| event.is_output()).collect();
    let bytes: Vec<u32> = output.iter().map(|event| event.text_bytes).collect();
    assert_eq!(bytes, [2, 4, 4, 7], "thinking, text, a tool's name, its arguments");
    assert_eq!(answer.usage, Some(usage(30, 15, Some(7))), "cached tokens are part of the prompt");
    assert_eq!((finish(&answer), answer.model.as_deref()), ("tool_calls", Some("c")));
    assert!(answer.done.seen);
    let (answer, ended) = whole(
        Api::Messages,
        r#"{"type":"message","role":"assistant","model":"c","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"Deep"},{"type":"tool_use","id":"t","name":"find","input":{"a":1}}],"stop_reason":"end_turn","usage":{"input_tokens":2,"output_tokens":5}}"#,
    );
    assert_eq!(ended, Ok(()));
    assert_eq!((content(&answer), reasoning(&answer), finish(&answer)), ("Deep", "hm", "stop"));
    assert_eq!(answer.events[0].text_bytes, 4 + 2 + 11);
}

#[test]
fn documented_sums_on_the_way_are_no_output() {
    let delta = |stop: &str, tokens: u32| {
        format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":{stop}}},"usage":{{"output_tokens":{tokens}}}}}"#
        )
    };
    let text = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Deep"}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let stream = events(&[text, &delta("null", 10), text, &delta("\"end_turn\"", 15), stop]);
    let (answer, ended) = read(Api::Messages, &stream);
    assert_eq!(ended, Ok(()));
    assert_eq!((outputs(&answer), tokens(&answer)), (2, vec![None; 5]));
    assert_eq!(answer.usage.unwrap().completion_tokens, Some(15));
}

#[test]
fn documented_rerank_answers_may_be_bare_lists() {
    let (answer, ended) = whole(
        Api::Rerank,
        r#"[{"score":0.9,"document":"Ada","index":1,"meta_info":{}},{"score":0.1,"document":"Bob","index":0}]"#,
    );
    assert_eq!((ended, outputs(&answer), finish(&answer)), (Ok(()), 1, "stop"));
    assert_eq!(whole(Api::Rerank, "[]").1.unwrap_err().cause, Some(Cause::UnexpectedAnswer));
}

pub(crate) fn responses_stream() -> String {
    named(&[
        (
            "response.created",
            r#"{"type":"response.created","response":{"model":"o","status":"in_progress","output":[],"usage":null}}"#,
        ),
        (
            "response.reasoning_summary_text.delta",
            r#"{"type":"response.reasoning_summary_text.delta","delta":"h"}"#,
        ),
        (
            "response.reasoning_text.delta",
            r#"{"type":"response.reasoning_text.delta","delta":"m"}"#,
        ),
        ("response.output_text.delta", r#"{"type":"response.output_text.delta","delta":"Deep"}"#),
        (
            "response.output_item.added",
            r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"find","arguments":""}}"#,
        ),
        (
            "response.function_call_arguments.delta",
            r#"{"type":"response.function_call_arguments.delta","delta":"{}"}"#,
        ),
        ("response.audio.later", r#"{"type":"response.audio.later","delta":{"x":1},"response":4}"#),
        (
            "response.completed",
            r#"{"type":"response.completed","response":{"model":"o","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Deep"}]},{"type":"function_call","name":"find","arguments":"{}"}],"usage":{"input_tokens":11,"input_tokens_details":{"cached_tokens":4},"output_tokens":9}}}"#,
        ),
    ])
}

#[test]
fn documented_responses_reason_talk_and_call() {
    let (answer, ended) = read(Api::Responses, &responses_stream());
    assert_eq!(ended, Ok(()));
    assert_eq!((content(&answer), reasoning(&answer)), ("Deep", "hm"));
    let output: Vec<&Event> = answer.events.iter().filter(|event| event.is_output()).collect();
    let bytes: Vec<u32> = output.iter().map(|event| event.text_bytes).collect();
    assert_eq!(bytes, [1, 1, 4, 4, 2]);
    assert_eq!((finish(&answer), answer.model.as_deref()), ("tool_calls", Some("o")));
    assert_eq!(answer.usage, Some(usage(11, 9, Some(4))));
}
