//! From Prometheus text to our vocabulary: one pass, bounded, and nothing made up.

#[cfg(test)]
mod tests;
use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;
use std::time::Duration;

use inferometer_model::Moment;
use serde::Deserialize;

use inferometer_model::telemetry::{
    Counters, Dialect, Gauges, MissReason, SpeculationCounters, SumCount, TelemetrySample, Timings,
};

/// A server that has more to say is not one that we know.
const SERIES_MAX: usize = 200_000;

/// Reads a whole answer, whose moment is the caller's to add, or returns why it is of no use.
pub(super) fn read(body: &[u8]) -> Result<TelemetrySample, MissReason> {
    let text = std::str::from_utf8(body).map_err(|_error| MissReason::NotPrometheus)?;
    let mut scraped = ScrapedValues::default();
    let (mut series_count, mut malformed) = (0_usize, 0_usize);
    for line in lines(text) {
        match line {
            Line::Series(series) => {
                series_count += 1;
                scraped.add(&series);
            }
            Line::Malformed => malformed += 1,
        }
        if SERIES_MAX < series_count + malformed {
            return Err(MissReason::TooLarge);
        }
    }
    // A stray line is a mistake; a page in which they prevail is something else.
    if series_count <= malformed {
        return Err(MissReason::NotPrometheus);
    }
    let is_marked =
        |server: &&Server| server.marks.split(' ').any(|mark| scraped.values.contains_key(mark));
    let found = VOCABULARY.servers.iter().find(is_marked).ok_or(MissReason::NoKnownName)?;
    Ok(scraped.reading(found.dialect, &VOCABULARY.names[&found.names]))
}

/// The reply of Prometheus' query API as the text that the servers themselves would have sent.
pub(super) fn query_result(body: &[u8]) -> Result<String, MissReason> {
    #[derive(Deserialize)]
    struct Reply {
        data: Vector,
    }
    #[derive(Deserialize)]
    struct Vector {
        result: Vec<Found>,
    }
    #[derive(Deserialize)]
    struct Found {
        metric: BTreeMap<String, String>,
        value: (f64, String),
    }
    let reply: Reply = serde_json::from_slice(body).map_err(|_error| MissReason::NotPrometheus)?;
    let mut text = String::new();
    for Found { mut metric, value: (_, value) } in reply.data.result {
        let name = metric.remove("__name__").unwrap_or_default();
        let escaped =
            |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels = metric.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
        let labels: Vec<String> = labels.collect();
        let line = format!("{name}{{{}}} {value}", labels.join(","));
        // Whatever is in it, a series is one line.
        text.extend(line.split(['\n', '\r']));
        text.push('\n');
    }
    Ok(text)
}

/// The values of names that some table knows; the keys are the tables' own.
#[derive(Debug, Default)]
struct ScrapedValues<'a> {
    values: BTreeMap<&'a str, Value>,
    /// By name and labels, to find duplicates.
    seen: BTreeMap<(&'a str, &'a str), f64>,
    process_start_s: Option<f64>,
    /// Tokens accepted at each position of a draft.
    by_position: Vec<f64>,
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

impl<'a> ScrapedValues<'a> {
    fn add(&mut self, series: &Series<'a>) {
        if series.name == PROCESS_START {
            self.process_start_s = Some(series.value).filter(|value| value.is_finite());
            return;
        }
        let name = key(series);
        let is_later = |rank: &&str| series.label(rank).is_some_and(|rank| rank != "0");
        if !KNOWN.contains(name) || RANK_LABELS.iter().any(is_later) {
            return;
        }
        let none = Value { sum: 0.0, max: 0.0, broken: false };
        let value = self.values.entry(name).or_insert(none);
        // A series has one value; repeated it counts once, and of two different values neither is used.
        if let Some(seen) = self.seen.insert((name, series.labels()), series.value) {
            self.dropped = self.dropped.saturating_add(1);
            value.broken |= seen.to_bits() != series.value.to_bits();
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
        if BY_POSITION.iter().any(|ending| name.ends_with(ending)) {
            self.add_position(series);
        }
    }

    /// Adds the tokens accepted at one position of a draft; positions beyond the bound are dropped.
    fn add_position(&mut self, series: &Series<'a>) {
        const POSITIONS_MAX: usize = 64;
        let position = series.label("position").and_then(|position| position.parse().ok());
        let Some(position) = position.filter(|position: &usize| *position < POSITIONS_MAX) else {
            self.dropped = self.dropped.saturating_add(1);
            return;
        };
        if self.by_position.len() <= position {
            self.by_position.resize(position + 1, 0.0);
        }
        self.by_position[position] += series.value;
    }

    fn reading(&self, dialect: Dialect, names: &Names) -> TelemetrySample {
        let of = |word| self.word(names, word);
        let timing = |word| self.timing(names, word);
        TelemetrySample {
            at: Moment::ZERO,
            took: Duration::ZERO,
            dialect,
            process_start_s: self.process_start_s,
            gauges: Gauges {
                running: of("running"),
                waiting: of("waiting"),
                swapped: of("swapped"),
                kv_usage: of("kv_usage"),
                cpu_kv_usage: of("cpu_kv_usage"),
            },
            counters: Counters {
                prefix_queries: of("prefix_queries"),
                prefix_hits: of("prefix_hits"),
                preemptions: of("preemptions"),
                prompt_tokens: of("prompt_tokens"),
                generation_tokens: of("generation_tokens"),
            },
            timings: Timings { ttft: timing("ttft"), e2e: timing("e2e"), queue: timing("queue") },
            speculation: self.speculation(names).map(Box::new),
            dropped: self.dropped,
        }
    }

    /// `None` where the server does not speculate: then it has no such series, or they are empty.
    fn speculation(&self, names: &Names) -> Option<SpeculationCounters> {
        let of = |word| self.word(names, word);
        let found = SpeculationCounters {
            steps: of("speculation_steps"),
            drafted: of("drafted"),
            accepted: of("accepted"),
            // A broken position makes all of them unknown.
            by_position: of("accepted_at").map_or_else(Vec::new, |_| self.by_position.clone()),
        };
        (found != SpeculationCounters::default()).then_some(found)
    }

    fn word(&self, names: &Names, word: &str) -> Option<f64> {
        let value = |name: &str| {
            let value = self.values.get(name).filter(|value| !value.broken)?;
            // The fullest engine is the one that preempts; a mean over engines would hide it.
            let is_fullest = word.ends_with("kv_usage");
            Some(if is_fullest { value.max } else { value.sum })
        };
        names.get(word)?.split(' ').find_map(|rule| rule.split('+').map(value).sum())
    }

    fn timing(&self, names: &Names, word: &str) -> Option<SumCount> {
        let name = names.get(word)?.split(' ').next()?;
        let part = |ending: &str| {
            let value = self.values.get(format!("{name}{ending}").as_str())?;
            (!value.broken).then_some(value.sum)
        };
        Some(SumCount { sum_s: part("_sum")?, count: part("_count")? })
    }
}

/// What a series is called in the rules.
fn key<'a>(series: &Series<'a>) -> &'a str {
    let is_it = |(key, label, value): &&(&str, &str, &str)| {
        key.split_once('/').is_some_and(|(name, _)| name == series.name)
            && series.label(label) == Some(value)
    };
    LABELLED.iter().find(is_it).map_or(series.name, |(key, ..)| key)
}

/// All names that some rule asks for.
static KNOWN: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut known = HashSet::new();
    for server in &VOCABULARY.servers {
        known.extend(server.marks.split(' ').map(str::to_owned));
    }
    for (word, rules) in VOCABULARY.names.values().flatten() {
        let endings: &[&str] =
            if HISTOGRAMS.contains(&word.as_str()) { &["_sum", "_count"] } else { &[""] };
        for name in rules.split([' ', '+']) {
            known.extend(endings.iter().map(|ending| format!("{name}{ending}")));
        }
    }
    known
});

/// Start time of the process, as the usual client libraries name it.
const PROCESS_START: &str = "process_start_time_seconds";

/// Labels that number the parts of one engine. Every part counts the same requests, so only the
/// first of them is read; parallel engines (`engine`, `dp_rank`) are added up.
const RANK_LABELS: [&str; 2] = ["tp_rank", "pp_rank"];

/// Names under which several things are distinguished by a label: what such a thing is called in
/// the rules, which begins with the name, the label, and its value.
const LABELLED: [(&str, &str, &str); 4] = [
    ("nv_trt_llm_request_metrics/scheduled", "request_type", "scheduled"),
    ("nv_trt_llm_request_metrics/active", "request_type", "active"),
    ("nv_trt_llm_request_metrics/waiting", "request_type", "waiting"),
    ("nv_trt_llm_kv_cache_block_metrics/fraction", "kv_cache_block_type", "fraction"),
];

/// Endings of the names whose series are numbered by a label `position`.
const BY_POSITION: [&str; 2] = ["accepted_tokens_per_pos_total", "accepted_tokens_per_pos"];

/// Words whose names have `_sum` and `_count` behind them.
const HISTOGRAMS: [&str; 3] = ["ttft", "e2e", "queue"];

/// The names of every server, in the order in which they are tried.
static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    toml::from_str(include_str!("names.toml")).expect("a test reads the embedded table")
});

#[derive(Deserialize)]
struct Vocabulary {
    #[serde(rename = "server")]
    servers: Vec<Server>,
    names: BTreeMap<String, Names>,
}

/// One server, or one generation of it.
#[derive(Deserialize)]
struct Server {
    dialect: Dialect,
    /// Names of which one tells the dialect.
    marks: String,
    /// The key of its names.
    names: String,
}

/// Words of ours, each with the rules that are tried for it in turn.
type Names = BTreeMap<String, String>;

/// One series with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    labels: &'a str,
    /// May be NaN or infinite: what that means depends on the name.
    pub(crate) value: f64,
}

/// A line with content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Line<'a> {
    Series(Series<'a>),
    Malformed,
}

pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines()
        .map(|line| line.trim_matches([' ', '\t', '\r']))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| series(line).map_or(Line::Malformed, Line::Series))
}

impl<'a> Series<'a> {
    /// All labels as they stand there.
    pub(crate) fn labels(&self) -> &'a str {
        self.labels
    }

    /// The value of a label as written, with its escapes.
    pub(crate) fn label(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.labels;
        while let Some(Label { name: found, value, rest: after }) = label(rest) {
            if found == name {
                return Some(value);
            }
            rest = after;
        }
        None
    }
}

fn series(line: &str) -> Option<Series<'_>> {
    let name_end = line.find(|letter| !is_name_letter(letter)).unwrap_or(line.len());
    let (name, rest) = line.split_at(name_end);
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let (labels, rest) = match rest.trim_start().strip_prefix('{') {
        Some(inside) => inside.split_at_checked(labels_end(inside)?)?,
        None => ("", rest),
    };
    let mut words = rest.trim_start_matches('}').split_ascii_whitespace();
    let value = words.next()?.parse().ok()?;
    let is_timestamp = |word: &str| word.parse::<f64>().is_ok();
    // Behind the number there is nothing, a timestamp, or an exemplar.
    match words.next() {
        None | Some("#") => Some(Series { name, labels, value }),
        Some(word) if is_timestamp(word) => Some(Series { name, labels, value }),
        Some(_) => None,
    }
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'
}

/// Where the closing brace is; `None` when the labels are not what they should be.
fn labels_end(inside: &str) -> Option<usize> {
    let mut rest = inside;
    while let Some(found) = label(rest) {
        rest = found.rest;
    }
    let rest = rest.trim_start();
    rest.starts_with('}').then(|| inside.len() - rest.len())
}

struct Label<'a> {
    name: &'a str,
    value: &'a str,
    rest: &'a str,
}

/// The next `name="value"`, and what is behind it and its comma.
fn label(text: &str) -> Option<Label<'_>> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || !name.chars().all(is_name_letter) {
        return None;
    }
    let rest = rest.trim_start().strip_prefix('"')?;
    let mut escaped = false;
    let end = rest.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })?;
    let (value, rest) = rest.split_at_checked(end)?;
    let rest = rest.strip_prefix('"')?.trim_start();
    Some(Label { name, value, rest: rest.strip_prefix(',').unwrap_or(rest) })
}

#[cfg(test)]
mod text_tests {
    use proptest::prelude::*;

    use super::*;

    fn only(line: &str) -> Option<(&str, f64)> {
        match lines(line).collect::<Vec<_>>()[..] {
            [Line::Series(series)] => Some((series.name, series.value)),
            [Line::Malformed] => None,
            ref others => panic!("{line}: {others:?}"),
        }
    }

    #[test]
    fn a_series_has_a_name_and_a_number() {
        for (line, expected) in [
            ("a 1", ("a", 1.0)),
            ("vllm:x{engine=\"0\",model=\"m\"} 2.5e+06", ("vllm:x", 2_500_000.0)),
            ("x{} 1 1767323045500", ("x", 1.0)),
            ("x {a=\"b\",} -3.0 ", ("x", -3.0)),
            ("x{a=\"}{,\\\"\\\\\"} 4", ("x", 4.0)),
            ("x_bucket{le=\"+Inf\"} 7 # {trace=\"t\"} 0.5 1767323045.5", ("x_bucket", 7.0)),
            ("x +Inf", ("x", f64::INFINITY)),
        ] {
            assert_eq!(only(line), Some(expected), "{line}");
        }
        assert!(only("x NaN").unwrap().1.is_nan());
    }

    #[test]
    fn what_is_no_series_is_malformed() {
        for line in [
            "x",
            "x one",
            "1x 1",
            "{a=\"b\"} 1",
            "x{a=\"b\" 1",
            "x{a=b} 1",
            "x{a=\"b} 1",
            "x{a} 1",
            "<html> 1",
            "x 1 later",
            "{\"x\": 1}",
        ] {
            assert_eq!(only(line), None, "{line}");
        }
        assert_eq!(lines("# HELP x Words { \" }\n# TYPE x gauge\n\n \r\n# EOF\n").count(), 0);
    }

    #[test]
    fn labels_are_found_by_their_whole_name() {
        let line = r#"x{engine="0",tp_rank="1",path="a\"b,rank=\"9\""} 1"#;
        let Some(Line::Series(series)) = lines(line).next() else { panic!("{line}") };
        assert_eq!(series.label("tp_rank"), Some("1"));
        assert_eq!(series.label("rank"), None);
        assert_eq!(series.label("path"), Some(r#"a\"b,rank=\"9\""#));
    }

    /// A character that the grammar gives a meaning to, or any other.
    fn letters() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof![
                proptest::sample::select("x:_{}=\",\\# \n\r\t0.e+N".chars().collect::<Vec<_>>()),
                any::<char>(),
            ],
            0..60,
        )
        .prop_map(|letters| letters.into_iter().collect())
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in letters()) {
            for line in lines(&text) {
                if let Line::Series(series) = line {
                    prop_assert!(!series.name.is_empty() && text.contains(series.name));
                    series.label("engine");
                }
            }
        }

        #[test]
        fn what_is_written_is_read(
            name in "[a-z_:][a-z0-9_:]{0,12}",
            label in "[a-z_]{1,6}",
            text in letters(),
            value in any::<f64>(),
            stamp in any::<Option<u32>>(),
        ) {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // A line ends at a carriage return only together with a line feed, and there is none.
            let stamp = stamp.map_or_else(String::new, |stamp| format!(" {stamp}"));
            let line = format!("{name}{{{label}=\"{escaped}\"}} {value}{stamp}");
            let found: Vec<Line<'_>> = lines(&line).collect();
            let [Line::Series(series)] = found[..] else { panic!("{line}: {found:?}") };
            prop_assert_eq!(series.name, name.as_str());
            prop_assert_eq!(series.label(&label), Some(escaped.as_str()));
            prop_assert_eq!(series.value.to_bits(), value.to_bits());
        }

        #[test]
        fn a_cut_loses_at_most_the_line_that_it_cuts(cut in 0..90_usize) {
            let whole = "# HELP a b\na{x=\"1\"} 1\nb{y=\"q\\\"\"} 22.5 17 # {t=\"u\"} 1\nc 3.25e2\nd NaN\n";
            let Some(text) = whole.get(..cut.min(whole.len())) else { return Ok(()) };
            let complete = text.rfind('\n').map_or("", |end| &text[..end]);
            let names = |text| lines(text).filter_map(|line| match line {
                Line::Series(series) => Some((series.name, series.value.to_bits())),
                Line::Malformed => None,
            }).collect::<Vec<_>>();
            let (of_whole, of_text, of_complete) = (names(whole), names(text), names(complete));
            prop_assert!(of_whole.starts_with(&of_complete));
            prop_assert!(of_text.starts_with(&of_complete));
            prop_assert!(of_text.len() <= of_complete.len() + 1);
        }
    }
}
