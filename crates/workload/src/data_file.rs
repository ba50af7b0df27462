//! Files of data from outside: hashed on the way in, bounded, and every error names the place.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use csv::{Position as RowPosition, Reader, StringRecord};
use inferometer_model::file;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// Why a file of data cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataFileError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "{path} is not UTF-8 text: byte {offset} (from 0) begins no character; \
         convert it to UTF-8, or unpack it if it is compressed"
    )]
    NotUtf8 { path: PathBuf, offset: u64 },
    #[error("{path} is larger than {bound} bytes; use a part of it")]
    TooLarge { path: PathBuf, bound: u64 },
    #[error("{path}, line {line}: it is longer than {bound} bytes; is it a file of lines?")]
    LongLine { path: PathBuf, line: u64, bound: u64 },
    #[error("{path} has more than {bound} {what}; use a part of it")]
    TooMany { path: PathBuf, bound: u64, what: &'static str },
    #[error("{path}, {place}: {reason}")]
    Wrong { path: PathBuf, place: Position, reason: String },
    #[error(
        "{path} has no column `{column}`; its columns are {found} (--dataset-column prompt=COLUMN \
         says which is the prompt of a dataset)"
    )]
    NoColumn { path: PathBuf, column: &'static str, found: String },
    #[error("{path} is empty")]
    Empty { path: PathBuf },
    #[error("{path} has no usable record; left out: {reasons}")]
    NothingLeft { path: PathBuf, reasons: String },
}

impl DataFileError {
    /// Every record of the file was left out, for these reasons.
    pub(crate) fn nothing_left(path: &Path, dropped: &BTreeMap<String, u64>) -> Self {
        let path = path.to_path_buf();
        if dropped.is_empty() {
            return Self::Empty { path };
        }
        let reasons = dropped.iter().map(|(reason, count)| format!("{count} × {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        Self::NothingLeft { path, reasons }
    }
}

/// Where in a file, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Line(u64),
    /// For an array that may be on a single line.
    Item(u64),
    Row(u64),
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Item(number) => write!(f, "item {number}"),
            Self::Row(number) => write!(f, "row {number}"),
        }
    }
}

/// A text file that is read once, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct DataFile {
    pub(crate) path: PathBuf,
    /// How it begins.
    pub(crate) head: Vec<u8>,
    bytes: Chain<Cursor<Vec<u8>>, File>,
    bound: u64,
    hash: Sha256,
    /// Bytes that have passed, and the beginning of a character whose end has not been read.
    passed: u64,
    begun: Vec<u8>,
    ended: bool,
    /// Whether it must be UTF-8.
    pub(crate) is_text: bool,
    /// A line that never ends is given up: it would be held in memory whole.
    has_lines: bool,
    /// The line that is being read, from one, and how much of it has passed.
    line: (u64, u64),
    /// An odd number of them leaves a field open.
    quotes: u64,
}

/// More than the longest first line by which a kind is detected.
const HEAD_BYTES: u64 = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl DataFile {
    /// Bytes that may be read of it.
    pub(crate) const fn bound(&self) -> u64 {
        self.bound
    }

    /// Its first bytes are looked at beforehand, so that a pipe is read once as well.
    pub(crate) fn open(path: &Path, bound: u64) -> Result<Self, DataFileError> {
        let unreadable = |source| DataFileError::Unreadable { path: path.to_path_buf(), source };
        let mut file = file::open(path).map_err(unreadable)?;
        let mut head = Vec::new();
        Read::by_ref(&mut file).take(HEAD_BYTES).read_to_end(&mut head).map_err(unreadable)?;
        let mut hash = Sha256::new();
        let mut passed = 0;
        if head.starts_with(BYTE_ORDER_MARK) {
            // Part of the file, but of no field or word in it.
            hash.update(BYTE_ORDER_MARK);
            passed = BYTE_ORDER_MARK.len() as u64;
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let bytes = Cursor::new(head.clone()).chain(file);
        Ok(Self {
            path: path.to_path_buf(),
            head,
            bytes,
            bound,
            hash,
            passed,
            begun: Vec::new(),
            ended: false,
            is_text: true,
            has_lines: false,
            line: (1, 0),
            quotes: 0,
        })
    }

    pub(crate) fn lines(&mut self) -> Lines<'_> {
        self.has_lines = true;
        Lines { bytes: BufReader::new(self), number: 0, line: Vec::new() }
    }

    /// Reads what no one wanted, so that the hash is that of the whole file.
    pub(crate) fn finish(mut self) -> Result<String, DataFileError> {
        let read = io::copy(&mut self, &mut io::sink());
        read.map_err(|error| self.failed(error))?;
        Ok(hex(&self.hash.finalize()))
    }

    /// What a parser met while it read this file.
    pub(crate) fn failed(&self, error: io::Error) -> DataFileError {
        let unreadable = |source| DataFileError::Unreadable { path: self.path.clone(), source };
        error.downcast().unwrap_or_else(unreadable)
    }

    pub(crate) fn wrong(&self, place: Position, reason: impl Into<String>) -> DataFileError {
        DataFileError::Wrong { path: self.path.clone(), place, reason: reason.into() }
    }
}

impl Read for DataFile {
    /// What is wrong with the file travels through a parser inside of an I/O error.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        let new = &buffer[..count];
        self.ended = count == 0 && !buffer.is_empty();
        self.check(new).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.quotes += new.iter().map(|byte| u64::from(*byte == b'"')).sum::<u64>();
        self.hash.update(new);
        Ok(count)
    }
}

impl DataFile {
    fn check(&mut self, new: &[u8]) -> Result<(), DataFileError> {
        let path = || self.path.clone();
        if !self.is_text {
            self.passed += new.len() as u64;
        } else if !is_utf8(&mut self.begun, &mut self.passed, new)
            || self.ended && !self.begun.is_empty()
        {
            return Err(DataFileError::NotUtf8 { path: path(), offset: self.passed });
        }
        if self.bound < self.passed {
            return Err(DataFileError::TooLarge { path: path(), bound: self.bound });
        }
        let pieces = new.split(|byte| *byte == b'\n').enumerate();
        for (place, piece) in pieces.filter(|_| self.has_lines) {
            if 0 < place {
                self.line = (self.line.0 + 1, 0);
            }
            self.line.1 += piece.len() as u64;
            if LINE_BYTES_MAX < self.line.1 {
                let (line, bound) = (self.line.0, LINE_BYTES_MAX);
                return Err(DataFileError::LongLine { path: path(), line, bound });
            }
        }
        Ok(())
    }
}

const LINE_BYTES_MAX: u64 = 64 << 20;

/// Finds the first byte that is not UTF-8, wherever the reads were cut: `passed` is its place then.
fn is_utf8(begun: &mut Vec<u8>, passed: &mut u64, mut bytes: &[u8]) -> bool {
    while !begun.is_empty() {
        let Some((first, rest)) = bytes.split_first() else { return true };
        begun.push(*first);
        bytes = rest;
        match std::str::from_utf8(begun) {
            Ok(_) => {
                *passed += begun.len() as u64;
                begun.clear();
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => return false,
        }
    }
    let error = std::str::from_utf8(bytes).err();
    let valid = error.map_or(bytes.len(), |error| error.valid_up_to());
    *passed += valid as u64;
    begun.extend_from_slice(&bytes[valid..]);
    error.is_none_or(|error| error.error_len().is_none())
}

/// Lines and their numbers, without their ends.
pub(crate) struct Lines<'f> {
    bytes: BufReader<&'f mut DataFile>,
    number: u64,
    line: Vec<u8>,
}

impl Lines<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<(Position, &str)>, DataFileError> {
        self.line.clear();
        let read = self.bytes.read_until(b'\n', &mut self.line);
        if read.map_err(|error| self.bytes.get_ref().failed(error))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        // The file was checked on its way in, and a line's end is never inside of a character.
        let line = std::str::from_utf8(&self.line).unwrap_or_default();
        Ok(Some((Position::Line(self.number), line.trim_end_matches(['\n', '\r']))))
    }
}

/// Takes every line that is not blank as JSON.
pub(crate) fn each_line<T: DeserializeOwned>(
    file: &mut DataFile,
    mut take: impl FnMut(Position, T) -> Result<(), DataFileError>,
) -> Result<(), DataFileError> {
    let path = file.path.clone();
    let mut lines = file.lines();
    while let Some((place, line)) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |reason| DataFileError::Wrong { path: path.clone(), place, reason };
        let line = serde_json::from_str(line).map_err(|error| wrong(reason_of(&error)))?;
        take(place, line)?;
    }
    Ok(())
}

/// What is wrong with a line of JSON: its number in the file is reported elsewhere.
pub(crate) fn reason_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} at column {}", error.column())
}

/// A file's name without its folder: results travel, and folders tell too much.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

pub(crate) struct Table<'f> {
    rows: Reader<&'f mut DataFile>,
    header: StringRecord,
    row: StringRecord,
    last: Position,
}

impl DataFile {
    pub(crate) fn table(&mut self) -> Result<Table<'_>, DataFileError> {
        if self.head.is_empty() {
            return Err(DataFileError::Empty { path: self.path.clone() });
        }
        self.has_lines = true;
        let mut rows = Reader::from_reader(self);
        let header = rows.headers().cloned();
        let (row, last) = (StringRecord::new(), Position::Line(1));
        let mut table = Table { rows, header: StringRecord::new(), row, last };
        table.header = header.map_err(|error| table.wrong(error))?;
        Ok(table)
    }
}

impl Table<'_> {
    /// The place of a column, however its name is spelt in capitals.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|found| found.trim().eq_ignore_ascii_case(name))
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.header.iter().map(str::trim)
    }

    pub(crate) fn needed(&self, column: &'static str) -> Result<usize, DataFileError> {
        self.column(column).ok_or_else(|| {
            let names = self.columns().take(20).map(|name| format!("`{name}`"));
            let found = names.collect::<Vec<_>>().join(", ");
            let path = self.rows.get_ref().path.clone();
            DataFileError::NoColumn { path, column, found }
        })
    }

    pub(crate) fn next(&mut self) -> Result<Option<(Position, &StringRecord)>, DataFileError> {
        match self.rows.read_record(&mut self.row) {
            Err(error) => Err(self.wrong(error)),
            Ok(false) if self.is_open() => Err(self.left_open()),
            Ok(false) => Ok(None),
            Ok(true) => {
                self.last = Position::Line(self.row.position().map_or(0, RowPosition::line));
                Ok(Some((self.last, &self.row)))
            }
        }
    }

    /// Whether the file has ended inside of a quoted field, which no row shows.
    fn is_open(&self) -> bool {
        let file = self.rows.get_ref();
        file.ended && file.quotes % 2 == 1
    }

    fn left_open(&self) -> DataFileError {
        let reason = "a quoted field has no end: the file is cut off, or a quote is not doubled";
        self.rows.get_ref().wrong(self.last, reason)
    }

    fn wrong(&self, error: csv::Error) -> DataFileError {
        let line = error.position().map_or(1, RowPosition::line);
        let mut reason = error.to_string();
        if let csv::ErrorKind::UnequalLengths { expected_len, len, .. } = error.kind() {
            if self.is_open() {
                return self.left_open();
            }
            reason = format!("{len} fields where the header has {expected_len}");
        }
        if let csv::ErrorKind::Io(error) = error.into_kind() {
            return self.rows.get_ref().failed(error);
        }
        self.rows.get_ref().wrong(Position::Line(line), reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_character_is_found_wherever_the_reads_were_cut() {
        let text = "aé€🦀z".as_bytes();
        let broken = [text, b"\xf0\x9f", b"z"].concat();
        for cut in 0..=broken.len() {
            let check = |bytes: &[u8], cut: usize| {
                let (mut begun, mut passed) = (Vec::new(), 0);
                let holds = is_utf8(&mut begun, &mut passed, &bytes[..cut])
                    && is_utf8(&mut begun, &mut passed, &bytes[cut..]);
                (holds, begun.len(), passed)
            };
            assert_eq!(check(text, cut.min(text.len())), (true, 0, text.len() as u64));
            let (holds, _, passed) = check(&broken, cut);
            assert_eq!((holds, passed), (false, text.len() as u64), "cut at {cut}");
        }
        let (mut begun, mut passed) = (Vec::new(), 0);
        assert!(is_utf8(&mut begun, &mut passed, b"ab\xe2\x82"));
        assert_eq!((begun.len(), passed), (2, 2));
    }

    #[test]
    fn a_line_that_never_ends_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        let long = "x".repeat(usize::try_from(LINE_BYTES_MAX).unwrap());
        std::fs::write(&path, format!("prompt\n{long}\n{long}x\nlast\n")).unwrap();
        let mut file = DataFile::open(&path, u64::MAX).unwrap();
        let mut lines = file.lines();
        assert_eq!(lines.next().unwrap(), Some((Position::Line(1), "prompt")));
        assert_eq!(lines.next().unwrap().unwrap().1.len(), long.len());
        let error = lines.next().unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("longer than 67108864"), "{error}");
        let mut file = DataFile::open(&path, u64::MAX).unwrap();
        let mut table = file.table().unwrap();
        assert!(table.next().is_ok());
        assert!(matches!(table.next(), Err(DataFileError::LongLine { line: 3, .. })));
    }

    #[test]
    fn the_hash_is_that_of_the_whole_file_whatever_was_read_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        std::fs::write(&path, "\u{feff}abc\nrest").unwrap();
        let mut file = DataFile::open(&path, 100).unwrap();
        assert_eq!(file.lines().next().unwrap(), Some((Position::Line(1), "abc")));
        let expected = hex(&Sha256::digest("\u{feff}abc\nrest"));
        assert_eq!(file.finish().unwrap(), expected);
        let bound = DataFile::open(&path, 5).unwrap().finish().unwrap_err();
        assert!(bound.to_string().contains("larger than 5 bytes"), "{bound}");
    }
}
