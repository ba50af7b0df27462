//! The records of a run: in memory, or in the file that they were written to. A run of millions of
//! requests is read again and again, one record at a time, and never held as a whole.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::{Moment, RequestId, RequestRecord};

/// All records of a run.
#[derive(Clone, Debug)]
pub enum Records {
    /// In the order of their ids.
    Held(Vec<RequestRecord>),
    Stored(Arc<dyn RecordFile>),
}

/// Records that stay in their file.
pub trait RecordFile: Debug + Send + Sync {
    fn count(&self) -> usize;

    /// Reads the records that have these positions in an order. They were read before; where one cannot
    /// be read again, they end early and `read_error` says why.
    fn read(&self, order: RecordOrder, positions: Range<usize>) -> StoredIter<'_>;

    /// When the first request left and the last one ended; `None` without requests.
    fn span(&self) -> Option<(Moment, Moment)>;

    /// Why the records could not be read to their end, the first time that this happened.
    fn read_error(&self) -> Option<&str>;
}

pub type StoredIter<'a> = Box<dyn Iterator<Item = RequestRecord> + 'a>;
pub type RecordIter<'a> = Box<dyn Iterator<Item = Cow<'a, RequestRecord>> + 'a>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOrder {
    Id,
    /// As [`TimeOrder`].
    Time,
}

impl Records {
    pub fn len(&self) -> usize {
        match self {
            Self::Held(records) => records.len(),
            Self::Stored(file) => file.count(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why something that was computed from the records is wrong: their file could not be read again.
    pub fn read_error(&self) -> Option<&str> {
        match self {
            Self::Held(_) => None,
            Self::Stored(file) => file.read_error(),
        }
    }

    /// In the order of their ids.
    pub fn iter(&self) -> RecordIter<'_> {
        match self {
            Self::Held(records) => Box::new(records.iter().map(Cow::Borrowed)),
            Self::Stored(file) => {
                Box::new(file.read(RecordOrder::Id, 0..file.count()).map(Cow::Owned))
            }
        }
    }

    pub fn in_time_order(&self) -> TimeOrder<'_> {
        match self {
            Self::Held(records) => TimeOrder::sort(records.iter().collect()),
            Self::Stored(file) => TimeOrder::Stored(&**file),
        }
    }

    /// The records in memory, to be changed; those of a file are read as a whole.
    pub fn held_mut(&mut self) -> &mut Vec<RequestRecord> {
        if let Self::Stored(file) = self {
            *self = Self::Held(file.read(RecordOrder::Id, 0..file.count()).collect());
        }
        match self {
            Self::Held(records) => records,
            Self::Stored(_) => unreachable!("they were read above"),
        }
    }

    /// The records in memory; those of a file are read as a whole.
    pub fn into_held(mut self) -> Vec<RequestRecord> {
        std::mem::take(self.held_mut())
    }
}

impl From<Vec<RequestRecord>> for Records {
    fn from(mut records: Vec<RequestRecord>) -> Self {
        records.sort_by_key(|record| record.id);
        Self::Held(records)
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = Cow<'a, RequestRecord>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}

/// Records in the order in which their requests left, or were admitted where they never left: what they
/// measured is judged as a series.
#[derive(Clone, Debug)]
pub enum TimeOrder<'a> {
    Held(Vec<&'a RequestRecord>),
    Stored(&'a dyn RecordFile),
}

impl<'a> TimeOrder<'a> {
    pub fn sort(mut records: Vec<&'a RequestRecord>) -> Self {
        records.sort_unstable_by_key(|record| record.time_key());
        Self::Held(records)
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Held(records) => records.len(),
            Self::Stored(file) => file.count(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> RecordIter<'_> {
        self.range(0..self.len())
    }

    /// From when the first request left, or was admitted and never left, to the last end; `None` without
    /// requests.
    pub fn span(&self) -> Option<(Moment, Moment)> {
        match self {
            Self::Held(records) => {
                let ends = records.iter().map(|record| record.ending.at);
                Some((records.first()?.left(), ends.max()?))
            }
            Self::Stored(file) => file.span(),
        }
    }

    /// Those at these positions.
    ///
    /// # Panics
    ///
    /// When there are fewer records.
    pub fn range(&self, positions: Range<usize>) -> RecordIter<'_> {
        match self {
            Self::Held(records) => {
                Box::new(records[positions].iter().map(|record| Cow::Borrowed(*record)))
            }
            Self::Stored(file) => Box::new(file.read(RecordOrder::Time, positions).map(Cow::Owned)),
        }
    }
}

impl<'a> IntoIterator for &'a TimeOrder<'_> {
    type Item = Cow<'a, RequestRecord>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}

impl RequestRecord {
    /// When the request left, or was admitted if it never left.
    pub fn left(&self) -> Moment {
        self.sent.unwrap_or(self.admitted)
    }

    /// What [`TimeOrder`] sorts by.
    pub fn time_key(&self) -> (Moment, RequestId) {
        (self.left(), self.id)
    }
}
