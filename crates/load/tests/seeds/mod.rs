//! The instrument in virtual time: dispatcher, answer reader, limits, stamps and journal under faults
//! that are drawn from a seed. There is no socket, no thread and no clock of this machine, so a seed
//! always gives the same run.
//!
//! `cargo xtask seeds` plays many of them, and `cargo xtask seeds --seed N` plays one again.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod clocks;
mod plan;
mod server;
mod stored;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use inferometer_model::{JournalEntry, Outcome};
use tempfile::{tempdir, tempdir_in};

/// Enough to meet every fault in every combination with some other one, in a few seconds.
const SEEDS: u64 = 200;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect(variable))
}

/// What the seeds met.
#[derive(Debug, Default)]
struct Met {
    complete: u64,
    interrupted: u64,
    endings: BTreeMap<&'static str, u64>,
}

impl Met {
    fn note(&mut self, played: &world::Played) {
        self.complete += u64::from(played.is_complete);
        self.interrupted += u64::from(!played.is_complete);
        for entry in &played.entries {
            let (ending, count) = match entry {
                JournalEntry::Ended(record) => (record.ending.outcome.key(), 1),
                JournalEntry::NotSent(part) => (Outcome::NotSent.key(), part.count),
                JournalEntry::Started(_) | JournalEntry::RunEnded(_) => continue,
            };
            *self.endings.entry(ending).or_default() += count;
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the nightly command shows what was played")]
fn every_seed_keeps_the_sums_and_the_journal() {
    let only = number("INFEROMETER_SEED");
    let count = number("INFEROMETER_SEEDS").unwrap_or(SEEDS);
    // Syncing is not what is tested, and takes most of the time on a disk.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { tempdir_in(memory) } else { tempdir() }.unwrap();
    let mut met = Met::default();
    for seed in only.map_or(0..count, |seed| seed..seed + 1) {
        let played = catch_unwind(AssertUnwindSafe(|| {
            let played = world::play(seed);
            stored::check(&played, &place.path().join(seed.to_string()), seed);
            played
        }));
        let Ok(played) = played else {
            panic!("seed {seed} failed; replay it with `cargo xtask seeds --seed {seed}`");
        };
        met.note(&played);
    }
    eprintln!("{met:?}");
    if only.is_none() {
        assert!(count / 4 < met.complete && count / 10 < met.interrupted, "{met:?}");
        assert!(EXPECTED.iter().all(|outcome| met.endings.contains_key(outcome.key())), "{met:?}");
    }
}

/// Every ending that this world can bring about.
const EXPECTED: [Outcome; 11] = [
    Outcome::Ok,
    Outcome::StreamError,
    Outcome::Truncated,
    Outcome::ProtocolError,
    Outcome::TransportError,
    Outcome::TimeoutConnect,
    Outcome::TimeoutFirstToken,
    Outcome::TimeoutIdle,
    Outcome::TimeoutTotal,
    Outcome::Cancelled,
    Outcome::NotSent,
];

/// The same seed gives the same run, or nobody could replay it.
#[test]
fn a_seed_is_played_the_same_way_twice() {
    for seed in 0..20 {
        assert_eq!(world::play(seed).disk, world::play(seed).disk, "seed {seed}");
    }
}

/// The draws of a seed: `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    fn size(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).unwrap()
    }

    /// True in so many of a hundred cases.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Draws of their own, so that one part of a run does not shift the draws of another.
    fn branch(&mut self) -> Self {
        Self(self.number())
    }
}
