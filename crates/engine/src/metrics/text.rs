//! The Prometheus text format, to the letter as the Python client writes it: labels by name,
//! numbers as floats, and for each counter and histogram the time of its creation.

use std::fmt::Write as _;

/// A label's name and value; the value need not be escaped.
pub(super) type Label<'a> = (&'a str, &'a str);

/// Writes families of samples, one after the other.
pub(super) struct Exposition<'a> {
    out: &'a mut String,
    /// Every sample carries these.
    common: Vec<Label<'a>>,
    /// Unix seconds for the `_created` samples; without it there are none.
    created: Option<f64>,
}

impl<'a> Exposition<'a> {
    pub(super) fn new(out: &'a mut String, common: &[Label<'a>], created: Option<f64>) -> Self {
        Self { out, common: common.to_vec(), created }
    }

    /// From here on, samples carry these labels instead.
    pub(super) fn relabel(&mut self, common: &[Label<'a>]) {
        self.common = common.to_vec();
    }

    /// A family of gauges or counters; the names of counters end in `_total`.
    pub(super) fn samples(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: &[(&[Label<'_>], f64)],
    ) {
        self.family(name, help, kind);
        for (labels, value) in samples {
            self.sample(name, labels, *value);
        }
        if kind == COUNTER {
            let stem = name.strip_suffix("_total").unwrap_or(name);
            self.created(stem, help, samples.iter().map(|(labels, _)| *labels));
        }
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative() {
            self.sample(&bucket, &[("le", &number(bound))], count as f64);
        }
        self.sample(&format!("{name}_count"), &[], histogram.counts.iter().sum::<u64>() as f64);
        self.sample(&format!("{name}_sum"), &[], histogram.sum);
        self.created(name, help, [[].as_slice()]);
    }

    fn created<'b>(
        &mut self,
        stem: &str,
        help: &str,
        samples: impl IntoIterator<Item = &'b [Label<'b>]>,
    ) {
        let Some(unix_s) = self.created else { return };
        let name = format!("{stem}_created");
        self.family(&name, help, GAUGE);
        for labels in samples {
            self.sample(&name, labels, unix_s);
        }
    }

    fn family(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[Label<'_>], value: f64) {
        self.out.push_str(name);
        let mut labels: Vec<Label<'_>> = self.common.iter().chain(labels).copied().collect();
        labels.sort_unstable();
        for (index, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.out, "{}{label}=\"{text}\"", if index == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{end} {}", number(value));
    }
}

pub(super) const GAUGE: &str = "gauge";
pub(super) const COUNTER: &str = "counter";

/// The shortest digits that read back as `value`, always with a point or an exponent, and with an
/// exponent from a million on.
pub(super) fn number(value: f64) -> String {
    if value == f64::INFINITY {
        return "+Inf".to_owned();
    }
    if value >= 1e6 {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{mantissa}e+{exponent:0>2}");
    }
    let text = format!("{value:?}");
    match text.split_once("e-") {
        Some((mantissa, exponent)) => format!("{mantissa}e-{exponent:0>2}"),
        None => text,
    }
}

/// One, two and five times each power of ten, up to `most`: vLLM's bounds for counts of tokens.
pub(super) fn one_two_five(most: u32) -> Vec<f64> {
    let powers = std::iter::successors(Some(1.0), |power| Some(power * 10.0));
    powers
        .flat_map(|power| [power, 2.0 * power, 5.0 * power])
        .take_while(|bound| *bound <= f64::from(most))
        .collect()
}

/// Counts of observations up to each bound; all room is taken when it is made.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    /// Rising.
    bounds: Box<[f64]>,
    /// The count of each bucket by itself; the last one has no bound.
    counts: Box<[u64]>,
    sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &[f64]) -> Self {
        Self { bounds: bounds.into(), counts: vec![0; bounds.len() + 1].into(), sum: 0.0 }
    }

    /// A value that equals a bound lies below it.
    pub(super) fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    pub(super) fn observe_ns(&mut self, nanoseconds: u64) {
        // One division rounds once, so that 20 ms lies in the bucket up to 0.02.
        self.observe(nanoseconds as f64 / 1e9);
    }

    /// Bounds with the observations up to them, the unbounded bucket last.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = self.counts.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        });
        bounds.zip(counts)
    }
}

#[cfg(test)]
mod text_tests {
    use super::{COUNTER, Exposition, GAUGE, number};

    /// The right-hand sides are what Python's client prints for them.
    #[test]
    fn numbers_are_written_as_the_python_client_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (17.0, "17.0"),
            (0.001, "0.001"),
            (34.038_702_726_364_136, "34.038702726364136"),
            (0.000_815_054_999_293_352, "0.000815054999293352"),
            (5e-5, "5e-05"),
            (999_999.0, "999999.0"),
            (1e6, "1e+06"),
            (1_794_709_854.533_230_8, "1.7947098545332308e+09"),
            (4_661_874_688.0, "4.661874688e+09"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn label_values_are_escaped_and_labels_are_in_order_of_their_names() {
        let mut out = String::new();
        let mut exposition = Exposition::new(&mut out, &[("model_name", "a\"b\\c\nd")], None);
        exposition.samples(GAUGE, "g", "One.", &[(&[("z", "1"), ("le", "2")], 3.0)]);
        exposition.relabel(&[]);
        exposition.samples(GAUGE, "h", "Two.", &[(&[], 0.5)]);
        assert_eq!(
            out,
            "# HELP g One.\n# TYPE g gauge\n\
             g{le=\"2\",model_name=\"a\\\"b\\\\c\\nd\",z=\"1\"} 3.0\n\
             # HELP h Two.\n# TYPE h gauge\nh 0.5\n"
        );
    }

    #[test]
    fn a_counter_is_created_under_its_name_without_total() {
        let mut out = String::new();
        let mut exposition = Exposition::new(&mut out, &[], Some(2e9));
        exposition.samples(COUNTER, "c_total", "Some.", &[(&[], 7.0)]);
        assert_eq!(
            out,
            "# HELP c_total Some.\n# TYPE c_total counter\nc_total 7.0\n\
             # HELP c_created Some.\n# TYPE c_created gauge\nc_created 2e+09\n"
        );
    }
}

#[cfg(test)]
mod histogram_tests {
    use proptest::prelude::*;

    use super::super::pages::bounds;
    use super::{Histogram, one_two_five};

    #[test]
    fn a_value_on_a_bound_is_counted_up_to_it() {
        let mut histogram = Histogram::new(bounds("vllm", "inter_token").unwrap());
        histogram.observe_ns(25_000_000);
        histogram.observe_ns(25_000_001);
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).take(3).collect();
        assert_eq!(counts, [0, 1, 2]);
    }

    #[test]
    fn token_bounds_end_at_the_models_length() {
        assert!(one_two_five(0).is_empty());
        assert_eq!(one_two_five(2048).last(), Some(&2000.0));
        assert_eq!(one_two_five(100), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(one_two_five(u32::MAX).last(), Some(&2e9));
    }

    proptest! {
        #[test]
        fn buckets_rise_to_the_count_and_each_holds_what_is_below_its_bound(
            values in proptest::collection::vec(0.0..200.0_f64, 0..200),
        ) {
            let mut histogram = Histogram::new(bounds("vllm", "inter_token").unwrap());
            for value in &values {
                histogram.observe(*value);
            }
            let mut before = 0;
            for (bound, count) in histogram.cumulative() {
                prop_assert!(count >= before);
                prop_assert_eq!(count, values.iter().filter(|value| **value <= bound).count() as u64);
                before = count;
            }
            prop_assert_eq!(before, values.len() as u64);
            prop_assert!((histogram.sum - values.iter().sum::<f64>()).abs() < 1e-9);
        }
    }
}
