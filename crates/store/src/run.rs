//! One run on disk: its directory, the writing of its journal, reading it back, and recovery.
//!
//! Recovery finishes a run that died: what the journal does not report is recorded as lost.
//!
//! - The incomplete tail is cut off.
//! - A request that was started and has no record ends as `cancelled`.
//! - A request that the journal does not mention was not sent, as far as can be known. In a plan
//!   without a number these are only the holes between the requests that it mentions.
//! - The run ends at the last time that the journal mentions, and stays marked as partial.
//!
//! A finished run whose journal has lost frames since is treated alike. Nothing is written before
//! the sums of the result hold, and a recovery that dies can be repeated.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read as _, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use inferometer_model::journal::{ClientFacts, JournalBatch, NotSent, RunStop, StartedRequest};
use inferometer_model::observations::{self, SumError};
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::plan::Bounds;
use inferometer_model::telemetry::{Absence, Machines, Telemetry, TelemetryEntry, gather_sources};
use inferometer_model::{
    Ending, JournalEntry, Manifest, Moment, Observations, Outcome, RequestId, RequestRecord,
    RunEnding,
};
use jiff::Timestamp;

use crate::error::{self, Result, StoreError};
use crate::files::{self, ManifestFile, SUMMARY_FILE, stored_directory};
use crate::journal::{FORMAT_VERSION, Integrity, JournalReader, JournalWriter, Tail};
use crate::records::{JournalRecords, Position};
use crate::set;

pub(crate) const MANIFEST: ManifestFile = ManifestFile {
    name: "manifest.json",
    format: FORMAT_VERSION as u32,
    missing: "this is not a run; name a directory that holds one",
    remedy: "restore the original file, because the journal cannot be read without it",
};
const JOURNAL_FILE: &str = "requests.journal";
const TELEMETRY_FILE: &str = "telemetry.journal";
const ANSWERS_FILE: &str = "answers.jsonl";
/// No line of that file is longer.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

stored_directory!(
    /// A directory that holds a run, finished or not.
    RunDirectory, Manifest, MANIFEST, 256 << 20
);

/// A finished run, read back. Its sums hold.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    pub observations: Observations,
    /// What of the journal could not be read; a run with damage can still be whole.
    pub integrity: Integrity,
    /// Whether there is a summary.
    pub sealed: bool,
}

impl StoredRun {
    /// Fails if the records could not be read to their end: whatever was computed from them is wrong.
    pub fn check_read(&self) -> Result<()> {
        let error = self.observations.records.read_error();
        error.map_or(Ok(()), |error| Err(StoreError::ReadAgain(error.to_owned())))
    }
}

/// The state of a run, a set or an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Finished, with a summary.
    Sealed,
    /// A finished run whose summary is still to be computed.
    Finished,
    /// A run that died before its end and can be recovered, or a set that can be resumed.
    Unfinished,
    /// A live process is writing it.
    Running,
    Unreadable(String),
}

impl RunDirectory {
    /// The command that finishes the run, by itself or with its set.
    pub fn remedy(&self) -> String {
        error::remedy(&self.path)
    }

    /// Reads a finished run and checks its sums. The records of a long run stay in its journal.
    pub fn read(&self) -> Result<StoredRun> {
        self.read_holding(HELD_BYTES_MAX)
    }

    /// The same, with the records in memory if the journal is no longer than this.
    pub fn read_holding(&self, bytes_max: u64) -> Result<StoredRun> {
        let manifest = self.manifest()?;
        let (mut ledger, integrity) = self.read_journal(bytes_max)?;
        let Some(ending) = ledger.ending.take() else {
            return Err(self.unfinished(&ledger));
        };
        let incomplete = |error| StoreError::Incomplete {
            path: self.journal_path(),
            run: self.path.clone(),
            error,
            integrity: Box::new(integrity.clone()),
        };
        ledger.check(&manifest.bounds).map_err(incomplete)?;
        let Ledger { positions, held, not_sent, last_end, .. } = ledger;
        let observations = if let Some(records) = held {
            Observations::new(manifest, records, not_sent, ending)
        } else {
            let file = Arc::new(JournalRecords::open(&self.journal_path(), &positions, last_end)?);
            let ids = positions.iter().map(|position| position.id);
            Observations::with_file(manifest, (file, ids), not_sent, ending)
        };
        let observations = observations.map_err(|error| incomplete(error.into()))?;
        let observations = self.with_telemetry(observations);
        Ok(StoredRun { observations, integrity, sealed: self.has_summary() })
    }

    /// The state of the run. A sealed run's journal is not read for this.
    pub fn state(&self) -> RunState {
        let find = || -> Result<RunState> {
            self.manifest()?;
            if self.has_summary() {
                return Ok(RunState::Sealed);
            }
            if files::is_locked(self.journal_path())? {
                return Ok(RunState::Running);
            }
            let path = self.journal_path();
            let finished = path.exists() && JournalReader::open(&path)?.holds_ending()?;
            Ok(if finished { RunState::Finished } else { RunState::Unfinished })
        };
        find().unwrap_or_else(|error| RunState::Unreadable(error.to_string()))
    }

    /// The requests' entries, also of a run that is still being written: see
    /// [`JournalReader::extend`].
    pub fn open_journal(&self) -> Result<JournalReader<File>> {
        JournalReader::open(&self.journal_path())
    }

    /// The entries of the telemetry, likewise.
    pub fn open_telemetry(&self) -> Result<JournalReader<File, TelemetryEntry>> {
        let path = self.path.join(TELEMETRY_FILE);
        let file =
            File::open(&path).map_err(|error| StoreError::Read { path: path.clone(), error })?;
        JournalReader::of_entries(file, path)
    }

    /// Begins the file of the answers that are kept: a JSON object to a line.
    pub fn create_answers(&self) -> Result<File> {
        let path = self.path.join(ANSWERS_FILE);
        files::create_new(&path).map_err(|error| StoreError::Write { path, error })
    }

    /// The kept answer of a request, as a line of JSON; `None` where none is kept.
    pub fn answer(&self, id: RequestId) -> Option<String> {
        let mut lines = BufReader::new(File::open(self.path.join(ANSWERS_FILE)).ok()?);
        // Keys are in their order.
        let wanted = format!("\"id\":{id},");
        let mut line = String::new();
        loop {
            line.clear();
            let read = lines.by_ref().take(ANSWER_BYTES_MAX).read_line(&mut line).ok()?;
            if read == 0 || line.contains(&wanted) {
                return Some(line).filter(|line| !line.is_empty());
            }
        }
    }

    pub(crate) fn holds_run(path: &Path) -> bool {
        path.join(MANIFEST.name).is_file() || path.join(JOURNAL_FILE).is_file()
    }

    fn journal_path(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }

    /// A run that died before its journal was made has none; that is an empty one.
    fn read_journal(&self, held_bytes_max: u64) -> Result<(Ledger, Integrity)> {
        let mut ledger = Ledger { held: Some(Vec::new()), ..Ledger::default() };
        if !self.journal_path().exists() {
            return Ok((ledger, Integrity::default()));
        }
        let mut reader = JournalReader::open(&self.journal_path())?;
        ledger.held = ledger.held.filter(|_| reader.length() <= held_bytes_max);
        while let Some(entry) = reader.next_entry() {
            let (offset, entry) = entry?;
            ledger.note(entry, offset);
        }
        ledger.sort();
        Ok((ledger, reader.into_integrity()))
    }

    fn unfinished(&self, ledger: &Ledger) -> StoreError {
        let run = self.path.clone();
        match files::is_locked(self.journal_path()) {
            Ok(true) => StoreError::Busy { run },
            // A summary is written last: a run that has one did finish.
            Ok(false) if self.has_summary() => StoreError::JournalLost { run },
            Ok(false) => {
                let (started, ended) = (ledger.started, ledger.positions.len() as u64);
                StoreError::Unfinished { run, started, ended }
            }
            Err(error) => error,
        }
    }
}

/// The folder of the set that a path is a point of.
pub(crate) fn set_of_point(path: &Path) -> Option<&Path> {
    set::number_of(path.file_name()?.to_str()?)?;
    let folder = path.parent().filter(|parent| parent.ends_with(set::POINTS))?.parent()?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    folder.join(set::SET.name).is_file().then_some(folder)
}

/// A run that is being written. It holds the lock of its journal; dropped before the run's ending
/// is appended, it leaves what a crash would leave.
#[derive(Debug)]
pub struct RunWriter {
    directory: RunDirectory,
    manifest: Manifest,
    journal: JournalWriter<File>,
}

impl RunWriter {
    /// Writes the manifest of a run into its empty directory and opens its journal. The format, the
    /// name and the start are set here.
    pub(crate) fn begin(
        directory: RunDirectory,
        new: Manifest,
        started: Timestamp,
    ) -> Result<Self> {
        let (run, started) = (directory.id().to_owned(), started.to_string());
        let manifest = Manifest { format: FORMAT_VERSION.into(), run, started, ..new };
        let journal = MANIFEST.write(directory.path(), &manifest).and_then(|()| {
            // The journal gets its name when it is locked and has its header, so that no reader
            // ever takes a live run for a dead one.
            let path = directory.journal_path();
            let draft = files::draft_path(&path);
            let unwritten = |error| StoreError::Write { path: path.clone(), error };
            let file = files::create_new(&draft).map_err(unwritten)?;
            files::lock(&file, &path, directory.path())?;
            let mut journal = JournalWriter::new(file, path.clone());
            journal.sync()?;
            fs::rename(&draft, &path)
                .and_then(|()| files::sync_parent(&path))
                .map_err(unwritten)?;
            Ok(journal)
        });
        let journal = journal.inspect_err(|_error| {
            // Nothing was measured yet, so the list need not show it.
            let _ = fs::remove_dir_all(directory.path());
        })?;
        files::sync_parent(directory.path())
            .map_err(|error| StoreError::Write { path: directory.path().to_owned(), error })?;
        Ok(Self { directory, manifest, journal })
    }

    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Adds an entry; it reaches the kernel with the next `flush`, or when much is waiting.
    pub fn append(&mut self, entry: &JournalEntry) -> Result<()> {
        self.journal.append(entry)
    }

    pub fn flush(&mut self) -> Result<()> {
        self.journal.flush()
    }

    pub fn sync(&mut self) -> Result<()> {
        self.journal.sync()
    }

    /// Writes the files of the run anew where they were removed or moved. Returns whether they were.
    pub fn restore(&mut self) -> Result<bool> {
        let is_restored = self.journal.restore()?;
        let folder = self.directory.path();
        if folder.join(MANIFEST.name).exists() {
            return Ok(is_restored);
        }
        MANIFEST.write(folder, &self.manifest).map(|()| true)
    }

    /// Ends the writing: everything is on disk, reads back, and its sums hold.
    pub fn seal(mut self) -> Result<StoredRun> {
        if !self.journal.ended {
            return Err(StoreError::NotEnded { run: self.directory.path().to_owned() });
        }
        self.journal.sync()?;
        self.restore()?;
        self.directory.read()
    }
}

/// Appends what comes out of `entries` until the channel closes, then gives the writer back with
/// everything on disk. On an error the thread ends and the channel closes, which the senders notice.
/// Each entry is shown to `seen` first, which may change it. Files of the run that are removed meanwhile are written anew,
/// and `notice` is told so.
pub fn spawn_writer(
    mut writer: RunWriter,
    entries: Receiver<JournalBatch>,
    seen: impl FnMut(&mut JournalEntry) + Send + 'static,
    notice: impl Fn(String) + Send + 'static,
) -> Result<JoinHandle<Result<RunWriter>>> {
    let path = writer.journal.path.clone();
    let thread = |name: &str| Builder::new().name(name.to_owned());
    let spawn = || {
        // A second handle, so that one thread syncs while the other goes on writing.
        let journal = Arc::new(Mutex::new(writer.journal.sink.try_clone()?));
        let watch = Watch { journal: Arc::clone(&journal), is_due: Arc::default() };
        let is_due = Arc::clone(&watch.is_due);
        let (stop, stopped) = mpsc::channel::<()>();
        // A sync that fails is not tried again: the kernel may have dropped the bytes, and would
        // then report a success that means nothing.
        let syncing = thread("journal-sync").spawn(move || {
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                journal.lock().unwrap_or_else(PoisonError::into_inner).sync_data()?;
                is_due.store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        thread("journal").spawn(move || {
            let watch = |writer: &mut RunWriter| watch.check(writer, &notice);
            let written = write_until_closed(&mut writer, &entries, &syncing, seen, watch);
            drop(stop);
            // Joined even after an error: its handle would keep the journal locked.
            let confirmed = syncing.join();
            written?;
            confirmed
                .unwrap_or_else(|_panic| Err(io::Error::other("the syncing panicked")))
                .map_err(|error| StoreError::NotDurable {
                    path: writer.journal.path.clone(),
                    error,
                })?;
            writer.sync()?;
            Ok(writer)
        })
    };
    spawn().map_err(|error| StoreError::Thread { path, error })
}

/// Notices within about a second that the files of a run were removed.
struct Watch {
    /// The journal that is synced.
    journal: Arc<Mutex<File>>,
    /// Set once a second.
    is_due: Arc<AtomicBool>,
}

impl Watch {
    /// A run whose files cannot be written anew goes on: the open file keeps what is measured, and
    /// there may be a way later.
    fn check(&self, writer: &mut RunWriter, notice: &impl Fn(String)) {
        if !self.is_due.swap(false, Ordering::Relaxed) {
            return;
        }
        let run = writer.directory.path().display().to_string();
        match writer.restore() {
            Ok(false) => {}
            Ok(true) => {
                if let Ok(journal) = writer.journal.sink.try_clone() {
                    *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = journal;
                }
                notice(format!(
                    "{run} was removed or moved during the run: its records are written again"
                ));
            }
            Err(error) => notice(format!("{run} was removed or moved during the run: {error}")),
        }
    }
}

fn write_until_closed(
    writer: &mut RunWriter,
    entries: &Receiver<JournalBatch>,
    syncing: &JoinHandle<io::Result<()>>,
    mut seen: impl FnMut(&mut JournalEntry),
    watch: impl Fn(&mut RunWriter),
) -> Result<()> {
    while !syncing.is_finished() {
        watch(writer);
        let batch = match entries.try_recv() {
            Ok(batch) => batch,
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => {
                writer.flush()?;
                // How often an idle writer looks whether the syncing still works.
                match entries.recv_timeout(Duration::from_millis(200)) {
                    Ok(batch) => batch,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Err(RecvTimeoutError::Timeout) => continue,
                }
            }
        };
        for mut entry in batch {
            seen(&mut entry);
            writer.append(&entry)?;
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("request {0} was started and has no ending")]
    NoEnding(RequestId),
    #[error("request {0} is reported as not sent more than once")]
    NotSentTwice(RequestId),
    #[error("the journal has request {id}, but the plan has {requests} requests")]
    BeyondPlan { id: RequestId, requests: u64 },
    #[error(transparent)]
    Sum(#[from] SumError),
}

/// The records of a longer journal are not held in memory, where they take several times as much.
const HELD_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, Default)]
struct Ledger {
    /// How many requests were started, and those of them that have no record so far.
    started: u64,
    open: BTreeMap<RequestId, StartedRequest>,
    /// In the order of their ids, once they are sorted.
    positions: Vec<Position>,
    /// The records themselves, where they are few enough.
    held: Option<Vec<RequestRecord>>,
    /// A record that says `not_sent`.
    not_sent_record: Option<RequestId>,
    not_sent: Vec<NotSent>,
    ending: Option<RunEnding>,
    /// When the last request ended.
    last_end: Moment,
    /// The latest moment that the journal mentions.
    last: Moment,
}

impl Ledger {
    /// A later ending of the run replaces an earlier one: `recover` may have had to add entries
    /// to a finished journal that was damaged.
    fn note(&mut self, entry: JournalEntry, offset: u64) {
        let at = match entry {
            JournalEntry::Started(started) => {
                self.started += 1;
                self.open.entry(started.id).or_insert(started);
                started.admitted
            }
            JournalEntry::Ended(record) => {
                let (id, at) = (record.id, record.ending.at);
                self.open.remove(&id);
                self.positions.push(Position { id, left: record.left(), offset });
                self.last_end = self.last_end.max(at);
                if record.ending.outcome == Outcome::NotSent {
                    self.not_sent_record.get_or_insert(id);
                }
                if let Some(held) = &mut self.held {
                    held.push(*record);
                }
                at
            }
            JournalEntry::NotSent(part) => {
                self.not_sent.push(part);
                part.at
            }
            JournalEntry::RunEnded(ending) => {
                let at = ending.at;
                self.ending = Some(ending);
                at
            }
        };
        self.last = self.last.max(at);
    }

    fn sort(&mut self) {
        self.positions.sort_by_key(|position| position.id);
    }

    /// Whether the journal mentions no request.
    fn is_empty(&self) -> bool {
        self.started == 0 && self.positions.is_empty() && self.not_sent.is_empty()
    }

    /// Requests that were started and have no ending, in the order of their ids. A started request
    /// may turn out not to be sent: this machine may have no port or descriptor left for it.
    fn without_record(&self) -> Vec<StartedRequest> {
        let is_not_sent = |id: RequestId| {
            self.not_sent
                .iter()
                .any(|part| id.0.checked_sub(part.first.0).is_some_and(|index| index < part.count))
        };
        let has_record =
            |id: RequestId| self.positions.binary_search_by_key(&id, |it| it.id).is_ok();
        let open = self.open.values().copied();
        open.filter(|started| !has_record(started.id) && !is_not_sent(started.id)).collect()
    }

    /// Ranges of ids that the plan has and the journal does not mention. A plan without a number
    /// reaches to the last request that the journal mentions, and at least to its least number.
    fn unmentioned(&self, bounds: &Bounds) -> Result<Vec<Range<u64>>, LedgerError> {
        let records = self.positions.iter().map(|position| span(position.id, 1));
        let started = self.open.keys().map(|id| span(*id, 1));
        let not_sent = self.not_sent.iter().map(|part| span(part.first, part.count));
        let mut mentioned: Vec<Range<u64>> =
            records.chain(started).chain(not_sent).collect::<Result<_, _>>()?;
        mentioned.sort_by_key(|span| span.start);
        let mut gaps = Vec::new();
        let mut next = 0;
        for span in mentioned {
            if next < span.start {
                gaps.push(next..span.start);
            }
            next = next.max(span.end);
        }
        if next < bounds.scheduled_min() {
            gaps.push(next..bounds.scheduled_min());
        }
        Ok(gaps)
    }

    /// Checks what `Observations` takes for granted, and that every request that was started has an
    /// ending.
    fn check(&self, bounds: &Bounds) -> Result<(), LedgerError> {
        self.check_ids(bounds)?;
        if let Some(open) = self.without_record().first() {
            return Err(LedgerError::NoEnding(open.id));
        }
        self.not_sent_record.map_or(Ok(()), |id| Err(SumError::NotSentRecord(id).into()))
    }

    /// Checks that ids lie in the plan, and that ranges do not overlap.
    fn check_ids(&self, bounds: &Bounds) -> Result<(), LedgerError> {
        let mut not_sent: Vec<Range<u64>> = self
            .not_sent
            .iter()
            .map(|part| span(part.first, part.count))
            .collect::<Result<_, _>>()?;
        not_sent.retain(|span| !span.is_empty());
        not_sent.sort_by_key(|span| span.start);
        for pair in not_sent.windows(2) {
            if pair[1].start < pair[0].end {
                return Err(LedgerError::NotSentTwice(RequestId(pair[1].start)));
            }
        }
        let records = self.positions.iter().map(|position| span(position.id, 1));
        let requests = bounds.requests.unwrap_or(u64::MAX);
        for span in records.chain(not_sent.into_iter().map(Ok)) {
            let end = span?.end;
            if requests < end {
                return Err(LedgerError::BeyondPlan { id: RequestId(end - 1), requests });
            }
        }
        Ok(())
    }
}

/// The ids from `first` on. Ids are below `u64::MAX`, so that ends of ranges exist.
fn span(first: RequestId, count: u64) -> Result<Range<u64>, LedgerError> {
    match first.0.checked_add(count) {
        Some(end) => Ok(first.0..end),
        None => Err(LedgerError::BeyondPlan { id: first, requests: u64::MAX }),
    }
}

/// What a recovery did.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    pub run: StoredRun,
    /// Bytes of a incomplete frame that were cut off.
    pub cut_bytes: u64,
    /// Requests that were in flight, as far as the journal shows.
    pub cancelled: u64,
    /// Requests that the journal did not mention.
    pub not_sent: u64,
}

impl RunDirectory {
    /// Finishes a run that died. Fails with `Busy` while the run is alive, and with
    /// `AlreadyFinished` when nothing is missing.
    pub fn recover(&self) -> Result<Recovery> {
        let manifest = self.manifest()?;
        let sealed = self.has_summary();
        if !self.journal_path().exists() {
            return Err(StoreError::NothingRecorded { run: self.path().to_owned() });
        }
        let journal = files::open_locked(self.journal_path(), self.path())?;
        let (mut ledger, integrity) = self.read_journal(0)?;
        if sealed && ledger.ending.is_none() {
            return Err(StoreError::JournalLost { run: self.path().to_owned() });
        }
        let at = ledger.last;
        let open = ledger.without_record();
        let gaps = ledger.unmentioned(&manifest.bounds);
        let gaps = gaps.map_err(|error| self.inconsistent(error, &integrity))?;
        let earlier = ledger.ending.clone();
        if earlier.is_none() && ledger.is_empty() && gaps.is_empty() {
            return Err(StoreError::NothingRecorded { run: self.path().to_owned() });
        }
        if earlier.is_some() && open.is_empty() && gaps.is_empty() {
            self.check_sums(&ledger, &manifest, &integrity)?;
            if integrity.tail == Tail::Clean {
                return Err(StoreError::AlreadyFinished { run: self.path().to_owned() });
            }
            // Whole, with bytes behind its end that are no entry: they are cut off.
            let cut_bytes = self.cut_and_append(journal, integrity.tail, &[])?;
            return Ok(Recovery { run: self.read()?, cut_bytes, cancelled: 0, not_sent: 0 });
        }

        let (cancelled, not_sent) =
            (open.len() as u64, gaps.iter().map(|gap| gap.end - gap.start).sum());
        // What the client reported about itself is kept; a run that died reported nothing.
        let drivers = manifest.spec.client.drivers.get();
        let (began, client) = match &earlier {
            Some(earlier) => (earlier.began, earlier.client.clone()),
            None => (None, ClientFacts { drivers, ..ClientFacts::default() }),
        };
        let ending = RunEnding { began, at, stop: RunStop::Recovered, client };
        let mut entries = lost_entries(&open, gaps, at);
        // In an order that a crash may cut anywhere. A journal without an ending gets it last; one
        // that has an ending already gets the new one first, so that it counts as partial from
        // then on.
        let position = if earlier.is_some() { 0 } else { entries.len() };
        entries.insert(position, JournalEntry::RunEnded(ending));
        for entry in &entries {
            // They are checked before they are written, so they have no offset yet.
            ledger.note(entry.clone(), 0);
        }
        ledger.sort();
        self.check_sums(&ledger, &manifest, &integrity)?;

        let cut_bytes = self.cut_and_append(journal, integrity.tail, &entries)?;
        // The summary no longer follows from the journal.
        files::remove(self.path.join(SUMMARY_FILE))?;
        Ok(Recovery { run: self.read()?, cut_bytes, cancelled, not_sent })
    }

    /// Checks that the sums of a ledger hold.
    fn check_sums(
        &self,
        ledger: &Ledger,
        manifest: &Manifest,
        integrity: &Integrity,
    ) -> Result<()> {
        let ids = ledger.positions.iter().map(|position| position.id);
        let sums = || Ok(observations::check_sums(&manifest.bounds, ids, &ledger.not_sent)?);
        let checked = ledger.check(&manifest.bounds).and_then(|()| sums());
        checked.map_err(|error| self.inconsistent(error, integrity))
    }

    fn cut_and_append(
        &self,
        mut journal: File,
        tail: Tail,
        entries: &[JournalEntry],
    ) -> Result<u64> {
        let path = self.journal_path();
        let cut = match tail {
            Tail::Clean => Ok(0),
            Tail::Torn { at, bytes } => journal.set_len(at).map(|()| bytes),
        };
        let placed = cut.and_then(|cut| Ok((cut, journal.seek(SeekFrom::End(0))?)));
        let (cut_bytes, end) = match placed {
            Ok(placed) => placed,
            Err(error) => return Err(StoreError::Write { path, error }),
        };
        let mut writer = if end == 0 {
            JournalWriter::new(journal, path.clone())
        } else {
            JournalWriter::resume(journal, path.clone(), end)
        };
        for entry in entries {
            writer.append(entry)?;
        }
        writer.sync()?;
        files::sync_parent(&path).map_err(|error| StoreError::NotDurable { path, error })?;
        Ok(cut_bytes)
    }

    fn inconsistent(&self, error: LedgerError, integrity: &Integrity) -> StoreError {
        let (path, integrity) = (self.journal_path(), Box::new(integrity.clone()));
        StoreError::Inconsistent { path, error, integrity }
    }
}

/// The entries that a journal lacks. Of a request whose record was lost it is known that it was
/// started, and nothing else.
fn lost_entries(open: &[StartedRequest], gaps: Vec<Range<u64>>, at: Moment) -> Vec<JournalEntry> {
    let (cause, outcome, stage) = (Cause::RunCrashed, Outcome::Cancelled, Stage::Unknown);
    let ending = Ending { outcome, at, stage, cause: Some(cause), message: None };
    let record = |started| Box::new(RequestRecord::without_answer(started, ending.clone()));
    let cancelled = open.iter().map(|started| JournalEntry::Ended(record(started)));
    let not_sent = gaps.into_iter().map(|gap| {
        let (first, count) = (RequestId(gap.start), gap.end - gap.start);
        JournalEntry::NotSent(NotSent { first, count, cause, at })
    });
    cancelled.chain(not_sent).collect()
}

/// Appends to a run's telemetry. An entry a second: each goes to the kernel at once.
#[derive(Debug)]
pub struct TelemetryWriter {
    journal: JournalWriter<File, TelemetryEntry>,
}

impl TelemetryWriter {
    pub fn append(&mut self, entry: &TelemetryEntry) -> Result<()> {
        self.journal.append(entry)?;
        self.journal.restore()?;
        self.journal.flush()
    }

    /// Ends the writing: everything is on disk.
    pub fn finish(mut self) -> Result<()> {
        self.journal.sync()?;
        let path = self.journal.path;
        files::sync_parent(&path).map_err(|error| StoreError::NotDurable { path, error })
    }
}

impl RunDirectory {
    /// Begins the run's telemetry. The journal of its requests is locked, and this file with it.
    pub fn create_telemetry(&self) -> Result<TelemetryWriter> {
        let path = self.path().join(TELEMETRY_FILE);
        match files::create_new(&path) {
            Ok(file) => Ok(TelemetryWriter { journal: JournalWriter::new(file, path) }),
            Err(error) => Err(StoreError::Write { path, error }),
        }
    }

    fn with_telemetry(&self, observations: Observations) -> Observations {
        let absent =
            |absence| (Telemetry::Absent(absence), Machines::default(), BTreeMap::default());
        // Damaged frames and an incomplete tail are gaps like any other.
        let read: Result<Vec<TelemetryEntry>> = self.open_telemetry().and_then(Iterator::collect);
        let (telemetry, machines, more_telemetry) = match read {
            Ok(entries) => gather_sources(entries),
            Err(StoreError::Read { error, .. }) if error.kind() == ErrorKind::NotFound => {
                let asked = observations.manifest.spec.telemetry.is_some();
                let absence = if asked { Absence::NothingRecorded } else { Absence::NotAsked };
                absent(absence)
            }
            Err(_) => absent(Absence::Unreadable),
        };
        let manifest = self.path().join(MANIFEST.name);
        let manifest = files::read_at_most(&manifest, files::MANIFEST_BYTES_MAX).ok().flatten();
        let manifest_checksum = manifest.map(|bytes| crc32c::crc32c(&bytes));
        Observations { manifest_checksum, telemetry, more_telemetry, machines, ..observations }
    }
}
