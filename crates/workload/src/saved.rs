//! A plan in a file: one JSON document to a line, first what it is, then its requests with their
//! words. It can be read, changed and played again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::Materials;
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{Load, SavedSpec, Workload};
use inferometer_model::{
    Content, Message, Moment, Plan, PlannedRequest, Prompt, Release, RequestId, Spec,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::fingerprint::hex;
use crate::prompts::{Place, Prompts, Recipe};

pub const SCHEMA: &str = "inferometer.plan/1";

/// The first line.
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
    /// Of the lines of all requests, half of a SHA-256.
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

#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    #[error("{}: {error}; is it the path of a plan that `inferometer plan --save` wrote?", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{}, line {line}: {reason}", path.display())]
    Line { path: PathBuf, line: u64, reason: String },
    #[error("{}: {error}", path.display())]
    Unwritable { path: PathBuf, error: std::io::Error },
    #[error("a plan without an end cannot be saved; give it a number with --requests")]
    Endless,
    #[error(
        "{}: the file was cut short after {requests} requests (its last line is missing); save the \
         plan again",
        path.display()
    )]
    CutShort { path: PathBuf, requests: usize },
}

/// Writes a plan, request by request: its length does not matter to the memory.
pub fn save(
    path: &Path,
    spec: &Spec,
    materials: &Materials,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<(), SavedPlanError> {
    let Some(requests) = plan.bounds().requests else { return Err(SavedPlanError::Endless) };
    let header = Header {
        schema: SCHEMA.to_owned(),
        api: spec.api,
        workload: spec.workload.clone(),
        load: spec.load.clone(),
        seed: spec.seed,
        bounds: plan.bounds(),
        fingerprints: fingerprints.clone(),
        materials: materials.clone(),
    };
    let unwritable = |error| SavedPlanError::Unwritable { path: path.to_owned(), error };
    // Beside its place first: a plan that is cut short must not look like a plan.
    let draft = path.with_extension("draft");
    let write = || -> std::io::Result<()> {
        let mut file = std::io::BufWriter::with_capacity(1 << 20, File::create(&draft)?);
        file.write_all(&json_line(&header)?)?;
        let (mut hash, mut written) = (Sha256::new(), 0);
        for request in (0..requests).map_while(|id| plan.request(RequestId(id))) {
            let line = json_line(&Line::of(&request, plan.content(&request)))?;
            hash.update(&line);
            file.write_all(&line)?;
            written += 1;
        }
        let end = End { requests: written, sha256: hex(hash) };
        file.write_all(&json_line(&Last { end })?)?;
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&draft);
        unwritable(error)
    })
}

fn json_line(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// The first line alone: a run must know its load before anything else.
pub fn read_header(path: &Path) -> Result<Header, SavedPlanError> {
    let unreadable = |error| SavedPlanError::Unreadable { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let mut line = Vec::new();
    BufReader::new(file).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(unreadable)?;
    header_of(path, &line)
}

fn header_of(path: &Path, line: &[u8]) -> Result<Header, SavedPlanError> {
    let wrong = |reason: String| SavedPlanError::Line { path: path.to_owned(), line: 1, reason };
    let named: Value = serde_json::from_slice(line)
        .map_err(|error| wrong(format!("not the JSON of a saved plan ({error})")))?;
    if named["schema"] != SCHEMA {
        return Err(wrong(format!("its schema is {}, and this reads `{SCHEMA}`", named["schema"])));
    }
    serde_json::from_value(named).map_err(|error| wrong(error.to_string()))
}

const LINE_BYTES_MAX: u64 = 256 << 20;

/// A saved plan: its recipes in memory, its words in the file.
#[derive(Debug)]
pub struct SavedPlan {
    file: Mutex<File>,
    bounds: Bounds,
    entries: Vec<Entry>,
    /// Of the lines of all requests.
    pub(crate) sha256: String,
    /// Whether somebody changed them after they were saved.
    pub(crate) is_changed: bool,
    pub(crate) header: Header,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    request: PlannedRequest,
    offset: u64,
    bytes: u64,
}

impl SavedPlan {
    /// Reads and checks every line; keeps the recipes.
    pub fn open(path: &Path) -> Result<Self, SavedPlanError> {
        let unreadable = |error| SavedPlanError::Unreadable { path: path.to_owned(), error };
        let file = File::open(path).map_err(unreadable)?;
        let mut lines = BufReader::with_capacity(1 << 20, &file);
        let mut line = Vec::new();
        let mut offset = lines.read_until(b'\n', &mut line).map_err(unreadable)? as u64;
        let header = header_of(path, &line)?;
        let (mut entries, mut hash): (Vec<Entry>, _) = (Vec::new(), Sha256::new());
        let end = loop {
            line.clear();
            let bytes = lines.read_until(b'\n', &mut line).map_err(unreadable)? as u64;
            if let Ok(Last { end }) = serde_json::from_slice(&line) {
                break Some(end);
            }
            if bytes == 0 {
                break None;
            }
            hash.update(&line);
            let request = entry_of(&line, entries.len() as u64, entries.last());
            let request = request.map_err(|reason| SavedPlanError::Line {
                path: path.to_owned(),
                line: entries.len() as u64 + 2,
                reason,
            })?;
            entries.push(Entry { request, offset, bytes });
            offset += bytes;
        };
        drop(lines);
        let Some(end) = end else {
            return Err(SavedPlanError::CutShort {
                path: path.to_owned(),
                requests: entries.len(),
            });
        };
        let requests = entries.len() as u64;
        let is_changed = end.requests != requests || end.sha256 != hex(hash.clone());
        let bounds = Bounds { requests: Some(requests), ..header.bounds };
        let file = Mutex::new(file);
        Ok(Self { file, bounds, entries, sha256: hex(hash), is_changed, header })
    }

    /// The line of a request, from the file. Every line was read before, so what fails now was
    /// changed during the run: such a prompt is empty, and the server's answer will tell.
    fn line(&self, entry: &Entry) -> Option<Line> {
        let mut line = vec![0; usize::try_from(entry.bytes).ok()?];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(entry.offset)).ok()?;
        file.read_exact(&mut line).ok()?;
        drop(file);
        serde_json::from_slice(&line).ok()
    }
}

fn entry_of(line: &[u8], expected: u64, before: Option<&Entry>) -> Result<PlannedRequest, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if line.prompt.is_some() == line.messages.is_some() {
        return Err("a request has either `prompt` or `messages`".to_owned());
    }
    let request = line.request();
    if request.id.0 != expected {
        return Err(format!("request {} stands where {expected} belongs", request.id));
    }
    if let Release::After { .. } = request.release
        && !before.is_some_and(|before| before.request.continues)
    {
        return Err("it follows an answer, but the request before it does not continue".to_owned());
    }
    let moment = |request: &PlannedRequest| match request.release {
        Release::At(moment) => Some(moment),
        Release::WhenSlotFree | Release::After { .. } => None,
    };
    if let (Some(at), Some(earlier)) = (moment(&request), before.and_then(|b| moment(&b.request)))
        && at < earlier
    {
        return Err("it leaves before the request above it; moments must not decrease".to_owned());
    }
    Ok(request)
}

impl Plan for SavedPlan {
    fn bounds(&self) -> Bounds {
        self.bounds
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
    fn recipe(&self, place: Place) -> Recipe {
        let number = place.id % (self.entries.len() as u64).max(1);
        let request = self.request(RequestId(number));
        request.map_or_else(Recipe::default, |request| Recipe {
            prompt_seed: request.prompt_seed,
            input_tokens: request.input_tokens,
            output_tokens: request.output_tokens,
            item: request.item,
            part: request.part,
        })
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        Plan::content(self, request)
    }
}

impl Line {
    fn of(request: &PlannedRequest, content: Content) -> Self {
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

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
