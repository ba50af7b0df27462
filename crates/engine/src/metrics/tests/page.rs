//! Reads a page of metrics, without a line of the code that writes it.

use std::collections::{BTreeMap, BTreeSet};

/// One sample, read back.
#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// A page, read back: kinds of families, and samples that each belong to the family before them.
pub(super) fn parse(text: &str) -> (BTreeMap<String, String>, Vec<Sample>) {
    let mut kinds = BTreeMap::new();
    let mut samples = Vec::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            family = name.to_owned();
            assert_eq!(kinds.insert(family.clone(), kind.to_owned()), None, "{family} twice");
        } else if !line.starts_with("# HELP ") {
            let sample = parse_sample(line);
            let suffix = sample.name.strip_prefix(&family).expect(line);
            let suffixes: &[&str] =
                if kinds[&family] == "histogram" { &["_bucket", "_count", "_sum"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            samples.push(sample);
        }
    }
    (kinds, samples)
}

fn parse_sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).expect(line);
    let mut sample =
        Sample { name: line[..end].to_owned(), labels: BTreeMap::new(), value: f64::NAN };
    let mut rest = &line[end..];
    while let Some(inner) = rest.strip_prefix(['{', ',']) {
        let (label, quoted) = inner.split_once("=\"").expect(line);
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        loop {
            match letters.next().expect(line) {
                (at, '"') => {
                    rest = &quoted[at + 1..];
                    break;
                }
                (_, '\\') => match letters.next().expect(line).1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        }
        assert_eq!(sample.labels.insert(label.to_owned(), value), None, "{line}");
        rest = rest.strip_prefix('}').unwrap_or(rest);
    }
    sample.value = rest.strip_prefix(' ').expect(line).parse().expect(line);
    sample
}

/// Whatever happened, a histogram's buckets rise to its count.
pub(super) fn assert_histograms_hold(text: &str) {
    let (kinds, samples) = parse(text);
    for (name, _) in kinds.iter().filter(|(_, kind)| *kind == "histogram") {
        let buckets: Vec<&Sample> =
            samples.iter().filter(|sample| sample.name == format!("{name}_bucket")).collect();
        assert!(buckets.is_sorted_by(|a, b| a.value <= b.value), "{name}");
        let bounds: Vec<f64> =
            buckets.iter().map(|bucket| bucket.labels["le"].parse().unwrap()).collect();
        assert!(bounds.is_sorted_by(|a, b| a < b), "{name}");
        assert_eq!(bounds.last(), Some(&f64::INFINITY), "{name}");
        let count = samples.iter().find(|sample| sample.name == format!("{name}_count")).unwrap();
        assert_eq!(buckets.last().unwrap().value.to_bits(), count.value.to_bits(), "{name}");
    }
}

pub(super) fn assert_lines(text: &str, expected: &[&str]) {
    let lines: BTreeSet<&str> = text.lines().collect();
    for line in expected {
        assert!(lines.contains(line), "no line {line:?} in\n{text}");
    }
}

/// The values of `NAME_sum` and `NAME_count`.
pub(super) fn sum_and_count(text: &str, name: &str) -> (f64, f64) {
    let (_, samples) = parse(text);
    let value = |suffix: &str| {
        let full = format!("{name}{suffix}");
        samples.iter().find(|sample| sample.name == full).expect(&full).value
    };
    (value("_sum"), value("_count"))
}
