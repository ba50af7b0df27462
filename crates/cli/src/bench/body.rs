//! What a request of the other client carries beside its prompt.

use inferometer_model::endpoint::Api;
use inferometer_model::spec::{AdapterChoice, PinOutput};
use serde_json::{Value, json};

use crate::arguments::{BodyTable, LoraAssignment, ServeBenchArguments, Written};
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
    let sampling = [
        ("temperature", body.temperature.map(Value::from)),
        ("top_p", body.top_p.map(Value::from)),
        ("top_k", body.top_k.map(Value::from)),
        ("min_p", body.min_p.map(Value::from)),
        ("frequency_penalty", body.frequency_penalty.map(Value::from)),
        ("presence_penalty", body.presence_penalty.map(Value::from)),
        ("repetition_penalty", body.repetition_penalty.map(Value::from)),
    ];
    if !api.generates() && sampling.iter().any(|(_, value)| value.is_some()) {
        return Err(Failure::usage("flags of sampling need a backend that generates text"));
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
    for (field, value) in sampling.into_iter().chain(of_client) {
        let Some(value) = value else { continue };
        fields.entry(field).or_insert(value);
    }
    let adapters = said.target.lora_modules.clone();
    let choice = match said.target.lora_assignment {
        None | Some(LoraAssignment::Random) => AdapterChoice::Random,
        Some(LoraAssignment::RoundRobin) => AdapterChoice::RoundRobin,
    };
    Ok(BodyTable {
        // The fields above are all that the other client sends.
        pin_output: Some(Written(PinOutput::Never)),
        lora_choice: (!adapters.is_empty()).then_some(Written(choice)),
        lora: (!adapters.is_empty()).then_some(adapters),
        extra: Some(fields).filter(|fields| !fields.is_empty()),
        ..BodyTable::default()
    })
}
