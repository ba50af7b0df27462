//! The metrics of a real scheduler: what must be equal is equal, whatever the load.

use proptest::prelude::*;

use super::page::{assert_histograms_hold, parse, sum_and_count};
use super::{MS, labels};
use crate::metrics::{MetricNames, Metrics};
use crate::scheduler::{
    ConstantStep, Generation, HashedPrompt, Scheduler, SchedulerConfig, SchedulerRequest, StopRules,
};

/// A request of some load.
#[derive(Clone, Copy, Debug)]
struct ScannedBody {
    gap_ms: u64,
    prompt: u32,
    output: u32,
    /// How long after its arrival its client leaves, where it does.
    leaves_after_ms: Option<u64>,
}

fn asked() -> impl Strategy<Value = ScannedBody> {
    let leaves = proptest::option::weighted(0.2, 0..300_u64);
    (0..40_u64, 1..150_u32, 1..40_u32, leaves).prop_map(
        |(gap_ms, prompt, output, leaves_after_ms)| ScannedBody {
            gap_ms,
            prompt,
            output,
            leaves_after_ms,
        },
    )
}

/// So few blocks that requests are preempted, and chunks so small that prompts take several steps.
fn tight(generation: Generation, async_scheduling: bool, pipeline_stages: u32) -> SchedulerConfig {
    SchedulerConfig {
        blocks: 20,
        max_num_seqs: 8,
        max_num_batched_tokens: if generation == Generation::V1 { 64 } else { 256 },
        max_model_len: 256,
        chunked_prefill: generation == Generation::V1,
        generation,
        async_scheduling,
        pipeline_stages,
        ..SchedulerConfig::default()
    }
}

/// The page after all requests have ended.
fn serve(config: SchedulerConfig, load: &[ScannedBody]) -> String {
    let mut metrics = Metrics::new(MetricNames::VllmV1, labels("tiny"));
    let mut scheduler = Scheduler::new(config, ConstantStep(10 * MS));
    let mut at_ns = 0;
    let mut departures = Vec::new();
    for (id, asked) in (0..).zip(load) {
        at_ns += asked.gap_ms * MS;
        departures.extend(asked.leaves_after_ms.map(|after| (at_ns + after * MS, id)));
        let request = SchedulerRequest {
            id,
            // Two families of prompts, so that the cache has something to give.
            prompt: HashedPrompt::of_segments([(id % 2, asked.prompt)], 16),
            answer_seed: id,
            stop: StopRules::after(asked.output),
            priority: 0,
        };
        metrics.arrived(&[id], at_ns);
        scheduler.submit(at_ns + MS, request, &mut metrics).unwrap();
    }
    departures.sort_unstable();
    for (leaves_ns, id) in departures {
        scheduler.abort(leaves_ns, id, &mut metrics);
    }
    while let Some(next_ns) = scheduler.next_event() {
        scheduler.advance(next_ns, &mut metrics);
    }
    assert!(metrics.requests.is_empty());
    let mut out = String::new();
    metrics.render(scheduler.gauges(), scheduler.counters(), &mut out);
    out
}

/// The sum over all samples of a family of counters or gauges.
fn total(text: &str, name: &str) -> f64 {
    let (_, samples) = parse(text);
    samples.iter().filter(|sample| sample.name == name).map(|sample| sample.value).sum()
}

fn assert_accounts_balance(text: &str, load: &[ScannedBody]) {
    assert_histograms_hold(text);
    let near = |left: f64, right: f64, what: &str| {
        assert!((left - right).abs() < 1e-6, "{what}: {left} and {right}");
    };
    let of = |name: &str| total(text, &format!("vllm:{name}"));
    let seen = |name: &str| sum_and_count(text, &format!("vllm:{name}"));
    let prompts = of("prompt_tokens_total");
    let tokens = of("generation_tokens_total");
    near(of("prompt_tokens_by_source_total"), prompts, "sources and prompts");
    near(of("request_success_total"), load.len() as f64, "ends and requests");
    let computed = prompts - of("prompt_tokens_cached_total");
    near(seen("iteration_tokens_total").0, computed + tokens, "steps and tokens");
    let first_tokens = seen("time_to_first_token_seconds").1;
    near(seen("inter_token_latency_seconds").1 + first_tokens, tokens, "outputs and tokens");
    let (_, complete) = seen("request_params_n");
    near(seen("e2e_request_latency_seconds").1, complete, "whole requests and answers");
    let (inference, _) = seen("request_inference_time_seconds");
    let (prefill, _) = seen("request_prefill_time_seconds");
    near(prefill + seen("request_decode_time_seconds").0, inference, "phases and their sum");
    near(of("num_requests_running") + of("num_requests_waiting"), 0.0, "who is left");
    if load.iter().all(|asked| asked.leaves_after_ms.is_none()) {
        near(seen("request_prompt_tokens").0, prompts, "prompts of requests and of steps");
        near(seen("request_generation_tokens").0, tokens, "answers of requests and of steps");
        near(seen("request_prefill_kv_computed_tokens").0, computed, "computed prompts");
        let gaps = seen("inter_token_latency_seconds").0;
        near(gaps, seen("request_decode_time_seconds").0, "gaps and decodes");
        // The scheduler gets a request a millisecond after the front end.
        let queued = seen("request_queue_time_seconds").0 + complete * 0.001;
        assert!(queued + inference <= seen("e2e_request_latency_seconds").0 + 1e-6);
        near(queued + prefill, seen("time_to_first_token_seconds").0, "ways to the first token");
    }
}

#[test]
fn a_preempted_prompt_balances_too() {
    let asked = ScannedBody { gap_ms: 0, prompt: 100, output: 40, leaves_after_ms: None };
    let load = [asked; 4];
    let text = serve(tight(Generation::V1, false, 1), &load);
    assert!(total(&text, "vllm:num_preemptions_total") > 0.0);
    assert!(total(&text, "vllm:prompt_tokens_cached_total") > 0.0);
    assert_accounts_balance(&text, &load);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_accounts_balance_for_any_load(
        load in proptest::collection::vec(asked(), 1..30),
        async_scheduling in any::<bool>(),
        pipeline_stages in 1..3_u32,
    ) {
        let config = tight(Generation::V1, async_scheduling, pipeline_stages);
        assert_accounts_balance(&serve(config, &load), &load);
    }

    #[test]
    fn the_accounts_of_a_v0_engine_balance_as_well(
        load in proptest::collection::vec(asked(), 1..30),
        scheduler_steps in 1..5_u32,
    ) {
        let config = tight(Generation::V0 { scheduler_steps }, false, 1);
        assert_accounts_balance(&serve(config, &load), &load);
    }
}
