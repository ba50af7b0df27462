//! Legal streams that vLLM's client misreads: the truth is the engine's pace, and ours must tell it.

use super::result::Figures;
use super::{Client, Order, measure};
use crate::bench::Bench;
use crate::table::{Table, or_dash};

const REQUESTS: f64 = 8.0;
const TOKENS: f64 = 32.0;
/// Time between the engine's tokens, in milliseconds.
const GAP: f64 = 10.0;
const FIRST: f64 = 100.0;
const LAST: f64 = FIRST + (TOKENS - 1.0) * GAP;
/// How late a client on a busy machine may be.
const SLACK: f64 = 8.0;

const COMPLETIONS: &str = "--random-output-len 32 --num-prompts 8 --max-concurrency 2";
const CHAT: &str = "--backend openai-chat --endpoint /v1/chat/completions --random-output-len 32 \
                    --num-prompts 8 --max-concurrency 2";

/// A stream, and when its first event arrives.
const CASES: [(Order, f64); 6] = [
    (Order { name: "comments", engine: "--fault comments", flags: COMPLETIONS }, FIRST),
    // The first of two events waits for the second.
    (
        Order { name: "crlf", engine: "--fault crlf --events-per-write 2", flags: COMPLETIONS },
        FIRST + GAP,
    ),
    (Order { name: "cr", engine: "--fault cr", flags: COMPLETIONS }, FIRST),
    (Order { name: "multi-line", engine: "--fault multi-line", flags: COMPLETIONS }, FIRST),
    (Order { name: "byte-order-mark", engine: "--fault bom", flags: COMPLETIONS }, FIRST),
    (
        Order { name: "usage-on-last-choice", engine: "--fault usage-on-last-choice", flags: CHAT },
        FIRST,
    ),
];

pub(super) fn differ(bench: &Bench, page: &mut String) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut rows = Vec::new();
    for (order, first) in &CASES {
        for client in Client::BOTH {
            // A client that cannot read a stream may not write a result either.
            let figures = measure(client, order, 0, bench);
            let told = figures
                .as_ref()
                .map_or_else(|why| vec![why.clone()], |figures| problems(figures, *first));
            if client == Client::Ours && !told.is_empty() {
                wrong.push(format!("{}: {}", order.name, told.join("; ")));
            }
            rows.push(row(order, client, figures.ok().as_ref(), &told));
        }
    }
    let table = Table {
        heading: "Legal streams with a twist".to_owned(),
        columns: vec!["stream", "client", "completed", "tokens", "TTFT", "TPOT", "E2EL", "against the engine"],
        rows,
        remarks: vec![
            "The engine sent 8 answers of 32 tokens: the first after 100 ms, one every 10 ms. Means, in \
             milliseconds."
                .to_owned(),
        ],
    };
    page.push_str(&table.markdown());
    if wrong.is_empty() { Ok(()) } else { Err(format!("misread: {}", wrong.join(" | "))) }
}

fn row(order: &Order, client: Client, figures: Option<&Figures>, told: &[String]) -> Vec<String> {
    let shown = |key: &str, digits: usize| {
        let value = figures.and_then(|figures| figures.get(key));
        or_dash(value.map(|value| format!("{value:.digits$}")))
    };
    let verdict = if told.is_empty() { "right".to_owned() } else { told.join("; ") };
    vec![
        order.name.to_owned(),
        client.name().to_owned(),
        shown("completed", 0),
        shown("total_output_tokens", 0),
        shown("mean_ttft_ms", 1),
        shown("mean_tpot_ms", 2),
        shown("mean_e2el_ms", 1),
        verdict,
    ]
}

/// What of a result is not what the engine did.
fn problems(figures: &Figures, first: f64) -> Vec<String> {
    let expected = [
        ("completed", REQUESTS, 0.0),
        ("total_output_tokens", REQUESTS * TOKENS, 0.0),
        ("mean_ttft_ms", first, SLACK),
        ("mean_tpot_ms", (LAST - first) / (TOKENS - 1.0), 1.0),
        ("mean_e2el_ms", LAST, 2.0 * SLACK),
    ];
    let wrong = expected.into_iter().filter_map(|(key, truth, slack)| {
        let said = figures.get(key);
        let holds = said.is_some_and(|said| (said - truth).abs() <= slack);
        (!holds).then(|| format!("{key} is not {truth}"))
    });
    wrong.collect()
}
