//! What every tool says about paced streams, beside what the engine did.
//!
//! The truth is taken over the same requests, and under the tool's own meaning of a gap, so that
//! a difference is an error of measurement and not of definition.

use serde_json::{Value, json};

use super::bench::Bench;
use super::engine::{Behaviour, Engine};
use super::front::{Front, Transport, over};
use super::section::Section;
use super::sizes::Sizes;
use super::table::{Table, count, or_dash};
use super::tool::{Extent, GapMeaning, Load, Outcome, Tool};
use super::truth::TrueTimes;

/// One engine process writes some hundred thousand tokens per second; at the pace of a thousand streams it would be
/// late with more, and prove nothing.
const STREAMS_AT_FULL_PACE: u32 = 1_024;
const STREAMS_AT_TENTH_PACE: u32 = 4_096;

/// The engine keeps the truth of 20,000 requests; a tool's own probes are some of them.
const REQUESTS_KEPT: u32 = 19_900;

/// Below this share of the asked streams a client has measured another load than the others.
const HELD_SHARE: f64 = 0.9;

/// An engine that was later than this did not pace, so the row compares two accidents.
const ENGINE_LATE_MS_MAX: f64 = 10.0;

struct Entry {
    tool: Tool,
    outcome: Outcome,
    truth: Result<TrueTimes, String>,
}

/// The time between two tokens of each stream, and the tokens of an answer.
fn pace(streams: u32) -> (u32, u32) {
    if streams <= STREAMS_AT_FULL_PACE {
        (10, 100)
    } else if streams <= STREAMS_AT_TENTH_PACE {
        (100, 30)
    } else {
        (200, 30)
    }
}

pub(crate) fn fidelity(
    bench: &Bench,
    tools: &[Tool],
    sizes: &Sizes,
    streams: u32,
    transport: Transport,
) -> Result<Section, String> {
    let (gap_ms, tokens) = pace(streams);
    let waves = sizes.paced_waves.min(REQUESTS_KEPT / streams).max(1);
    let key = match transport {
        Transport::Plain => format!("fidelity-{streams}"),
        Transport::Tls | Transport::Http2 => format!("fidelity-{streams}-{transport:?}"),
    };
    let mut entries = Vec::new();
    // A bare reader reports no times, and only our own client takes any certificate.
    let takes_part = |tool: Tool| match transport {
        Transport::Plain => tool != Tool::Wrk,
        Transport::Tls | Transport::Http2 => matches!(tool, Tool::Ours | Tool::Before),
    };
    for &tool in tools.iter().filter(|&&tool| takes_part(tool)) {
        // A fresh engine each time: what a tool left open must not disturb the next.
        let behaviour = Behaviour::Paced { gap_ms };
        let engine = Engine::start(behaviour, bench)?;
        let load = Load {
            label: key.clone(),
            url: engine.url.clone(),
            model: behaviour.model(),
            concurrency: streams,
            extent: Extent::Requests(streams * waves),
            output_tokens: tokens,
            streamed: true,
            flags: Vec::new(),
        };
        let (front, load) = match transport {
            Transport::Plain => (None, load),
            Transport::Tls | Transport::Http2 => {
                let front = Front::start(bench, &Bench::between(), 2, &engine.url)?;
                let url = front.engine();
                (Some(front), over(load, transport, url))
            }
        };
        let outcome = tool.measure(&load, bench);
        drop(front);
        let truth = engine.truth().and_then(|truth| truth.times(tokens, tool.gap_meaning()));
        entries.push(Entry { tool, outcome, truth });
    }
    Ok(Section {
        key,
        facts: Value::Array(entries.iter().map(Entry::facts).collect()),
        table: Table {
            heading: format!(
                "Fidelity: {} paced streams, {}, first token after 100 ms, then one every {gap_ms} ms",
                count(f64::from(streams)),
                transport.title(),
            ),
            columns: vec![
                "tool",
                "in flight",
                "engine late",
                "TTFT p50",
                "TTFT p99",
                "ITL p50",
                "ITL p99",
                "CPU µs/token",
                "note",
            ],
            rows: entries.iter().map(|entry| entry.row(streams)).collect(),
            remarks: vec![
                "In milliseconds: reported − true = error. True is the engine's own log of the \
                 same requests, from a request's arrival to the write of its token; in flight, and \
                 how late the engine itself wrote (p99), are by that log too."
                    .to_owned(),
            ],
        },
    })
}

impl Entry {
    fn row(&self, streams: u32) -> Vec<String> {
        let report = self.outcome.report();
        let truth = self.truth.as_ref().ok();
        let ttft = report.and_then(|report| report.ttft_ms).zip(truth.map(|truth| truth.ttft_ms));
        let itl = report.and_then(|report| report.itl_ms).zip(truth.map(|truth| truth.itl_ms));
        vec![
            self.tool.title().to_owned(),
            or_dash(truth.map(|truth| count(truth.in_flight))),
            or_dash(truth.and_then(|truth| truth.engine_late_ms_p99).map(|ms| format!("{ms:.2}"))),
            or_dash(ttft.map(|(said, truth)| difference(said.p50, truth.p50))),
            or_dash(ttft.map(|(said, truth)| difference(said.p99, truth.p99))),
            or_dash(itl.map(|(said, truth)| difference(said.p50, truth.p50))),
            or_dash(itl.map(|(said, truth)| difference(said.p99, truth.p99))),
            or_dash(report.and_then(|it| it.cpu_us_per_token).map(|us| format!("{us:.2}"))),
            self.notes(streams).join("; "),
        ]
    }

    fn notes(&self, streams: u32) -> Vec<String> {
        let mut notes = self.outcome.notes();
        let Some(report) = self.outcome.report() else { return notes };
        match &self.truth {
            Err(why) => notes.push(why.clone()),
            Ok(truth) => {
                if truth.engine_late_ms_p99.is_some_and(|late| ENGINE_LATE_MS_MAX < late) {
                    notes.push("the engine had no time either: run again".to_owned());
                }
                if truth.in_flight < HELD_SHARE * f64::from(streams) {
                    notes.push("did not hold the load".to_owned());
                }
                let missed = report.completed.map(|completed| completed - truth.requests as f64);
                if missed.is_some_and(|missed| 0.5 < missed.abs()) {
                    notes.push(format!("the engine completed {} requests", truth.requests));
                }
            }
        }
        if self.tool.gap_meaning() == GapMeaning::MeanOfAnswer {
            notes.push("its ITL is a mean per answer".to_owned());
        }
        notes
    }

    fn facts(&self) -> Value {
        let truth = self.truth.as_ref().map(|truth| {
            json!({
                "requests": truth.requests,
                "in_flight": truth.in_flight,
                "engine_late_ms_p99": truth.engine_late_ms_p99,
                "ttft_ms": truth.ttft_ms,
                "itl_ms": truth.itl_ms,
            })
        });
        json!({
            "tool": self.tool,
            "reported": self.outcome,
            "truth": truth.unwrap_or_else(|why| json!({"none": why})),
        })
    }
}

fn difference(reported: f64, truth: f64) -> String {
    // Rounded before it is written, and freed of its sign where nothing is left of it.
    let error = ((reported - truth) * 100.0).round() / 100.0 + 0.0;
    format!("{reported:.2} − {truth:.2} = {error:+.2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Percentiles, Report};

    #[test]
    fn a_row_says_what_was_reported_what_was_true_and_who_did_not_hold_the_load() {
        let times = |p50, p99| Percentiles { p50, p99 };
        let report = Report {
            completed: Some(24.0),
            ttft_ms: Some(times(150.0, 250.0)),
            itl_ms: None,
            ..Report::default()
        };
        let truth = TrueTimes {
            requests: 25,
            ttft_ms: times(100.0, 101.0),
            itl_ms: times(10.0, 11.0),
            in_flight: 5.0,
            engine_late_ms_p99: Some(12.0),
        };
        let entry =
            Entry { tool: Tool::Vllm, outcome: Outcome::Measured(report), truth: Ok(truth) };
        let row = entry.row(8);
        assert_eq!(
            row[1..5],
            ["5", "12.00", "150.00 − 100.00 = +50.00", "250.00 − 101.00 = +149.00"]
        );
        assert_eq!(row[5..8], ["–", "–", "–"]);
        assert_eq!(
            row[8],
            "the engine had no time either: run again; did not hold the load; \
             the engine completed 25 requests"
        );
    }
}
