//! The JSON objects of `vllm bench serve`: alone, as lines, or inside of a page.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use inferometer_analysis::tool_result::{Form, ToolResult};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::block::Line;
use super::field::{self, Cells, Column, Field, Written};
use super::vllm_sheet;
use crate::import::mapping::shown;
use crate::import::records::not_json;

const KEYS_MAX: usize = 4096;
/// Longer texts are answers and prompts, not names.
const TEXT_BYTES_MAX: usize = 1024;

/// What `vllm bench sweep` adds to a result: how often it was run before, and what the user calls
/// a combination of parameters.
pub(crate) const RUN_NUMBER: &str = "run_number";
pub(crate) const BENCHMARK_NAME: &str = "_benchmark_name";

const KEYS: [(&str, Field); 24] = [
    ("date", Field::Started),
    // The two say the same; the older versions have one of them.
    ("endpoint_type", Field::Backend),
    ("backend", Field::Backend),
    ("model_id", Field::Model),
    ("tokenizer_id", Field::Tokenizer),
    ("tensor_parallel_size", Field::TensorParallel),
    ("tp", Field::TensorParallel),
    ("tp_size", Field::TensorParallel),
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
    columns: Vec<(String, Column, Cells)>,
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
    /// Whether it has a figure of a benchmark: counts alone are everybody's.
    pub(crate) fn is_result(&self) -> bool {
        let is_timed = |column| matches!(column, Column::Ttft | Column::Gaps | Column::E2e);
        self.columns.iter().any(|(_, column, _)| is_timed(*column))
            || self.entries.iter().any(|(key, _)| {
                matches!(
                    field_of(key),
                    Some(
                        Field::RequestThroughput
                            | Field::OutputThroughput
                            | Field::TotalTokenThroughput
                            | Field::Latency(..)
                    )
                )
            })
    }

    /// Its first keys, for a message.
    pub(crate) fn keys_shown(&self) -> String {
        let keys: Vec<String> =
            self.entries.iter().take(5).map(|(key, _)| format!("`{}`", shown(key))).collect();
        let more = if self.entries.len() > keys.len() { ", …" } else { "" };
        format!("{}{more}", keys.join(", "))
    }

    pub(crate) fn into_result(self, line: u32) -> ToolResult {
        let mut result = vllm_sheet(Form::Document, line);
        let (parameters, known) = (self.parameters_from(), self.known());
        for (place, (key, value)) in self.entries.into_iter().enumerate() {
            let Some(value) = value else { continue };
            let own_key = key.replace('-', "_");
            let is_parameter = parameters.is_some_and(|from| from <= place);
            // A parameter of a sweep in its other spelling repeats what the result states.
            if own_key != key && known.contains(&own_key) {
                continue;
            }
            let Some(field) = field_of(&own_key) else {
                take_unknown(&mut result, line, &key, value, is_parameter);
                continue;
            };
            if let Err(reason) = field::set(&mut result, field, &value) {
                field::note(&mut result, line, &format!("{} {reason}", shown(&key)));
            }
        }
        field::take(&mut result, line, self.columns);
        result
    }

    /// Where the parameters begin that a sweep adds behind a result's own keys.
    fn parameters_from(&self) -> Option<usize> {
        let place = |name| self.entries.iter().position(|(key, _)| key == name);
        place(RUN_NUMBER).or_else(|| {
            place(BENCHMARK_NAME)?;
            let last = self.entries.iter().rposition(|(key, _)| field_of(key).is_some());
            Some(last.map_or(0, |last| last + 1))
        })
    }

    /// The result's own keys that have a value.
    fn known(&self) -> BTreeSet<String> {
        let own =
            self.entries.iter().filter(|(key, value)| value.is_some() && field_of(key).is_some());
        own.map(|(key, _)| key.clone()).collect()
    }
}

/// The tool writes its `--metadata` as texts among its own keys; the
/// parameters of a sweep may be numbers, too.
fn take_unknown(result: &mut ToolResult, line: u32, key: &str, value: Written, is_parameter: bool) {
    let is_kept = match value {
        Written::Text(text) => {
            super::take(result, key, &text) || field::describe(result, key, text)
        }
        Written::Number(number) if is_parameter => field::describe(result, key, number.to_string()),
        Written::Truth(truth) if is_parameter => field::describe(result, key, truth.to_string()),
        Written::Number(_) | Written::Truth(_) | Written::Other => false,
    };
    if !is_kept {
        field::note(result, line, &shown(key));
    }
}

fn field_of(key: &str) -> Option<Field> {
    if let Some((_, field)) = KEYS.iter().find(|(known, _)| *known == key) {
        return Some(field.clone());
    }
    field::further_named(|figure| figure.key == key).or_else(|| {
        let (statistic, latency) = key.strip_suffix("_ms")?.split_once('_')?;
        field::statistic_named(latency, statistic)
    })
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
        let mut object = Object { entries: Vec::new(), columns: Vec::new() };
        while let Some(key) = map.next_key::<String>()? {
            if object.entries.len() + object.columns.len() == KEYS_MAX {
                let reason = format!("has more than {KEYS_MAX} keys");
                return Err(serde::de::Error::custom(reason));
            }
            if let Some(column) = Column::named(&key) {
                let cells = map.next_value::<Option<Cells>>()?;
                object.columns.extend(cells.map(|cells| (key, column, cells)));
            } else {
                object.entries.push((key, map.next_value()?));
            }
        }
        Ok(object)
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}

impl Loose for Written {
    fn other() -> Self {
        Self::Other
    }

    fn truth(truth: bool) -> Self {
        Self::Truth(truth)
    }

    fn number(number: f64) -> Self {
        Self::Number(number)
    }

    fn text(text: &str) -> Self {
        if text.len() > TEXT_BYTES_MAX { Self::Other } else { Self::Text(text.to_owned()) }
    }
}

/// Made from any value.
pub(crate) trait Loose: Sized {
    /// A value that is not used here.
    fn other() -> Self;

    fn truth(_: bool) -> Self {
        Self::other()
    }

    fn number(_: f64) -> Self {
        Self::other()
    }

    fn text(_: &str) -> Self {
        Self::other()
    }

    /// Passed over without being kept, unless it is wanted: such lists are long.
    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }
}

pub(crate) fn deserialize<'de, T: Loose, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(LooseVisitor(PhantomData))
}

struct LooseVisitor<T>(PhantomData<T>);

impl<'de, T: Loose> Visitor<'de> for LooseVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::truth(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(T::other())
    }
}

const KEPT_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Anomalies {
    found: Vec<(u32, String)>,
    /// Whether a line is neither a record nor a comment.
    has_prose: bool,
}

impl Anomalies {
    /// A line that does not begin a record.
    pub(super) fn read(&mut self, line: Line<'_>) {
        let text = line.text.trim_matches([' ', '\t', '\u{feff}', '[', ']', ',']);
        if text.is_empty() || text.starts_with('#') || text.starts_with("//") {
            return;
        }
        self.has_prose |= !text.starts_with('{') || is_template(text);
        if self.has_prose {
            self.found.clear();
        } else if self.found.len() < KEPT_MAX
            && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
        {
            self.found.push((line.number, not_json(&error)));
        }
    }

    pub(super) fn broken(self) -> Vec<(u32, String)> {
        self.found
    }
}

/// Pages that are filled in have such lines.
fn is_template(text: &str) -> bool {
    ["{%", "{{", "{:", "{#"].iter().any(|opening| text.starts_with(opening))
}
