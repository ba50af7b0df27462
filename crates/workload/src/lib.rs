//! Spec to plan: when requests leave, and what they say. Everything follows from the spec, the
//! files that it names, and its seed, byte for byte, on every machine.

pub mod arrivals;
mod counter;
mod data_file;
mod dataset;
pub mod fingerprint;
pub mod gamma;
pub mod hub;
pub mod inputs;
mod lengths;
mod media;
pub mod plan;
mod prompts;
pub mod saved;
mod sessions;
pub mod stripe;
pub mod text;
pub mod tokenizer;
mod trace;

pub use data_file::DataFileError;
pub use dataset::DatasetError;
pub use inputs::Inputs;
pub use plan::{make_plan, make_warm_up};
pub use sessions::SessionsError;
pub use trace::TraceError;

use saved::SavedPlanError;
use text::TextError;
use tokenizer::TokenizerError;

/// Why a workload cannot be made: which input, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    SavedPlan(#[from] SavedPlanError),
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error(transparent)]
    Media(#[from] DataFileError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Sessions(#[from] SessionsError),
    #[error("prompts of the kind `vllm-random` are token ids, so they need --tokenizer")]
    NoTokenizer,
    #[error(
        "`{0}` has token ids but no text, so no prompt can be sent; give a tokenizer, or simulate the run"
    )]
    NoWords(String),
    #[error(
        "`{0}` is not a vocabulary; write its size, such as vocabulary:131072, and behind a comma how \
         many of its first ids are special"
    )]
    BadVocabulary(String),
    #[error("the vocabulary of `{name}` is too large: at most {bound} ids can be drawn from")]
    LargeVocabulary { name: String, bound: u32 },
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("the tokenizer `{0}` has no ordinary tokens to draw prompts from; give another")]
    NoVocabulary(String),
    #[error(
        "an input of {input} tokens leaves none beside the {special} special ones that the \
         tokenizer adds; ask for longer prompts, or for a prefix"
    )]
    InputTooShort { input: String, special: u32 },
    #[error("the model's chat template refuses the --prompt; count the prompt alone")]
    TemplateRefuses,
    #[error(
        "{requests} requests of the kind `vllm-random` are more than the {bound} whose lengths can \
         be drawn beforehand; ask for fewer requests, a shorter time or a lower rate"
    )]
    TooManyDrawn { requests: u64, bound: u64 },
    #[error(
        "--count with-template counts what the server's chat template adds, and `{api}` renders \
         none; leave it out, or use one of the APIs that do: {with_template}"
    )]
    NoTemplateApi { api: &'static str, with_template: String },
}
