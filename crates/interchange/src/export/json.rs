//! JSON for foreign documents: members stay in the order in which they are written, and those without
//! a value are left out.

use serde::{Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Json {
    /// The member is left out.
    Absent,
    Bool(bool),
    Count(u64),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(#[serde(serialize_with = "write_object")] Vec<(String, Json)>),
}

fn write_object<S: Serializer>(
    members: &[(String, Json)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let present = members.iter().filter(|(_, value)| *value != Json::Absent);
    serializer.collect_map(present.map(|(name, value)| (name, value)))
}

macro_rules! from {
    ($($from:ty => $variant:ident),*) => {$(
        impl From<$from> for Json {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from!(bool => Bool, u64 => Count, u32 => Count, f64 => Number, &str => Text, String => Text, Vec<Json> => List);

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

/// An object with these members, in this order.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        Json::Object(vec![$(($name.to_owned(), Json::from($value))),*])
    };
}

pub(super) use object;
