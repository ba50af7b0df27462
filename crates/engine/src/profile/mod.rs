//! Profiles: which GPUs, which model, how it is served, and how well.
//!
//! An [`EngineTable`] is what a user typed, all optional; a [`Profile`] is what a server would make of
//! it: defaults filled in as vLLM fills them, the KV blocks counted, or a refusal with the
//! arithmetic. Hardware, models and named profiles are data in `profiles/`.

mod catalogue;
mod compose;
#[cfg(test)]
mod tests;

use std::{fmt, io};

use inferometer_model::spec::{
    Dtype, EngineGeneration, EngineTable, KvCacheDtype, Quantization, SchedulingPolicy,
};

use crate::physics::law::{Seen, StepLaw};
use crate::physics::{
    CoefficientError, Coefficients, Front, LearnedStep, Machine, PhysicsStep, StepModel,
};
use crate::scheduler::SchedulerConfig;

pub use catalogue::{Catalogue, Flops, Gpu, Link, Mla, Model, Moe, Parameters, Vendor, catalogue};
pub use compose::{Fitted, Memory, Numbers, ProfileFile};

/// The profile that is used when none is given.
pub const DEFAULT: &str = "h100-llama-3.1-8b";

/// A server, ready to be played.
#[derive(Clone, Debug)]
pub struct Profile {
    pub name: String,
    pub description: Option<String>,
    pub scheduler: SchedulerConfig,
    pub front: Front,
    pub gpu: Gpu,
    pub model: Model,
    /// In which types it stores and multiplies.
    pub numbers: Numbers,
    pub memory: Memory,
    /// Where the coefficients come from; none for the generic ones.
    pub fitted: Option<Fitted>,
    /// A fit of the same GPU and model in another layout or with another schedule, whose
    /// coefficients these are.
    carried: Option<Fitted>,
    /// What was asked for, over what the named profile asks for.
    choice: EngineTable,
    machine: Machine,
    coefficients: Coefficients,
    /// Step times as learned from a server, instead of those that coefficients give.
    pub law: Option<StepLaw>,
}

impl Profile {
    /// A profile by its name, by the name of a combination (`mi300x-qwen3-32b-tp2`), or by the path
    /// of a TOML file.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Self::compose(&EngineTable { profile: Some(name.to_owned()), ..EngineTable::default() })
    }

    /// A choice laid over the profile that it names, or over the default one.
    pub fn compose(choice: &EngineTable) -> Result<Self, ProfileError> {
        compose::over(compose::base(choice.profile.as_deref())?, choice)
    }

    /// Reads a profile as [`to_toml`](Self::to_toml) writes it; `origin` is named in errors.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ProfileError> {
        compose::over(ProfileFile::read(text, origin)?, &EngineTable::default())
    }

    /// A server with learned step times. Hardware and model may be unknown.
    pub fn from_law(
        serve: &EngineTable,
        name: String,
        law: StepLaw,
        front: Front,
    ) -> Result<Self, ProfileError> {
        let file =
            ProfileFile { name, serve: serve.clone(), law: Some(law), front, ..<_>::default() };
        compose::over(file, &EngineTable::default())
    }

    /// The profile as a file.
    ///
    /// # Panics
    ///
    /// Never: numbers, words and tables always have a TOML form.
    pub fn to_toml(&self) -> String {
        let file = ProfileFile {
            name: self.name.clone(),
            description: self.description.clone(),
            serve: EngineTable {
                profile: None,
                hardware: Some(self.gpu.name.clone()).filter(|_| !self.gpu.is_unknown()),
                model: Some(self.model.name.clone()).filter(|name| name != catalogue::UNKNOWN),
                noise: None,
                speed: None,
                step: None,
                ..self.choice.clone()
            },
            coefficients: self.coefficients,
            front: self.front,
            gpu: Some(self.gpu.clone())
                .filter(|gpu| !catalogue().hardware.contains(gpu) && !gpu.is_unknown()),
            model: Some(self.model.clone()).filter(|model| {
                !catalogue().models.contains(model) && model.name != catalogue::UNKNOWN
            }),
            law: self.law.clone(),
            fitted: self.fitted.clone(),
        };
        toml::to_string(&file).expect("numbers, words and tables always have a TOML form")
    }

    /// Step times with their noise from `seed`.
    pub fn step_time(&self, seed: u64) -> PhysicsStep {
        // Coefficients are checked where they enter a profile.
        PhysicsStep::of_checked(self.machine.clone(), self.coefficients, seed)
    }

    /// Where the time of a step comes from, with its noise from `seed`.
    pub fn step_model(&self, seed: u64) -> StepModel {
        let physics = self.step_time(seed);
        match &self.law {
            Some(law) => {
                let hardware = (!self.gpu.is_unknown()).then_some(physics);
                StepModel::Learned(Box::new(LearnedStep::of_checked(law.clone(), hardware, seed)))
            }
            None => StepModel::Physics(Box::new(physics)),
        }
    }

    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// The deployment as numbers, without coefficients.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What was asked for, by the profile's file and the user.
    pub fn choice(&self) -> &EngineTable {
        &self.choice
    }

    /// The same server with other coefficients, such as those that a fit tries.
    pub fn with_coefficients(self, coefficients: Coefficients) -> Result<Self, CoefficientError> {
        coefficients.check()?;
        Ok(Self { coefficients, ..self })
    }

    /// GPUs of the deployment.
    pub fn gpus(&self) -> u32 {
        self.machine.tensor_parallel * self.machine.pipeline_parallel
    }

    /// Requests of the greatest length that fit into the KV cache at once.
    pub fn max_concurrency(&self) -> f64 {
        let per_request = self.scheduler.max_model_len.div_ceil(self.scheduler.block_size);
        f64::from(self.scheduler.blocks) / f64::from(per_request.max(1))
    }

    /// A few lines with the arithmetic, as a server prints when it starts.
    pub fn describe(&self) -> String {
        let Self { scheduler, memory, machine, name, model, gpu, .. } = self;
        let capacity = u64::from(scheduler.blocks) * u64::from(scheduler.block_size);
        let from_fit =
            |how: &str, fit: &Fitted| format!("{how} to {} rows: {}", fit.rows, fit.source);
        let origin = match (&self.law, &self.fitted, &self.carried) {
            (Some(law), fit, _) => {
                let from = fit.as_ref().map_or_else(String::new, |fit| format!(": {}", fit.source));
                let Seen { batch, context, .. } = law.seen;
                format!(
                    "learned from {} steps of up to {batch} requests, with up to {context} tokens \
                     each{from}",
                    law.steps
                )
            }
            (None, Some(fit), _) => from_fit("fitted", fit),
            (None, None, Some(fit)) => {
                from_fit("carried over from a fit of another layout or schedule", fit)
            }
            (None, None, None) => {
                "from generic coefficients: they are not fitted to a measurement".to_owned()
            }
        };
        let (tokens, requests) = (scheduler.max_num_batched_tokens, scheduler.max_num_seqs);
        let step = format!(
            "a step holds at most {} tokens of {} requests",
            grouped(tokens.into()),
            grouped(requests.into())
        );
        if gpu.is_unknown() {
            let what = "a server whose hardware and model are not stated";
            return format!("{name}: {what}\n{step}\nstep times {origin}");
        }
        format!(
            "{name}: {} ({:.3} billion parameters, {}) on {} x {} (tp {}, pp {})\n\
             per GPU: {} GiB x {} = {} GiB; weights {}, activations {} (estimate), other {}: {} GiB \
             left for the KV cache\n\
             GPU KV cache size: {} tokens ({} blocks of {}, {:.2} MiB each)\n\
             maximum concurrency for {} tokens per request: {:.2}x\n\
             {step}\n\
             step times {origin}",
            model.title,
            model.count().total() / 1e9,
            self.numbers.description(),
            self.gpus(),
            gpu.title,
            machine.tensor_parallel,
            machine.pipeline_parallel,
            gib(memory.total),
            memory.utilization,
            gib(memory.budget),
            gib(memory.weights),
            gib(memory.activations),
            gib(memory.other + memory.graphs),
            gib(memory.left),
            grouped(capacity),
            grouped(scheduler.blocks.into()),
            scheduler.block_size,
            memory.block / MIB,
            grouped(scheduler.max_model_len.into()),
            self.max_concurrency(),
        )
    }
}

pub(super) const GIB: f64 = (1_u64 << 30) as f64;
pub(super) const MIB: f64 = (1_u64 << 20) as f64;

/// Two decimals, without the unit.
pub(super) fn gib(bytes: f64) -> String {
    format!("{:.2}", bytes / GIB)
}

/// 1234567 as `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Why a choice is no server.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("cannot read the profile {path}")]
    Read { path: String, source: io::Error },
    /// A mistake in what was typed or in a profile's file.
    #[error("{0}")]
    Invalid(String),
    /// The model cannot be spread over the GPUs like this.
    #[error("{0}")]
    Layout(String),
    /// An option that the hardware, the model or another option rules out.
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    DoesNotFit(Box<Shortage>),
}

impl ProfileError {
    fn setting(name: &str, value: impl fmt::Display, range: &str) -> Self {
        Self::Invalid(format!("{name} {value}: choose a value from {range}"))
    }
}

/// The arithmetic of a model that does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    pub model: String,
    /// As in `bfloat16`.
    pub numbers: String,
    pub gpu: String,
    pub tp: u32,
    pub pp: u32,
    pub max_model_len: u32,
    pub memory: Memory,
    /// What would help, as flags.
    pub remedies: Vec<String>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, numbers, gpu, tp, pp, max_model_len, memory, remedies } = self;
        writeln!(f, "{model} ({numbers}) does not fit {} x {gpu} (tp {tp}, pp {pp}):", tp * pp)?;
        let (total, utilization) = (gib(memory.total), memory.utilization);
        let rows = [
            (
                "budget per GPU",
                memory.budget,
                format!("  ({total} GiB x {utilization} utilisation)"),
            ),
            ("weights", memory.weights, String::new()),
            ("activations (estimate)", memory.activations, String::new()),
            ("other", memory.other + memory.graphs, String::new()),
            ("left for the KV cache", memory.left, String::new()),
            (
                &format!("{} tokens need", grouped((*max_model_len).into())),
                memory.needed,
                String::new(),
            ),
        ];
        for (what, bytes, note) in rows {
            writeln!(f, "  {what:<22} {:>9} GiB{note}", gib(bytes))?;
        }
        write!(f, "try {}", remedies.join(", or "))
    }
}

#[cfg(test)]
mod grouped_tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(gib(1.5 * GIB), "1.50");
    }
}
