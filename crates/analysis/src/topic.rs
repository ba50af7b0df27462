//! Names that `inferometer explain` knows: metrics, terms of the pages, and what other tools call
//! something. The terms and the names of other tools are in `topics.md`.

use std::sync::LazyLock;

use serde::Serialize;

use crate::metric::{self, LatencyOrigin, METRICS, Metric, Quantity, Shape, Statistic, metric_of};

/// What a name is about.
#[derive(Clone, Debug)]
pub enum Topic {
    Metric {
        metric: &'static Metric,
        /// The statistic of a quantity, such as `p99` in `ttft.p99`.
        statistic: Option<Statistic>,
    },
    Term(&'static Term),
    /// Other tools' name, by tool.
    Foreign(Vec<&'static ForeignName>),
    /// A tool: all that it has another name or meaning for.
    Tool(Vec<&'static ForeignName>),
    /// A word in the names of several metrics and terms: `throughput`.
    Several {
        metrics: Vec<&'static Metric>,
        terms: Vec<&'static Term>,
    },
}

/// A term and its meaning here.
#[derive(Clone, Debug, Serialize)]
pub struct Term {
    pub name: &'static str,
    pub aliases: Vec<&'static str>,
    /// Sentences.
    pub meaning: &'static str,
    /// What to read next.
    pub see: Vec<&'static str>,
}

/// One name of one tool.
#[derive(Clone, Copy, Debug)]
pub struct ForeignName {
    pub tool: &'static str,
    /// As the tool writes it.
    pub written: &'static str,
    /// The metric here that is nearest; `None` where there is none.
    pub metric: Option<&'static Metric>,
    pub meaning: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric or term `{name}`{}", nearest.map_or_else(String::new, |name| format!("; the nearest is `{name}`")))]
pub struct UnknownTopic {
    pub name: String,
    /// Only what may have been meant.
    pub nearest: Option<&'static str>,
}

const TOPICS: &str = include_str!("topics.md");

/// The terms, in groups of what belongs together.
pub static TERMS: LazyLock<Vec<Term>> = LazyLock::new(|| {
    let list = |line: Option<&'static str>| -> Vec<&'static str> {
        let items = line.and_then(|line| line.split_once(": ")).map_or("", |(_, items)| items);
        items.split(", ").filter(|item| !item.is_empty()).collect()
    };
    let term = |(name, text): (&'static str, &'static str)| {
        let mut paragraphs = text.split("\n\n");
        let aliases = list(paragraphs.next());
        let meaning = paragraphs.next().unwrap_or_default();
        Term { name, aliases, meaning, see: list(paragraphs.next()) }
    };
    sections(TOPICS, "# Terms").map(term).collect()
});

static FOREIGN_NAMES: LazyLock<Vec<ForeignName>> = LazyLock::new(|| {
    let tools = sections(TOPICS, "# Names of other tools");
    let rows = tools.flat_map(|(tool, text)| text.lines().skip(2).map(move |row| (tool, row)));
    let name = |(tool, row): (&'static str, &'static str)| {
        let mut cells = row.trim_matches(['|', ' ']).split(" | ");
        let (written, metric) = (cells.next()?, Metric::named(cells.next()?));
        Some(ForeignName { tool, written, metric, meaning: cells.next()? })
    };
    rows.filter_map(name).collect()
});

/// The headings below a heading of an embedded Markdown file, each with its text.
pub(crate) fn sections(
    file: &'static str,
    heading: &str,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut parts = file.split("\n\n\n");
    let part = parts.find_map(|part| part.strip_prefix(heading)).unwrap_or_default();
    part.split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once("\n\n"))
        .map(|(name, text)| (name, text.trim()))
}

impl Topic {
    /// Our own names take precedence; a name that only another tool uses is explained by its meaning there.
    pub fn look_up(asked: &str) -> Result<Self, UnknownTopic> {
        let name = plain(asked);
        find_metric(&name)
            .or_else(|| find_term(&name).map(Self::Term))
            .or_else(|| {
                let base = without_statistic(without_unit(&name));
                [&*name, base]
                    .into_iter()
                    .map(find_foreign)
                    .find(|found| !found.is_empty())
                    .map(Self::Foreign)
            })
            .or_else(|| {
                Some(names_of_tool(&name)).filter(|names| !names.is_empty()).map(Self::Tool)
            })
            .or_else(|| find_several(&name))
            .ok_or_else(|| UnknownTopic { name: asked.to_owned(), nearest: nearest(&name) })
    }
}

fn find_metric(name: &str) -> Option<Topic> {
    if let Some(metric) = metric_by_name_or_title(name) {
        return Some(Topic::Metric { metric, statistic: None });
    }
    // Such as `TTFT p99`.
    if let Some((first, last)) = name.rsplit_once('_')
        && let Some(statistic) = Statistic::named(last)
        && let Some(metric) = metric_by_name_or_title(first)
        && metric.shape() == Shape::Distribution
    {
        return Some(Topic::Metric { metric, statistic: Some(statistic) });
    }
    if let Ok(quantity) = Quantity::named(name, LatencyOrigin::Sent) {
        let (metric, statistic) = (quantity.metric(), quantity.statistic());
        return Some(Topic::Metric { metric, statistic });
    }
    // `ttft.schedule` is a metric, and no quantity yet.
    let (first, rest) = name.split_once('.')?;
    let (metric, statistic) = metric_of(first, Some(rest), LatencyOrigin::Sent).ok()?;
    statistic.is_none().then_some(Topic::Metric { metric, statistic: None })
}

/// `e2e_latency` is `e2e`.
fn metric_by_name_or_title(name: &str) -> Option<&'static Metric> {
    let name = name.strip_suffix("_latency").unwrap_or(name);
    METRICS
        .iter()
        .copied()
        .find(|metric| metric.name == name || metric.key() == name || plain(metric.title) == name)
}

fn find_term(name: &str) -> Option<&'static Term> {
    let is_named = |term: &&Term| {
        plain(term.name) == name || term.aliases.iter().any(|alias| plain(alias) == name)
    };
    TERMS.iter().find(is_named)
}

/// What has this word in its name; `latency` is every distribution of times.
fn find_several(name: &str) -> Option<Topic> {
    let is_latency = ["latency", "latencies"].contains(&name);
    let word = name.strip_suffix('s').filter(|word| 3 < word.len()).unwrap_or(name);
    let has_word = |text: &str| plain(text).split('_').any(|part| part == word);
    let is_meant = |metric: &&&Metric| {
        let is_time = metric.shape() == Shape::Distribution && metric.unit.name() == "ms";
        if is_latency { is_time } else { has_word(metric.name) || has_word(metric.title) }
    };
    let metrics: Vec<&Metric> = METRICS.iter().filter(is_meant).copied().collect();
    let terms: Vec<&Term> = TERMS.iter().filter(|term| has_word(term.name)).collect();
    (1 < metrics.len() + terms.len()).then_some(Topic::Several { metrics, terms })
}

/// All tools that have this name.
fn find_foreign(name: &str) -> Vec<&'static ForeignName> {
    let is_named = |it: &&ForeignName| {
        let written = plain(it.written);
        written == name || without_statistic(without_unit(&written)) == name
    };
    FOREIGN_NAMES.iter().filter(is_named).collect()
}

/// All names of the tool with this name, or with one that begins so: `vllm`.
fn names_of_tool(name: &str) -> Vec<&'static ForeignName> {
    let is_of = |it: &&ForeignName| {
        let tool = plain(it.tool);
        tool.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    FOREIGN_NAMES.iter().filter(is_of).collect()
}

/// `mean_ttft` and `p99_ttft` are about the same as `ttft`.
fn without_statistic(name: &str) -> &str {
    let Some((first, rest)) = name.split_once('_') else { return name };
    let is_percentile = first.strip_prefix('p').is_some_and(|rest| rest.parse::<f64>().is_ok());
    let known = ["mean", "median", "std", "avg", "min", "max"].contains(&first);
    if known || is_percentile { rest } else { name }
}

fn without_unit(name: &str) -> &str {
    // The longest goes first, or `_tok` would be left.
    let units = ["_seconds", "_req_s", "_tok_s", "_ms", "_s"];
    units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name)
}

/// The normalised form of a name: lower case, underscores, no quotes or brackets.
fn plain(text: &str) -> String {
    let kept = text.to_lowercase().replace(['\'', '’', ':'], "");
    let is_part = |c: char| c.is_alphanumeric() || c == '.' || c == '%';
    let parts = kept.split(|c| !is_part(c)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

/// Names that are in use elsewhere, and the metric with that meaning.
static SYNONYMS: [(&str, &Metric); 4] = [
    ("qps", &metric::REQUEST_THROUGHPUT),
    ("rps", &metric::REQUEST_THROUGHPUT),
    ("output_tps", &metric::OUTPUT_THROUGHPUT),
    ("input_tps", &metric::INPUT_THROUGHPUT),
];

fn nearest(name: &str) -> Option<&'static str> {
    let metrics = METRICS.iter().map(|metric| metric.name);
    let terms = TERMS.iter().flat_map(|term| [term.name].into_iter().chain(term.aliases.clone()));
    // The first part of a name.
    let starts =
        |known: &&str| plain(known).strip_prefix(name).is_some_and(|it| it.starts_with('_'));
    let synonym = SYNONYMS.iter().find(|(known, _)| *known == name).map(|(_, metric)| metric.name);
    if let Some(known) = synonym.or_else(|| metrics.clone().chain(terms.clone()).find(starts)) {
        return Some(known);
    }
    let all = metrics.chain(terms).chain(FOREIGN_NAMES.iter().map(|it| it.written));
    let distances = all.map(|known| (strsim::levenshtein(name, &plain(known)), known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    // With more wrong letters it is another name.
    let allowed = match name.chars().count() {
        0..=2 => 0,
        3 => 1,
        4..=7 => 2,
        _ => 3,
    };
    (distance <= allowed).then_some(known)
}

#[cfg(test)]
mod tests;
