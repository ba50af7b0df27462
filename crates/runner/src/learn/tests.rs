//! A law that is learned from a server whose physics are known, and held against that server at loads
//! that it has not seen.

use std::path::Path;
use std::sync::Arc;

use inferometer_analysis::Summary;
use inferometer_model::SpecDraft;
use inferometer_model::spec::{Lengths, LoadTable, PerSecond, SourceTable, WorkloadTable};
use inferometer_store::RunStore;

use super::*;
use crate::measurement::RunLocation;
use crate::simulation::{Simulator, VirtualEngine};
use crate::{Session, embedded};

const TRUTH: &str = "h100-llama-3.1-8b";

struct Load {
    #[expect(clippy::struct_field_names, reason = "the name of the table")]
    load: LoadTable,
    input: Lengths,
    output: Lengths,
}

fn closed(concurrency: u32, requests: u64, input: Lengths, output: Lengths) -> Load {
    let (concurrency, requests) = (Some(concurrency), Some(requests));
    Load { load: LoadTable { concurrency, requests, ..LoadTable::default() }, input, output }
}

fn open(rate: f64, requests: u64, input: Lengths, output: Lengths) -> Load {
    let (rate, requests) = (Some(PerSecond(rate)), Some(requests));
    Load { load: LoadTable { rate, requests, ..LoadTable::default() }, input, output }
}

/// Simulates a load, and returns its summary and its folder.
fn simulate(folder: &Path, profile: &Profile, load: &Load, seed: u64) -> (Summary, PathBuf) {
    let source = SourceTable {
        input_tokens: Some(load.input.clone()),
        output_tokens: Some(load.output.clone()),
        ..SourceTable::default()
    };
    let workload = WorkloadTable { source, seed: Some(seed), ..WorkloadTable::default() };
    let draft = SpecDraft { workload, load: load.load.clone(), ..SpecDraft::default() };
    let session = Session::new(usize::MAX, Arc::new(|_| {}));
    let engine = VirtualEngine::from_profile(profile, seed);
    let mut simulator = Simulator { engine, session: &session };
    let ready = simulator.make_ready(&draft.resolve().unwrap()).unwrap();
    let store = RunStore::open(folder.to_owned()).unwrap();
    let run = simulator.record(&ready, RunLocation::in_store(&store)).unwrap().measured;
    (run.summary, run.directory.path().to_owned())
}

fn any(low: u32, high: u32) -> Lengths {
    Lengths::Uniform { low, high }
}

fn figures(summary: &Summary) -> Figures {
    let vllm = &summary.vllm;
    [vllm.output_throughput, vllm.ttft_ms.mean, vllm.tpot_ms.mean]
}

#[test]
fn a_learned_law_predicts_loads_that_it_has_not_seen() {
    let folder = tempfile::tempdir().unwrap();
    let noise = EngineTable { noise: Some(0.03), ..EngineTable::default() };
    let truth = embedded::profile(&EngineTable { profile: Some(TRUTH.into()), ..noise }).unwrap();
    let probe = [1, 2, 4, 8, 16, 32, 64].into_iter().flat_map(|concurrency| {
        let requests = 10 + 2 * u64::from(concurrency);
        let mixed = closed(concurrency, requests, any(32, 2048), any(32, 192));
        let equal = closed(concurrency, requests, 1040.into(), 112.into());
        let seed = 1000 + u64::from(concurrency);
        [(mixed, seed), (equal, seed + 500)]
    });
    let runs = probe.map(|(load, seed)| simulate(folder.path(), &truth, &load, seed).1);
    let learning = Learning {
        runs: runs.collect(),
        server: EngineTable { max_num_batched_tokens: Some(8192), ..EngineTable::default() },
        name: "learned".to_owned(),
        source: "a test".to_owned(),
    };
    let learned = learning.learn(|_| {}).unwrap();
    let written = learned.fitting.base.to_toml();
    let profile = Profile::from_toml(&written, "the learned profile").unwrap();
    assert_eq!(profile.law, learned.fitting.base.law, "{written}");
    let loads = [
        closed(3, 40, any(100, 600), any(60, 120)),
        closed(6, 60, 1024.into(), 64.into()),
        closed(12, 120, any(200, 400), 128.into()),
        closed(24, 150, 256.into(), any(100, 180)),
        closed(40, 200, any(32, 1000), any(32, 128)),
        closed(56, 250, 512.into(), 128.into()),
        open(2.0, 60, 512.into(), 128.into()),
        open(6.0, 150, any(64, 1024), any(64, 160)),
        open(10.0, 200, 300.into(), 100.into()),
        open(14.0, 250, any(100, 900), any(40, 120)),
    ];
    let limits = [0.10, 0.20, 0.10];
    let (mut inside, mut missed, mut all, mut table) = (0, [0; 3], 0, String::new());
    for (number, load) in loads.iter().enumerate() {
        let seed = 7 + number as u64;
        let measured = figures(&simulate(folder.path(), &truth, load, seed).0);
        let predicted = simulate(folder.path(), &profile, load, seed).0;
        let half_width = predicted.run.simulated.as_ref().unwrap().prediction.unwrap().half_width;
        let half_widths = [half_width.output_throughput, half_width.ttft, half_width.tpot];
        for (figure, limit) in limits.into_iter().enumerate() {
            let (is, was) = (figures(&predicted)[figure].unwrap(), measured[figure].unwrap());
            let error = is / was - 1.0;
            let width = half_widths[figure].unwrap();
            let line = format!("{number} {figure}: {was:.3} {is:.3} {error:+.3} ±{width:.3}\n");
            table.push_str(&line);
            missed[figure] += u32::from(limit < error.abs());
            all += 1;
            inside += u32::from(libm::log(is / was).abs() <= libm::log(1.0 + width));
        }
        assert!(predicted.warnings.iter().all(|it| it.key != "extrapolated"), "load {number}");
    }
    // Twelve equal prompts at once: how long the server reads each shows in no step.
    assert!(missed[0] == 0 && missed[1] <= 1 && missed[2] == 0, "{table}\n{written}");
    assert!(9 * all <= 10 * inside, "{inside} of {all} intervals contain the truth\n{table}");
    let beyond = closed(128, 200, 256.into(), 64.into());
    let beyond = simulate(folder.path(), &profile, &beyond, 5).0;
    let warning = beyond.warnings.iter().find(|it| it.key == "extrapolated").expect("a warning");
    assert!(warning.text.contains("128 requests at once"), "{}", warning.text);
}

/// Runs of one batch size each, whose steps took so many times as long as the law says, give or take a
/// share that differs from run to run.
fn runs_that_took(times: [f64; 8], scatter: f64) -> (StepLaw, Vec<Evidence>) {
    let law = StepLaw { batches: vec![(1, 5e-3), (64, 20e-3)], ..StepLaw::default() };
    let run = |(number, times): (u32, f64)| {
        let decodes = 1 + 8 * number;
        let shape = StepShape { decodes, ..StepShape::default() };
        let side = if number.is_multiple_of(2) { scatter } else { -scatter };
        let seconds = law.seconds(&shape) * times * (1.0 + side);
        let step = Observed { decodes: vec![decodes], seconds, ..Observed::default() };
        Evidence {
            observed: vec![step; 9],
            seen: Seen::default(),
            is_full: false,
            doubt: None,
            uneven: None,
        }
    };
    let evidence = (0..).zip(times).map(run).collect();
    (law, evidence)
}

#[test]
fn a_server_that_becomes_slower_is_noticed_and_one_that_varies_is_not() {
    let found = |times: [f64; 8], scatter| {
        let (law, evidence) = runs_that_took(times, scatter);
        drift(&law, &evidence)
    };
    let later = [1.0, 1.0, 1.0, 1.0, 1.1, 1.1, 1.1, 1.1];
    let said = found(later, 0.01).expect("a tenth more is a drift");
    assert!(said.contains("later steps took 10 % longer"), "{said}");
    assert_eq!(found(later, 0.15), None, "as much as runs differ by chance");
    assert_eq!(found([1.0; 8], 0.01), None);
    let little = later.map(|times: f64| 1.0 + (times - 1.0) / 5.0);
    assert_eq!(found(little, 0.001), None, "two per cent do not matter");
    assert!(found([1.1; 8].map(|times: f64| times), 0.0).is_none(), "all alike");
}

#[test]
fn equal_batches_that_take_other_times_with_other_requests_are_noticed() {
    let steps = |times: [f64; 3]| -> Vec<Step> {
        let at = Moment::ZERO;
        let step = |(number, seconds): (u32, f64)| Step {
            first: at,
            last: at,
            duration: Some(seconds),
            batch: 16,
            tokens: 16,
            context_tokens: 0,
            prefills: u32::from(number == 0),
            prefill_tokens: 0,
            waiting: 0,
            seen: true,
        };
        times.into_iter().flat_map(|seconds| (0..30).map(move |n| step((n, seconds)))).collect()
    };
    let said = uneven(&steps([9.4e-3, 18.2e-3, 23.5e-3])).expect("a note");
    assert!(said.starts_with("steps of 16 requests took 9.4 ms with some and 23.5 ms"), "{said}");
    assert_eq!(uneven(&steps([9.4e-3, 9.6e-3, 11e-3])), None);
}
