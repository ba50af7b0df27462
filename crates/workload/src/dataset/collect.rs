//! Gathering items: counted in batches on all cores, and what is left out is counted by its reason.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;

use inferometer_model::Prompt;
use serde_json::{Map, Value};

use super::Item;
use crate::counter::Counter;
use crate::data_file::DataFileError;
use crate::plan::Stream;

/// An item before its tokens are counted.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) prompt: Prompt,
    pub(super) output: Output,
    pub(super) fields: Map<String, Value>,
}

/// What is known of an answer's length.
#[derive(Debug)]
pub(super) enum Output {
    Unknown,
    Tokens(u32),
    /// As long as this one.
    Reference(String),
    /// What is asked of all, whatever the data states; `None` is drawn for each request.
    Chosen(Option<u32>),
}

/// Which lengths are used.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    prompt: RangeInclusive<usize>,
    reference_min: usize,
    sum_max: usize,
}

impl Limits {
    pub(super) const NONE: Self =
        Self { prompt: 0..=usize::MAX, reference_min: 0, sum_max: usize::MAX };
    /// As the client that made this data set the usual one has them: results compare only when the
    /// same prompts are left out.
    pub(super) const SHARE_GPT: Self = Self { prompt: 4..=1_024, reference_min: 4, sum_max: 2_048 };

    fn refuse(&self, prompt: usize, output: &Output, answer: Option<u32>) -> Option<String> {
        let reference = matches!(output, Output::Reference(_));
        let answer = answer.map_or(0, |tokens| tokens as usize);
        if prompt < *self.prompt.start() {
            Some(format!("prompt below {} tokens", self.prompt.start()))
        } else if reference && answer < self.reference_min {
            Some(format!("answer below {} tokens", self.reference_min))
        } else if *self.prompt.end() < prompt {
            Some(format!("prompt above {} tokens", self.prompt.end()))
        } else if self.sum_max < prompt.saturating_add(answer) {
            Some(format!("prompt and answer above {} tokens", self.sum_max))
        } else {
            None
        }
    }
}

#[derive(Debug)]
pub(super) struct Collector<'c> {
    path: PathBuf,
    counter: &'c dyn Counter,
    limits: Limits,
    items_max: u64,
    waiting: Vec<Raw>,
    items: Vec<Item>,
    dropped: BTreeMap<String, u64>,
    /// Keys or columns that mean nothing to us.
    ignored: BTreeMap<String, u64>,
}

const BATCH: usize = 4_096;
/// Names of unknown keys that are counted separately: a file of keys only must not fill the memory.
const STRANGERS_MAX: usize = 32;

impl<'c> Collector<'c> {
    pub(super) fn new(
        path: &Path,
        counter: &'c dyn Counter,
        limits: Limits,
        items_max: u64,
    ) -> Self {
        Self {
            path: path.to_path_buf(),
            counter,
            limits,
            items_max,
            waiting: Vec::new(),
            items: Vec::new(),
            dropped: BTreeMap::new(),
            ignored: BTreeMap::new(),
        }
    }

    pub(super) fn push(&mut self, raw: Raw) -> Result<(), DataFileError> {
        let is_empty = match &raw.prompt {
            Prompt::Text(text) => text.is_empty(),
            Prompt::Messages(messages) => messages.is_empty(),
        };
        if is_empty {
            self.leave_out("empty prompt");
            return Ok(());
        }
        self.waiting.push(raw);
        if self.waiting.len() < BATCH { Ok(()) } else { self.count_waiting() }
    }

    pub(super) fn leave_out(&mut self, reason: &str) {
        *self.dropped.entry(reason.to_owned()).or_default() += 1;
    }

    /// A key or column without a meaning here: ignored, and noted.
    pub(super) fn ignore(&mut self, what: &'static str, name: &str) {
        let known = format!("{what} `{name}`");
        let is_named = self.ignored.len() < STRANGERS_MAX || self.ignored.contains_key(&known);
        let named = if is_named { known } else { format!("other {what}s") };
        *self.ignored.entry(named).or_default() += 1;
    }

    fn count_waiting(&mut self) -> Result<(), DataFileError> {
        let batch = std::mem::take(&mut self.waiting);
        let counts = count_all(&batch, self.counter);
        for (raw, (input, answer)) in batch.into_iter().zip(counts) {
            let Some(input) = input else {
                self.leave_out("refused by the chat template");
                continue;
            };
            if let Some(reason) = self.limits.refuse(input, &raw.output, answer) {
                self.leave_out(&reason);
                continue;
            }
            if self.items_max <= self.items.len() as u64 {
                let (path, bound) = (self.path.clone(), self.items_max);
                return Err(DataFileError::TooMany { path, bound, what: "prompts" });
            }
            let output_tokens = if matches!(raw.output, Output::Chosen(_)) { None } else { answer };
            self.items.push(Item {
                prompt: raw.prompt,
                input_tokens: whole(input),
                output_tokens,
                fields: raw.fields,
            });
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Collected, DataFileError> {
        self.count_waiting()?;
        if !self.items.is_empty() {
            return Ok(Collected {
                items: self.items,
                dropped: self.dropped,
                notes: ignored_note(&self.ignored).into_iter().collect(),
            });
        }
        Err(DataFileError::nothing_left(&self.path, &self.dropped))
    }
}

/// What was read from a file.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) items: Vec<Item>,
    /// What was left out, by the reason.
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) notes: Vec<String>,
}

fn ignored_note(ignored: &BTreeMap<String, u64>) -> Option<String> {
    let times = |(what, count): (&String, &u64)| match count {
        1 => format!("{what} (once)"),
        count => format!("{what} ({count} times)"),
    };
    let named: Vec<String> = ignored.iter().map(times).collect();
    (!named.is_empty())
        .then(|| format!("ignored in the data, as it means nothing here: {}", named.join(", ")))
}

/// Tokenizers are slow and files are long, so all cores help; the order does not depend on them.
fn count_all(batch: &[Raw], counter: &dyn Counter) -> Vec<Lengths> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = batch.len().div_ceil(cores).max(SHARE_MIN);
    if batch.len() <= share {
        return batch.iter().map(|raw| count(raw, counter)).collect();
    }
    thread::scope(|scope| {
        let shares = batch.chunks(share).map(|share| {
            scope.spawn(move || share.iter().map(|raw| count(raw, counter)).collect::<Vec<_>>())
        });
        let shares: Vec<_> = shares.collect();
        let joined = shares.into_iter().map(|share| match share.join() {
            Ok(counts) => counts,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    })
}

/// Fewer are not worth a thread.
const SHARE_MIN: usize = 64;

/// Lengths of a prompt, unless it cannot be sent, and of its answer, if known.
type Lengths = (Option<usize>, Option<u32>);

fn count(raw: &Raw, counter: &dyn Counter) -> Lengths {
    let input = counter.prompt(&raw.prompt);
    let answer = match &raw.output {
        Output::Unknown => None,
        Output::Tokens(tokens) => Some(*tokens),
        Output::Chosen(tokens) => *tokens,
        Output::Reference(text) => Some(whole(counter.words(text))),
    };
    (input, answer)
}

pub(super) fn whole(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// A permutation of the items for every pass, computed and not stored: a Feistel network over the
/// next power of four, walked until it lands on an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    seed: u64,
    items: u64,
    half_bits: u32,
}

const ROUNDS: usize = 8;

impl Shuffle {
    /// For at least one item.
    pub(crate) fn new(items: u64, seed: u64) -> Self {
        let bits = u64::BITS - items.saturating_sub(1).leading_zeros();
        Self { seed, items: items.max(1), half_bits: bits.div_ceil(2).max(1) }
    }

    /// The item of a request, by its number.
    pub(crate) fn item(&self, request: u64) -> u64 {
        let (pass, place) = (request / self.items, request % self.items);
        let mut stream = Stream::new(self.seed, "order", pass);
        let keys: [u64; ROUNDS] = std::array::from_fn(|_| stream.bits());
        let mut item = place;
        loop {
            item = self.shuffle(item, &keys);
            if item < self.items {
                return item;
            }
        }
    }

    fn shuffle(&self, number: u64, keys: &[u64; ROUNDS]) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in keys {
            (left, right) = (right, left ^ (mix(right.wrapping_add(*key)) & mask));
        }
        left << self.half_bits | right
    }
}

/// Spreads every bit over all others (the finalizer of `SplitMix64`).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_item_comes_once_in_a_pass_and_passes_differ() {
        for items in [1, 2, 3, 4, 5, 17, 64, 100, 1_000] {
            let order = Shuffle::new(items, 7);
            for pass in 0..3 {
                let seen: BTreeSet<u64> =
                    (0..items).map(|place| order.item(pass * items + place)).collect();
                assert_eq!(seen.len() as u64, items);
                assert_eq!(seen.last(), Some(&(items - 1)));
            }
        }
        let order = Shuffle::new(100, 7);
        let pass = |number: u64| (0..100).map(move |place| order.item(number * 100 + place));
        assert!(pass(0).ne(pass(1)) && pass(0).ne(0..100));
        assert!((0..100).map(|place| Shuffle::new(100, 8).item(place)).ne(pass(0)));
    }

    #[test]
    fn every_item_is_as_likely_to_come_first() {
        let order = Shuffle::new(5, 3);
        let mut firsts = [0_u32; 5];
        for pass in 0..10_000 {
            firsts[usize::try_from(order.item(pass * 5)).unwrap()] += 1;
        }
        // Four standard deviations of a binomial count of 2,000.
        assert!(firsts.iter().all(|count| count.abs_diff(2_000) < 160), "{firsts:?}");
    }
}
