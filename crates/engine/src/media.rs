//! What the pictures and recordings of a body really are, by their own heads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A picture or a recording that a request carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaTruth {
    Picture {
        width: u32,
        height: u32,
    },
    Recording {
        milliseconds: u32,
    },
    /// Of a form whose head is not read.
    Other {
        bytes: u64,
    },
}

/// The media of the messages of a chat, in their order.
pub(crate) fn in_body(body: &[u8]) -> Vec<MediaTruth> {
    let has = |key: &[u8]| memchr::memmem::find(body, key).is_some();
    if !has(b"\"image_url\"") && !has(b"\"input_audio\"") {
        return Vec::new();
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let messages = body["messages"].as_array().into_iter().flatten();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    let data = |part: &Value| {
        let url = part["image_url"]["url"].as_str().and_then(|url| Some(url.split_once(',')?.1));
        let data = url.or_else(|| part["input_audio"]["data"].as_str())?;
        STANDARD.decode(data).ok()
    };
    parts.filter_map(data).map(|bytes| read(&bytes)).collect()
}

/// PNG begins with its size, and WAV with its rate and the length of its samples.
fn read(bytes: &[u8]) -> MediaTruth {
    let four = |at: usize| bytes.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
    let png = || {
        let sides = four(16).zip(four(20)).filter(|_| bytes.starts_with(b"\x89PNG"))?;
        let (width, height) = (u32::from_be_bytes(sides.0), u32::from_be_bytes(sides.1));
        Some(MediaTruth::Picture { width, height })
    };
    let wav = || {
        let is_wav = bytes.starts_with(b"RIFF") && four(36) == Some(*b"data");
        let facts = four(28).zip(four(40)).filter(|_| is_wav)?;
        let (per_s, length) = (u32::from_le_bytes(facts.0), u32::from_le_bytes(facts.1));
        let milliseconds = (u64::from(length) * 1_000).checked_div(per_s.into())?;
        Some(MediaTruth::Recording { milliseconds: u32::try_from(milliseconds).ok()? })
    };
    png().or_else(wav).unwrap_or(MediaTruth::Other { bytes: bytes.len() as u64 })
}
