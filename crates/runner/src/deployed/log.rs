//! Where the words of a server are kept.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Names that are tried for a log before an old one is written over.
const LOGS_MAX: u32 = 10_000;

/// Where a server's words go until there is a run to keep them with. The file is made here: another
/// process that looks for a name in this moment takes another one.
pub fn log_in(folder: &Path) -> PathBuf {
    let first = folder.join(format!("server-{}.log", std::process::id()));
    // Where it cannot be made, the server is not started, with the reason.
    let _ = std::fs::create_dir_all(folder);
    let is_taken = |path: &PathBuf| {
        File::create_new(path).is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    };
    names(&first).find(|path| !is_taken(path)).unwrap_or(first)
}

/// The same path, or the next one that nobody has written to.
pub fn free(log: &Path) -> PathBuf {
    names(log).find(|path| !path.exists()).unwrap_or_else(|| log.to_owned())
}

fn names(log: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let first = log.to_owned();
    let numbered = move |number: u32| first.with_extension(format!("{number}.log"));
    std::iter::once(log.to_owned()).chain((1..LOGS_MAX).map(numbered))
}

/// Puts the words of a server beside its run, and says where they are. It may go on writing.
pub fn keep_log(log: &Path, run: &Path) -> PathBuf {
    let kept = run.join("server.log");
    match std::fs::rename(log, &kept) {
        Ok(()) => kept,
        // They are there already.
        Err(_) if kept.exists() => kept,
        Err(_) => log.to_owned(),
    }
}

/// By which a record names it.
pub fn name_of(log: &Path) -> Option<String> {
    Some(log.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_servers_of_a_store_share_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (log_in(folder.path()), log_in(folder.path()));
        assert_ne!(one, other);
        assert!(one.exists() && other.exists(), "nobody else takes them");
        std::fs::write(&one, "words").unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let kept = keep_log(&one, &run);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "words");
        assert_eq!(keep_log(&one, &run), kept, "it is found where it was put before");
    }
}
