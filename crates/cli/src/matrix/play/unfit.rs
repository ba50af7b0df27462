//! Deployments of the embedded engine that cannot be: a result, as of any server.

use inferometer_engine::profile::{Profile, ProfileError};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause};
use inferometer_model::spec::EngineSpec;

use crate::embedded;
use crate::failure::Failure;

/// Why no engine can be so, in its own words; `None` where one can. A mistake in what was asked, such
/// as a name that nobody knows, is no result and stops the matrix before it begins.
pub(in crate::matrix) fn reason(spec: &EngineSpec) -> Result<Option<DeploymentFailure>, Failure> {
    let Err(error) = Profile::compose(&embedded::choice(spec)?) else { return Ok(None) };
    let cause = match &error {
        ProfileError::DoesNotFit(_) => LikelyCause::OutOfMemory,
        ProfileError::NoBfloat16 { .. }
        | ProfileError::NoSuchType { .. }
        | ProfileError::PublishedInFp8 { .. }
        | ProfileError::TensorParallel { .. }
        | ProfileError::PipelineParallel { .. }
        | ProfileError::BeyondModel { .. }
        | ProfileError::TwoQuantizations
        | ProfileError::StepTooSmall { .. }
        | ProfileError::TooManySeqs { .. }
        | ProfileError::StepsNeedV0 { .. }
        | ProfileError::ChunksNeedV1 => LikelyCause::BadFlag,
        ProfileError::Unknown { .. }
        | ProfileError::Read { .. }
        | ProfileError::Parse { .. }
        | ProfileError::Nested { .. }
        | ProfileError::Incomplete { .. }
        | ProfileError::Coefficients { .. }
        | ProfileError::Setting { .. } => return Err(embedded::refusal(&error)),
    };
    let text = error.to_string();
    let mut lines = text.lines().map(str::to_owned);
    Ok(Some(DeploymentFailure {
        stage: DeploymentStage::Start,
        what: lines.next().unwrap_or_default(),
        cause: Some(cause),
        log: lines.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(hardware: &str, model: &str) -> EngineSpec {
        EngineSpec {
            hardware: Some(hardware.to_owned()),
            model: Some(model.to_owned()),
            dtype: Some("half".to_owned()),
            ..EngineSpec::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_a_result_and_a_misspelt_name_is_none() {
        let (small, large) = ("v100-pcie-16gb", "deepseek-r1-distill-qwen-32b");
        let failure = reason(&engine(small, large)).unwrap().unwrap();
        assert_eq!(failure.cause, Some(LikelyCause::OutOfMemory));
        assert_eq!(failure.stage, DeploymentStage::Start);
        assert!(!failure.what.is_empty() && !failure.log.is_empty(), "{failure:?}");
        assert_eq!(reason(&engine("h100-pcie", large)).unwrap(), None);

        let wide = EngineSpec { tp: Some(3), ..engine("h100-pcie", large) };
        assert_eq!(reason(&wide).unwrap().unwrap().cause, Some(LikelyCause::BadFlag));
        let astray = format!("{:?}", reason(&engine("h100-pcy", large)).unwrap_err());
        assert!(astray.contains("unknown") && astray.contains("h100-pcie"), "{astray}");
    }
}
