//! What no dialect may trip over: cuts anywhere, ends too early, errors in the middle, bounds.

use inferometer_load::answer::{AnswerReader, Failure, Framing};
use inferometer_model::endpoint::Api;
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::record::Carried;

use super::documented::{LENGTH, OLLAMA_CHAT, TGI, messages_stream, responses_stream, sglang};
use super::{events, finish, framing, named, outputs, read, read_in_parts, tokens, whole};

/// One whole stream of each API, which ends well.
fn streams() -> Vec<(Api, String)> {
    let sglang_stream = [sglang("é", "", 1, "null"), sglang("éa", "", 2, LENGTH)];
    let chat = r#"{"choices":[{"index":0,"delta":{"content":"é"},"finish_reason":"stop"}]}"#;
    let text = r#"{"choices":[{"index":0,"text":"é","finish_reason":"stop"}]}"#;
    let llama = [
        r#"{"index":0,"content":"é","tokens":[7],"stop":false,"tokens_predicted":2,"tokens_evaluated":6}"#,
        r#"{"index":0,"content":"","tokens":[],"stop":true,"tokens_predicted":3,"tokens_evaluated":6,"stop_type":"eos"}"#,
    ];
    let ollama = concat!(
        r#"{"response":"é","done":false}"#,
        "\n",
        r#"{"response":"","done":true,"done_reason":"stop","eval_count":1}"#
    );
    vec![
        (Api::Chat, events(&[chat, "[DONE]"])),
        (Api::Completions, events(&[text])),
        (Api::Responses, responses_stream()),
        (Api::Messages, messages_stream()),
        (Api::Embeddings, r#"{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":2}}"#.into()),
        (Api::Rerank, r#"{"results":[{"index":0,"relevance_score":1}]}"#.into()),
        (Api::TgiGenerate, events(&TGI)),
        (Api::SglangGenerate, events(&sglang_stream.each_ref().map(String::as_str))),
        (Api::LlamaCompletion, events(&llama)),
        (Api::OllamaChat, OLLAMA_CHAT.to_owned()),
        (Api::OllamaGenerate, ollama.to_owned()),
        (Api::TritonGenerate, events(&[r#"{"text_output":"é"}"#])),
        (Api::Pooling, r#"{"data":[{"object":"pooling","data":[0.5]}]}"#.into()),
        (Api::Classify, r#"{"data":[{"label":"spam","probs":[0.9,0.1]}]}"#.into()),
    ]
}

/// Faults: 39, 40.
#[test]
fn no_answer_depends_on_where_its_bytes_were_cut() {
    let streams = streams();
    assert_eq!(
        streams.iter().map(|(api, _)| *api).collect::<Vec<_>>(),
        Api::all().collect::<Vec<_>>()
    );
    for (api, stream) in streams {
        let bytes = stream.as_bytes();
        let uncut = read(api, &stream);
        assert_eq!(uncut.1, Ok(()), "{api}");
        assert!(0 < outputs(&uncut.0), "{api}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read_in_parts(api, framing(api), &single), uncut, "{api} byte by byte");
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let cut_once = read_in_parts(api, framing(api), &[first, second]);
            assert_eq!(cut_once, uncut, "{api} cut at {cut}");
        }
    }
}

#[test]
fn a_line_belongs_to_the_read_that_completed_it() {
    let (line, rest) = OLLAMA_CHAT.split_at(OLLAMA_CHAT.find('\n').unwrap() + 9);
    let last = rest.trim_end();
    let mut reader = AnswerReader::new(Api::OllamaChat, Framing::JsonLines);
    reader.push(line.as_bytes(), 3).unwrap();
    reader.push(last.as_bytes(), 8).unwrap();
    assert_eq!(reader.end(9), Ok(()));
    let reads: Vec<u32> = reader.into_answer().events.iter().map(|event| event.read).collect();
    assert_eq!(reads, [3, 8, 8, 9], "the end of the body completed the last one");
}

#[test]
fn an_answer_that_breaks_off_is_never_whole() {
    for (api, stream) in streams() {
        // Vectors come whole, and nothing marks Triton's end.
        if !api.generates() || api == Api::TritonGenerate {
            continue;
        }
        let mark = if api == Api::Chat { "data:[DONE]\n\n" } else { "" };
        let stream = stream.strip_suffix(mark).unwrap().trim_end();
        let separator = if api.facts().streams_lines { "\n" } else { "\n\n" };
        let last = stream.rfind(separator).map_or(0, |place| place + separator.len());
        // Without its last brace an event is not dispatched, and a line does not parse.
        for end in [last, stream.len() - 1] {
            let (_, ended) = read(api, &stream[..end]);
            assert_eq!(ended.unwrap_err().outcome, Outcome::Truncated, "{api} up to {end}");
        }
    }
}

/// Faults: 47, 49.
#[test]
fn errors_in_a_stream_are_errors_in_every_dialect() {
    let error = |api, stream: &str| {
        let (answer, ended) = read(api, stream);
        let failure = ended.unwrap_err();
        assert_eq!(failure.outcome, Outcome::StreamError, "{api}: {failure:?}");
        assert_eq!(failure.cause, Some(Cause::ErrorEvent), "{api}");
        assert!(answer.events.last().unwrap().carried.contains(Carried::ERROR), "{api}");
        failure.message.unwrap()
    };
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    assert_eq!(error(Api::Messages, &named(&[("error", overloaded)])), "Overloaded");
    assert_eq!(error(Api::Messages, &events(&[overloaded])), "Overloaded");
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"no memory"}}}"#;
    assert_eq!(error(Api::Responses, &named(&[("response.failed", failed)])), "no memory");
    let plain = r#"{"type":"error","code":"x","message":"too long","param":null}"#;
    assert_eq!(error(Api::Responses, &events(&[plain])), "too long");
    let tgi = r#"{"error":"Request failed during generation","error_type":"generation"}"#;
    assert_eq!(error(Api::TgiGenerate, &events(&[tgi])), "Request failed during generation");
    let told = r#"{"error":{"message":"too long"}}"#;
    for api in [Api::SglangGenerate, Api::LlamaCompletion, Api::TritonGenerate] {
        assert_eq!(error(api, &events(&[told])), "too long");
    }
    let aborted = sglang("a", "", 1, r#"{"type":"abort","message":"out of memory"}"#);
    assert_eq!(error(Api::SglangGenerate, &events(&[&aborted])), "out of memory");
    for api in [Api::OllamaChat, Api::OllamaGenerate] {
        assert_eq!(error(api, "{\"error\":\"model not found\"}\n"), "model not found");
        assert_eq!(error(api, "{\"error\":\"model not found\"}"), "model not found");
    }
}

#[test]
fn vectors_and_scores_are_one_output_without_tokens() {
    for (api, body) in streams() {
        if api.generates() {
            continue;
        }
        let (answer, ended) = whole(api, &body);
        assert_eq!((ended, outputs(&answer), finish(&answer)), (Ok(()), 1, "stop"), "{api}");
        assert_eq!(tokens(&answer), [None], "{api}");
    }
    let unexpected = Err(Failure::new(Outcome::ProtocolError, Cause::UnexpectedAnswer));
    for (api, body) in [
        (Api::Embeddings, r#"{"object":"list","data":[]}"#),
        (Api::Embeddings, r#"{"data":[{"embedding":[1]},{"embedding":[]}]}"#),
        (Api::Embeddings, r#"{"data":[{"index":0}]}"#),
        (Api::Pooling, r#"{"data":[{"object":"pooling","data":[]}]}"#),
        (Api::Classify, r#"{"data":[{"label":"spam","probs":[]}]}"#),
        (Api::Rerank, r#"{"results":[]}"#),
        (Api::Rerank, r#"{"results":{"a":1}}"#),
    ] {
        assert_eq!(whole(api, body).1, unexpected, "{body}");
    }
    let cut = whole(Api::Embeddings, r#"{"data":[{"embedding":[1,"#).1.unwrap_err();
    assert_eq!((cut.outcome, cut.cause), (Outcome::ProtocolError, Some(Cause::BadJson)));
}

/// Faults: 51, 54.
#[test]
fn bounds_hold_in_every_dialect() {
    let deep = format!(r#"{{"x":{}1{}}}"#, "[".repeat(100), "]".repeat(100));
    for api in Api::all() {
        let document = match framing(api) {
            Framing::EventStream => events(&[&deep]),
            Framing::JsonLines | Framing::Whole => deep.clone(),
        };
        let failure = read(api, &document).1.unwrap_err();
        assert_eq!(failure.cause, Some(Cause::JsonTooDeep), "{api}");
    }
    let endless = vec![b'x'; 2 << 20];
    let ended = read_in_parts(Api::OllamaChat, Framing::JsonLines, &[&endless]).1;
    let failure = ended.unwrap_err();
    assert_eq!(
        (failure.outcome, failure.cause),
        (Outcome::ProtocolError, Some(Cause::LineTooLarge))
    );
}
