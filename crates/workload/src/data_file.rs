//! Files of data from outside: hashed on the way in, bounded, and every error names the place.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use csv::{Position as RowPosition, Reader, StringRecord};
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
    #[error("{path} has no column `{column}`; its columns are {found}")]
    NoColumn { path: PathBuf, column: &'static str, found: String },
    #[error("{path} is empty")]
    Empty { path: PathBuf },
    #[error("{path} has nothing that can be used; left out were: {reasons}")]
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
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Item(number) => write!(f, "item {number}"),
        }
    }
}

/// A text file that is read once, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct DataFile {
    path: PathBuf,
    head: Vec<u8>,
    bytes: Chain<Cursor<Vec<u8>>, File>,
    bound: u64,
    hash: Sha256,
    check: Utf8Check,
}

/// More than the longest first line by which a kind is detected.
const HEAD_BYTES: u64 = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl DataFile {
    /// Its first bytes are looked at beforehand, so that a pipe is read once as well.
    pub(crate) fn open(path: &Path, bound: u64) -> Result<Self, DataFileError> {
        let unreadable = |source| DataFileError::Unreadable { path: path.to_path_buf(), source };
        let mut file = File::open(path).map_err(unreadable)?;
        let mut head = Vec::new();
        Read::by_ref(&mut file).take(HEAD_BYTES).read_to_end(&mut head).map_err(unreadable)?;
        let mut hash = Sha256::new();
        let mut check = Utf8Check::default();
        if head.starts_with(BYTE_ORDER_MARK) {
            // Part of the file, but of no field or word in it.
            hash.update(BYTE_ORDER_MARK);
            check.passed = BYTE_ORDER_MARK.len() as u64;
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let bytes = Cursor::new(head.clone()).chain(file);
        Ok(Self { path: path.to_path_buf(), head, bytes, bound, hash, check })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name without its folder.
    pub(crate) fn name(&self) -> String {
        name_of(&self.path)
    }

    /// How it begins.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    pub(crate) fn lines(&mut self) -> Lines<'_> {
        let path = self.path.clone();
        Lines { path, number: 0, bytes: BufReader::new(LineBound::new(self)), line: Vec::new() }
    }

    /// Reads what no one wanted, so that the hash is that of the whole file.
    pub(crate) fn finish(mut self) -> Result<String, DataFileError> {
        let path = self.path.clone();
        io::copy(&mut self, &mut io::sink()).map_err(|error| at_reading(&path, error))?;
        Ok(hex(&self.hash.finalize()))
    }

    /// What a parser met while it read this file.
    pub(crate) fn failed(&self, error: io::Error) -> DataFileError {
        at_reading(&self.path, error)
    }

    pub(crate) fn wrong(&self, place: Position, reason: impl Into<String>) -> DataFileError {
        DataFileError::Wrong { path: self.path.clone(), place, reason: reason.into() }
    }
}

impl Read for DataFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        let new = &buffer[..count];
        if count == 0 && !buffer.is_empty() {
            self.check.end().map_err(spoiled)?;
        }
        self.check.push(new).map_err(spoiled)?;
        if self.bound < self.check.passed {
            return Err(spoiled(Spoiled::TooLarge(self.bound)));
        }
        self.hash.update(new);
        Ok(count)
    }
}

/// Lines and their numbers, without their ends.
pub(crate) struct Lines<'f> {
    path: PathBuf,
    bytes: BufReader<LineBound<&'f mut DataFile>>,
    number: u64,
    line: Vec<u8>,
}

impl Lines<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<(Position, &str)>, DataFileError> {
        self.line.clear();
        let unreadable = |error| at_reading(&self.path, error);
        if self.bytes.read_until(b'\n', &mut self.line).map_err(unreadable)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        // The file was checked on its way in, and a line's end is never inside of a character.
        let line = std::str::from_utf8(&self.line).unwrap_or_default();
        Ok(Some((Position::Line(self.number), line.trim_end_matches(['\n', '\r']))))
    }
}

/// Gives up on a line that never ends: it would be held in memory whole.
#[derive(Debug)]
struct LineBound<R> {
    bytes: R,
    /// The line that is being read, from one, and how much of it has passed.
    number: u64,
    passed: u64,
}

const LINE_BYTES_MAX: u64 = 64 << 20;

impl<R> LineBound<R> {
    fn new(bytes: R) -> Self {
        Self { bytes, number: 1, passed: 0 }
    }
}

impl<R: Read> Read for LineBound<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        for (place, piece) in buffer[..count].split(|byte| *byte == b'\n').enumerate() {
            if 0 < place {
                self.number += 1;
                self.passed = 0;
            }
            self.passed += piece.len() as u64;
            if LINE_BYTES_MAX < self.passed {
                return Err(spoiled(Spoiled::LongLine(self.number)));
            }
        }
        Ok(count)
    }
}

/// Finds the first byte that is not UTF-8, wherever the reads were cut.
#[derive(Debug, Default)]
struct Utf8Check {
    passed: u64,
    /// The beginning of a character whose end has not been read.
    begun: Vec<u8>,
}

impl Utf8Check {
    fn push(&mut self, mut bytes: &[u8]) -> Result<(), Spoiled> {
        while !self.begun.is_empty() {
            let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
            self.begun.push(*first);
            bytes = rest;
            match std::str::from_utf8(&self.begun) {
                Ok(_) => {
                    self.passed += self.begun.len() as u64;
                    self.begun.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Spoiled::NotUtf8(self.passed)),
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => self.passed += bytes.len() as u64,
            Err(error) => {
                self.passed += error.valid_up_to() as u64;
                if error.error_len().is_some() {
                    return Err(Spoiled::NotUtf8(self.passed));
                }
                self.begun.extend_from_slice(&bytes[error.valid_up_to()..]);
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<(), Spoiled> {
        if self.begun.is_empty() { Ok(()) } else { Err(Spoiled::NotUtf8(self.passed)) }
    }
}

/// Travels through a parser inside of an I/O error.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Spoiled {
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(u64),
    #[error("more than {0} bytes")]
    TooLarge(u64),
    #[error("line {0} is too long")]
    LongLine(u64),
}

fn spoiled(reason: Spoiled) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn at_reading(path: &Path, source: io::Error) -> DataFileError {
    let path = path.to_path_buf();
    match source.get_ref().and_then(|inner| inner.downcast_ref::<Spoiled>()) {
        Some(Spoiled::NotUtf8(offset)) => DataFileError::NotUtf8 { path, offset: *offset },
        Some(Spoiled::TooLarge(bound)) => DataFileError::TooLarge { path, bound: *bound },
        Some(Spoiled::LongLine(line)) => {
            DataFileError::LongLine { path, line: *line, bound: LINE_BYTES_MAX }
        }
        None => DataFileError::Unreadable { path, source },
    }
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
    path: PathBuf,
    rows: Reader<Quotes<LineBound<&'f mut DataFile>>>,
    header: StringRecord,
    row: StringRecord,
    last: Position,
}

impl DataFile {
    pub(crate) fn table(&mut self) -> Result<Table<'_>, DataFileError> {
        let path = self.path.clone();
        if self.head.is_empty() {
            return Err(DataFileError::Empty { path });
        }
        let quotes = Quotes { bytes: LineBound::new(self), count: 0, ended: false };
        let mut rows = Reader::from_reader(quotes);
        let header = rows.headers().cloned();
        let (row, last) = (StringRecord::new(), Position::Line(1));
        let mut table = Table { path, rows, header: StringRecord::new(), row, last };
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
            DataFileError::NoColumn { path: self.path.clone(), column, found }
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
        let quotes = self.rows.get_ref();
        quotes.ended && quotes.count % 2 == 1
    }

    fn left_open(&self) -> DataFileError {
        let reason = "a quoted field has no end: the file is cut off, or a quote is not doubled";
        let (path, place) = (self.path.clone(), self.last);
        DataFileError::Wrong { path, place, reason: reason.to_owned() }
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
            return at_reading(&self.path, error);
        }
        DataFileError::Wrong { path: self.path.clone(), place: Position::Line(line), reason }
    }
}

/// Counts quotes: an odd number of them leaves a field open.
struct Quotes<R> {
    bytes: R,
    count: u64,
    ended: bool,
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        self.count += buffer[..count].iter().map(|byte| u64::from(*byte == b'"')).sum::<u64>();
        self.ended = count == 0;
        Ok(count)
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
            let mut whole = Utf8Check::default();
            let end = cut.min(text.len());
            whole.push(&text[..end]).unwrap();
            whole.push(&text[end..]).unwrap();
            whole.end().unwrap();
            let mut check = Utf8Check::default();
            let result = check.push(&broken[..cut]).and_then(|()| check.push(&broken[cut..]));
            assert!(
                matches!(result, Err(Spoiled::NotUtf8(offset)) if offset == text.len() as u64),
                "cut at {cut}: {result:?}"
            );
        }
        let mut cut_off = Utf8Check::default();
        cut_off.push(b"ab\xe2\x82").unwrap();
        assert!(matches!(cut_off.end(), Err(Spoiled::NotUtf8(2))));
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
