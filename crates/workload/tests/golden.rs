//! Fingerprints of ten plans. A change here means that published results can no longer be repeated:
//! it must be argued in the commit, and the version in `fingerprint.rs` raised.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::Arrivals;
use inferometer_model::{Plan, RequestId, SpecDraft};
use inferometer_workload::make_plan;

fn fingerprints(draft: SpecDraft) -> Fingerprints {
    make_plan(&draft.resolve().unwrap()).1
}

fn drafts() -> Vec<(&'static str, SpecDraft)> {
    let draft = SpecDraft::default;
    let minute = Some(Duration::from_mins(1));
    vec![
        ("defaults", draft()),
        ("another seed", SpecDraft { seed: Some(2), ..draft() }),
        ("completions", SpecDraft { api: Some(Api::Completions), ..draft() }),
        ("not streamed", SpecDraft { streaming: Some(false), ..draft() }),
        ("concurrency", SpecDraft { concurrency: Some(64), ..draft() }),
        ("lengths", SpecDraft { input_tokens: Some(9), output_tokens: Some(3), ..draft() }),
        ("by time", SpecDraft { duration: minute, ..draft() }),
        ("poisson", SpecDraft { rate_per_s: Some(7.5), ..draft() }),
        ("poisson by time", SpecDraft { rate_per_s: Some(7.5), duration: minute, ..draft() }),
        (
            "constant",
            SpecDraft { rate_per_s: Some(7.5), arrivals: Some(Arrivals::Constant), ..draft() },
        ),
    ]
}

#[test]
fn plans_are_the_same_on_every_machine_and_in_every_version() {
    let found: Vec<String> = drafts()
        .into_iter()
        .map(|(name, draft)| {
            let prints = fingerprints(draft);
            format!("{name}: {} {}", prints.workload, prints.plan)
        })
        .collect();
    let golden = include_str!("golden.txt");
    assert_eq!(found.join("\n") + "\n", golden);
}

#[test]
fn the_seed_changes_the_plan_and_not_the_workload() {
    let one = fingerprints(SpecDraft { seed: Some(1), ..SpecDraft::default() });
    let two = fingerprints(SpecDraft { seed: Some(2), ..SpecDraft::default() });
    assert_eq!(one.workload, two.workload);
    assert_ne!(one.plan, two.plan);
}

#[test]
fn every_difference_in_what_is_asked_changes_the_workload() {
    let prints: std::collections::HashSet<String> =
        drafts().into_iter().map(|(_, draft)| fingerprints(draft).workload).collect();
    assert_eq!(prints.len(), drafts().len() - 1, "only `another seed` asks the same");
}

#[test]
fn another_arrival_process_keeps_the_prompts() {
    let closed = SpecDraft::default().resolve().unwrap();
    let open = SpecDraft { rate_per_s: Some(5.0), ..SpecDraft::default() }.resolve().unwrap();
    let (closed, open) = (make_plan(&closed).0, make_plan(&open).0);
    for id in 0..100 {
        let seed = |plan: &dyn Plan| plan.request(RequestId(id)).unwrap().prompt_seed;
        assert_eq!(seed(&closed), seed(&open));
    }
}
