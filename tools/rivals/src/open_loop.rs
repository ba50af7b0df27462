//! How late our own client sends when it has to keep a high rate, whatever is in flight.

use serde_json::json;

use super::bench::Bench;
use super::engine::{Behaviour, Engine};
use super::program::{last_words, run};
use super::section::Section;
use super::sizes::Sizes;
use super::table::{Table, count, or_dash};
use super::tool::{Extent, Load, Outcome, Tool};
use super::tools::ours;

const TOKENS: u32 = 16;

pub(crate) fn open_loop(bench: &Bench, sizes: &Sizes) -> Result<Section, String> {
    let behaviour = Behaviour::Echo { events_per_write: 1 };
    let engine = Engine::start(behaviour, bench)?;
    let rate_per_s = sizes.open_loop_rate_per_s;
    let load = Load {
        label: "open-loop".to_owned(),
        url: engine.url.clone(),
        model: behaviour.model(),
        // Open: as many as there are.
        concurrency: 0,
        extent: Extent::Seconds(2 * sizes.seconds),
        output_tokens: TOKENS,
        streamed: false,
        flags: Vec::new(),
    };
    let outcome = measure(&load, rate_per_s, bench)
        .map_or_else(|why| Outcome::Failed { why }, Outcome::Measured);
    let report = outcome.report();
    let lag = report.and_then(|report| report.send_lag_ms);
    let milliseconds = |value: f64| format!("{value:.3}");
    let row = vec![
        Tool::Ours.title().to_owned(),
        count(f64::from(rate_per_s)),
        or_dash(report.and_then(|report| report.requests_per_s).map(count)),
        or_dash(lag.map(|lag| milliseconds(lag.p50))),
        or_dash(lag.map(|lag| milliseconds(lag.p99))),
        outcome.notes().join("; "),
    ];
    Ok(Section {
        key: "open-loop".to_owned(),
        facts: json!([{"tool": Tool::Ours, "rate_per_s": rate_per_s, "reported": outcome}]),
        table: Table {
            heading: "Open loop: requests at a rate, Poisson arrivals, one-shot".to_owned(),
            columns: vec![
                "tool",
                "asked req/s",
                "done req/s",
                "send lag p50 ms",
                "send lag p99 ms",
                "note",
            ],
            rows: vec![row],
            remarks: Vec::new(),
        },
    })
}

fn measure(load: &Load, rate_per_s: u32, bench: &Bench) -> Result<super::tool::Report, String> {
    let folder = bench.folder_for(Tool::Ours, load)?;
    let run = run(&bench.binary, &ours::open_loop_arguments(load, rate_per_s), &folder, bench)?;
    ours::report(&run).map_err(|why| format!("{why}: {}", last_words(&run)))
}
