//! The printed "Serving Benchmark Result".

use inferometer_analysis::sheet::{Form, Sheet, further};

use super::above::Above;
use super::field::{self, Field, Scale, Written};
use super::lines::Line;
use super::vllm_sheet;
use crate::import::value::shown;

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
    result: Sheet,
    figures: usize,
    latencies: usize,
}

/// A block that has ended; the line of one without a single figure.
pub(crate) type Ended = Result<Sheet, u32>;

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

    /// What stands above the results that come now.
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
                    && label != further::POSITIONS_LABEL
                {
                    field::note(&mut self.result, line, &shown(label));
                }
            }
        }
    }

    /// The total changed its letter after failures had got their line, and stands below them.
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
    result: &mut Sheet,
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
        return Some(Field::Further(further::position_key(position), Scale::PerCent));
    }
    field::further_named(|figure| figure.label.eq_ignore_ascii_case(label)).or_else(|| {
        let (statistic, latency) = label.strip_suffix(" (ms)")?.split_once(' ')?;
        field::statistic_named(latency, statistic)
    })
}

#[cfg(test)]
mod tests {
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
        let further = |key: &str| Some(Field::Further(key.to_owned(), Scale::AsWritten));
        assert_eq!(field_of("Acceptance rate (%)"), further("spec_decode_acceptance_rate"));
        assert_eq!(field_of("Median probe E2EL (ms)"), further("probe_median_e2el_ms"));
        assert_eq!(field_of("P90 Client Queue Time (ms)"), further("p90_client_queue_time_ms"));
        assert_eq!(field_of("Position 4000000000"), None);
        assert_eq!(field_of("Cost (EUR)"), None);
    }
}
