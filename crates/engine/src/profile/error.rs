//! Why there is no such profile.

use std::{fmt, io};

use super::Memory;
use super::describe::{gib, grouped};
use crate::physics::CoefficientError;

/// Why a choice is no server.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("unknown {kind} `{name}`; {known}; `inferometer engine --list` shows all")]
    Unknown { kind: &'static str, name: String, known: String },
    #[error("cannot read the profile {path}")]
    Read { path: String, source: io::Error },
    #[error("{origin} is not a profile: {source}")]
    Parse { origin: String, source: Box<toml::de::Error> },
    #[error("a profile's file cannot name another profile; name hardware and model in {origin}")]
    Nested { origin: String },
    #[error("{origin} must name `hardware` and `model` in its table [serve]")]
    Incomplete { origin: String },
    #[error("coefficients of {profile}: {source}")]
    Coefficients { profile: String, source: CoefficientError },
    #[error(
        "bfloat16 needs a GPU with such matrix units (compute capability 8.0 or later), which {gpu} is not; use float16 instead: --dtype half"
    )]
    NoBfloat16 { gpu: String },
    #[error("{gpu} cannot multiply in {what}; use --quantization int4, or none")]
    NoSuchType { gpu: String, what: &'static str },
    #[error(
        "{model} is published in fp8, which {gpu} cannot multiply in; use --quantization int4, or none"
    )]
    PublishedInFp8 { gpu: String, model: String },
    #[error("--dtype fp8 is a quantisation itself; leave out one of --dtype and --quantization")]
    TwoQuantizations,
    #[error(
        "--tp {tp} does not divide the {heads} {kind} heads of {model}; choose one of {choices}"
    )]
    TensorParallel { tp: u32, heads: u32, kind: &'static str, model: String, choices: String },
    #[error("--pp {pp} is more than the {layers} layers of {model}")]
    PipelineParallel { pp: u32, layers: u32, model: String },
    #[error("{name} {value}: choose a value from {range}")]
    Setting { name: &'static str, value: String, range: &'static str },
    #[error(
        "--max-model-len {asked} is more than the {limit} positions of {model}; use at most {limit}"
    )]
    BeyondModel { model: String, asked: u32, limit: u32 },
    #[error(
        "--max-num-batched-tokens {max_num_batched_tokens} is less than the {max_model_len} tokens of the longest request, and prompts are not chunked; raise it, lower --max-model-len, or turn chunked prefill on"
    )]
    StepTooSmall { max_num_batched_tokens: u32, max_model_len: u32 },
    #[error(
        "--max-num-seqs {max_num_seqs} is more than --max-num-batched-tokens {max_num_batched_tokens}; each request needs a token of the step"
    )]
    TooManySeqs { max_num_seqs: u32, max_num_batched_tokens: u32 },
    #[error("--num-scheduler-steps {steps} belongs to the older scheduler; add --generation v0")]
    StepsNeedV0 { steps: u32 },
    #[error(
        "--enable-chunked-prefill belongs to the newer scheduler: the older one, as it is played here, takes prompts whole; leave out one of it and --generation v0"
    )]
    ChunksNeedV1,
    #[error("{0}")]
    DoesNotFit(Box<Shortage>),
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
        let row = |f: &mut fmt::Formatter<'_>, what: &str, bytes: f64| {
            writeln!(f, "  {what:<22} {:>9} GiB", gib(bytes))
        };
        writeln!(
            f,
            "  {:<22} {:>9} GiB  ({} GiB x {} utilisation)",
            "budget per GPU",
            gib(memory.budget),
            gib(memory.total),
            memory.utilization
        )?;
        row(f, "weights", memory.weights)?;
        row(f, "activations (estimate)", memory.activations)?;
        row(f, "other", memory.other + memory.graphs)?;
        row(f, "left for the KV cache", memory.left)?;
        let longest = format!("{} tokens need", grouped(u64::from(*max_model_len)));
        row(f, &longest, memory.needed)?;
        write!(f, "try {}", remedies.join(", or "))
    }
}
