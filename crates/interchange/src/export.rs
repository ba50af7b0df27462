//! From sheets to the files of other tools.

pub mod vllm;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(
        "{name} has no figures of single requests, and the detailed form is made of them; export it \
         in the plain form"
    )]
    NoRequests { name: String },
    #[error("cannot write the result: {0}")]
    Write(#[from] std::io::Error),
}
