//! Prometheus text, taken apart line by line: pure, borrowed, and indifferent to what it is fed.
//!
//! A line is `name{label="value",…} number [timestamp] [# exemplar]`. Comments and empty lines are
//! passed over, as are timestamps and exemplars.

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
mod tests {
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
