//! From a JSON tree to a result: known keys are read, and the rest is listed.

use std::collections::BTreeSet;

use inferometer_analysis::tool_result::{ResultLatency, Tool, ToolResult};
use inferometer_analysis::{Probability, Sample};

use crate::json::Json;

/// Longer texts are answers and prompts, not names.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

/// One record of a document while its values are read into a result.
#[derive(Debug)]
pub(crate) struct Mapping<'a> {
    node: &'a Json,
    /// Where the record is in its document; empty when it is the document.
    place: String,
    /// Paths that were looked up, whether or not they are there.
    asked: BTreeSet<String>,
    notes: Vec<String>,
}

impl<'a> Mapping<'a> {
    pub(crate) fn new(node: &'a Json, place: String) -> Self {
        Self { node, place, asked: BTreeSet::new(), notes: Vec::new() }
    }

    pub(crate) fn find(&mut self, path: &str) -> Option<&'a Json> {
        self.asked.insert(path.to_owned());
        self.node.at(path)
    }

    /// Known to say nothing that a result could hold and a reader could miss.
    pub(crate) fn pass_over(&mut self, paths: &[&str]) {
        self.asked.extend(paths.iter().map(|path| (*path).to_owned()));
    }

    /// A number that is finite and not negative.
    pub(crate) fn figure(&mut self, path: &str) -> Option<f64> {
        self.read(path, figure)
    }

    /// A figure above zero.
    pub(crate) fn positive(&mut self, path: &str) -> Option<f64> {
        self.figure(path).filter(|figure| *figure > 0.0)
    }

    pub(crate) fn count(&mut self, path: &str) -> Option<u64> {
        self.read(path, count)
    }

    pub(crate) fn small_count(&mut self, path: &str) -> Option<u32> {
        self.read(path, small_count)
    }

    pub(crate) fn name(&mut self, path: &str) -> Option<String> {
        self.read(path, name)
    }

    fn read<T>(&mut self, path: &str, read: fn(&Json) -> Result<T, String>) -> Option<T> {
        let found = self.find(path)?;
        read(found).map_err(|reason| self.note(path, &reason)).ok()
    }

    pub(crate) fn is_set(&mut self, path: &str) -> bool {
        self.find(path) == Some(&Json::Flag(true))
    }

    /// What `read` finds at the first of the paths that has a value.
    pub(crate) fn first<T>(
        &mut self,
        paths: &[&str],
        read: fn(&mut Self, &str) -> Option<T>,
    ) -> Option<T> {
        paths.iter().find_map(|path| read(self, path))
    }

    /// Keeps a text as a note on the result.
    pub(crate) fn describe(&mut self, result: &mut ToolResult, path: &str, key: &str) {
        result.metadata.extend(self.name(path).map(|text| (key.to_owned(), text)));
    }

    /// What a metric's values must be multiplied by to be milliseconds, by the unit that stands beside
    /// them; `None` where the metric is missing.
    pub(crate) fn factor_to_ms(&mut self, path: &str, key: &str) -> Option<f64> {
        self.find(path)?;
        let path = format!("{path}.{key}");
        let unit = self.name(&path)?;
        let to_ms = unit_in_ms(&unit);
        if to_ms.is_none() {
            self.note(&path, "is not a unit of time that is known here");
        }
        to_ms
    }

    /// Notes why the value at a path is not in the result.
    pub(crate) fn note(&mut self, path: &str, reason: &str) {
        // One more than is listed tells that there are more.
        if self.notes.len() <= LISTED_MAX {
            self.notes.push(format!("{} {reason}", self.placed(path)));
        }
    }

    fn placed(&self, path: &str) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!("{}.", self.place) };
        format!("{place}{}", shown(path))
    }

    /// A latency's statistics, or nothing where there were no values. `to_ms` turns its values into
    /// milliseconds, and `rank` returns the rank that a key names, as `99.9`.
    pub(crate) fn latency(
        &mut self,
        path: &str,
        to_ms: f64,
        rank: fn(&str) -> Option<String>,
        mut latency: ResultLatency,
    ) -> Option<ResultLatency> {
        let node = self.find(path)?;
        let ranks = node.get("percentiles").map_or(&[][..], Json::entries);
        let mut is_known = false;
        for (key, value) in node.entries().iter().chain(ranks) {
            let (at, rank) = (format!("{path}.{key}"), rank(key));
            let is_statistic = rank.is_some() || STATISTICS.contains(&key.as_str());
            if !is_statistic || *value == Json::Null {
                continue;
            }
            let Ok(ms) =
                figure(value).map(|figure| figure * to_ms).map_err(|it| self.note(&at, &it))
            else {
                continue;
            };
            match (key.as_str(), rank) {
                ("count", _) => {
                    latency.n = count(value).ok();
                    continue;
                }
                ("mean" | "avg", _) => latency.mean_ms = Some(ms),
                ("min", _) => latency.min_ms = Some(ms),
                ("max", _) => latency.max_ms = Some(ms),
                (_, None) => latency.std_ms = Some(ms),
                (_, Some(_)) if LISTED_MAX <= latency.percentiles_ms.len() => {
                    self.note(
                        &at,
                        &format!("is beyond the {LISTED_MAX} percentiles that are kept"),
                    );
                    continue;
                }
                (_, Some(rank)) => latency.percentiles_ms.extend([(rank, ms)]),
            }
            is_known = true;
        }
        if !is_known {
            self.note(path, "has no statistics");
        }
        (is_known && latency.n != Some(0)).then_some(latency)
    }

    /// The result with the list of what was not asked for.
    pub(crate) fn finish(mut self, mut result: ToolResult) -> ToolResult {
        let mut unread = Vec::new();
        self.unread(self.node, "", &mut unread);
        for what in self.notes.drain(..).chain(unread) {
            note(&mut result, what);
        }
        result
    }

    /// Each branch without a path that was asked for, at its highest place.
    fn unread(&self, node: &Json, path: &str, listed: &mut Vec<String>) {
        let items = node.items().iter().enumerate().map(|(index, item)| (index.to_string(), item));
        let entries = node.entries().iter().map(|(key, value)| (key.clone(), value));
        for (key, value) in entries.chain(items) {
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            if listed.len() > LISTED_MAX || *value == Json::Null || self.asked.contains(&path) {
                continue;
            }
            let below = format!("{path}.");
            let first = self.asked.range(below.clone()..).next();
            if first.is_some_and(|first| first.starts_with(&below)) {
                self.unread(value, &path, listed);
            } else {
                listed.push(self.placed(&path));
            }
        }
    }
}

const STATISTICS: [&str; 8] = ["mean", "avg", "std", "std_dev", "stddev", "min", "max", "count"];

/// Milliseconds of a unit of time.
pub(crate) fn unit_in_ms(unit: &str) -> Option<f64> {
    match unit.strip_suffix("/token").unwrap_or(unit) {
        "ms" => Some(1.0),
        "s" | "sec" | "seconds" => Some(1e3),
        "us" | "µs" => Some(1e-3),
        "ns" => Some(1e-6),
        _ => None,
    }
}

pub(crate) fn figure_at(json: &Json, path: &str) -> Option<f64> {
    figure(json.at(path)?).ok()
}

pub(crate) fn count_at(json: &Json, path: &str) -> Option<u64> {
    count(json.at(path)?).ok()
}

/// A number that is finite and not negative.
pub(crate) fn figure(node: &Json) -> Result<f64, String> {
    match (node.number(), node.text()) {
        (Some(number), _) if number.is_finite() && number >= 0.0 => Ok(number),
        (Some(number), _) => Err(format!("is {number}, which no figure can be")),
        (None, Some(text)) => Err(format!("is the text “{}”, not a number", shown(text))),
        (None, None) => Err("is not a number".to_owned()),
    }
}

pub(crate) fn count(node: &Json) -> Result<u64, String> {
    let number = figure(node)?;
    if number.fract() != 0.0 || number > COUNT_MAX {
        return Err(format!("is {number}, not a count"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative and below 2^53 by the checks above"
    )]
    Ok(number as u64)
}

pub(crate) fn small_count(node: &Json) -> Result<u32, String> {
    u32::try_from(count(node)?).map_err(|_| "is too large".to_owned())
}

pub(crate) fn name(node: &Json) -> Result<String, String> {
    match node.text() {
        Some(text) if text.len() <= NAME_BYTES_MAX => Ok(text.to_owned()),
        Some(text) => Err(format!("is a text of {} bytes, not a name", text.len())),
        None => Err("is not a text".to_owned()),
    }
}

/// `p99.9` as tools mostly write it.
pub(crate) fn plain_rank(key: &str) -> Option<String> {
    let rank = key.strip_prefix('p')?;
    let written = rank.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let known = rank.parse::<f64>().is_ok_and(|rank| (0.0..=100.0).contains(&rank));
    (written && known).then(|| rank.to_owned())
}

/// Above this a float no longer holds every whole number.
const COUNT_MAX: f64 = 9_007_199_254_740_992.0;
/// Limit for the list of what could not be mapped, for a result's metadata, and for a latency's
/// percentiles.
pub(crate) const LISTED_MAX: usize = 256;
const SHOWN_CHARS: usize = 60;

/// At most a line's worth of a foreign text, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Adds to what could not be mapped, up to a bound.
pub(crate) fn note(result: &mut ToolResult, what: String) {
    match result.unmapped.len() {
        len if len < LISTED_MAX => result.unmapped.push(what),
        LISTED_MAX => result.unmapped.push("and more, not listed".to_owned()),
        _ => {}
    }
}

const RANKS: [(f64, &str); 6] =
    [(0.5, "50"), (0.75, "75"), (0.9, "90"), (0.95, "95"), (0.99, "99"), (0.999, "99.9")];

/// With percentiles between neighbouring values, as the tools that write such files have them.
pub(crate) fn sample_latency(values: Vec<f64>, empty: ResultLatency) -> Option<ResultLatency> {
    let sample = Sample::new(values)?;
    let percentiles = RANKS.iter().filter_map(|(share, rank)| {
        Some(((*rank).to_owned(), sample.quantile(Probability::new(*share)?)))
    });
    Some(ResultLatency {
        n: Some(sample.count()),
        mean_ms: Some(sample.mean()),
        std_ms: Some(sample.std_population()),
        min_ms: Some(sample.min()),
        max_ms: Some(sample.max()),
        percentiles_ms: percentiles.collect(),
        ..empty
    })
}

/// One sentence for each thing that a reader must know before a tool's figures are compared with others.
pub fn meaning(tool: Tool) -> Vec<&'static str> {
    let mut tools = include_str!("meaning.md").split("## ");
    let own = tools.find_map(|it| it.strip_prefix(tool.key())?.strip_prefix('\n'));
    own.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("- ")).collect()
}
