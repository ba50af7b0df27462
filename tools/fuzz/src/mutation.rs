//! Mutations of seeds, drawn by a number, so that the same number gives the same inputs.

/// Inputs are not longer than this: more bytes take more time and find no more.
const INPUT_BYTES_MAX: usize = 4_096;
/// How many mutations an input may be away from its seed.
const WALK_STEPS: u64 = 12;

/// Numbers and marks that readers stumble over.
const WORDS: [&[u8]; 28] = [
    b"0",
    b"-1",
    b"1e400",
    b"-0.0",
    b"NaN",
    b"inf",
    b"18446744073709551616",
    b"9223372036854775808",
    b"0.1",
    b"1e-320",
    b"null",
    b"true",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\ud800",
    b":",
    b",",
    b"\n",
    b"\r",
    b"\n\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"data: ",
    b"=",
];

/// Mutates seeds without end: `SplitMix64` draws what is done to them.
#[derive(Clone, Debug)]
pub struct Mutations<'a> {
    seeds: &'a [Vec<u8>],
    state: u64,
    input: Vec<u8>,
    steps: u64,
}

impl<'a> Mutations<'a> {
    /// # Panics
    ///
    /// If there are no seeds.
    pub fn new(seeds: &'a [Vec<u8>], number: u64) -> Self {
        assert!(!seeds.is_empty(), "there are no seeds");
        Self { seeds, state: number, input: Vec::new(), steps: WALK_STEPS }
    }

    /// The next input: the one before, changed once more, or a seed to begin with.
    pub fn next_input(&mut self) -> &[u8] {
        if WALK_STEPS <= self.steps || self.draw(4) == 0 {
            let seed = self.place(self.seeds.len());
            self.input.clone_from(&self.seeds[seed]);
            self.steps = 0;
        }
        self.steps += 1;
        for _ in 0..=self.draw(3) {
            self.mutate();
        }
        self.input.truncate(INPUT_BYTES_MAX);
        &self.input
    }

    fn mutate(&mut self) {
        let (from, to) = self.range();
        match self.draw(8) {
            0 if from < self.input.len() => self.input[from] ^= 1 << self.draw(8),
            1 if from < self.input.len() => self.input[from] = self.draw(256).to_le_bytes()[0],
            2 => drop(self.input.drain(from..to)),
            3 => {
                let copy = self.input[from..to].to_vec();
                let place = self.place(self.input.len() + 1);
                self.input.splice(place..place, copy);
            }
            4 => {
                let seed = &self.seeds[self.place(self.seeds.len())];
                let start = self.place(seed.len() + 1);
                let length = self.place(64);
                let piece: Vec<u8> = seed[start..].iter().take(length).copied().collect();
                self.input.splice(from..to, piece);
            }
            5 => {
                let noise: Vec<u8> =
                    (0..self.draw(8)).map(|_| self.draw(256).to_le_bytes()[0]).collect();
                self.input.splice(from..from, noise);
            }
            6 => self.replace_number(from),
            _ => {
                let word = WORDS[self.place(WORDS.len())];
                self.input.splice(from..from, word.iter().copied());
            }
        }
    }

    /// Puts another number where the first one behind `from` stands.
    fn replace_number(&mut self, from: usize) {
        let word = WORDS[self.place(10)];
        let rest = &self.input[from..];
        let Some(start) = rest.iter().position(u8::is_ascii_digit) else { return };
        let digits = rest[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.input.splice(from + start..from + start + digits, word.iter().copied());
    }

    /// A short stretch of the input.
    fn range(&mut self) -> (usize, usize) {
        let from = self.place(self.input.len() + 1);
        let length = self.place(32);
        (from, (from + length).min(self.input.len()))
    }

    fn place(&mut self, limit: usize) -> usize {
        usize::try_from(self.draw(limit as u64)).unwrap_or(0)
    }

    fn draw(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}
