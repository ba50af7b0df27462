//! The Prometheus text format, to the letter as the Python client writes it: labels by name,
//! numbers as floats, and for each counter and histogram the moment of its making.

use std::fmt::Write as _;

use super::histogram::Histogram;

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

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.gauges(name, help, &[(&[], value)]);
    }

    pub(super) fn gauges(&mut self, name: &str, help: &str, samples: &[(&[Label<'_>], f64)]) {
        self.family(name, help, "gauge");
        for (labels, value) in samples {
            self.sample(name, labels, *value);
        }
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, &[(&[], value)]);
    }

    /// `name` ends in `_total`.
    pub(super) fn counters(&mut self, name: &str, help: &str, samples: &[(&[Label<'_>], u64)]) {
        self.family(name, help, "counter");
        for (labels, value) in samples {
            self.sample(name, labels, *value as f64);
        }
        let stem = name.strip_suffix("_total").unwrap_or(name);
        self.created(stem, help, samples.iter().map(|(labels, _)| *labels));
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative() {
            self.sample(&bucket, &[("le", &number(bound))], count as f64);
        }
        self.sample(&format!("{name}_count"), &[], histogram.count() as f64);
        self.sample(&format!("{name}_sum"), &[], histogram.sum());
        self.created(name, help, [[].as_slice()]);
    }

    fn created<'b>(
        &mut self,
        stem: &str,
        help: &str,
        samples: impl IntoIterator<Item = &'b [Label<'b>]>,
    ) {
        let Some(moment) = self.created else { return };
        let name = format!("{stem}_created");
        self.family(&name, help, "gauge");
        for labels in samples {
            self.sample(&name, labels, moment);
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
        for (place, (label, text)) in labels.iter().enumerate() {
            self.out.push(if place == 0 { '{' } else { ',' });
            self.out.push_str(label);
            self.out.push_str("=\"");
            escape(text, self.out);
            self.out.push('"');
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        self.out.push(' ');
        self.out.push_str(&number(value));
        self.out.push('\n');
    }
}

/// A label's value between its quotes.
fn escape(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::{Exposition, number};

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
        exposition.gauges("g", "One.", &[(&[("z", "1"), ("le", "2")], 3.0)]);
        exposition.relabel(&[]);
        exposition.gauge("h", "Two.", 0.5);
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
        Exposition::new(&mut out, &[], Some(2e9)).counter("c_total", "Some.", 7);
        assert_eq!(
            out,
            "# HELP c_total Some.\n# TYPE c_total counter\nc_total 7.0\n\
             # HELP c_created Some.\n# TYPE c_created gauge\nc_created 2e+09\n"
        );
    }
}
