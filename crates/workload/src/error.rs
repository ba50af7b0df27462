//! Why a workload cannot be made: which input, and what to do.

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{0} is not built yet")]
    NotYet(&'static str),
}
