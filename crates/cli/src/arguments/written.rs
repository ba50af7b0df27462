//! Values that are text on the command line and in an experiment file: one grammar for both.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// How a kind of value is written.
pub(crate) trait Grammar: Clone + Send + Sync + Sized + 'static {
    /// The name of the kind, for the schema.
    const NAME: &'static str;

    fn read(text: &str) -> Result<Self, String>;
    /// As it would be read again.
    fn write(&self) -> String;
    fn schema() -> Schema;
}

/// A value in the words of its grammar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written<T>(pub(crate) T);

impl<T: Grammar> FromStr for Written<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        T::read(text).map(Self)
    }
}

impl<T: Grammar> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.write())
    }
}

impl<'de, T: Grammar> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

/// Whether a number or a list is welcome is the schema's to say; here it is text without quotes.
struct Reader<T>(PhantomData<T>);

impl<'de, T: Grammar> de::Visitor<'de> for Reader<T> {
    type Value = Written<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    /// A list is its parts after commas.
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element::<Value>()? {
            parts.push(part.as_str().map_or_else(|| part.to_string(), str::to_owned));
        }
        self.visit_str(&parts.join(","))
    }
}

impl<T: Grammar> JsonSchema for Written<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}

/// A closed set of names.
pub(crate) trait Named: Copy + PartialEq + Send + Sync + 'static {
    const KIND: &'static str;

    fn names() -> Vec<(&'static str, Self)>;
}

impl<T: Named> Grammar for T {
    const NAME: &'static str = T::KIND;

    fn read(text: &str) -> Result<Self, String> {
        let names = T::names();
        let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            format!("`{text}` is not known; write one of {}", names.join(", "))
        })
    }

    fn write(&self) -> String {
        let names = T::names();
        names
            .iter()
            .find(|(_, value)| value == self)
            .map(|(name, _)| *name)
            .unwrap_or_default()
            .into()
    }

    fn schema() -> Schema {
        let names: Vec<&str> = T::names().into_iter().map(|(name, _)| name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// The parser of a flag that takes one of these names, so that help lists them.
pub(crate) fn named<T: Named>() -> impl TypedValueParser<Value = Written<T>> {
    let names: Vec<&str> = T::names().into_iter().map(|(name, _)| name).collect();
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Written<T>>())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use inferometer_model::endpoint::Api;
    use inferometer_model::spec::Lengths;

    use super::*;

    #[track_caller]
    fn assert_survives<T: Grammar>(text: &str) {
        let once: Written<T> = text.parse().unwrap();
        let written = once.0.write();
        let again: Written<T> = serde_json::from_value(serde_json::json!(written)).unwrap();
        assert_eq!(again.0.write(), written, "typed {text}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        for time in ["500ms", "30s", "0.1s", "1.5h", "37us", "744h"] {
            assert_survives::<Duration>(time);
            let typed: Written<Duration> = time.parse().unwrap();
            assert_eq!(Duration::read(&typed.0.write()), Ok(typed.0), "{time}");
        }
        for lengths in ["512", "512±20%", "zipf:1.2,16..4096"] {
            assert_survives::<Lengths>(lengths);
        }
        for (name, _) in Api::names() {
            assert_survives::<Api>(name);
        }
    }

    #[test]
    fn a_number_needs_no_quotes() {
        let lengths: Written<Lengths> = serde_json::from_value(serde_json::json!(512)).unwrap();
        assert_eq!(lengths.0, Lengths::Fixed(512));
    }
}
