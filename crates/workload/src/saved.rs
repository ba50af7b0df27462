//! A plan in a file: one JSON document to a line, first what it is, then its requests with their
//! words. It can be read, changed and played again.

mod header;
mod line;
mod lines;
mod sequence;
mod write;

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use inferometer_model::plan::Bounds;
use inferometer_model::{Content, Plan, PlannedRequest, RequestId};
use sha2::{Digest, Sha256};

use crate::fingerprint::half;
use crate::prompts::{Place, Prompts, Recipe};
pub use header::{Header, SCHEMA};
use line::{Last, Line};
use lines::{LINE_BYTES_MAX, Lines};
use sequence::Sequence;
pub use write::{print, save};

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
    let file = File::open(path)
        .map_err(|error| SavedPlanError::Unreadable { path: path.to_owned(), error })?;
    header_of(&mut Lines::new(path, BufReader::new(file), LINE_BYTES_MAX))
}

fn header_of<R: std::io::BufRead>(lines: &mut Lines<R>) -> Result<Header, SavedPlanError> {
    lines.advance()?;
    Header::read(&lines.line).map_err(|reason| lines.wrong(reason))
}

/// A saved plan: its recipes in memory, its words in the file.
#[derive(Debug)]
pub struct SavedPlan {
    file: Mutex<File>,
    entries: Vec<Entry>,
    /// Of all lines but the last.
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

/// As many as an open loop may have.
const ENTRIES_MAX: usize = 100_000_000;

impl SavedPlan {
    /// Reads and checks every line; keeps the recipes.
    pub fn open(path: &Path) -> Result<Self, SavedPlanError> {
        let file = File::open(path)
            .map_err(|error| SavedPlanError::Unreadable { path: path.to_owned(), error })?;
        let bytes = BufReader::with_capacity(1 << 20, &file);
        let mut lines = Lines::new(path, bytes, LINE_BYTES_MAX);
        let header = header_of(&mut lines)?;
        let mut hash = Sha256::new_with_prefix(&lines.line);
        let mut sequence = Sequence::of(&header);
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
            return Err(lines.wrong("it stands after the end of the plan".to_owned()));
        }
        drop(lines);
        let requests = entries.len() as u64;
        check_whole(path, &header, &sequence, requests)?;
        let sha256 = half(hash);
        let is_changed = end.requests != requests || end.sha256 != sha256;
        Ok(Self { file: Mutex::new(file), entries, sha256, is_changed, header })
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

/// What only the end of the file can tell.
fn check_whole(
    path: &Path,
    header: &Header,
    sequence: &Sequence,
    requests: u64,
) -> Result<(), SavedPlanError> {
    if requests == 0 {
        return Err(SavedPlanError::Empty { path: path.to_owned() });
    }
    let wrong = |line, reason| SavedPlanError::Line { path: path.to_owned(), line, reason };
    sequence.finish().map_err(|reason| wrong(requests + 1, reason))?;
    if header.bounds.requests != Some(requests) {
        let said = header.bounds.requests.map_or("null".to_owned(), |said| said.to_string());
        let reason = format!("`bounds.requests` is {said}, and {requests} requests follow");
        return Err(wrong(1, reason));
    }
    Ok(())
}

impl Plan for SavedPlan {
    fn bounds(&self) -> Bounds {
        self.header.bounds
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
