//! Values that may reach the wire and nothing else.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// Strikes secrets out of everything that is stored or printed: servers echo keys in error messages,
/// and users type them into fields that are part of the results.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// Every spelling to look for, longest first, so that a longer one is not left half-struck.
    needles: Vec<Secret>,
}

pub const REDACTED: &str = "[redacted]";

impl Redactor {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        Self::default().with(secrets)
    }

    /// The same, striking out more.
    #[must_use]
    pub fn with<'a>(mut self, secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let spellings = secrets.into_iter().flat_map(|secret| spellings(secret.expose()));
        // Shorter values would strike ordinary words out of messages.
        self.needles.extend(spellings.filter(|text| 6 <= text.len()).map(Secret::new));
        self.needles.sort_by(|a, b| {
            let (a, b) = (a.expose(), b.expose());
            b.len().cmp(&a.len()).then_with(|| a.cmp(b))
        });
        self.needles.dedup();
        self
    }

    /// The same, striking out what another strikes out, too.
    #[must_use]
    pub fn merge(mut self, other: &Self) -> Self {
        self.needles.extend(other.needles.iter().cloned());
        self.with([])
    }

    /// Whether one of the secrets is in these bytes.
    pub fn finds_secret(&self, bytes: &[u8]) -> bool {
        self.needles.iter().any(|needle| memmem::find(bytes, needle.expose().as_bytes()).is_some())
    }

    /// The longest text that is looked for, in bytes.
    pub fn longest(&self) -> usize {
        self.needles.first().map_or(0, |needle| needle.expose().len())
    }

    /// A value that is about to be stored, with the secrets struck out of all of its texts.
    pub fn redact_value<T: Serialize + DeserializeOwned>(&self, value: T) -> serde_json::Result<T> {
        if !self.finds_secret(&serde_json::to_vec(&value)?) {
            return Ok(value);
        }
        serde_json::from_value(self.redact_json(serde_json::to_value(&value)?))
    }

    fn redact_json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.redact(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.redact_json(item)).collect(),
            Value::Object(entries) => entries
                .into_iter()
                .map(|(key, value)| (self.redact(&key), self.redact_json(value)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    pub fn redact(&self, text: &str) -> String {
        redact(text, self.needles.iter())
    }

    /// The same of a document with numbers, such as JSON: a secret that is one stays there, because
    /// the document would be no document any more.
    pub fn redact_document(&self, text: &str) -> String {
        let is_number = |needle: &&Secret| needle.expose().parse::<f64>().is_ok();
        redact(text, self.needles.iter().filter(|needle| !is_number(needle)))
    }
}

fn redact<'a>(text: &str, needles: impl Iterator<Item = &'a Secret>) -> String {
    needles.fold(text.to_owned(), |text, needle| text.replace(needle.expose(), REDACTED))
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
            // As inside a JSON string: our files and the error bodies of servers are JSON.
            let json = value.replace('\\', "\\\\").replace('"', "\\\"");
            let slashed = json.replace('/', "\\/");
            [(*value).to_owned(), base64, encoded, lower, json, slashed]
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
    fn a_document_keeps_its_numbers_and_a_value_its_form() {
        let secrets = [Secret::new("600000"), Secret::new("my-secret")];
        let redactor = Redactor::new(&secrets);
        let text = r#"{"timeout_ms":600000,"name":"my-secret"}"#;
        let expected = r#"{"timeout_ms":600000,"name":"[redacted]"}"#;
        assert_eq!(redactor.redact_document(text), expected);
        let value = serde_json::json!({ "my-secret": [600_000, "600000"] });
        assert!(redactor.finds_secret(value.to_string().as_bytes()));
        let redacted = redactor.redact_value(value).unwrap();
        assert_eq!(redacted, serde_json::json!({ "[redacted]": [600_000, "[redacted]"] }));
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
