//! Why a workload cannot be made: which input, and what to do.

use crate::saved::SavedPlanError;

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    SavedPlan(#[from] SavedPlanError),
    #[error("{0} is not built yet")]
    NotYet(&'static str),
}
