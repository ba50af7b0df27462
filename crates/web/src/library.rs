//! The list of what is stored, kept in memory: a folder is read again only when it has changed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use inferometer_store::Stored;

use crate::query::Query;
use crate::{Entry, Reader};

/// How long the list is taken to be new.
const FRESH: Duration = Duration::from_millis(500);
/// Folders beyond this number are not listed.
const ROWS_MAX: usize = 100_000;
/// Lines of one page of the list.
pub(crate) const PAGE_ROWS: usize = 50;

pub(crate) struct Library {
    folder: PathBuf,
    pub(crate) reader: Box<dyn Reader>,
    rows: Mutex<BTreeMap<String, Arc<Row>>>,
    /// When the folder was read last; locked while it is being read.
    read_at: Mutex<Option<Instant>>,
    /// Whether the folder was read once.
    is_complete: AtomicBool,
}

/// One folder of the list.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) entry: Entry,
    stored: Stored,
    /// What a search looks at, in lower case.
    words: String,
    changed: Option<SystemTime>,
}

/// What one page of the list shows.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) rows: Vec<Arc<Row>>,
    pub(crate) stored: usize,
    pub(crate) found: usize,
    pub(crate) page: usize,
    pub(crate) pages: usize,
    /// Whether the folder is still being read for the first time.
    pub(crate) is_partial: bool,
}

/// Columns that the list can be sorted by, each with its title.
pub(crate) const COLUMNS: [(&str, &str); 9] = [
    ("id", "Name"),
    ("kind", "Kind"),
    ("verdict", "Verdict"),
    ("model", "Model"),
    ("server", "Server"),
    ("load", "Load"),
    ("ok", "OK"),
    ("first_token", "TTFT p50 ms"),
    ("output", "tok/s"),
];

impl Library {
    pub(crate) fn new(folder: PathBuf, reader: Box<dyn Reader>) -> Self {
        Self {
            folder,
            reader,
            rows: Mutex::default(),
            read_at: Mutex::default(),
            is_complete: AtomicBool::default(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads what has changed in the folder. While another thread does so, this one does not wait.
    pub(crate) fn refresh(&self) {
        let mut read_at = match self.read_at.try_lock() {
            Ok(read_at) => read_at,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if read_at.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let mut found: Vec<(String, PathBuf, Option<SystemTime>)> = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
            // The type of a symbolic link is its own: links are not followed.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| {
                let changed = entry.metadata().and_then(|found| found.modified()).ok();
                Some((entry.file_name().into_string().ok()?, entry.path(), changed))
            })
            .collect();
        // Names begin with the date: the newest are listed first.
        found.sort_by(|(one, ..), (other, ..)| other.cmp(one));
        found.truncate(ROWS_MAX);
        let known = self.rows().clone();
        for (id, path, changed) in &found {
            let is_same = |row: &Arc<Row>| row.changed == *changed && row.entry.is_settled();
            if known.get(id).is_some_and(is_same) {
                continue;
            }
            let row = self.read_row(path.clone(), *changed).map(Arc::new);
            let mut rows = self.rows();
            match row {
                Some(row) => rows.insert(id.clone(), row),
                None => rows.remove(id),
            };
        }
        let ids: BTreeSet<&String> = found.iter().map(|(id, ..)| id).collect();
        self.rows().retain(|id, _| ids.contains(id));
        *read_at = Some(now());
        self.is_complete.store(true, Relaxed);
    }

    fn read_row(&self, path: PathBuf, changed: Option<SystemTime>) -> Option<Row> {
        if has_links(&path, 0) {
            return None;
        }
        let stored = Stored::at(path)?;
        let entry = self.reader.entry(&stored);
        let Entry { id, kind, name, state, verdict, model, server, load, started, .. } = &entry;
        let simulated = if entry.simulated { "simulated" } else { "" };
        let words: [&str; 10] =
            [id, kind, name, state, verdict, model, server, load, started, simulated];
        let words = words.map(str::to_lowercase).join("\n");
        Some(Row { entry, stored, words, changed })
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Row>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run, set or import with exactly this name, `SET/N` or `IMPORT/N`. A folder that holds
    /// symbolic links is not opened: they could lead anywhere.
    pub(crate) fn find(&self, name: &str) -> Option<(Stored, Entry)> {
        if let Some(row) = self.row(name) {
            let is_safe = !has_links(row.stored.path(), LINK_DEPTH);
            return is_safe.then(|| (row.stored.clone(), row.entry.clone()));
        }
        let (id, number) = name.rsplit_once('/')?;
        let number: u32 = number.parse().ok()?;
        let row = self.row(id).filter(|row| !has_links(row.stored.path(), LINK_DEPTH))?;
        let found = match &row.stored {
            Stored::Set(set) => {
                Stored::Run(set.points().ok()?.contains(&number).then(|| set.point(number))?)
            }
            Stored::Import(import, _) => Stored::Import(import.clone(), Some(number)),
            Stored::Run(_) => return None,
        };
        let entry = self.reader.entry(&found);
        Some((found, entry))
    }

    /// The row of this name. A link may be opened before the folder is listed, and a run may begin between two
    /// readings of it: such a row is read on its own.
    fn row(&self, id: &str) -> Option<Arc<Row>> {
        if let Some(row) = self.rows().get(id).cloned() {
            return Some(row);
        }
        let mut parts = Path::new(id).components();
        let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else {
            return None;
        };
        let path = self.folder.join(name);
        let found = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_dir)?;
        let row = Arc::new(self.read_row(path, found.modified().ok())?);
        (row.entry.id == id).then_some(row)
    }

    /// The rows that a query asks for: words, a kind, a verdict, an order and a page.
    pub(crate) fn list(&self, query: &Query) -> Listing {
        let rows = self.rows().clone();
        let wanted = query.get("q").to_lowercase();
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let is_asked = |key: &str, value: &str| ["", value].contains(&query.get(key));
        let is_wanted = |row: &&Arc<Row>| {
            words.iter().all(|word| row.words.contains(word))
                && is_asked("kind", &row.entry.kind)
                && is_asked("verdict", &row.entry.verdict)
        };
        let mut found: Vec<Arc<Row>> = rows.values().filter(is_wanted).cloned().collect();
        let sort = query.sort();
        let (column, is_down) = match sort.strip_prefix('-') {
            Some(column) => (column, true),
            None if sort.is_empty() => ("id", true),
            None => (sort, false),
        };
        found.sort_by(|one, other| compare(&one.entry, &other.entry, column, is_down));
        let pages = found.len().div_ceil(PAGE_ROWS).max(1);
        let page = query.page().min(pages);
        let shown = found.iter().skip((page - 1) * PAGE_ROWS).take(PAGE_ROWS).cloned().collect();
        let is_partial = !self.is_complete.load(Relaxed);
        Listing { rows: shown, stored: rows.len(), found: found.len(), page, pages, is_partial }
    }

    /// Each kind or verdict that is in the list, once.
    pub(crate) fn choices(&self, get: fn(&Entry) -> &str) -> Vec<String> {
        let rows = self.rows();
        let all: BTreeSet<&str> =
            rows.values().map(|row| get(&row.entry)).filter(|it| !it.is_empty()).collect();
        all.into_iter().map(str::to_owned).collect()
    }
}

/// Rows without a value come last, either way.
fn compare(one: &Entry, other: &Entry, column: &str, is_down: bool) -> Ordering {
    let turned = |order: Ordering| if is_down { order.reverse() } else { order };
    let number = |get: fn(&Entry) -> Option<f64>| match (get(one), get(other)) {
        (Some(one), Some(other)) => turned(one.total_cmp(&other)),
        (one, other) => one.is_none().cmp(&other.is_none()),
    };
    let text = |get: fn(&Entry) -> &str| match (get(one), get(other)) {
        ("", "") => Ordering::Equal,
        ("", _) => Ordering::Greater,
        (_, "") => Ordering::Less,
        (one, other) => turned(one.cmp(other)),
    };
    let order = match column {
        "kind" => text(|entry| &entry.kind),
        "verdict" => text(|entry| &entry.verdict),
        "model" => text(|entry| &entry.model),
        "server" => text(|entry| &entry.server),
        "load" => text(|entry| &entry.load),
        "ok" => number(|entry| entry.ok.map(|ok| ok as f64)),
        "first_token" => number(|entry| entry.ttft_ms),
        "output" => number(|entry| entry.output_per_s),
        _ => text(|entry| &entry.id),
    };
    order.then_with(|| other.id.cmp(&one.id))
}

/// Folders of a set that lie below each other.
const LINK_DEPTH: u32 = 3;

/// Whether there is a symbolic link in a folder, or in those down to a depth below it.
fn has_links(folder: &Path, depth: u32) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    entries.flatten().any(|entry| {
        entry.file_type().is_ok_and(|kind| {
            kind.is_symlink() || (kind.is_dir() && 0 < depth && has_links(&entry.path(), depth - 1))
        })
    })
}

#[expect(clippy::disallowed_methods, reason = "nothing is measured here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
