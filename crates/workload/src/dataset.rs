//! Data sets: prompts of other people, in the forms in which they are published.
//!
//! To add a kind: a reader beside these, its name in `DatasetKind`, its sign in [`kind_of`], and
//! broken files of it in the tests.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::marker::PhantomData;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::{fmt, fs, thread};

use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{
    DatasetKind, DatasetSpec, INPUT_TOKENS, Lengths, OWN_FIELDS, TOKENS_MAX,
};
use inferometer_model::{Message, Prompt};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer as _, SeqAccess, Visitor};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::counter::Counter;
use crate::data_file::{DataFile, DataFileError, Position, hex, name_of, reason_of};
use crate::lengths::Draw;
use crate::plan::Stream;

/// Prompts with their lengths, and where they came from.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) items: Vec<Item>,
    pub(crate) facts: FileFacts,
    /// What a reader of the result should know.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) prompt: Prompt,
    pub(crate) input_tokens: u32,
    /// What the data states about the answer, if anything.
    pub(crate) output_tokens: Option<u32>,
    /// Fields of its body alone.
    pub(crate) fields: Map<String, Value>,
    /// The right answer, if the data has one.
    pub(crate) expected: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error(transparent)]
    File(#[from] DataFileError),
    #[error(
        "cannot detect the kind of the data set {0}; name it: sharegpt, jsonl, csv or text \
         for a file, directory for a folder of texts"
    )]
    UnknownKind(PathBuf),
    #[error("{0} is a folder; its kind is directory")]
    IsFolder(PathBuf),
    #[error("{0} is not a folder; the kind directory is a folder of .txt and .md files")]
    NotAFolder(PathBuf),
    #[error("{0} has no .txt or .md file")]
    NoTexts(PathBuf),
    #[error(
        "--input-tokens has no effect on {0}: its prompts have their own lengths; leave it out, or \
         leave out --dataset to send generated prompts of that length"
    )]
    OwnLengths(PathBuf),
}

/// Reads it whole: every prompt is counted before anything is sent.
pub(crate) fn read(spec: &DatasetSpec, counter: &dyn Counter) -> Result<Dataset, DatasetError> {
    read_within(spec, counter, BOUNDS)
}

/// What fits into memory.
#[derive(Clone, Copy, Debug)]
struct FileBounds {
    bytes: u64,
    items: u64,
}

const BOUNDS: FileBounds = FileBounds { bytes: 8 << 30, items: 10_000_000 };

fn read_within(
    spec: &DatasetSpec,
    counter: &dyn Counter,
    bounds: FileBounds,
) -> Result<Dataset, DatasetError> {
    let path = spec.path.as_path();
    if path.is_dir() {
        return match spec.kind {
            None | Some(DatasetKind::Directory) => {
                read_folder(path, spec.input.as_ref(), counter, bounds)
            }
            Some(_) => Err(DatasetError::IsFolder(path.to_path_buf())),
        };
    }
    let mut file = DataFile::open(path, bounds.bytes)?;
    let kind = match spec.kind.or_else(|| kind_of(path, &file.head)) {
        Some(kind) => kind,
        None if file.head.is_empty() => {
            return Err(DataFileError::Empty { path: path.to_path_buf() }.into());
        }
        None => return Err(DatasetError::UnknownKind(path.to_path_buf())),
    };
    if spec.input.is_some() && kind != DatasetKind::Directory {
        return Err(DatasetError::OwnLengths(path.to_path_buf()));
    }
    let is_share_gpt = kind == DatasetKind::ShareGpt;
    let limits = if is_share_gpt { Limits::SHARE_GPT } else { Limits::NONE };
    let mut collector = Collector {
        path,
        counter,
        limits,
        items_max: bounds.items,
        waiting: Vec::new(),
        items: Vec::new(),
        dropped: BTreeMap::new(),
        ignored: BTreeMap::new(),
    };
    match kind {
        DatasetKind::ShareGpt => {
            read_share_gpt(&mut file, spec.output.as_ref(), &mut collector)?;
        }
        DatasetKind::Jsonl => read_lines(&mut file, &mut collector)?,
        DatasetKind::Csv => read_table(&mut file, &mut collector)?,
        DatasetKind::Text => read_text_lines(&mut file, &mut collector)?,
        DatasetKind::Directory => return Err(DatasetError::NotAFolder(path.to_path_buf())),
    }
    let (items, dropped, notes) = collector.finish()?;
    let facts = FileFacts {
        name: name_of(path),
        kind: kind.to_string(),
        sha256: file.finish()?,
        items: items.len() as u64,
        dropped,
    };
    Ok(Dataset { items, facts, notes })
}

/// By its name, or by how it begins.
fn kind_of(path: &Path, head: &[u8]) -> Option<DatasetKind> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("csv") => return Some(DatasetKind::Csv),
        Some("txt" | "md") => return Some(DatasetKind::Text),
        _ => {}
    }
    match head.iter().find(|byte| !byte.is_ascii_whitespace())? {
        b'[' => Some(DatasetKind::ShareGpt),
        b'{' => Some(DatasetKind::Jsonl),
        _ => None,
    }
}

/// An item before its tokens are counted.
#[derive(Debug)]
struct Raw {
    prompt: Prompt,
    output: Output,
    fields: Map<String, Value>,
    expected: Option<String>,
}

/// What is known of an answer's length.
#[derive(Debug)]
enum Output {
    Unknown,
    Tokens(u32),
    /// As long as this one.
    Reference(String),
    /// What is asked of all, whatever the data states; `None` is drawn for each request.
    Chosen(Option<u32>),
}

/// Which lengths are used.
#[derive(Clone, Debug)]
struct Limits {
    prompt: RangeInclusive<usize>,
    reference_min: usize,
    sum_max: usize,
}

impl Limits {
    const NONE: Self = Self { prompt: 0..=usize::MAX, reference_min: 0, sum_max: usize::MAX };
    /// As the client that made this data set the usual one has them: results compare only when the
    /// same prompts are left out.
    const SHARE_GPT: Self = Self { prompt: 4..=1_024, reference_min: 4, sum_max: 2_048 };

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
struct Collector<'c> {
    path: &'c Path,
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

impl Collector<'_> {
    fn push(&mut self, raw: Raw) -> Result<(), DataFileError> {
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

    fn leave_out(&mut self, reason: &str) {
        *self.dropped.entry(reason.to_owned()).or_default() += 1;
    }

    /// A key or column without a meaning here: ignored, and noted.
    fn ignore(&mut self, what: &'static str, name: &str) {
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
                let (path, bound) = (self.path.to_path_buf(), self.items_max);
                return Err(DataFileError::TooMany { path, bound, what: "prompts" });
            }
            let output_tokens = if matches!(raw.output, Output::Chosen(_)) { None } else { answer };
            self.items.push(Item {
                prompt: raw.prompt,
                input_tokens: whole(input),
                output_tokens,
                fields: raw.fields,
                expected: raw.expected,
            });
        }
        Ok(())
    }

    /// The items, the number of prompts left out by reason, and the notes.
    #[expect(clippy::type_complexity, reason = "taken apart where it is called")]
    fn finish(mut self) -> Result<(Vec<Item>, BTreeMap<String, u64>, Vec<String>), DataFileError> {
        self.count_waiting()?;
        if self.items.is_empty() {
            return Err(DataFileError::nothing_left(self.path, &self.dropped));
        }
        let times = |(what, count): (&String, &u64)| match count {
            1 => format!("{what} (once)"),
            count => format!("{what} ({count} times)"),
        };
        let ignored: Vec<String> = self.ignored.iter().map(times).collect();
        let note = format!("ignored because it has no meaning here: {}", ignored.join(", "));
        let notes = if ignored.is_empty() { Vec::new() } else { vec![note] };
        Ok((self.items, self.dropped, notes))
    }
}

/// Lengths of the prompts, unless they cannot be sent, and of their answers, if known. Tokenizers
/// are slow and files are long, so all cores help; the order does not depend on them.
fn count_all(batch: &[Raw], counter: &dyn Counter) -> Vec<(Option<usize>, Option<u32>)> {
    let count = |raw: &Raw| {
        let answer = match &raw.output {
            Output::Unknown => None,
            Output::Tokens(tokens) => Some(*tokens),
            Output::Chosen(tokens) => *tokens,
            Output::Reference(text) => Some(whole(counter.words(text))),
        };
        (counter.prompt(&raw.prompt), answer)
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    // Fewer than 64 are not worth a thread.
    let share = batch.len().div_ceil(cores).max(64);
    thread::scope(|scope| {
        let shares = batch.chunks(share);
        let shares: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(count).collect::<Vec<_>>()))
            .collect();
        let joined = shares.into_iter().map(|share| match share.join() {
            Ok(counts) => counts,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    })
}

fn whole(tokens: usize) -> u32 {
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
            // The finalizer of `SplitMix64` spreads every bit over all others.
            let mut bits = right.wrapping_add(*key);
            bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (left, right) = (right, left ^ ((bits ^ bits >> 31) & mask));
        }
        left << self.half_bits | right
    }
}

/// The first two turns of each conversation: a prompt and a reference answer.
fn read_share_gpt(
    file: &mut DataFile,
    output: Option<&Lengths>,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    each_item(file, |_, conversation: Conversation| {
        let mut turns = conversation.conversations.into_iter();
        let (Some(prompt), Some(answer)) = (turns.next(), turns.next()) else {
            collector.leave_out("fewer than two turns");
            return Ok(());
        };
        let output = match output {
            Some(lengths) => Output::Chosen(lengths.fixed()),
            None => Output::Reference(answer.value),
        };
        let prompt = Prompt::Text(prompt.value);
        collector.push(Raw { prompt, output, fields: Map::new(), expected: None })
    })
}

/// Reads an array of objects with `conversations`, each with its number from one. Files have hundreds of
/// megabytes, so they are read as a stream.
pub(crate) fn each_item<T: DeserializeOwned>(
    file: &mut DataFile,
    take: impl FnMut(u64, T) -> Result<(), DataFileError>,
) -> Result<(), DataFileError> {
    let mut walk = Walk { take, begun: 0, failure: None, item: PhantomData };
    let mut parser = serde_json::Deserializer::from_reader(BufReader::new(&mut *file));
    let parsed = parser.deserialize_seq(&mut walk).and_then(|()| parser.end());
    let (begun, failure) = (walk.begun, walk.failure);
    match (parsed, failure) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(failure)) => Err(failure),
        (Err(error), None) if error.is_io() => Err(file.failed(error.into())),
        (Err(error), None) => {
            let reason = if error.is_eof() {
                format!("the file ends too early ({error}); is it complete?")
            } else {
                error.to_string()
            };
            Err(file.wrong(Position::Item(begun.max(1)), reason))
        }
    }
}

struct Walk<T, F> {
    take: F,
    /// How many items have been begun.
    begun: u64,
    /// What a parser's error has no room for.
    failure: Option<DataFileError>,
    item: PhantomData<fn() -> T>,
}

#[derive(Deserialize)]
struct Conversation {
    conversations: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    value: String,
}

impl<'de, T, F> Visitor<'de> for &mut Walk<T, F>
where
    T: DeserializeOwned,
    F: FnMut(u64, T) -> Result<(), DataFileError>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects with `conversations`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.begun = 1;
        while let Some(item) = items.next_element::<T>()? {
            if let Err(failure) = (self.take)(self.begun, item) {
                self.failure = Some(failure);
                return Err(de::Error::custom("given up"));
            }
            self.begun += 1;
        }
        Ok(())
    }
}

/// Names of an answer's length in data sets.
const OUTPUT_KEYS: [&str; 3] = ["output_tokens", "max_tokens", "output_len"];
const BODY_KEYS: [&str; 2] = ["body", "extra_body"];
/// Names of the right answer in data sets.
const ANSWER_KEYS: [&str; 3] = ["answer", "expected", "expected_answer"];

/// An object to a line: `prompt` or `messages`, and what belongs to this request alone.
fn read_lines(file: &mut DataFile, collector: &mut Collector<'_>) -> Result<(), DataFileError> {
    let path = file.path.clone();
    let mut lines = file.lines();
    while let Some((place, line)) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |reason| DataFileError::Wrong { path: path.clone(), place, reason };
        let object = serde_json::from_str::<Map<String, Value>>(line)
            .map_err(|error| wrong(format!("not a JSON object: {}", reason_of(&error))))?;
        let (raw, strangers) = item(object).map_err(wrong)?;
        for stranger in &strangers {
            collector.ignore("key", stranger);
        }
        collector.push(raw)?;
    }
    Ok(())
}

/// The item of a line, and the keys that mean nothing to us.
fn item(mut object: Map<String, Value>) -> Result<(Raw, Vec<String>), String> {
    let prompt = match (object.remove("prompt"), object.remove("messages")) {
        (Some(_), Some(_)) => return Err("both `prompt` and `messages`; leave one".to_owned()),
        (Some(Value::String(text)), None) => Prompt::Text(text),
        (Some(_), None) => return Err("`prompt` must be a text".to_owned()),
        (None, Some(messages)) => {
            let messages: Vec<Message> = serde_json::from_value(messages)
                .map_err(|error| format!("`messages` must be a list of objects ({error})"))?;
            if let Some(index) = messages.iter().position(|message| message.role().is_empty()) {
                return Err(format!("message {} has no `role`", index + 1));
            }
            Prompt::Messages(messages)
        }
        (None, None) => {
            let keys = object.keys().map(|key| format!("`{key}`")).collect::<Vec<_>>();
            let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
            return Err(format!("neither `prompt` nor `messages`; it has {keys}"));
        }
    };
    let output = match only_one(&mut object, &OUTPUT_KEYS)? {
        None | Some((_, Value::Null)) => Output::Unknown,
        Some((key, value)) => Output::Tokens(output_tokens(key, &value.to_string())?),
    };
    let fields = match only_one(&mut object, &BODY_KEYS)? {
        None | Some((_, Value::Null)) => Map::new(),
        Some((key, Value::Object(fields))) => {
            match OWN_FIELDS.iter().find(|own| fields.contains_key(**own)) {
                None => fields,
                Some(own) => {
                    return Err(format!(
                        "`{own}` in `{key}` is set by the measurement itself; leave it out \
                         (`output_tokens` beside `{key}` sets an answer's length)"
                    ));
                }
            }
        }
        Some((key, _)) => return Err(format!("`{key}` must be an object")),
    };
    let expected = match only_one(&mut object, &ANSWER_KEYS)? {
        None | Some((_, Value::Null)) => None,
        Some((_, Value::String(text))) => Some(text),
        Some((_, value)) => Some(value.to_string()),
    };
    let strangers = object.into_iter().map(|(key, _)| key).collect();
    Ok((Raw { prompt, output, fields, expected }, strangers))
}

/// The value of a key that has several names.
fn only_one(
    object: &mut Map<String, Value>,
    names: &[&'static str],
) -> Result<Option<(&'static str, Value)>, String> {
    let mut found = None;
    for name in names {
        if let Some(value) = object.remove(*name)
            && let Some((other, _)) = found.replace((*name, value))
        {
            return Err(format!("both `{other}` and `{name}`; leave one"));
        }
    }
    Ok(found)
}

fn output_tokens(key: &str, text: &str) -> Result<u32, String> {
    let tokens = text.trim().parse().ok();
    let allowed = tokens.filter(|tokens| (1..=TOKENS_MAX).contains(tokens));
    allowed.ok_or_else(|| format!("`{key}` is {text}, not a whole number from 1 to {TOKENS_MAX}"))
}

fn read_table(file: &mut DataFile, collector: &mut Collector<'_>) -> Result<(), DataFileError> {
    let path = file.path.clone();
    let mut table = file.table()?;
    let prompts = table.needed("prompt")?;
    let outputs = OUTPUT_KEYS.iter().find_map(|name| Some((*name, table.column(name)?)));
    let answers = ANSWER_KEYS.iter().find_map(|name| table.column(name));
    let known = [Some(prompts), outputs.map(|(_, place)| place), answers];
    let strangers: Vec<String> = table
        .columns()
        .enumerate()
        .filter(|(place, _)| !known.contains(&Some(*place)))
        .map(|(_, name)| name.to_owned())
        .collect();
    while let Some((place, row)) = table.next()? {
        let output =
            match outputs.map(|(name, column)| (name, row.get(column).unwrap_or(""))) {
                None | Some((_, "")) => Output::Unknown,
                Some((name, text)) => {
                    Output::Tokens(output_tokens(name, text).map_err(|reason| {
                        DataFileError::Wrong { path: path.clone(), place, reason }
                    })?)
                }
            };
        let prompt = Prompt::Text(row.get(prompts).unwrap_or_default().to_owned());
        let expected = answers.and_then(|column| row.get(column)).map(str::to_owned);
        collector.push(Raw { prompt, output, fields: Map::new(), expected })?;
        for stranger in &strangers {
            collector.ignore("column", stranger);
        }
    }
    Ok(())
}

fn read_text_lines(
    file: &mut DataFile,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let mut lines = file.lines();
    while let Some((_, line)) = lines.next()? {
        if line.trim().is_empty() {
            collector.leave_out("blank line");
            continue;
        }
        let prompt = Prompt::Text(line.to_owned());
        let (output, fields) = (Output::Unknown, Map::new());
        collector.push(Raw { prompt, output, fields, expected: None })?;
    }
    Ok(())
}

const DEPTH_MAX: usize = 16;
const FILES_MAX: u64 = 100_000;
/// The pieces are part of the data, and not of a run: they do not depend on its seed.
const PIECES_SEED: u64 = 0;
/// Text that is looked at for each token that is asked for: no language needs more.
const BYTES_PER_TOKEN_MAX: usize = 64;

/// A folder of texts, cut into prompts of the requested lengths.
fn read_folder(
    folder: &Path,
    input: Option<&Lengths>,
    counter: &dyn Counter,
    bounds: FileBounds,
) -> Result<Dataset, DatasetError> {
    let mut files = Vec::new();
    find(folder, folder, DEPTH_MAX, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(DatasetError::NoTexts(folder.to_path_buf()));
    }
    let lengths = Draw::new(input.unwrap_or(&Lengths::Fixed(INPUT_TOKENS)));
    let count = |text: &str| counter.prompt(&Prompt::Text(text.to_owned())).unwrap_or(0);
    let mut cutter = Cutter {
        folder,
        lengths,
        count: &count,
        least: count("a"),
        items_max: bounds.items,
        text: String::new(),
        items: Vec::new(),
        remainder: None,
    };
    let mut hash = Sha256::new();
    let mut bytes_left = bounds.bytes;
    for name in &files {
        let mut file = DataFile::open(&folder.join(name), bytes_left)?;
        let before = cutter.text.len();
        file.read_to_string(&mut cutter.text).map_err(|error| file.failed(error))?;
        bytes_left = bytes_left.saturating_sub((cutter.text.len() - before) as u64);
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(file.finish()?);
        // The end of a file is the end of a paragraph.
        cutter.text.push_str("\n\n");
        cutter.cut(false)?;
    }
    cutter.cut(true)?;
    let (items, dropped) = cutter.finish()?;
    let facts = FileFacts {
        name: name_of(folder),
        kind: DatasetKind::Directory.to_string(),
        sha256: hex(&hash.finalize()),
        items: items.len() as u64,
        dropped,
    };
    Ok(Dataset { items, facts, notes: Vec::new() })
}

/// The names of texts below a folder, with `/` on every system. Links to folders are not followed.
fn find(
    root: &Path,
    folder: &Path,
    depth_left: usize,
    files: &mut Vec<String>,
) -> Result<(), DatasetError> {
    let unreadable = |source| DataFileError::Unreadable { path: folder.to_path_buf(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        if entry.file_type().map_err(unreadable)?.is_dir() {
            if 0 < depth_left {
                find(root, &path, depth_left - 1, files)?;
            }
            continue;
        }
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        if extension == "txt" || extension == "md" {
            let below = path.strip_prefix(root).unwrap_or(&path).components();
            let names = below.map(|name| name.as_os_str().to_string_lossy());
            files.push(names.collect::<Vec<_>>().join("/"));
        }
        if FILES_MAX < files.len() as u64 {
            let path = root.to_path_buf();
            return Err(DataFileError::TooMany { path, bound: FILES_MAX, what: "texts" }.into());
        }
    }
    Ok(())
}

/// The tokens of a text as a whole prompt.
type Count<'c> = &'c dyn Fn(&str) -> usize;

struct Cutter<'c> {
    folder: &'c Path,
    lengths: Draw,
    count: Count<'c>,
    /// What surrounds a piece and a word of it: nothing is shorter.
    least: usize,
    items_max: u64,
    /// What has been read and not been cut.
    text: String,
    items: Vec<Item>,
    /// A last piece that may be too short, because the text ended.
    remainder: Option<Item>,
}

impl Cutter<'_> {
    /// Cuts the text read so far; `is_last` when no more text follows.
    fn cut(&mut self, is_last: bool) -> Result<(), DataFileError> {
        let mut at = 0;
        loop {
            at += self.text[at..].len() - self.text[at..].trim_start().len();
            let rest = &self.text[at..];
            let number = self.items.len() as u64;
            let tokens = self.lengths.draw_at(PIECES_SEED, "pieces", number);
            let tokens = (tokens as usize).max(self.least);
            let reach = tokens.saturating_mul(BYTES_PER_TOKEN_MAX);
            if rest.is_empty() || (!is_last && rest.len() < reach) {
                break;
            }
            let (piece, counted) = longest(rest, tokens, self.count);
            let is_short = piece.len() == rest.trim_end().len() && counted < tokens;
            let item = Item {
                prompt: Prompt::Text(piece.to_owned()),
                input_tokens: whole(counted),
                output_tokens: None,
                fields: Map::new(),
                expected: None,
            };
            at += piece.len();
            if is_short && is_last {
                self.remainder = Some(item);
                continue;
            }
            if self.items_max <= number {
                let (path, bound) = (self.folder.to_path_buf(), self.items_max);
                return Err(DataFileError::TooMany { path, bound, what: "pieces" });
            }
            self.items.push(item);
        }
        self.text.drain(..at);
        Ok(())
    }

    /// The last piece counts only when there is no other: it is as short as the text made it.
    fn finish(mut self) -> Result<(Vec<Item>, BTreeMap<String, u64>), DataFileError> {
        let mut dropped = BTreeMap::new();
        match self.remainder {
            Some(item) if self.items.is_empty() => self.items.push(item),
            Some(_) => {
                dropped.insert("last piece, shorter than asked".to_owned(), 1);
            }
            None if self.items.is_empty() => {
                return Err(DataFileError::Empty { path: self.folder.to_path_buf() });
            }
            None => {}
        }
        Ok((self.items, dropped))
    }
}

/// The longest beginning of a text, in whole words, that has at most so many tokens, and how many
/// it has. A word that is too long by itself is cut between its characters.
fn longest<'t>(text: &'t str, tokens: usize, count: Count<'_>) -> (&'t str, usize) {
    let reach = text.floor_char_boundary(tokens.saturating_mul(BYTES_PER_TOKEN_MAX));
    let near = &text[..reach];
    let start = near.as_ptr() as usize;
    let words = near.split_whitespace().take(tokens.saturating_add(1));
    let words: Vec<usize> = words.map(|word| word.as_ptr() as usize - start + word.len()).collect();
    if let Some(found) = last_within(near, &words, tokens, count) {
        return found;
    }
    let word = words.first().map_or(near, |end| &near[..*end]);
    let characters: Vec<usize> =
        word.char_indices().map(|(at, character)| at + character.len_utf8()).collect();
    last_within(near, &characters, tokens, count).unwrap_or_else(|| {
        // A single character of several tokens: there is nothing shorter.
        let piece = &near[..characters.first().copied().unwrap_or(near.len())];
        (piece, count(piece))
    })
}

/// The last of the ends up to which there are at most so many tokens. Counts grow about evenly
/// along a text, so a straight line finds it in a few steps; halves do when it is crooked.
fn last_within<'t>(
    text: &'t str,
    ends: &[usize],
    tokens: usize,
    count: Count<'_>,
) -> Option<(&'t str, usize)> {
    let count = |place: usize| count(&text[..ends[place]]);
    let mut over = (ends.len().checked_sub(1)?, 0);
    over.1 = count(over.0);
    if over.1 <= tokens {
        return Some((&text[..ends[over.0]], over.1));
    }
    // Nothing at all is within, one place before the first.
    let mut within: Option<(usize, usize)> = None;
    for step in 0.. {
        let (from, before) = within.map_or((0, 0), |(place, before)| (place + 1, before));
        if from == over.0 {
            break;
        }
        let width = over.0 - from;
        let share = width * (tokens - before) / (over.1 - before);
        let middle = from + if step < 6 { share.min(width - 1) } else { width / 2 };
        let found = count(middle);
        if found <= tokens {
            within = Some((middle, found));
        } else {
            over = (middle, found);
        }
    }
    within.map(|(place, found)| (&text[..ends[place]], found))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod shuffle_tests {
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
