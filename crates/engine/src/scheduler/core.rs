//! The scheduler as a value: requests and times in, tokens out.
//!
//! Two kinds of events have no outside cause: a step is put together and launched, and a step ends.
//! A request that arrives at the time of such an event comes before it. A request that is dated
//! before an event that has already happened is dated right behind it, so the times that the
//! listener receives are all that a replay needs. Steps are put together as vLLM v1 does it: running
//! requests first, then those that wait; prompts and answers alike are requests with tokens to
//! catch up on.

use std::collections::{BTreeMap, HashMap, VecDeque};

use inferometer_model::whole::to_u32;

use super::blocks::{BlockId, BlockPool, PromptHasher, token};
use super::request::{
    Generation, Listener, Policy, RequestEnd, RequestFacts, SchedulerConfig, SchedulerRequest,
    Step, StepShape, StepTime, StopRules,
};
use super::speculation::{Drafts, Speculation};

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
    pub drafts: Drafts,
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

    /// Empties the prefix cache but for what running requests use.
    pub fn reset_cache(&mut self) {
        self.state.pool.forget_free();
    }

    /// Takes a request that arrives at `at_ns`, or as soon after as the past allows.
    pub fn submit(
        &mut self,
        at_ns: u64,
        request: SchedulerRequest,
        listener: &mut impl Listener,
    ) -> Result<(), Refusal> {
        let (tokens, max_model_len) = (request.prompt.tokens, self.state.config.max_model_len);
        if tokens == 0 {
            return Err(Refusal::Empty);
        }
        if max_model_len <= tokens {
            return Err(Refusal::TooLong { tokens, max_model_len });
        }
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
        let Some(place) = self.state.places.get(&id).copied() else { return false };
        if let Some(index) = self.state.running.iter().position(|other| *other == place) {
            self.state.running.remove(index);
        } else {
            self.state.leave_queue(place);
        }
        let entry = self.state.let_go(place);
        listener.ended(&entry.facts(at_ns, RequestEnd::Abort));
        self.look(at_ns);
        true
    }

    /// When the next event happens; `None` while there is nothing to do.
    pub fn next_event(&self) -> Option<u64> {
        let end = self.under_way.front().map(|first| first.step.ends_ns);
        let stages = self.state.config.pipeline_stages.max(1) as usize;
        let may_launch = self.is_worth_a_look && self.under_way.len() < stages;
        end.into_iter().chain(may_launch.then_some(self.free_ns)).min()
    }

    /// Brings everything to `now_ns`.
    pub fn advance(&mut self, now_ns: u64, listener: &mut impl Listener) {
        while let Some(at_ns) = self.next_event().filter(|at_ns| *at_ns <= now_ns) {
            self.happen(at_ns, listener);
        }
    }

    /// Lets everything happen that comes before `at_ns`, and returns the resulting time.
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

    /// Something has changed that may let a step begin.
    fn look(&mut self, at_ns: u64) {
        self.is_worth_a_look = true;
        self.free_ns = self.free_ns.max(at_ns);
    }

    fn launch(&mut self, at_ns: u64, listener: &mut impl Listener) {
        let batch = match self.state.config.generation {
            Generation::V1 => {
                // A step that is put together while another runs has none of the requests that
                // arrive meanwhile.
                let SchedulerConfig { async_scheduling, pipeline_stages, .. } = self.state.config;
                let follows = self.last_end_ns == Some(at_ns) && !self.state.running.is_empty();
                let is_early = async_scheduling && pipeline_stages <= 1 && follows;
                assemble(&mut self.state, at_ns, is_early.then_some(self.launched_ns))
            }
            Generation::V0 { scheduler_steps } => self.put_together_v0(at_ns, scheduler_steps),
        };
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
        let id_of =
            |part: &Part| (self.state.entry(part.place).facts.id, part.tokens + part.drafted);
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

    fn put_together_v0(&mut self, at_ns: u64, scheduler_steps: u32) -> Batch {
        if 0 < self.steps_held {
            self.steps_held -= 1;
            let batch = answers(&mut self.state);
            if !batch.parts.is_empty() {
                return batch;
            }
            self.steps_held = 0;
        }
        let batch = prompts(&mut self.state, at_ns);
        if !batch.parts.is_empty() {
            return batch;
        }
        self.steps_held = scheduler_steps.saturating_sub(1);
        answers(&mut self.state)
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
            let State { running, entries, .. } = &mut self.state;
            running.retain(|place| entries[*place].is_some());
        }
        self.look(step.ends_ns);
    }
}

#[derive(Debug)]
struct State {
    config: SchedulerConfig,
    entries: Vec<Option<Entry>>,
    free_places: Vec<usize>,
    places: HashMap<u64, usize>,
    /// In the order of their admission.
    running: Vec<usize>,
    /// In the order in which they will come in.
    waiting: BTreeMap<Rank, usize>,
    pool: BlockPool,
    counters: Counters,
}

impl State {
    fn new(config: SchedulerConfig) -> Self {
        Self {
            entries: Vec::new(),
            free_places: Vec::new(),
            places: HashMap::new(),
            running: Vec::new(),
            waiting: BTreeMap::new(),
            pool: BlockPool::new(config.blocks),
            counters: Counters::default(),
            config,
        }
    }

    fn entry(&self, place: usize) -> &Entry {
        self.entries[place].as_ref().expect("a place in a queue has its request")
    }

    fn entry_mut(&mut self, place: usize) -> &mut Entry {
        self.entries[place].as_mut().expect("a place in a queue has its request")
    }

    fn take_in(&mut self, entry: Entry) {
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.places.insert(entry.facts.id, place);
        self.waiting.insert(entry.rank(self.config.policy), place);
        self.entries[place] = Some(entry);
    }

    /// Who is next among those who had arrived `until` then; among all without it.
    fn first_waiting(&self, until: Until) -> Option<usize> {
        let arrived_ns = |place: &usize| self.entry(*place).facts.arrived_ns;
        let is_known = |place: &usize| until.is_none_or(|until| arrived_ns(place) <= until);
        let mut places = self.waiting.values().copied();
        match self.config.policy {
            // None after one that is too new is older.
            Policy::Fcfs => places.next().filter(is_known),
            Policy::Priority => places.find(is_known),
        }
    }

    fn leave_queue(&mut self, place: usize) {
        let rank = self.entry(place).rank(self.config.policy);
        self.waiting.remove(&rank);
    }

    /// A request's part in a step is over: perhaps a token, and perhaps the last. Returns whether it was the last.
    fn end_part(&mut self, part: &Part, at_ns: u64, listener: &mut impl Listener) -> bool {
        let SchedulerConfig { max_model_len, prefix_caching, speculation, .. } = self.config;
        let Some(entry) = self.entries[part.place].as_mut() else { return false };
        // It was taken back, or it lost what this step computed.
        let is_void = entry.serial != part.serial || entry.facts.preemptions != part.preemptions;
        if is_void || !part.yields {
            return false;
        }
        if entry.facts.output_tokens == 0 {
            self.counters.prompt_tokens += u64::from(entry.facts.prompt_tokens);
        }
        // Without an answer, the request ends when its prompt is computed.
        let end = if 0 < entry.stop.max_tokens {
            let seed = (entry.answer_seed, entry.facts.output_tokens);
            let accepts = |it: Speculation| it.accepted(seed.0, seed.1, part.drafted);
            let most = speculation.map_or(0, accepts);
            let mut accepted = 0;
            let end = loop {
                self.counters.generation_tokens += 1;
                listener.token(entry.facts.id, entry.facts.output_tokens, at_ns);
                let end = entry.grow(at_ns, max_model_len, prefix_caching);
                if end.is_some() || accepted == most {
                    break end;
                }
                // The accepted token is computed, and the one behind it is known.
                accepted += 1;
                entry.computed += 1;
            };
            if 0 < part.drafted {
                entry.facts.drafts.add(part.drafted, accepted);
                self.counters.drafts.add(part.drafted, accepted);
            }
            let Some(end) = end else { return false };
            end
        } else {
            RequestEnd::Stop
        };
        let entry = self.let_go(part.place);
        listener.ended(&entry.facts(at_ns, end));
        true
    }

    /// Lets a request go; its blocks are free.
    fn let_go(&mut self, place: usize) -> Entry {
        self.free_blocks(place);
        let entry = self.entries[place].take().expect("a request leaves once");
        self.places.remove(&entry.facts.id);
        self.free_places.push(place);
        entry
    }

    fn free_blocks(&mut self, place: usize) {
        let blocks = std::mem::take(&mut self.entry_mut(place).blocks);
        // The last first: of a chain of names the end is worth least.
        for id in blocks.iter().rev() {
            self.pool.release(*id);
        }
    }

    /// Takes all blocks from a running request and lets it wait again.
    fn preempt(&mut self, place: usize) {
        self.free_blocks(place);
        self.counters.preemptions += 1;
        let turn = -self.counters.preemptions.cast_signed();
        let policy = self.config.policy;
        let entry = self.entry_mut(place);
        (entry.computed, entry.named, entry.turn) = (0, 0, turn);
        entry.facts.preemptions += 1;
        let rank = entry.rank(policy);
        self.waiting.insert(rank, place);
    }

    /// The blocks that hold the beginning of what a request knows: as many full ones in a row as
    /// the cache has, but never its last token, which must be computed to go on from.
    fn cached_blocks(&self, place: usize, found: &mut Vec<BlockId>) {
        found.clear();
        if !self.config.prefix_caching {
            return;
        }
        let entry = self.entry(place);
        let most = (entry.known() - 1) / self.config.block_size;
        let names = entry.names.iter().take(most as usize);
        found.extend(names.map_while(|name| self.pool.find(*name)));
    }

    /// Blocks that a request would take from the free list to hold `tokens`, with blocks of the
    /// cache that is not in use now.
    fn blocks_missing(&self, place: usize, tokens: u32, found: &[BlockId]) -> u32 {
        let entry = self.entry(place);
        let needed = tokens.min(self.config.max_model_len).div_ceil(self.config.block_size);
        let had = u32::try_from(found.len() + entry.blocks.len()).unwrap_or(u32::MAX);
        let idle = found.iter().filter(|id| self.pool.is_free(**id)).count();
        needed.saturating_sub(had) + u32::try_from(idle).unwrap_or(u32::MAX)
    }

    /// Tokens that are drafted behind the one that a request computes next: no more than may be kept.
    fn draft(&self, place: usize, tokens: u32, room: u32) -> u32 {
        let entry = self.entry(place);
        let goes_on = 0 < entry.facts.output_tokens && tokens == 1;
        let is_next = entry.computed + tokens == entry.known();
        let left = entry.stop.max_tokens.saturating_sub(entry.facts.output_tokens + 1);
        let speculation = self.config.speculation.filter(|_| goes_on && is_next);
        speculation.map_or(0, |speculation| speculation.tokens.min(left).min(room))
    }

    /// Gives a request the blocks for its first `tokens` tokens, behind those `found` in the cache.
    /// Returns whether there were enough; if not, nothing changes.
    fn allocate(&mut self, place: usize, tokens: u32, found: &[BlockId]) -> bool {
        let missing = self.blocks_missing(place, tokens, found);
        if self.pool.free() < missing {
            return false;
        }
        let Self { entries, pool, config, .. } = self;
        let entry = entries[place].as_mut().expect("a place in a queue has its request");
        for id in found {
            pool.share(*id);
        }
        entry.blocks.extend_from_slice(found);
        entry.named += u32::try_from(found.len()).unwrap_or(u32::MAX);
        let needed = tokens.min(config.max_model_len).div_ceil(config.block_size) as usize;
        while entry.blocks.len() < needed {
            entry.blocks.push(pool.take());
        }
        if config.prefix_caching {
            // Named at once, so that others in the same step find them.
            let full = tokens.min(entry.known()) / config.block_size;
            for index in entry.named..full {
                pool.name(entry.blocks[index as usize], entry.names[index as usize]);
            }
            entry.named = entry.named.max(full);
        }
        true
    }

    fn gauges(&self) -> Gauges {
        let used = self.pool.total() - self.pool.free();
        Gauges {
            running: u32::try_from(self.running.len()).unwrap_or(u32::MAX),
            waiting: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            kv_usage: f64::from(used) / f64::from(self.pool.total()),
        }
    }
}

#[derive(Debug)]
struct Entry {
    /// Counts requests since the start: order among equals, and proof that a place has not
    /// changed hands.
    serial: u64,
    /// Its place in the line. Who had its place before goes ahead of those that had none.
    turn: i64,
    priority: i32,
    /// Tokens whose keys and values are computed, or will be when the steps under way have ended.
    computed: u32,
    blocks: Vec<BlockId>,
    /// Blocks of those that have their name.
    named: u32,
    /// Names of full blocks, of the prompt and then of the answer.
    names: Vec<u64>,
    hasher: PromptHasher,
    answer_seed: u64,
    stop: StopRules,
    /// What is known so far; its end is still to come.
    facts: RequestFacts,
}

impl Entry {
    fn new(request: SchedulerRequest, serial: u64, arrived_ns: u64) -> Self {
        Self {
            serial,
            turn: serial.cast_signed(),
            priority: request.priority,
            computed: 0,
            blocks: Vec::new(),
            named: 0,
            names: request.prompt.hashes,
            hasher: request.prompt.rest,
            answer_seed: request.answer_seed,
            stop: request.stop,
            facts: RequestFacts {
                id: request.id,
                arrived_ns,
                prompt_tokens: request.prompt.tokens,
                max_tokens: request.stop.max_tokens,
                ..RequestFacts::default()
            },
        }
    }

    fn rank(&self, policy: Policy) -> Rank {
        match policy {
            Policy::Fcfs => (self.turn, 0, 0),
            Policy::Priority => (self.priority.into(), self.facts.arrived_ns, self.serial),
        }
    }

    /// Tokens of the prompt and of the answer so far.
    fn known(&self) -> u32 {
        self.facts.prompt_tokens + self.facts.output_tokens
    }

    /// One more token of the answer; returns whether it is the last.
    fn grow(&mut self, at_ns: u64, max_model_len: u32, names: bool) -> Option<RequestEnd> {
        if names
            && let Some(name) = self.hasher.push(token(self.answer_seed, self.facts.output_tokens))
        {
            self.names.push(name);
        }
        self.facts.output_tokens += 1;
        self.facts.first_token_ns.get_or_insert(at_ns);
        self.facts.last_token_ns = Some(at_ns);
        let StopRules { min_tokens, eos_at, stop_at, max_tokens } = self.stop;
        let reached = |at: Option<u32>| at.is_some_and(|at| at <= self.facts.output_tokens);
        let may_stop = min_tokens <= self.facts.output_tokens;
        if may_stop && (reached(eos_at) || reached(stop_at)) {
            return Some(RequestEnd::Stop);
        }
        let is_full = max_tokens <= self.facts.output_tokens || max_model_len <= self.known();
        is_full.then_some(RequestEnd::Length)
    }

    fn facts(&self, ended_ns: u64, end: RequestEnd) -> RequestFacts {
        RequestFacts { ended_ns, end, ..self.facts }
    }
}

/// The smaller goes first. No two are equal: equals that take blocks from each other in turn would
/// do so for ever.
type Rank = (i64, u64, u64);

/// Who may come in from the queue: those who had arrived by this time; all without one.
type Until = Option<u64>;

/// A step as vLLM v1 puts it together: the next tokens of running requests, in order, then requests
/// from the queue until one does not fit: none overtakes.
fn assemble(state: &mut State, now_ns: u64, until: Until) -> Batch {
    let mut batch = Batch::default();
    let mut budget = state.config.max_num_batched_tokens;
    let mut next = 0;
    'running: while next < state.running.len() && 0 < budget {
        let place = state.running[next];
        let entry = state.entry(place);
        let room = state.config.max_model_len.saturating_sub(entry.computed + 1);
        let missing = entry.known().saturating_sub(entry.computed);
        // None for a request whose step is under way.
        let tokens = capped(state, missing).min(budget).min(room);
        let drafted =
            state.draft(place, tokens, (budget - tokens).min(room.saturating_sub(tokens)));
        let target = state.entry(place).computed + tokens + drafted;
        // It gets its blocks, if need be at the cost of others.
        while 0 < tokens && !state.allocate(place, target, &[]) {
            let last = state.running.len() - 1;
            let rank_at =
                |index: &usize| state.entry(state.running[*index]).rank(state.config.policy);
            let index = match state.config.policy {
                Policy::Fcfs => last,
                Policy::Priority => (0..=last).max_by_key(rank_at).unwrap_or(last),
            };
            let loser = state.running.remove(index);
            if index < next {
                next -= 1;
            }
            budget += batch.remove(loser).unwrap_or(0);
            batch.preempted.push(state.entry(loser).facts.id);
            state.preempt(loser);
            if loser == place {
                break 'running;
            }
        }
        if 0 < tokens {
            batch.add(place, state.entry(place), tokens);
            batch.parts.last_mut().expect("it was added").drafted = drafted;
            budget -= tokens + drafted;
        }
        next += 1;
    }
    // Requests that have just lost blocks would only lose them again to newcomers.
    if !batch.preempted.is_empty() {
        return batch;
    }
    let mut found = Vec::new();
    while 0 < budget
        && state.running.len() < state.config.max_num_seqs as usize
        && let Some(place) = state.first_waiting(until)
    {
        state.cached_blocks(place, &mut found);
        let Some(tokens) = first_part(state, place, &found, budget) else { break };
        enter(state, &mut batch, place, &found, tokens, now_ns);
        budget -= tokens;
    }
    batch
}

/// How many tokens of a waiting request the step takes, and gives it its blocks; `None` when it
/// does not fit.
fn first_part(state: &mut State, place: usize, found: &[BlockId], budget: u32) -> Option<u32> {
    let known = state.entry(place).known();
    let cached = cached_tokens(state, found);
    let wanted = capped(state, known - cached);
    if !state.config.chunked_prefill && budget < wanted {
        return None;
    }
    let tokens = wanted.min(budget);
    let whole = if state.config.reserve_full_prompt { known } else { cached + tokens };
    if state.pool.free() < state.blocks_missing(place, whole, found) + watermark(state) {
        return None;
    }
    state.allocate(place, cached + tokens, found).then_some(tokens)
}

/// A waiting request that has its blocks becomes a running one.
fn enter(
    state: &mut State,
    batch: &mut Batch,
    place: usize,
    found: &[BlockId],
    tokens: u32,
    now_ns: u64,
) {
    state.leave_queue(place);
    state.running.push(place);
    let cached = cached_tokens(state, found);
    let looked_up = state.config.prefix_caching;
    let entry = state.entry_mut(place);
    entry.computed = cached;
    if entry.facts.scheduled_ns.is_none() {
        entry.facts.scheduled_ns = Some(now_ns);
        entry.facts.cached_tokens = cached;
    }
    let (known, again) = (u64::from(entry.known()), 0 < entry.facts.preemptions);
    batch.admitted.push((entry.facts.id, cached));
    batch.add(place, state.entry(place), tokens);
    if looked_up {
        let counters = &mut state.counters;
        let (queries, hits) = if again {
            (&mut counters.prefix_queries_preempted, &mut counters.prefix_hits_preempted)
        } else {
            (&mut counters.prefix_queries, &mut counters.prefix_hits)
        };
        *queries += known;
        *hits += u64::from(cached);
    }
}

fn cached_tokens(state: &State, found: &[BlockId]) -> u32 {
    u32::try_from(found.len()).unwrap_or(u32::MAX) * state.config.block_size
}

/// A long prompt leaves some of the step to others, if there are others.
fn capped(state: &State, tokens: u32) -> u32 {
    match state.config.long_prefill_token_threshold {
        0 => tokens,
        _ if state.running.len() + state.waiting.len() <= 1 => tokens,
        most => tokens.min(most),
    }
}

/// Blocks that admission leaves free; none while nothing runs, or nothing ever would.
fn watermark(state: &State) -> u32 {
    if state.running.is_empty() {
        return 0;
    }
    to_u32(state.config.watermark * f64::from(state.config.blocks))
}

/// A step of prompts; empty when none waits or none fits.
fn prompts(state: &mut State, now_ns: u64) -> Batch {
    let mut batch = Batch::default();
    let mut budget = state.config.max_num_batched_tokens;
    let mut found = Vec::new();
    while state.running.len() < state.config.max_num_seqs as usize
        && let Some(place) = state.first_waiting(None)
    {
        let known = state.entry(place).known();
        // The budget counts whole prompts, whatever the cache spares.
        if budget < known && !batch.parts.is_empty() {
            break;
        }
        state.cached_blocks(place, &mut found);
        let fits = state.blocks_missing(place, known, &found) + watermark(state);
        if state.pool.free() < fits || !state.allocate(place, known, &found) {
            break;
        }
        let cached = cached_tokens(state, &found);
        enter(state, &mut batch, place, &found, known - cached, now_ns);
        budget = budget.saturating_sub(known);
    }
    batch
}

/// A step of one token for each running answer. Those that find no block give way, the last first.
fn answers(state: &mut State) -> Batch {
    let mut batch = Batch::default();
    let mut next = 0;
    while next < state.running.len() {
        let place = state.running[next];
        let entry = state.entry(place);
        let tokens = entry.known().saturating_sub(entry.computed);
        let target = entry.computed + tokens;
        let mut kept = true;
        while kept && !state.allocate(place, target, &[]) {
            let loser = state.running.pop().unwrap_or(place);
            batch.preempted.push(state.entry(loser).facts.id);
            state.preempt(loser);
            kept = loser != place;
        }
        if !kept {
            break;
        }
        if 0 < tokens {
            batch.add(place, state.entry(place), tokens);
        }
        next += 1;
    }
    batch
}

/// A request's part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    place: usize,
    serial: u64,
    /// How often it had lost its blocks: what a step computed for blocks that are gone is void.
    preemptions: u32,
    tokens: u32,
    /// Tokens of a draft that are verified with it.
    drafted: u32,
    /// Whether it brings a token: all that was known is computed with it.
    yields: bool,
}

#[derive(Debug, Default)]
struct Batch {
    parts: Vec<Part>,
    /// Ids of requests that lost their blocks.
    preempted: Vec<u64>,
    /// Ids of requests that came in, with the tokens that the cache spared them.
    admitted: Vec<(u64, u32)>,
}

impl Batch {
    fn add(&mut self, place: usize, entry: &Entry, tokens: u32) {
        let (serial, preemptions) = (entry.serial, entry.facts.preemptions);
        let yields = entry.computed + tokens == entry.known();
        self.parts.push(Part { place, serial, preemptions, tokens, drafted: 0, yields });
    }

    /// Takes a request out again; gives back the tokens of its part.
    fn remove(&mut self, place: usize) -> Option<u32> {
        let index = self.parts.iter().position(|part| part.place == place)?;
        let part = self.parts.remove(index);
        Some(part.tokens + part.drafted)
    }

    /// Counts the tokens of all parts as computed, and returns what computing them takes.
    fn settle(&self, state: &mut State) -> StepShape {
        let mut shape = StepShape::default();
        for part in &self.parts {
            let entry = state.entry_mut(part.place);
            let before = entry.computed;
            entry.computed += part.tokens;
            let is_decode = part.tokens == 1
                && 0 < entry.facts.output_tokens
                && entry.computed == entry.known();
            if is_decode {
                shape.decodes += 1;
                shape.drafted += u64::from(part.drafted);
                shape.decode_context += u64::from(entry.computed);
                shape.decode_context_max = shape.decode_context_max.max(entry.computed);
            } else {
                let (tokens, before) = (f64::from(part.tokens), f64::from(before));
                shape.prefills += 1;
                shape.prefill_tokens += u64::from(part.tokens);
                shape.prefill_pairs += tokens * (before + tokens / 2.0);
            }
        }
        shape
    }
}
