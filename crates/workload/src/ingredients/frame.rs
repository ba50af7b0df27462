//! What stands around a prompt and is part of its length, by the API that it is sent to.

use inferometer_model::Spec;
use inferometer_model::endpoint::Api;
use inferometer_model::spec::Counting;

use crate::error::WorkloadError;
use crate::text::Frame;

pub(super) fn of(spec: &Spec) -> Result<Frame, WorkloadError> {
    match (spec.workload.counting, prompts_of(spec.api)) {
        (Counting::WithTemplate, Sent::AsMessages) => Ok(Frame::Template),
        (Counting::WithTemplate, Sent::Raw | Sent::IntoTemplate) => {
            let rendering = Api::ALL.into_iter().filter(|api| prompts_of(*api) == Sent::AsMessages);
            let with_template = rendering.map(Api::name).collect::<Vec<_>>().join(", ");
            Err(WorkloadError::NoTemplateApi { api: spec.api.name(), with_template })
        }
        (Counting::Prompt, Sent::Raw) => Ok(Frame::SpecialTokens),
        (Counting::Prompt, Sent::AsMessages | Sent::IntoTemplate) => Ok(Frame::None),
    }
}

/// How a prompt reaches the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// As messages, which the server renders by the model's chat template.
    AsMessages,
    /// As text, which the server puts into a template of its own.
    IntoTemplate,
    /// As text that the model sees as it is, between the tokenizer's special tokens.
    Raw,
}

fn prompts_of(api: Api) -> Sent {
    match api {
        Api::Chat | Api::Responses | Api::Messages | Api::OllamaChat => Sent::AsMessages,
        Api::OllamaGenerate => Sent::IntoTemplate,
        Api::Completions
        | Api::Embeddings
        | Api::Rerank
        | Api::TgiGenerate
        | Api::SglangGenerate
        | Api::LlamaCompletion
        | Api::TritonGenerate => Sent::Raw,
    }
}
