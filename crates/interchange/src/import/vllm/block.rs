//! The printed "Serving Benchmark Result", and what stands above it: the cap, the rate, the
//! progress bar, the command.

use inferometer_analysis::sheet::{Form, Sheet};

use super::field::{self, Field, Statistic, Written};
use super::lines::Line;
use super::vllm_sheet;

const HEADER: &str = "Serving Benchmark Result";
/// The least length of the line of `=` that ends a block; it is printed with 50.
const END_CHARS_MIN: usize = 20;

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

/// What was said since the last block, for the next one.
#[derive(Debug, Default)]
struct Above {
    settings: Vec<(u32, String, Field, Written)>,
    /// The total of the last progress bar.
    planned: Option<u64>,
    /// Of the last command that names one: several blocks may follow it.
    model: Option<String>,
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
            self.open = Some(self.above.opened(line.number));
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

    /// Ends a block that has no last line of its own.
    pub(crate) fn end_early(&mut self, line: u32) -> Option<Ended> {
        let mut open = self.open.take()?;
        field::note(&mut open.result, line, "the block has no end of its own");
        Some(open.ended())
    }
}

impl Above {
    fn read(&mut self, line: u32, text: &str) {
        if let Some((label, field, value)) =
            labelled(text).filter(|(_, field, _)| is_setting(field))
        {
            self.settings.retain(|(_, _, said, _)| *said != field);
            self.settings.extend(value.map(|value| (line, label.to_owned(), field, value)));
        }
        self.planned = progress_total(text).or(self.planned);
        if let Some(model) = model_named(text) {
            self.model = Some(model);
        }
    }

    /// A block below all this. What was said of one run is not said of the next.
    fn opened(&mut self, line: u32) -> Open {
        let mut result = vllm_sheet(Form::OldBlock, line);
        result.model.clone_from(&self.model);
        result.requests_planned = self.planned.take();
        for (line, label, field, value) in self.settings.drain(..) {
            place(&mut result, line, &label, field, &value);
        }
        Open { result, figures: 0, latencies: 0 }
    }
}

impl Open {
    fn read(&mut self, line: u32, text: &str) {
        match labelled(text) {
            Some((label, field, Some(value))) => {
                let is_latency = matches!(field, Field::Latency(..));
                if place(&mut self.result, line, label, field, &value) {
                    self.figures += 1;
                    self.latencies += usize::from(is_latency);
                }
            }
            Some((_, _, None)) => {}
            None => {
                if let Some((label, _)) = text.split_once(':') {
                    field::note(&mut self.result, line, &field::shown(label));
                }
            }
        }
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

fn place(result: &mut Sheet, line: u32, label: &str, field: Field, value: &Written) -> bool {
    match field::set(result, field, value) {
        Ok(()) => true,
        Err(reason) => {
            field::note(result, line, &format!("{label} {reason}"));
            false
        }
    }
}

fn is_setting(field: &Field) -> bool {
    matches!(field, Field::MaxConcurrency | Field::RequestRate | Field::Burstiness)
}

/// A line with a known label; its value is missing where the tool printed that there is none.
fn labelled(text: &str) -> Option<(&str, Field, Option<Written>)> {
    let (label, value) = text.split_once(':')?;
    let label = label.trim();
    let field = field_of(label)?;
    let value = value.split_whitespace().next().filter(|value| *value != "None");
    let value = value.map(|value| match value.parse() {
        Ok(number) => Written::Number(number),
        Err(_) => Written::Text(field::shown(value)),
    });
    Some((label, field, value))
}

fn field_of(label: &str) -> Option<Field> {
    if let Some((_, field)) = LABELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(label)) {
        return Some(field.clone());
    }
    let (statistic, latency) = label.strip_suffix(" (ms)")?.split_once(' ')?;
    Some(Field::Latency(field::latency_named(latency)?, Statistic::named(statistic)?))
}

/// The right side of `| 1015/2000 [`, of the last state of a progress bar.
fn progress_total(text: &str) -> Option<u64> {
    let (bar, _) = text.rsplit_once(" [")?;
    let (done, total) = bar.rsplit_once('|')?.1.trim().split_once('/')?;
    done.parse::<u64>().ok().and(total.parse().ok())
}

/// `--model NAME` of a command line, `model='NAME'` of the arguments that the tool prints.
fn model_named(text: &str) -> Option<String> {
    let quoted = text.split_once("(model='").or_else(|| text.split_once(" model='"));
    if let Some((_, rest)) = quoted {
        return rest.split_once('\'').map(|(name, _)| field::shown(name));
    }
    let flag = text.find("--model ").or_else(|| text.find("--model="))?;
    let name = text[flag + "--model ".len()..].split_whitespace().next()?;
    Some(field::shown(name.trim_matches(['\'', '"'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_bar_tells_how_many_were_planned() {
        assert_eq!(progress_total("100%|███| 1024/1024 [01:35<00:00, 10.68it/s]"), Some(1024));
        assert_eq!(progress_total(" 50%|█  | 9/2000 [a]\r 51%|█ | 1015/2000 [b]"), Some(2000));
        assert_eq!(progress_total("a | b/c [d]"), None);
        assert_eq!(progress_total("1/2"), None);
    }

    #[test]
    fn a_command_names_its_model() {
        let command = "python benchmark_serving.py --model org/name --tokenizer other";
        assert_eq!(model_named(command).as_deref(), Some("org/name"));
        assert_eq!(model_named("bench --model='org/name' -x").as_deref(), Some("org/name"));
        let arguments = "Namespace(backend='vllm', model='org/name', served_model_name='x')";
        assert_eq!(model_named(arguments).as_deref(), Some("org/name"));
        assert_eq!(model_named("--model-impl vllm"), None);
        assert_eq!(model_named("--model "), None);
    }

    #[test]
    fn labels_are_known_in_any_case_and_percentile() {
        let total = Some(Field::TotalTokenThroughput);
        assert_eq!(field_of("Total Token throughput (tok/s)"), total);
        assert_eq!(field_of("Total token throughput (tok/s)"), total);
        let rank = Statistic::Percentile("99.9".to_owned());
        assert_eq!(
            field_of("P99.9 E2EL (ms)"),
            Some(Field::Latency(inferometer_analysis::sheet::LatencyKind::E2e, rank))
        );
        assert_eq!(field_of("P101 E2EL (ms)"), None);
        assert_eq!(field_of("Pinf E2EL (ms)"), None);
        assert_eq!(field_of("Acceptance rate (%)"), None);
    }
}
