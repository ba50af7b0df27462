//! JSON whose members stay in the order in which they are written.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The members of an object, in order.
pub(crate) type Members<'a> = Vec<(&'a str, Json<'a>)>;

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Count(u64),
    Number(f64),
    /// A number, as it is to be written.
    Digits(#[serde(serialize_with = "write_digits")] String),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(#[serde(serialize_with = "write_object")] Members<'a>),
    Value(&'a Value),
}

impl Json<'_> {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain values with string keys are always JSON")
    }
}

fn write_digits<S: Serializer>(digits: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let raw: &RawValue = serde_json::from_str(digits).map_err(serde::ser::Error::custom)?;
    raw.serialize(serializer)
}

fn write_object<S: Serializer>(members: &Members<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
}

impl From<u32> for Json<'_> {
    fn from(number: u32) -> Self {
        Self::Count(number.into())
    }
}

impl<'a> From<&'a str> for Json<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<Cow<'a, str>> for Json<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl<'a, T: Into<Json<'a>>> From<Option<T>> for Json<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'a> From<Vec<Json<'a>>> for Json<'a> {
    fn from(items: Vec<Json<'a>>) -> Self {
        Self::List(items)
    }
}

impl<'a> From<Members<'a>> for Json<'a> {
    fn from(members: Members<'a>) -> Self {
        Self::Object(members)
    }
}

/// The members of an object, in this order.
macro_rules! members {
    ($($name:tt: $value:expr),* $(,)?) => {
        vec![$(($name, $crate::json::Json::from($value))),*]
    };
}
pub(crate) use members;
