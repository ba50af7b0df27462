//! Prompts as `vllm bench serve` makes them from its `random` data: with the same seed, tokenizer
//! and number of requests they are the same, byte for byte.
//!
//! Its rule: lengths and offsets of all requests are drawn first; a prompt is a run of consecutive
//! ids, decoded, encoded again, and cut or filled with random ids until its length is right.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use inferometer_model::spec::{self, Lengths};
use inferometer_model::{Content, PlannedRequest, Segment};
use rand_core::Rng as _;
use rand_pcg::Pcg64;

use super::{Alphabet, PromptIndex, Prompts, RECIPE};
use crate::WorkloadError;
use crate::lengths::{Draw, ends_around};
use crate::plan::Stream;

#[derive(Debug)]
pub(crate) struct VllmRandom {
    alphabet: Alphabet,
    /// Ids that prompts are made of, in their order.
    allowed: Vec<u32>,
    /// As long as was asked for; its ids may have come out fewer or more.
    prefix_tokens: u32,
    prefix: Vec<u32>,
    /// Equal for equal prefixes.
    prefix_seed: u64,
    requests: Vec<Drawn>,
    fillings: Mutex<Fillings>,
}

#[derive(Clone, Copy, Debug)]
struct Drawn {
    input: u32,
    output: u32,
    offset: u32,
}

/// Random ids fill prompts in their order, so what one needs depends on all before it.
#[derive(Debug)]
struct Fillings {
    /// The generator as it stood before every request whose number is a multiple of `KEEP_EVERY`.
    kept: Vec<NumpyRng>,
    /// As it stood before each of the last requests, the next one included.
    recent: VecDeque<NumpyRng>,
    /// The first request that was not made yet.
    next: usize,
}

/// Requests that are drawn when a plan has no end of its own; then they repeat.
pub(crate) const REQUESTS_OPEN_ENDED: u64 = 1 << 16;
const REQUESTS_MAX: u64 = 1 << 24;
/// What lies further back is made again from the last state before it: few look back so far.
const KEEP_EVERY: usize = 1_024;
const RECENT_MAX: usize = 4_096;
/// Tries to make a length right.
const TRIES: usize = 10;

impl VllmRandom {
    pub(crate) fn new(
        spec: &spec::VllmRandom,
        alphabet: Alphabet,
        seed: u64,
        requests: Option<u64>,
    ) -> Result<Self, WorkloadError> {
        let requests = requests.unwrap_or(REQUESTS_OPEN_ENDED).max(1);
        if REQUESTS_MAX < requests {
            return Err(WorkloadError::TooManyDrawn { requests, bound: REQUESTS_MAX });
        }
        let requests = usize::try_from(requests).unwrap_or(usize::MAX);
        let allowed = alphabet.ordinary()?;
        let around = alphabet.around();
        let mut rng = NumpyRng::new(seed);
        let inputs = draw(&spec.input, (around, 0), (seed, "input"), requests, &mut rng);
        let outputs = draw(&spec.output, (0, 1), (seed, "output"), requests, &mut rng);
        let offsets = rng.integers(0, alphabet.size() - 1, requests);
        if spec.prefix_tokens == 0 && inputs.contains(&0) {
            return Err(WorkloadError::InputTooShort {
                input: spec.input.to_string(),
                special: around,
            });
        }
        let drawn = inputs.into_iter().zip(outputs).zip(offsets);
        let drawn = drawn.map(|((input, output), offset)| Drawn { input, output, offset });
        let mut made = Self {
            alphabet,
            prefix_tokens: spec.prefix_tokens,
            prefix: Vec::new(),
            prefix_seed: 0,
            requests: drawn.collect(),
            fillings: Mutex::new(Fillings::before_all(NumpyRng::new(seed))),
            allowed,
        };
        made.prefix = made.draw_prefix(spec.prefix_tokens, &mut rng);
        made.prefix_seed = made
            .prefix
            .iter()
            .fold(0, |seed, id| Stream::new(seed, "prefix-ids", u64::from(*id)).bits());
        made.fillings = Mutex::new(Fillings::before_all(rng));
        Ok(made)
    }

    fn draw_prefix(&self, tokens: u32, rng: &mut NumpyRng) -> Vec<u32> {
        if tokens == 0 {
            return Vec::new();
        }
        let last = u32::try_from(self.allowed.len()).unwrap_or(u32::MAX) - 1;
        let places = rng.integers(0, last, tokens as usize);
        let ids = places.into_iter().map(|place| self.allowed[place as usize]).collect();
        self.settle(ids, tokens as usize, rng).1
    }

    /// Where in the allowed ids a request's own begin.
    fn first_of(&self, place: usize) -> usize {
        (self.requests[place].offset as usize + place) % self.allowed.len()
    }

    /// The prompt of a request; the generator moves on where the prompt had to be filled.
    fn make(&self, place: usize, rng: &mut NumpyRng) -> String {
        let input = self.requests[place].input;
        let first = self.first_of(place);
        let own = (0..input as usize).map(|step| self.allowed[(first + step) % self.allowed.len()]);
        let ids: Vec<u32> = self.prefix.iter().copied().chain(own).collect();
        let tokens = (self.prefix_tokens + input) as usize;
        self.settle(ids, tokens, rng).0
    }

    /// Decodes, encodes, and mends the length, until text and ids are of so many tokens.
    fn settle(&self, mut ids: Vec<u32>, tokens: usize, rng: &mut NumpyRng) -> (String, Vec<u32>) {
        let last = self.alphabet.size() - 1;
        let mut tries = TRIES;
        loop {
            let text;
            (text, ids) = self.alphabet.spell(ids);
            if tries == 0 || ids.len() == tokens {
                return (text, ids);
            }
            if ids.len() < tokens {
                ids.extend(rng.integers(0, last, tokens - ids.len()));
            }
            ids.truncate(tokens);
            tries -= 1;
        }
    }

    /// After the last of the requests that were drawn the first comes again.
    fn place(&self, id: u64) -> usize {
        usize::try_from(id % self.requests.len() as u64).unwrap_or(0)
    }

    fn prompt(&self, place: usize) -> String {
        let mut fillings = self.fillings.lock().unwrap_or_else(PoisonError::into_inner);
        while fillings.next < place {
            self.make_next(&mut fillings);
        }
        if fillings.next == place {
            return self.make_next(&mut fillings);
        }
        let (first, mut rng) = fillings.nearest(place);
        drop(fillings);
        for before in first..place {
            self.make(before, &mut rng);
        }
        self.make(place, &mut rng)
    }

    fn make_next(&self, fillings: &mut Fillings) -> String {
        let (place, mut rng) = fillings.nearest(fillings.next);
        let prompt = self.make(place, &mut rng);
        fillings.push(rng);
        prompt
    }
}

impl Fillings {
    fn before_all(rng: NumpyRng) -> Self {
        Self { kept: vec![rng.clone()], recent: VecDeque::from([rng]), next: 0 }
    }

    /// A request up to this one, the next at most, with the generator as it stood before it.
    fn nearest(&self, place: usize) -> (usize, NumpyRng) {
        let back = self.next - place;
        match (self.recent.len() - 1).checked_sub(back) {
            Some(at) => (place, self.recent[at].clone()),
            None => (place / KEEP_EVERY * KEEP_EVERY, self.kept[place / KEEP_EVERY].clone()),
        }
    }

    /// The generator after the next request.
    fn push(&mut self, rng: NumpyRng) {
        self.next += 1;
        if self.next.is_multiple_of(KEEP_EVERY) {
            self.kept.push(rng.clone());
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(rng);
    }
}

/// The lengths of all requests: by the other program's numbers where it knows the distribution,
/// otherwise by ours. `less` is taken off first, and none is below `least`.
fn draw(
    lengths: &Lengths,
    (less, least): (u32, u32),
    (seed, stream): (u64, &str),
    requests: usize,
    rng: &mut NumpyRng,
) -> Vec<u32> {
    let (low, high) = match lengths {
        Lengths::Fixed(length) => (length.saturating_sub(less), length.saturating_sub(less)),
        Lengths::Around { mean, share } => ends_around(mean.saturating_sub(less), *share),
        Lengths::Uniform { low, high } => (low.saturating_sub(less), high.saturating_sub(less)),
        Lengths::Normal { .. }
        | Lengths::LogNormal { .. }
        | Lengths::Zipf { .. }
        | Lengths::Histogram(_) => {
            let draw = Draw::new(lengths);
            let length = |id| draw.draw_at(seed, stream, id).saturating_sub(less);
            return (0..requests as u64).map(|id| length(id).max(least)).collect();
        }
    };
    rng.integers(low.max(least), high.max(least), requests)
}

impl Prompts for VllmRandom {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let drawn = self.requests[self.place(place.id)];
        let input_tokens = self.prefix_tokens + drawn.input;
        PlannedRequest { input_tokens, output_tokens: drawn.output, ..RECIPE }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        Content::text(self.prompt(self.place(request.id.0)))
    }

    /// Prompts that begin at the same id are alike as far as the shorter one goes, whatever the
    /// seed. What mending their lengths changes is at their ends, and left aside.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let place = self.place(request.id.0);
        let first = self.first_of(place) as u64;
        let own = Segment {
            seed: Stream::new(first, "consecutive", 0).bits(),
            tokens: self.requests[place].input,
        };
        let prefix = Segment { seed: self.prefix_seed, tokens: self.prefix_tokens };
        [prefix, own].into_iter().filter(|segment| 0 < segment.tokens).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumpyRng {
    numbers: Pcg64,
    /// The upper half of the last number, when only its lower half was used.
    half: Option<u32>,
}

const POOL: usize = 4;

impl NumpyRng {
    /// As `numpy.random.default_rng(seed)`.
    pub(super) fn new(seed: u64) -> Self {
        let words = seed_words(seed);
        let wide = |place: usize| {
            let [low, high] = [words[place], words[place + 1]].map(u128::from);
            high << 32 | low
        };
        let state = wide(0) << 64 | wide(2);
        let stream = wide(4) << 64 | wide(6);
        Self { numbers: Pcg64::new(state, stream), half: None }
    }

    /// As `integers(low, high + 1, size=count)`.
    pub(super) fn integers(&mut self, low: u32, high: u32, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.integer(low, high)).collect()
    }

    fn integer(&mut self, low: u32, high: u32) -> u32 {
        let Some(count) = (high - low).checked_add(1) else { return self.next_u32() };
        if count == 1 {
            // Nothing is drawn where there is no choice.
            return low;
        }
        let unfair = count.wrapping_neg() % count;
        loop {
            let [rest, place] = halves(u64::from(self.next_u32()) * u64::from(count));
            if unfair <= rest {
                return low + place;
            }
        }
    }

    fn next_u32(&mut self) -> u32 {
        self.half.take().unwrap_or_else(|| {
            let [low, high] = halves(self.numbers.next_u64());
            self.half = Some(high);
            low
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a half is what is wanted")]
fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// Eight words that a seed is spread over.
fn seed_words(seed: u64) -> [u32; 2 * POOL] {
    let mut hash = Hash { constant: 0x43b0_d7e5, factor: 0x931e_8875 };
    let [low, high] = halves(seed);
    let mut pool = [low, high, 0, 0].map(|word| hash.mix(word));
    for from in 0..POOL {
        for to in (0..POOL).filter(|to| *to != from) {
            let other = hash.mix(pool[from]);
            let joined =
                pool[to].wrapping_mul(0xca01_f9dd).wrapping_sub(other.wrapping_mul(0x4973_f715));
            pool[to] = joined ^ joined >> 16;
        }
    }
    let mut hash = Hash { constant: 0x8b51_f9dd, factor: 0x58f3_8ded };
    std::array::from_fn(|place| hash.mix(pool[place % POOL]))
}

/// A multiplicative hash whose constant changes with every use.
struct Hash {
    constant: u32,
    factor: u32,
}

impl Hash {
    fn mix(&mut self, word: u32) -> u32 {
        let word = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.factor);
        let word = word.wrapping_mul(self.constant);
        word ^ word >> 16
    }
}

#[cfg(test)]
mod numpy_rng_tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_numpy() {
        // What NumPy 2.3 gave for each seed: integers(0, 32000, 5), integers(819, 1230, 5),
        // integers(0, 7, 3), integers(5, 6, 2), integers(0, 100, 1).
        type Given = (u64, [u32; 5], [u32; 5], [u32; 3], u32);
        let golden: [Given; 5] = [
            (0, [27219, 20382, 16356, 8633, 9850], [835, 849, 825, 891, 1153], [4, 6, 3], 60),
            (1, [15142, 16378, 24165, 30414, 1115], [878, 1157, 1208, 921, 947], [6, 2, 1], 82),
            (42, [2856, 24766, 20946, 14044, 13856], [1171, 854, 1105, 901, 857], [3, 6, 5], 76),
            (
                (1 << 40) + 7,
                [6608, 26554, 19504, 8169, 544],
                [882, 1026, 1096, 1182, 1122],
                [0, 3, 4],
                1,
            ),
            (
                (1 << 63) + 5,
                [26242, 15367, 6013, 28933, 10539],
                [1082, 1062, 844, 913, 889],
                [0, 5, 2],
                71,
            ),
        ];
        for (seed, ids, lengths, few, last) in golden {
            let mut rng = NumpyRng::new(seed);
            assert_eq!(rng.integers(0, 31_999, 5), ids, "seed {seed}");
            assert_eq!(rng.integers(819, 1229, 5), lengths, "seed {seed}");
            assert_eq!(rng.integers(0, 6, 3), few, "seed {seed}");
            assert_eq!(rng.integers(5, 5, 2), [5, 5]);
            assert_eq!(rng.integers(0, 99, 1), [last], "seed {seed}");
        }
    }
}
