//! Entries of a trace on their way from the file into the plan.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use inferometer_model::spec::TOKENS_MAX;

use super::{Stream, TraceEntry};
use crate::data_file::DataFileError;

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) blocks: u64,
}

/// An entry whose moment is on the recorder's clock.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) at: i64,
    pub(super) input_tokens: u32,
    pub(super) output_tokens: u32,
    pub(super) blocks: Range<u32>,
}

impl From<Recorded> for TraceEntry {
    fn from(recorded: Recorded) -> Self {
        let Recorded { at, input_tokens, output_tokens, blocks } = recorded;
        Self { at_ns: u64::try_from(at).unwrap_or(0), input_tokens, output_tokens, blocks }
    }
}

#[derive(Debug)]
pub(super) struct Recording {
    path: PathBuf,
    bounds: Bounds,
    pub(super) entries: Vec<Recorded>,
    pub(super) hash_ids: Vec<u64>,
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) notes: Vec<String>,
}

impl Recording {
    pub(super) fn new(path: &Path, bounds: Bounds) -> Self {
        Self {
            path: path.to_path_buf(),
            bounds,
            entries: Vec::new(),
            hash_ids: Vec::new(),
            dropped: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn push(
        &mut self,
        at: i64,
        (input_tokens, output_tokens): (u32, u32),
        hash_ids: &[u64],
    ) -> Result<(), DataFileError> {
        if input_tokens == 0 {
            self.leave_out("no input tokens");
            return Ok(());
        }
        if output_tokens == 0 {
            self.leave_out("no output tokens");
            return Ok(());
        }
        if TOKENS_MAX < input_tokens.max(output_tokens) {
            self.leave_out("longer than any context");
            return Ok(());
        }
        self.stay_within(self.entries.len() + 1, self.bounds.entries, "requests")?;
        self.stay_within(self.hash_ids.len() + hash_ids.len(), self.bounds.blocks, "hash ids")?;
        let start = place(self.hash_ids.len());
        self.hash_ids.extend_from_slice(hash_ids);
        let blocks = start..place(self.hash_ids.len());
        self.entries.push(Recorded { at, input_tokens, output_tokens, blocks });
        Ok(())
    }

    fn stay_within(
        &self,
        count: usize,
        bound: u64,
        what: &'static str,
    ) -> Result<(), DataFileError> {
        if count as u64 <= bound {
            return Ok(());
        }
        Err(DataFileError::TooMany { path: self.path.clone(), bound, what })
    }

    pub(super) fn leave_out(&mut self, reason: &str) {
        *self.dropped.entry(reason.to_owned()).or_default() += 1;
    }

    /// Requests of one moment stay as they were in the file.
    pub(super) fn put_in_order(&mut self) {
        let early = self.entries.windows(2).filter(|pair| pair[1].at < pair[0].at).count();
        if 0 < early {
            self.entries.sort_by_key(|entry| entry.at);
            self.notes.push(format!(
                "{early} of the recorded requests were earlier than the one before them; \
                 all were put in order of their moments"
            ));
        }
    }

    /// Says when hash ids and lengths do not fit together: text that was shared may not be.
    pub(super) fn judge_blocks(&mut self, block_tokens: u32) {
        let needed = |entry: &Recorded| entry.input_tokens.div_ceil(block_tokens) as usize;
        let with_ids = || self.entries.iter().filter(|entry| !entry.blocks.is_empty());
        let odd = with_ids().filter(|entry| entry.blocks.len() != needed(entry)).count();
        if 0 < odd {
            self.notes.push(format!(
                "{odd} of {} requests have more or fewer hash ids than blocks of {block_tokens} \
                 tokens; what is missing is text of their own, what is too much is ignored",
                with_ids().count()
            ));
        }
    }

    /// Keeps each entry by a draw of its own, so that bursts stay bursts.
    pub(super) fn thin(&mut self, keep: f64, seed: u64) -> Result<(), DataFileError> {
        if keep < 1.0 {
            let before = self.entries.len();
            let mut number = 0;
            self.entries.retain(|_| {
                number += 1;
                Stream::new(seed, "keep", number - 1).unit() <= keep
            });
            let thinned = (before - self.entries.len()) as u64;
            self.dropped.insert(format!("not drawn (keep {keep})"), thinned);
        }
        if self.entries.is_empty() {
            return Err(DataFileError::nothing_left(&self.path, &self.dropped));
        }
        Ok(())
    }

    /// The first request comes at zero.
    pub(super) fn rebase(&mut self) {
        let first = self.entries.first().map_or(0, |entry| entry.at);
        for entry in &mut self.entries {
            entry.at = entry.at.saturating_sub(first);
        }
    }

    pub(super) fn warp(&mut self, speed: f64) {
        if (speed - 1.0).abs() < f64::EPSILON {
            return;
        }
        for entry in &mut self.entries {
            #[expect(clippy::cast_possible_truncation, reason = "saturates")]
            let at = libm::round(entry.at as f64 / speed) as i64;
            entry.at = at;
        }
    }
}

fn place(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
