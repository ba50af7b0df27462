//! The tables of a matrix file that an experiment does not have.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_model::campaign::{Order, Strategy};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::arguments::Written;
use crate::sweep::ConcurrencyLevels;

/// A matrix of Inferometer: servers that are put up one after the other, each measured in the same
/// way.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct MatrixDocument {
    matrix: MatrixTable,
    preset: Vec<PresetTable>,
    model: Vec<ModelTable>,
    /// Options of the server that are varied: each name with the list of its values. Of the
    /// embedded engine they are keys of `[engine]`; elsewhere {flag:NAME} and {flags} stand for them.
    flags: BTreeMap<String, Values>,
    include: Vec<RuleTable>,
    exclude: Vec<RuleTable>,
}

/// What is varied, and how it is gone through.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct MatrixTable {
    /// Short name [default: the name of the file]
    pub(super) name: Option<String>,
    /// Name for people [default: its short name]
    pub(super) title: Option<String>,
    /// What it is for
    pub(super) description: Option<String>,
    /// Context lengths, in tokens of a prompt and its answer together [default: not varied]
    #[schemars(inner(range(min = 1)))]
    pub(super) contexts: Vec<u32>,
    /// How a model is spread over the GPUs of a preset: tensor shares every layer, pipeline gives
    /// each GPU some of them [default: not varied; all GPUs share every layer]
    pub(super) strategies: Vec<Written<Strategy>>,
    /// Requests in flight, one number or several; every cell is measured at each of them, on the
    /// same server [default: as `[load]` says]
    pub(super) concurrency: Option<Written<ConcurrencyLevels>>,
    /// How often each cell is put up and measured [default: 1]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) repeat: Option<u32>,
    /// Rest between two servers, such as 60s [default: not at all]
    pub(super) cool_down: Option<Written<Duration>>,
    /// Presets that are measured at once [default: 1]
    #[schemars(range(min = 1, max = 64))]
    pub(super) lanes: Option<u32>,
    /// Whether cells are measured as they are listed, or every repetition goes through them in an
    /// order of its own [default: listed]
    pub(super) order: Option<Written<Order>>,
    /// Seed of everything that is drawn
    pub(super) seed: Option<u64>,
    /// Currency of the prices, in words or as a sign
    pub(super) currency: Option<String>,
}

/// Hardware that servers are put up on, as its owner describes it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct PresetTable {
    /// What it is called; no two alike. `{preset}` stands for it
    pub(super) name: Option<String>,
    /// How many GPUs a server has there
    #[schemars(range(min = 1, max = 1024))]
    pub(super) gpus: Option<u32>,
    /// In words, such as `NVIDIA V100 (PCIe 16GB)`
    pub(super) gpu_type: Option<String>,
    /// Memory of all GPUs together
    #[schemars(range(min = 0))]
    pub(super) vram_gb: Option<f64>,
    #[schemars(range(min = 0))]
    pub(super) vcpus: Option<f64>,
    #[schemars(range(min = 0))]
    pub(super) memory_gb: Option<f64>,
    /// Of the whole preset
    #[schemars(range(min = 0))]
    pub(super) price_per_hour: Option<f64>,
    /// Of the embedded engine: keys of `[engine]` that hold for this preset, such as its hardware
    pub(super) engine: BTreeMap<String, Value>,
    /// What else commands need to know of it; {value:NAME} stands for each
    pub(super) values: BTreeMap<String, Plain>,
}

/// A model that is served.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ModelTable {
    /// As the server is asked for it; no two alike. `{model}` stands for it
    pub(super) name: Option<String>,
    /// As pages call it [default: the last part of its name]
    pub(super) label: Option<String>,
    /// Of the embedded engine: keys of `[engine]` that hold for this model
    pub(super) engine: BTreeMap<String, Value>,
    /// What else commands need to know of it; {value:NAME} stands for each
    pub(super) values: BTreeMap<String, Plain>,
}

/// Values of an axis, by its name: preset, model, context, strategy, or a flag. A list means any of
/// its values.
pub(super) type RuleTable = BTreeMap<String, Values>;

/// One value or several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Values(pub(super) Vec<String>);

/// Text, a number or a truth value, as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plain(pub(super) String);

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        plain(&value).map(Self).ok_or_else(|| D::Error::custom("must be text or a number"))
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let values = if let Value::Array(items) = value { items } else { vec![value] };
        let texts: Option<Vec<String>> = values.iter().map(plain).collect();
        texts.map(Self).ok_or_else(|| D::Error::custom("must be texts or numbers"))
    }
}

impl JsonSchema for Plain {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Plain".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl JsonSchema for Values {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Values".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number", "boolean", "array"],
            "items": { "type": ["string", "number", "boolean"] },
        })
    }
}
