//! How far a server stays from its hardware's peak, bounded by that peak.

use serde::{Deserialize, Serialize};

/// The free numbers of the step-time model; a fit sets them, the hardware bounds them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Coefficients {
    /// Share of the peak FLOP/s that the linear layers reach.
    pub eta_compute: f64,
    /// Share of the peak bandwidth with which weights are read.
    pub eta_memory: f64,
    /// Share of the peak FLOP/s that attention over prompts reaches.
    pub eta_attention: f64,
    /// Share of the peak bandwidth with which decodes read their KV blocks.
    pub eta_kv: f64,
    /// Share of the link's bandwidth that an all-reduce reaches.
    pub eta_link: f64,
    /// As `eta_compute`, in steps of at most `small_tokens_max` tokens: kernels for quantised
    /// weights are slow per token there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_small: Option<f64>,
    /// Most tokens of a small step; zero where there is but one kind of step.
    pub small_tokens_max: u32,
    /// What a step above `small_tokens_max` costs in any case, such as unpacking all weights.
    pub large_step_s: f64,
    /// How sharply compute and weight traffic hide behind each other: 1 adds them, a large number
    /// takes the longer one.
    pub p_norm: f64,
    /// Fixed GPU time of a step, per pipeline stage.
    pub step_s: f64,
    /// Fixed GPU time per layer: gaps between kernels, norms, activations.
    pub layer_s: f64,
    /// Time in which the host launches the kernels of one layer, where no graph was recorded.
    pub launch_s: f64,
    /// Time until the host of the next pipeline stage has what it launches on, likewise.
    pub launch_stage_s: f64,
    pub host: HostCost,
    /// How much the longest context holds up the others of its batch: 0 is not at all, 1 as if all
    /// were as long.
    pub kv_skew: f64,
    /// Decode-only steps are padded to the captured sizes.
    pub cuda_graphs: bool,
    /// Time of a small all-reduce, where it is not that of the hardware's data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_latency_s: Option<f64>,
    /// Sigma of a log-normal factor, one per step; zero is no noise.
    pub noise: f64,
}

/// What the host does for a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostCost {
    pub per_step_s: f64,
    /// For each request that has a part in the step.
    pub per_request_s: f64,
    /// For each request that ended with the step before.
    pub per_finished_s: f64,
}

/// The generic set, for systems that nobody has measured here. But for launches it is no fit and was
/// held against no measurement: it takes large matrix multiplications to reach about half of the peak FLOP/s, reads
/// of weights three quarters of the bandwidth, and the host to be one Python process. It is likely
/// too kind to models with many experts, whose kernels are many and small. Launches are as in a
/// published matrix of servers without graphs: steps took 0.48 ms for each layer, on a V100 as on an
/// H100, and a second pipeline stage took 5 ms more.
impl Default for Coefficients {
    fn default() -> Self {
        Self {
            eta_compute: 0.55,
            eta_memory: 0.75,
            eta_attention: 0.4,
            eta_kv: 0.7,
            eta_link: 0.7,
            eta_small: None,
            small_tokens_max: 0,
            large_step_s: 0.0,
            p_norm: 4.0,
            step_s: 5e-4,
            layer_s: 5e-6,
            launch_s: 4.8e-4,
            launch_stage_s: 5.2e-3,
            host: HostCost::default(),
            kv_skew: 0.1,
            cuda_graphs: true,
            link_latency_s: None,
            noise: 0.0,
        }
    }
}

impl Default for HostCost {
    fn default() -> Self {
        Self { per_step_s: 1e-3, per_request_s: 1e-5, per_finished_s: 2e-5 }
    }
}

/// Why a set of coefficients cannot be that of a real server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CoefficientError {
    #[error(
        "{name} = {value} would beat the hardware: a share of the peak lies above 0 and is at most 1"
    )]
    BeatsHardware { name: &'static str, value: f64 },
    #[error("{name} = {value}: a cost is 0 to {COST_MAX_S} seconds")]
    BadCost { name: &'static str, value: f64 },
    #[error("{name} = {value} lies outside of {least} to {most}")]
    OutOfRange { name: &'static str, value: f64, least: f64, most: f64 },
}

/// Far above any real cost, and far below what would overflow a clock.
const COST_MAX_S: f64 = 1_000.0;
/// Above it the norm is the longer one to within rounding.
const P_NORM_MAX: f64 = 64.0;

impl Coefficients {
    /// Refuses what no hardware can do, by name.
    pub fn check(&self) -> Result<(), CoefficientError> {
        for (name, value) in self.shares() {
            if !(value > 0.0 && value <= 1.0) {
                return Err(CoefficientError::BeatsHardware { name, value });
            }
        }
        for (name, value) in self.costs() {
            if !(0.0..=COST_MAX_S).contains(&value) {
                return Err(CoefficientError::BadCost { name, value });
            }
        }
        let ranges = [
            ("p_norm", self.p_norm, 1.0, P_NORM_MAX),
            ("kv_skew", self.kv_skew, 0.0, 1.0),
            ("noise", self.noise, 0.0, 1.0),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(CoefficientError::OutOfRange { name, value, least, most });
            }
        }
        Ok(())
    }

    fn shares(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let always = [
            ("eta_compute", self.eta_compute),
            ("eta_memory", self.eta_memory),
            ("eta_attention", self.eta_attention),
            ("eta_kv", self.eta_kv),
            ("eta_link", self.eta_link),
        ];
        always.into_iter().chain(self.eta_small.map(|value| ("eta_small", value)))
    }

    fn costs(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let always = [
            ("large_step_s", self.large_step_s),
            ("step_s", self.step_s),
            ("layer_s", self.layer_s),
            ("launch_s", self.launch_s),
            ("launch_stage_s", self.launch_stage_s),
            ("host.per_step_s", self.host.per_step_s),
            ("host.per_request_s", self.host.per_request_s),
            ("host.per_finished_s", self.host.per_finished_s),
        ];
        always.into_iter().chain(self.link_latency_s.map(|value| ("link_latency_s", value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generic_set_is_possible() {
        assert_eq!(Coefficients::default().check(), Ok(()));
    }

    #[test]
    fn what_beats_the_hardware_is_refused_by_name() {
        type Change = fn(&mut Coefficients, f64);
        let shares: [(&str, Change); 6] = [
            ("eta_compute", |c, v| c.eta_compute = v),
            ("eta_memory", |c, v| c.eta_memory = v),
            ("eta_attention", |c, v| c.eta_attention = v),
            ("eta_kv", |c, v| c.eta_kv = v),
            ("eta_link", |c, v| c.eta_link = v),
            ("eta_small", |c, v| c.eta_small = Some(v)),
        ];
        for (wanted, set) in shares {
            for value in [1.000_1, 0.0, -0.5, f64::NAN, f64::INFINITY] {
                let mut coefficients = Coefficients::default();
                set(&mut coefficients, value);
                let refusal = coefficients.check().expect_err("no such server");
                assert!(
                    matches!(refusal, CoefficientError::BeatsHardware { name, .. } if name == wanted),
                    "{refusal}"
                );
            }
        }
    }

    #[test]
    fn costs_below_zero_and_norms_below_one_are_refused() {
        let gift = Coefficients { layer_s: -1e-6, ..Coefficients::default() };
        assert!(gift.check().expect_err("time is no gift").to_string().starts_with("layer_s"));
        let endless = Coefficients { step_s: 1e12, ..Coefficients::default() };
        assert!(endless.check().expect_err("no step").to_string().contains("0 to 1000 seconds"));
        let concave = Coefficients { p_norm: 0.5, ..Coefficients::default() };
        assert!(concave.check().expect_err("not a norm").to_string().starts_with("p_norm"));
    }
}
