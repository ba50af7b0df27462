//! A plan in a file: one JSON document to a line, first what it is, then its requests with their
//! words. It can be read, changed and played again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::Materials;
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::record::SessionPlace;
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
    /// What requests that wait for several others wait for, but for the last of these.
    joins: BTreeMap<RequestId, Vec<RequestId>>,
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
        let mut entries: Vec<Entry> = Vec::new();
        let mut all_joins = BTreeMap::new();
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
            let request = Line::read(&lines.line).and_then(|line| {
                let (request, joins) = (line.request(), line.joins());
                sequence.take(&request, line.after.is_some()).map(|()| (request, joins))
            });
            let (request, joins) = request.map_err(|reason| lines.wrong(reason))?;
            if !joins.is_empty() {
                all_joins.insert(request.id, joins);
            }
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
        if !sequence.open.is_empty() {
            let reason = "it continues, but no request follows it";
            return Err(wrong(requests + 1, reason.to_owned()));
        }
        note_sizes(&mut entries, header.workload.source.has_sessions());
        if header.bounds.requests != Some(requests) {
            let stated = header.bounds.requests.map_or("null".to_owned(), |it| it.to_string());
            let reason = format!("`bounds.requests` is {stated}, and {requests} requests follow");
            return Err(wrong(1, reason));
        }
        let sha256 = half(hash);
        let is_changed = end.requests != requests || end.sha256 != sha256;
        let file = Mutex::new(lines.bytes.into_inner());
        Ok(Self { file, entries, joins: all_joins, sha256, is_changed, header })
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

    fn joins(&self, request: &PlannedRequest) -> Vec<RequestId> {
        self.joins.get(&request.id).cloned().unwrap_or_default()
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
    /// The turns of its session that it waits for; absent in a conversation, where it is the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<Vec<u16>>,
    /// The turn that its prompt goes on from, where `after` says whom it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<u16>,
    #[serde(default, skip_serializing_if = "is_zero")]
    shared_tokens: u32,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
}

/// Notes in each request how many its session has.
fn note_sizes(entries: &mut [Entry], are_sessions: bool) {
    let mut requests = 0_u16;
    for entry in entries.iter_mut().rev() {
        let turn = entry.request.turn;
        requests = requests.max(turn.saturating_add(1));
        // One that stands alone is no session.
        let is_session = are_sessions || 1 < requests;
        entry.request.session.requests = if is_session { requests } else { 0 };
        if turn == 0 {
            requests = 0;
        }
    }
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
    /// After the answer to the request before it, or to those that `after` names.
    AfterNs(u64),
    /// So long after the first request of its session.
    BesideNs(u64),
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl Line {
    fn new(request: &PlannedRequest, joins: &[RequestId], content: Content) -> Self {
        let release = match request.release {
            Release::At(moment) => When::AtNs(moment.as_nanos()),
            Release::WhenSlotFree => When::SlotFree,
            Release::After { think, .. } => When::AfterNs(nanos(think)),
            Release::Beside { delay } => When::BesideNs(nanos(delay)),
        };
        let session = request.session;
        let is_chained = joins.is_empty() && session.context == request.turn.checked_sub(1);
        let asked = request.asked().session.after;
        let first = request.conversation().0;
        let joined = joins.iter().filter_map(|id| u16::try_from(id.0 - first).ok());
        let after =
            (0 < request.turn && !is_chained).then(|| asked.into_iter().chain(joined).collect());
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
            context: session.context.filter(|_| after.is_some()),
            after,
            shared_tokens: session.shared_tokens,
            prompt,
            messages,
            images: content.images,
            body: content.fields,
            model: content.model,
            expected: content.expected,
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
                previous: match self.after.iter().flatten().max() {
                    Some(turn) => RequestId(self.first() + u64::from(*turn)),
                    None => RequestId(self.id.saturating_sub(1)),
                },
                think: Duration::from_nanos(ns),
            },
            When::BesideNs(ns) => Release::Beside { delay: Duration::from_nanos(ns) },
        };
        let context = match (&self.after, self.release) {
            (None, When::AfterNs(_)) => self.turn.checked_sub(1),
            _ => self.context,
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
            session: SessionPlace {
                context,
                shared_tokens: self.shared_tokens,
                ..SessionPlace::default()
            },
        }
    }

    /// The first request of its session.
    fn first(&self) -> u64 {
        self.id.saturating_sub(self.turn.into())
    }

    /// Whom it waits for besides the last of them.
    fn joins(&self) -> Vec<RequestId> {
        let mut turns = self.after.clone().unwrap_or_default();
        turns.sort_unstable();
        turns.dedup();
        turns.pop();
        turns.into_iter().map(|turn| RequestId(self.first() + u64::from(turn))).collect()
    }

    fn content(self) -> Content {
        let prompt = match self.messages {
            Some(messages) => Prompt::Messages(messages),
            None => Prompt::Text(self.prompt.unwrap_or_default()),
        };
        let (images, fields, model) = (self.images, self.body, self.model);
        Content { images, fields, model, expected: self.expected, ..Content::new(prompt) }
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
    /// Turns of this session that continue, and nobody has gone on from them yet.
    open: BTreeSet<u16>,
    /// Turns of this session that continue.
    continued: BTreeSet<u16>,
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
            | Source::Sessions(_)
            | Source::Agents(_)
            | Source::Conversations(_) => Some(1),
        };
        let is_open_loop = matches!(header.load.shape, LoadShape::Open { .. });
        Self {
            is_open_loop,
            parts,
            before: None,
            latest: Moment::ZERO,
            open: BTreeSet::new(),
            continued: BTreeSet::new(),
        }
    }

    /// `is_graph` says whether it names the turns that it waits for.
    fn take(&mut self, request: &PlannedRequest, is_graph: bool) -> Result<(), String> {
        let expected = self.before.map_or(0, |before| before.id.0 + 1);
        if request.id.0 != expected {
            return Err(format!("it is request {}, and request {expected} is due", request.id));
        }
        self.check_turn(request, is_graph)?;
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

    fn check_turn(&mut self, request: &PlannedRequest, is_graph: bool) -> Result<(), String> {
        let session = request.session;
        let follows = matches!(request.release, Release::After { .. } | Release::Beside { .. });
        let is_turn = !is_graph && matches!(request.release, Release::After { .. });
        if is_turn && self.before.is_none_or(|before| !before.continues) {
            let mistake = "it follows an answer, but the request before it does not continue";
            return Err(mistake.to_owned());
        }
        if follows {
            let due = self.before.map_or(0, |before| u32::from(before.turn) + 1);
            if u32::from(request.turn) != due {
                return Err(format!("it is turn {}, and turn {due} is due", request.turn));
            }
            let after = request.asked().session.after;
            if after.is_some_and(|after| request.turn <= after) || request.turn == 0 {
                return Err("it waits for itself or for a later request (`after`)".to_owned());
            }
        }
        if !follows {
            if !self.open.is_empty() {
                return Err("the request before it continues, so it must follow that answer \
                            (`after_ns`)"
                    .to_owned());
            }
            if request.turn != 0 {
                return Err(format!("it is turn {}, and turn 0 is due", request.turn));
            }
            self.continued.clear();
        }
        if let Some(context) = session.context {
            if !self.continued.contains(&context) {
                return Err(format!("it goes on from turn {context}, which does not continue"));
            }
            self.open.remove(&context);
        }
        if request.continues {
            self.continued.insert(request.turn);
            self.open.insert(request.turn);
        }
        Ok(())
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
            Release::WhenSlotFree | Release::After { .. } | Release::Beside { .. } => {
                return Ok(());
            }
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
        let line = Line::new(&request, &plan.joins(&request), plan.content(&request));
        let checked = sequence.take(&request, line.after.is_some());
        checked.map_err(|reason| SavedPlanError::Unplayable { id: request.id, reason })?;
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
