//! Events of one stream are alike: how one was read says how to read the next.
//!
//! Of an event that the quick reader understood, the places are kept of what changes: the generated text, and the
//! counts. Another one that has the same bytes everywhere else means the same, with its own text and counts: a text
//! without escapes in the place of another, or a count in the place of another, changes no structure. What differs
//! anywhere else is read in full.

use std::borrow::Cow;

use inferometer_model::record::Usage;

use super::quick::{digits_length, number_length, plain_length, string_length};
use super::{ChoiceDelta, Chunk};

#[derive(Debug, Default)]
pub(crate) struct Alike {
    json: Vec<u8>,
    /// In order; empty before something was learned.
    places: Vec<Place>,
    index: u16,
    role: bool,
    marked_tokens: Option<u32>,
    usage: Option<Usage>,
    /// How often in a row what was learned was of no use.
    useless: u8,
}

/// What differs between two events that are alike.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    end: usize,
    holds: Holds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Content,
    Reasoning,
    PromptTokens,
    CompletionTokens,
    CachedTokens,
    /// A count that nobody reads, such as the sum of the others.
    AnyCount,
}

/// Longer events are seldom alike.
const JSON_BYTES_MAX: usize = 4 << 10;
/// A stream whose events are not alike is not looked at any more.
const USELESS_MAX: u8 = 4;

impl Alike {
    /// What an event says that is like the one that was learned, if it is.
    pub(crate) fn read<'a>(&mut self, json: &'a [u8]) -> Option<(ChoiceDelta<'a>, Option<Usage>)> {
        let mut delta = ChoiceDelta {
            index: self.index,
            role: self.role,
            marked_tokens: self.marked_tokens,
            ..ChoiceDelta::default()
        };
        let mut usage = self.usage;
        let (mut rest, mut at) = (json, 0);
        for Place { start, end, holds } in &self.places {
            rest = rest.strip_prefix(&self.json[at..*start])?;
            at = *end;
            let is_text = matches!(holds, Holds::Content | Holds::Reasoning);
            let length = if is_text { plain_length(rest) } else { digits_length(rest) };
            let (inside, after) = rest.split_at(length);
            rest = after;
            if is_text {
                let text = Some(Cow::Borrowed(inside));
                *(if *holds == Holds::Content {
                    &mut delta.content
                } else {
                    &mut delta.reasoning
                }) = text;
                continue;
            }
            let count = Some(plain_count(inside)?);
            match (holds, &mut usage) {
                (Holds::PromptTokens, Some(usage)) => usage.prompt_tokens = count,
                (Holds::CompletionTokens, Some(usage)) => usage.completion_tokens = count,
                (Holds::CachedTokens, Some(usage)) => usage.cached_tokens = count,
                _ => {}
            }
        }
        if self.places.is_empty() || rest != &self.json[at..] {
            return None;
        }
        self.useless = 0;
        Some((delta, usage))
    }

    /// Learns from an event that was read in full.
    pub(crate) fn learn(&mut self, json: &[u8], chunk: &Chunk<'_>) {
        if USELESS_MAX <= self.useless || JSON_BYTES_MAX < json.len() {
            return;
        }
        let [delta] = chunk.choices.as_slice() else { return };
        let is_plain = delta.finish.is_none() && delta.tool_call_bytes.is_none();
        let (text, holds) = match (&delta.content, &delta.reasoning) {
            (Some(Cow::Borrowed(text)), None) => (*text, Holds::Content),
            (None, Some(Cow::Borrowed(text))) => (*text, Holds::Reasoning),
            _ => return,
        };
        if !is_plain || chunk.ends || chunk.error.is_some() || text.is_empty() {
            return;
        }
        let start = text.as_ptr().addr().wrapping_sub(json.as_ptr().addr());
        let text_place = Place { start, end: start.wrapping_add(text.len()), holds };
        let Some(places) = places(json, text_place, chunk.usage) else { return };
        self.useless += 1;
        self.places = places;
        self.json.clear();
        self.json.extend_from_slice(json);
        (self.index, self.role) = (delta.index, delta.role);
        (self.marked_tokens, self.usage) = (delta.marked_tokens, chunk.usage);
    }
}

/// All places of a document that was understood; `None` where the text stands nowhere in it.
fn places(json: &[u8], text: Place, usage: Option<Usage>) -> Option<Vec<Place>> {
    let usage = usage.unwrap_or(Usage {
        prompt_tokens: None,
        completion_tokens: None,
        cached_tokens: None,
    });
    let named = [
        (&b"\"prompt_tokens\""[..], Holds::PromptTokens, usage.prompt_tokens),
        (b"\"completion_tokens\"", Holds::CompletionTokens, usage.completion_tokens),
        (b"\"cached_tokens\"", Holds::CachedTokens, usage.cached_tokens),
    ];
    let mut places = Vec::new();
    let (mut at, mut name) = (0, &b""[..]);
    while let Some(byte) = json.get(at) {
        let rest = &json[at..];
        match byte {
            b'"' => {
                let length = string_length(rest)?;
                name = &rest[..length];
                if at + 1 == text.start && at + length == text.end + 1 {
                    places.push(text);
                }
                at += length;
            }
            b'-' | b'0'..=b'9' => {
                let length = number_length(rest)?;
                let count = plain_count(&rest[..length]);
                let known = named.iter().find(|(known, ..)| *known == name);
                let holds = match known {
                    // The place of a choice is not one of the things that change.
                    None if name == b"\"index\"" => None,
                    None => Some(Holds::AnyCount),
                    // Only where there is no doubt which one was read.
                    Some((_, holds, value)) if *value == count && is_once(json, name) => {
                        Some(*holds)
                    }
                    Some(_) => None,
                };
                if let Some(holds) = holds.filter(|_| count.is_some()) {
                    places.push(Place { start: at, end: at + length, holds });
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    places.iter().any(|place| place.holds == text.holds).then_some(places)
}

fn is_once(json: &[u8], name: &[u8]) -> bool {
    memchr::memmem::find_iter(json, name).nth(1).is_none()
}

/// A count without sign, fraction and superfluous zeroes.
fn plain_count(digits: &[u8]) -> Option<u64> {
    let is_plain = (1..=19).contains(&digits.len())
        && digits_length(digits) == digits.len()
        && (digits.len() == 1 || digits[0] != b'0');
    let number = |number, digit: &u8| number * 10 + u64::from(digit - b'0');
    is_plain.then(|| digits.iter().fold(0, number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::openai::read_any;
    use super::super::quick;
    use super::*;

    fn learned(json: &str) -> Alike {
        let mut alike = Alike::default();
        alike.learn(json.as_bytes(), &quick::read(json.as_bytes()).unwrap());
        alike
    }

    /// What the reader for any document says of this one, if it is right.
    fn full(json: &[u8]) -> Option<(ChoiceDelta<'_>, Option<Usage>)> {
        let chunk = read_any(json).ok()?;
        let ordinary = chunk.error.is_none() && chunk.choices.len() == 1;
        ordinary.then(|| (chunk.choices[0].clone(), chunk.usage))
    }

    const EVENT: &str = r#"{"id":"c-1","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"one"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4}}}"#;

    #[test]
    fn another_text_and_other_counts_are_like_the_first() {
        let other = EVENT.replace("\"one\"", "\" zwei ä\"").replace(":3,", ":104,");
        let other = other.replace(":15,", ":9999,").replace("1700000000", "1700000001");
        let (delta, usage) = learned(EVENT).read(other.as_bytes()).unwrap();
        assert_eq!(delta.content.as_deref(), Some(" zwei ä".as_bytes()));
        assert_eq!(usage.unwrap().completion_tokens, Some(104));
        assert_eq!(Some((delta, usage)), full(other.as_bytes()));
    }

    #[test]
    fn what_differs_elsewhere_is_not_alike() {
        let alike = |json: &str| learned(EVENT).read(json.as_bytes()).is_some();
        assert!(alike(EVENT) && alike(&EVENT.replace("\"one\"", "\"\"")));
        for (from, to) in [
            ("\"one\"", "\"o\\nne\""),
            ("\"one\"", "null"),
            ("\"index\":0", "\"index\":1"),
            ("\"finish_reason\":null", "\"finish_reason\":\"stop\""),
            (":3,", ":03,"),
            (":3,", ":3.0,"),
            (":3,", ":,"),
            (":3,", ":-3,"),
            (":3,", ":12345678901234567890,"),
            ("c-1", "c-2"),
            ("}}}", "}}} "),
            ("}}}", "}}"),
        ] {
            assert!(EVENT.contains(from) && !alike(&EVENT.replacen(from, to, 1)), "{from} {to}");
        }
    }

    #[test]
    fn a_stream_that_is_never_alike_is_given_up() {
        let mut alike = Alike::default();
        for number in 0..10 {
            let json = EVENT.replace("c-1", &format!("c-{number}x"));
            assert_eq!(alike.read(json.as_bytes()), None);
            alike.learn(json.as_bytes(), &quick::read(json.as_bytes()).unwrap());
        }
        assert!(String::from_utf8_lossy(&alike.json).contains("c-3x"));
    }

    /// Documents as servers send them, and odd ones: names that come twice, texts in several places.
    fn event() -> impl Strategy<Value = String> {
        let text = r"[a-z \PC]{0,6}|content|\\\\n|completion_tokens"
            .prop_map(|text| text.replace('"', ""));
        let count =
            prop_oneof![Just("0".to_owned()), "[1-9][0-9]{0,20}", "1e3", "-4", "2.0", "null"];
        let member = prop_oneof![
            ("[a-z]{1,3}|created|total_tokens|index", count.clone())
                .prop_map(|(name, count)| format!("\"{name}\":{count}")),
            ("[a-z]{1,3}|id", text.clone())
                .prop_map(|(name, text)| format!("\"{name}\":\"{text}\"")),
            (count.clone(), count.clone())
                .prop_map(|(a, b)| format!("\"x\":{{\"completion_tokens\":{a},\"y\":[{b},{b}]}}")),
        ];
        let usage =
            (count.clone(), count.clone(), count).prop_map(|(prompt, completion, cached)| {
                format!(
                    "\"usage\":{{\"prompt_tokens\":{prompt}, \"completion_tokens\" : {completion},\
                 \"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}}}"
                )
            });
        let delta =
            (prop::sample::select(vec!["content", "reasoning", "reasoning_content"]), text.clone())
                .prop_map(|(name, text)| format!("\"delta\":{{\"{name}\":\"{text}\"}}"));
        let delta = prop_oneof![delta, text.prop_map(|text| format!("\"text\":\"{text}\""))];
        let marks = prop_oneof![Just("\"a\":0"), Just("\"token_ids\":[7,88]"), Just("\"index\":0")];
        let members = prop::collection::vec(member, 0..3);
        (members, delta, marks, prop::option::of(usage)).prop_map(
            |(members, delta, marks, usage)| {
                let choices = format!("\"choices\":[{{{delta},{marks}}}]");
                let all: Vec<String> = members.into_iter().chain([choices]).chain(usage).collect();
                format!("{{{}}}", all.join(","))
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Whatever is changed in whatever was learned: it says what the full reader says, or nothing.
        #[test]
        fn what_is_alike_means_what_the_full_reader_says(
            json in event(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), "[0-9a-z\"\\\\,:. e-]{0,3}", 0_usize..3), 0..3),
        ) {
            let mut alike = Alike::default();
            if let Ok(chunk) = quick::read(json.as_bytes()) {
                alike.learn(json.as_bytes(), &chunk);
            }
            let mut other = json.into_bytes();
            for (place, with, without) in changes {
                let start = place.index(other.len());
                let end = (start + without).min(other.len());
                other.splice(start..end, with.bytes());
            }
            if let Some(found) = alike.read(&other) {
                prop_assert_eq!(Some(found), full(&other), "{}", String::from_utf8_lossy(&other));
            }
        }
    }
}
