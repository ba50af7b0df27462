//! What steps are put together from: requests in their places, queues and blocks.

use std::collections::HashMap;

use super::assemble::Until;
use super::batch::Part;
use super::blocks::{BlockId, BlockPool};
use super::config::SchedulerConfig;
use super::core::{Counters, Gauges};
use super::entry::Entry;
use super::listener::{Listener, RequestEnd};
use super::waiting::Waiting;

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
        self.places.insert(entry.id, place);
        self.waiting.push(place, &entry);
        self.entries[place] = Some(entry);
    }

    /// Takes a request out, wherever it stands; its blocks are free.
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
        // Of those who come in order, nobody behind one that is too new is older.
        let is_known = until.is_none_or(|until| self.entry(place).arrived_ns() <= until);
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

    /// A request's part in a step is over: perhaps a token, and perhaps the last. Says whether.
    pub(super) fn end_part(
        &mut self,
        part: &Part,
        at_ns: u64,
        listener: &mut impl Listener,
    ) -> bool {
        let SchedulerConfig { max_model_len, prefix_caching, .. } = self.config;
        let Some(entry) = self.entries[part.place].as_mut() else { return false };
        // It was taken back, or it lost what this step computed.
        let is_void = entry.serial != part.serial || entry.preemptions() != part.preemptions;
        if is_void || !part.yields {
            return false;
        }
        if entry.outputs == 0 {
            self.counters.prompt_tokens += u64::from(entry.prompt_tokens);
        }
        let end = if entry.wants_answer() {
            self.counters.generation_tokens += 1;
            listener.token(entry.id, entry.outputs, at_ns);
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
        self.places.remove(&entry.id);
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
    /// cache that nobody uses now.
    pub(super) fn blocks_missing(&self, place: usize, tokens: u32, found: &[BlockId]) -> u32 {
        let entry = self.entry(place);
        let needed = tokens.min(self.config.max_model_len).div_ceil(self.config.block_size);
        let had = u32::try_from(found.len() + entry.blocks.len()).unwrap_or(u32::MAX);
        let idle = found.iter().filter(|id| self.pool.is_free(**id)).count();
        needed.saturating_sub(had) + u32::try_from(idle).unwrap_or(u32::MAX)
    }

    /// Gives a request the blocks for its first `tokens` tokens, behind those `found` in the cache.
    /// Says whether there were enough; if not, nothing changes.
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
