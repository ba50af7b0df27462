//! The other framings over a real socket.

use inferometer_load::{SystemClock, probe};
use inferometer_model::endpoint::Api;
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::{Content, RequestRecord};

use super::documented::OLLAMA_CHAT;
use super::support::{Scripted, Step, target};

fn answered(api: Api, content_type: &str, pieces: &[&str]) -> RequestRecord {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut script = vec![Step::Write(head.into_bytes())];
    for piece in pieces {
        script.push(Step::Write(piece.as_bytes().to_vec()));
    }
    let server = Scripted::serve(vec![script]);
    let target = target(server.address, api, true);
    probe(&target, SystemClock::new(), &Content::text("hello"), 24).unwrap().record
}

#[test]
fn lines_are_a_stream_by_either_name() {
    let pieces: Vec<&str> = OLLAMA_CHAT.split_inclusive('\n').collect();
    for content_type in ["application/x-ndjson", "application/json; charset=utf-8"] {
        let record = answered(Api::OllamaChat, content_type, &pieces);
        assert_eq!(record.ending.outcome, Outcome::Ok, "{content_type}: {:?}", record.ending);
        assert!(record.head.unwrap().streamed, "{content_type}");
        assert_eq!(record.events.len(), pieces.len(), "{content_type}");
        assert!(record.events.is_sorted_by_key(|event| event.read), "{content_type}");
    }
}

#[test]
fn vectors_come_whole_although_streams_are_asked_for() {
    let body = r#"{"data":[{"embedding":[0.5,1]}],"usage":{"prompt_tokens":3}}"#;
    let record = answered(Api::Embeddings, "application/json", &[body]);
    assert_eq!(record.ending.outcome, Outcome::Ok, "{:?}", record.ending);
    assert!(!record.head.unwrap().streamed);
    assert_eq!(record.usage.unwrap().prompt_tokens, Some(3));
}

#[test]
fn lines_are_refused_where_the_api_has_none() {
    let record = answered(Api::Chat, "application/x-ndjson", &["{}\n"]);
    assert_eq!(record.ending.outcome, Outcome::ProtocolError);
    assert_eq!(record.ending.cause, Some(Cause::ContentType));
}
