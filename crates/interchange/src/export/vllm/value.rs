//! A JSON object whose keys keep their order, spaced as Python spaces it: scripts grep its lines.
//! The lists of a long run are written as they are read, without a copy.

use std::borrow::Cow;
use std::io::{self, Write};

use inferometer_analysis::sheet::{SheetRate, SheetRequest};
use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::ser::Formatter;

/// As a dictionary of Python: a key that is set again keeps its place.
#[derive(Default)]
pub(super) struct Object<'a>(Vec<(Cow<'static, str>, Value<'a>)>);

pub(super) enum Value<'a> {
    Text(Option<String>),
    Count(Option<u64>),
    Number(Option<f64>),
    Counts(&'a [SheetRequest], fn(&SheetRequest) -> u64),
    Numbers(&'a [SheetRequest], fn(&SheetRequest) -> f64),
    Lists(&'a [SheetRequest], fn(&SheetRequest) -> &[f64]),
    /// What is missing is the empty text there.
    Texts(&'a [SheetRequest], fn(&SheetRequest) -> Option<&str>),
}

impl<'a> Object<'a> {
    pub(super) fn set(&mut self, key: impl Into<Cow<'static, str>>, value: Value<'a>) {
        let key = key.into();
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    pub(super) fn write(&self, to: impl Write) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::with_formatter(to, Spaced);
        let entries = self.0.iter().map(|(key, value)| (key, value));
        Ok(serializer.collect_map(entries)?)
    }
}

impl Value<'_> {
    pub(super) fn text(text: Option<String>) -> Self {
        Self::Text(text)
    }

    pub(super) fn rate(rate: Option<SheetRate>) -> Self {
        match rate {
            None => Self::Number(None),
            Some(SheetRate::PerSecond(per_s)) => Self::Number(Some(per_s)),
            Some(SheetRate::Unlimited) => Self::or_infinite(f64::INFINITY),
        }
    }

    /// JSON has no infinity.
    pub(super) fn or_infinite(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(Some(value))
        } else {
            Self::Text(Some("inf".to_owned()))
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Count(count) => count.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
            Self::Counts(rows, of) => each(serializer, rows, of),
            Self::Numbers(rows, of) => each(serializer, rows, of),
            Self::Lists(rows, of) => {
                let mut list = serializer.serialize_seq(Some(rows.len()))?;
                for row in *rows {
                    list.serialize_element(of(row))?;
                }
                list.end()
            }
            Self::Texts(rows, of) => {
                let mut list = serializer.serialize_seq(Some(rows.len()))?;
                for row in *rows {
                    list.serialize_element(of(row).unwrap_or_default())?;
                }
                list.end()
            }
        }
    }
}

fn each<S: Serializer, T: Serialize>(
    serializer: S,
    rows: &[SheetRequest],
    of: &fn(&SheetRequest) -> T,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().map(of))
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}
