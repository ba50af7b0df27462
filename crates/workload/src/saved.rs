//! A plan in a file: one JSON document to a line, first what it is, then its requests with their
//! words. It can be read, changed and played again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::Materials;
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{Extent, Load, LoadShape, SavedSpec, Source, TOKENS_MAX, Workload};
use inferometer_model::{
    Content, Message, Moment, Plan, PlannedRequest, Prompt, Release, RequestId, Spec, file,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::data_file::reason_of;
use crate::fingerprint::{half, nanos};
use crate::inputs::Inputs;
use crate::prompts::{PromptIndex, Prompts, RECIPE};

#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    #[error("{}: {error}; is it the path of a plan that `inferometer plan --save` wrote?", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{}, line {line}: {reason}", path.display())]
    Line { path: PathBuf, line: u64, reason: String },
    #[error("{}: {error}", path.display())]
    Unwritable { path: PathBuf, error: std::io::Error },
    #[error(
        "a plan that time may end cannot be saved; give it a number with --requests, and leave \
         --duration out"
    )]
    Endless,
    #[error("the plan has no requests to save; give it more time, or a number with --requests")]
    NothingToSave,
    #[error("request {id} could not be played from a file: {reason}")]
    Unplayable { id: RequestId, reason: String },
    #[error("{}: the plan has no requests; save it again", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{}: the file was cut short after {requests} requests (its last line is missing); save the \
         plan again",
        path.display()
    )]
    CutShort { path: PathBuf, requests: usize },
}

/// The first line alone: a run must know its load before anything else.
pub fn read_header(path: &Path) -> Result<Header, SavedPlanError> {
    Ok(open_lines(path)?.1)
}

/// The lines of a file, behind its header.
fn open_lines(path: &Path) -> Result<(Lines<BufReader<File>>, Header), SavedPlanError> {
    let file = file::open(path)
        .map_err(|error| SavedPlanError::Unreadable { path: path.to_owned(), error })?;
    let bytes = BufReader::with_capacity(1 << 20, file);
    let mut lines = Lines::new(path, bytes, LINE_BYTES_MAX);
    lines.advance()?;
    let header = Header::read(&lines.line).map_err(|reason| lines.wrong(reason))?;
    Ok((lines, header))
}

/// A saved plan: its recipes in memory, its words in the file.
#[derive(Debug)]
pub struct SavedPlan {
    file: Mutex<File>,
    entries: Vec<Entry>,
    /// Hash of all lines but the last.
    pub(crate) sha256: String,
    /// Whether they were changed after they were saved.
    pub(crate) is_changed: bool,
    pub(crate) header: Header,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    request: PlannedRequest,
    offset: u64,
    bytes: u64,
}

/// As many as an open loop may have.
const ENTRIES_MAX: usize = 100_000_000;

impl SavedPlan {
    /// Reads and checks every line; keeps the recipes.
    pub fn open(path: &Path) -> Result<Self, SavedPlanError> {
        let (mut lines, header) = open_lines(path)?;
        let mut hash = Sha256::new_with_prefix(&lines.line);
        let mut sequence = Sequence::new(&header);
        let mut entries = Vec::new();
        let end = loop {
            if !lines.advance()? {
                return Err(SavedPlanError::CutShort {
                    path: path.to_owned(),
                    requests: entries.len(),
                });
            }
            if let Ok(Last { end }) = serde_json::from_slice(&lines.line) {
                break end;
            }
            if ENTRIES_MAX <= entries.len() {
                return Err(lines.wrong(format!("a plan has at most {ENTRIES_MAX} requests")));
            }
            hash.update(&lines.line);
            let request = Line::read(&lines.line).map(|line| line.request());
            let request = request.and_then(|request| sequence.take(&request).map(|()| request));
            let request = request.map_err(|reason| lines.wrong(reason))?;
            let (offset, bytes) = (lines.offset, lines.line.len() as u64);
            entries.push(Entry { request, offset, bytes });
        };
        if lines.advance()? {
            return Err(lines.wrong("it is behind the end of the plan".to_owned()));
        }
        let requests = entries.len() as u64;
        if requests == 0 {
            return Err(SavedPlanError::Empty { path: path.to_owned() });
        }
        let wrong = |line, reason| SavedPlanError::Line { path: path.to_owned(), line, reason };
        if sequence.before.is_some_and(|before| before.continues) {
            let reason = "it continues, but no request follows it";
            return Err(wrong(requests + 1, reason.to_owned()));
        }
        if header.bounds.requests != Some(requests) {
            let stated = header.bounds.requests.map_or("null".to_owned(), |it| it.to_string());
            let reason = format!("`bounds.requests` is {stated}, and {requests} requests follow");
            return Err(wrong(1, reason));
        }
        let sha256 = half(hash);
        let is_changed = end.requests != requests || end.sha256 != sha256;
        let file = Mutex::new(lines.bytes.into_inner());
        Ok(Self { file, entries, sha256, is_changed, header })
    }

    /// The line of a request, from the file. Every line was read before, so what fails now was
    /// changed during the run: such a prompt is empty, and the server's answer will tell.
    fn line(&self, entry: &Entry) -> Option<Line> {
        let mut line = vec![0; usize::try_from(entry.bytes).ok()?];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(entry.offset)).ok()?;
        file.read_exact(&mut line).ok()?;
        drop(file);
        Line::read(&line).ok()
    }
}

impl Plan for SavedPlan {
    fn bounds(&self) -> Bounds {
        self.header.bounds
    }

    fn ramp_up(&self) -> Duration {
        self.header.load.ramp_up
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        self.entries.get(usize::try_from(id.0).ok()?).map(|entry| entry.request)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let entry = usize::try_from(request.id.0).ok().and_then(|place| self.entries.get(place));
        entry.and_then(|entry| self.line(entry)).map_or_else(|| Content::text(""), Line::content)
    }
}

/// A warm-up is as long as the saved requests.
impl Prompts for SavedPlan {
    fn recipe(&self, place: PromptIndex) -> PlannedRequest {
        let number = place.id % (self.entries.len() as u64).max(1);
        self.request(RequestId(number)).unwrap_or(RECIPE)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        Plan::content(self, request)
    }
}

pub const SCHEMA: &str = "inferometer.plan/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub schema: String,
    pub api: Api,
    pub workload: Workload,
    pub load: Load,
    pub seed: u64,
    pub bounds: Bounds,
    pub fingerprints: Fingerprints,
    pub materials: Materials,
}

impl Header {
    /// What was asked when the plan was saved.
    pub fn spec(&self) -> SavedSpec {
        SavedSpec {
            api: self.api,
            workload: self.workload.clone(),
            load: self.load.clone(),
            seed: self.seed,
        }
    }

    fn read(line: &[u8]) -> Result<Self, String> {
        let named: Value = serde_json::from_slice(line)
            .map_err(|error| format!("not the JSON of a saved plan ({})", reason_of(&error)))?;
        if named["schema"] != SCHEMA {
            return Err(format!("its schema is {}, and this reads `{SCHEMA}`", named["schema"]));
        }
        let header: Self = serde_json::from_value(named).map_err(|error| error.to_string())?;
        header.load.check().map_err(|error| error.to_string())?;
        header.check_bounds()?;
        Ok(header)
    }

    /// Bounds follow from the load; a file that contradicts itself is refused.
    fn check_bounds(&self) -> Result<(), String> {
        let slots = match &self.load.shape {
            LoadShape::Closed { concurrency, .. } => Some(*concurrency),
            LoadShape::Open { cap, .. } => *cap,
        };
        if self.bounds.slots != slots {
            let written = |slots: Option<_>| slots.map_or("null".to_owned(), |s| format!("{s}"));
            return Err(format!(
                "`bounds.slots` is {}, and `load.shape` makes it {}",
                written(self.bounds.slots),
                written(slots)
            ));
        }
        let Bounds { release_before, requests_min, .. } = self.bounds;
        let (ends_in_time, least) = match self.load.extent {
            Extent::Whole | Extent::Requests(_) => (release_before.is_none(), 0..=0),
            Extent::Duration(duration) | Extent::UntilFirst { duration, .. } => {
                (release_before == Some(Moment::ZERO + duration), 0..=0)
            }
            // A schedule may reach beyond the time, and whole conversations beyond the number.
            Extent::UntilBoth { requests, duration } => (
                release_before.is_some_and(|end| Moment::ZERO + duration <= end),
                requests.get()..=u64::MAX,
            ),
        };
        if !ends_in_time {
            return Err("`bounds.release_before` does not fit `load.extent`".to_owned());
        }
        if !least.contains(&requests_min) {
            return Err("`bounds.requests_min` does not fit `load.extent`".to_owned());
        }
        Ok(())
    }
}

/// A request: its recipe, and its words.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: u64,
    release: When,
    #[serde(default, skip_serializing_if = "is_zero")]
    think_ns: u64,
    #[serde(default)]
    prompt_seed: u64,
    input_tokens: u32,
    output_tokens: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    item: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    part: u16,
    #[serde(default, skip_serializing_if = "is_zero")]
    turn: u16,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continues: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    body: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

/// The last line: a file without it was cut short, and one that it does not fit was changed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Last {
    end: End,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    requests: u64,
    /// Half of the SHA-256 of all lines before it.
    sha256: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum When {
    AtNs(u64),
    SlotFree,
    /// After the answer to the request before it.
    AfterNs(u64),
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl Line {
    fn new(request: &PlannedRequest, content: Content) -> Self {
        let release = match request.release {
            Release::At(moment) => When::AtNs(moment.as_nanos()),
            Release::WhenSlotFree => When::SlotFree,
            Release::After { think, .. } => When::AfterNs(nanos(think)),
        };
        let (prompt, messages) = match content.prompt {
            Prompt::Text(text) => (Some(text), None),
            Prompt::Messages(messages) => (None, Some(messages)),
        };
        Self {
            id: request.id.0,
            release,
            think_ns: nanos(request.think),
            prompt_seed: request.prompt_seed,
            input_tokens: request.input_tokens,
            output_tokens: request.output_tokens,
            item: request.item,
            part: request.part,
            turn: request.turn,
            continues: request.continues,
            prompt,
            messages,
            images: content.images,
            body: content.fields,
            model: content.model,
        }
    }

    fn read(line: &[u8]) -> Result<Self, String> {
        let line: Self = serde_json::from_slice(line).map_err(|error| reason_of(&error))?;
        if line.prompt.is_some() == line.messages.is_some() {
            return Err("a request has either `prompt` or `messages`".to_owned());
        }
        Ok(line)
    }

    fn request(&self) -> PlannedRequest {
        let release = match self.release {
            When::AtNs(ns) => Release::At(Moment::from_nanos(ns)),
            When::SlotFree => Release::WhenSlotFree,
            When::AfterNs(ns) => Release::After {
                previous: RequestId(self.id.saturating_sub(1)),
                think: Duration::from_nanos(ns),
            },
        };
        PlannedRequest {
            id: RequestId(self.id),
            release,
            think: Duration::from_nanos(self.think_ns),
            prompt_seed: self.prompt_seed,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            item: self.item,
            part: self.part,
            turn: self.turn,
            continues: self.continues,
        }
    }

    fn content(self) -> Content {
        let prompt = match self.messages {
            Some(messages) => Prompt::Messages(messages),
            None => Prompt::Text(self.prompt.unwrap_or_default()),
        };
        Content { prompt, images: self.images, fields: self.body, model: self.model }
    }
}

const LINE_BYTES_MAX: u64 = 256 << 20;

struct Lines<R> {
    path: PathBuf,
    bytes: R,
    bound: u64,
    /// From one; zero before the first.
    number: u64,
    /// Where the line begins.
    offset: u64,
    /// With its end.
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn new(path: &Path, bytes: R, bound: u64) -> Self {
        Self { path: path.to_owned(), bytes, bound, number: 0, offset: 0, line: Vec::new() }
    }

    /// Whether there is another line.
    fn advance(&mut self) -> Result<bool, SavedPlanError> {
        self.offset += self.line.len() as u64;
        self.line.clear();
        let mut within = Read::by_ref(&mut self.bytes).take(self.bound.saturating_add(1));
        let count = within
            .read_until(b'\n', &mut self.line)
            .map_err(|error| SavedPlanError::Unreadable { path: self.path.clone(), error })?;
        if count == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.bound < count as u64 {
            return Err(self.wrong(format!("the line is longer than {} bytes", self.bound)));
        }
        Ok(true)
    }

    /// What is wrong with this line.
    fn wrong(&self, reason: String) -> SavedPlanError {
        SavedPlanError::Line { path: self.path.clone(), line: self.number.max(1), reason }
    }
}

/// Checks requests one after the other.
#[derive(Debug)]
struct Sequence {
    is_open_loop: bool,
    /// `None` where the header cannot tell.
    parts: Option<usize>,
    before: Option<PlannedRequest>,
    /// When the last request left that did not wait for an answer.
    latest: Moment,
}

impl Sequence {
    fn new(header: &Header) -> Self {
        let parts = match &header.workload.source {
            Source::Mix(parts) => Some(parts.len()),
            // A plan that was played and saved again.
            Source::Saved { .. } => None,
            Source::Synthetic(_)
            | Source::VllmRandom(_)
            | Source::Dataset(_)
            | Source::Fixed(_)
            | Source::Trace(_)
            | Source::Conversations(_) => Some(1),
        };
        let is_open_loop = matches!(header.load.shape, LoadShape::Open { .. });
        Self { is_open_loop, parts, before: None, latest: Moment::ZERO }
    }

    fn take(&mut self, request: &PlannedRequest) -> Result<(), String> {
        let expected = self.before.map_or(0, |before| before.id.0 + 1);
        if request.id.0 != expected {
            return Err(format!("it is request {}, and request {expected} is due", request.id));
        }
        self.check_turn(request)?;
        self.check_release(request)?;
        let PlannedRequest { input_tokens, output_tokens, .. } = *request;
        for (name, length) in [("input_tokens", input_tokens), ("output_tokens", output_tokens)] {
            if !(1..=TOKENS_MAX).contains(&length) {
                return Err(format!("{name} is {length} and must be from 1 to {TOKENS_MAX}"));
            }
        }
        if let Some(parts) = self.parts
            && parts <= usize::from(request.part)
        {
            let part = request.part;
            return Err(format!("there is no part {part}: the workload has {parts}, from 0"));
        }
        self.before = Some(*request);
        Ok(())
    }

    fn check_turn(&self, request: &PlannedRequest) -> Result<(), String> {
        let follows = matches!(request.release, Release::After { .. });
        let goes_on = self.before.filter(|before| before.continues);
        let mistake = match (goes_on, follows) {
            (None, true) => "it follows an answer, but the request before it does not continue",
            (Some(_), false) => {
                "the request before it continues, so it must follow that answer (`after_ns`)"
            }
            (None, false) | (Some(_), true) => {
                let expected = goes_on.map_or(0, |before| u32::from(before.turn) + 1);
                if u32::from(request.turn) == expected {
                    return Ok(());
                }
                return Err(format!("it is turn {}, and turn {expected} is due", request.turn));
            }
        };
        Err(mistake.to_owned())
    }

    fn check_release(&mut self, request: &PlannedRequest) -> Result<(), String> {
        let mistake = match request.release {
            Release::At(_) if !self.is_open_loop => {
                "it is sent at a given time, and the load is a closed loop"
            }
            Release::WhenSlotFree if self.is_open_loop => {
                "it waits for a free slot, and the load is an open loop"
            }
            Release::At(time) if time < self.latest => {
                "it is sent before a request above it; times must not decrease"
            }
            Release::At(time) => {
                self.latest = time;
                return Ok(());
            }
            Release::WhenSlotFree | Release::After { .. } => return Ok(()),
        };
        Err(mistake.to_owned())
    }
}

/// Writes a plan, request by request. `name` is what errors call `out`.
pub fn write_plan(
    out: impl Write,
    name: &Path,
    spec: &Spec,
    inputs: &Inputs,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<(), SavedPlanError> {
    let header = header(spec, inputs.materials(), fingerprints, plan)?;
    let mut out = BufWriter::with_capacity(1 << 20, out);
    write_lines(&mut out, name, &header, plan)?;
    out.flush().map_err(|error| SavedPlanError::Unwritable { path: name.to_owned(), error })
}

fn header(
    spec: &Spec,
    materials: &Materials,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<Header, SavedPlanError> {
    match plan.bounds().requests {
        None => return Err(SavedPlanError::Endless),
        Some(0) => return Err(SavedPlanError::NothingToSave),
        Some(_) => {}
    }
    Ok(Header {
        schema: SCHEMA.to_owned(),
        api: spec.api,
        workload: spec.workload.clone(),
        load: spec.load.clone(),
        seed: spec.seed,
        bounds: plan.bounds(),
        fingerprints: fingerprints.clone(),
        materials: materials.clone(),
    })
}

/// Request by request: a plan's length does not matter to the memory. What would be refused when
/// it is read is not written either. `path` is named in errors.
fn write_lines(
    mut out: impl Write,
    path: &Path,
    header: &Header,
    plan: &dyn Plan,
) -> Result<(), SavedPlanError> {
    let mut hash = Sha256::new();
    let mut write = |line: serde_json::Result<Vec<u8>>| {
        let line = line.map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            out.write_all(&line).map(|()| line)
        });
        line.map_err(|error| SavedPlanError::Unwritable { path: path.to_owned(), error })
    };
    hash.update(write(serde_json::to_vec(header))?);
    let mut sequence = Sequence::new(header);
    let mut written = 0;
    let requests = header.bounds.requests.unwrap_or(0);
    for request in (0..requests).map_while(|id| plan.request(RequestId(id))) {
        let checked = sequence.take(&request);
        checked.map_err(|reason| SavedPlanError::Unplayable { id: request.id, reason })?;
        let line = Line::new(&request, plan.content(&request));
        hash.update(write(serde_json::to_vec(&line))?);
        written += 1;
    }
    let end = End { requests: written, sha256: half(hash) };
    write(serde_json::to_vec(&Last { end })).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_does_not_fill_memory() {
        let endless = std::io::BufReader::new(std::io::repeat(b'x'));
        let mut lines = Lines::new(Path::new("p"), endless, 1_000);
        let refused = lines.advance().unwrap_err().to_string();
        assert_eq!(refused, "p, line 1: the line is longer than 1000 bytes");
        assert_eq!(lines.line.len(), 1_001);
    }

    #[test]
    fn lines_know_where_they_begin() {
        let mut lines = Lines::new(Path::new("p"), &b"ab\nc\nd"[..], 3);
        let mut found = Vec::new();
        while lines.advance().unwrap() {
            found.push((lines.number, lines.offset, lines.line.clone()));
        }
        let expected = [(1, 0, &b"ab\n"[..]), (2, 3, b"c\n"), (3, 5, b"d")];
        assert_eq!(found, expected.map(|(number, at, line)| (number, at, line.to_vec())));
    }
}
