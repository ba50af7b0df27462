//! JSON of other tools as one tree: read within bounds, and written with its members in their order.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::{Serialize, Serializer};

/// Limit for one record. A file with every gap of every request has some millions.
const NODES_MAX: usize = 16_000_000;
/// Limit for lists and objects inside of each other; what lies deeper is passed over.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Json {
    /// Such a member is not written.
    Null,
    Flag(bool),
    /// Only for writing: every number that is read is a `Number`.
    Count(u64),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// In the order of the file; of a repeated key the last one counts.
    Map(#[serde(serialize_with = "write_members")] Vec<(String, Json)>),
}

fn write_members<S: Serializer>(
    members: &[(String, Json)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let present = members.iter().filter(|(_, value)| *value != Json::Null);
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

from!(bool => Flag, u64 => Count, u32 => Count, f64 => Number, &str => Text, String => Text, Vec<Json> => List);

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Clone + Into<Json>> From<&Option<T>> for Json {
    fn from(value: &Option<T>) -> Self {
        value.clone().into()
    }
}

/// An object with these members, in this order.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        Json::Map(vec![$(($name.to_owned(), Json::from($value))),*])
    };
}

pub(crate) use object;

impl Json {
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        if let Self::List(items) = self {
            return items.get(key.parse::<usize>().ok()?);
        }
        self.entries().iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// By keys with dots between them; a place in a list is a key. A null is as good as nothing.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        let found = path.split('.').try_fold(self, |value, key| value.get(key))?;
        (*found != Self::Null).then_some(found)
    }

    pub(crate) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub(crate) fn entries(&self) -> &[(String, Self)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Bounds { nodes_left: &mut { NODES_MAX }, depth: 0 }.deserialize(deserializer)
    }
}

/// How much a tree may still grow, and how deep its next value lies.
struct Bounds<'a> {
    nodes_left: &'a mut usize,
    depth: usize,
}

impl Bounds<'_> {
    fn deeper(&mut self) -> Bounds<'_> {
        Bounds { nodes_left: self.nodes_left, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Bounds<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        *self.nodes_left = self.nodes_left.checked_sub(1).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "has more than {NODES_MAX} values; save it without each request's detail"
            ))
        })?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounds<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        if self.depth < DEPTH_MAX {
            while let Some(item) = list.next_element_seed(self.deeper())? {
                items.push(item);
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        if self.depth < DEPTH_MAX {
            while let Some(key) = map.next_key()? {
                entries.push((key, map.next_value_seed(self.deeper())?));
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Json::Map(entries))
    }
}
