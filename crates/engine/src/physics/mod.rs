//! How long a step takes: the work that the model makes, over what the hardware can do.
//!
//! A step costs at least its work at the hardware's peak ([`PhysicsStep::bound_ns`]);
//! [`Coefficients`] say how far a real server stays from it, and none may promise more than the
//! hardware has. Figures that seem too good are refused, not explained.

pub mod law;
#[cfg(test)]
mod tests;

use std::time::Duration;

use inferometer_model::whole::{to_u32, to_u64};
use serde::{Deserialize, Serialize};

use self::law::StepLaw;
use crate::generation::{Draws, Purpose};
use crate::scheduler::{ConstantStep, StepShape, StepTime};

/// What one deployment has to do and what it can do it with. Rates are peaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// FLOP/s of one GPU in the type in which the linear layers multiply.
    pub linear_flops: f64,
    /// FLOP/s of one GPU in the type in which attention multiplies.
    pub attention_flops: f64,
    /// Bytes/s of one GPU's memory.
    pub memory_bandwidth: f64,
    /// Bytes/s and direction that a GPU can send to the others of its tensor-parallel group.
    pub link_bandwidth: f64,
    pub link_latency_s: f64,
    pub tensor_parallel: u32,
    pub pipeline_parallel: u32,
    pub layers: u32,
    pub hidden_size: u32,
    /// Bytes of one number that GPUs send each other.
    pub activation_bytes: f64,
    /// Parameters of the layers that each token is multiplied with.
    pub active_parameters: f64,
    /// Parameters of the output layer: only positions that yield a token pass through it.
    pub head_parameters: f64,
    /// Bytes of the weights that every step reads.
    pub dense_bytes: f64,
    /// Bytes of all routed experts.
    pub routed_bytes: f64,
    pub experts: u32,
    pub experts_per_token: u32,
    /// Bytes of one token's keys and values on one GPU, over all layers.
    pub kv_bytes_per_token: f64,
    /// FLOPs of attention between two tokens of a prompt, over all layers and heads.
    pub prefill_flops_per_pair: f64,
    /// The same for a decode and one token of its context.
    pub decode_flops_per_pair: f64,
    /// Largest decode batch that has been captured; zero for none.
    pub graphs_max: u32,
    pub async_scheduling: bool,
    /// Decode steps per scheduling decision, over which the host's time is spread.
    pub scheduler_steps: u32,
}

impl Machine {
    /// Bytes of weights that a step of `tokens` tokens reads: all dense ones, and of the experts
    /// those that at least one token is expected to choose.
    pub fn weight_bytes(&self, tokens: f64) -> f64 {
        if self.experts == 0 {
            return self.dense_bytes;
        }
        let passed_over = 1.0 - f64::from(self.experts_per_token) / f64::from(self.experts);
        self.dense_bytes + self.routed_bytes * (1.0 - libm::pow(passed_over, tokens))
    }

    /// Seconds of the all-reduces behind a step: two per layer, each over all its tokens.
    pub(crate) fn communication_s(&self, tokens: f64, latency_s: f64, share: f64) -> f64 {
        if self.tensor_parallel < 2 {
            return 0.0;
        }
        let group = f64::from(self.tensor_parallel);
        let bytes = tokens * f64::from(self.hidden_size) * self.activation_bytes;
        let moving = 2.0 * (group - 1.0) / group * bytes / (self.link_bandwidth * share);
        2.0 * f64::from(self.layers) * (latency_s + moving)
    }

    /// Seconds in which a step's numbers pass from stage to stage.
    pub(crate) fn handover_s(&self, tokens: f64, latency_s: f64, share: f64) -> f64 {
        let bytes = tokens * f64::from(self.hidden_size) * self.activation_bytes;
        let stages = f64::from(self.pipeline_parallel.max(1));
        (stages - 1.0) * (latency_s + bytes / (self.link_bandwidth * share))
    }
}

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

/// The generic set, for systems without measurements here. But for launches it is no fit and was
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
    #[error("{name} = {value} exceeds the hardware: a share of the peak is above 0 and at most 1")]
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
        let shares = [
            ("eta_compute", Some(self.eta_compute)),
            ("eta_memory", Some(self.eta_memory)),
            ("eta_attention", Some(self.eta_attention)),
            ("eta_kv", Some(self.eta_kv)),
            ("eta_link", Some(self.eta_link)),
            ("eta_small", self.eta_small),
        ];
        for (name, value) in shares.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            if !(value > 0.0 && value <= 1.0) {
                return Err(CoefficientError::BeatsHardware { name, value });
            }
        }
        let costs = [
            ("large_step_s", Some(self.large_step_s)),
            ("step_s", Some(self.step_s)),
            ("layer_s", Some(self.layer_s)),
            ("launch_s", Some(self.launch_s)),
            ("launch_stage_s", Some(self.launch_stage_s)),
            ("host.per_step_s", Some(self.host.per_step_s)),
            ("host.per_request_s", Some(self.host.per_request_s)),
            ("host.per_finished_s", Some(self.host.per_finished_s)),
            ("link_latency_s", self.link_latency_s),
        ];
        for (name, value) in costs.into_iter().filter_map(|(name, value)| Some((name, value?))) {
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
}

/// No batch above it is captured, but for GPUs whose data say otherwise.
pub const GRAPHS_MAX: u32 = 512;

/// The captured size that `decodes` run at: 1, 2, 4, multiples of 8 below 256, then of 16. Above
/// `largest` nothing is captured and nothing padded.
pub(crate) fn padded(decodes: u32, largest: u32) -> u32 {
    if decodes > largest {
        return decodes;
    }
    let size = match decodes {
        0..=2 => decodes,
        3..=4 => 4,
        5..=248 => decodes.next_multiple_of(8),
        _ => decodes.next_multiple_of(16),
    };
    // The last size is the bound itself where the bound is none of the series.
    size.min(largest)
}

/// Time that the API process spends before a request reaches the scheduler and on what it sends:
/// one process, so requests queue for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Front {
    /// Parsing, checking and handing over.
    pub per_request_ns: u64,
    /// Tokenising.
    pub per_prompt_token_ns: u64,
    /// Turning a token back into text and sending it.
    pub per_output_token_ns: u64,
}

impl Front {
    /// One that takes no time at all.
    pub const IMMEDIATE: Self =
        Self { per_request_ns: 0, per_prompt_token_ns: 0, per_output_token_ns: 0 };
}

/// Plausible for one Python process and a tokenizer in native code; measured nowhere in particular.
impl Default for Front {
    fn default() -> Self {
        Self { per_request_ns: 1_500_000, per_prompt_token_ns: 1_000, per_output_token_ns: 20_000 }
    }
}

/// Step times from work over hardware, with noise where it is asked for.
#[derive(Clone, Debug)]
pub struct PhysicsStep {
    machine: Machine,
    coefficients: Coefficients,
    noise: Draws,
}

/// Kernels of a layer of a Llama: two norms, four matrices, rotation, writing and reading the cache,
/// activation, and what is between them.
const LAYER_KERNELS: f64 = 12.0;
/// What is added where GPUs share the layer.
const ALL_REDUCES: f64 = 2.0;

/// Where the time of a step goes, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepParts {
    /// Multiplying in the linear layers.
    pub compute: f64,
    /// Reading weights.
    pub weights: f64,
    /// The two together, partly hidden behind each other.
    pub linear: f64,
    pub attention_prefill: f64,
    pub attention_decode: f64,
    pub communication: f64,
    /// What does not depend on the batch.
    pub fixed: f64,
    /// Launching kernels one by one, while the GPUs work on those before; zero where graphs do it.
    pub launch: f64,
    pub host: f64,
}

impl StepParts {
    pub fn gpu(&self) -> f64 {
        self.linear
            + self.attention_prefill
            + self.attention_decode
            + self.communication
            + self.fixed
    }

    /// Until the GPUs are through: they do not run ahead of their launches.
    pub fn launched(&self) -> f64 {
        self.gpu().max(self.launch)
    }
}

impl PhysicsStep {
    pub fn new(
        machine: Machine,
        coefficients: Coefficients,
        seed: u64,
    ) -> Result<Self, CoefficientError> {
        coefficients.check()?;
        Ok(Self::of_checked(machine, coefficients, seed))
    }

    /// For coefficients that have passed [`Coefficients::check`].
    pub(crate) fn of_checked(machine: Machine, coefficients: Coefficients, seed: u64) -> Self {
        Self { machine, coefficients, noise: Draws::new(seed, 0, Purpose::StepNoise) }
    }

    /// Draws its noise anew, from another seed.
    pub fn reseed(&mut self, seed: u64) {
        self.noise = Draws::new(seed, 0, Purpose::StepNoise);
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// The least time in which the hardware can do the work of a step: every rate at its peak,
    /// nothing padded, no fixed cost.
    pub fn bound_ns(&self, shape: &StepShape) -> u64 {
        let machine = &self.machine;
        let tokens = shape.tokens() as f64;
        let compute = self.linear_flops(shape, tokens) / self.rate(machine.linear_flops);
        let weights = machine.weight_bytes(tokens) / self.rate(machine.memory_bandwidth);
        let prefill = machine.prefill_flops_per_pair * shape.prefill_pairs
            / self.rate(machine.attention_flops);
        let decode = self.decode_s(shape, shape.decode_context as f64, 1.0, 1.0);
        let links =
            machine.communication_s(tokens, 0.0, 1.0) + machine.handover_s(tokens, 0.0, 1.0);
        to_u64(libm::floor((compute.max(weights) + prefill + decode + links) * 1e9))
    }

    /// Where the time of a step goes; no noise.
    pub fn parts(&self, shape: &StepShape) -> StepParts {
        let (machine, coefficients) = (&self.machine, &self.coefficients);
        let tokens = if shape.is_decode_only() && coefficients.cuda_graphs {
            f64::from(padded(to_u32(shape.tokens() as f64), machine.graphs_max))
        } else {
            shape.tokens() as f64
        };
        let small = shape.tokens() <= u64::from(coefficients.small_tokens_max);
        let eta_compute =
            coefficients.eta_small.filter(|_| small).unwrap_or(coefficients.eta_compute);
        let compute =
            self.linear_flops(shape, tokens) / (self.rate(machine.linear_flops) * eta_compute);
        let weights = machine.weight_bytes(tokens)
            / (self.rate(machine.memory_bandwidth) * coefficients.eta_memory);
        let attention_prefill = machine.prefill_flops_per_pair * shape.prefill_pairs
            / (self.rate(machine.attention_flops) * coefficients.eta_attention);
        // Tokens of context that the decodes wait for: a batch ends with its longest.
        let context = shape.decode_context as f64;
        let as_the_longest = f64::from(shape.decodes) * f64::from(shape.decode_context_max);
        let skew = coefficients.kv_skew;
        let skewed = (1.0 - skew) * context + skew * as_the_longest.max(context);
        let latency = coefficients.link_latency_s.unwrap_or(machine.link_latency_s);
        StepParts {
            compute,
            weights,
            linear: norm(compute, weights, coefficients.p_norm),
            attention_prefill,
            attention_decode: self.decode_s(
                shape,
                skewed,
                coefficients.eta_kv,
                coefficients.eta_attention,
            ),
            communication: machine.communication_s(tokens, latency, coefficients.eta_link)
                + machine.handover_s(tokens, latency, coefficients.eta_link),
            fixed: coefficients.step_s * f64::from(machine.pipeline_parallel.max(1))
                + coefficients.layer_s * f64::from(machine.layers)
                + if small { 0.0 } else { coefficients.large_step_s },
            launch: self.launch_s(),
            host: self.host_s(shape),
        }
    }

    /// A rate of one GPU, over the GPUs that share each layer.
    fn rate(&self, of_one: f64) -> f64 {
        of_one * f64::from(self.machine.tensor_parallel.max(1))
    }

    fn linear_flops(&self, shape: &StepShape, tokens: f64) -> f64 {
        let sampled = f64::from(shape.prefills) + f64::from(shape.decodes);
        2.0 * (self.machine.active_parameters * tokens + self.machine.head_parameters * sampled)
    }

    /// Decodes read their context and multiply with it; the slower of the two counts.
    fn decode_s(&self, shape: &StepShape, context: f64, eta_kv: f64, eta_attention: f64) -> f64 {
        if shape.decodes == 0 {
            return 0.0;
        }
        let machine = &self.machine;
        // Bytes are those on one GPU already: heads may be copied to several.
        let read = machine.kv_bytes_per_token * context / (machine.memory_bandwidth * eta_kv);
        let multiply = machine.decode_flops_per_pair * context
            / (self.rate(machine.attention_flops) * eta_attention);
        read.max(multiply)
    }

    fn launch_s(&self) -> f64 {
        if self.machine.graphs_max > 0 {
            return 0.0;
        }
        let (machine, coefficients) = (&self.machine, &self.coefficients);
        let reduced = if machine.tensor_parallel > 1 { ALL_REDUCES / LAYER_KERNELS } else { 0.0 };
        let layers = f64::from(machine.layers) * (1.0 + reduced);
        let handovers = f64::from(machine.pipeline_parallel.max(1) - 1);
        coefficients.launch_s * layers + coefficients.launch_stage_s * handovers
    }

    fn host_s(&self, shape: &StepShape) -> f64 {
        let host = &self.coefficients.host;
        let requests = f64::from(shape.prefills) + f64::from(shape.decodes);
        let decision = host.per_step_s + host.per_finished_s * f64::from(shape.finished);
        // A decision may hold for several steps; a token is sampled and sent in each of them.
        let steps = if shape.is_decode_only() { self.machine.scheduler_steps.max(1) } else { 1 };
        decision / f64::from(steps) + host.per_request_s * requests
    }
}

impl StepTime for PhysicsStep {
    fn step_ns(&mut self, shape: &StepShape) -> u64 {
        let parts = self.parts(shape);
        let step = if self.machine.async_scheduling {
            parts.launched().max(parts.host)
        } else {
            parts.launched() + parts.host
        };
        let factor = noise_factor(&mut self.noise, self.coefficients.noise);
        // Noise shortens a step, but not below what the hardware can do.
        to_u64(libm::ceil(step * factor * 1e9)).max(self.bound_ns(shape))
    }
}

/// One draw of a log-normal factor whose mean is one.
fn noise_factor(draws: &mut Draws, sigma: f64) -> f64 {
    if sigma <= 0.0 {
        return 1.0;
    }
    libm::exp(sigma * draws.normal() - sigma * sigma / 2.0)
}

/// Step times from a learned law, never faster than the hardware, where that is known.
#[derive(Clone, Debug)]
pub struct LearnedStep {
    law: StepLaw,
    hardware: Option<PhysicsStep>,
    noise: Draws,
}

impl LearnedStep {
    /// Takes a law that has passed [`StepLaw::check`].
    pub(crate) fn of_checked(law: StepLaw, hardware: Option<PhysicsStep>, seed: u64) -> Self {
        Self { law, hardware, noise: Draws::new(seed, 0, Purpose::StepNoise) }
    }
}

impl StepTime for LearnedStep {
    fn step_ns(&mut self, shape: &StepShape) -> u64 {
        let factor = noise_factor(&mut self.noise, self.law.spread);
        let bound_ns = self.hardware.as_ref().map_or(1, |hardware| hardware.bound_ns(shape));
        to_u64(libm::ceil(self.law.seconds(shape) * factor * 1e9)).max(bound_ns)
    }
}

/// Where the time of a step comes from.
#[derive(Clone, Debug)]
pub enum StepModel {
    Physics(Box<PhysicsStep>),
    Learned(Box<LearnedStep>),
    Constant(ConstantStep),
}

impl StepModel {
    pub fn constant(step: Duration) -> Self {
        Self::Constant(ConstantStep(u64::try_from(step.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Draws its noise anew, from another seed.
    pub fn reseed(&mut self, seed: u64) {
        match self {
            Self::Physics(physics) => physics.reseed(seed),
            Self::Learned(learned) => learned.noise = Draws::new(seed, 0, Purpose::StepNoise),
            Self::Constant(_) => {}
        }
    }
}

impl StepTime for StepModel {
    fn step_ns(&mut self, shape: &StepShape) -> u64 {
        match self {
            Self::Physics(physics) => physics.step_ns(shape),
            Self::Learned(learned) => learned.step_ns(shape),
            Self::Constant(constant) => constant.step_ns(shape),
        }
    }
}

/// The p-norm of two times, scaled so that no power overflows.
fn norm(a: f64, b: f64, p: f64) -> f64 {
    let (longer, shorter) = (a.max(b), a.min(b));
    if longer <= 0.0 {
        return 0.0;
    }
    longer * libm::pow(1.0 + libm::pow(shorter / longer, p), 1.0 / p)
}

#[cfg(test)]
mod coefficients_tests {
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

#[cfg(test)]
mod graphs_tests {
    use super::*;

    #[test]
    fn batches_run_at_the_next_captured_size() {
        let sizes = [0, 1, 2, 3, 5, 8, 9, 248, 249, 256, 257, 511, 512, 513, 2000];
        let padded: Vec<u32> = sizes.iter().map(|size| padded(*size, GRAPHS_MAX)).collect();
        assert_eq!(padded, [0, 1, 2, 4, 8, 8, 16, 248, 256, 256, 272, 512, 512, 513, 2000]);
    }

    #[test]
    fn a_small_server_captures_less() {
        assert_eq!([padded(3, 20), padded(17, 20), padded(21, 20), padded(7, 0)], [4, 20, 21, 7]);
    }
}
