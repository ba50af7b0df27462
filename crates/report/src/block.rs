//! The "Serving Benchmark Result" block, with the definitions of the tool that prints it.
//!
//! Scripts grep its labels, so labels, widths and order are exactly theirs. What is missing is
//! `nan`, which their parsers read as a number that is none; it is never zero.

use std::fmt::Write;

use inferometer_analysis::Summary;
use inferometer_analysis::tool_result::extra::{self, ExtraFigure, Printed};
use inferometer_analysis::tool_result::{
    CountsFrom, Form, LatencyKind, ResultLatency, ResultRate, ToolResult,
};

use crate::escape::terminal;

const WIDTH: usize = 50;
const LABEL_WIDTH: usize = 40;
const VALUE_WIDTH: usize = 10;
const SIMULATED: &str = "SIMULATED, no server was measured";

/// What a block is asked to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub labels: Labels,
    /// Each is a section, in the tool's order whatever the order here.
    pub latencies: Vec<LatencyKind>,
    /// Ranks as they are to be written, such as `99` or `99.9`, in their order.
    pub percentiles: Vec<String>,
}

/// The lines of a block changed over the years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// vLLM v0.7 to v0.10.
    Old,
    /// v0.11 and v0.12: the load and the peaks as well.
    Between,
    /// Since: failed requests, and “Total token throughput” without a capital.
    New,
}

impl Default for Asked {
    /// As the tool prints a block when nothing is asked of it.
    fn default() -> Self {
        Self {
            labels: Labels::New,
            latencies: vec![LatencyKind::Ttft, LatencyKind::Tpot, LatencyKind::Itl],
            percentiles: vec!["99".to_owned()],
        }
    }
}

impl Asked {
    /// All that a sheet has, in the labels that it was read in.
    ///
    /// A median is a line of its own; it stands among the percentiles where it did before.
    pub fn all_of(sheet: &ToolResult) -> Self {
        let between = sheet.failed.is_some() || sheet.peak_concurrent_requests.is_some();
        let labels = match sheet.source.form {
            Form::OldBlock if between => Labels::Between,
            Form::OldBlock => Labels::Old,
            Form::Run | Form::Document | Form::Requests | Form::Block => Labels::New,
        };
        let has = |kind: &LatencyKind| as_the_tool_counts(sheet, *kind).is_some();
        let latencies: Vec<_> = SECTIONS.map(|(kind, ..)| kind).into_iter().filter(has).collect();
        let mut percentiles: Vec<String> = latencies
            .iter()
            .filter_map(|kind| as_the_tool_counts(sheet, *kind))
            .flat_map(|latency| {
                let is_told = |rank: &&String| latency.has_p50 || *rank != "50";
                latency.percentiles_ms.keys().filter(is_told)
            })
            .cloned()
            .collect();
        let height = |rank: &str| rank.parse::<f64>().unwrap_or(f64::INFINITY);
        percentiles.sort_by(|a, b| height(a).total_cmp(&height(b)).then_with(|| a.cmp(b)));
        percentiles.dedup();
        Self { labels, latencies, percentiles }
    }
}

/// A run of ours in the labels of the oldest blocks, which are the ones most published.
pub fn render(summary: &Summary) -> String {
    let asked = Asked { labels: Labels::Old, ..Asked::default() };
    let block = of_sheet(&ToolResult::of_vllm(summary), &asked);
    match &summary.run.simulated {
        None => block,
        Some(simulated) => {
            let named = format!("{SIMULATED}: {}", terminal(&simulated.profile));
            block.replacen(SIMULATED, &named, 1)
        }
    }
}

pub fn of_sheet(sheet: &ToolResult, asked: &Asked) -> String {
    let mut block = Block::titled(sheet);
    block.figures(sheet, asked.labels);
    block.section(sheet, "Probe Requests", &extra::PROBES);
    for (kind, title, name) in SECTIONS {
        if asked.latencies.contains(&kind) {
            block.latency(title, name, as_the_tool_counts(sheet, kind), &asked.percentiles);
        }
    }
    block.client_queue(sheet, &asked.percentiles);
    block.decoding(sheet);
    block.text + &rule('=', "")
}

const SECTIONS: [(LatencyKind, &str, &str); 4] = [
    (LatencyKind::Ttft, "Time to First Token", "TTFT"),
    (LatencyKind::Tpot, "Time per Output Token (excl. 1st token)", "TPOT"),
    (LatencyKind::Itl, "Inter-token Latency", "ITL"),
    (LatencyKind::E2e, "End-to-end Latency", "E2EL"),
];

/// The tool knows latencies from the sending only; of a sheet without them, the first of the kind.
fn as_the_tool_counts(sheet: &ToolResult, kind: LatencyKind) -> Option<&ResultLatency> {
    let elsewhere = |latency: &&ResultLatency| latency.from != CountsFrom::Schedule;
    sheet.latency_from(kind, CountsFrom::Send).or_else(|| sheet.latency(kind).filter(elsewhere))
}

struct Block {
    text: String,
}

impl Block {
    /// What no server gave must not pass for a measurement, wherever the block is pasted.
    fn titled(sheet: &ToolResult) -> Self {
        let text = if sheet.source.simulated {
            format!("{SIMULATED}\n{}", rule('=', " Serving Benchmark Result (simulated) "))
        } else {
            rule('=', " Serving Benchmark Result ")
        };
        Self { text }
    }

    fn figures(&mut self, sheet: &ToolResult, labels: Labels) {
        let has_load = labels != Labels::Old;
        self.line("Successful requests", &count(sheet.completed));
        if labels == Labels::New || (has_load && sheet.failed.is_some()) {
            self.line("Failed requests", &count(sheet.failed));
        }
        if let Some(cap) = sheet.max_concurrency.filter(|_| has_load) {
            self.line("Maximum request concurrency", &cap.to_string());
        }
        if let Some(ResultRate::PerSecond(rate)) = sheet.request_rate.filter(|_| has_load) {
            self.line("Request rate configured (RPS)", &decimal(Some(rate)));
        }
        self.line("Benchmark duration (s)", &decimal(sheet.duration_s));
        self.line("Total input tokens", &count(sheet.input_tokens));
        let inputs = sheet.further.get(extra::INPUT_THROUGHPUT.key);
        if inputs.is_none() {
            self.line("Total generated tokens", &count(sheet.output_tokens));
        }
        self.line("Request throughput (req/s)", &decimal(sheet.request_throughput));
        if inputs.is_some() {
            // Nothing was generated, so there is no output to tell of.
            self.further(sheet, &extra::INPUT_THROUGHPUT);
        } else {
            self.output(sheet, has_load);
        }
        let total = if labels == Labels::New { "token" } else { "Token" };
        let total = format!("Total {total} throughput (tok/s)");
        self.line(&total, &decimal(sheet.total_token_throughput));
    }

    fn output(&mut self, sheet: &ToolResult, has_peaks: bool) {
        if sheet.request_goodput.is_some() {
            self.line("Request goodput (req/s)", &decimal(sheet.request_goodput));
        }
        self.line("Output token throughput (tok/s)", &decimal(sheet.output_throughput));
        if has_peaks {
            let requests = sheet.peak_concurrent_requests.map(|count| count as f64);
            self.line(
                "Peak output token throughput (tok/s)",
                &decimal(sheet.peak_output_throughput),
            );
            self.line("Peak concurrent requests", &decimal(requests));
        }
        // The tool writes zero where no audio was sent.
        if sheet.further.get(extra::REAL_TIME_FACTOR.key).is_some_and(|factor| 0.0 < *factor) {
            self.further(sheet, &extra::REAL_TIME_FACTOR);
        }
    }

    fn latency(
        &mut self,
        title: &str,
        name: &str,
        latency: Option<&ResultLatency>,
        percentiles: &[String],
    ) {
        self.text.push_str(&rule('-', title));
        self.line(&format!("Mean {name} (ms)"), &decimal(latency.and_then(|l| l.mean_ms)));
        let median = latency.and_then(ResultLatency::median_ms);
        self.line(&format!("Median {name} (ms)"), &decimal(median));
        for rank in percentiles {
            let value = latency.and_then(|latency| latency.percentile_ms(rank));
            self.line(&format!("P{rank} {name} (ms)"), &decimal(value));
        }
    }

    /// Told since the tool measures the wait for its own cap.
    fn client_queue(&mut self, sheet: &ToolResult, percentiles: &[String]) {
        let (key, label) = extra::CLIENT_QUEUE;
        let value = |statistic: &str| sheet.further.get(&format!("{statistic}_{key}")).copied();
        if value("mean").is_some() {
            self.text.push_str(&rule('-', "Client-side Queueing"));
            self.line(&format!("Mean {label}"), &decimal(value("mean")));
            self.line(&format!("Median {label}"), &decimal(value("median")));
            for rank in percentiles {
                self.line(&format!("P{rank} {label}"), &decimal(value(&format!("p{rank}"))));
            }
            let waited = sheet.latency_from(LatencyKind::E2e, CountsFrom::Schedule);
            if waited.is_some() {
                let title = "Queue-inclusive End-to-end Latency";
                self.latency(title, "E2EL incl. Client Queue", waited, percentiles);
            }
        }
    }

    /// One of the two: a model that denoises drafts nothing.
    fn decoding(&mut self, sheet: &ToolResult) {
        if self.section(sheet, "Diffusion Decoding", &extra::DIFFUSION)
            || !self.section(sheet, "Speculative Decoding", &extra::SPECULATION)
        {
            return;
        }
        let shares: Vec<f64> = (0..)
            .map_while(|position| sheet.further.get(&extra::position_key(position)).copied())
            .collect();
        if !shares.is_empty() {
            let _ = writeln!(self.text, "{}:", extra::POSITIONS_LABEL);
        }
        for (position, share) in shares.into_iter().enumerate() {
            self.line(&format!("  Position {position}"), &decimal(Some(share * 100.0)));
        }
    }

    /// Whether there was anything to print.
    fn section(&mut self, sheet: &ToolResult, title: &str, figures: &[ExtraFigure]) -> bool {
        let has_any = figures.iter().any(|figure| sheet.further.contains_key(figure.key));
        if has_any {
            self.text.push_str(&rule('-', title));
            for figure in figures {
                self.further(sheet, figure);
            }
        }
        has_any
    }

    fn further(&mut self, sheet: &ToolResult, figure: &ExtraFigure) {
        let value = sheet.further.get(figure.key).copied();
        let written = match (figure.printed, value) {
            (Printed::Whole, Some(value)) => format!("{value:.0}"),
            (Printed::Decimal, _) | (_, None) => decimal(value),
        };
        self.line(figure.label, &written);
    }

    fn line(&mut self, label: &str, value: &str) {
        let label = format!("{label}:");
        let _ = writeln!(self.text, "{label:<LABEL_WIDTH$} {value:<VALUE_WIDTH$}");
    }
}

/// The title in the middle of a rule; an odd space goes to the right, as Python centres.
fn rule(fill: char, title: &str) -> String {
    let space = WIDTH.saturating_sub(title.chars().count());
    let left = space / 2;
    let filled = |count: usize| fill.to_string().repeat(count);
    format!("{}{title}{}\n", filled(left), filled(space - left))
}

fn decimal(value: Option<f64>) -> String {
    value.map_or_else(|| "nan".to_owned(), |value| format!("{value:.2}"))
}

fn count(value: Option<u64>) -> String {
    value.map_or_else(|| "nan".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::tool_result::{Grain, ResultSource};

    use super::*;

    #[test]
    fn rules_are_centred_as_published() {
        assert_eq!(
            rule('=', " Serving Benchmark Result "),
            "============ Serving Benchmark Result ============\n"
        );
        assert_eq!(
            rule('-', "Time to First Token"),
            "---------------Time to First Token----------------\n"
        );
        assert_eq!(
            rule('-', "Time per Output Token (excl. 1st token)"),
            "-----Time per Output Token (excl. 1st token)------\n"
        );
        assert_eq!(
            rule('-', "Inter-token Latency"),
            "---------------Inter-token Latency----------------\n"
        );
    }

    #[test]
    fn the_newest_labels_have_their_order_and_widths() {
        let mut sheet = ToolResult {
            max_concurrency: Some(32),
            request_rate: Some(ResultRate::PerSecond(4.0)),
            completed: Some(50),
            failed: Some(10),
            duration_s: Some(15.057),
            request_goodput: Some(2.1),
            peak_output_throughput: Some(610.0),
            peak_concurrent_requests: Some(49),
            ..ToolResult::default()
        };
        let latency = sheet.latency_mut(LatencyKind::E2e, CountsFrom::Send, Grain::Request);
        latency.mean_ms = Some(1334.0);
        latency.percentiles_ms.insert("99.9".to_owned(), 1700.25);
        sheet.further.insert("spec_decode_acceptance_rate".to_owned(), 61.2);
        sheet.further.insert("spec_decode_num_drafts".to_owned(), 6393.0);
        sheet.further.insert(extra::position_key(0), 0.8342);
        let asked = Asked {
            latencies: vec![LatencyKind::E2e],
            percentiles: vec!["99.9".to_owned()],
            ..Asked::default()
        };
        let expected = "\
============ Serving Benchmark Result ============
Successful requests:                     50
Failed requests:                         10
Maximum request concurrency:             32
Request rate configured (RPS):           4.00
Benchmark duration (s):                  15.06
Total input tokens:                      nan
Total generated tokens:                  nan
Request throughput (req/s):              nan
Request goodput (req/s):                 2.10
Output token throughput (tok/s):         nan
Peak output token throughput (tok/s):    610.00
Peak concurrent requests:                49.00
Total token throughput (tok/s):          nan
----------------End-to-end Latency----------------
Mean E2EL (ms):                          1334.00
Median E2EL (ms):                        nan
P99.9 E2EL (ms):                         1700.25
---------------Speculative Decoding---------------
Acceptance rate (%):                     61.20
Acceptance length:                       nan
Drafts:                                  6393
Draft tokens:                            nan
Accepted tokens:                         nan
Per-position acceptance (%):
  Position 0:                            83.42
==================================================
";
        let block = of_sheet(&sheet, &asked);
        let lines: Vec<_> = block.lines().map(str::trim_end).collect();
        assert_eq!(lines, expected.lines().collect::<Vec<_>>());
        let widths: Vec<_> = block.lines().map(str::len).filter(|width| *width < 50).collect();
        assert_eq!(widths, ["Per-position acceptance (%):".len()], "values are padded");
    }

    #[test]
    fn a_simulated_block_says_so() {
        let source = ResultSource { simulated: true, ..ResultSource::default() };
        let block = of_sheet(&ToolResult { source, ..ToolResult::default() }, &Asked::default());
        assert!(block.starts_with("SIMULATED"), "{block}");
        assert!(block.contains(" Serving Benchmark Result (simulated) "), "{block}");
    }

    #[test]
    fn a_latency_from_the_schedule_never_stands_under_the_tools_labels() {
        let mut sheet = ToolResult::default();
        sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request).mean_ms =
            Some(5.0);
        let block = of_sheet(&sheet, &Asked::default());
        assert!(block.contains("Mean TTFT (ms):                          nan"), "{block}");
        assert!(Asked::all_of(&sheet).latencies.is_empty());
    }
}
