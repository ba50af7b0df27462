//! Profiles: which GPUs, which model, how it is served, and how well.
//!
//! An [`EngineTable`] is what a user typed, all optional; a [`Profile`] is what a server would make of
//! it: defaults filled in as vLLM fills them, the KV blocks counted, or a refusal with the
//! arithmetic. Hardware, models and named profiles are data in `profiles/`.

mod catalogue;
mod compose;
mod describe;
mod error;
mod file;
mod hardware;
mod memory;
#[cfg(test)]
mod tests;

use inferometer_model::spec::{
    Dtype, EngineGeneration, EngineTable, KvCacheDtype, Quantization, SchedulingPolicy,
};

use crate::physics::{CoefficientError, Coefficients, Front, Machine, PhysicsStep};
use crate::scheduler::SchedulerConfig;

pub use describe::{Listing, ProfileRow, list};
pub use error::{ProfileError, Shortage};
pub use file::Fitted;
pub use file::Numbers;
pub use hardware::{Flops, Gpu, Link, Vendor};
pub use hardware::{Mla, Model, Moe, Parameters};
pub use memory::Memory;

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
}

impl Profile {
    /// A profile by its name, by the name of a combination (`mi300x-qwen3-32b-tp2`), or by the path
    /// of a TOML file.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Self::compose(&EngineTable { profile: Some(name.to_owned()), ..EngineTable::default() })
    }

    /// A choice laid over the profile that it names, or over the default one.
    pub fn compose(choice: &EngineTable) -> Result<Self, ProfileError> {
        compose::profile(choice)
    }

    /// Reads a profile as [`to_toml`](Self::to_toml) writes it; `origin` is named in errors.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ProfileError> {
        compose::over(file::ProfileFile::read(text, origin)?, &EngineTable::default())
    }

    pub fn to_toml(&self) -> String {
        file::ProfileFile::of(self).write()
    }

    /// Step times with their noise from `seed`.
    pub fn step_time(&self, seed: u64) -> PhysicsStep {
        // Coefficients are checked where they enter a profile.
        PhysicsStep::of_checked(self.machine.clone(), self.coefficients, seed)
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
        describe::text(self)
    }
}
