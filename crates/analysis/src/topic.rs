//! What may be asked for an explanation: a metric, a word of the pages, or the name that another
//! tool has for something.

mod foreign;
mod words;

pub use self::foreign::Foreign;
pub use self::words::{WORDS, Word};

use crate::metric::{METRICS, Metric, Shape};
use crate::quantity::{LatencyOrigin, Quantity, metric_of};
use crate::statistic::Statistic;

/// What a name is about.
#[derive(Clone, Debug)]
pub enum Topic {
    Metric {
        metric: &'static Metric,
        /// Of a quantity, such as `ttft.p99`.
        statistic: Option<Statistic>,
    },
    Word(&'static Word),
    /// Other tools' name, by tool.
    Foreign(Vec<&'static Foreign>),
    /// A tool: all that it has another name or meaning for.
    Tool(Vec<&'static Foreign>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is known by the name `{word}`{}", in_words(*nearest))]
pub struct UnknownWord {
    pub word: String,
    /// Only what may have been meant.
    pub nearest: Option<&'static str>,
}

fn in_words(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; the nearest is `{nearest}`"))
}

impl Topic {
    /// Our own names go first; what only another tool says is explained as what that tool means.
    pub fn of(asked: &str) -> Result<Self, UnknownWord> {
        let name = plain(asked);
        of_metric(&name)
            .or_else(|| Word::named(&name).map(Self::Word))
            .or_else(|| of_other_tools(&name))
            .or_else(|| of_tool(&name))
            .ok_or_else(|| UnknownWord { word: asked.to_owned(), nearest: nearest(&name) })
    }
}

fn of_metric(name: &str) -> Option<Topic> {
    if let Some(metric) = by_name_or_title(name) {
        return Some(Topic::Metric { metric, statistic: None });
    }
    // As people say it: `TTFT p99`.
    if let Some((first, last)) = name.rsplit_once('_')
        && let Some(statistic) = Statistic::named(last)
        && let Some(metric) = by_name_or_title(first)
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
    match metric_of(first, Some(rest), LatencyOrigin::Sent) {
        Ok((metric, None)) => Some(Topic::Metric { metric, statistic: None }),
        Ok((_, Some(_))) | Err(_) => None,
    }
}

/// `e2e_latency` is `e2e`.
fn by_name_or_title(name: &str) -> Option<&'static Metric> {
    let name = name.strip_suffix("_latency").unwrap_or(name);
    let is_named = |metric: &&Metric| {
        metric.name == name || metric.key() == name || plain(metric.title) == name
    };
    METRICS.iter().copied().find(is_named)
}

fn of_tool(name: &str) -> Option<Topic> {
    let names = Foreign::of_tool(name);
    (!names.is_empty()).then_some(Topic::Tool(names))
}

fn of_other_tools(name: &str) -> Option<Topic> {
    let by = |name: &str| {
        let found = Foreign::named(name);
        (!found.is_empty()).then_some(Topic::Foreign(found))
    };
    by(name).or_else(|| by(without_statistic(without_unit(name))))
}

/// `mean_ttft` and `p99_ttft` are about the same as `ttft`.
fn without_statistic(name: &str) -> &str {
    let Some((first, rest)) = name.split_once('_') else { return name };
    let is_percentile = first.strip_prefix('p').is_some_and(|rest| rest.parse::<f64>().is_ok());
    let known = ["mean", "median", "std", "avg", "min", "max"].contains(&first);
    if known || is_percentile { rest } else { name }
}

fn without_unit(name: &str) -> &str {
    let units = ["_ms", "_s", "_seconds", "_req_s", "_tok_s"];
    // The longest goes first, or `_tok` would be left.
    let found = units.iter().filter(|unit| name.ends_with(**unit)).max_by_key(|unit| unit.len());
    found.map_or(name, |unit| &name[..name.len() - unit.len()])
}

/// As names are written: small letters, underscores, no quotes or brackets.
fn plain(text: &str) -> String {
    let kept = text.to_lowercase().replace(['\'', '’', ':'], "");
    let is_part = |c: char| c.is_alphanumeric() || c == '.' || c == '%';
    let parts = kept.split(|c| !is_part(c)).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

fn nearest(name: &str) -> Option<&'static str> {
    let metrics = METRICS.iter().map(|metric| metric.name);
    let words = WORDS.iter().flat_map(|word| [word.name].into_iter().chain(word.aliases.to_vec()));
    let all = metrics.chain(words).chain(Foreign::names());
    let distance = |known: &str| strsim::levenshtein(name, &plain(known));
    let (apart, known) =
        all.map(|known| (distance(known), known)).min_by_key(|(apart, _)| *apart)?;
    (apart <= slips(name)).then_some(known)
}

/// How many letters may be wrong before it is another word.
fn slips(name: &str) -> usize {
    match name.chars().count() {
        0..=2 => 0,
        3 => 1,
        4..=7 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests;
