//! Why a workload cannot be made: which input, and what to do.

use crate::text::TextError;
use crate::tokenizer::TokenizerError;

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{0} is not built yet")]
    NotYet(&'static str),
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
}
