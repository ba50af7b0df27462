//! From a tree to a sheet: what was asked for is taken, and what nobody asked for is listed.

use std::collections::BTreeSet;

use inferometer_analysis::sheet::{Sheet, SheetLatency};

use super::tree::Node;
use super::value::{self, LISTED_MAX, shown};

/// Longer texts are answers and prompts, not names.
const NAME_BYTES_MAX: usize = 1024;

/// One record of a document while its values are put into a sheet.
#[derive(Debug)]
pub(super) struct Mapping<'a> {
    node: &'a Node,
    /// Where the record is in its document; empty when it is the document.
    place: String,
    /// Paths that were asked for, whether or not they are there.
    asked: BTreeSet<String>,
    notes: Vec<String>,
}

/// How a tool writes the statistics of one latency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// What a value must be multiplied by to be milliseconds.
    pub(super) to_ms: f64,
    /// The rank that a key names, as `99.9`.
    pub(super) rank: fn(&str) -> Option<String>,
}

impl<'a> Mapping<'a> {
    pub(super) fn new(node: &'a Node, place: String) -> Self {
        Self { node, place, asked: BTreeSet::new(), notes: Vec::new() }
    }

    pub(super) fn find(&mut self, path: &str) -> Option<&'a Node> {
        self.asked.insert(path.to_owned());
        self.node.at(path)
    }

    /// Known to say nothing that a sheet could hold and a reader could miss.
    pub(super) fn pass_over(&mut self, paths: &[&str]) {
        self.asked.extend(paths.iter().map(|path| (*path).to_owned()));
    }

    /// A number that is finite and not negative.
    pub(super) fn figure(&mut self, path: &str) -> Option<f64> {
        let found = self.find(path)?;
        self.checked(path, figure(found))
    }

    pub(super) fn count(&mut self, path: &str) -> Option<u64> {
        let found = self.find(path)?;
        self.checked(path, count(found))
    }

    pub(super) fn small_count(&mut self, path: &str) -> Option<u32> {
        let count = self.count(path)?;
        self.checked(path, u32::try_from(count).map_err(|_| "is too large".to_owned()))
    }

    pub(super) fn name(&mut self, path: &str) -> Option<String> {
        let found = self.find(path)?;
        self.checked(path, name(found))
    }

    fn checked<T>(&mut self, path: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|reason| self.note(path, &reason)).ok()
    }

    /// Says why the value at a path is not in the sheet.
    pub(super) fn note(&mut self, path: &str, reason: &str) {
        // One more than is listed tells that there are more.
        if self.notes.len() <= LISTED_MAX {
            self.notes.push(format!("{} {reason}", self.placed(path)));
        }
    }

    fn placed(&self, path: &str) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!("{}.", self.place) };
        format!("{place}{}", shown(path))
    }

    /// A latency's statistics, or nothing where there were no values.
    pub(super) fn latency(
        &mut self,
        path: &str,
        shape: Shape,
        mut latency: SheetLatency,
    ) -> Option<SheetLatency> {
        let node = self.find(path)?;
        let ranks = node.get("percentiles").map_or(&[][..], Node::entries);
        let mut is_known = false;
        for (key, value) in node.entries().iter().chain(ranks) {
            is_known |= self.statistic(&format!("{path}.{key}"), key, value, shape, &mut latency);
        }
        if !is_known {
            self.note(path, "has no statistics");
        }
        (is_known && latency.n != Some(0)).then_some(latency)
    }

    /// Whether it was one that is kept.
    fn statistic(
        &mut self,
        path: &str,
        key: &str,
        value: &Node,
        shape: Shape,
        latency: &mut SheetLatency,
    ) -> bool {
        let rank = (shape.rank)(key);
        let is_figure =
            matches!(key, "mean" | "avg" | "std" | "std_dev" | "stddev" | "min" | "max" | "count");
        if (rank.is_none() && !is_figure) || *value == Node::Null {
            return false;
        }
        let Some(value) = self.checked(path, figure(value)) else { return false };
        let ms = value * shape.to_ms;
        match (key, rank) {
            (_, Some(_)) if LISTED_MAX <= latency.percentiles_ms.len() => {
                self.note(path, &format!("is beyond the {LISTED_MAX} percentiles that are kept"));
                return false;
            }
            (_, Some(rank)) => {
                latency.percentiles_ms.insert(rank, ms);
            }
            ("mean" | "avg", None) => latency.mean_ms = Some(ms),
            ("std" | "std_dev" | "stddev", None) => latency.std_ms = Some(ms),
            ("min", None) => latency.min_ms = Some(ms),
            ("max", None) => latency.max_ms = Some(ms),
            (_, None) => {
                latency.n = value::count(value).ok();
                return false;
            }
        }
        true
    }

    /// The sheet with all that nobody asked for.
    pub(super) fn finish(mut self, mut sheet: Sheet) -> Sheet {
        let mut unasked = Vec::new();
        self.unasked(self.node, "", &mut unasked);
        for what in self.notes.drain(..).chain(unasked) {
            value::note(&mut sheet, what);
        }
        sheet
    }

    /// Each branch without a path that was asked for, at its highest place.
    fn unasked(&self, node: &Node, path: &str, listed: &mut Vec<String>) {
        let items = node.items().iter().enumerate().map(|(index, item)| (index.to_string(), item));
        let entries = node.entries().iter().map(|(key, value)| (key.clone(), value));
        for (key, value) in entries.chain(items) {
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            if listed.len() > LISTED_MAX || *value == Node::Null || self.asked.contains(&path) {
                continue;
            }
            let below = format!("{path}.");
            let first = self.asked.range(below.clone()..).next();
            if first.is_some_and(|first| first.starts_with(&below)) {
                self.unasked(value, &path, listed);
            } else {
                listed.push(self.placed(&path));
            }
        }
    }
}

pub(super) fn figure(node: &Node) -> Result<f64, String> {
    value::figure(number(node)?)
}

pub(super) fn count(node: &Node) -> Result<u64, String> {
    value::count(number(node)?)
}

fn number(node: &Node) -> Result<f64, String> {
    match node {
        Node::Number(number) => Ok(*number),
        Node::Text(text) => Err(value::no_number(text)),
        Node::Null | Node::Flag(_) | Node::List(_) | Node::Map(_) => {
            Err("is not a number".to_owned())
        }
    }
}

fn name(node: &Node) -> Result<String, String> {
    match node.text() {
        Some(text) if text.len() <= NAME_BYTES_MAX => Ok(text.to_owned()),
        Some(text) => Err(format!("is a text of {} bytes, not a name", text.len())),
        None => Err("is not a text".to_owned()),
    }
}

/// `p99.9` as tools mostly write it.
pub(super) fn plain_rank(key: &str) -> Option<String> {
    let rank = key.strip_prefix('p')?;
    let written = rank.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let known = rank.parse::<f64>().is_ok_and(|rank| (0.0..=100.0).contains(&rank));
    (written && known).then(|| rank.to_owned())
}
