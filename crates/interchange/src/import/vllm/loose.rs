//! JSON values of any kind, of which only what is wanted is kept: a value of the wrong kind must
//! not take its record with it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Made of whatever stands there.
pub(crate) trait Loose: Sized {
    /// Of what has no use here.
    fn other() -> Self;

    fn truth(_: bool) -> Self {
        Self::other()
    }

    fn number(_: f64) -> Self {
        Self::other()
    }

    fn text(_: &str) -> Self {
        Self::other()
    }

    /// Passed over without being kept, unless it is wanted: such lists are long.
    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }
}

pub(crate) fn deserialize<'de, T: Loose, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(LooseVisitor(PhantomData))
}

struct LooseVisitor<T>(PhantomData<T>);

impl<'de, T: Loose> Visitor<'de> for LooseVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::truth(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(T::other())
    }
}
