//! Our scheduler against vLLM's own, step for step.
//!
//! `steps.jsonl` holds workloads and what vLLM's scheduler did with them; `make.py` wrote it and
//! says how to write it again.

mod play;
mod workload;

use play::play;
use workload::Workload;

const SHOWN_MAX: usize = 5;

#[test]
fn every_step_is_the_one_that_vllm_takes() {
    let workloads = Workload::all();
    let differences: Vec<String> = workloads.iter().filter_map(difference).collect();
    assert!(
        differences.is_empty(),
        "{} of {} workloads differ:\n{}",
        differences.len(),
        workloads.len(),
        differences[..differences.len().min(SHOWN_MAX)].join("\n")
    );
}

/// The first step that is not vLLM's.
fn difference(workload: &Workload) -> Option<String> {
    let (theirs, ours) = (workload.steps(), play(workload));
    let steps = theirs.len().max(ours.len());
    let step = (0..steps).find(|step| theirs.get(*step) != ours.get(*step))?;
    Some(format!(
        "{}, step {step} of {steps}\n  {:?}\n  vllm {:?}\n  ours {:?}",
        workload.family,
        workload.config,
        theirs.get(step),
        ours.get(step)
    ))
}

/// A log in which nothing happens would agree with anything.
#[test]
fn the_workloads_ask_what_they_are_for() {
    let workloads = Workload::all();
    let steps: Vec<_> = workloads.iter().flat_map(Workload::steps).collect();
    let admitted = || steps.iter().flat_map(|step| &step.admitted);
    let preempted: usize = steps.iter().map(|step| step.preempted.len()).sum();
    let left = workloads.iter().flat_map(|workload| &workload.requests);
    assert!(500 <= workloads.len());
    assert!(50_000 <= steps.len());
    assert!(500 <= preempted);
    assert!(1_000 <= admitted().filter(|(_, cached)| 0 < *cached).count());
    assert!(300 <= left.filter(|request| request.abort.is_some()).count());
}
