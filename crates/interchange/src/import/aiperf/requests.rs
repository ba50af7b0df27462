//! One line for each request, `profile_export.jsonl`: the figures are computed from them.

use inferometer_analysis::sheet::{
    CountsFrom, Form, Sheet, SheetLatency, SheetRequest, SheetSource, Tool,
};

use super::{LATENCIES, in_ms};
use crate::import::mapping;
use crate::import::records::{Records, each_object};
use crate::import::sample;
use crate::import::tree::Node;
use crate::import::value::shown;
use crate::import::{ImportError, Imported};

const END: &str = "metadata.request_end_ns";

/// All lines are one result.
pub(crate) fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut records = Records::default();
    let mut run = Run::default();
    each_object(text, |line, read| {
        if let Err(reason) = read.and_then(|node| run.take(&node, line)) {
            records.break_off(line, reason);
        }
        true
    });
    if let Some(sheet) = run.into_sheet() {
        records.push(sheet);
    }
    records.finish()
}

/// The requests that were measured, as they come.
#[derive(Debug, Default)]
struct Run {
    first_line: Option<u32>,
    /// Milliseconds, in the order of [`LATENCIES`].
    latencies: [Vec<f64>; LATENCIES.len()],
    requests: Vec<SheetRequest>,
    warm_ups: u64,
    /// Lines whose end is no moment, or one before their beginning.
    turned_back: u64,
    /// Seconds of the epoch.
    first_start: Option<f64>,
    last_end: Option<f64>,
}

impl Run {
    fn take(&mut self, node: &Node, line: u32) -> Result<(), String> {
        let start_s = moment(node, "request_start_ns").ok_or("has no `request_start_ns`")?;
        let metrics = node.at("metrics").ok_or("has no `metrics`")?;
        let phase = node.at("metadata.phase_kind").or_else(|| node.at("metadata.benchmark_phase"));
        if phase.and_then(Node::text).is_some_and(|phase| phase != "profiling") {
            self.warm_ups += 1;
            return Ok(());
        }
        self.first_line.get_or_insert(line);
        let mut request = SheetRequest { start_s: Some(start_s), ..SheetRequest::default() };
        request.error = Some(error(node));
        request.input_tokens = tokens(metrics, "input_sequence_length");
        request.output_tokens = tokens(metrics, "output_sequence_length");
        request.ttft_s = values_ms(metrics, "time_to_first_token").first().map(|ms| ms / 1e3);
        request.e2e_s = values_ms(metrics, "request_latency").first().map(|ms| ms / 1e3);
        let gaps_ms = values_ms(metrics, "inter_chunk_latency");
        request.gaps_s = gaps_ms.iter().map(|ms| ms / 1e3).collect();
        let end_s = moment(node, "request_end_ns").filter(|end| start_s <= *end);
        self.turned_back += u64::from(end_s.is_none() && node.at(END).is_some());
        if request.error.as_deref() == Some("") {
            for (values, (name, _, from, _)) in self.latencies.iter_mut().zip(LATENCIES) {
                let found = values_ms(metrics, name);
                if found.is_empty() && from == CountsFrom::Schedule {
                    // Most lines have only the moments of it.
                    let issued_s = moment(node, "credit_issued_ns");
                    let span = issued_s.zip(end_s).filter(|(issued, end)| issued <= end);
                    values.extend(span.map(|(issued, end)| (end - issued) * 1e3));
                }
                values.extend(found);
            }
        }
        self.requests.push(request);
        let end_s = end_s.unwrap_or(start_s);
        self.first_start = Some(self.first_start.map_or(start_s, |first| first.min(start_s)));
        self.last_end = Some(self.last_end.map_or(end_s, |last| last.max(end_s)));
        Ok(())
    }

    fn into_sheet(self) -> Option<Sheet> {
        let line = self.first_line?;
        let good = || self.requests.iter().filter(|request| request.error.as_deref() == Some(""));
        let completed = good().count() as u64;
        let total = |tokens: fn(&SheetRequest) -> Option<u64>| {
            let sum = good().map(tokens).try_fold(0_u64, |sum, tokens| sum.checked_add(tokens?));
            sum.filter(|_| completed > 0)
        };
        let input_tokens = total(|request| request.input_tokens);
        let output_tokens = total(|request| request.output_tokens);
        let duration_s = self.first_start.zip(self.last_end).map(|(first, last)| last - first);
        let per_s = |count: u64| duration_s.filter(|s| *s > 0.0).map(|s| count as f64 / s);
        let source = SheetSource {
            tool: Tool::AiPerf,
            form: Form::Requests,
            line: Some(line),
            ..SheetSource::default()
        };
        let mut sheet = Sheet {
            source,
            completed: Some(completed),
            failed: Some(self.requests.len() as u64 - completed),
            duration_s,
            input_tokens,
            output_tokens,
            request_throughput: per_s(completed),
            output_throughput: output_tokens.and_then(per_s),
            total_token_throughput: input_tokens
                .zip(output_tokens)
                .and_then(|(input, output)| per_s(input.saturating_add(output))),
            ..Sheet::default()
        };
        for (values, (_, kind, from, grain)) in self.latencies.into_iter().zip(LATENCIES) {
            sheet.latencies.extend(sample::latency(values, SheetLatency::new(kind, from, grain)));
        }
        if self.warm_ups > 0 {
            sheet.unmapped.push(format!("{} lines of warm-up requests", self.warm_ups));
        }
        if self.turned_back > 0 {
            let count = self.turned_back;
            let reason = "is none or before its beginning";
            sheet.unmapped.push(format!("{END} of {count} lines, which {reason}"));
        }
        sheet.requests = Some(self.requests);
        Some(sheet)
    }
}

/// Empty where the request succeeded.
fn error(node: &Node) -> String {
    if let Some(error) = node.at("error") {
        let message = error.get("message").and_then(Node::text).or_else(|| error.text());
        return message.map_or_else(|| "failed".to_owned(), shown);
    }
    match node.at("metadata.was_cancelled") {
        Some(Node::Flag(true)) => "cancelled".to_owned(),
        _ => String::new(),
    }
}

fn moment(node: &Node, key: &str) -> Option<f64> {
    mapping::figure(node.at("metadata")?.get(key)?).ok().map(|ns| ns / 1e9)
}

fn tokens(metrics: &Node, name: &str) -> Option<u64> {
    mapping::count(metrics.get(name)?.get("value")?).ok()
}

/// One value of most metrics, and a list of those that have one for each gap.
fn values_ms(metrics: &Node, name: &str) -> Vec<f64> {
    let Some(metric) = metrics.get(name) else { return Vec::new() };
    let Some(to_ms) = metric.get("unit").and_then(Node::text).and_then(in_ms) else {
        return Vec::new();
    };
    let Some(value) = metric.get("value") else { return Vec::new() };
    let all = if let Node::List(items) = value { items } else { std::slice::from_ref(value) };
    all.iter().filter_map(|value| mapping::figure(value).ok()).map(|value| value * to_ms).collect()
}
