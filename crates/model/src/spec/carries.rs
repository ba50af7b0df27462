//! What a workload asks for that its API cannot carry. It would be left out in silence, and the run
//! would measure something else.

use serde_json::{Map, Value};

use super::{Source, SpecError, Workload};
use crate::endpoint::Api;

pub(super) fn check(api: Api, workload: &Workload) -> Result<(), SpecError> {
    let body = &workload.body;
    let wanted = [
        (body.adapters.is_some(), "--lora", (|api| api.facts().takes_adapters) as fn(Api) -> bool),
        (body.images.is_some(), "--images", |api| api.facts().takes_images),
        (converses(&workload.source), "--turns", Api::generates),
    ];
    for (is_wanted, flag, can) in wanted {
        if is_wanted && !can(api) {
            let able: Vec<&str> =
                Api::ALL.into_iter().filter(|api| can(*api)).map(Api::name).collect();
            return Err(SpecError::NotCarried { flag, api, able: able.join(", ") });
        }
    }
    check_fields(api, &body.fields)
}

fn converses(source: &Source) -> bool {
    match source {
        Source::Conversations(_) => true,
        Source::Mix(parts) => parts.iter().any(|part| converses(&part.source)),
        Source::Synthetic(_)
        | Source::VllmRandom(_)
        | Source::Dataset(_)
        | Source::Fixed(_)
        | Source::Trace(_)
        | Source::Saved { .. } => false,
    }
}

fn check_fields(api: Api, fields: &Map<String, Value>) -> Result<(), SpecError> {
    let inner = match api.facts().container.and_then(|name| Some((name, fields.get(name)?))) {
        Some((_, Value::Object(inner))) => Some(inner),
        Some((name, _)) => return Err(SpecError::NotAnObject(name)),
        None => None,
    };
    let is_set = |field: &str| {
        fields.contains_key(field) || inner.is_some_and(|inner| inner.contains_key(field))
    };
    match api.facts().own_fields.iter().find(|field| is_set(field)) {
        Some(field) => Err(SpecError::OwnField(field)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{BodyTable, Lengths, SourceTable, SpecDraft, TargetTable, WorkloadTable};
    use super::*;

    fn resolve(api: Api, source: SourceTable, body: BodyTable) -> Result<(), SpecError> {
        let workload = WorkloadTable { source, body, ..WorkloadTable::default() };
        let target = TargetTable { api: Some(api), ..TargetTable::default() };
        SpecDraft { target, workload, ..SpecDraft::default() }.resolve().map(|_| ())
    }

    /// The APIs that refuse it, by name, with the flag and the others in the message.
    fn refusing(flag: &str, source: &SourceTable, body: &BodyTable) -> Vec<&'static str> {
        let refuse = |api: &Api| match resolve(*api, source.clone(), body.clone()) {
            Ok(()) => false,
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains(flag) && message.contains("chat"), "{message}");
                true
            }
        };
        Api::ALL.into_iter().filter(refuse).map(Api::name).collect()
    }

    #[test]
    fn what_an_api_has_no_place_for_is_refused() {
        let (source, body) = (SourceTable::default(), BodyTable::default());
        assert!(refusing("", &source, &body).is_empty());
        let adapters = BodyTable { lora: Some(vec!["l".to_owned()]), ..BodyTable::default() };
        assert_eq!(refusing("--lora", &source, &adapters), ["tgi", "llama-completion", "triton"]);
        let images = BodyTable { images: Some(1), ..BodyTable::default() };
        let without =
            ["completions", "embeddings", "rerank", "tgi", "sglang", "llama-completion", "triton"];
        assert_eq!(refusing("--images", &source, &images), without);
        let turns = Some(Lengths::Fixed(3));
        let talks = SourceTable { turns, ..SourceTable::default() };
        assert_eq!(refusing("--turns", &talks, &body), ["embeddings", "rerank"]);
    }

    #[test]
    fn fields_that_the_measurement_sets_are_refused_under_every_name() {
        let with = |api, fields: Value| {
            let Value::Object(fields) = fields else { panic!("not an object") };
            let body = BodyTable { extra: Some(fields), ..BodyTable::default() };
            resolve(api, SourceTable::default(), body)
        };
        for (api, field) in [
            (Api::OllamaChat, "num_predict"),
            (Api::LlamaCompletion, "n_predict"),
            (Api::TgiGenerate, "max_new_tokens"),
            (Api::TgiGenerate, "inputs"),
            (Api::SglangGenerate, "text"),
            (Api::Responses, "max_output_tokens"),
        ] {
            assert_eq!(with(api, json!({field: 1})), Err(SpecError::OwnField(field)), "{api}");
        }
        let inside = json!({"options": {"num_predict": 1}});
        assert_eq!(with(Api::OllamaChat, inside), Err(SpecError::OwnField("num_predict")));
        assert_eq!(with(Api::OllamaChat, json!({"options": {"top_k": 1}})), Ok(()));
        assert_eq!(with(Api::Chat, json!({"text": 1})), Ok(()), "another API's");
        let plain = json!({"options": 1});
        assert_eq!(with(Api::OllamaChat, plain), Err(SpecError::NotAnObject("options")));
    }
}
