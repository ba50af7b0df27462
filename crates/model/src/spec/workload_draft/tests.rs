//! What a workload's flags come to, and which are refused.

use super::*;

fn resolve(source: SourceDraft) -> Result<Source, SpecError> {
    let draft = WorkloadDraft { source, ..WorkloadDraft::default() };
    draft.resolve().map(|workload| workload.source)
}

#[test]
fn nothing_typed_is_synthetic() {
    let Source::Synthetic(synthetic) = resolve(SourceDraft::default()).unwrap() else {
        panic!("another source")
    };
    assert_eq!(synthetic.input, Lengths::Fixed(INPUT_TOKENS));
    assert_eq!(synthetic.prefix, None);
}

#[test]
fn two_sources_are_refused_by_name() {
    let both = SourceDraft {
        prompt: Some("hi".to_owned()),
        trace: Some("t.jsonl".into()),
        ..SourceDraft::default()
    };
    assert_eq!(resolve(both), Err(SpecError::TwoSources("--prompt", "--trace")));
}

#[test]
fn what_would_change_nothing_is_refused() {
    let source = SourceDraft::default;
    let refused = |draft| match resolve(draft) {
        Err(SpecError::Stray { flag, .. }) => flag,
        other => panic!("{other:?}"),
    };
    let (prefixes, prefix_zipf) = (Some(3), Some(1.0));
    assert_eq!(refused(SourceDraft { prefixes, ..source() }), "--prefixes");
    let nothing = SourceDraft { prefix_tokens: Some(0), ..source() };
    assert_eq!(refused(SourceDraft { prefixes, ..nothing }), "--prefixes");
    let vllm = SourceDraft { vllm_random: true, prefix_tokens: Some(9), ..source() };
    assert_eq!(refused(SourceDraft { prefixes, ..vllm.clone() }), "--prefixes");
    assert_eq!(refused(SourceDraft { prefix_zipf, ..vllm }), "--prefix-zipf");
    let dataset = SourceDraft { dataset: Some("d.csv".into()), ..source() };
    let dataset = SourceDraft { dataset_kind: Some(DatasetKind::Csv), ..dataset };
    assert_eq!(refused(SourceDraft { input: Some(9.into()), ..dataset }), "--input-tokens");
}

#[test]
fn beside_a_mix_nothing_may_be_said_of_a_source() {
    let beside = |source| {
        let mix = vec![MixDraft::default()];
        WorkloadDraft { source, mix, ..WorkloadDraft::default() }.resolve()
    };
    assert!(beside(SourceDraft::default()).is_ok());
    let prefix = SourceDraft { prefix_tokens: Some(9), ..SourceDraft::default() };
    let order = SourceDraft { keep_order: true, ..SourceDraft::default() };
    for source in [prefix, order] {
        assert_eq!(beside(source), Err(SpecError::MixAndSource));
    }
}

#[test]
fn weights_that_add_up_to_no_number_are_refused() {
    let part = MixDraft { weight: Some(1e308), ..MixDraft::default() };
    let mix = vec![part.clone(), part];
    let draft = WorkloadDraft { mix, ..WorkloadDraft::default() };
    assert_eq!(draft.resolve(), Err(SpecError::MixWeights));
}

#[test]
fn more_turns_than_a_conversation_can_have_are_refused() {
    let turns = |text: &str| {
        resolve(SourceDraft { turns: Some(text.parse().unwrap()), ..SourceDraft::default() })
    };
    let (name, bound) = ("--turns", TURNS_MAX.into());
    let refused = |value| Err(SpecError::TooLarge { name, value, bound });
    assert_eq!(turns("10001"), refused(10_001));
    assert_eq!(turns("uniform:2..20000"), refused(20_000));
    assert!(turns("10000").is_ok());
}

#[test]
fn a_template_is_not_counted_where_the_lengths_are_another_programs() {
    let draft = WorkloadDraft {
        source: SourceDraft { vllm_random: true, ..SourceDraft::default() },
        tokenizer: Some("model".to_owned()),
        counting: Some(Counting::WithTemplate),
        ..WorkloadDraft::default()
    };
    assert!(matches!(draft.resolve(), Err(SpecError::Stray { .. })));
}

#[test]
fn a_body_field_of_our_own_is_refused() {
    for field in ["stream", "max_completion_tokens", "n"] {
        let mut fields = Map::new();
        fields.insert(field.to_owned(), Value::from(2));
        let body = BodyDraft { fields, ..BodyDraft::default() };
        let draft = WorkloadDraft { body, ..WorkloadDraft::default() };
        assert_eq!(draft.resolve(), Err(SpecError::OwnField(field)));
    }
}
