//! Whole small files: written so that a reader sees the old bytes or the new ones, never a part.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;

/// Replaces the file at `path`, and returns when the new bytes would survive a power cut.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let draft = draft_path(path);
    let written = write_durably(&draft, bytes)
        .and_then(|()| fs::rename(&draft, path))
        .and_then(|()| sync_parent(path));
    written.map_err(|error| {
        // The draft is of no use; the error that matters is the first one.
        let _ = fs::remove_file(&draft);
        StoreError::Write { path: path.to_owned(), error }
    })
}

/// The file's bytes, or `None` when there is no such file.
pub fn read_at_most(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if limit < bytes.len() as u64 => {
            Err(StoreError::TooLong { path: path.to_owned(), limit })
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::Read { path: path.to_owned(), error }),
    }
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

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes the file at `path`, where there is one.
pub(crate) fn remove(path: PathBuf) -> Result<(), StoreError> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::Write { path, error }),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What lies in a folder. One that is not there has nothing in it.
pub(crate) fn paths_in(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let read_error = |error| StoreError::Read { path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read_error(error)),
    };
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(read_error)).collect()
}

/// Whether a live process holds the file at `path`.
pub(crate) fn is_locked(path: PathBuf) -> Result<bool, StoreError> {
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
pub(crate) fn open_locked(path: PathBuf, run: &Path) -> Result<File, StoreError> {
    match File::options().read(true).write(true).create(true).truncate(false).open(&path) {
        Ok(file) => lock(&file, &path, run).map(|()| file),
        Err(error) => Err(StoreError::Write { path, error }),
    }
}

/// Takes a file of a run for writing, for as long as it is open.
pub(crate) fn lock(file: &File, path: &Path, run: &Path) -> Result<(), StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::Busy { run: run.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::Lock { path: path.to_owned(), error }),
    }
}
