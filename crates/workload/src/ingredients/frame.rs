//! What surrounds a prompt and is part of its length, by the API that it is sent to.

use inferometer_model::Spec;
use inferometer_model::endpoint::{Api, PromptForm};
use inferometer_model::spec::Counting;

use crate::error::WorkloadError;
use crate::text::Frame;

pub(super) fn frame_for(spec: &Spec) -> Result<Frame, WorkloadError> {
    let form = |api: Api| api.facts().prompt_form;
    match (spec.workload.counting, form(spec.api)) {
        (Counting::WithTemplate, PromptForm::Messages) => Ok(Frame::Template),
        (Counting::WithTemplate, PromptForm::Raw | PromptForm::Templated) => {
            let rendering = Api::ALL.into_iter().filter(|api| form(*api) == PromptForm::Messages);
            let with_template = rendering.map(Api::name).collect::<Vec<_>>().join(", ");
            Err(WorkloadError::NoTemplateApi { api: spec.api.name(), with_template })
        }
        (Counting::Prompt, PromptForm::Raw) => Ok(Frame::SpecialTokens),
        (Counting::Prompt, PromptForm::Messages | PromptForm::Templated) => Ok(Frame::None),
    }
}
