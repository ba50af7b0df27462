//! Values that may reach the wire and nothing else.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// A key or header value. It has no `Serialize`, and its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the wire only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Strikes secrets out of text that came from outside: servers echo keys in error messages.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// Every spelling to look for, longest first, so that a longer one is not left half-struck.
    needles: Vec<Secret>,
}

pub const REDACTED: &str = "[redacted]";

impl Redactor {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut needles: Vec<Secret> = secrets
            .into_iter()
            .flat_map(|secret| spellings(secret.expose()))
            // Shorter values would strike ordinary words out of messages.
            .filter(|spelling| 6 <= spelling.len())
            .map(Secret::new)
            .collect();
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.expose().len()));
        needles.dedup();
        Self { needles }
    }

    pub fn redact(&self, text: &str) -> String {
        self.needles
            .iter()
            .fold(text.to_owned(), |text, needle| text.replace(needle.expose(), REDACTED))
    }
}

/// The value as typed, without an auth scheme, and both again as base64 and percent-encoded.
fn spellings(value: &str) -> Vec<String> {
    let bare = value.split_once(' ').map(|(_scheme, rest)| rest.trim());
    let plain: Vec<&str> = std::iter::once(value).chain(bare).collect();
    plain
        .iter()
        .flat_map(|value| {
            let encoded = percent_encode(value);
            let lower = lower_case_escapes(&encoded);
            // Without padding: a padded spelling contains the unpadded one.
            let base64 = STANDARD_NO_PAD.encode(value);
            // As inside a JSON string: the error bodies of servers are JSON.
            let json = value.replace('\\', "\\\\").replace('"', "\\\"").replace('/', "\\/");
            [(*value).to_owned(), base64, encoded, lower, json]
        })
        .collect()
}

fn lower_case_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at(part.len().min(2));
        format!("{text}%{}{rest}", digits.to_ascii_lowercase())
    })
}

/// All but the unreserved characters percent-encoded.
pub(crate) fn percent_encode(value: &str) -> String {
    use fmt::Write;
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults: 111.
    #[test]
    fn a_key_is_struck_out_in_every_spelling() {
        let key = Secret::new("Bearer sk-test/0123456789+abc");
        let redactor = Redactor::new([&key]);
        // The base64 spelling was made by another program (Python's base64 module).
        let echoed = "raw sk-test/0123456789+abc b64 c2stdGVzdC8wMTIzNDU2Nzg5K2FiYw== \
                      url sk-test%2F0123456789%2Babc \
                      lower sk-test%2f0123456789%2babc json sk-test\\/0123456789+abc";
        assert_eq!(
            redactor.redact(echoed),
            "raw [redacted] b64 [redacted]== url [redacted] lower [redacted] json [redacted]"
        );
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("sk-abc")), "Secret(…)");
    }

    #[test]
    fn a_short_value_does_not_eat_ordinary_words() {
        let redactor = Redactor::new([&Secret::new("no")]);
        assert_eq!(redactor.redact("no model"), "no model");
    }
}
