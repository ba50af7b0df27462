//! JSON that servers really send: bounds that are checked before it is parsed, and field types that
//! borrow where they can and tolerate a wrong field that must not cost the answer.

use std::borrow::Cow;
use std::fmt;

use inferometer_model::whole::to_u64;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::ChunkError;

pub(super) const DEPTH_MAX: usize = 64;
pub(super) const KEYS_MAX: usize = 4_096;
/// The shortest member of an object is `"":0,`.
const MEMBER_BYTES_MIN: usize = 5;

/// Refuses, before it is parsed, JSON that is nested too deeply or has an object with too many keys.
///
/// Nearly every event passes by counting brackets alone; only what could break a bound is walked.
fn check(json: &[u8]) -> Result<(), ChunkError> {
    let openings = memchr::memchr2_iter(b'{', b'[', json).take(DEPTH_MAX + 1).count();
    if openings <= DEPTH_MAX && json.len() <= KEYS_MAX * MEMBER_BYTES_MIN {
        return Ok(());
    }
    walk(json)
}

fn walk(json: &[u8]) -> Result<(), ChunkError> {
    let too_deep = ChunkError::TooDeep { depth: DEPTH_MAX, keys: KEYS_MAX };
    let mut keys_at_depth: Vec<usize> = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' if keys_at_depth.len() == DEPTH_MAX => return Err(too_deep),
            b'{' | b'[' => keys_at_depth.push(0),
            b'}' | b']' => {
                keys_at_depth.pop();
            }
            b':' => {
                if let Some(keys) = keys_at_depth.last_mut() {
                    *keys += 1;
                    if KEYS_MAX < *keys {
                        return Err(too_deep);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// One document within bounds.
pub(super) fn document<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, ChunkError> {
    check(json)?;
    serde_json::from_slice(json).map_err(|error| ChunkError::BadJson(error.to_string()))
}

/// Text as bytes: borrowed when it has no escapes, and free to hold lone surrogates.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(bytes)))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(bytes.to_owned())))
            }
        }
        deserializer.deserialize_bytes(TextVisitor)
    }
}

impl<'a> Text<'a> {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn into_bytes(self) -> Cow<'a, [u8]> {
        self.0
    }

    /// As a name: what is not UTF-8 is replaced, because names are only compared and shown.
    pub(super) fn into_name(self) -> Cow<'a, str> {
        match self.0 {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

/// Generated text: plain, or a list of parts that hold some.
#[derive(Debug)]
pub(super) struct Parts<'a>(pub(super) Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Parts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartsVisitor;
        impl<'de> Visitor<'de> for PartsVisitor {
            type Value = Parts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a list of parts")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Parts<'de>, E> {
                Ok(Parts(Cow::Borrowed(bytes)))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Parts<'de>, E> {
                Ok(Parts(Cow::Owned(bytes.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parts<'de>, A::Error> {
                let mut text = Vec::new();
                while let Some(part) = items.next_element::<TextPart<'de>>()? {
                    text.extend_from_slice(part.text.as_ref().map_or(b"", |text| text.bytes()));
                }
                Ok(Parts(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_bytes(PartsVisitor)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TextPart<'a> {
    text: Option<Text<'a>>,
}

/// Any value, by the bytes of its text or, if it is none, of its JSON. Some servers send the
/// arguments of a tool call as an object.
#[derive(Debug)]
pub(super) struct Sized(pub(super) usize);

impl<'de> Deserialize<'de> for Sized {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&serde_json::value::RawValue>::deserialize(deserializer)?.get();
        if !json.starts_with('"') {
            return Ok(Self(json.len()));
        }
        let text: Text<'_> = serde_json::from_str(json).map_err(serde::de::Error::custom)?;
        Ok(Self(text.bytes().len()))
    }
}

/// A call of a tool.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct WireToolCall {
    function: Option<WireFunction>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct WireFunction {
    name: Option<Sized>,
    arguments: Option<Sized>,
}

impl WireToolCall {
    /// Bytes of the name and the arguments.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |text: &Option<Sized>| text.as_ref().map_or(0, |text| text.0);
        self.function.as_ref().map_or(0, |f| bytes(&f.name) + bytes(&f.arguments))
    }
}

/// What usage reports of the prompt's tokens.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct CachedTokens {
    pub(super) cached_tokens: Loose,
}

/// The type that an event or an answer states.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Kind<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<Text<'a>>,
}

/// Any JSON value, of which only the shape below is of interest; everything else is `Other`.
#[derive(Debug, Default)]
pub(super) enum Loose {
    Number(u64),
    /// An array, by its length.
    List(u32),
    #[default]
    Other,
}

impl Loose {
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::List(_) | Self::Other => None,
        }
    }

    pub(super) fn list_length(&self) -> Option<u32> {
        match self {
            Self::List(length) => Some(*length),
            Self::Number(_) | Self::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Loose, E> {
        Ok(Loose::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Loose, E> {
        // Some gateways write counts as 24.0.
        let is_count = number.fract() == 0.0 && (0.0..1e15).contains(&number);
        Ok(if is_count { Loose::Number(to_u64(number)) } else { Loose::Other })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Loose, A::Error> {
        let mut length = 0_u32;
        while items.next_element::<IgnoredAny>()?.is_some() {
            length = length.saturating_add(1);
        }
        Ok(Loose::List(length))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Loose, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults: 54.
    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(nested(64).as_bytes()), Ok(()));
        assert!(check(nested(65).as_bytes()).is_err());
        assert!(check(nested(10_000).as_bytes()).is_err());
        let harmless = format!("{{\"a\":\"{}\\\"{}\"}}", "[".repeat(100), "{".repeat(100));
        assert_eq!(check(harmless.as_bytes()), Ok(()));
    }

    #[test]
    fn keys_are_bounded_per_object_not_per_event() {
        let object = |keys: usize| {
            let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(check(object(4_096).as_bytes()), Ok(()));
        assert!(check(object(4_097).as_bytes()).is_err());
        let two = format!("[{},{}]", object(3_000), object(3_000));
        assert_eq!(check(two.as_bytes()), Ok(()));
    }
}
