//! The metrics under the names of each server, from `families.toml`: vLLM's v1 engine, its v0 engine, and
//! SGLang.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::text::{COUNTER, Exposition, GAUGE, Histogram, Label, number};
use super::{MetricNames, Metrics};
use crate::scheduler::{Counters, DRAFT_TOKENS_MAX, Gauges};

/// What a family holds.
enum Value {
    Gauge(f64),
    Counter(u64),
    Distribution(Histogram),
    /// Gauges or counters, by the values of a label.
    By(&'static str, &'static str, Vec<(&'static str, f64)>),
}
use Value::{By, Counter, Distribution, Gauge};

/// What is known when a page is written.
struct Known<'a> {
    metrics: &'a Metrics,
    gauges: Gauges,
    counters: Counters,
}

/// The content of `families.toml`.
#[derive(Deserialize)]
struct Tables {
    families: Vec<[String; 4]>,
    bounds: BTreeMap<String, Vec<f64>>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    toml::from_str(include_str!("families.toml")).expect("a test reads the embedded tables")
});

/// Whether a list of words has `wanted`.
fn lists(words: &str, wanted: &str) -> bool {
    words.split(' ').any(|word| word == wanted)
}

/// Name, value and meaning of the families of a server.
fn families(server: &str) -> impl Iterator<Item = [&'static str; 3]> {
    let rows = TABLES.families.iter().filter(move |row| lists(&row[0], server));
    rows.map(|[_, name, value, help]| [name.as_str(), value, help])
}

/// The bounds of a server's histogram; `None` where they depend on the model.
pub(super) fn bounds(server: &str, name: &str) -> Option<&'static [f64]> {
    let is_for = |key: &str| lists(key, server) && lists(key, name);
    TABLES.bounds.iter().find(|(key, _)| is_for(key)).map(|(_, bounds)| bounds.as_slice())
}

impl Known<'_> {
    /// Writes the families of a server.
    fn write(&self, page: &mut Exposition<'_>, server: &str) {
        for [name, value, help] in families(server) {
            match self.value(value) {
                None => {}
                Some(Gauge(value)) => page.samples(GAUGE, name, help, &[(&[], value)]),
                Some(Counter(value)) => page.samples(COUNTER, name, help, &[(&[], value as f64)]),
                Some(Distribution(histogram)) => page.histogram(name, help, &histogram),
                Some(By(kind, label, samples)) => {
                    let labels: Vec<_> = samples.iter().map(|sample| [(label, sample.0)]).collect();
                    let samples = labels.iter().zip(&samples);
                    let samples: Vec<_> =
                        samples.map(|(label, of)| (label.as_slice(), of.1)).collect();
                    page.samples(kind, name, help, &samples);
                }
            }
        }
    }

    /// The value that a family names; a name of none of these is that of a distribution.
    fn value(&self, name: &str) -> Option<Value> {
        let Self { metrics, gauges, counters } = self;
        let [stop, length, abort] = metrics.ended;
        let speculates = 0 < metrics.labels.draft_tokens;
        Some(match name {
            "none" => Gauge(0.0),
            "running" => Gauge(gauges.running.into()),
            "waiting" => Gauge(gauges.waiting.into()),
            "waiting_by_reason" => {
                let waiting = f64::from(gauges.waiting);
                By(GAUGE, "reason", vec![("capacity", waiting), ("deferred", 0.0)])
            }
            "sleep" => {
                let states = [("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0)];
                By(GAUGE, "sleep_state", states.to_vec())
            }
            "kv_usage" => Gauge(gauges.kv_usage),
            "all_hit_rate" => Gauge(self.all_hit_rate()),
            "step_hit_rate" => Gauge(metrics.hit_rate),
            "prefix_queries" => Counter(counters.prefix_queries),
            "prefix_hits" => Counter(counters.prefix_hits),
            "preemptions" => Counter(counters.preemptions),
            "prompt_tokens_so_far" => Counter(counters.prompt_tokens),
            "prompt_tokens_by_source" => {
                let cached = metrics.cached_prompt_tokens;
                let computed = counters.prompt_tokens.saturating_sub(cached) as f64;
                let sources = [("local_compute", computed), ("local_cache_hit", cached as f64)];
                By(COUNTER, "source", [&sources[..], &[("external_kv_transfer", 0.0)]].concat())
            }
            "cached_tokens" => Counter(metrics.cached_prompt_tokens),
            "generation_tokens" => Counter(counters.generation_tokens),
            "ended" => {
                let mut ends = vec![("stop", stop), ("length", length), ("abort", abort)];
                // This engine does not fail a request, and knows no repetition.
                let is_v1 = metrics.names == MetricNames::VllmV1;
                ends.extend([("error", 0), ("repetition", 0)].into_iter().filter(|_| is_v1));
                let ends = ends.into_iter().map(|(how, count)| (how, count as f64));
                By(COUNTER, "finished_reason", ends.collect())
            }
            "drafts" if speculates => Counter(counters.drafts.steps),
            "drafted_tokens" if speculates => Counter(counters.drafts.drafted),
            "accepted_tokens" if speculates => Counter(counters.drafts.accepted),
            "accepted_at" if speculates => {
                let positions = POSITIONS.iter().take(metrics.labels.draft_tokens as usize);
                let accepted = |at| counters.drafts.accepted_at(at) as f64;
                let positions = positions.enumerate().map(|(at, name)| (*name, accepted(at)));
                By(COUNTER, "position", positions.collect())
            }
            "whole_answers" => Counter(stop + length),
            "aborted" => Counter(abort),
            "used_tokens" => Gauge((gauges.kv_usage * self.capacity()).round()),
            "capacity" => Gauge(self.capacity()),
            "tokens_per_s" if gauges.running == 0 => Gauge(0.0),
            "tokens_per_s" => Gauge(metrics.tokens_per_s),
            "step_tokens" => {
                // With the step whose tokens came last.
                let mut histogram = metrics.observed.named(name)?.clone();
                if metrics.step_tokens > 0 {
                    histogram.observe(metrics.step_tokens as f64);
                }
                Distribution(histogram)
            }
            other => Distribution(metrics.observed.named(other)?.clone()),
        })
    }

    /// v0 looked preempted requests up like any others.
    fn all_hit_rate(&self) -> f64 {
        let counters = &self.counters;
        let looked_up = counters.prefix_queries + counters.prefix_queries_preempted;
        let found = counters.prefix_hits + counters.prefix_hits_preempted;
        let has_cache = self.metrics.labels.cache.prefix_caching;
        if has_cache { found as f64 / looked_up.max(1) as f64 } else { -1.0 }
    }

    /// Tokens that the KV cache can hold; the null block holds nothing.
    fn capacity(&self) -> f64 {
        let cache = &self.metrics.labels.cache;
        f64::from(cache.blocks.saturating_sub(1)) * f64::from(cache.block_size)
    }
}

/// Labels of the tokens of a draft.
const POSITIONS: [&str; DRAFT_TOKENS_MAX as usize] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

/// Appends the whole text.
pub(super) fn render(metrics: &Metrics, gauges: Gauges, counters: Counters, out: &mut String) {
    let known = Known { metrics, gauges, counters };
    match metrics.names {
        MetricNames::VllmV1 | MetricNames::VllmV0 => vllm(&known, out),
        MetricNames::Sglang => sglang(&known, out),
    }
}

/// The v0 engine had no label `engine`, and left out `_created`.
fn vllm(known: &Known<'_>, out: &mut String) {
    let metrics = known.metrics;
    let v1 = metrics.names == MetricNames::VllmV1;
    let labels = [("engine", "0"), ("model_name", &metrics.labels.model)];
    let created = v1.then_some(metrics.labels.started_unix_s);
    let mut page = Exposition::new(out, if v1 { &labels } else { &labels[1..] }, created);
    known.write(&mut page, if v1 { "v1" } else { "v0" });
    page.relabel(if v1 { &labels[..1] } else { &[] });
    cache_config(&mut page, metrics);
    page.relabel(&[]);
    let labels = metrics.answers.iter().map(|((handler, method, status), _)| {
        [("handler", *handler), ("method", *method), ("status", *status)]
    });
    let labels: Vec<[Label<'_>; 3]> = labels.collect();
    let samples = labels.iter().zip(&metrics.answers);
    let samples = samples.map(|(labels, (_, count))| (labels.as_slice(), *count as f64));
    let samples: Vec<_> = samples.collect();
    page.samples(COUNTER, "http_requests_total", "HTTP requests that were answered.", &samples);
}

fn cache_config(page: &mut Exposition<'_>, metrics: &Metrics) {
    let cache = &metrics.labels.cache;
    let tokens = u64::from(cache.blocks) * u64::from(cache.block_size);
    let concurrency = tokens as f64 / f64::from(metrics.labels.max_model_len.max(1));
    let utilization = number(cache.gpu_memory_utilization);
    page.samples(
        GAUGE,
        "vllm:cache_config_info",
        "The KV cache, in labels.",
        &[(
            &[
                ("block_size", &cache.block_size.to_string()),
                ("cache_dtype", &cache.dtype),
                ("enable_prefix_caching", if cache.prefix_caching { "True" } else { "False" }),
                ("gpu_memory_utilization", &utilization),
                ("kv_cache_max_concurrency", &number(concurrency)),
                ("kv_cache_size_tokens", &tokens.to_string()),
                ("num_cpu_blocks", "None"),
                ("num_gpu_blocks", &cache.blocks.to_string()),
            ],
            1.0,
        )],
    );
}

/// SGLang's scheduler labels its samples with its rank; its front end does not. Both write to files
/// that a third process reads, and `_created` is lost on that way. SGLang counts the tokens of a
/// request when it ends; here they are counted as they come, so that a rate over them is one.
fn sglang(known: &Known<'_>, out: &mut String) {
    let model = ("model_name", known.metrics.labels.model.as_str());
    let ranks = [("engine_type", "unified"), model, ("pp_rank", "0"), ("tp_rank", "0")];
    let mut page = Exposition::new(out, &ranks, None);
    known.write(&mut page, "sglang");
    page.relabel(&[model]);
    known.write(&mut page, "sglang-front");
}

#[cfg(test)]
mod tests {
    use super::super::{MetricNames, Seen};
    use super::*;

    #[test]
    fn every_family_has_a_value_and_every_distribution_a_family() {
        let mut metrics = crate::metrics::tests::metrics(MetricNames::VllmV1);
        metrics.labels.draft_tokens = 1;
        let (gauges, counters) = (Gauges::default(), Counters::default());
        let known = Known { metrics: &metrics, gauges, counters };
        let servers = ["v0", "v1", "sglang", "sglang-front"];
        let all: Vec<_> = servers.into_iter().flat_map(families).collect();
        for [name, value, help] in &all {
            assert!(known.value(value).is_some() && help.ends_with('.'), "{name}: {value}");
        }
        for seen in <Seen as strum::VariantArray>::VARIANTS {
            let seen: &str = seen.into();
            assert!(all.iter().any(|[_, value, _]| *value == seen), "{seen}");
        }
    }
}
