//! No server beats its hardware, and more work takes longer.

use inferometer_model::spec::EngineTable;
use proptest::prelude::*;

use super::{Coefficients, HostCost, Machine, PhysicsStep};
use crate::profile::Profile;
use crate::scheduler::{StepShape, StepTime};

/// Unlike in size, kind of attention, experts, types and links.
const SYSTEMS: [&str; 6] = [
    "h100-llama-3.1-8b",
    "mi300x-llama-3.1-70b-tp4",
    "mi100-devstral-small-24b-int4-tp4",
    "h200-deepseek-v3-tp8",
    "b200-qwen3-235b-a22b-tp4",
    "a100-80gb-qwen3-32b-pp2",
];

fn machine(name: &str) -> Machine {
    Profile::named(name).expect(name).machine().clone()
}

/// Llama 3.1 70B on MI300X, with a context that leaves room on one.
fn llama_70b(tp: u32, pp: u32) -> PhysicsStep {
    let system = EngineTable {
        hardware: Some("mi300x".into()),
        model: Some("llama-3.1-70b".into()),
        tp: Some(tp),
        pp: Some(pp),
        max_model_len: Some(32_768),
        ..EngineTable::default()
    };
    physics(Profile::compose(&system).unwrap().machine().clone())
}

fn prefill(tokens: u64, before: u64) -> StepShape {
    let (t, s) = (tokens as f64, before as f64);
    StepShape {
        prefill_tokens: tokens,
        prefills: 1,
        prefill_pairs: t * (s + t / 2.0),
        ..StepShape::default()
    }
}

fn decodes(count: u32, context: u32) -> StepShape {
    StepShape {
        decodes: count,
        decode_context: u64::from(count) * u64::from(context),
        decode_context_max: context,
        ..StepShape::default()
    }
}

fn physics(machine: Machine) -> PhysicsStep {
    PhysicsStep::new(machine, Coefficients::default(), 7).unwrap()
}

fn shapes() -> impl Strategy<Value = StepShape> {
    (0..20_000_u64, 0..100_000_u64, 0..1500_u32, 0..60_000_u32, 0..50_u32).prop_map(
        |(tokens, before, count, context, finished)| {
            let decodes = decodes(count, context);
            let prefill = if tokens > 0 { prefill(tokens, before) } else { StepShape::default() };
            StepShape {
                decodes: decodes.decodes,
                decode_context: decodes.decode_context,
                decode_context_max: decodes.decode_context_max,
                finished,
                ..prefill
            }
        },
    )
}

fn coefficients() -> impl Strategy<Value = Coefficients> {
    let share = || 0.02..=1.0_f64;
    let shares = (share(), share(), share(), share(), share(), proptest::option::of(share()));
    let costs = (0.0..1e-2_f64, 0.0..1e-4_f64, 0.0..1e-2_f64, 0..5000_u32);
    let rest = (1.0..=64.0_f64, 0.0..=1.0_f64, any::<bool>(), 0.0..=1.0_f64, 0.0..1e-2_f64);
    (shares, costs, rest).prop_map(|(shares, costs, rest)| Coefficients {
        eta_compute: shares.0,
        eta_memory: shares.1,
        eta_attention: shares.2,
        eta_kv: shares.3,
        eta_link: shares.4,
        eta_small: shares.5,
        step_s: costs.0,
        layer_s: costs.1,
        large_step_s: costs.2,
        small_tokens_max: costs.3,
        p_norm: rest.0,
        kv_skew: rest.1,
        cuda_graphs: rest.2,
        noise: rest.3,
        host: HostCost { per_step_s: rest.4, ..HostCost::default() },
        ..Coefficients::default()
    })
}

proptest! {
    #[test]
    fn no_accepted_coefficients_beat_the_hardware(
        system in 0..SYSTEMS.len(),
        coefficients in coefficients(),
        shape in shapes(),
        seed in any::<u64>(),
    ) {
        let mut step = PhysicsStep::new(machine(SYSTEMS[system]), coefficients, seed).unwrap();
        let bound = step.bound_ns(&shape);
        // The formula itself keeps the bound, not only the last line of `step_ns`.
        prop_assert!(step.parts(&shape).gpu() * 1e9 >= bound as f64 * (1.0 - 1e-12));
        prop_assert!(step.step_ns(&shape) >= bound);
    }

    #[test]
    fn more_work_takes_longer(
        system in 0..SYSTEMS.len(),
        shape in shapes(),
        tokens in 1..5000_u64,
        context in 1..5000_u32,
    ) {
        let mut step = physics(machine(SYSTEMS[system]));
        let time = step.step_ns(&shape);
        // A step that gets its first prompt is no longer padded, so that is no larger step.
        if shape.prefills > 0 {
            let mut longer = shape.clone();
            longer.prefill_tokens += tokens;
            prop_assert!(step.step_ns(&longer) >= time);
        }
        let mut deeper = shape.clone();
        deeper.decode_context += u64::from(context) * u64::from(shape.decodes);
        deeper.decode_context_max += context;
        prop_assert!(step.step_ns(&deeper) >= time);
        let mut wider = shape.clone();
        wider.decodes += 1;
        wider.decode_context += u64::from(shape.decode_context_max);
        prop_assert!(step.step_ns(&wider) >= time);
    }

    #[test]
    fn better_hardware_is_never_slower(shape in shapes(), gain in 1.0..4.0_f64) {
        let base = machine("mi300x-llama-3.1-70b-tp4");
        let time = physics(base.clone()).step_ns(&shape);
        let better = [
            Machine { memory_bandwidth: base.memory_bandwidth * gain, ..base.clone() },
            Machine { linear_flops: base.linear_flops * gain, ..base.clone() },
            Machine { attention_flops: base.attention_flops * gain, ..base.clone() },
            Machine { link_bandwidth: base.link_bandwidth * gain, ..base.clone() },
            Machine { link_latency_s: base.link_latency_s / gain, ..base.clone() },
        ];
        for machine in better {
            prop_assert!(physics(machine).step_ns(&shape) <= time);
        }
    }
}

/// A server at its hardware's peak is as fast as the bound says, so the bound is no mere caution.
#[test]
fn the_bound_is_what_a_perfect_server_takes() {
    let perfect = Coefficients {
        eta_compute: 1.0,
        eta_memory: 1.0,
        eta_attention: 1.0,
        eta_kv: 1.0,
        eta_link: 1.0,
        p_norm: 64.0,
        step_s: 0.0,
        layer_s: 0.0,
        host: HostCost { per_step_s: 0.0, per_request_s: 0.0, per_finished_s: 0.0 },
        kv_skew: 0.0,
        cuda_graphs: false,
        link_latency_s: Some(0.0),
        ..Coefficients::default()
    };
    for system in SYSTEMS {
        let mut step = PhysicsStep::new(machine(system), perfect, 0).unwrap();
        for shape in [prefill(2048, 4096), decodes(32, 1000), decodes(300, 5000)] {
            let excess = step.step_ns(&shape) as f64 / step.bound_ns(&shape) as f64;
            // Two equal times have a norm of 2^(1/64).
            assert!((1.0..1.011).contains(&excess), "{system}: {excess}");
        }
    }
}

fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// The design note has 32 ms, by 2·N·T over all parameters, and 5.4 ms, without reading the output
/// layer. The bound is stricter on both: only the last position of a prompt passes the output
/// layer, none multiplies with the table, and a decode does read the output layer.
#[test]
fn llama_8b_on_an_h100_is_bounded_as_by_hand() {
    let step = physics(machine("h100-llama-3.1-8b"));
    let peak = 989.4e12;
    let by_the_note = 2.0 * 8.03e9 * 2048.0 / peak * 1e3;
    assert!((32.0..34.0).contains(&by_the_note));

    let bound = ms(step.bound_ns(&prefill(2048, 0)));
    // 6.98e9 parameters in the layers, and 2048²/2 pairs of 32 layers with 4096 numbers.
    let by_hand = (2.0 * 6.98e9 * 2048.0 + 4.0 * 4096.0 * 32.0 * 2048.0 * 1024.0) / peak * 1e3;
    assert!((bound / by_hand - 1.0).abs() < 0.002, "{bound} ms against {by_hand}");
    assert!((bound / 32.0 - 1.0).abs() < 0.07, "{bound} ms");

    let bound = ms(step.bound_ns(&decodes(32, 1000)));
    // 15.0 GB of weights, and 128 KiB for each of 32,000 tokens.
    let by_hand = (2.0 * 7.505e9 + 32_000.0 * 131_072.0) / 3.35e12 * 1e3;
    assert!((bound / by_hand - 1.0).abs() < 0.002, "{bound} ms against {by_hand}");
    assert!((bound / 5.4 - 1.0).abs() < 0.07, "{bound} ms");
}

#[test]
fn tensor_parallel_divides_the_work_and_pays_for_it() {
    let one = llama_70b(1, 1);
    let four = llama_70b(4, 1);
    for shape in [prefill(4096, 0), decodes(64, 2000)] {
        let (alone, shared) = (one.parts(&shape), four.parts(&shape));
        assert!((alone.compute / shared.compute - 4.0).abs() < 1e-9);
        assert!((alone.weights / shared.weights - 4.0).abs() < 1e-9);
        assert!(alone.communication <= 0.0 && shared.communication > 0.0);
        let gain = alone.gpu() / shared.gpu();
        assert!((1.5..4.0).contains(&gain), "{gain}");
    }
}

/// A pipeline does not shorten a step: its stages follow each other.
#[test]
fn stages_follow_each_other() {
    let shape = decodes(64, 2000);
    let one = llama_70b(1, 1).step_ns(&shape);
    let two = llama_70b(1, 2).step_ns(&shape);
    assert!(two > one && two < one + 2_000_000, "{one} and {two}");
}

#[test]
fn a_batch_of_many_tokens_meets_all_experts() {
    let machine = machine("h200-qwen3-30b-a3b");
    let all = machine.dense_bytes + machine.routed_bytes;
    let one = machine.weight_bytes(1.0);
    let wanted = machine.dense_bytes + machine.routed_bytes * 8.0 / 128.0;
    assert!((one / wanted - 1.0).abs() < 1e-12);
    assert!(machine.weight_bytes(64.0) > 0.95 * all && machine.weight_bytes(64.0) < all);
    assert!(machine.weight_bytes(2000.0) > 0.999_999 * all);
}

#[test]
fn decode_only_steps_are_padded_and_others_are_not() {
    let step = physics(machine("h100-llama-3.1-8b"));
    let with = |count| step.clone().parts(&decodes(count, 1000)).weights;
    assert!((with(9) - with(16)).abs() < 1e-12);
    let nine = decodes(9, 1000);
    let padded = step.parts(&nine).compute;
    let head = 2.0 * 9.0 * step.machine().head_parameters / (989.4e12 * 0.55);
    let layers = 2.0 * 16.0 * step.machine().active_parameters / (989.4e12 * 0.55);
    assert!((padded / (head + layers) - 1.0).abs() < 1e-9);
    let mixed = StepShape { prefills: 1, prefill_tokens: 1, ..nine.clone() };
    assert!(step.parts(&mixed).compute < padded);
    let eager = physics(Machine { graphs_max: 0, ..step.machine().clone() });
    assert!(eager.parts(&nine).compute < padded);
}

#[test]
fn without_graphs_the_gpus_wait_for_their_launches() {
    let recorded = machine("h100-llama-3.1-8b");
    let eager =
        |tensor_parallel| physics(Machine { graphs_max: 0, tensor_parallel, ..recorded.clone() });
    let (one, several) = (decodes(1, 1000), decodes(8_000, 1000));
    let launches = 32.0 * 4.8e-4;
    assert!(physics(recorded.clone()).parts(&one).launch.abs() < 1e-12);
    assert!((eager(1).parts(&one).launched() - launches).abs() < 1e-12, "a small step waits");
    let large = eager(1).parts(&several);
    assert!(launches < large.gpu() && large.launched() <= large.gpu(), "a large one does not");
    assert!((eager(2).parts(&one).launch / launches - 14.0 / 12.0).abs() < 1e-12);
    let staged = Machine { graphs_max: 0, pipeline_parallel: 3, ..recorded.clone() };
    let handovers = physics(staged).parts(&one).launch - launches;
    assert!((handovers - 2.0 * 5.2e-3).abs() < 1e-12);
    assert!(physics(recorded.clone()).step_ns(&one) < eager(1).step_ns(&one));
}

#[test]
fn small_steps_have_their_own_kernels() {
    let base = machine("mi100-devstral-small-24b-int4-tp4");
    let two_kernels = Coefficients {
        eta_small: Some(0.05),
        small_tokens_max: 50,
        large_step_s: 0.02,
        ..Coefficients::default()
    };
    let step = PhysicsStep::new(base.clone(), two_kernels, 0).unwrap();
    let plain = physics(base);
    let (small, large) = (decodes(48, 500), decodes(64, 500));
    assert!((step.parts(&small).compute / plain.parts(&small).compute - 11.0).abs() < 1e-9);
    assert!((step.parts(&large).compute / plain.parts(&large).compute - 1.0).abs() < 1e-9);
    assert!((step.parts(&large).fixed - plain.parts(&large).fixed - 0.02).abs() < 1e-12);
    assert!((step.parts(&small).fixed - plain.parts(&small).fixed).abs() < 1e-12);
}

#[test]
fn host_time_hides_behind_the_gpu_only_when_asynchronous() {
    let base = machine("h100-llama-3.1-8b");
    let shape = decodes(32, 1000);
    let time = |async_scheduling, scheduler_steps| {
        physics(Machine { async_scheduling, scheduler_steps, ..base.clone() }).step_ns(&shape)
    };
    let (decision_ns, tokens_ns) = (1_000_000, 32 * 10_000);
    assert!((time(false, 1) - time(true, 1)).abs_diff(decision_ns + tokens_ns) <= 1);
    // A decision holds for ten steps, but tokens are sampled and sent in each.
    assert!((time(false, 10) - time(true, 1)).abs_diff(decision_ns / 10 + tokens_ns) <= 1);
    let slow_host = Coefficients {
        host: HostCost { per_step_s: 0.5, per_request_s: 0.0, per_finished_s: 0.0 },
        ..Coefficients::default()
    };
    assert_eq!(PhysicsStep::new(base, slow_host, 0).unwrap().step_ns(&shape), 500_000_000);
}

#[test]
fn noise_comes_from_the_seed_and_keeps_the_mean() {
    let noisy = Coefficients { noise: 0.1, ..Coefficients::default() };
    let base = machine("h100-llama-3.1-8b");
    let shape = decodes(32, 1000);
    let draw = |seed| {
        let mut step = PhysicsStep::new(base.clone(), noisy, seed).unwrap();
        (0..4000).map(|_| step.step_ns(&shape)).collect::<Vec<u64>>()
    };
    let times = draw(1);
    assert_eq!(times, draw(1));
    assert_ne!(times, draw(2));
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
    let quiet = physics(base).step_ns(&shape) as f64;
    // Four standard errors of 4,000 draws with a spread of a tenth.
    assert!((mean / quiet - 1.0).abs() < 0.0065, "{mean} against {quiet}");
}
