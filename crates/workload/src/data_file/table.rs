//! Tables as RFC 4180 has them: columns by name, and the line of every row.

use std::io::{self, Read};
use std::path::PathBuf;

use csv::{Position as RowPosition, Reader, StringRecord};

use super::{DataFile, DataFileError, LineBound, Position, at_reading};

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
