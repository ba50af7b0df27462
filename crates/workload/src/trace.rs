//! Recorded traffic: when requests came, how long they and their answers were, what they shared.
//!
//! To add a dialect: a reader beside these, its name in `TraceKind` and in [`kind_name`], its sign
//! in [`kind_of`], and broken files of it in the tests.

mod json;
mod ticks;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{Replay, TOKENS_MAX, TraceKind, TraceSpec};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::data_file::{DataFile, DataFileError};
use crate::plan::Stream;
use ticks::Grid;

#[derive(Debug)]
pub(crate) struct Trace {
    /// Their moments never decrease.
    pub(crate) entries: Vec<TraceEntry>,
    /// Names of blocks of text; an entry has a range of them.
    pub(crate) hash_ids: Vec<u64>,
    /// How long a block is.
    pub(crate) block_tokens: u32,
    pub(crate) facts: FileFacts,
    /// What was done to the recording, in words for the reader.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceEntry {
    /// From the beginning of the trace, or on the recorder's clock while it is read.
    pub(crate) at_ns: i64,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    /// Its place in `hash_ids`.
    pub(crate) blocks: Range<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error(transparent)]
    File(#[from] DataFileError),
    #[error(
        "cannot tell whose trace {path} is ({found}); name its kind: mooncake or bailian (JSON \
         lines), azure or burstgpt (CSV)"
    )]
    UnknownKind { path: PathBuf, found: String },
}

/// Reads it whole. Without a replay its moments stay as they were recorded: they are not used.
pub(crate) fn read(
    spec: &TraceSpec,
    replay: Option<&Replay>,
    seed: u64,
) -> Result<Trace, TraceError> {
    read_within(spec, replay, seed, BOUNDS)
}

/// What fits into memory; the longest public traces have some thirty million requests.
const BOUNDS: Bounds = Bounds { bytes: 64 << 30, entries: 50_000_000, blocks: 1 << 28 };

fn read_within(
    spec: &TraceSpec,
    replay: Option<&Replay>,
    seed: u64,
    bounds: Bounds,
) -> Result<Trace, TraceError> {
    let path = spec.path.as_path();
    let mut file = DataFile::open(path, bounds.bytes)?;
    let kind = match spec.kind {
        Some(kind) => kind,
        None => kind_of(path, file.head())?,
    };
    let mut recording = Recording::new(path, bounds);
    match kind {
        TraceKind::Mooncake => json::read(&mut file, Unit::Milliseconds, &mut recording)?,
        TraceKind::Bailian => json::read(&mut file, Unit::Seconds, &mut recording)?,
        TraceKind::Azure => json::read_azure(&mut file, &mut recording)?,
        TraceKind::BurstGpt => json::read_burst_gpt(&mut file, &mut recording)?,
    }
    let name = file.name();
    let sha256 = file.finish()?;
    let block_tokens = block_tokens(kind);
    recording.put_in_order();
    recording.rebase();
    recording.judge_blocks(block_tokens);
    let grid = replay.and_then(|_| Grid::find(&recording.entries));
    recording.thin(spec.keep, seed)?;
    recording.rebase();
    if let Some(replay) = replay {
        let notes = ticks::spread(&mut recording.entries, grid, replay.ticks, seed);
        recording.notes.extend(notes);
        recording.warp(replay.speed);
    }
    let Recording { entries, hash_ids, dropped, notes, .. } = recording;
    let items = entries.len() as u64;
    let facts = FileFacts { name, kind: kind_name(kind).to_owned(), sha256, items, dropped };
    Ok(Trace { entries, hash_ids, block_tokens, facts, notes })
}

const MOONCAKE_BLOCK: u32 = 512;
const BAILIAN_BLOCK: u32 = 16;

fn block_tokens(kind: TraceKind) -> u32 {
    match kind {
        TraceKind::Bailian => BAILIAN_BLOCK,
        // The others name no blocks.
        TraceKind::Mooncake | TraceKind::Azure | TraceKind::BurstGpt => MOONCAKE_BLOCK,
    }
}

/// By the keys of its first line, or by its columns.
fn kind_of(path: &Path, head: &[u8]) -> Result<TraceKind, TraceError> {
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let Some(line) = line else {
        return Err(DataFileError::Empty { path: path.to_path_buf() }.into());
    };
    let text = String::from_utf8_lossy(line);
    let kind = if text.trim_start().starts_with('{') {
        json::kind_of(&text)
    } else {
        json::table_kind(&text)
    };
    kind.ok_or_else(|| {
        let found =
            format!("it begins with `{}`", text.trim().chars().take(80).collect::<String>());
        TraceError::UnknownKind { path: path.to_path_buf(), found }
    })
}

fn kind_name(kind: TraceKind) -> &'static str {
    match kind {
        TraceKind::Mooncake => "mooncake",
        TraceKind::Azure => "azure",
        TraceKind::BurstGpt => "burstgpt",
        TraceKind::Bailian => "bailian",
    }
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    bytes: u64,
    entries: u64,
    blocks: u64,
}

#[derive(Debug)]
struct Recording {
    path: PathBuf,
    bounds: Bounds,
    entries: Vec<TraceEntry>,
    hash_ids: Vec<u64>,
    dropped: BTreeMap<String, u64>,
    notes: Vec<String>,
}

impl Recording {
    fn new(path: &Path, bounds: Bounds) -> Self {
        Self {
            path: path.to_path_buf(),
            bounds,
            entries: Vec::new(),
            hash_ids: Vec::new(),
            dropped: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    fn push(
        &mut self,
        at: i64,
        (input_tokens, output_tokens): (u32, u32),
        hash_ids: &[u64],
    ) -> Result<(), DataFileError> {
        let unusable = match (input_tokens, output_tokens) {
            (0, _) => Some("no input tokens"),
            (_, 0) => Some("no output tokens"),
            (input, output) => {
                (TOKENS_MAX < input.max(output)).then_some("longer than any context")
            }
        };
        if let Some(reason) = unusable {
            self.leave_out(reason);
            return Ok(());
        }
        self.stay_within(self.entries.len() + 1, self.bounds.entries, "requests")?;
        self.stay_within(self.hash_ids.len() + hash_ids.len(), self.bounds.blocks, "hash ids")?;
        let start = place(self.hash_ids.len());
        self.hash_ids.extend_from_slice(hash_ids);
        let blocks = start..place(self.hash_ids.len());
        self.entries.push(TraceEntry { at_ns: at, input_tokens, output_tokens, blocks });
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

    fn leave_out(&mut self, reason: &str) {
        *self.dropped.entry(reason.to_owned()).or_default() += 1;
    }

    /// Requests of one moment stay as they were in the file.
    fn put_in_order(&mut self) {
        let early = self.entries.windows(2).filter(|pair| pair[1].at_ns < pair[0].at_ns).count();
        if 0 < early {
            self.entries.sort_by_key(|entry| entry.at_ns);
            self.notes.push(format!(
                "{early} of the recorded requests were earlier than the one before them; \
                 all were put in order of their moments"
            ));
        }
    }

    /// Notes when hash ids and lengths do not fit together: text that was shared may not be.
    fn judge_blocks(&mut self, block_tokens: u32) {
        let needed = |entry: &TraceEntry| entry.input_tokens.div_ceil(block_tokens) as usize;
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
    fn thin(&mut self, keep: f64, seed: u64) -> Result<(), DataFileError> {
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
    fn rebase(&mut self) {
        let first = self.entries.first().map_or(0, |entry| entry.at_ns);
        for entry in &mut self.entries {
            entry.at_ns = entry.at_ns.saturating_sub(first);
        }
    }

    fn warp(&mut self, speed: f64) {
        if (speed - 1.0).abs() < f64::EPSILON {
            return;
        }
        for entry in &mut self.entries {
            #[expect(clippy::cast_possible_truncation, reason = "saturates")]
            let at_ns = libm::round(entry.at_ns as f64 / speed) as i64;
            entry.at_ns = at_ns;
        }
    }
}

fn place(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// `None` where there is no gap, or no time.
fn variation(moments: impl Iterator<Item = i64> + Clone) -> Option<f64> {
    let gaps = moments.clone().zip(moments.skip(1)).map(|(early, late)| (late - early) as f64);
    let count = gaps.clone().count() as f64;
    let mean = gaps.clone().sum::<f64>() / count;
    let squares: f64 = gaps.map(|gap| (gap - mean) * (gap - mean)).sum();
    let variation = libm::sqrt(squares / count) / mean;
    variation.is_finite().then_some(variation)
}

/// What one of the unit is: ten to this many nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Milliseconds = 6,
    Seconds = 9,
}

/// A decimal, perhaps with an exponent, in nanoseconds; what is below one is cut off.
fn nanos(text: &str, unit: Unit) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let shift = exponent.checked_add(unit as i32)?;
    let places = i32::try_from(fraction.len()).ok()?.checked_neg()?.checked_add(shift)?;
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let power = 10_i128.checked_pow(places.unsigned_abs());
    let nanos = match power {
        Some(power) if 0 <= places => number.checked_mul(power)?,
        Some(power) => number / power,
        None if places < 0 || number == 0 => 0,
        None => return None,
    };
    i64::try_from(if negative { -nanos } else { nanos }).ok()
}

/// A date with a time, in nanoseconds since 1970; without a zone it is UTC's.
fn date_nanos(text: &str) -> Option<i64> {
    let with_zone = text.parse::<Timestamp>();
    let moment = with_zone.or_else(|_| {
        let date: DateTime = text.parse()?;
        Ok::<_, jiff::Error>(date.to_zoned(TimeZone::UTC)?.timestamp())
    });
    i64::try_from(moment.ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod gaps_tests {
    use super::*;

    #[test]
    fn even_gaps_do_not_vary_and_others_do_as_the_definition_says() {
        assert_eq!(variation([0, 5, 10, 15].into_iter()), Some(0.0));
        // Gaps 0, 0, 3: mean 1, variance (1 + 1 + 4) / 3 = 2.
        let bursts = variation([7, 7, 7, 10].into_iter()).unwrap();
        assert!((bursts - std::f64::consts::SQRT_2).abs() < 1e-12);
        assert_eq!(variation([3].into_iter()), None);
        assert_eq!(variation([3, 3].into_iter()), None);
    }
}

#[cfg(test)]
mod decimal_tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let seconds = |text| nanos(text, Unit::Seconds);
        assert_eq!(seconds("0.1"), Some(100_000_000));
        assert_eq!(seconds("9007199254.740993"), Some(9_007_199_254_740_993_000));
        assert_eq!(seconds("61.114"), Some(61_114_000_000));
        assert_eq!(seconds("1e-05"), Some(10_000));
        assert_eq!(seconds("1.5E3"), Some(1_500_000_000_000));
        assert_eq!(seconds("-2"), Some(-2_000_000_000));
        assert_eq!(seconds("0.0000000019"), Some(1));
        assert_eq!(seconds("1e-400"), Some(0));
        assert_eq!(nanos("3000", Unit::Milliseconds), Some(3_000_000_000));
        assert_eq!(nanos("0.5", Unit::Milliseconds), Some(500_000));
        for wrong in ["", ".", ".5", "1.2.3", "1e", "nan", "1e400", "1,5", "99999999999999999999"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates_are_exact_with_and_without_a_zone() {
        // 2023-11-16 is 19,677 days after 1970-01-01; 18:17:03 is 65,823 seconds into it.
        let day_and_time = (19_677 * 86_400 + 65_823) * 1_000_000_000;
        assert_eq!(date_nanos("2023-11-16 18:17:03.9799600"), Some(day_and_time + 979_960_000));
        assert_eq!(date_nanos("2023-11-16T18:17:03Z"), Some(day_and_time));
        assert_eq!(date_nanos("2023-11-16 18:17:03.5+00:00"), Some(day_and_time + 500_000_000));
        assert_eq!(date_nanos("2023-11-16 19:17:03+01:00"), Some(day_and_time));
        for wrong in ["", "yesterday", "2023-13-01 00:00:00", "18:17:03"] {
            assert_eq!(date_nanos(wrong), None, "{wrong}");
        }
    }
}
