//! Queues that theory knows the answers for.

use std::time::Duration;

use super::Witness;
use crate::scheduler::blocks::mix;
use crate::scheduler::*;

/// Even draws from (0, 1).
struct Draws(u64);

impl Draws {
    fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        self.0 += 1;
        let unit = (mix(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 11) as f64 + 0.5;
        let unit = unit / (1_u64 << 53) as f64;
        u64::try_from(Duration::from_secs_f64(-unit.ln() * mean_ns / 1e9).as_nanos()).unwrap()
    }
}

struct ExponentialStep(Draws, f64);

impl StepTime for ExponentialStep {
    fn step_ns(&mut self, _: &StepShape) -> u64 {
        self.0.exponential_ns(self.1)
    }
}

/// Mean waiting time of requests of one step each, one at a time, in units of the mean step; with
/// the half-width of its 99.9 % interval from means of batches.
fn waiting(time: impl StepTime, load: f64) -> (f64, f64) {
    const SERVICE_NS: f64 = 1_000_000.0;
    const REQUESTS: u64 = 400_000;
    const BATCHES: usize = 40;
    let config = SchedulerConfig { max_num_seqs: 1, ..SchedulerConfig::default() };
    let mut scheduler = Scheduler::new(config, time);
    let mut witness = Witness::default();
    let mut draws = Draws(17);
    let mut at_ns = 0;
    for id in 0..REQUESTS {
        at_ns += draws.exponential_ns(SERVICE_NS / load);
        let prompt = HashedPrompt::of_segments([(id, 4)], 16);
        let stop = StopRules::after(1);
        let request = SchedulerRequest { id, prompt, answer_seed: id, stop, priority: 0 };
        scheduler.submit(at_ns, request, &mut witness).unwrap();
    }
    scheduler.advance(u64::MAX, &mut witness);
    let waits: Vec<f64> = witness
        .ended
        .iter()
        .map(|facts| (facts.scheduled_ns.unwrap() - facts.arrived_ns) as f64 / SERVICE_NS)
        .collect();
    let means: Vec<f64> = waits
        .chunks(waits.len() / BATCHES)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let squares: f64 = means.iter().map(|batch| (batch - mean).powi(2)).sum();
    let error = (squares / (means.len() - 1) as f64 / means.len() as f64).sqrt();
    // Student's t for 39 degrees of freedom.
    (mean, 3.558 * error)
}

#[test]
fn one_slot_with_a_constant_step_waits_as_an_m_d_1_queue() {
    for load in [0.3, 0.6, 0.8] {
        let (mean, half_width) = waiting(ConstantStep(1_000_000), load);
        let theory = load / (2.0 * (1.0 - load));
        assert!((mean - theory).abs() < half_width, "{load}: {mean} ± {half_width}, {theory}");
        assert!(half_width < 0.1 * theory, "{load}: ± {half_width} says nothing of {theory}");
    }
}

#[test]
fn one_slot_with_exponential_steps_waits_as_an_m_m_1_queue() {
    for load in [0.3, 0.6, 0.8] {
        let (mean, half_width) = waiting(ExponentialStep(Draws(1 << 40), 1_000_000.0), load);
        let theory = load / (1.0 - load);
        assert!((mean - theory).abs() < half_width, "{load}: {mean} ± {half_width}, {theory}");
        assert!(half_width < 0.1 * theory, "{load}: ± {half_width} says nothing of {theory}");
    }
}
