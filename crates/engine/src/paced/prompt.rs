//! How long a prompt is, counted while it is parsed: nothing else of it matters here.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The length of a string in words, or of a list in the tokens of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length<T> {
    pub(super) tokens: u32,
    element: PhantomData<T>,
}

/// An element of a list that may stand in place of a string.
pub(super) trait Element {
    /// What a value must be, for the error message.
    const EXPECTED: &'static str;

    fn tokens(&self) -> u32;
}

/// A token id, in the prompt of the completions API.
#[derive(Debug, Deserialize)]
pub(super) struct TokenId(
    #[expect(dead_code, reason = "that it is a number is all that is asked of it")] u32,
);

/// A part of a chat message; parts that are not text count nothing.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    text: Option<String>,
}

impl Element for TokenId {
    const EXPECTED: &'static str = "one prompt, which is a string or a list of token ids";

    fn tokens(&self) -> u32 {
        1
    }
}

impl Element for Part {
    const EXPECTED: &'static str = "a message's content, which is a string or a list of parts";

    fn tokens(&self) -> u32 {
        self.text.as_deref().map_or(0, words)
    }
}

impl<'de, T: Element + Deserialize<'de>> Deserialize<'de> for Length<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Counting(PhantomData))
    }
}

struct Counting<T>(PhantomData<T>);

impl<'de, T: Element + Deserialize<'de>> Visitor<'de> for Counting<T> {
    type Value = Length<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Length { tokens: words(text), element: PhantomData })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut tokens = 0_u32;
        while let Some(element) = elements.next_element::<T>()? {
            tokens = tokens.saturating_add(element.tokens());
        }
        Ok(Length { tokens, element: PhantomData })
    }
}

fn words(text: &str) -> u32 {
    u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length<T: Element + for<'de> Deserialize<'de>>(json: &str) -> Result<u32, String> {
        let length = serde_json::from_str::<Length<T>>(json);
        length.map(|length| length.tokens).map_err(|error| error.to_string())
    }

    #[test]
    fn words_of_a_string_are_counted_after_unescaping() {
        assert_eq!(length::<TokenId>(r#"" one\ttwo\u0020three ""#), Ok(3));
        assert_eq!(length::<Part>(r#""""#), Ok(0));
    }

    #[test]
    fn a_list_has_the_tokens_of_its_elements() {
        assert_eq!(length::<TokenId>("[5, 6, 7, 8]"), Ok(4));
        let parts = r#"[{"type":"text","text":"a b"},{"type":"image_url","image_url":{}}]"#;
        assert_eq!(length::<Part>(parts), Ok(2));
    }

    #[test]
    fn other_values_are_refused_with_what_was_expected() {
        let error = length::<TokenId>("7").unwrap_err();
        assert!(error.contains("a string or a list of token ids"), "{error}");
        assert!(length::<TokenId>(r#"["several", "prompts"]"#).is_err());
    }
}
