//! What the mode `serve` is told before it starts.

use std::fmt;
use std::time::Duration;

use inferometer_model::spec::KvCacheDtype;

use super::step_time::StepModel;
use crate::metrics::{CacheConfig, Labels, MetricNames};
use crate::options::{INTERVAL_MAX, OptionsError};
use crate::physics::Front;
use crate::profile::{self, Profile};
use crate::scheduler::SchedulerConfig;

/// What is served, and how.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub profile: Profile,
    /// Every step takes as long as this, whatever the profile says.
    pub step: Option<Duration>,
    /// Seconds of the engine that pass in one of the wall.
    pub speed: f64,
    pub metric_names: MetricNames,
    /// Without it `/v1` is closed.
    pub api_key: Option<ApiKey>,
    /// Whether `GET /steps` has the log of all steps.
    pub log_steps: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            profile: Profile::named(profile::DEFAULT).expect("the profile is part of this program"),
            step: None,
            speed: 1.0,
            metric_names: MetricNames::default(),
            api_key: None,
            log_steps: false,
        }
    }
}

impl ServeOptions {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if !(SPEED_MIN..=SPEED_MAX).contains(&self.speed) {
            return Err(OptionsError::BadSpeed(self.speed));
        }
        if self.step.is_some_and(|step| step.is_zero()) {
            return Err(OptionsError::Zero { name: "step" });
        }
        if let Some(interval) = self.step.filter(|step| INTERVAL_MAX < *step) {
            return Err(OptionsError::LongInterval { name: "step", interval });
        }
        Ok(())
    }

    pub(crate) fn step_model(&self, seed: u64) -> StepModel {
        match self.step {
            Some(step) => StepModel::constant(step),
            None => StepModel::Physics(Box::new(self.profile.step_time(seed))),
        }
    }

    /// With a constant step nothing but the steps takes time, as in a simulation of one.
    pub(crate) fn front(&self) -> Front {
        if self.step.is_some() { Front::IMMEDIATE } else { self.profile.front }
    }

    pub(crate) fn labels(&self, model: &str, config: &SchedulerConfig, unix_s: u64) -> Labels {
        let choice = self.profile.choice();
        Labels {
            model: model.to_owned(),
            max_model_len: config.max_model_len,
            cache: CacheConfig {
                block_size: config.block_size,
                blocks: config.blocks,
                prefix_caching: config.prefix_caching,
                dtype: match choice.kv_cache_dtype.as_ref().map(|dtype| dtype.value) {
                    Some(KvCacheDtype::Fp8) => "fp8".to_owned(),
                    None | Some(KvCacheDtype::Auto) => "auto".to_owned(),
                },
                gpu_memory_utilization: self.profile.memory.utilization,
            },
            started_unix_s: unix_s as f64,
        }
    }
}

/// A secret that clients must know. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Vec<u8>);

impl ApiKey {
    /// Surrounding white space, such as a file's last line end, is no part of it; an empty key
    /// would let anyone in, so it is none.
    pub fn new(text: &str) -> Option<Self> {
        let key = text.trim();
        (!key.is_empty()).then(|| Self(key.as_bytes().to_vec()))
    }

    /// Takes as long for a key that is nearly right as for one that is all wrong.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let mut difference = usize::from(self.0.len() != given.len());
        for (at, byte) in given.iter().enumerate() {
            // A longer key is compared with the own one over and over.
            difference |= usize::from(byte ^ self.0[at % self.0.len()]);
        }
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

pub(crate) const SPEED_MIN: f64 = 0.001;
pub(crate) const SPEED_MAX: f64 = 100_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_itself_and_nothing_else() {
        let key = ApiKey::new(" secret\n").unwrap();
        assert!(key.is(b"secret"));
        for wrong in [&b""[..], b"secre", b"secrets", b"secretsecret", b"Secret"] {
            assert!(!key.is(wrong), "{wrong:?}");
        }
        assert_eq!(ApiKey::new(" \n"), None);
        assert_eq!(format!("{key:?}"), "ApiKey(hidden)");
    }
}
