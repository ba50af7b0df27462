//! The end of what a command said, for the error that it ended with.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const BYTES_SHOWN: u64 = 16 << 10;

/// At most so many lines of a log, of what was written from this byte on.
pub fn last_lines(log: &Path, from: u64, count: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(log)?;
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(BYTES_SHOWN))))?;
    let mut bytes = Vec::new();
    file.take(BYTES_SHOWN).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    Ok(lines[lines.len().saturating_sub(count)..].to_vec())
}
