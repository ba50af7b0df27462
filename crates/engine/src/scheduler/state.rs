//! What steps are put together from: requests in their places, queues and blocks.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::assemble::{Part, Until};
use super::blocks::{BlockId, BlockPool, PromptHasher, token};
use super::core::{Counters, Gauges};
use super::request::{
    Listener, Policy, RequestEnd, RequestFacts, SchedulerConfig, SchedulerRequest, StopRules,
};

#[derive(Debug)]
pub(super) struct State {
    pub(super) config: SchedulerConfig,
    entries: Vec<Option<Entry>>,
    free_places: Vec<usize>,
    places: HashMap<u64, usize>,
    /// In the order of their admission.
    pub(super) running: Vec<usize>,
    pub(super) waiting: Waiting,
    pub(super) pool: BlockPool,
    pub(super) counters: Counters,
}

impl State {
    pub(super) fn new(config: SchedulerConfig) -> Self {
        Self {
            entries: Vec::new(),
            free_places: Vec::new(),
            places: HashMap::new(),
            running: Vec::new(),
            waiting: Waiting::new(config.policy),
            pool: BlockPool::new(config.blocks),
            counters: Counters::default(),
            config,
        }
    }

    pub(super) fn entry(&self, place: usize) -> &Entry {
        self.entries[place].as_ref().expect("a place in a queue has its request")
    }

    pub(super) fn entry_mut(&mut self, place: usize) -> &mut Entry {
        self.entries[place].as_mut().expect("a place in a queue has its request")
    }

    pub(super) fn place_of(&self, id: u64) -> Option<usize> {
        self.places.get(&id).copied()
    }

    pub(super) fn take_in(&mut self, entry: Entry) {
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.places.insert(entry.facts.id, place);
        self.waiting.push(place, &entry);
        self.entries[place] = Some(entry);
    }

    /// Removes a request, wherever it is; its blocks are free.
    pub(super) fn take_out(&mut self, place: usize) -> Entry {
        if let Some(index) = self.running.iter().position(|other| *other == place) {
            self.running.remove(index);
        } else {
            self.leave_queue(place);
        }
        self.let_go(place)
    }

    /// Who is next among those who had arrived `until` then; among all without it.
    pub(super) fn first_waiting(&self, until: Until) -> Option<usize> {
        let place = self.waiting.first(until)?;
        // Requests are in order, so none after one that is too new is older.
        let is_known = until.is_none_or(|until| self.entry(place).facts.arrived_ns <= until);
        is_known.then_some(place)
    }

    /// A waiting request becomes a running one.
    pub(super) fn admit(&mut self, place: usize) {
        self.leave_queue(place);
        self.running.push(place);
    }

    fn leave_queue(&mut self, place: usize) {
        let entry = self.entries[place].as_ref().expect("a place in a queue has its request");
        self.waiting.remove(entry);
    }

    /// A request's part in a step is over: perhaps a token, and perhaps the last. Returns whether it was the last.
    pub(super) fn end_part(
        &mut self,
        part: &Part,
        at_ns: u64,
        listener: &mut impl Listener,
    ) -> bool {
        let SchedulerConfig { max_model_len, prefix_caching, .. } = self.config;
        let Some(entry) = self.entries[part.place].as_mut() else { return false };
        // It was taken back, or it lost what this step computed.
        let is_void = entry.serial != part.serial || entry.facts.preemptions != part.preemptions;
        if is_void || !part.yields {
            return false;
        }
        if entry.facts.output_tokens == 0 {
            self.counters.prompt_tokens += u64::from(entry.facts.prompt_tokens);
        }
        let end = if entry.wants_answer() {
            self.counters.generation_tokens += 1;
            listener.token(entry.facts.id, entry.facts.output_tokens, at_ns);
            let Some(end) = entry.grow(at_ns, max_model_len, prefix_caching) else { return false };
            end
        } else {
            RequestEnd::Stop
        };
        let entry = self.let_go(part.place);
        listener.ended(&entry.facts(at_ns, end));
        true
    }

    /// Takes those who have left out of the list of running ones.
    pub(super) fn forget_finished(&mut self) {
        let Self { running, entries, .. } = self;
        running.retain(|place| entries[*place].is_some());
    }

    /// Lets a request go; its blocks are free.
    fn let_go(&mut self, place: usize) -> Entry {
        self.free_blocks(place);
        let entry = self.entries[place].take().expect("a request leaves once");
        self.places.remove(&entry.facts.id);
        self.free_places.push(place);
        entry
    }

    pub(super) fn free_blocks(&mut self, place: usize) {
        let blocks = std::mem::take(&mut self.entry_mut(place).blocks);
        // The last first: of a chain of names the end is worth least.
        for id in blocks.iter().rev() {
            self.pool.release(*id);
        }
    }

    /// Takes all blocks from a running request and lets it wait again.
    pub(super) fn preempt(&mut self, place: usize) {
        self.free_blocks(place);
        self.entry_mut(place).preempt();
        self.counters.preemptions += 1;
        let entry = self.entries[place].as_ref().expect("a place in a queue has its request");
        self.waiting.push_again(place, entry);
    }

    /// The blocks that hold the beginning of what a request knows: as many full ones in a row as
    /// the cache has, but never its last token, which must be computed to go on from.
    pub(super) fn cached_blocks(&self, place: usize, found: &mut Vec<BlockId>) {
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
    pub(super) fn blocks_missing(&self, place: usize, tokens: u32, found: &[BlockId]) -> u32 {
        let entry = self.entry(place);
        let needed = tokens.min(self.config.max_model_len).div_ceil(self.config.block_size);
        let had = u32::try_from(found.len() + entry.blocks.len()).unwrap_or(u32::MAX);
        let idle = found.iter().filter(|id| self.pool.is_free(**id)).count();
        needed.saturating_sub(had) + u32::try_from(idle).unwrap_or(u32::MAX)
    }

    /// Gives a request the blocks for its first `tokens` tokens, behind those `found` in the cache.
    /// Returns whether there were enough; if not, nothing changes.
    pub(super) fn allocate(&mut self, place: usize, tokens: u32, found: &[BlockId]) -> bool {
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

    pub(super) fn gauges(&self) -> Gauges {
        let used = self.pool.total() - self.pool.free();
        Gauges {
            running: u32::try_from(self.running.len()).unwrap_or(u32::MAX),
            waiting: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            kv_usage: f64::from(used) / f64::from(self.pool.total()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    /// Counts requests since the start: order among equals, and proof that a place has not
    /// changed hands.
    pub(super) serial: u64,
    pub(super) priority: i32,
    /// Tokens whose keys and values are computed, or will be when the steps under way have ended.
    pub(super) computed: u32,
    pub(super) blocks: Vec<BlockId>,
    /// Blocks of those that have their name.
    pub(super) named: u32,
    /// Names of full blocks, of the prompt and then of the answer.
    pub(super) names: Vec<u64>,
    hasher: PromptHasher,
    answer_seed: u64,
    stop: StopRules,
    /// What is known so far; its end is still to come.
    pub(super) facts: RequestFacts,
}

impl Entry {
    pub(super) fn new(request: SchedulerRequest, serial: u64, arrived_ns: u64) -> Self {
        Self {
            serial,
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
                scheduled_ns: None,
                first_token_ns: None,
                last_token_ns: None,
                ended_ns: 0,
                prompt_tokens: request.prompt.tokens,
                cached_tokens: 0,
                output_tokens: 0,
                max_tokens: request.stop.max_tokens,
                preemptions: 0,
                end: RequestEnd::Abort,
            },
        }
    }

    /// Tokens of the prompt and of the answer so far.
    pub(super) fn known(&self) -> u32 {
        self.facts.prompt_tokens + self.facts.output_tokens
    }

    /// Whether more is asked for than that the prompt is computed.
    pub(super) fn wants_answer(&self) -> bool {
        0 < self.stop.max_tokens
    }

    pub(super) fn admit(&mut self, now_ns: u64, cached_tokens: u32) {
        if self.facts.scheduled_ns.is_none() {
            self.facts.scheduled_ns = Some(now_ns);
            self.facts.cached_tokens = cached_tokens;
        }
    }

    pub(super) fn preempt(&mut self) {
        self.computed = 0;
        self.named = 0;
        self.facts.preemptions += 1;
    }

    /// One more token of the answer; returns whether it is the last.
    pub(super) fn grow(
        &mut self,
        at_ns: u64,
        max_model_len: u32,
        names: bool,
    ) -> Option<RequestEnd> {
        if names
            && let Some(name) = self.hasher.push(token(self.answer_seed, self.facts.output_tokens))
        {
            self.names.push(name);
        }
        self.facts.output_tokens += 1;
        self.facts.first_token_ns.get_or_insert(at_ns);
        self.facts.last_token_ns = Some(at_ns);
        self.end(max_model_len)
    }

    fn end(&self, max_model_len: u32) -> Option<RequestEnd> {
        let StopRules { min_tokens, eos_at, stop_at, max_tokens } = self.stop;
        let reached = |at: Option<u32>| at.is_some_and(|at| at <= self.facts.output_tokens);
        let may_stop = min_tokens <= self.facts.output_tokens;
        if may_stop && (reached(eos_at) || reached(stop_at)) {
            return Some(RequestEnd::Stop);
        }
        let is_full = max_tokens <= self.facts.output_tokens || max_model_len <= self.known();
        is_full.then_some(RequestEnd::Length)
    }

    pub(super) fn facts(&self, ended_ns: u64, end: RequestEnd) -> RequestFacts {
        RequestFacts { ended_ns, end, ..self.facts }
    }
}

/// Places of the requests that wait.
#[derive(Debug)]
pub(super) enum Waiting {
    Fcfs(Line),
    Priority(BTreeMap<Rank, usize>),
}

/// The smaller goes first. No two are equal: equals that take blocks from each other in turn would
/// do so for ever.
pub(super) type Rank = (i32, u64, u64);

pub(super) fn rank(entry: &Entry) -> Rank {
    (entry.priority, entry.facts.arrived_ns, entry.serial)
}

impl Waiting {
    pub(super) fn new(policy: Policy) -> Self {
        match policy {
            Policy::Fcfs => Self::Fcfs(Line::default()),
            Policy::Priority => Self::Priority(BTreeMap::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fcfs(line) => line.len(),
            Self::Priority(places) => places.len(),
        }
    }

    /// The next request. By priority, one that came after `until` does not delay those that came before.
    pub(super) fn first(&self, until: Until) -> Option<usize> {
        match (self, until) {
            (Self::Fcfs(line), _) => line.first(),
            (Self::Priority(places), None) => places.values().next().copied(),
            (Self::Priority(places), Some(until)) => {
                let known = places.iter().find(|((_, arrived_ns, _), _)| *arrived_ns <= until);
                known.map(|(_, place)| *place)
            }
        }
    }

    pub(super) fn push(&mut self, place: usize, entry: &Entry) {
        match self {
            Self::Fcfs(line) => line.places.push_back((place, entry.serial)),
            Self::Priority(places) => drop(places.insert(rank(entry), place)),
        }
    }

    /// One that had its place before and goes ahead of those that had none.
    pub(super) fn push_again(&mut self, place: usize, entry: &Entry) {
        match self {
            Self::Fcfs(line) => line.places.push_front((place, entry.serial)),
            Self::Priority(_) => self.push(place, entry),
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        match self {
            Self::Fcfs(line) => line.remove(entry.serial),
            Self::Priority(places) => drop(places.remove(&rank(entry))),
        }
    }
}

/// Places in order, with the serials of their requests. Who leaves from the middle is only struck
/// off, and dropped when all before it are gone, so that leaving a long line takes no longer than
/// leaving a short one. The first is never one that was struck off.
#[derive(Debug, Default)]
pub(super) struct Line {
    places: VecDeque<(usize, u64)>,
    struck: HashSet<u64>,
}

impl Line {
    fn len(&self) -> usize {
        self.places.len() - self.struck.len()
    }

    fn first(&self) -> Option<usize> {
        self.places.front().map(|(place, _)| *place)
    }

    fn remove(&mut self, serial: u64) {
        if self.places.front().is_some_and(|(_, first)| *first == serial) {
            self.places.pop_front();
        } else {
            self.struck.insert(serial);
        }
        while let Some((_, first)) = self.places.front()
            && self.struck.remove(first)
        {
            self.places.pop_front();
        }
        // A first that stays for long must not let those who come and leave behind it pile up.
        if self.places.len() < 2 * self.struck.len() {
            let struck = std::mem::take(&mut self.struck);
            self.places.retain(|(_, serial)| !struck.contains(serial));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(serials: std::ops::Range<u64>) -> Line {
        let places = serials.map(|serial| (usize::try_from(serial).unwrap() + 100, serial));
        Line { places: places.collect(), struck: HashSet::new() }
    }

    #[test]
    fn who_leaves_the_line_is_never_first() {
        let mut line = line(0..6);
        for serial in [1, 4] {
            line.remove(serial);
        }
        assert_eq!((line.len(), line.first()), (4, Some(100)));
        line.remove(0);
        assert_eq!((line.len(), line.first()), (3, Some(102)));
        for serial in [2, 3] {
            line.remove(serial);
        }
        assert_eq!((line.len(), line.first()), (1, Some(105)));
        line.remove(5);
        assert_eq!((line.len(), line.first()), (0, None));
    }

    #[test]
    fn those_who_come_and_leave_behind_one_that_stays_do_not_pile_up() {
        let mut line = line(0..1);
        for serial in 1..10_000 {
            line.places.push_back((7, serial));
            line.remove(serial);
        }
        assert_eq!((line.len(), line.first()), (1, Some(100)));
        assert!(line.places.len() < 4, "{}", line.places.len());
    }
}
