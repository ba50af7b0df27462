//! The time of one step.

use crate::draws::{Draws, Purpose};
use crate::scheduler::{StepShape, StepTime};

use super::graphs;
use super::{CoefficientError, Coefficients, Machine};

/// Step times from work over hardware, with noise where it is asked for.
#[derive(Clone, Debug)]
pub struct PhysicsStep {
    machine: Machine,
    coefficients: Coefficients,
    noise: Draws,
}

/// Kernels of a layer of a Llama: two norms, four matrices, rotation, writing and reading the cache,
/// activation, and what stands between them.
const LAYER_KERNELS: f64 = 12.0;
/// What comes to them where GPUs share the layer.
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
        floor_ns(compute.max(weights) + prefill + decode + links)
    }

    /// Where the time of a step goes; no noise.
    pub fn parts(&self, shape: &StepShape) -> StepParts {
        let (machine, coefficients) = (&self.machine, &self.coefficients);
        let tokens = self.padded_tokens(shape);
        let small = shape.tokens() <= u64::from(coefficients.small_tokens_max);
        let eta_compute =
            coefficients.eta_small.filter(|_| small).unwrap_or(coefficients.eta_compute);
        let compute =
            self.linear_flops(shape, tokens) / (self.rate(machine.linear_flops) * eta_compute);
        let weights = machine.weight_bytes(tokens)
            / (self.rate(machine.memory_bandwidth) * coefficients.eta_memory);
        let attention_prefill = machine.prefill_flops_per_pair * shape.prefill_pairs
            / (self.rate(machine.attention_flops) * coefficients.eta_attention);
        let context = self.skewed_context(shape);
        let latency = coefficients.link_latency_s.unwrap_or(machine.link_latency_s);
        StepParts {
            compute,
            weights,
            linear: norm(compute, weights, coefficients.p_norm),
            attention_prefill,
            attention_decode: self.decode_s(
                shape,
                context,
                coefficients.eta_kv,
                coefficients.eta_attention,
            ),
            communication: machine.communication_s(tokens, latency, coefficients.eta_link)
                + machine.handover_s(tokens, latency, coefficients.eta_link),
            fixed: self.fixed_s(small),
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

    fn padded_tokens(&self, shape: &StepShape) -> f64 {
        if shape.is_decode_only() && self.coefficients.cuda_graphs {
            f64::from(graphs::padded(shape.decodes, self.machine.graphs_max))
        } else {
            shape.tokens() as f64
        }
    }

    /// Tokens of context that the decodes wait for: a batch ends with its longest.
    fn skewed_context(&self, shape: &StepShape) -> f64 {
        let skew = self.coefficients.kv_skew;
        let sum = shape.decode_context as f64;
        let as_the_longest = f64::from(shape.decodes) * f64::from(shape.decode_context_max);
        (1.0 - skew) * sum + skew * as_the_longest.max(sum)
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

    fn fixed_s(&self, small: bool) -> f64 {
        let coefficients = &self.coefficients;
        let large = if small { 0.0 } else { coefficients.large_step_s };
        coefficients.step_s * f64::from(self.machine.pipeline_parallel.max(1))
            + coefficients.layer_s * f64::from(self.machine.layers)
            + large
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

    /// One draw of a log-normal factor whose mean is one.
    fn noise_factor(&mut self) -> f64 {
        let sigma = self.coefficients.noise;
        if sigma <= 0.0 {
            return 1.0;
        }
        libm::exp(sigma * self.noise.normal() - sigma * sigma / 2.0)
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
        // Noise shortens a step, but not below what the hardware can do.
        ceil_ns(step * self.noise_factor()).max(self.bound_ns(shape))
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are positive, and the cast saturates"
)]
fn floor_ns(seconds: f64) -> u64 {
    libm::floor(seconds * 1e9) as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are positive, and the cast saturates"
)]
fn ceil_ns(seconds: f64) -> u64 {
    libm::ceil(seconds * 1e9) as u64
}
