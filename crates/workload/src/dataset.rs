//! Data sets: prompts of other people, in the forms in which they are published.
//!
//! To add a kind: a reader beside these, its name in `DatasetKind`, its sign in [`kind_of`], and
//! broken files of it in the tests.

mod files;
mod known;
mod parquet;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::marker::PhantomData;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::{fmt, fs, thread};

use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{
    DatasetKind, DatasetPart, DatasetRole, DatasetSpec, INPUT_TOKENS, Lengths, OWN_FIELDS,
    TOKENS_MAX,
};
use inferometer_model::{Message, Prompt};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer as _, SeqAccess, Visitor};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use self::files::Located;
use crate::counter::Counter;
use crate::data_file::{DataFile, DataFileError, Position, hex, name_of, reason_of};
use crate::hub::{Hub, HubError};
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
        "cannot detect the kind of the data set {0}; name it: sharegpt, jsonl, json, parquet, csv or \
         text for a file, directory for a folder of texts"
    )]
    UnknownKind(PathBuf),
    #[error("{0} is not a folder; the kind directory is a folder of .txt and .md files")]
    NotAFolder(PathBuf),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error("{0}")]
    Files(String),
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
    read_within(spec, &Hub::from_environment(), counter, BOUNDS)
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
    hub: &Hub,
    counter: &dyn Counter,
    bounds: FileBounds,
) -> Result<Dataset, DatasetError> {
    let path = spec.path.as_path();
    let Some(Located { files, name, part, known }) = files::locate(spec, hub, bounds.bytes)? else {
        return read_folder(path, spec.input.as_ref(), counter, bounds);
    };
    let mut collector = Collector {
        path,
        counter,
        limits: known.map_or(Limits::NONE, |known| known.limits.clone()),
        usual_output: known.and_then(|known| known.output),
        items_max: bounds.items,
        waiting: Vec::new(),
        items: Vec::new(),
        dropped: BTreeMap::new(),
        ignored: BTreeMap::new(),
    };
    let mut hashes = Vec::new();
    let mut bytes_left = bounds.bytes;
    let mut kind = spec.kind;
    for path in &files {
        let file = DataFile::open(path, bytes_left)?;
        let found = spec.kind.or_else(|| kind_of(path, &file.head, &part));
        let (read_as, file) = read_file(file, found, spec, &part, &mut collector)?;
        kind = Some(read_as);
        hashes.push(file.finish()?);
        let bytes = fs::metadata(path).map_or(0, |facts| facts.len());
        bytes_left = bytes_left.saturating_sub(bytes);
    }
    let (items, dropped, notes) = collector.finish()?;
    let sha256 = match hashes.as_slice() {
        [only] => only.clone(),
        all => hex(&Sha256::digest(all.concat())),
    };
    let kind = kind.map_or_else(String::new, |kind| kind.to_string());
    let facts = FileFacts { name, kind, sha256, items: items.len() as u64, dropped };
    Ok(Dataset { items, facts, notes })
}

fn read_file(
    mut file: DataFile,
    kind: Option<DatasetKind>,
    spec: &DatasetSpec,
    part: &DatasetPart,
    collector: &mut Collector<'_>,
) -> Result<(DatasetKind, DataFile), DatasetError> {
    let path = || file.path.clone();
    let Some(kind) = kind else {
        let is_empty = file.head.is_empty();
        let empty = || DataFileError::Empty { path: path() }.into();
        return Err(if is_empty { empty() } else { DatasetError::UnknownKind(path()) });
    };
    if spec.input.is_some() && kind != DatasetKind::Directory {
        return Err(DatasetError::OwnLengths(path()));
    }
    match kind {
        DatasetKind::ShareGpt => {
            collector.limits = Limits::SHARE_GPT;
            read_share_gpt(&mut file, spec.output.as_ref(), collector)?;
        }
        DatasetKind::Jsonl => read_lines(&mut file, part, collector)?,
        DatasetKind::Json => read_list(&mut file, part, collector)?,
        DatasetKind::Parquet => parquet::read(&mut file, part, collector)?,
        DatasetKind::Csv => read_table(&mut file, part, collector)?,
        DatasetKind::Text => read_text_lines(&mut file, collector)?,
        DatasetKind::Directory => return Err(DatasetError::NotAFolder(path())),
    }
    Ok((kind, file))
}

/// By its name, or by how it begins.
fn kind_of(path: &Path, head: &[u8], part: &DatasetPart) -> Option<DatasetKind> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("csv") => return Some(DatasetKind::Csv),
        Some("txt" | "md") => return Some(DatasetKind::Text),
        _ => {}
    }
    let has = |key: &[u8]| memchr::memmem::find(head, key).is_some();
    match head.iter().find(|byte| !byte.is_ascii_whitespace())? {
        _ if head.starts_with(parquet::MAGIC) => Some(DatasetKind::Parquet),
        b'[' if part.columns.is_empty() && (has(b"\"conversations\"") || !has(b"{")) => {
            Some(DatasetKind::ShareGpt)
        }
        b'[' => Some(DatasetKind::Json),
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
    source: RawSource,
    expected: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RawSource {
    Prompt,
    /// The first turns of a conversation, whose lengths are limited as other clients do.
    Conversation,
}

const FEW_TURNS: &str = "fewer than two turns";

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
    /// Tokens of an answer where the data says nothing.
    usual_output: Option<u32>,
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
            let output_tokens = match raw.output {
                Output::Chosen(_) => None,
                Output::Unknown => self.usual_output,
                Output::Tokens(_) | Output::Reference(_) => answer,
            };
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
            collector.leave_out(FEW_TURNS);
            return Ok(());
        };
        let output = match output {
            Some(lengths) => Output::Chosen(lengths.fixed()),
            None => Output::Reference(answer.value),
        };
        let (prompt, fields) = (Prompt::Text(prompt.value), Map::new());
        collector.push(Raw {
            prompt,
            output,
            fields,
            source: RawSource::Conversation,
            expected: None,
        })
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
/// Keys of which an object has one.
const ASKED: [&str; 3] = ["prompt", "messages", "conversations"];
/// Names of the right answer in data sets.
const EXPECTED_KEYS: [&str; 3] = ["expected", "expected_answer", "answer"];
/// An answer whose length those of the server get; the right one, too, where no other is named.
const REFERENCE: &str = "reference_answer";

/// An object to a line: `prompt` or `messages`, and what belongs to this request alone.
fn read_lines(
    file: &mut DataFile,
    part: &DatasetPart,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let path = file.path.clone();
    let mut lines = file.lines();
    while let Some((place, line)) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        let object = serde_json::from_str::<Map<String, Value>>(line).map_err(|error| {
            let reason = format!("not a JSON object: {}", reason_of(&error));
            DataFileError::Wrong { path: path.clone(), place, reason }
        })?;
        collector.push_object(object, part, (&path, place))?;
    }
    Ok(())
}

/// An array of such objects.
fn read_list(
    file: &mut DataFile,
    part: &DatasetPart,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let path = file.path.clone();
    each_item(file, |number, object: Map<String, Value>| {
        collector.push_object(object, part, (&path, Position::Item(number)))
    })
}

impl Collector<'_> {
    /// Takes an object of a file, whose columns may have other names.
    fn push_object(
        &mut self,
        object: Map<String, Value>,
        part: &DatasetPart,
        (path, place): (&Path, Position),
    ) -> Result<(), DataFileError> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_other = part.only.iter().find(|(column, wanted)| {
            value_at(&object, column).is_none_or(|value| text(value) != **wanted)
        });
        if let Some((column, wanted)) = is_other {
            self.leave_out(&format!("{column} is not {wanted}"));
            return Ok(());
        }
        let item = renamed(object, part).and_then(item);
        let (raw, strangers) = item.map_err(|reason| DataFileError::Wrong {
            path: path.to_path_buf(),
            place,
            reason,
        })?;
        // Who names columns knows of the others.
        for stranger in strangers.iter().filter(|it| is_stranger(it, part)) {
            self.ignore("key", stranger);
        }
        let Some(raw) = raw else {
            self.leave_out(FEW_TURNS);
            return Ok(());
        };
        if matches!(raw.source, RawSource::Conversation) {
            self.limits = Limits::SHARE_GPT;
        }
        self.push(raw)
    }
}

/// Whether a column means nothing. Who names columns knows of the others.
fn is_stranger(name: &str, part: &DatasetPart) -> bool {
    part.columns.is_empty() && !part.only.contains_key(name)
}

/// The object with its columns under the names that they have here.
fn renamed(
    mut object: Map<String, Value>,
    part: &DatasetPart,
) -> Result<Map<String, Value>, String> {
    let mut found = Vec::new();
    for (role, column) in &part.columns {
        let value = value_at(&object, column);
        let value = value.ok_or_else(|| {
            let keys = names(object.keys());
            format!("it has no `{column}`, which --dataset-column makes its {role}; it has {keys}")
        })?;
        let key =
            if *role == DatasetRole::Answer { REFERENCE.to_owned() } else { role.to_string() };
        found.push((key, value.clone()));
    }
    for column in part.columns.values() {
        object.remove(column_root(&object, column));
    }
    // Where it is named what to ask, other columns that could be asked are not.
    if found.iter().any(|(role, _)| ASKED.contains(&role.as_str())) {
        for role in ASKED {
            object.remove(role);
        }
    }
    object.extend(found);
    Ok(object)
}

/// The column itself, or what it leads to: names of keys and numbers of items with dots between.
fn value_at<'o>(object: &'o Map<String, Value>, column: &str) -> Option<&'o Value> {
    if let Some(value) = object.get(column) {
        return Some(value);
    }
    let mut steps = column.split('.');
    let first = object.get(steps.next()?)?;
    steps.try_fold(first, |value, step| {
        if value.is_array() { value.get(step.parse::<usize>().ok()?) } else { value.get(step) }
    })
}

/// The key of an object in which a column is.
fn column_root<'c>(object: &Map<String, Value>, column: &'c str) -> &'c str {
    if object.contains_key(column) { column } else { root_of(column) }
}

/// The first step to a column.
fn root_of(column: &str) -> &str {
    column.split('.').next().unwrap_or(column)
}

fn names<'n>(keys: impl Iterator<Item = &'n String>) -> String {
    let keys = keys.map(|key| format!("`{key}`")).collect::<Vec<_>>();
    if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") }
}

/// The item of an object, unless it is a conversation that is too short, and the keys that mean
/// nothing to us.
fn item(mut object: Map<String, Value>) -> Result<(Option<Raw>, Vec<String>), String> {
    let mut source = RawSource::Prompt;
    let mut reference = object.remove(REFERENCE);
    let given = ASKED.map(|key| object.remove(key).map(|value| (key, value)));
    let mut given = given.into_iter().flatten();
    let mut prompt = match (given.next(), given.next()) {
        (Some((one, _)), Some((other, _))) => {
            return Err(format!("both `{one}` and `{other}`; leave one"));
        }
        (Some(("prompt", Value::String(text))), None) => Prompt::Text(text),
        (Some(("prompt", Value::Null)), None) => Prompt::Text(String::new()),
        (Some(("prompt", _)), None) => return Err("`prompt` must be a text".to_owned()),
        (Some(("messages", messages)), None) => Prompt::Messages(messages_of(messages)?),
        (Some((_, turns)), None) => {
            let turns: Vec<Turn> = serde_json::from_value(turns)
                .map_err(|error| format!("`conversations` must be a list of turns ({error})"))?;
            let mut turns = turns.into_iter().map(|turn| turn.value);
            let (Some(first), Some(second)) = (turns.next(), turns.next()) else {
                return Ok((None, Vec::new()));
            };
            reference = Some(second.into());
            source = RawSource::Conversation;
            Prompt::Text(first)
        }
        (None, _) => {
            let keys = names(object.keys());
            return Err(format!(
                "neither `prompt` nor `messages`; it has {keys} (--dataset-column prompt=COLUMN \
                 says which is the prompt)"
            ));
        }
    };
    if let Some(Value::String(system)) = object.remove("system") {
        let mut messages = vec![Message::new("system", system)];
        match prompt {
            Prompt::Text(text) => messages.push(Message::new("user", text)),
            Prompt::Messages(rest) => messages.extend(rest),
        }
        prompt = Prompt::Messages(messages);
    }
    let expected = only_one(&mut object, &EXPECTED_KEYS)?.map(|(_, value)| value);
    let expected = expected.as_ref().or(reference.as_ref()).and_then(text_of);
    let output = match (only_one(&mut object, &OUTPUT_KEYS)?, reference) {
        (None | Some((_, Value::Null)), Some(Value::String(answer))) => Output::Reference(answer),
        (None | Some((_, Value::Null)), _) => Output::Unknown,
        (Some((key, Value::String(text))), _) => Output::Tokens(output_tokens(key, &text)?),
        (Some((key, value)), _) => Output::Tokens(output_tokens(key, &value.to_string())?),
    };
    let fields = body_fields(&mut object)?;
    let strangers = object.into_iter().map(|(key, _)| key).collect();
    Ok((Some(Raw { prompt, output, fields, source, expected }), strangers))
}

/// A text itself, and other values as JSON.
fn text_of(value: &Value) -> Option<String> {
    let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (!value.is_null()).then(text)
}

fn messages_of(value: Value) -> Result<Vec<Message>, String> {
    let messages: Vec<Message> = serde_json::from_value(value)
        .map_err(|error| format!("`messages` must be a list of objects ({error})"))?;
    match messages.iter().position(|message| message.role().is_empty()) {
        Some(index) => Err(format!("message {} has no `role`", index + 1)),
        None => Ok(messages),
    }
}

fn body_fields(object: &mut Map<String, Value>) -> Result<Map<String, Value>, String> {
    match only_one(object, &BODY_KEYS)? {
        None | Some((_, Value::Null)) => Ok(Map::new()),
        Some((key, Value::Object(fields))) => {
            match OWN_FIELDS.iter().find(|own| fields.contains_key(**own)) {
                None => Ok(fields),
                Some(own) => Err(format!(
                    "`{own}` in `{key}` is set by the measurement itself; leave it out \
                     (`output_tokens` beside `{key}` sets an answer's length)"
                )),
            }
        }
        Some((key, _)) => Err(format!("`{key}` must be an object")),
    }
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

fn read_table(
    file: &mut DataFile,
    part: &DatasetPart,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let path = file.path.clone();
    let mut table = file.table()?;
    if !part.columns.contains_key(&DatasetRole::Prompt) {
        table.needed("prompt")?;
    }
    // The names that the columns have for us, where they have any.
    let known = ["prompt"].into_iter().chain(OUTPUT_KEYS).chain(EXPECTED_KEYS);
    let named = part.columns.values().chain(part.only.keys()).map(String::as_str);
    let known: Vec<&str> = known.chain(named).collect();
    let (mut used, mut strangers) = (Vec::new(), Vec::new());
    for (place, name) in table.columns().enumerate() {
        match known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            Some(known) => used.push((place, (*known).to_owned())),
            None => strangers.push(name.to_owned()),
        }
    }
    while let Some((place, row)) = table.next()? {
        let value = |(column, name): &(usize, String)| {
            let text = row.get(*column).unwrap_or_default();
            let is_absent = text.is_empty() && name != "prompt";
            (name.clone(), if is_absent { Value::Null } else { text.into() })
        };
        collector.push_object(used.iter().map(value).collect(), part, (&path, place))?;
        for stranger in strangers.iter().filter(|_| part.columns.is_empty()) {
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
        let (output, fields, source) = (Output::Unknown, Map::new(), RawSource::Prompt);
        collector.push(Raw { prompt, output, fields, source, expected: None })?;
    }
    Ok(())
}

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
    let files = files::below(folder, &["txt", "md"])?;
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
