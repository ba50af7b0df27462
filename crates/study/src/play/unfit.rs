//! Deployments of the embedded engine that cannot start: a result, as of any server.

use inferometer_engine::profile::{Profile, ProfileError, Shortage};
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause};
use inferometer_model::spec::EngineTable;
use inferometer_runner::{Failure, embedded};

/// Why an engine with these options cannot start; `None` if it can. A mistake in the options, such as
/// an unknown name, is no result and stops the matrix before it begins.
pub fn unfit(spec: &EngineTable) -> Result<Option<DeploymentFailure>, Failure> {
    let Err(error) = Profile::compose(spec) else { return Ok(None) };
    let cause = match &error {
        ProfileError::DoesNotFit(_) => LikelyCause::OutOfMemory,
        ProfileError::TensorParallel { .. } | ProfileError::PipelineParallel { .. } => {
            LikelyCause::CannotSpread
        }
        ProfileError::NoBfloat16 { .. }
        | ProfileError::NoSuchType { .. }
        | ProfileError::PublishedInFp8 { .. }
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
    let first = lines.next().unwrap_or_default();
    let what = if let ProfileError::DoesNotFit(shortage) = &error {
        format!("{first} {}", deciding(shortage))
    } else {
        first
    };
    Ok(Some(DeploymentFailure {
        stage: DeploymentStage::Start,
        what,
        cause: Some(cause),
        log: lines.collect(),
    }))
}

/// The numbers that decide it, of the arithmetic that follows.
fn deciding(shortage: &Shortage) -> String {
    let Shortage { max_model_len, memory, remedies, .. } = shortage;
    if memory.left <= 0.0 {
        let before_cache = memory.budget - memory.left;
        return format!(
            "{:.2} GiB are needed on each GPU before any KV cache, and {:.2} GiB may be used",
            before_cache / GIB,
            memory.budget / GIB
        );
    }
    let longest = remedies.iter().find_map(|remedy| remedy.strip_prefix("--max-model-len "));
    let enough = longest.map_or_else(String::new, |tokens| format!(", enough for {tokens} tokens"));
    format!(
        "{max_model_len} tokens need {:.2} GiB of KV cache on each GPU, and {:.2} GiB are \
         left{enough}",
        memory.needed / GIB,
        memory.left / GIB
    )
}

const GIB: f64 = (1_u64 << 30) as f64;

#[cfg(test)]
mod tests {
    use inferometer_model::spec::Dtype;

    use super::*;

    fn engine(hardware: &str, model: &str) -> EngineTable {
        EngineTable {
            hardware: Some(hardware.to_owned()),
            model: Some(model.to_owned()),
            dtype: Some(Dtype::Half.into()),
            ..EngineTable::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_a_result_and_a_misspelt_name_is_none() {
        let (small, large) = ("v100-pcie-16gb", "deepseek-r1-distill-qwen-32b");
        let failure = unfit(&engine(small, large)).unwrap().unwrap();
        assert_eq!(failure.cause, Some(LikelyCause::OutOfMemory));
        assert_eq!(failure.stage, DeploymentStage::Start);
        assert!(!failure.what.is_empty() && !failure.log.is_empty(), "{failure:?}");
        let part = "GiB are needed on each GPU before any KV cache, and";
        assert!(failure.what.contains(part), "{}", failure.what);
        let short = EngineTable { max_model_len: Some(2048), ..engine("h100-pcie", large) };
        assert_eq!(unfit(&short).unwrap(), None);
        let long = EngineTable { max_model_len: Some(128_000), ..engine(small, "llama-3.2-3b") };
        let long = unfit(&long).unwrap().unwrap();
        assert!(long.what.contains("128000 tokens need"), "{}", long.what);
        assert!(long.what.contains(", enough for "), "{}", long.what);

        let wide = EngineTable { tp: Some(3), ..engine("h100-pcie", large) };
        let wide = unfit(&wide).unwrap().unwrap();
        assert_eq!(wide.cause, Some(LikelyCause::CannotSpread));
        assert!(wide.what.contains("--tp 3 does not divide"), "{}", wide.what);
        let astray = format!("{:?}", unfit(&engine("h100-pcy", large)).unwrap_err());
        assert!(astray.contains("unknown") && astray.contains("h100-pcie"), "{astray}");
    }
}
