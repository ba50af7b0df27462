//! The paged KV cache: blocks with a count of their users, a list of free ones in the order in
//! which they will be taken, and names by which full blocks are found again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize};

/// A block's number. Number zero is the null block, which is never given away.
pub(super) type BlockId = u32;

/// All blocks. A block is free or has users; a free one keeps its name until it is taken.
#[derive(Debug)]
pub(super) struct BlockPool {
    users: Vec<u32>,
    names: Vec<Option<u64>>,
    /// Neighbours in the list of free blocks; the null block is before its first and after
    /// its last.
    before: Vec<BlockId>,
    after: Vec<BlockId>,
    free: u32,
    /// Blocks by name; two requests may have computed the same.
    named: HashMap<u64, Namesakes, BuildHasherDefault<Identity>>,
    /// Neighbours among the blocks of one name, in the order in which they got it; the null block
    /// stands for none.
    older: Vec<BlockId>,
    newer: Vec<BlockId>,
}

/// The ends of a row of blocks that have one name.
#[derive(Clone, Copy, Debug)]
struct Namesakes {
    oldest: BlockId,
    newest: BlockId,
}

const NULL: BlockId = 0;

impl BlockPool {
    pub(super) fn new(blocks: u32) -> Self {
        let count = blocks.max(2) as usize;
        let ids = 0..blocks.max(2);
        let last = blocks.max(2) - 1;
        Self {
            users: vec![0; count],
            names: vec![None; count],
            before: ids.clone().map(|id| id.checked_sub(1).unwrap_or(last)).collect(),
            after: ids.map(|id| if id == last { NULL } else { id + 1 }).collect(),
            free: last,
            named: HashMap::default(),
            older: vec![NULL; count],
            newer: vec![NULL; count],
        }
    }

    /// Blocks that may be given away at all.
    pub(super) fn total(&self) -> u32 {
        u32::try_from(self.users.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// The oldest block of this name.
    pub(super) fn find(&self, name: u64) -> Option<BlockId> {
        self.named.get(&name).map(|namesakes| namesakes.oldest)
    }

    pub(super) fn is_free(&self, id: BlockId) -> bool {
        self.users[id as usize] == 0
    }

    /// Takes the free block that has waited longest; its name is forgotten. There must be one.
    pub(super) fn take(&mut self) -> BlockId {
        let id = self.after[NULL as usize];
        assert_ne!(id, NULL, "a block is taken only when one is free");
        self.unlink(id);
        self.forget(id);
        self.users[id as usize] = 1;
        id
    }

    /// One more user of a block that was found by its name.
    pub(super) fn share(&mut self, id: BlockId) {
        if self.is_free(id) {
            self.unlink(id);
        }
        self.users[id as usize] += 1;
    }

    /// One user less. A block without users is free: with a name it is taken last, without one
    /// next.
    pub(super) fn release(&mut self, id: BlockId) {
        let users = &mut self.users[id as usize];
        *users -= 1;
        if *users == 0 {
            let (before, after) = match self.names[id as usize] {
                Some(_) => (self.before[NULL as usize], NULL),
                None => (NULL, self.after[NULL as usize]),
            };
            self.before[id as usize] = before;
            self.after[id as usize] = after;
            self.after[before as usize] = id;
            self.before[after as usize] = id;
            self.free += 1;
        }
    }

    /// Gives a full block its name.
    pub(super) fn name(&mut self, id: BlockId, name: u64) {
        self.names[id as usize] = Some(name);
        let Self { named, older, newer, .. } = self;
        let add = |namesakes: &mut Namesakes| {
            older[id as usize] = namesakes.newest;
            newer[namesakes.newest as usize] = id;
            namesakes.newest = id;
        };
        named.entry(name).and_modify(add).or_insert(Namesakes { oldest: id, newest: id });
    }

    /// Forgets the names of all free blocks.
    pub(super) fn forget_free(&mut self) {
        for id in 1..=self.total() {
            if self.is_free(id) {
                self.forget(id);
            }
        }
    }

    fn forget(&mut self, id: BlockId) {
        let Some(name) = self.names[id as usize].take() else { return };
        let older = std::mem::replace(&mut self.older[id as usize], NULL);
        let newer = std::mem::replace(&mut self.newer[id as usize], NULL);
        if (older, newer) == (NULL, NULL) {
            self.named.remove(&name);
            return;
        }
        let Some(namesakes) = self.named.get_mut(&name) else { return };
        match older {
            NULL => namesakes.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
        match newer {
            NULL => namesakes.newest = older,
            newer => self.older[newer as usize] = older,
        }
    }

    fn unlink(&mut self, id: BlockId) {
        let (before, after) = (self.before[id as usize], self.after[id as usize]);
        self.after[before as usize] = after;
        self.before[after as usize] = before;
        self.free -= 1;
    }
}

/// Names are hashes already.
#[derive(Debug, Default)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// Words that the engine knows; token ids are below this, special ones are not drawn.
pub const VOCABULARY: u32 = 32_000;
/// Ids below this are special: padding, begin, end, and the marks of a chat.
pub const SPECIAL_TOKENS: u32 = 16;

/// The token at `index` of the run that `seed` names.
pub fn token(seed: u64, index: u32) -> u32 {
    let drawn = mix(seed ^ (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let range = u64::from(VOCABULARY - SPECIAL_TOKENS);
    // The high half times the range, shifted: even enough, and without a division.
    let below = ((drawn >> 32) * range) >> 32;
    SPECIAL_TOKENS + u32::try_from(below).unwrap_or_default()
}

/// Names blocks of tokens: a block's hash depends on all tokens before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptHasher {
    /// Hash of the last full block, and then of the tokens after it.
    state: u64,
    filled: u32,
    block_size: u32,
}

impl PromptHasher {
    pub fn new(block_size: u32) -> Self {
        Self { state: 0x6c62_272e_07bb_0142, filled: 0, block_size }
    }

    /// Takes one more token; gives the hash of the block that it completes.
    pub fn push(&mut self, id: u32) -> Option<u64> {
        self.state = mix(self.state ^ u64::from(id).wrapping_add(0x51_7cc1_b727_220a));
        self.filled += 1;
        if self.filled < self.block_size {
            return None;
        }
        self.filled = 0;
        Some(self.state)
    }
}

/// Scatters the bits of a number; one to one.
pub fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_in_order_and_named_ones_last() {
        let mut pool = BlockPool::new(5);
        assert_eq!((pool.total(), pool.free()), (4, 4));
        let taken = [pool.take(), pool.take(), pool.take()];
        assert_eq!(taken, [1, 2, 3]);
        pool.name(1, 77);
        for id in taken {
            pool.release(id);
        }
        assert_eq!(pool.free(), 4);
        assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [3, 2, 4, 1]);
        assert_eq!(pool.find(77), None);
    }

    #[test]
    fn a_free_block_is_found_by_its_name_and_leaves_the_list() {
        let mut pool = BlockPool::new(3);
        let id = pool.take();
        pool.name(id, 5);
        pool.release(id);
        assert_eq!(pool.find(5), Some(id));
        pool.share(id);
        pool.share(id);
        assert_eq!(pool.free(), 1);
        pool.release(id);
        assert_eq!(pool.free(), 1);
        pool.release(id);
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn of_two_blocks_with_one_name_the_other_stays_when_one_goes() {
        let mut pool = BlockPool::new(3);
        let (first, second) = (pool.take(), pool.take());
        pool.name(first, 9);
        pool.name(second, 9);
        assert_eq!(pool.find(9), Some(first));
        pool.release(first);
        assert_eq!(pool.take(), first);
        assert_eq!(pool.find(9), Some(second));
    }

    #[test]
    fn blocks_of_one_name_may_go_in_any_order() {
        let count = 100_000;
        let mut pool = BlockPool::new(count + 1);
        let ids: Vec<BlockId> = (0..count).map(|_| pool.take()).collect();
        for id in &ids {
            pool.name(*id, 9);
        }
        // The odd ones go, from the last to the first; then of the others the first half.
        let odd = ids.iter().rev().filter(|id| *id % 2 == 1);
        let half = ids.iter().filter(|id| *id % 2 == 0 && **id <= count / 2);
        for id in odd.chain(half) {
            pool.release(*id);
        }
        assert_eq!(pool.find(9), Some(1));
        while pool.free() > 0 {
            pool.take();
        }
        assert_eq!(pool.find(9), Some(count / 2 + 2));
    }
}
