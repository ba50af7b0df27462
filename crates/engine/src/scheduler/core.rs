//! The scheduler as a value: requests and moments in, tokens out.
//!
//! Two kinds of things happen by themselves: a step is put together and launched, and a step ends.
//! A request that arrives at the moment of such a thing comes before it. What comes later than
//! something that has already happened is dated right behind that, so the moments which the
//! listener receives are all that a replay needs.

use std::collections::VecDeque;

use super::assemble::{self, Batch, Part, Until, assemble};
use super::request::{
    Generation, Listener, RequestEnd, SchedulerConfig, SchedulerRequest, Step, StepTime,
};
use super::state::{Entry, State};

/// A scheduler with its queues, blocks and steps under way.
#[derive(Debug)]
pub struct Scheduler<T> {
    state: State,
    time: T,
    under_way: VecDeque<RunningStep>,
    /// From when on the next step may be launched.
    free_ns: u64,
    /// Whether there may be something to launch: not after a look that found nothing.
    is_worth_a_look: bool,
    /// Right behind the last thing that happened.
    passed_ns: u64,
    /// When the last step was launched.
    launched_ns: u64,
    last_end_ns: Option<u64>,
    /// Steps for which the last decision still holds.
    steps_held: u32,
    /// Requests that ended since the last step was launched.
    finished: u32,
    /// Requests that lost their blocks since then.
    preempted: Vec<u64>,
    serials: u64,
}

#[derive(Debug)]
struct RunningStep {
    step: Step,
    parts: Vec<Part>,
}

/// Why a request can never be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a prompt of {tokens} tokens leaves no room for an answer in {max_model_len}")]
    TooLong { tokens: u32, max_model_len: u32 },
    #[error("an empty prompt")]
    Empty,
}

/// The state that gauges show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    pub running: u32,
    pub waiting: u32,
    /// Share of the KV blocks in use, from 0 to 1.
    pub kv_usage: f64,
}

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub steps: u64,
    pub preemptions: u64,
    /// Tokens of requests looked up in the prefix cache at first admission, and found there.
    pub prefix_queries: u64,
    pub prefix_hits: u64,
    /// Those of requests that came back after they had lost their blocks.
    pub prefix_queries_preempted: u64,
    pub prefix_hits_preempted: u64,
    /// Tokens of prompts whose first answer token is there.
    pub prompt_tokens: u64,
    pub generation_tokens: u64,
}

impl<T: StepTime> Scheduler<T> {
    /// A request that fits at all must fit alone, so a model is no longer than the blocks reach, or,
    /// where prompts are not cut, than a step.
    pub fn new(mut config: SchedulerConfig, time: T) -> Self {
        let reach = config.blocks.saturating_sub(1).saturating_mul(config.block_size);
        config.max_model_len = config.max_model_len.min(reach);
        if !config.chunked_prefill {
            config.max_model_len = config.max_model_len.min(config.max_num_batched_tokens);
        }
        Self {
            state: State::new(config),
            time,
            under_way: VecDeque::new(),
            free_ns: 0,
            is_worth_a_look: false,
            passed_ns: 0,
            launched_ns: 0,
            last_end_ns: None,
            steps_held: 0,
            finished: 0,
            preempted: Vec::new(),
            serials: 0,
        }
    }

    pub fn config(&self) -> &SchedulerConfig {
        &self.state.config
    }

    pub fn step_time_mut(&mut self) -> &mut T {
        &mut self.time
    }

    pub fn gauges(&self) -> Gauges {
        self.state.gauges()
    }

    pub fn counters(&self) -> Counters {
        self.state.counters
    }

    /// Takes a request that arrives at `at_ns`, or as soon after as the past allows.
    pub fn submit(
        &mut self,
        at_ns: u64,
        request: SchedulerRequest,
        listener: &mut impl Listener,
    ) -> Result<(), Refusal> {
        self.check(request.prompt.tokens)?;
        let at_ns = self.reach(at_ns, listener);
        let entry = Entry::new(request, self.serials, at_ns);
        self.serials += 1;
        self.state.take_in(entry);
        self.look(at_ns);
        Ok(())
    }

    /// Takes a request back; its blocks are free at once. Returns whether it was here.
    pub fn abort(&mut self, at_ns: u64, id: u64, listener: &mut impl Listener) -> bool {
        let at_ns = self.reach(at_ns, listener);
        let Some(place) = self.state.place_of(id) else { return false };
        let entry = self.state.take_out(place);
        listener.ended(&entry.facts(at_ns, RequestEnd::Abort));
        self.look(at_ns);
        true
    }

    /// When something happens next by itself; `None` while there is nothing to do.
    pub fn next_event(&self) -> Option<u64> {
        let end = self.under_way.front().map(|first| first.step.ends_ns);
        match (end, self.next_launch()) {
            (Some(end), Some(launch)) => Some(end.min(launch)),
            (end, launch) => end.or(launch),
        }
    }

    /// Brings everything to `now_ns`.
    pub fn advance(&mut self, now_ns: u64, listener: &mut impl Listener) {
        while let Some(at_ns) = self.next_event().filter(|at_ns| *at_ns <= now_ns) {
            self.happen(at_ns, listener);
        }
    }

    /// Lets everything happen that comes before `at_ns`, and returns which moment it really is.
    fn reach(&mut self, at_ns: u64, listener: &mut impl Listener) -> u64 {
        let at_ns = at_ns.max(self.passed_ns);
        while let Some(earlier) = self.next_event().filter(|earlier| *earlier < at_ns) {
            self.happen(earlier, listener);
        }
        at_ns
    }

    fn happen(&mut self, at_ns: u64, listener: &mut impl Listener) {
        self.passed_ns = at_ns.saturating_add(1);
        // What ends makes room for what begins.
        if self.under_way.front().is_some_and(|first| first.step.ends_ns == at_ns) {
            self.end_step(listener);
        } else {
            self.launch(at_ns, listener);
        }
    }

    fn next_launch(&self) -> Option<u64> {
        let stages = self.state.config.pipeline_stages.max(1) as usize;
        (self.is_worth_a_look && self.under_way.len() < stages).then_some(self.free_ns)
    }

    /// Something has changed that may let a step begin.
    fn look(&mut self, at_ns: u64) {
        self.is_worth_a_look = true;
        self.free_ns = self.free_ns.max(at_ns);
    }

    fn check(&self, tokens: u32) -> Result<(), Refusal> {
        let max_model_len = self.state.config.max_model_len;
        if tokens == 0 {
            return Err(Refusal::Empty);
        }
        if max_model_len <= tokens {
            return Err(Refusal::TooLong { tokens, max_model_len });
        }
        Ok(())
    }

    fn launch(&mut self, at_ns: u64, listener: &mut impl Listener) {
        let batch = self.put_together(at_ns);
        if batch.parts.is_empty() {
            // Requests that lost their blocks are back in the queue: that is worth another look.
            self.is_worth_a_look = !batch.preempted.is_empty();
            self.preempted.extend(batch.preempted);
            return;
        }
        let mut shape = batch.settle(&mut self.state);
        shape.finished = std::mem::take(&mut self.finished);
        let takes_ns = self.time.step_ns(&shape).max(1);
        let stages = u64::from(self.state.config.pipeline_stages.max(1));
        let last_end = self.under_way.back().map_or(0, |last| last.step.ends_ns);
        let ends_ns = at_ns.saturating_add(takes_ns).max(last_end.saturating_add(1));
        let stage_ns = takes_ns.div_ceil(stages);
        self.free_ns = if stages == 1 { ends_ns } else { at_ns.saturating_add(stage_ns) };
        self.launched_ns = at_ns;
        let mut preempted = std::mem::take(&mut self.preempted);
        preempted.extend(batch.preempted);
        let id_of = |part: &Part| (self.state.entry(part.place).facts.id, part.tokens);
        let step = Step {
            ordinal: self.state.counters.steps,
            began_ns: at_ns,
            ends_ns,
            scheduled: batch.parts.iter().map(id_of).collect(),
            preempted,
            admitted: batch.admitted,
            shape,
        };
        self.state.counters.steps += 1;
        listener.step_began(&step);
        self.under_way.push_back(RunningStep { step, parts: batch.parts });
    }

    fn put_together(&mut self, at_ns: u64) -> Batch {
        match self.state.config.generation {
            Generation::V1 => {
                let until = self.put_together_by(at_ns);
                assemble(&mut self.state, at_ns, until)
            }
            Generation::V0 { scheduler_steps } => self.put_together_v0(at_ns, scheduler_steps),
        }
    }

    /// A step that was assembled while another ran has none of the requests that came meanwhile.
    fn put_together_by(&self, at_ns: u64) -> Until {
        let SchedulerConfig { async_scheduling, pipeline_stages, .. } = self.state.config;
        let follows = self.last_end_ns == Some(at_ns) && !self.state.running.is_empty();
        (async_scheduling && pipeline_stages <= 1 && follows).then_some(self.launched_ns)
    }

    fn put_together_v0(&mut self, at_ns: u64, scheduler_steps: u32) -> Batch {
        if 0 < self.steps_held {
            self.steps_held -= 1;
            let answers = assemble::answers(&mut self.state);
            if !answers.parts.is_empty() {
                return answers;
            }
            self.steps_held = 0;
        }
        let prompts = assemble::prompts(&mut self.state, at_ns);
        if !prompts.parts.is_empty() {
            return prompts;
        }
        self.steps_held = scheduler_steps.saturating_sub(1);
        assemble::answers(&mut self.state)
    }

    fn end_step(&mut self, listener: &mut impl Listener) {
        let Some(RunningStep { step, parts }) = self.under_way.pop_front() else { return };
        listener.step_ended(&step);
        self.last_end_ns = Some(step.ends_ns);
        let mut finished = 0;
        for part in &parts {
            finished += u32::from(self.state.end_part(part, step.ends_ns, listener));
        }
        if 0 < finished {
            self.finished += finished;
            self.state.forget_finished();
        }
        self.look(step.ends_ns);
    }
}
