//! Each warning about the workload, raised and not raised.

use inferometer_model::journal::NotSent;
use inferometer_model::observations::{Correction, FileFacts};
use inferometer_model::spec::{DatasetSpec, Lengths, MixPart, SharedPrefix, Synthetic, VllmRandom};
use inferometer_model::{Moment, RequestId};

use super::*;
use crate::fixture::{calm, raised, scraped};

/// A calm run in which the server counts `prompt` tokens of each request, `cached` from its cache.
fn with_cache(prompt: u64, cached: Option<u64>) -> Observations {
    let mut observations = calm();
    for record in observations.records.held_mut() {
        let usage = record.usage.as_mut().unwrap();
        (usage.prompt_tokens, usage.cached_tokens) = (Some(prompt), cached);
    }
    observations
}

const CONTAMINATED: [(&str, Severity); 1] = [("cache-contamination", Severity::Note)];

#[test]
fn new_prompts_that_the_cache_knows_are_named_above_a_twentieth() {
    assert_eq!(raised(&with_cache(512, None)), []);
    assert_eq!(raised(&with_cache(512, Some(25))), []);
    assert_eq!(raised(&with_cache(512, Some(26))), CONTAMINATED);
}

#[test]
fn prompts_that_an_earlier_run_sent_are_named_where_the_server_is_silent() {
    let mut observations = with_cache(512, None);
    observations.manifest.seen_before = Some("20260101-000000-beef".to_owned());
    assert_eq!(raised(&observations), [("seen-before", Severity::Degraded)]);
    let mut told = with_cache(512, Some(0));
    told.manifest.seen_before = Some("20260101-000000-beef".to_owned());
    assert_eq!(raised(&told), [], "the server says that nothing was cached");
}

#[test]
fn figures_of_the_cache_degrade_a_run() {
    assert_eq!(raised(&with_cache(512, Some(256))), [("cache-contamination", Severity::Degraded)]);
}

#[test]
fn the_servers_counters_speak_where_its_answers_do_not() {
    let hit = |prompt_tokens, hits| {
        let mut observations = scraped(with_cache(512, None), prompt_tokens, 120.0);
        if let inferometer_model::Telemetry::Recorded(recording) = &mut observations.telemetry {
            let last = recording.samples.last_mut().unwrap();
            let found = last.counters.prefix_hits.as_mut().unwrap();
            *found += hits;
        }
        observations.manifest.seen_before = Some("20260101-000000-beef".to_owned());
        observations
    };
    assert_eq!(raised(&hit(20_480.0, 0.0)), [], "the server says that nothing was cached");
    assert_eq!(raised(&hit(20_480.0, 2_048.0)), CONTAMINATED);
    // Half of the work was for others, and so may be the hits.
    let shared = raised(&hit(40_960.0, 20_480.0));
    assert!(!shared.contains(&CONTAMINATED[0]), "{shared:?}");
}

#[test]
fn the_chat_template_may_be_in_the_cache() {
    // 30 tokens of template before 512 of ours: 5.5 % of the input.
    assert_eq!(raised(&with_cache(542, Some(30))), []);
    assert_eq!(raised(&with_cache(542, Some(58))), CONTAMINATED);
    let mut corrected = with_cache(512, Some(40));
    assert_eq!(raised(&corrected), CONTAMINATED);
    corrected.manifest.materials.input_length =
        InputLength::Corrected(Correction { tokens_per_word: 1.3, overhead_tokens: 30.0 });
    assert_eq!(raised(&corrected), []);
}

fn synthetic(prefix: Option<SharedPrefix>) -> Source {
    Source::Synthetic(Synthetic { input: Lengths::Fixed(512), output: Lengths::Fixed(3), prefix })
}

fn vllm_random(prefix_tokens: u32) -> Source {
    let (input, output) = (Lengths::Fixed(512), Lengths::Fixed(3));
    Source::VllmRandom(VllmRandom { input, output, prefix_tokens })
}

#[test]
fn prompts_that_share_a_prefix_are_meant_for_the_cache() {
    let mut observations = with_cache(512, Some(60));
    let workload = |observations: &mut Observations, source| {
        observations.manifest.spec.workload.source = source;
        raised(observations)
    };
    let prefix = SharedPrefix { tokens: 256, count: 1, zipf: 0.0 };
    assert_eq!(workload(&mut observations, synthetic(Some(prefix))), []);
    assert_eq!(workload(&mut observations, vllm_random(256)), []);
    assert_eq!(workload(&mut observations, vllm_random(0)), CONTAMINATED);
    let part = |source| MixPart { name: "a".to_owned(), weight: 1.0, source };
    let mix = Source::Mix(vec![part(synthetic(None)), part(synthetic(Some(prefix)))]);
    assert_eq!(workload(&mut observations, mix), []);
    let mix = Source::Mix(vec![part(synthetic(None)), part(vllm_random(0))]);
    assert_eq!(workload(&mut observations, mix), CONTAMINATED);
}

#[test]
fn the_remedy_fits_the_source() {
    let contaminated = |source| {
        let mut observations = with_cache(512, Some(64));
        observations.manifest.spec.workload.source = source;
        warning(&observations, "cache-contamination")
    };
    assert!(contaminated(synthetic(None)).remedy.contains("another --seed"));
    let random = contaminated(vllm_random(0));
    assert!(random.remedy.contains("the same prompts in every run"));
    assert!(!random.remedy.contains("--seed"));
    assert_eq!(
        random.text,
        "12.5 % of the input came from the prefix cache, although every prompt should be new"
    );
}

#[test]
fn more_requests_than_prompts_are_named() {
    let mut observations = calm();
    observations.manifest.spec.workload.source = Source::Dataset(DatasetSpec {
        path: "prompts.jsonl".into(),
        keep_order: true,
        ..DatasetSpec::default()
    });
    assert_eq!(raised(&observations), []);
    let file = |items| FileFacts {
        name: "prompts.jsonl".to_owned(),
        kind: "jsonl".to_owned(),
        sha256: String::new(),
        items,
        dropped: std::collections::BTreeMap::new(),
    };
    observations.manifest.materials.files = vec![file(40)];
    assert_eq!(raised(&observations), []);
    observations.manifest.materials.files = vec![file(39)];
    assert_eq!(raised(&observations), [("repeated-prompts", Severity::Note)]);
    // Later turns of a conversation are not another item.
    observations.records.held_mut()[1].asked.turn = 1;
    assert!(!raised(&observations).contains(&("repeated-prompts", Severity::Note)));
}

#[test]
fn conversations_that_failures_broke_are_named_and_those_cut_by_time_are_not() {
    let mut observations = calm();
    let part = |cause| NotSent { first: RequestId(40), count: 3, cause, at: Moment::ZERO };
    observations.not_sent = vec![part(Cause::TimeOver)];
    assert_eq!(raised(&observations), []);
    observations.not_sent = vec![part(Cause::ConversationBroken)];
    assert_eq!(raised(&observations), [("conversations-broken", Severity::Note)]);
    assert_eq!(
        warning(&observations, "conversations-broken").text,
        "3 turns were not sent because an earlier turn of their conversation failed"
    );
}
