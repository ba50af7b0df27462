//! Clean streams: every value that both clients mean alike must come out alike.

use super::result::{Figures, mean};
use super::{Client, Order, measure};
use crate::bench::Bench;
use crate::table::{Table, or_dash};

const ORDERS: [Order; 4] = [
    Order {
        name: "closed",
        engine: "",
        flags: "--random-output-len 64 --num-prompts 60 --max-concurrency 8",
    },
    Order {
        name: "open",
        engine: "",
        flags: "--random-output-len 32 --num-prompts 60 --request-rate 10 --burstiness 1.0",
    },
    Order {
        name: "chat",
        engine: "",
        flags: "--backend openai-chat --endpoint /v1/chat/completions --random-output-len 32 \
                --num-prompts 40 --max-concurrency 4",
    },
    // By vLLM's definitions the role is the first token, and so it is by ours of the same name; our
    // own page has the first that can be read.
    Order {
        name: "chat with a role first",
        engine: "--fault role-first",
        flags: "--backend openai-chat --endpoint /v1/chat/completions --random-output-len 32 \
                --num-prompts 40 --max-concurrency 4",
    },
];
const ROUNDS: usize = 3;

/// How far two clients on one machine may lie apart: a share, and milliseconds of a client that is
/// written in Python.
const SHARE: f64 = 0.05;
const SLACK_MS: f64 = 6.0;

/// Keys that must be equal, and keys that must be near.
const EQUAL: [&str; 4] = ["completed", "failed", "total_input_tokens", "total_output_tokens"];
const NEAR: [&str; 16] = [
    "duration",
    "request_throughput",
    "output_throughput",
    "total_token_throughput",
    "mean_ttft_ms",
    "median_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "median_tpot_ms",
    "p99_tpot_ms",
    "mean_itl_ms",
    "median_itl_ms",
    "p99_itl_ms",
    "mean_e2el_ms",
    "median_e2el_ms",
    "p99_e2el_ms",
];

pub(super) fn agree(bench: &Bench, page: &mut String) -> Result<(), String> {
    let mut apart = Vec::new();
    for order in &ORDERS {
        let mut rounds = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for (client, rounds) in Client::BOTH.into_iter().zip(&mut rounds) {
                rounds.push(measure(client, order, round, bench)?);
            }
        }
        let [theirs, ours] = rounds;
        let (table, missed) = compared(order, &theirs, &ours);
        page.push_str(&table.markdown());
        apart.extend(missed);
    }
    if apart.is_empty() { Ok(()) } else { Err(format!("apart: {}", apart.join(", "))) }
}

fn compared(order: &Order, theirs: &[Figures], ours: &[Figures]) -> (Table, Vec<String>) {
    let mut apart = Vec::new();
    let mut rows = Vec::new();
    let keys = EQUAL.iter().map(|key| (key, true)).chain(NEAR.iter().map(|key| (key, false)));
    for (key, exact) in keys {
        let (theirs, ours) = (mean(theirs, key), mean(ours, key));
        let holds =
            theirs.zip(ours).is_some_and(|(theirs, ours)| is_near(key, exact, theirs, ours));
        if !holds {
            apart.push(format!("{} {key}", order.name));
        }
        let shown = |value: Option<f64>| or_dash(value.map(|value| format!("{value:.3}")));
        let verdict = if holds { "agree" } else { "APART" };
        rows.push(vec![(*key).to_owned(), shown(theirs), shown(ours), verdict.to_owned()]);
    }
    let table = Table {
        heading: format!("Clean streams: {}", order.name),
        columns: vec!["key", "vllm bench serve", "inferometer bench serve", "verdict"],
        rows,
        remarks: vec![format!(
            "Means of {ROUNDS} rounds, one after the other: `{}`. The engine sends a first token \
             after 100 ms and one every 10 ms.",
            order.flags
        )],
    };
    (table, apart)
}

fn is_near(key: &str, exact: bool, theirs: f64, ours: f64) -> bool {
    if exact {
        return theirs.to_bits() == ours.to_bits();
    }
    // A gap of 10 ms shares what a whole answer is late by.
    let slack = if !key.ends_with("_ms") {
        0.0
    } else if key.contains("tpot") || key.contains("itl") {
        SLACK_MS / 2.0
    } else {
        SLACK_MS
    };
    (theirs - ours).abs() <= SHARE * theirs.abs().max(ours.abs()) + slack
}
