//! How much a client gets out of an engine that answers as fast as one core can.
//!
//! The quick tools take turns, so that a machine that slows down slows all of them down. Beside
//! them `wrk`, which reads and discards, is what is left for a client that also has to understand.

use serde_json::{Value, json};

use super::bench::Bench;
use super::engine::{Behaviour, Engine};
use super::section::Section;
use super::sizes::Sizes;
use super::statistics::median;
use super::table::{Table, count, or_dash, ratio};
use super::tool::{Extent, Load, Outcome, Pace, Report, Tool};

const ONE_SHOT_CONCURRENCY: u32 = 100;
const ONE_SHOT_TOKENS: u32 = 16;
const STREAM_CONCURRENCY: u32 = 64;
const STREAM_TOKENS: u32 = 256;

/// What is compared.
struct Contest {
    key: String,
    heading: String,
    behaviour: Behaviour,
    streamed: bool,
    rate: fn(&Report) -> Option<f64>,
    columns: Vec<&'static str>,
    remarks: Vec<String>,
}

/// All runs of one tool.
struct Entry {
    tool: Tool,
    outcomes: Vec<Outcome>,
    rates: Vec<f64>,
}

pub(crate) fn one_shot(bench: &Bench, tools: &[Tool], sizes: &Sizes) -> Result<Section, String> {
    let contest = Contest {
        key: "one-shot".to_owned(),
        heading: format!(
            "One-shot requests: {ONE_SHOT_CONCURRENCY} in flight, {ONE_SHOT_TOKENS} tokens each"
        ),
        behaviour: Behaviour::Echo { events_per_write: 1 },
        streamed: false,
        rate: |report| report.requests_per_s,
        columns: vec!["tool", "requests/s", "lowest–highest", "of wrk", "ours is", "note"],
        remarks: Vec::new(),
    };
    hold(contest, bench, tools, sizes)
}

pub(crate) fn streams(
    bench: &Bench,
    tools: &[Tool],
    sizes: &Sizes,
    events_per_write: u32,
) -> Result<Section, String> {
    let contest = Contest {
        key: format!("streams-{events_per_write}"),
        heading: format!(
            "Streamed answers: {STREAM_CONCURRENCY} in flight, {STREAM_TOKENS} tokens each, events \
             per write: {events_per_write}"
        ),
        behaviour: Behaviour::Echo { events_per_write },
        streamed: true,
        rate: |report| report.tokens_per_s,
        columns: vec![
            "tool",
            "tokens/s",
            "lowest–highest",
            "of wrk",
            "ours is",
            "tokens/read",
            "CPU µs/token",
            "note",
        ],
        remarks: vec![
            "Here wrk is a bare reader that discards everything: what it reaches, the server can \
             give. A client near it is held back by the server."
                .to_owned(),
        ],
    };
    hold(contest, bench, tools, sizes)
}

fn hold(contest: Contest, bench: &Bench, tools: &[Tool], sizes: &Sizes) -> Result<Section, String> {
    let engine = Engine::start(contest.behaviour, bench)?;
    let mut entries: Vec<Entry> =
        tools.iter().map(|&tool| Entry { tool, outcomes: Vec::new(), rates: Vec::new() }).collect();
    for round in 0..sizes.rounds {
        for entry in &mut entries {
            if entry.tool.pace() == Pace::FewRequests && 0 < round {
                continue;
            }
            let load = load(&contest, &engine, entry.tool, sizes);
            let outcome = entry.tool.measure(&load, bench);
            entry.rates.extend(outcome.report().and_then(contest.rate));
            entry.outcomes.push(outcome);
        }
    }
    Ok(Section {
        facts: Value::Array(entries.iter().map(Entry::facts).collect()),
        table: Table {
            rows: rows(&entries, contest.streamed),
            heading: contest.heading,
            columns: contest.columns,
            remarks: contest.remarks,
        },
        key: contest.key,
    })
}

fn load(contest: &Contest, engine: &Engine, tool: Tool, sizes: &Sizes) -> Load {
    let (concurrency, output_tokens, requests) = if contest.streamed {
        (STREAM_CONCURRENCY, STREAM_TOKENS, sizes.stream_requests)
    } else {
        (ONE_SHOT_CONCURRENCY, ONE_SHOT_TOKENS, sizes.one_shot_requests)
    };
    let extent = match tool.pace() {
        Pace::Timed => Extent::Seconds(sizes.seconds),
        Pace::ManyRequests => Extent::Requests(requests.quick),
        Pace::FewRequests => Extent::Requests(requests.slow),
    };
    Load {
        label: contest.key.clone(),
        url: engine.url.clone(),
        model: contest.behaviour.model(),
        concurrency,
        extent,
        output_tokens,
        streamed: contest.streamed,
        flags: Vec::new(),
    }
}

fn rows(entries: &[Entry], streamed: bool) -> Vec<Vec<String>> {
    let rate_of =
        |tool: Tool| entries.iter().find(|entry| entry.tool == tool).and_then(Entry::rate);
    let (ours, wrk) = (rate_of(Tool::Ours), rate_of(Tool::Wrk));
    entries
        .iter()
        .map(|entry| {
            let rate = entry.rate();
            let of_wrk = rate.zip(wrk).map(|(rate, wrk)| format!("{:.1}%", 100.0 * rate / wrk));
            let ours_is = rate.zip(ours).map(|(rate, ours)| ratio(ours / rate));
            let mut row = vec![
                entry.tool.title().to_owned(),
                or_dash(rate.map(count)),
                or_dash(entry.spread()),
                or_dash(of_wrk),
                or_dash(ours_is),
            ];
            if streamed {
                let per_read = entry.median_of(|report| report.tokens_per_read);
                let per_token = entry.median_of(|report| report.cpu_us_per_token);
                row.extend(
                    [per_read, per_token].map(|it| or_dash(it.map(|it| format!("{it:.2}")))),
                );
            }
            row.push(entry.note());
            row
        })
        .collect()
}

impl Entry {
    fn rate(&self) -> Option<f64> {
        median(self.rates.clone())
    }

    fn median_of(&self, value: impl Fn(&Report) -> Option<f64>) -> Option<f64> {
        median(self.outcomes.iter().filter_map(|outcome| value(outcome.report()?)).collect())
    }

    /// Between rounds; a single round has none.
    fn spread(&self) -> Option<String> {
        let lowest = self.rates.iter().copied().reduce(f64::min)?;
        let highest = self.rates.iter().copied().reduce(f64::max)?;
        (1 < self.rates.len()).then(|| format!("{}–{}", count(lowest), count(highest)))
    }

    fn note(&self) -> String {
        let mut notes: Vec<String> = Vec::new();
        for note in self.outcomes.iter().flat_map(Outcome::notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.join("; ")
    }

    fn facts(&self) -> Value {
        json!({"tool": self.tool, "median_per_s": self.rate(), "runs": self.outcomes})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_compare_medians() {
        let entry = |tool, rates: &[f64]| Entry {
            tool,
            outcomes: vec![Outcome::Failed { why: "stopped".to_owned() }],
            rates: rates.to_vec(),
        };
        let entries = [
            entry(Tool::Ours, &[900.0, 800.0, 1000.0]),
            entry(Tool::Wrk, &[1800.0]),
            entry(Tool::Aiperf, &[]),
        ];
        let measured = Report {
            cpu_us_per_token: Some(1.5),
            tokens_per_read: Some(2.25),
            ..Report::default()
        };
        let mut streamed = entry(Tool::Ours, &[900.0]);
        streamed.outcomes = vec![Outcome::Measured(measured)];
        assert_eq!(rows(&[streamed], true)[0][5..7], ["2.25", "1.50"]);
        let rows = rows(&entries, false);
        assert_eq!(rows[0], ["Inferometer", "900", "800–1,000", "50.0%", "1.00×", "stopped"]);
        assert_eq!(rows[1], ["wrk", "1,800", "–", "100.0%", "0.50×", "stopped"]);
        assert_eq!(rows[2], ["AIPerf", "–", "–", "–", "–", "stopped"]);
    }
}
