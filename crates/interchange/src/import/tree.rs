//! A JSON or YAML document as a tree: what was written, without a meaning yet.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Of one record. A file with every gap of every request has some millions.
const NODES_MAX: usize = 16_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file; of a key that stands twice, the last one is meant.
    Map(Vec<(String, Node)>),
}

impl Node {
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => {
                entries.iter().rev().find(|(name, _)| name == key).map(|(_, node)| node)
            }
            Self::List(items) => items.get(key.parse::<usize>().ok()?),
            Self::Null | Self::Flag(_) | Self::Number(_) | Self::Text(_) => None,
        }
    }

    /// By keys with dots between them; a place in a list is a key. A null is as good as nothing.
    pub(super) fn at(&self, path: &str) -> Option<&Self> {
        let found = path.split('.').try_fold(self, |node, key| node.get(key))?;
        (*found != Self::Null).then_some(found)
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub(super) fn entries(&self) -> &[(String, Self)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    pub(super) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut left = NODES_MAX;
        Growth { left: &mut left }.deserialize(deserializer)
    }
}

/// How many nodes a tree may still grow.
struct Growth<'a> {
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Growth<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        *self.left = self.left.checked_sub(1).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "has more than {NODES_MAX} values; save it without each request's detail"
            ))
        })?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Growth<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Growth { left: self.left })? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Growth { left: self.left })?;
            entries.push((key, value));
        }
        Ok(Node::Map(entries))
    }
}
