//! Which embedded engine: what it pretends to run on, and how its scheduler is set. What is left
//! out is what the profile says.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SpecError;

/// The embedded engine as it was asked for. Names are those of vLLM's options, where it has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineSpec {
    /// A named profile: hardware, model and fitted coefficients in one.
    pub profile: Option<String>,
    pub hardware: Option<String>,
    pub model: Option<String>,
    pub tp: Option<u32>,
    pub pp: Option<u32>,
    pub dtype: Option<String>,
    pub quantization: Option<String>,
    pub kv_cache_dtype: Option<String>,
    pub gpu_memory_utilization: Option<f64>,
    pub block_size: Option<u32>,
    pub max_model_len: Option<u32>,
    pub max_num_seqs: Option<u32>,
    pub max_num_batched_tokens: Option<u32>,
    pub long_prefill_token_threshold: Option<u32>,
    pub num_gpu_blocks_override: Option<u32>,
    pub enable_prefix_caching: Option<bool>,
    pub enable_chunked_prefill: Option<bool>,
    pub generation: Option<EngineGeneration>,
    /// Steps of answers that one decision of a v0 scheduler holds for.
    pub num_scheduler_steps: Option<u32>,
    pub scheduling_policy: Option<EnginePolicy>,
    pub async_scheduling: Option<bool>,
    pub enforce_eager: Option<bool>,
    /// Sigma of the noise of step times.
    pub noise: Option<f64>,
    /// Of that noise.
    pub seed: Option<u64>,
    /// How much faster than its profile a live engine runs; virtual time has no use for it.
    pub speed: Option<f64>,
    /// Every step takes this long, whatever it holds: what queueing theory knows the answers for.
    pub step: Option<Duration>,
}

/// Whose scheduler the engine follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineGeneration {
    V0,
    V1,
}

/// Who is next, and who gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnginePolicy {
    Fcfs,
    Priority,
}

impl EngineSpec {
    /// Whether nothing was asked for: then it is the engine of the house.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
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
        if let Some((flag, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
            return Err(SpecError::Zero(flag));
        }
        if self.step.is_some_and(|step| step.is_zero()) {
            return Err(SpecError::NoTime("--engine-step"));
        }
        let is_share = |share: f64| 0.0 < share && share <= 1.0;
        if self.gpu_memory_utilization.is_some_and(|share| !is_share(share)) {
            return Err(SpecError::BadMemoryShare);
        }
        if self.noise.is_some_and(|noise| !(0.0..=1.0).contains(&noise)) {
            return Err(SpecError::BadNoise);
        }
        let is_speed = |speed: f64| 0.0 < speed && speed.is_finite();
        if self.speed.is_some_and(|speed| !is_speed(speed)) {
            return Err(SpecError::BadEngineSpeed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_by_its_flag() {
        let refused = |spec: EngineSpec| spec.check().unwrap_err();
        let tp = EngineSpec { tp: Some(0), ..EngineSpec::default() };
        assert_eq!(refused(tp), SpecError::Zero("--tp"));
        let step = EngineSpec { step: Some(Duration::ZERO), ..EngineSpec::default() };
        assert_eq!(refused(step), SpecError::NoTime("--engine-step"));
        for share in [0.0, 1.1, f64::NAN] {
            let spec = EngineSpec { gpu_memory_utilization: Some(share), ..<_>::default() };
            assert_eq!(refused(spec), SpecError::BadMemoryShare);
        }
        let speed = EngineSpec { speed: Some(f64::INFINITY), ..EngineSpec::default() };
        assert_eq!(refused(speed), SpecError::BadEngineSpeed);
        assert_eq!(EngineSpec::default().check(), Ok(()));
    }

    #[test]
    fn an_engine_that_was_stored_without_later_options_is_read() {
        let stored: EngineSpec = serde_json::from_str(r#"{"profile":"h100"}"#).unwrap();
        let wanted = EngineSpec { profile: Some("h100".to_owned()), ..EngineSpec::default() };
        assert_eq!(stored, wanted);
    }
}
