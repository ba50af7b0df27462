//! What a user typed or a profile's file says: all optional, in vLLM's words.

use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};

/// A server to play; what is left out follows from the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// A name or the path of a TOML file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tp: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pp: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantization: Option<Quantization>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_cache_dtype: Option<KvCacheDtype>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory_utilization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_num_seqs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_num_batched_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_prefill_token_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_gpu_blocks_override: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_prefix_caching: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_chunked_prefill: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<SchedulingPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub async_scheduling: Option<bool>,
    /// Which of vLLM's two schedulers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<EngineGeneration>,
    /// Only with v0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_scheduler_steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_eager: Option<bool>,
    /// Sigma of the step times' noise, over that of the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// Of everything that is drawn; the server's own, as a profile's is rarely set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// Lays one choice over another, field by field; a field that is forgotten does not compile.
macro_rules! lay {
    ($upper:ident over $lower:ident: $($field:ident),+ $(,)?) => {
        Choice { $($field: $upper.$field.clone().or_else(|| $lower.$field.clone())),+ }
    };
}

impl Choice {
    /// What is said here, and for the rest what `lower` says.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        lay!(self over lower: profile, hardware, model, tp, pp, dtype, quantization,
            kv_cache_dtype, gpu_memory_utilization, max_model_len, max_num_seqs,
            max_num_batched_tokens, long_prefill_token_threshold, block_size,
            num_gpu_blocks_override, enable_prefix_caching, enable_chunked_prefill,
            scheduling_policy, async_scheduling, generation, num_scheduler_steps, enforce_eager,
            noise, seed)
    }
}

/// The type in which a model computes.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvCacheDtype {
    /// That of the model.
    Auto,
    #[serde(alias = "fp8_e4m3", alias = "fp8_e5m2")]
    Fp8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchedulingPolicy {
    Fcfs,
    Priority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineGeneration {
    V0,
    V1,
}

/// A word that is none of those that an option knows; the message lists them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct UnknownWord(#[from] serde::de::value::Error);

/// The words of a flag are those of the file.
macro_rules! words {
    ($($kind:ty),+) => {$(
        impl FromStr for $kind {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                let words: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
                    word.into_deserializer();
                Ok(Self::deserialize(words)?)
            }
        }
    )+};
}

words!(Dtype, Quantization, KvCacheDtype, SchedulingPolicy, EngineGeneration);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_take_the_words_of_the_file() {
        assert_eq!("float16".parse(), Ok(Dtype::Half));
        assert_eq!("awq".parse(), Ok(Quantization::Int4));
        assert_eq!("v0".parse(), Ok(EngineGeneration::V0));
        let refusal = "int3".parse::<Quantization>().expect_err("no such word").to_string();
        assert!(refusal.contains("int3") && refusal.contains("fp8"), "{refusal}");
    }

    #[test]
    fn what_is_said_above_wins() {
        let lower = Choice { tp: Some(2), pp: Some(2), ..Choice::default() };
        let upper = Choice { tp: Some(4), ..Choice::default() };
        let laid = upper.over(&lower);
        assert_eq!((laid.tp, laid.pp, laid.model), (Some(4), Some(2), None));
    }
}
