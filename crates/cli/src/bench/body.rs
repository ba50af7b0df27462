//! What a request of the other client carries beside its prompt.

use inferometer_model::endpoint::Api;
use inferometer_model::spec::{AdapterChoice, BodyTable, PinOutput};
use serde_json::{Value, json};

use crate::arguments::{LoraAssignment, ServeBenchArguments};
use crate::failure::Failure;

/// `goes_on` is whether answers are to have the length that was asked for.
pub(super) fn table(
    said: &ServeBenchArguments,
    api: Api,
    goes_on: bool,
) -> Result<BodyTable, Failure> {
    let body = &said.body;
    let mut fields = body.extra_body.clone().unwrap_or_default();
    // What was typed as a whole body wins over single flags.
    let sampling = body.sampling.fields();
    if !api.generates() && !sampling.is_empty() {
        return Err(Failure::usage("sampling flags need a backend that generates text"));
    }
    let of_client = [
        // Sent with every completion, so that the server's own default does not count.
        ("repetition_penalty", (api == Api::Completions).then(|| json!(1.0))),
        ("logprobs", body.logprobs.map(Value::from)),
        ("truncate_prompt_tokens", (api == Api::Embeddings).then(|| json!(-1))),
        ("ignore_eos", (goes_on && api.generates()).then_some(Value::Bool(true))),
    ];
    if body.logprobs.is_some() && api != Api::Completions {
        return Err(Failure::usage("--logprobs is only sent with completions")
            .hint("for chat: --extra-body '{\"logprobs\": true, \"top_logprobs\": 1}'"));
    }
    let of_client =
        of_client.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
    for (field, value) in sampling.into_iter().chain(of_client) {
        fields.entry(field).or_insert(value);
    }
    let adapters = said.target.lora_modules.clone();
    let choice = match said.target.lora_assignment {
        None | Some(LoraAssignment::Random) => AdapterChoice::Random,
        Some(LoraAssignment::RoundRobin) => AdapterChoice::RoundRobin,
    };
    Ok(BodyTable {
        // The fields above are all that the other client sends.
        pin_output: Some(PinOutput::Never),
        lora_choice: (!adapters.is_empty()).then_some(choice.into()),
        lora: (!adapters.is_empty()).then_some(adapters),
        extra: Some(fields).filter(|fields| !fields.is_empty()),
        ..BodyTable::default()
    })
}
