//! What a workload's flags come to, and which are refused.

use serde_json::json;

use super::super::{SpecDraft, TargetTable};
use super::*;

fn resolve(source: SourceTable) -> Result<Source, SpecError> {
    let draft = WorkloadTable { source, ..WorkloadTable::default() };
    draft.resolve().map(|workload| workload.source)
}

#[test]
fn nothing_typed_is_synthetic() {
    let Source::Synthetic(synthetic) = resolve(SourceTable::default()).unwrap() else {
        panic!("another source")
    };
    assert_eq!(synthetic.input, Lengths::Fixed(INPUT_TOKENS));
    assert_eq!(synthetic.prefix, None);
}

#[test]
fn two_sources_are_refused_by_name() {
    let both = SourceTable {
        prompt: Some("hi".to_owned()),
        trace: Some("t.jsonl".into()),
        ..SourceTable::default()
    };
    assert_eq!(resolve(both), Err(SpecError::TwoSources("--prompt", "--trace")));
}

#[test]
fn what_would_change_nothing_is_refused() {
    let source = SourceTable::default;
    let refused = |draft| match resolve(draft) {
        Err(SpecError::Stray { flag, .. }) => flag,
        other => panic!("{other:?}"),
    };
    let (prefixes, prefix_zipf) = (Some(3), Some(1.0));
    assert_eq!(refused(SourceTable { prefixes, ..source() }), "--prefixes");
    let nothing = SourceTable { prefix_tokens: Some(0), ..source() };
    assert_eq!(refused(SourceTable { prefixes, ..nothing }), "--prefixes");
    let vllm =
        SourceTable { source: Some(SourceName::VllmRandom), prefix_tokens: Some(9), ..source() };
    assert_eq!(refused(SourceTable { prefixes, ..vllm.clone() }), "--prefixes");
    assert_eq!(refused(SourceTable { prefix_zipf, ..vllm }), "--prefix-zipf");
    let dataset = SourceTable { dataset: Some("d.csv".into()), ..source() };
    let dataset = SourceTable { dataset_kind: Some(DatasetKind::Csv), ..dataset };
    assert_eq!(refused(SourceTable { input_tokens: Some(9.into()), ..dataset }), "--input-tokens");
}

#[test]
fn beside_a_mix_nothing_may_be_said_of_a_source() {
    let beside = |source| {
        let mix = vec![MixTable::default()];
        WorkloadTable { source, mix, ..WorkloadTable::default() }.resolve()
    };
    assert!(beside(SourceTable::default()).is_ok());
    let prefix = SourceTable { prefix_tokens: Some(9), ..SourceTable::default() };
    let order = SourceTable { keep_order: Some(true), ..SourceTable::default() };
    for source in [prefix, order] {
        assert_eq!(beside(source), Err(SpecError::MixAndSource));
    }
}

#[test]
fn weights_that_add_up_to_no_number_are_refused() {
    let part = MixTable { weight: Some(1e308), ..MixTable::default() };
    let mix = vec![part.clone(), part];
    let draft = WorkloadTable { mix, ..WorkloadTable::default() };
    assert_eq!(draft.resolve(), Err(SpecError::MixWeights));
}

#[test]
fn more_turns_than_a_conversation_can_have_are_refused() {
    let turns = |text: &str| {
        resolve(SourceTable { turns: Some(text.parse().unwrap()), ..SourceTable::default() })
    };
    let (name, bound) = ("--turns", TURNS_MAX.into());
    let refused = |value| Err(SpecError::TooLarge { name, value, bound });
    assert_eq!(turns("10001"), refused(10_001));
    assert_eq!(turns("uniform:2..20000"), refused(20_000));
    assert!(turns("10000").is_ok());
}

#[test]
fn a_template_is_not_counted_where_the_lengths_are_another_programs() {
    let draft = WorkloadTable {
        source: SourceTable { source: Some(SourceName::VllmRandom), ..SourceTable::default() },
        tokenizer: Some("model".to_owned()),
        count: Some(Counting::WithTemplate),
        ..WorkloadTable::default()
    };
    assert!(matches!(draft.resolve(), Err(SpecError::Stray { .. })));
}

#[test]
fn a_body_field_of_our_own_is_refused() {
    for field in ["stream", "max_completion_tokens", "n"] {
        let mut fields = Map::new();
        fields.insert(field.to_owned(), Value::from(2));
        let body = BodyTable { extra: Some(fields), ..BodyTable::default() };
        let draft = WorkloadTable { body, ..WorkloadTable::default() };
        assert_eq!(draft.resolve(), Err(SpecError::OwnField(field)));
    }
}

#[test]
fn a_body_field_is_set_once() {
    let sampling = SamplingTable { temperature: Some(0.5), ..SamplingTable::default() };
    let stop = Some(vec!["END".to_owned()]);
    let body = BodyTable { sampling, stop, ..BodyTable::default() };
    let draft = WorkloadTable { body: body.clone(), ..WorkloadTable::default() };
    let fields = Value::Object(draft.resolve().unwrap().body.fields);
    assert_eq!(fields, serde_json::json!({ "temperature": 0.5, "stop": ["END"] }));
    let extra = [("temperature".to_owned(), Value::from(1))].into_iter().collect();
    let twice = WorkloadTable { body: BodyTable { extra: Some(extra), ..body }, ..<_>::default() };
    assert_eq!(twice.resolve(), Err(SpecError::FieldTwice("temperature".to_owned())));
}

fn resolve_with(api: Api, source: SourceTable, body: BodyTable) -> Result<(), SpecError> {
    let workload = WorkloadTable { source, body, ..WorkloadTable::default() };
    let target = TargetTable { api: Some(api), ..TargetTable::default() };
    SpecDraft { target, workload, ..SpecDraft::default() }.resolve().map(|_| ())
}

/// The APIs that refuse it, by name, with the flag and the others in the message.
fn refusing(flag: &str, source: &SourceTable, body: &BodyTable) -> Vec<&'static str> {
    let refuse = |api: &Api| match resolve_with(*api, source.clone(), body.clone()) {
        Ok(()) => false,
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains(flag) && message.contains("chat"), "{message}");
            true
        }
    };
    Api::VARIANTS.iter().filter(|api| refuse(api)).map(|api| api.name()).collect()
}

#[test]
fn what_an_api_has_no_place_for_is_refused() {
    let (source, body) = (SourceTable::default(), BodyTable::default());
    assert!(refusing("", &source, &body).is_empty());
    let adapters = BodyTable { lora: Some(vec!["l".to_owned()]), ..BodyTable::default() };
    assert_eq!(refusing("--lora", &source, &adapters), ["tgi", "llama-completion", "triton"]);
    let images = BodyTable { images: Some(1), ..BodyTable::default() };
    let without = [
        "completions",
        "embeddings",
        "rerank",
        "tgi",
        "sglang",
        "llama-completion",
        "triton",
        "pooling",
        "classify",
    ];
    assert_eq!(refusing("--images", &source, &images), without);
    let turns = Some(Lengths::Fixed(3));
    let talks = SourceTable { turns, ..SourceTable::default() };
    assert_eq!(refusing("--turns", &talks, &body), ["embeddings", "rerank", "pooling", "classify"]);
}

#[test]
fn fields_that_the_measurement_sets_are_refused_under_every_name() {
    let with = |api, fields: Value| {
        let Value::Object(fields) = fields else { panic!("not an object") };
        let body = BodyTable { extra: Some(fields), ..BodyTable::default() };
        resolve_with(api, SourceTable::default(), body)
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
