//! The "Serving Benchmark Result" block, with the definitions of the tool that prints it.
//!
//! Scripts grep its labels, so labels, widths and order are exactly theirs. What is missing is
//! `nan`, which their parsers read as a number that is none; it is never zero.

use std::fmt::Write;

use inferometer_analysis::Summary;
use inferometer_analysis::definitions::vllm::VllmLatency;

use crate::escape::terminal;

const WIDTH: usize = 50;
const LABEL_WIDTH: usize = 40;
const VALUE_WIDTH: usize = 10;

pub fn render(summary: &Summary) -> String {
    let result = &summary.vllm;
    // What no server gave must not pass for a measurement, wherever the block is pasted.
    let mut text = match &summary.run.simulated {
        None => rule('=', " Serving Benchmark Result "),
        Some(simulated) => {
            let title = rule('=', " Serving Benchmark Result (simulated) ");
            format!("SIMULATED, no server was measured: {}\n{title}", terminal(&simulated.profile))
        }
    };
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<LABEL_WIDTH$} {value:<VALUE_WIDTH$}");
    };
    line("Successful requests:", &result.completed.to_string());
    line("Benchmark duration (s):", &decimal(result.duration_s));
    line("Total input tokens:", &result.total_input_tokens.to_string());
    line("Total generated tokens:", &result.total_output_tokens.to_string());
    line("Request throughput (req/s):", &decimal(result.request_throughput));
    line("Output token throughput (tok/s):", &decimal(result.output_throughput));
    line("Total Token throughput (tok/s):", &decimal(result.total_token_throughput));
    section(&mut text, "Time to First Token", "TTFT", &result.ttft_ms);
    section(&mut text, "Time per Output Token (excl. 1st token)", "TPOT", &result.tpot_ms);
    section(&mut text, "Inter-token Latency", "ITL", &result.itl_ms);
    text + &rule('=', "")
}

fn section(text: &mut String, title: &str, name: &str, latency: &VllmLatency) {
    text.push_str(&rule('-', title));
    for (label, value) in [("Mean", latency.mean), ("Median", latency.median), ("P99", latency.p99)]
    {
        let label = format!("{label} {name} (ms):");
        let _ = writeln!(text, "{label:<LABEL_WIDTH$} {:<VALUE_WIDTH$}", decimal(value));
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

#[cfg(test)]
mod tests {
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
}
