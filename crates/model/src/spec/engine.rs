//! `[engine]`: the options of the embedded engine. Flags, files, stored specs and the engine itself
//! use this one list.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use strum::VariantArray;

use super::error::{Result, SpecError, refuse_first};
use super::text::{Grammar, Time, set_keys};

/// The embedded engine, where no other server is named: what it runs on, and how it is set. Names
/// are those of vLLM's options, where it has them.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "The embedded engine")]
#[serde(deny_unknown_fields)]
pub struct EngineTable {
    /// Profile by its name, or a file of one; `inferometer engine --list` shows them
    pub profile: Option<String>,
    /// GPU to pretend to have, with --engine-model instead of a profile
    pub hardware: Option<String>,
    /// Model to pretend to serve
    #[arg(id = "engine_model", long = "engine-model", value_name = "MODEL")]
    pub model: Option<String>,
    /// Tensor parallelism: GPUs that share each layer [default: as the profile says, or 1]
    #[schemars(range(min = 1, max = 1024))]
    pub tp: Option<u32>,
    /// Pipeline parallelism: stages, each with its share of the layers [default: as the profile
    /// says, or 1]
    #[schemars(range(min = 1, max = 1024))]
    pub pp: Option<u32>,
    /// Data type of weights and activations, such as bf16 [default: as the model's]
    #[schemars(with = "Option<String>")]
    pub dtype: Option<Spelled<Dtype>>,
    /// How weights are stored, such as fp8 or int4 [default: as the model's]
    #[schemars(with = "Option<String>")]
    pub quantization: Option<Spelled<Quantization>>,
    /// How keys and values are stored, such as fp8 [default: as the model computes]
    #[schemars(with = "Option<String>")]
    pub kv_cache_dtype: Option<Spelled<KvCacheDtype>>,
    /// Share of the GPU's memory that the engine may use [default: 0.92]
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub gpu_memory_utilization: Option<f64>,
    /// Tokens of one KV block [default: 16]
    #[schemars(range(min = 1, max = 4096))]
    pub block_size: Option<u32>,
    /// Longest prompt with its answer [default: as the model's]
    #[schemars(range(min = 1))]
    pub max_model_len: Option<u32>,
    /// Most requests in one step
    #[schemars(range(min = 1))]
    pub max_num_seqs: Option<u32>,
    /// Most tokens in one step
    #[schemars(range(min = 1))]
    pub max_num_batched_tokens: Option<u32>,
    /// Most tokens of one prompt in one step [default: no such bound]
    pub long_prefill_token_threshold: Option<u32>,
    /// KV blocks, instead of what the memory leaves room for
    #[schemars(range(min = 1))]
    pub num_gpu_blocks_override: Option<u32>,
    /// Keep what was computed for prompts that begin alike [default: as the profile says]
    pub enable_prefix_caching: Option<bool>,
    /// Let prompts and answers share steps, a piece of a prompt at a time [default: as the profile
    /// says]
    pub enable_chunked_prefill: Option<bool>,
    /// Whose scheduler to follow [default: as the profile says]
    pub generation: Option<EngineGeneration>,
    /// Steps that one decision of a v0 scheduler holds for [default: as the profile says]
    #[schemars(range(min = 1))]
    pub num_scheduler_steps: Option<u32>,
    /// Order of the scheduler's queue [default: fcfs]
    pub scheduling_policy: Option<SchedulingPolicy>,
    /// Prepare the next step while one runs [default: as the profile says]
    pub async_scheduling: Option<bool>,
    /// Tokens that speculative decoding drafts for each step, up to 16 [default: 0, none]
    #[schemars(range(max = 16))]
    pub num_speculative_tokens: Option<u32>,
    /// How likely a drafted token is accepted if all before it are, from 0 to 1 [default: 0.7]
    #[schemars(range(min = 0, max = 1))]
    pub draft_acceptance: Option<f64>,
    /// Launch every kernel separately, without recorded graphs [default: as the profile says]
    pub enforce_eager: Option<bool>,
    /// Sigma by which step times vary, from 0 to 1 [default: as the profile says]
    #[schemars(range(min = 0, max = 1))]
    pub noise: Option<f64>,
    /// Seed of the noise of step times, combined with the seed of each run [default: the run's alone]
    #[arg(id = "engine_seed", long = "engine-seed", value_name = "N")]
    pub seed: Option<u64>,
    /// How much faster than its profile a live engine runs; simulations ignore it
    /// [default: 1]
    #[arg(id = "engine_speed", long = "engine-speed", value_name = "FACTOR")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub speed: Option<f64>,
    /// Time of every step, whatever it holds, instead of a model of the hardware
    #[arg(id = "engine_step", long = "engine-step", value_name = "TIME", value_parser = Duration::read)]
    #[serde(default, deserialize_with = "read_step")]
    #[schemars(with = "Option<Time>")]
    pub step: Option<Duration>,
}

/// A file has the duration as text; a stored spec has it in seconds and nanoseconds.
fn read_step<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let found = if value.is_null() || value.is_object() {
        serde_json::from_value(value)
    } else {
        serde_json::from_value(value).map(|time: Time| Some(time.0))
    };
    found.map_err(serde::de::Error::custom)
}

/// Type in which a model computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    Auto,
    #[serde(alias = "float16", alias = "fp16")]
    Half,
    #[serde(alias = "bf16")]
    Bfloat16,
    /// 8-bit weights and activations: the same as `quantization = "fp8"`.
    Fp8,
}

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantization {
    None,
    Fp8,
    Int8,
    #[serde(alias = "gptq", alias = "awq")]
    Int4,
}

/// How keys and values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvCacheDtype {
    /// The type of the model.
    Auto,
    #[serde(alias = "fp8_e4m3", alias = "fp8_e5m2")]
    Fp8,
}

/// Which waiting request is next, and which one is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "lowercase")]
pub enum SchedulingPolicy {
    Fcfs,
    Priority,
}

/// Which of vLLM's two schedulers the engine follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "lowercase")]
pub enum EngineGeneration {
    V0,
    V1,
}

/// One of the names above as it was spelled: a stored spec repeats it, even if it is an alias.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelled<T> {
    pub value: T,
    spelling: String,
}

/// A name that an option does not know; the message lists the known ones.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct UnknownName(#[from] serde::de::value::Error);

impl<T: DeserializeOwned> FromStr for Spelled<T> {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let names: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Ok(Self { value: T::deserialize(names)?, spelling: name.to_owned() })
    }
}

impl<T: Serialize> From<T> for Spelled<T> {
    fn from(value: T) -> Self {
        let name = serde_json::to_value(&value).unwrap_or_default();
        Self { spelling: name.as_str().unwrap_or_default().to_owned(), value }
    }
}

impl<T> Serialize for Spelled<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.spelling)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Spelled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl EngineTable {
    /// What is set here, and what `lower` sets for the rest.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        let mut merged = set_keys(lower);
        merged.extend(set_keys(self));
        serde_json::from_value(merged.into()).unwrap_or_default()
    }

    /// Whether nothing is set: the default engine.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The keys that are set, with their values.
    pub fn entries(&self) -> Map<String, Value> {
        set_keys(self)
    }

    pub(super) fn check(&self) -> Result<()> {
        let counts = [
            ("--tp", self.tp),
            ("--pp", self.pp),
            ("--block-size", self.block_size),
            ("--max-model-len", self.max_model_len),
            ("--max-num-seqs", self.max_num_seqs),
            ("--max-num-batched-tokens", self.max_num_batched_tokens),
            ("--num-gpu-blocks-override", self.num_gpu_blocks_override),
            ("--num-scheduler-steps", self.num_scheduler_steps),
        ];
        refuse_first(counts.map(|(flag, count)| (count == Some(0), SpecError::Zero(flag))))?;
        let is_share = |share: f64| 0.0 < share && share <= 1.0;
        let is_speed = |speed: f64| 0.0 < speed && speed.is_finite();
        refuse_first([
            (self.step.is_some_and(|step| step.is_zero()), SpecError::NoTime("--engine-step")),
            (self.gpu_memory_utilization.is_some_and(|it| !is_share(it)), SpecError::BadShare),
            (self.noise.is_some_and(|noise| !(0.0..=1.0).contains(&noise)), SpecError::BadNoise),
            (self.speed.is_some_and(|speed| !is_speed(speed)), SpecError::BadEngineSpeed),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_refused_by_their_flag() {
        let refused = |spec: EngineTable| spec.check().unwrap_err();
        let tp = EngineTable { tp: Some(0), ..EngineTable::default() };
        assert_eq!(refused(tp), SpecError::Zero("--tp"));
        let step = EngineTable { step: Some(Duration::ZERO), ..EngineTable::default() };
        assert_eq!(refused(step), SpecError::NoTime("--engine-step"));
        for share in [0.0, 1.1, f64::NAN] {
            let spec = EngineTable { gpu_memory_utilization: Some(share), ..<_>::default() };
            assert_eq!(refused(spec), SpecError::BadShare);
        }
        let speed = EngineTable { speed: Some(f64::INFINITY), ..EngineTable::default() };
        assert_eq!(refused(speed), SpecError::BadEngineSpeed);
        assert_eq!(EngineTable::default().check(), Ok(()));
    }

    #[test]
    fn an_engine_that_was_stored_without_later_options_is_read() {
        let stored: EngineTable = serde_json::from_str(r#"{"profile":"h100"}"#).unwrap();
        let wanted = EngineTable { profile: Some("h100".to_owned()), ..EngineTable::default() };
        assert_eq!(stored, wanted);
    }

    #[test]
    fn a_step_is_text_in_files_and_seconds_with_nanoseconds_in_stored_specs() {
        let read = |text: &str| serde_json::from_str::<EngineTable>(text).unwrap().step;
        let step = Some(Duration::from_millis(25));
        assert_eq!(read(r#"{"step":"25ms"}"#), step);
        assert_eq!(read(r#"{"step":{"secs":0,"nanos":25000000}}"#), step);
        let stored = serde_json::to_value(EngineTable { step, ..<_>::default() }).unwrap();
        assert_eq!(stored["step"], serde_json::json!({ "secs": 0, "nanos": 25_000_000 }));
    }

    #[test]
    fn flags_take_the_names_of_the_file_and_keep_their_spelling() {
        let half: Spelled<Dtype> = "float16".parse().unwrap();
        assert_eq!(half.value, Dtype::Half);
        assert_eq!(serde_json::to_value(&half).unwrap(), "float16");
        assert_eq!(serde_json::from_value::<Spelled<Dtype>>("float16".into()).unwrap(), half);
        assert_eq!(serde_json::to_value(Spelled::from(Dtype::Half)).unwrap(), "half");
        assert_eq!("awq".parse().map(|it: Spelled<_>| it.value), Ok(Quantization::Int4));
        let refusal = "int3".parse::<Spelled<Quantization>>().unwrap_err().to_string();
        assert!(refusal.contains("int3") && refusal.contains("fp8"), "{refusal}");
    }

    #[test]
    fn the_upper_table_wins() {
        let lower = EngineTable { tp: Some(2), pp: Some(2), ..EngineTable::default() };
        let upper = EngineTable { tp: Some(4), ..EngineTable::default() };
        let merged = upper.over(&lower);
        assert_eq!((merged.tp, merged.pp, merged.model), (Some(4), Some(2), None));
    }
}
