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

use super::{LATENCIES, QUEUED_E2E, is_pooling, positions, printed_ranks};
use crate::json::Json;

const WIDTH: usize = 50;
const LABEL_WIDTH: usize = 40;
const VALUE_WIDTH: usize = 10;
const SIMULATED: &str = "SIMULATED, no server was measured";

/// What a block shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOptions {
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

impl Default for BlockOptions {
    /// As the tool prints a block by default.
    fn default() -> Self {
        Self {
            labels: Labels::New,
            latencies: vec![LatencyKind::Ttft, LatencyKind::Tpot, LatencyKind::Itl],
            percentiles: vec!["99".to_owned()],
        }
    }
}

impl BlockOptions {
    /// Everything that a result has, in the labels that it was read in.
    ///
    /// A median is a line of its own; it stands among the percentiles where it did before.
    pub fn all_of(result: &ToolResult) -> Self {
        let between = result.failed.is_some() || result.peak_concurrent_requests.is_some();
        let labels = match result.source.form {
            Form::OldBlock if between => Labels::Between,
            Form::OldBlock => Labels::Old,
            Form::Run | Form::Document | Form::Requests | Form::Block => Labels::New,
        };
        let known: Vec<_> = LATENCIES
            .iter()
            .filter_map(|(kind, ..)| Some((*kind, as_the_tool_counts(result, *kind)?)))
            .collect();
        let ranks = known.iter().flat_map(|(_, latency)| printed_ranks(latency));
        let mut percentiles: Vec<String> = ranks.cloned().collect();
        let height = |rank: &str| rank.parse::<f64>().unwrap_or(f64::INFINITY);
        percentiles.sort_by(|a, b| height(a).total_cmp(&height(b)).then_with(|| a.cmp(b)));
        percentiles.dedup();
        let latencies = known.into_iter().map(|(kind, _)| kind).collect();
        Self { labels, latencies, percentiles }
    }
}

/// A run of ours in the labels of the oldest blocks, which are the ones most published. `escape`
/// makes the name of a profile harmless for the place where the block is shown.
pub fn from_summary(summary: &Summary, escape: impl Fn(&str) -> String) -> String {
    let options = BlockOptions { labels: Labels::Old, ..BlockOptions::default() };
    let block = from_result(&ToolResult::of_vllm(summary), &options);
    match &summary.run.simulated {
        None => block,
        Some(simulated) => {
            let named = format!("{SIMULATED}: {}", escape(&simulated.profile));
            block.replacen(SIMULATED, &named, 1)
        }
    }
}

pub fn from_result(result: &ToolResult, options: &BlockOptions) -> String {
    // What no server gave must not pass for a measurement, wherever the block is pasted.
    let (before, mark) = if result.source.simulated {
        (format!("{SIMULATED}\n"), "(simulated) ")
    } else {
        (String::new(), "")
    };
    let text = before + &rule('=', &format!(" Serving Benchmark Result {mark}"));
    let mut block = Block { text, result };
    block.write_figures(options.labels);
    block.write_section("Probe Requests", &extra::PROBES);
    for (kind, _, name, title) in LATENCIES {
        if options.latencies.contains(&kind) {
            let latency = as_the_tool_counts(result, kind);
            block.write_latency(title, name, latency, &options.percentiles);
        }
    }
    block.write_client_queue(&options.percentiles);
    block.write_decoding();
    block.text + &rule('=', "")
}

/// The tool knows latencies from the sending only; of a result without them, the first of the kind.
fn as_the_tool_counts(result: &ToolResult, kind: LatencyKind) -> Option<&ResultLatency> {
    let elsewhere = |latency: &&ResultLatency| latency.from != CountsFrom::Schedule;
    result.latency_from(kind, CountsFrom::Send).or_else(|| result.latency(kind).filter(elsewhere))
}

struct Block<'a> {
    text: String,
    result: &'a ToolResult,
}

impl Block<'_> {
    fn write_figures(&mut self, labels: Labels) {
        let result = self.result;
        let has_load = labels != Labels::Old;
        let is_rate = matches!(result.request_rate, Some(ResultRate::PerSecond(_)));
        let is_pooling = is_pooling(result);
        self.field("completed", true);
        self.field("failed", labels == Labels::New || (has_load && result.failed.is_some()));
        self.field("max_concurrency", has_load && result.max_concurrency.is_some());
        self.field("request_rate", has_load && is_rate);
        self.field("duration", true);
        self.field("total_input_tokens", true);
        self.field("total_output_tokens", !is_pooling);
        self.field("request_throughput", true);
        if is_pooling {
            // Nothing was generated, so there is no output to report.
            self.extra(&extra::INPUT_THROUGHPUT);
        } else {
            self.field("request_goodput", result.request_goodput.is_some());
            self.field("output_throughput", true);
            self.field("max_output_tokens_per_s", has_load);
            if has_load {
                let requests = result.peak_concurrent_requests.map(|count| count as f64);
                self.line("Peak concurrent requests", requests);
            }
            // The tool writes zero where no audio was sent.
            let factor = result.further.get(extra::REAL_TIME_FACTOR.key);
            if factor.is_some_and(|factor| 0.0 < *factor) {
                self.extra(&extra::REAL_TIME_FACTOR);
            }
        }
        let total = if labels == Labels::New { "token" } else { "Token" };
        self.line(&format!("Total {total} throughput (tok/s)"), result.total_token_throughput);
    }

    fn write_latency(
        &mut self,
        title: &str,
        name: &str,
        latency: Option<&ResultLatency>,
        percentiles: &[String],
    ) {
        self.write_statistics(title, &format!("{name} (ms)"), percentiles, |statistic| {
            let latency = latency?;
            match statistic {
                "mean" => latency.mean_ms,
                "median" => latency.median_ms(),
                rank => latency.percentile_ms(&rank[1..]),
            }
        });
    }

    fn write_statistics(
        &mut self,
        title: &str,
        label: &str,
        percentiles: &[String],
        value: impl Fn(&str) -> Option<f64>,
    ) {
        self.text += &rule('-', title);
        self.line(&format!("Mean {label}"), value("mean"));
        self.line(&format!("Median {label}"), value("median"));
        for rank in percentiles {
            self.line(&format!("P{rank} {label}"), value(&format!("p{rank}")));
        }
    }

    /// Printed since the tool measures the wait for its own cap.
    fn write_client_queue(&mut self, percentiles: &[String]) {
        let (result, (key, label)) = (self.result, extra::CLIENT_QUEUE);
        let value = |statistic: &str| result.further.get(&format!("{statistic}_{key}")).copied();
        if value("mean").is_some() {
            self.write_statistics("Client-side Queueing", label, percentiles, value);
            let waited = result.latency_from(LatencyKind::E2e, CountsFrom::Schedule);
            if waited.is_some() {
                let title = "Queue-inclusive End-to-end Latency";
                self.write_latency(title, QUEUED_E2E.1, waited, percentiles);
            }
        }
    }

    /// One of the two: a model that denoises drafts nothing.
    fn write_decoding(&mut self) {
        if self.write_section("Diffusion Decoding", &extra::DIFFUSION)
            || !self.write_section("Speculative Decoding", &extra::SPECULATION)
        {
            return;
        }
        for (position, share) in positions(self.result).into_iter().enumerate() {
            if position == 0 {
                let _ = writeln!(self.text, "{}:", extra::POSITIONS_LABEL);
            }
            self.line(&format!("  Position {position}"), share * 100.0);
        }
    }

    /// Whether there was anything to print.
    fn write_section(&mut self, title: &str, figures: &[ExtraFigure]) -> bool {
        let has_any = figures.iter().any(|figure| self.result.further.contains_key(figure.key));
        if has_any {
            self.text += &rule('-', title);
            for figure in figures {
                self.extra(figure);
            }
        }
        has_any
    }

    fn extra(&mut self, figure: &ExtraFigure) {
        let value = self.result.further.get(figure.key).copied();
        match (figure.printed, value) {
            (Printed::Whole, Some(value)) => self.line(figure.label, format!("{value:.0}")),
            (Printed::Decimal, _) | (_, None) => self.line(figure.label, value),
        }
    }

    fn field(&mut self, key: &str, is_printed: bool) {
        if let Some(field) = super::field(key).filter(|_| is_printed) {
            self.line(field.label, (field.get)(self.result));
        }
    }

    fn line(&mut self, label: &str, value: impl Into<Json>) {
        let value = match value.into() {
            Json::Number(value) => format!("{value:.2}"),
            Json::Count(count) => count.to_string(),
            Json::Text(text) => text,
            Json::Null | Json::Flag(_) | Json::List(_) | Json::Map(_) => "nan".to_owned(),
        };
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
        let mut result = ToolResult {
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
        let latency = result.latency_mut(LatencyKind::E2e, CountsFrom::Send, Grain::Request);
        latency.mean_ms = Some(1334.0);
        latency.percentiles_ms.insert("99.9".to_owned(), 1700.25);
        result.further.insert("spec_decode_acceptance_rate".to_owned(), 61.2);
        result.further.insert("spec_decode_num_drafts".to_owned(), 6393.0);
        result.further.insert(extra::position_key(0), 0.8342);
        let options = BlockOptions {
            latencies: vec![LatencyKind::E2e],
            percentiles: vec!["99.9".to_owned()],
            ..BlockOptions::default()
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
        let block = from_result(&result, &options);
        let lines: Vec<_> = block.lines().map(str::trim_end).collect();
        assert_eq!(lines, expected.lines().collect::<Vec<_>>());
        let widths: Vec<_> = block.lines().map(str::len).filter(|width| *width < 50).collect();
        assert_eq!(widths, ["Per-position acceptance (%):".len()], "values are padded");
    }

    #[test]
    fn a_simulated_block_says_so() {
        let source = ResultSource { simulated: true, ..ResultSource::default() };
        let block =
            from_result(&ToolResult { source, ..ToolResult::default() }, &BlockOptions::default());
        assert!(block.starts_with("SIMULATED"), "{block}");
        assert!(block.contains(" Serving Benchmark Result (simulated) "), "{block}");
    }

    #[test]
    fn a_latency_from_the_schedule_never_stands_under_the_tools_labels() {
        let mut result = ToolResult::default();
        result.latency_mut(LatencyKind::Ttft, CountsFrom::Schedule, Grain::Request).mean_ms =
            Some(5.0);
        let block = from_result(&result, &BlockOptions::default());
        assert!(block.contains("Mean TTFT (ms):                          nan"), "{block}");
        assert!(BlockOptions::all_of(&result).latencies.is_empty());
    }
}
