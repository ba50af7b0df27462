//! Recorded traffic: when requests came, how long they and their answers were, what they shared.
//!
//! To add a dialect: a reader beside these, its name in `TraceKind`, its sign in [`kind_of`], and
//! broken files of it in the tests.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use inferometer_model::fmt;
use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{Replay, TOKENS_MAX, Ticks, TraceKind, TraceSpec};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::data_file::{DataFile, DataFileError, each_line, name_of};
use crate::plan::Stream;

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
        "cannot detect the kind of the trace {path} ({found}); name it: mooncake or bailian (JSON \
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
        None => kind_of(path, &file.head)?,
    };
    let mut recording = Recording {
        path,
        bounds,
        entries: Vec::new(),
        hash_ids: Vec::new(),
        dropped: BTreeMap::new(),
        notes: Vec::new(),
    };
    match kind {
        TraceKind::Mooncake => read_lines(&mut file, Unit::Milliseconds, &mut recording)?,
        TraceKind::Bailian => read_lines(&mut file, Unit::Seconds, &mut recording)?,
        TraceKind::Azure => read_azure(&mut file, &mut recording)?,
        TraceKind::BurstGpt => read_burst_gpt(&mut file, &mut recording)?,
    }
    let name = name_of(path);
    let sha256 = file.finish()?;
    // The tables have no hash ids.
    let block_tokens = if kind == TraceKind::Bailian { BAILIAN_BLOCK } else { MOONCAKE_BLOCK };
    recording.put_in_order();
    recording.rebase();
    recording.judge_blocks(block_tokens);
    let grid = replay.and_then(|_| Grid::find(&recording.entries));
    recording.thin(spec.keep, seed)?;
    recording.rebase();
    if let Some(replay) = replay {
        let notes = spread(&mut recording.entries, grid, replay.ticks, seed);
        recording.notes.extend(notes);
        if f64::EPSILON <= (replay.speed - 1.0).abs() {
            for entry in &mut recording.entries {
                #[expect(clippy::cast_possible_truncation, reason = "saturates")]
                let at_ns = libm::round(entry.at_ns as f64 / replay.speed) as i64;
                entry.at_ns = at_ns;
            }
        }
    }
    let Recording { entries, hash_ids, dropped, notes, .. } = recording;
    let items = entries.len() as u64;
    let facts = FileFacts { name, kind: kind.to_string(), sha256, items, dropped };
    Ok(Trace { entries, hash_ids, block_tokens, facts, notes })
}

const MOONCAKE_BLOCK: u32 = 512;
pub(crate) const BAILIAN_BLOCK: u32 = 16;

/// By the keys of its first line, or by its columns.
fn kind_of(path: &Path, head: &[u8]) -> Result<TraceKind, TraceError> {
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let Some(line) = line else {
        return Err(DataFileError::Empty { path: path.to_path_buf() }.into());
    };
    let text = String::from_utf8_lossy(line);
    let names = || text.split(',').map(|name| name.trim().trim_matches('"'));
    let has = |name: &str| names().any(|found| found.eq_ignore_ascii_case(name));
    if text.trim_start().starts_with('{') {
        if let Ok(signs) = serde_json::from_str::<Signs>(&text) {
            // One dialect names its chats; otherwise the length of a block decides.
            let blocks_are =
                |tokens: u32| signs.input_length.div_ceil(tokens) as usize == signs.hash_ids.len();
            let is_bailian = signs.chat_id.is_some()
                || (!blocks_are(MOONCAKE_BLOCK) && blocks_are(BAILIAN_BLOCK));
            return Ok(if is_bailian { TraceKind::Bailian } else { TraceKind::Mooncake });
        }
    } else if has("ContextTokens") {
        return Ok(TraceKind::Azure);
    } else if has("Request tokens") {
        return Ok(TraceKind::BurstGpt);
    }
    let found = format!("it begins with `{}`", text.trim().chars().take(80).collect::<String>());
    Err(TraceError::UnknownKind { path: path.to_path_buf(), found })
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    bytes: u64,
    entries: u64,
    blocks: u64,
}

#[derive(Debug)]
struct Recording<'p> {
    path: &'p Path,
    bounds: Bounds,
    entries: Vec<TraceEntry>,
    hash_ids: Vec<u64>,
    dropped: BTreeMap<String, u64>,
    notes: Vec<String>,
}

impl Recording<'_> {
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
        let counts = [
            (self.entries.len() + 1, self.bounds.entries, "requests"),
            (self.hash_ids.len() + hash_ids.len(), self.bounds.blocks, "hash ids"),
        ];
        for (count, bound, what) in counts {
            if bound < count as u64 {
                return Err(DataFileError::TooMany { path: self.path.to_path_buf(), bound, what });
            }
        }
        let position = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let start = position(self.hash_ids.len());
        self.hash_ids.extend_from_slice(hash_ids);
        let blocks = start..position(self.hash_ids.len());
        self.entries.push(TraceEntry { at_ns: at, input_tokens, output_tokens, blocks });
        Ok(())
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
                 all were sorted by their times"
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
                 tokens; missing blocks are filled with unique text, surplus ids are ignored",
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
            return Err(DataFileError::nothing_left(self.path, &self.dropped));
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
pub(crate) fn date_nanos(text: &str) -> Option<i64> {
    let with_zone = text.parse::<Timestamp>();
    let moment = with_zone.or_else(|_| {
        let date: DateTime = text.parse()?;
        Ok::<_, jiff::Error>(date.to_zoned(TimeZone::UTC)?.timestamp())
    });
    i64::try_from(moment.ok()?.as_nanosecond()).ok()
}

#[derive(Deserialize)]
struct Line {
    timestamp: Box<RawValue>,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

fn read_lines(
    file: &mut DataFile,
    unit: Unit,
    recording: &mut Recording<'_>,
) -> Result<(), DataFileError> {
    each_line(file, |place, line: Line| {
        let timestamp = line.timestamp.get();
        let at = nanos(timestamp, unit).ok_or_else(|| {
            let reason = format!("`timestamp` is {timestamp}, not a number of time");
            DataFileError::Wrong { path: recording.path.to_path_buf(), place, reason }
        })?;
        recording.push(at, (line.input_length, line.output_length), &line.hash_ids)
    })
}

/// What tells the dialects apart.
#[derive(Deserialize)]
struct Signs {
    chat_id: Option<serde::de::IgnoredAny>,
    #[expect(dead_code, reason = "both dialects must have it")]
    timestamp: serde::de::IgnoredAny,
    input_length: u32,
    #[serde(default)]
    hash_ids: Vec<serde::de::IgnoredAny>,
}

/// `TIMESTAMP,ContextTokens,GeneratedTokens`, and since 2025 `NumImages`.
fn read_azure(file: &mut DataFile, recording: &mut Recording<'_>) -> Result<(), DataFileError> {
    let columns = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];
    let (mut with_images, mut images) = (0_u64, 0_u64);
    let moment = ("a date with a time", date_nanos as fn(&str) -> Option<i64>);
    read_rows(file, columns, moment, Some("NumImages"), |at, lengths, pictures| {
        with_images += u64::from(0 < pictures);
        images += u64::from(pictures);
        recording.push(at, lengths, &[])
    })?;
    if 0 < with_images {
        recording.notes.push(format!(
            "{with_images} of the recorded requests had {images} images, which are not sent; \
             their tokens are words here"
        ));
    }
    Ok(())
}

/// Seconds, and failures among the requests: those have no answer.
fn read_burst_gpt(file: &mut DataFile, recording: &mut Recording<'_>) -> Result<(), DataFileError> {
    let columns = ["Timestamp", "Request tokens", "Response tokens"];
    let moment = ("a number of seconds", |text: &str| nanos(text, Unit::Seconds));
    read_rows(file, columns, moment, None, |at, lengths, _| match lengths {
        (_, 0) => {
            recording.leave_out("failed (no response tokens)");
            Ok(())
        }
        lengths => recording.push(at, lengths, &[]),
    })
}

/// Walks the rows of a table with columns for the moment, the input and the output, and perhaps one
/// more number. A moment is `what` it should be, and how it is read.
fn read_rows(
    file: &mut DataFile,
    names: [&'static str; 3],
    (what, moment): (&str, impl Fn(&str) -> Option<i64>),
    extra: Option<&'static str>,
    mut on_row: impl FnMut(i64, (u32, u32), u32) -> Result<(), DataFileError>,
) -> Result<(), DataFileError> {
    let path = file.path.clone();
    let mut table = file.table()?;
    let mut columns = [0; 3];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = table.needed(name)?;
    }
    let extra = extra.and_then(|name| Some((name, table.column(name)?)));
    while let Some((place, fields)) = table.next()? {
        let field = |column: usize| fields.get(column).unwrap_or_default().trim();
        let wrong = |name: &str, text: &str, what: &str| {
            let reason = format!("`{name}` is `{text}`, not {what}");
            DataFileError::Wrong { path: path.clone(), place, reason }
        };
        let count = |name: &str, column: usize| {
            let text = field(column);
            text.parse::<u32>().map_err(|_| wrong(name, text, "a whole number"))
        };
        let text = field(columns[0]);
        let at = moment(text).ok_or_else(|| wrong(names[0], text, what))?;
        let extra = extra.map_or(Ok(0), |(name, column)| count(name, column))?;
        on_row(at, (count(names[1], columns[1])?, count(names[2], columns[2])?), extra)?;
    }
    Ok(())
}

/// The grid that moments lie on, or seem to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grid {
    /// The most common gap between ticks.
    tick_ns: i64,
    /// Moments this far around a tick belong to it.
    jitter_ns: i64,
    /// Share of the requests that have company in their tick.
    shared: f64,
    /// Share of the gaps between ticks that are whole multiples of the most common one.
    regular: f64,
}

/// How far recorders that write milliseconds are seen to miss their own tick.
const JITTER_NS: i64 = 2_000_000;
const JITTER_SHARE: i64 = 1_000;
/// Below this many jitters a tick could as well be busy traffic.
const TICK_JITTERS_MIN: i64 = 20;
const SHARED_MIN: f64 = 0.5;
const REGULAR_MIN: f64 = 0.8;

impl Grid {
    /// For entries in order; `None` when they have one moment or none.
    fn find(entries: &[TraceEntry]) -> Option<Self> {
        let rough = Self::around(entries, JITTER_NS)
            .filter(|grid| TICK_JITTERS_MIN * JITTER_NS <= grid.tick_ns && grid.is_artefact());
        match rough {
            None => Self::around(entries, 0),
            Some(grid) => {
                let jitter_ns = JITTER_NS.max(grid.tick_ns / JITTER_SHARE);
                Self::around(entries, jitter_ns).or(rough)
            }
        }
    }

    fn around(entries: &[TraceEntry], jitter_ns: i64) -> Option<Self> {
        let ticks = || ticks(entries, jitter_ns);
        let starts = || ticks().map(|tick| tick[0].at_ns);
        let mut gaps: Vec<i64> =
            starts().zip(starts().skip(1)).map(|(early, late)| late - early).collect();
        gaps.sort_unstable();
        let tick_ns = most_common(&gaps, 2 * jitter_ns)?;
        let off_grid = |gap: i64| {
            let beyond = gap.rem_euclid(tick_ns);
            2 * jitter_ns < beyond.min(tick_ns - beyond)
        };
        let irregular = gaps.iter().filter(|gap| off_grid(**gap)).count();
        let alone = ticks().filter(|tick| tick.len() == 1).count();
        let share = |part: usize, whole: usize| (whole - part) as f64 / whole as f64;
        Some(Self {
            tick_ns,
            jitter_ns,
            shared: share(alone, entries.len()),
            regular: share(irregular, gaps.len()),
        })
    }

    /// Whether the recorder made it, and not the traffic.
    fn is_artefact(&self) -> bool {
        SHARED_MIN < self.shared && REGULAR_MIN <= self.regular
    }
}

/// Entries that belong to one tick, in order.
fn ticks(entries: &[TraceEntry], jitter_ns: i64) -> impl Iterator<Item = &[TraceEntry]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let first = rest.first()?.at_ns;
        let width = rest.iter().take_while(|entry| entry.at_ns - first <= 2 * jitter_ns).count();
        let (tick, after) = rest.split_at(width);
        rest = after;
        Some(tick)
    })
}

/// The mean of the gaps in the window of this width that holds the most of them; the smallest such
/// window.
fn most_common(sorted: &[i64], width: i64) -> Option<i64> {
    let mut start = 0;
    let mut best = 0..0;
    for end in 0..sorted.len() {
        while width < sorted[end] - sorted[start] {
            start += 1;
        }
        if best.len() < end + 1 - start {
            best = start..end + 1;
        }
    }
    let sum: i128 = sorted[best.clone()].iter().map(|gap| i128::from(*gap)).sum();
    let mean = sum.checked_div(i128::try_from(best.len()).ok()?)?;
    i64::try_from(mean).ok()
}

/// Gives each request a moment within its tick, where that is asked for or called for, and says
/// so. Their order stays as it is.
fn spread(entries: &mut [TraceEntry], grid: Option<Grid>, ticks: Ticks, seed: u64) -> Vec<String> {
    let moments = |entries: &[TraceEntry]| variation(entries.iter().map(|entry| entry.at_ns));
    let before = moments(entries);
    let done = match (ticks, grid) {
        (_, None) => None,
        (Ticks::Keep, Some(grid)) => grid.is_artefact().then(|| {
            format!("{}; they are played as recorded, each tick at once", grid.description())
        }),
        (Ticks::Auto, Some(grid)) if !grid.is_artefact() => (SHARED_MIN < grid.shared).then(|| {
            format!(
                "{} of the requests share a timestamp with others, but the timestamps lie on no \
                 grid; they are played as recorded (--ticks uniform spreads them)",
                fmt::percent(grid.shared)
            )
        }),
        (Ticks::Auto | Ticks::Uniform, Some(grid)) => {
            place_anew(entries, grid, seed, uniform);
            Some(format!(
                "{}; they were spread evenly within the tick (--ticks keep plays them as recorded)",
                grid.description()
            ))
        }
        (Ticks::Poisson, Some(grid)) => {
            place_anew(entries, grid, seed, poisson);
            Some(format!("{}; they were given Poisson gaps within the tick", grid.description()))
        }
    };
    let variation = before.map(|before| {
        let after = moments(entries).filter(|after| before.to_bits() != after.to_bits());
        let after = after
            .map_or(String::new(), |after| format!("; as played it is {}", fmt::number(after)));
        format!(
            "the gaps between the recorded requests have a coefficient of variation of {}{after}",
            fmt::number(before)
        )
    });
    done.into_iter().chain(variation).collect()
}

fn place_anew(
    entries: &mut [TraceEntry],
    grid: Grid,
    seed: u64,
    draw: impl Fn(&mut Stream, usize) -> Vec<f64>,
) {
    let sizes: Vec<usize> = ticks(entries, grid.jitter_ns).map(<[TraceEntry]>::len).collect();
    let mut rest = entries;
    for (number, size) in sizes.into_iter().enumerate() {
        let (tick, after) = rest.split_at_mut(size);
        let start = tick[0].at_ns;
        let next = after.first().map_or(i64::MAX, |entry| entry.at_ns);
        let width = grid.tick_ns.min(next - start) as f64;
        let shares = draw(&mut Stream::new(seed, "ticks", number as u64), size);
        for (entry, share) in tick.iter_mut().zip(shares) {
            #[expect(clippy::cast_possible_truncation, reason = "shorter than the tick")]
            let into_tick = (share * width) as i64;
            entry.at_ns = start.saturating_add(into_tick);
        }
        rest = after;
    }
}

/// Places that do not know of each other, anywhere in the tick alike.
fn uniform(stream: &mut Stream, count: usize) -> Vec<f64> {
    let mut places: Vec<f64> = (0..count).map(|_| 1.0 - stream.unit()).collect();
    places.sort_unstable_by(f64::total_cmp);
    places
}

/// Exponential gaps that fill the tick: a Poisson process of which the count is known. (Its law is
/// that of [`uniform`]; the draws are others.)
fn poisson(stream: &mut Stream, count: usize) -> Vec<f64> {
    let gaps: Vec<f64> = (0..=count).map(|_| stream.exponential()).collect();
    let whole: f64 = gaps.iter().sum();
    let mut place = 0.0;
    gaps[..count]
        .iter()
        .map(|gap| {
            place += gap;
            (place / whole).min(1.0 - f64::EPSILON)
        })
        .collect()
}

impl Grid {
    fn description(&self) -> String {
        let (unit, per_unit) = match self.tick_ns {
            1_000_000_000.. => ("s", 1e9),
            1_000_000.. => ("ms", 1e6),
            1_000.. => ("µs", 1e3),
            _ => ("ns", 1.0),
        };
        let length = fmt::setting(self.tick_ns as f64 / per_unit);
        let shared = fmt::percent(self.shared);
        format!(
            "the timestamps lie on a grid of {length} {unit}; {shared} of the requests share one \
             with others"
        )
    }
}

#[cfg(test)]
mod tests;

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
