//! A workload on our own scheduler, with steps that all take the same time.

use inferometer_engine::scheduler::{
    ConstantStep, HashedPrompt, Listener, Scheduler, SchedulerRequest, Step, StopRules,
};

use super::workload::{self, Workload};

const STEP_NS: u64 = 1_000;
const MOMENTS_MAX: u64 = 10_000;

/// The steps that our scheduler takes.
pub(crate) fn play(workload: &Workload) -> Vec<workload::Step> {
    let mut scheduler = Scheduler::new(workload.config.scheduler(), ConstantStep(STEP_NS));
    let mut log = Log::default();
    let last = workload.requests.iter().map(|request| request.at).max().unwrap_or(0);
    for moment in 0..MOMENTS_MAX {
        for (id, request) in (0..).zip(&workload.requests) {
            if request.at == moment {
                let request = request_of(id, request, scheduler.config().block_size);
                scheduler.submit(moment * STEP_NS, request, &mut log).expect("vLLM took it");
            }
        }
        let known = log.0.len();
        scheduler.advance(moment * STEP_NS, &mut log);
        let used = scheduler.gauges().kv_usage;
        for step in &mut log.0[known..] {
            assert_eq!(step.moment, moment, "every step begins when one may");
            step.free = free_blocks(used, workload.config.blocks);
        }
        // Clients leave in the middle of a step.
        for (id, request) in (0..).zip(&workload.requests) {
            if request.abort == Some(moment) {
                scheduler.abort(moment * STEP_NS + STEP_NS / 2, id, &mut log);
            }
        }
        if last <= moment && scheduler.next_event().is_none() {
            break;
        }
    }
    log.0
}

fn request_of(id: u64, request: &workload::Request, block_size: u32) -> SchedulerRequest {
    SchedulerRequest {
        id,
        prompt: HashedPrompt::of_segments(request.prompt.iter().copied(), block_size),
        answer_seed: request.answer_seed,
        stop: StopRules::after(request.max_tokens),
        priority: request.priority,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the blocks, times the blocks"
)]
fn free_blocks(used: f64, blocks: u32) -> u32 {
    // The null block is neither free nor used.
    let blocks = f64::from(blocks - 1);
    (blocks * (1.0 - used)).round() as u32
}

#[derive(Default)]
struct Log(Vec<workload::Step>);

impl Listener for Log {
    fn step_began(&mut self, step: &Step) {
        assert_eq!(step.began_ns % STEP_NS, 0, "no step begins between two moments");
        self.0.push(workload::Step {
            moment: step.began_ns / STEP_NS,
            scheduled: step.scheduled.clone(),
            preempted: step.preempted.clone(),
            admitted: step.admitted.clone(),
            free: 0,
        });
    }
}
