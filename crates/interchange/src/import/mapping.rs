//! From a tree to a sheet: what is asked for is taken, and the rest is listed.

use std::collections::BTreeSet;

use inferometer_analysis::tool_result::{ResultLatency, Tool, ToolResult};
use inferometer_analysis::{Probability, Sample};

use super::records::Node;

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

    /// Notes why the value at a path is not in the sheet.
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
        mut latency: ResultLatency,
    ) -> Option<ResultLatency> {
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
        latency: &mut ResultLatency,
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
                latency.n = checked_count(value).ok();
                return false;
            }
        }
        true
    }

    /// The sheet with the list of what was not asked for.
    pub(super) fn finish(mut self, mut sheet: ToolResult) -> ToolResult {
        let mut unasked = Vec::new();
        self.unasked(self.node, "", &mut unasked);
        for what in self.notes.drain(..).chain(unasked) {
            note(&mut sheet, what);
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
    checked_figure(number(node)?)
}

pub(super) fn count(node: &Node) -> Result<u64, String> {
    checked_count(number(node)?)
}

fn number(node: &Node) -> Result<f64, String> {
    match node {
        Node::Number(number) => Ok(*number),
        Node::Text(text) => Err(no_number(text)),
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

/// Above this a float no longer holds every whole number.
const COUNT_MAX: f64 = 9_007_199_254_740_992.0;
/// Limit for the list of what could not be mapped, for a result's metadata, and for a latency's
/// percentiles.
pub(super) const LISTED_MAX: usize = 256;
const SHOWN_CHARS: usize = 60;

/// A number that is finite and not negative.
pub(super) fn checked_figure(number: f64) -> Result<f64, String> {
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(format!("is {number}, which no figure can be"))
    }
}

pub(super) fn checked_count(number: f64) -> Result<u64, String> {
    let number = checked_figure(number)?;
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

pub(super) fn no_number(text: &str) -> String {
    format!("is the text “{}”, not a number", shown(text))
}

/// At most a line's worth of a foreign text, without control characters.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Adds to what could not be mapped, up to a bound.
pub(super) fn note(sheet: &mut ToolResult, what: String) {
    match sheet.unmapped.len() {
        len if len < LISTED_MAX => sheet.unmapped.push(what),
        LISTED_MAX => sheet.unmapped.push("and more, not listed".to_owned()),
        _ => {}
    }
}

const RANKS: [(f64, &str); 6] =
    [(0.5, "50"), (0.75, "75"), (0.9, "90"), (0.95, "95"), (0.99, "99"), (0.999, "99.9")];

/// With percentiles between neighbouring values, as the tools that write such files have them.
pub(super) fn sample_latency(values: Vec<f64>, empty: ResultLatency) -> Option<ResultLatency> {
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

/// One sentence for each thing that a reader must know before figures are compared with others.
pub fn meaning(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::Inferometer => &[
            "Latencies from the schedule count from the moment at which the load was to send a \
             request, latencies from the send from when it was sent.",
            "ITL has one value for each gap, divided by the tokens that it brought.",
        ],
        Tool::Vllm => &[
            "TTFT and E2E count from the moment at which a request was sent: waiting in the client \
             is hidden.",
            "ITL has one value for each event of a stream, however many tokens it carried.",
            "TPOT is one mean for each answer, without its first token.",
        ],
        Tool::Sglang => &[
            "TTFT and E2E count from the moment at which a request was sent: waiting in the client \
             is hidden.",
            "ITL has one value for each event of a stream; on SGLang's own API later versions \
             divide it by the tokens, and the file does not say which version wrote it.",
            "Failed requests are counted only in files with the detail of every request.",
        ],
        Tool::GuideLlm => &[
            "TTFT and E2E count from the moment at which a request was sent; with a rate there is \
             also an E2E from its schedule.",
            "Its inter-token latency is one mean for each answer, without its first token, and is \
             shown as TPOT. Each mean counts once for each token of its answer.",
            "Its time per output token has the first token in it, and is not shown as TPOT.",
            "Its intervals take the requests as independent of each other.",
        ],
        Tool::AiPerf => &[
            "TTFT and E2E count from the moment at which a request was sent. Its effective latency \
             counts from when the load released it, and is shown as E2E from the schedule.",
            "Its inter-token latency is one mean for each answer, without its first token, and is \
             shown as TPOT. Its inter-chunk latency is shown as ITL, one value for each event.",
        ],
        Tool::LlmD => &[
            "A report takes over another tool's figures. From where latencies count is known only \
             of tools that are known here.",
            "TPOT is one mean for each answer, without its first token; taken over from GuideLLM, it \
             may have the first token in it.",
        ],
        Tool::GenaiBench => &[
            "TTFT and E2E count from the moment at which a request was sent: waiting in the client \
             is hidden.",
            "TPOT is one mean for each answer, without its first token. There is no ITL.",
        ],
    }
}
