//! Server-sent events, each in an HTTP chunk of its own.

use serde::Serialize;

/// An event without a name.
pub(super) fn data(out: &mut Vec<u8>, json: &[u8]) {
    chunk(out, &[b"data: ", json, b"\n\n"]);
}

/// An event with a name.
pub(super) fn named(out: &mut Vec<u8>, name: &str, event: &impl Serialize) {
    let json = json(event);
    chunk(out, &[b"event: ", name.as_bytes(), b"\ndata: ", &json, b"\n\n"]);
}

pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs with string keys are always JSON")
}

/// Adds a text in quotes.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string is always JSON, and memory takes it");
}

fn chunk(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}
