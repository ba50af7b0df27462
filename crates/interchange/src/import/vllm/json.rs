//! The JSON objects of `vllm bench serve`: alone, as lines, or inside of a page.

use std::fmt;

use inferometer_analysis::sheet::{Form, Sheet};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::field::{self, Field, Statistic, Written};
use super::vllm_sheet;

const KEYS_MAX: usize = 4096;
/// Longer texts are answers and prompts, not names.
const TEXT_BYTES_MAX: usize = 1024;

const KEYS: [(&str, Field); 17] = [
    ("model_id", Field::Model),
    ("request_rate", Field::RequestRate),
    ("burstiness", Field::Burstiness),
    ("max_concurrency", Field::MaxConcurrency),
    ("num_prompts", Field::RequestsPlanned),
    ("completed", Field::Completed),
    ("failed", Field::Failed),
    ("duration", Field::Duration),
    ("total_input_tokens", Field::InputTokens),
    ("total_output_tokens", Field::OutputTokens),
    ("request_throughput", Field::RequestThroughput),
    ("request_goodput", Field::RequestGoodput),
    // So it was written up to v0.9.1.
    ("request_goodput:", Field::RequestGoodput),
    ("output_throughput", Field::OutputThroughput),
    ("max_output_tokens_per_s", Field::PeakOutputThroughput),
    ("max_concurrent_requests", Field::PeakConcurrentRequests),
    ("total_token_throughput", Field::TotalTokenThroughput),
];

/// An object's keys and plain values, in order; a null is as good as no key, but the key is known.
#[derive(Debug)]
pub(crate) struct Object {
    entries: Vec<(String, Option<Written>)>,
}

/// Whether a JSON object may begin here: braces begin other things too.
pub(crate) fn opens(rest: &str) -> bool {
    rest.strip_prefix('{').is_some_and(|inside| inside.trim_start().starts_with('"'))
}

/// The object at the beginning of the text, and where it ends.
pub(crate) fn object(text: &str) -> Result<(Object, usize), serde_json::Error> {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Object>();
    let first = objects.next().unwrap_or_else(|| Err(serde::de::Error::custom("is empty")))?;
    Ok((first, objects.byte_offset()))
}

impl Object {
    /// Whether it tells of a benchmark at all.
    pub(crate) fn is_result(&self) -> bool {
        self.entries.iter().any(|(key, _)| {
            matches!(
                field_of(key),
                Some(
                    Field::Completed
                        | Field::RequestThroughput
                        | Field::OutputThroughput
                        | Field::Latency(..)
                )
            )
        })
    }

    /// Its first keys, for a message.
    pub(crate) fn keys_shown(&self) -> String {
        let keys: Vec<String> = self
            .entries
            .iter()
            .take(5)
            .map(|(key, _)| format!("`{}`", field::shown(key)))
            .collect();
        let more = if self.entries.len() > keys.len() { ", …" } else { "" };
        format!("{}{more}", keys.join(", "))
    }

    pub(crate) fn into_result(self, line: u32) -> Sheet {
        let mut result = vllm_sheet(Form::Document, line);
        for (key, value) in self.entries {
            let Some(value) = value else { continue };
            let Some(field) = field_of(&key) else {
                field::note(&mut result, line, &field::shown(&key));
                continue;
            };
            if let Err(reason) = field::set(&mut result, field, &value) {
                field::note(&mut result, line, &format!("{} {reason}", field::shown(&key)));
            }
        }
        result
    }
}

fn field_of(key: &str) -> Option<Field> {
    if let Some((_, field)) = KEYS.iter().find(|(known, _)| *known == key) {
        return Some(field.clone());
    }
    let (statistic, latency) = key.strip_suffix("_ms")?.split_once('_')?;
    Some(Field::Latency(field::latency_named(latency)?, Statistic::named(statistic)?))
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            if entries.len() == KEYS_MAX {
                let reason = format!("has more than {KEYS_MAX} keys");
                return Err(serde::de::Error::custom(reason));
            }
            entries.push(entry);
        }
        Ok(Object { entries })
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenVisitor)
    }
}

/// Lists and objects are passed over without being kept: with `--save-detailed` they are long.
struct WrittenVisitor;

impl<'de> Visitor<'de> for WrittenVisitor {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Written, E> {
        Ok(Written::Other)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Written, E> {
        Ok(Written::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Written, E> {
        Ok(Written::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Written, E> {
        Ok(Written::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Written, E> {
        if value.len() > TEXT_BYTES_MAX {
            return Ok(Written::Other);
        }
        Ok(Written::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Written, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Written::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Written::Other)
    }
}
