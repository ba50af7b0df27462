//! Field types for JSON that servers really send: borrowed where it can be, tolerant where a wrong
//! field must not cost the answer.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{SayingError, bounds};

/// One document within bounds.
pub(super) fn document<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, SayingError> {
    bounds::check(json)?;
    serde_json::from_slice(json).map_err(|error| SayingError::BadJson(error.to_string()))
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

#[derive(serde::Deserialize)]
struct TextPart<'a> {
    #[serde(borrow, default)]
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
#[derive(serde::Deserialize)]
pub(super) struct WireToolCall {
    #[serde(default)]
    function: Option<WireFunction>,
}

#[derive(serde::Deserialize)]
struct WireFunction {
    #[serde(default)]
    name: Option<Sized>,
    #[serde(default)]
    arguments: Option<Sized>,
}

impl WireToolCall {
    /// Of what is called and with what.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |text: &Option<Sized>| text.as_ref().map_or(0, |text| text.0);
        self.function.as_ref().map_or(0, |f| bytes(&f.name) + bytes(&f.arguments))
    }
}

/// What an event or an answer says that it is.
#[derive(serde::Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow, rename = "type", default)]
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
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "guarded: whole, not negative, and far below 2^53"
        )]
        let whole =
            (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64);
        Ok(whole.map_or(Loose::Other, Loose::Number))
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
