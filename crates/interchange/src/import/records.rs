//! The JSON objects of a text one after another, and the results that were found in a file.

use std::fmt;

use inferometer_analysis::tool_result::{LatencyKind, Mark, ResultLatency, ToolResult};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{BrokenRecord, ImportError, Imported, RESULTS_MAX, mapping};

const BROKEN_MAX: usize = 1000;
/// How many times its own length of a text may be read in vain.
pub(super) const FOLLOWED_TIMES: usize = 8;

/// One result for each object of a text; `check` returns what an object lacks to be one.
pub(super) fn read_objects(
    text: &str,
    check: impl Fn(&Node) -> Result<(), String>,
    sheet: impl Fn(&Node, u32) -> ToolResult,
) -> Result<Vec<Imported>, ImportError> {
    let mut records = Records::default();
    each_object(text, |line, read| {
        match read.and_then(|node| check(&node).map(|()| node)) {
            Ok(node) => records.push(sheet(&node, line)),
            Err(reason) => records.break_off(line, reason),
        }
        !records.are_too_many()
    });
    records.finish()
}

/// Gives every object to `take` with the line on which it begins, and every one that cannot be read
/// with the reason, until `take` returns that it has enough.
pub(super) fn each_object(text: &str, mut take: impl FnMut(u32, Result<Node, String>) -> bool) {
    let mut at = 0;
    let mut line = 1_u32;
    // Of the line that `at` is in: many objects may share one, and it is not sought for each.
    let mut end = line_end(text, 0);
    let mut follow_bytes = text.len().saturating_mul(FOLLOWED_TIMES);
    while at < text.len() {
        if end < at {
            end = line_end(text, at);
        }
        let inner = text[at..end].trim_start_matches([' ', '\t', '[', ',', '\r']);
        let start = end - inner.len();
        let mut next = end + 1;
        if inner.starts_with('{') {
            let read = match object(inner) {
                Err(error) if error.is_eof() && follow_bytes > 0 => object(&text[start..])
                    .inspect_err(|error| {
                        let lines = text[start..].split_inclusive('\n').take(error.line());
                        follow_bytes = follow_bytes.saturating_sub(lines.map(str::len).sum());
                    }),
                alone => alone,
            };
            if let Ok((_, length)) = &read {
                next = start + length;
            }
            let read = read.map(|(node, _)| node).map_err(|error| not_json(&error));
            if !take(line, read) {
                return;
            }
        }
        line = line.saturating_add(newlines(&text[at..next.min(text.len())]));
        at = next;
    }
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length)
}

pub(super) fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

fn object(text: &str) -> Result<(Node, usize), serde_json::Error> {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Node>();
    let first = objects.next().unwrap_or_else(|| Err(serde::de::Error::custom("is empty")))?;
    Ok((first, objects.byte_offset()))
}

/// An error in a line at which reading stopped.
pub(super) fn not_json_there(error: &serde_json::Error) -> String {
    format!("is not JSON: {} (column {})", what_is_wrong(error), error.column())
}

fn what_is_wrong(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or(&message).to_owned()
}

/// An error in a line at which a record begins; reading may have stopped below it.
pub(super) fn not_json(error: &serde_json::Error) -> String {
    let what = what_is_wrong(error);
    match error.line() {
        _ if error.is_eof() => format!("is not JSON: {what}"),
        0 | 1 => format!("is not JSON: {what} (column {})", error.column()),
        2 => format!("is not JSON: {what} (1 line below it)"),
        line => format!("is not JSON: {what} ({} lines below it)", line - 1),
    }
}

/// The records of a file while they are read, within bounds.
#[derive(Debug, Default)]
pub(super) struct Records {
    listed: Vec<Imported>,
    results: usize,
    broken: usize,
    /// The first record behind those that are listed as broken.
    unlisted: Option<u32>,
}

impl Records {
    /// Whatever reader found it, a result has its marks, and no latency of which nothing was
    /// measured.
    pub(super) fn push(&mut self, mut sheet: ToolResult) {
        self.results += 1;
        if self.are_too_many() {
            return;
        }
        forget_zeros(&mut sheet);
        sheet.marks = Mark::found(&sheet);
        self.listed.push(Imported::Result(Box::new(sheet)));
    }

    pub(super) fn break_off(&mut self, line: u32, reason: String) {
        self.broken += 1;
        if self.broken > BROKEN_MAX {
            self.unlisted.get_or_insert(line);
        } else {
            self.remark(line, reason);
        }
    }

    /// Notes something about a place in the file without counting it as a broken record.
    pub(super) fn remark(&mut self, line: u32, reason: String) {
        self.listed.push(Imported::Broken(BrokenRecord { line, reason }));
    }

    /// Whether the file will be refused, so that nothing more of it need be read.
    pub(super) fn are_too_many(&self) -> bool {
        self.results > RESULTS_MAX
    }

    pub(super) fn has_results(&self) -> bool {
        self.results > 0
    }

    pub(super) fn finish(self) -> Result<Vec<Imported>, ImportError> {
        self.finish_or(|| {
            "the file has keys of another tool's results, but no such result".to_owned()
        })
    }

    /// With what the file looks like where there is nothing in it at all.
    pub(super) fn finish_or(
        mut self,
        looks_like: impl FnOnce() -> String,
    ) -> Result<Vec<Imported>, ImportError> {
        if self.are_too_many() {
            return Err(ImportError::TooMany);
        }
        if !self.has_results() {
            return Err(match self.listed.iter().find_map(Imported::broken) {
                Some(first) => ImportError::AllBroken {
                    count: self.broken,
                    line: first.line,
                    reason: first.reason.clone(),
                },
                None => ImportError::NothingRecognised { looks_like: looks_like() },
            });
        }
        if let Some(line) = self.unlisted {
            let count = self.broken - BROKEN_MAX;
            let reason = format!("is the first of {count} more records that cannot be read");
            self.remark(line, reason);
        }
        self.listed.sort_by_key(Imported::line);
        Ok(self.listed)
    }
}

/// Tools write zeros where there was nothing to measure, such as the gaps of answers of one token.
/// Read as a latency, they would keep every promise.
fn forget_zeros(sheet: &mut ToolResult) {
    let found = std::mem::take(&mut sheet.latencies);
    let (empty, measured): (Vec<_>, Vec<_>) = found.into_iter().partition(is_zero);
    sheet.latencies = measured;
    for latency in empty {
        let name = match latency.kind {
            LatencyKind::Ttft => "TTFT",
            LatencyKind::Tpot => "TPOT",
            LatencyKind::Itl => "ITL",
            LatencyKind::E2e => "E2E",
        };
        let place = sheet.source.line.map_or_else(String::new, |line| format!("line {line}: "));
        let reason = "has nothing but zeros: there was nothing to measure";
        mapping::note(sheet, format!("{place}{name} {reason}"));
    }
}

fn is_zero(latency: &ResultLatency) -> bool {
    let known = [latency.mean_ms, latency.std_ms, latency.min_ms, latency.max_ms];
    known.iter().flatten().chain(latency.percentiles_ms.values()).all(|value| *value == 0.0)
}

/// Limit for one record. A file with every gap of every request has some millions.
const NODES_MAX: usize = 16_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file; of a repeated key the last one counts.
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
