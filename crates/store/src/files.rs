//! Files of a store: small ones, written so that a reader sees the old bytes or the new ones, never
//! a part; manifests; and the names of directories.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use inferometer_model::{Redactor, file};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::run;

pub(crate) const SUMMARY_FILE: &str = "summary.json";
/// Manifests have a few kilobytes, and those of sets of many servers some hundred; a longer file is
/// not one.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// A directory of one kind: its id, which is the name of the directory (of a point, its set and its
/// number), its manifest and its summary, with the bytes that a summary has at most.
macro_rules! stored_directory {
    ($(#[$note:meta])* $kind:ident, $manifest:ty, $file:expr, $summary_bytes_max:expr) => {
        $(#[$note])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $kind {
            pub(crate) id: String,
            pub(crate) path: PathBuf,
        }

        impl $kind {
            /// The directory at `path`, inside a store or elsewhere. Nothing is read yet.
            pub fn at(path: PathBuf) -> Self {
                Self { id: $crate::files::directory_id(&path), path }
            }

            pub fn id(&self) -> &str {
                &self.id
            }

            pub fn path(&self) -> &Path {
                &self.path
            }

            pub fn manifest(&self) -> Result<$manifest> {
                $file.read(&self.path)
            }

            /// Stores the summary, whole or not at all.
            pub fn write_summary(&self, json: &[u8]) -> Result<()> {
                let path = self.path.join($crate::files::SUMMARY_FILE);
                $crate::files::write_atomically(&path, json)
            }

            pub fn read_summary(&self) -> Result<Option<Vec<u8>>> {
                let path = self.path.join($crate::files::SUMMARY_FILE);
                $crate::files::read_at_most(&path, $summary_bytes_max)
            }

            pub fn has_summary(&self) -> bool {
                self.path.join($crate::files::SUMMARY_FILE).is_file()
            }
        }
    };
}
pub(crate) use stored_directory;

/// The file that describes a directory of one kind.
pub(crate) struct ManifestFile {
    pub(crate) name: &'static str,
    /// The version of its format.
    pub(crate) format: u32,
    /// What follows where it is missing, and what to do.
    pub(crate) missing: &'static str,
    /// What to do where it is damaged.
    pub(crate) remedy: &'static str,
}

impl ManifestFile {
    /// The version is read first: a newer file may lack what this program looks for.
    pub(crate) fn read<T: DeserializeOwned>(&self, folder: &Path) -> Result<T> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let Self { format: known, missing: consequence, remedy, .. } = *self;
        let path = folder.join(self.name);
        let Some(json) = read_at_most(&path, MANIFEST_BYTES_MAX)? else {
            return Err(StoreError::Missing { path, consequence });
        };
        let content = match serde_json::from_slice(&json) {
            Ok(Versioned { format: found }) if known < found => {
                return Err(StoreError::NewerFormat { path, found, known });
            }
            Ok(_) => serde_json::from_slice(&json),
            Err(error) => Err(error),
        };
        content.map_err(|error| StoreError::Damaged { path, error, remedy })
    }

    pub(crate) fn write(&self, folder: &Path, value: &impl Serialize) -> Result<()> {
        write_json(&folder.join(self.name), value)
    }
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(value)
        .map_err(|error| StoreError::ManifestDraft { path: path.to_owned(), error })?;
    json.push(b'\n');
    write_atomically(path, &json)
}

/// The name of a directory; of a point, its set and its number.
pub(crate) fn directory_id(path: &Path) -> String {
    // `.` and `runs/x/..` have no name; the real path has.
    let real = || fs::canonicalize(path).ok()?.file_name().map(OsStr::to_owned);
    let name = path.file_name().map(OsStr::to_owned).or_else(real).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let set = run::set_of_point(path).map(|set| format!("{}/", directory_id(set)));
    set.unwrap_or_default() + &name
}

pub(crate) fn timestamp(nanos: u64) -> Result<Timestamp> {
    Timestamp::from_nanosecond(nanos.into()).map_err(|_error| StoreError::Date { nanos })
}

pub(crate) fn distinction(asked: &[u8], process: u32, realtime_ns: u64) -> u16 {
    let and_process = crc32c::crc32c_append(crc32c::crc32c(asked), &process.to_le_bytes());
    let hash = crc32c::crc32c_append(and_process, &realtime_ns.to_le_bytes());
    let [a, b, c, d] = hash.to_le_bytes();
    u16::from_le_bytes([a ^ c, b ^ d])
}

/// Whether a name has the form of a run's id.
pub(crate) fn is_run_id(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let [date, time, distinction] = parts.as_slice() else { return false };
    let is_number = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_number(date, 8)
        && is_number(time, 6)
        && distinction.len() == 4
        && distinction.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The second that a run's id names; `None` of any other name.
pub(crate) fn stamped_ns(id: &str) -> Option<u64> {
    let (stamp, _) = is_run_id(id).then(|| id.rsplit_once('-'))??;
    let moment = DateTime::strptime("%Y%m%d-%H%M%S", stamp).ok()?.to_zoned(TimeZone::UTC).ok()?;
    u64::try_from(moment.timestamp().as_nanosecond()).ok()
}

pub(crate) fn stamp(started: Timestamp) -> String {
    started.strftime("%Y%m%d-%H%M%S").to_string()
}

/// A file that is being written. A regular file gets its name when it is complete, and replaces an
/// earlier one as a whole; before that, dropping it leaves nothing behind.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// Its name until it is complete; a device or a FIFO is written to under its own.
    draft: Option<PathBuf>,
}

impl OutputFile {
    /// Begins the file that a user named. Symbolic links are followed; a device, a FIFO or a socket
    /// is never replaced.
    pub fn create(named: &Path) -> Result<Self> {
        let is_special = fs::metadata(named).is_ok_and(|found| !found.is_file());
        let path = if is_special { Ok(named.to_owned()) } else { behind_links(named) };
        let create = |path: PathBuf| {
            if is_special {
                let file = open_special(&path)?;
                return Ok(Self { file, path, draft: None });
            }
            let draft = Self::create_draft(path)?;
            // The new file is no more open to others than the one that it replaces.
            if let Ok(found) = fs::metadata(&draft.path) {
                draft.file.set_permissions(found.permissions())?;
            }
            Ok(draft)
        };
        path.and_then(create).map_err(|error| StoreError::Write { path: named.to_owned(), error })
    }

    fn create_draft(path: PathBuf) -> io::Result<Self> {
        let draft = draft_path(&path);
        Ok(Self { file: File::create(&draft)?, path, draft: Some(draft) })
    }

    /// Gives the file its name, and returns when it would survive a power cut.
    pub fn commit(mut self) -> Result<()> {
        let Some(draft) = &self.draft else { return Ok(()) };
        let placed = self.file.sync_all().and_then(|()| fs::rename(draft, &self.path));
        if placed.is_ok() {
            self.draft = None;
        }
        placed
            .and_then(|()| sync_parent(&self.path))
            .map_err(|error| StoreError::Write { path: self.path.clone(), error })
    }

    fn write_whole(mut self, bytes: &[u8]) -> Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => self.commit(),
            Err(error) => Err(StoreError::Write { path: self.path.clone(), error }),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            // The draft is of no use; the error that matters is the one before.
            let _ = fs::remove_file(draft);
        }
    }
}

/// Opens a device or a FIFO. A FIFO without a reader is refused: it would wait for one without end.
fn open_special(path: &Path) -> io::Result<File> {
    let nonblocking = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let is_pipe = fs::metadata(path)?.file_type().is_fifo();
    // Held until the file is open, or the reader would find the end of the FIFO.
    let probe = is_pipe.then(|| File::options().write(true).custom_flags(nonblocking).open(path));
    if probe.as_ref().is_some_and(Result::is_err) {
        return Err(io::Error::other("it is a pipe that nothing reads; use - to print"));
    }
    File::options().write(true).open(path)
}

/// The path that symbolic links at `path` lead to, whether or not there is a file.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
    const LINKS_MAX: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or_else(|| Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Writes the file that a user named, as [`OutputFile`] does.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<()> {
    OutputFile::create(path)?.write_whole(bytes)
}

/// Replaces a file of a stored folder, and returns when the new bytes would survive a power cut. A
/// symbolic link there is replaced and not followed: the folder may come from elsewhere.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    OutputFile::create_draft(path.to_owned())
        .map_err(|error| StoreError::Write { path: path.to_owned(), error })?
        .write_whole(bytes)
}

/// The file's bytes, or `None` when there is no such file.
pub fn read_at_most(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    match file::read(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            Err(StoreError::TooLong { path: path.to_owned(), limit })
        }
        Err(error) => Err(StoreError::Read { path: path.to_owned(), error }),
    }
}

/// Whether a file holds a secret. It is read in pieces that overlap: a journal can be long.
pub(crate) fn holds_secret(path: &Path, secrets: &Redactor) -> Result<bool> {
    const PIECE: usize = 1 << 20;
    let overlap = secrets.longest().saturating_sub(1);
    let search = || -> io::Result<bool> {
        let mut file = File::open(path)?;
        let mut held = Vec::with_capacity(PIECE + overlap);
        loop {
            held.drain(..held.len().saturating_sub(overlap));
            let piece = (&mut file).take(PIECE as u64).read_to_end(&mut held)?;
            if piece == 0 || secrets.finds_secret(&held) {
                return Ok(piece != 0);
            }
        }
    };
    search().map_err(|error| StoreError::Read { path: path.to_owned(), error })
}

/// Whether `path` still names the file that is open. What cannot be known counts as yes.
pub(crate) fn is_named(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        (Ok(_), Err(error)) => {
            !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        }
        (Err(_), _) => true,
    }
}

/// Gives the content of an open file, whose name has gone, the name `path` again. The new file is
/// locked, and at its end.
pub(crate) fn restore_name(open: &File, path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let draft = draft_path(path);
    let mut file = create_new(&draft)?;
    file.try_lock().map_err(io::Error::from)?;
    copy_from_start(open, &mut file)
        .and_then(|()| file.sync_all())
        .inspect_err(|_error| drop(fs::remove_file(&draft)))?;
    fs::rename(&draft, path)?;
    sync_parent(path)?;
    sync_parent(folder)?;
    Ok(file)
}

/// Copies all of a file. Its cursor stays: where a copy fails, the next record is still written behind the last.
fn copy_from_start(from: &File, to: &mut File) -> io::Result<()> {
    let mut piece = vec![0; 1 << 16];
    let mut at = 0;
    loop {
        match from.read_at(&mut piece, at)? {
            0 => return Ok(()),
            read => {
                to.write_all(&piece[..read])?;
                at += read as u64;
            }
        }
    }
}

/// A new file that can be read as well: if its name is lost, its content is not.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).open(path)
}

/// A name next to `path` that no other thread or process uses.
pub(crate) fn draft_path(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let ordinal = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{ordinal}.draft", std::process::id()))
}

/// Makes a name in `path`'s directory durable: a synced file without a name is lost all the same.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Removes the file at `path`, where there is one.
pub(crate) fn remove(path: PathBuf) -> Result<()> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::Write { path, error }),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What lies in a folder. One that is not there has nothing in it.
pub(crate) fn paths_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let read_error = |error| StoreError::Read { path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read_error(error)),
    };
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(read_error)).collect()
}

/// Whether a live process holds the file at `path`.
pub(crate) fn is_locked(path: PathBuf) -> Result<bool> {
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::Read { path, error }),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(StoreError::Lock { path, error }),
    }
}

/// Opens the file at `path`, or makes it, and takes it for this process. Fails with `Busy` while
/// another has it.
pub(crate) fn open_locked(path: PathBuf, run: &Path) -> Result<File> {
    match File::options().read(true).write(true).create(true).truncate(false).open(&path) {
        Ok(file) => lock(&file, &path, run).map(|()| file),
        Err(error) => Err(StoreError::Write { path, error }),
    }
}

/// Takes a file of a run for writing, for as long as it is open.
pub(crate) fn lock(file: &File, path: &Path, run: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy { run: run.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::Lock { path: path.to_owned(), error }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    /// R7: a copy that failed left the journal's cursor in its middle, where the next record was written.
    #[test]
    fn what_is_written_after_a_copy_that_failed_is_behind_all_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut open = create_new(&path).unwrap();
        let written = vec![b'a'; 3 << 16];
        open.write_all(&written).unwrap();
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(copy_from_start(&open, &mut full).unwrap_err().kind(), ErrorKind::StorageFull);
        open.write_all(b"next").unwrap();
        let mut found = Vec::new();
        open.rewind().unwrap();
        open.read_to_end(&mut found).unwrap();
        assert_eq!(found, [&written[..], b"next"].concat());

        // A name that cannot be restored at once can be later, with all of it.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("in-the-way"), b"").unwrap();
        assert!(restore_name(&open, &path).is_err());
        fs::remove_dir_all(&path).unwrap();
        open.write_all(b" and last").unwrap();
        restore_name(&open, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [&written[..], b"next and last"].concat());
    }
}
