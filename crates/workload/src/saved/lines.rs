//! Lines of a file, each with its number and place, none longer than memory can bear.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::SavedPlanError;

pub(super) const LINE_BYTES_MAX: u64 = 256 << 20;

pub(super) struct Lines<R> {
    path: PathBuf,
    bytes: R,
    bound: u64,
    /// From one; zero before the first.
    number: u64,
    /// Where the line begins.
    pub(super) offset: u64,
    /// With its end.
    pub(super) line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(path: &Path, bytes: R, bound: u64) -> Self {
        Self { path: path.to_owned(), bytes, bound, number: 0, offset: 0, line: Vec::new() }
    }

    /// Whether there is another line.
    pub(super) fn advance(&mut self) -> Result<bool, SavedPlanError> {
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
    pub(super) fn wrong(&self, reason: String) -> SavedPlanError {
        SavedPlanError::Line { path: self.path.clone(), line: self.number.max(1), reason }
    }
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
