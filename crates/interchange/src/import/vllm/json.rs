//! The JSON objects of `vllm bench serve`: alone, as lines, or inside of a page.

use std::collections::BTreeSet;
use std::fmt;

use inferometer_analysis::sheet::{Form, Sheet};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::detail::{self, Cells, Column};
use super::field::{self, Field, Written};
use super::loose::{self, Loose};
use super::own;
use super::vllm_sheet;
use crate::import::value::shown;

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

    pub(crate) fn into_result(self, line: u32) -> Sheet {
        let mut result = vllm_sheet(Form::Document, line);
        let (parameters, known) = (self.parameters_from(), self.known());
        for (place, (key, value)) in self.entries.into_iter().enumerate() {
            let Some(value) = value else { continue };
            let own_key = key.replace('-', "_");
            let is_parameter = parameters.is_some_and(|from| from <= place);
            // A parameter of a sweep in its other spelling says again what the result says.
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
        detail::take(&mut result, line, self.columns);
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

/// The tool writes what it is told of a run (`--metadata`) as texts among its own keys; the
/// parameters of a sweep may be numbers, too.
fn take_unknown(result: &mut Sheet, line: u32, key: &str, value: Written, is_parameter: bool) {
    let is_kept = match value {
        Written::Text(text) => own::take(result, key, &text) || field::describe(result, key, text),
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
        loose::deserialize(deserializer)
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
