//! The printed "Serving Benchmark Result".

use std::borrow::Cow;

use inferometer_analysis::tool_result::{Form, ToolResult, extra};

use super::above::Above;
use super::field::{self, Field, Scale, Written};
use super::vllm_sheet;
use crate::import::mapping::shown;

const HEADER: &str = "Serving Benchmark Result";
/// The least length of the line of `=` that ends a block; it is printed with 50.
const END_CHARS_MIN: usize = 20;
const POSITIONS_MAX: usize = 128;

/// Old and new labels; their case changed between versions.
const LABELS: [(&str, Field); 15] = [
    ("Successful requests", Field::Completed),
    ("Failed requests", Field::Failed),
    ("Maximum request concurrency", Field::MaxConcurrency),
    ("Request rate configured (RPS)", Field::RequestRate),
    ("Traffic request rate", Field::RequestRate),
    ("Burstiness factor", Field::Burstiness),
    ("Benchmark duration (s)", Field::Duration),
    ("Total input tokens", Field::InputTokens),
    ("Total generated tokens", Field::OutputTokens),
    ("Request throughput (req/s)", Field::RequestThroughput),
    ("Request goodput (req/s)", Field::RequestGoodput),
    ("Output token throughput (tok/s)", Field::OutputThroughput),
    ("Peak output token throughput (tok/s)", Field::PeakOutputThroughput),
    ("Peak concurrent requests", Field::PeakConcurrentRequests),
    ("Total token throughput (tok/s)", Field::TotalTokenThroughput),
];

/// Reads blocks from the lines that it is given, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    above: Above,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    result: ToolResult,
    figures: usize,
    latencies: usize,
}

/// A block that has ended; the line of one without a single figure.
pub(crate) type Ended = Result<ToolResult, u32>;

impl Blocks {
    /// A block that this line ends, if it does.
    pub(crate) fn read(&mut self, line: Line<'_>) -> Option<Ended> {
        let text = line.text.trim();
        if text.contains(HEADER) && text.contains("==") {
            let ended = self.end_early(line.number);
            let mut result = vllm_sheet(Form::OldBlock, line.number);
            result.source.simulated = text.contains("(simulated)");
            self.above.tell(&mut result);
            self.open = Some(Open { result, figures: 0, latencies: 0 });
            return ended;
        }
        let Some(open) = &mut self.open else {
            self.above.read(line.number, text);
            return None;
        };
        if text.len() >= END_CHARS_MIN && text.bytes().all(|byte| byte == b'=') {
            return self.open.take().map(Open::ended);
        }
        if text.starts_with("```") || open.is_over_at(text) {
            let ended = self.end_early(line.number);
            self.above.read(line.number, text);
            return ended;
        }
        open.read(line.number, text);
        None
    }

    /// What is above the results that come now.
    pub(crate) fn above(&self) -> &Above {
        &self.above
    }

    /// Ends a block that has no last line of its own.
    pub(crate) fn end_early(&mut self, line: u32) -> Option<Ended> {
        let mut open = self.open.take()?;
        field::note(&mut open.result, line, "the block has no end of its own");
        Some(open.ended())
    }
}

impl Open {
    fn read(&mut self, line: u32, text: &str) {
        match labelled(text) {
            Some((label, field, Some(value))) => {
                self.date(label);
                let is_latency = matches!(field, Field::Latency(..));
                if place(&mut self.result, line, label, field, &value) {
                    self.figures += 1;
                    self.latencies += usize::from(is_latency);
                }
            }
            Some((_, _, None)) => {}
            None => {
                if let Some((label, _)) = text.split_once(':')
                    && label != extra::POSITIONS_LABEL
                {
                    field::note(&mut self.result, line, &shown(label));
                }
            }
        }
    }

    /// The total changed its letter after failures had got their line, and is below them.
    fn date(&mut self, label: &str) {
        self.result.source.form = match label {
            "Failed requests" | "Total token throughput (tok/s)" => Form::Block,
            "Total Token throughput (tok/s)" => Form::OldBlock,
            _ => return,
        };
    }

    /// Settings are printed above the latencies: behind them they are those of the next run.
    fn is_over_at(&self, text: &str) -> bool {
        self.latencies > 0 && labelled(text).is_some_and(|(_, field, _)| is_setting(&field))
    }

    fn ended(mut self) -> Ended {
        if self.figures == 0 {
            return Err(self.result.source.line.unwrap_or(0));
        }
        // A bar of something else, such as the loading of weights, stood above this block.
        if self.result.requests_planned < self.result.completed {
            self.result.requests_planned = None;
        }
        Ok(self.result)
    }
}

pub(crate) fn place(
    result: &mut ToolResult,
    line: u32,
    label: &str,
    field: Field,
    value: &Written,
) -> bool {
    match field::set(result, field, value) {
        Ok(()) => true,
        Err(reason) => {
            field::note(result, line, &format!("{label} {reason}"));
            false
        }
    }
}

pub(crate) fn is_setting(field: &Field) -> bool {
    matches!(field, Field::MaxConcurrency | Field::RequestRate | Field::Burstiness)
}

/// A line with a known label; its value is missing where the tool printed that there is none.
pub(crate) fn labelled(text: &str) -> Option<(&str, Field, Option<Written>)> {
    let (label, value) = text.split_once(':')?;
    let label = label.trim();
    let field = field_of(label)?;
    let value = value.split_whitespace().next().filter(|value| *value != "None");
    let value = value.map(|value| match value.parse() {
        Ok(number) => Written::Number(number),
        Err(_) => Written::Text(shown(value)),
    });
    Some((label, field, value))
}

fn field_of(label: &str) -> Option<Field> {
    if let Some((_, field)) = LABELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(label)) {
        return Some(field.clone());
    }
    if let Some(position) = label.strip_prefix("Position ") {
        let position = position.parse().ok().filter(|position| *position < POSITIONS_MAX)?;
        return Some(Field::ExtraFigure(extra::position_key(position), Scale::PerCent));
    }
    field::further_named(|figure| figure.label.eq_ignore_ascii_case(label)).or_else(|| {
        let (statistic, latency) = label.strip_suffix(" (ms)")?.split_once(' ')?;
        field::statistic_named(latency, statistic)
    })
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: u32,
    /// Where it begins in the text.
    pub(crate) start: usize,
    pub(crate) text: &'a str,
}

#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    at: usize,
    /// The end of the line that was given last: after a jump inside of it, it need not be sought again.
    end: usize,
    number: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, end: 0, number: 1 }
    }

    /// Number of the line that comes next.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Goes on at a place behind the last line's beginning; the rest of its line is the next line.
    pub(crate) fn jump(&mut self, from: Line<'_>, place: usize) {
        let passed = self.text[from.start..place].bytes().filter(|byte| *byte == b'\n').count();
        self.number = from.number.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
        self.at = place;
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        if self.at == 0 || self.at > self.end {
            self.end = self.at + rest.find('\n').unwrap_or(rest.len());
        }
        let text = self.text[self.at..self.end].trim_end_matches('\r');
        let line = Line { number: self.number, start: self.at, text };
        self.at = (self.end + 1).min(self.text.len());
        self.number = self.number.saturating_add(1);
        Some(line)
    }
}

/// Puts Python's bare `NaN` and `Infinity` into quotes: its JSON writer leaves them so, no JSON
/// reader takes them, and a record must not be lost for one of its figures.
pub(crate) fn quote_bare_words(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut quoted = String::with_capacity(text.len() + 64);
    let mut before = ' ';
    for line in text.split_inclusive('\n') {
        before = quote_in_line(line, before, &mut quoted);
    }
    Cow::Owned(quoted)
}

/// Given and gives the last character that is no space: in an indented list a word is alone on
/// its line. No string spans lines.
fn quote_in_line(line: &str, mut before: char, quoted: &mut String) -> char {
    let mut in_string = false;
    let mut escaped = false;
    let mut skip_to = 0;
    for (place, c) in line.char_indices() {
        if place < skip_to {
            continue;
        }
        let word = (!in_string && [':', ',', '['].contains(&before))
            .then(|| {
                ["-Infinity", "Infinity", "NaN"]
                    .into_iter()
                    .find(|word| line[place..].starts_with(word))
            })
            .flatten();
        if let Some(word) = word {
            quoted.extend(["\"", word, "\""]);
            skip_to = place + word.len();
            before = '"';
            continue;
        }
        quoted.push(c);
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && c == '\\' && !escaped;
        if !c.is_whitespace() {
            before = c;
        }
    }
    before
}

#[cfg(test)]
mod block_tests {
    use super::*;

    #[test]
    fn labels_are_known_in_any_case_and_percentile() {
        let total = Some(Field::TotalTokenThroughput);
        assert_eq!(field_of("Total Token throughput (tok/s)"), total);
        assert_eq!(field_of("Total token throughput (tok/s)"), total);
        let rank = field::statistic_named("e2el", "p99.9");
        assert!(rank.is_some());
        assert_eq!(field_of("P99.9 E2EL (ms)"), rank);
        assert_eq!(field_of("P101 E2EL (ms)"), None);
        assert_eq!(field_of("Pinf E2EL (ms)"), None);
        let further = |key: &str| Some(Field::ExtraFigure(key.to_owned(), Scale::AsWritten));
        assert_eq!(field_of("Acceptance rate (%)"), further("spec_decode_acceptance_rate"));
        assert_eq!(field_of("Median probe E2EL (ms)"), further("probe_median_e2el_ms"));
        assert_eq!(field_of("P90 Client Queue Time (ms)"), further("p90_client_queue_time_ms"));
        assert_eq!(field_of("Position 4000000000"), None);
        assert_eq!(field_of("Cost (EUR)"), None);
    }
}

#[cfg(test)]
mod lines_tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_over_a_jump() {
        let text = "a\r\nb {\n\n} c\nd";
        let mut lines = Lines::new(text);
        assert_eq!(lines.next().unwrap().text, "a");
        let second = lines.next().unwrap();
        assert_eq!((second.number, second.text), (2, "b {"));
        lines.jump(second, text.find('}').unwrap() + 1);
        let rest = lines.next().unwrap();
        assert_eq!((rest.number, rest.text), (4, " c"));
        let last = lines.next().unwrap();
        assert_eq!((last.number, last.text), (5, "d"));
        assert!(lines.next().is_none());
    }

    #[test]
    fn only_bare_words_are_quoted() {
        let text =
            "{\"a\": NaN, \"b\": [-Infinity,Infinity], \"NaN\": \"x\\\": NaN\"}\n\" 5: Infinity";
        let expected = "{\"a\": \"NaN\", \"b\": [\"-Infinity\",\"Infinity\"], \"NaN\": \"x\\\": NaN\"}\n\" 5: Infinity";
        assert_eq!(quote_bare_words(text), expected);
        assert!(matches!(quote_bare_words("{\"a\": 1}"), Cow::Borrowed(_)));
        let indented = "{\"a\": [\n  1,\n  NaN,\n  -Infinity\n],\n\"b\":\nInfinity}\nNaN";
        let expected =
            "{\"a\": [\n  1,\n  \"NaN\",\n  \"-Infinity\"\n],\n\"b\":\n\"Infinity\"}\nNaN";
        assert_eq!(quote_bare_words(indented), expected);
    }
}
