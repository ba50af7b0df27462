//! From Prometheus text to our vocabulary: one pass, bounded, and nothing made up.

use std::collections::BTreeMap;

use inferometer_model::telemetry::{Counters, Dialect, Gauges, MissReason, SumCount, Timings};

use super::names::{DIALECTS, Joined, LABELLED, Names, PROCESS_START, RANK_LABELS, Word};
use super::text::{Line, Series, lines};

/// What one scrape said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub dialect: Dialect,
    pub process_start_s: Option<f64>,
    pub gauges: Gauges,
    pub counters: Counters,
    pub timings: Timings,
    /// Values of known names that are no numbers to work with.
    pub dropped: u32,
}

/// A server that has more to say is not one that we know.
const SERIES_MAX: usize = 200_000;

/// Reads a whole answer, or says why it is of no use.
pub fn read(body: &[u8]) -> Result<Reading, MissReason> {
    let text = std::str::from_utf8(body).map_err(|_error| MissReason::NotPrometheus)?;
    let mut heard = Heard::default();
    let (mut series_count, mut malformed) = (0_usize, 0_usize);
    for line in lines(text) {
        match line {
            Line::Series(series) => {
                series_count += 1;
                heard.add(&series);
            }
            Line::Malformed => malformed += 1,
        }
        if SERIES_MAX < series_count + malformed {
            return Err(MissReason::TooLarge);
        }
    }
    // A stray line is somebody's mistake; a page in which they prevail is something else.
    if series_count <= malformed {
        return Err(MissReason::NotPrometheus);
    }
    let names = DIALECTS
        .iter()
        .find(|names| names.marks.iter().any(|mark| heard.values.contains_key(mark)));
    names.map(|names| heard.reading(names)).ok_or(MissReason::NoKnownName)
}

/// The values of names that some table knows; the keys are the tables' own.
#[derive(Debug, Default)]
struct Heard<'a> {
    values: BTreeMap<&'a str, Value>,
    /// By name and labels, to know what is said twice.
    said: BTreeMap<(&'a str, &'a str), f64>,
    process_start_s: Option<f64>,
    dropped: u32,
}

/// The series of one name, joined.
#[derive(Clone, Copy, Debug)]
struct Value {
    sum: f64,
    max: f64,
    /// One of them was no number: what the others come to is not the whole.
    broken: bool,
}

impl<'a> Heard<'a> {
    fn add(&mut self, series: &Series<'a>) {
        if series.name == PROCESS_START {
            self.process_start_s = Some(series.value).filter(|value| value.is_finite());
            return;
        }
        let name = key(series);
        if !is_known(name) || RANK_LABELS.iter().any(|rank| is_later_rank(series, rank)) {
            return;
        }
        let none = Value { sum: 0.0, max: 0.0, broken: false };
        let value = self.values.entry(name).or_insert(none);
        // A series has one value; said twice it counts once, and of two values neither is to be had.
        if let Some(said) = self.said.insert((name, series.labels()), series.value) {
            self.dropped = self.dropped.saturating_add(1);
            value.broken |= said.to_bits() != series.value.to_bits();
            return;
        }
        // No word of the vocabulary has a value below zero.
        if !series.value.is_finite() || series.value < 0.0 {
            self.dropped = self.dropped.saturating_add(1);
            value.broken = true;
            return;
        }
        value.sum += series.value;
        value.max = value.max.max(series.value);
    }

    fn reading(&self, names: &Names) -> Reading {
        let of = |word| self.word(names, word);
        let timing = |word| self.timing(names, word);
        Reading {
            dialect: names.dialect,
            process_start_s: self.process_start_s,
            gauges: Gauges {
                running: of(Word::Running),
                waiting: of(Word::Waiting),
                swapped: of(Word::Swapped),
                kv_usage: of(Word::KvUsage),
                cpu_kv_usage: of(Word::CpuKvUsage),
            },
            counters: Counters {
                prefix_queries: of(Word::PrefixQueries),
                prefix_hits: of(Word::PrefixHits),
                preemptions: of(Word::Preemptions),
                prompt_tokens: of(Word::PromptTokens),
                generation_tokens: of(Word::GenerationTokens),
            },
            timings: Timings {
                ttft: timing(Word::Ttft),
                e2e: timing(Word::E2e),
                queue: timing(Word::Queue),
            },
            dropped: self.dropped,
        }
    }

    fn word(&self, names: &Names, word: Word) -> Option<f64> {
        let value = |name: &&str| {
            let value = self.values.get(*name).filter(|value| !value.broken)?;
            Some(match word.joined() {
                Joined::Sum => value.sum,
                Joined::Max => value.max,
            })
        };
        rules(names, word).find_map(|rule| rule.iter().map(value).sum())
    }

    fn timing(&self, names: &Names, word: Word) -> Option<SumCount> {
        rules(names, word).flatten().find_map(|name| {
            let part = |ending: &str| {
                let parts = self.values.iter();
                let mut parts =
                    parts.filter(|(found, _)| found.strip_prefix(*name) == Some(ending));
                parts.next().filter(|(_, value)| !value.broken).map(|(_, value)| value.sum)
            };
            Some(SumCount { sum_s: part("_sum")?, count: part("_count")? })
        })
    }
}

fn rules(names: &Names, word: Word) -> impl Iterator<Item = &'static [&'static str]> {
    let of_word = names.words.iter().filter(move |(found, _)| *found == word);
    of_word.flat_map(|(_, rules)| rules.iter().copied())
}

/// What a series is called in the rules.
fn key<'a>(series: &Series<'a>) -> &'a str {
    let labelled = LABELLED.iter().filter(|labelled| labelled.name == series.name);
    let mut fitting = labelled.filter(|it| series.label(it.label) == Some(it.value));
    fitting.next().map_or(series.name, |labelled| labelled.key)
}

fn is_known(name: &str) -> bool {
    let histogram = name.strip_suffix("_sum").or_else(|| name.strip_suffix("_count"));
    DIALECTS.iter().any(|names| {
        names.marks.contains(&name)
            || names.words.iter().any(|(word, rules)| {
                let wanted = if word.is_histogram() { histogram } else { Some(name) };
                wanted.is_some_and(|wanted| rules.iter().any(|rule| rule.contains(&wanted)))
            })
    })
}

fn is_later_rank(series: &Series<'_>, label: &str) -> bool {
    series.label(label).is_some_and(|rank| rank != "0")
}

#[cfg(test)]
mod tests;
