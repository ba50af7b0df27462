//! Why a workload cannot be made: which input, and what to do.

use crate::dataset::DatasetError;
use crate::saved::SavedPlanError;
use crate::trace::TraceError;

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    SavedPlan(#[from] SavedPlanError),
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("{0} is not built yet")]
    NotYet(&'static str),
}
