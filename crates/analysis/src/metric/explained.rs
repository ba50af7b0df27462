//! What each metric means in more words than its line in the table: the formula, when there is
//! none, how its doubt is found, and what other tools mean by the same name.

mod latencies;
mod machines;
mod rates;

use super::Metric;

/// The longer words of one metric.
#[derive(Clone, Copy, Debug)]
pub struct Explained {
    pub(super) metric: &'static str,
    pub formula: &'static str,
    pub null_when: &'static str,
    /// How its interval is found.
    pub doubt: &'static str,
    /// Tools, and what they do otherwise.
    pub elsewhere: &'static [(&'static str, &'static str)],
}

impl Metric {
    /// Every metric of the table has its words; a test looks.
    pub fn explained(&self) -> Option<&'static Explained> {
        all().find(|explained| explained.metric == self.name)
    }
}

fn all() -> impl Iterator<Item = &'static Explained> {
    latencies::EXPLAINED.iter().chain(rates::EXPLAINED).chain(machines::EXPLAINED)
}

pub(crate) const VLLM: &str = "vllm bench serve";
pub(crate) const AIPERF: &str = "AIPerf";
pub(crate) const GENAI_PERF: &str = "GenAI-Perf";
pub(crate) const GUIDELLM: &str = "GuideLLM";
pub(crate) const INFERENCE_PERF: &str = "inference-perf";

const OF_REQUESTS: &str = "one value per request, in the order of time; the interval of the mean \
    and of each percentile comes from blocks of consecutive requests, because neighbours share the \
    server's state and tell less than independent ones would";
const OF_GAPS: &str = "all gaps of a request count as one cluster, and consecutive requests as \
    blocks: thousands of gaps from a few answers are few facts";
const OF_RATE: &str = "the window is cut into slices, none shorter than a request; the interval \
    comes from how much their rates differ";
const OF_RATIO: &str = "a ratio of two sums over requests, with blocks of consecutive requests as \
    for latencies";
const WITHIN_NONE: &str = "none within a run; between repeated runs by Student's t";
const OF_SHARE: &str = "Wilson's interval on the effective number of requests, which stays inside \
    0 to 100 % and is honest about none and all";
const OF_EXTREME: &str = "none within a run: nothing bounds the largest of its values; between \
    repeated runs by Student's t";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::METRICS;

    #[test]
    fn every_metric_is_explained_once() {
        for metric in METRICS {
            let found = metric.explained();
            assert!(found.is_some(), "{}: add its words to metric/explained/", metric.name);
        }
        let mut names: Vec<&str> = all().map(|it| it.metric).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a metric is explained twice");
    }

    #[test]
    fn words_are_fragments_that_stand_on_one_line() {
        for explained in all() {
            let texts = [explained.formula, explained.null_when, explained.doubt];
            let elsewhere = explained.elsewhere.iter().map(|(_, text)| *text);
            for text in texts.into_iter().chain(elsewhere) {
                assert!(!text.is_empty() && !text.contains("  "), "{}: {text}", explained.metric);
                assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
            }
        }
    }
}
