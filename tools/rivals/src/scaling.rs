//! What several driver threads get out of a server that has cores enough, and what TLS and HTTP/2 cost one of them.

use serde_json::{Value, json};

use super::bench::Bench;
use super::front::{Front, ONE_SHOT_TOKENS, STREAM_TOKENS, Transport, over};
use super::section::Section;
use super::sizes::Sizes;
use super::statistics::median;
use super::table::{Table, count, or_dash, ratio};
use super::tool::{Extent, Load, Outcome, Pace, Tool};

const DRIVERS: [u32; 3] = [1, 2, 4];
const CONCURRENCY: u32 = 256;

struct Entry {
    tool: Tool,
    what: String,
    per_s: Option<f64>,
    outcomes: Vec<Outcome>,
}

/// The tools that run by time, each on the cores of `bench`.
fn entry(tool: Tool, what: String, load: &Load, bench: &Bench, sizes: &Sizes) -> Entry {
    let outcomes: Vec<Outcome> = (0..sizes.rounds).map(|_| tool.measure(load, bench)).collect();
    let rates = outcomes.iter().filter_map(|outcome| outcome.report()?.requests_per_s);
    Entry { tool, what, per_s: median(rates.collect()), outcomes }
}

fn load(label: &str, url: String, streamed: bool, sizes: &Sizes) -> Load {
    Load {
        label: label.to_owned(),
        url,
        model: "echo",
        concurrency: CONCURRENCY,
        extent: Extent::Seconds(sizes.seconds.div_ceil(2)),
        output_tokens: if streamed { STREAM_TOKENS } else { ONE_SHOT_TOKENS },
        streamed,
        flags: Vec::new(),
    }
}

/// One, two and four drivers, with cores for all threads of the client.
pub(crate) fn drivers(bench: &Bench, tools: &[Tool], sizes: &Sizes) -> Result<Section, String> {
    let [server, client] = Bench::halves();
    let front = Front::start(bench, &server.0, server.1, "")?;
    let mut bench = bench.clone();
    bench.client_cores = client.0;
    let mut rows = Vec::new();
    let mut facts = Vec::new();
    for (url, streamed) in [(front.one_shot(Transport::Plain), false), (front.streams(), true)] {
        for &tool in tools.iter().filter(|tool| matches!(tool, Tool::Ours | Tool::Before)) {
            let mut alone = None;
            for drivers in DRIVERS {
                let mut load =
                    load(&format!("drivers-{drivers}-{streamed}"), url.clone(), streamed, sizes);
                load.flags = vec!["--client-cores".to_owned(), drivers.to_string()];
                let what = if streamed { "streams of 64" } else { "one-shot" };
                let entry = entry(tool, what.to_owned(), &load, &bench, sizes);
                alone = alone.or(entry.per_s);
                let gain = entry.per_s.zip(alone).map(|(per_s, alone)| ratio(per_s / alone));
                rows.push(entry.row(drivers.to_string(), gain));
                facts.push(entry.facts(&json!(drivers)));
            }
        }
    }
    Ok(Section {
        key: "drivers".to_owned(),
        facts: Value::Array(facts),
        table: Table {
            heading: format!("Drivers: {CONCURRENCY} in flight, nginx with {} workers", server.1),
            columns: vec!["tool", "answers", "drivers", "requests/s", "of one", "note"],
            rows,
            remarks: vec![format!(
                "nginx on cores {}, clients on cores {}.",
                server.0, bench.client_cores
            )],
        },
    })
}

/// One client core against a server that is never the limit.
pub(crate) fn transports(bench: &Bench, tools: &[Tool], sizes: &Sizes) -> Result<Section, String> {
    let [server, _] = Bench::halves();
    let front = Front::start(bench, &server.0, server.1, "")?;
    let mut entries = Vec::new();
    for transport in Transport::ALL {
        for &tool in tools.iter().filter(|tool| tool.pace() == Pace::Timed) {
            // It speaks no HTTP/2.
            if tool == Tool::Wrk && transport == Transport::Http2 {
                continue;
            }
            let plain = load(&format!("transport-{transport:?}"), String::new(), false, sizes);
            let load = over(plain, transport, front.one_shot(transport));
            entries.push(entry(tool, transport.title().to_owned(), &load, bench, sizes));
        }
    }
    let wrk = |what: &str| {
        let of_wrk = entries.iter().find(|entry| entry.tool == Tool::Wrk && entry.what == what);
        of_wrk.and_then(|entry| entry.per_s)
    };
    let row = |entry: &Entry| {
        let share = entry.per_s.zip(wrk(&entry.what)).map(|(per_s, wrk)| ratio(per_s / wrk));
        entry.row("1".to_owned(), share)
    };
    Ok(Section {
        key: "transports".to_owned(),
        facts: entries.iter().map(|entry| entry.facts(&json!(1))).collect(),
        table: Table {
            heading: format!("Transports: one-shot, {CONCURRENCY} in flight, one client core"),
            columns: vec!["tool", "transport", "drivers", "requests/s", "of wrk", "note"],
            rows: entries.iter().map(row).collect(),
            remarks: vec![format!("nginx with {} workers on cores {}.", server.1, server.0)],
        },
    })
}

impl Entry {
    fn row(&self, drivers: String, share: Option<String>) -> Vec<String> {
        let mut notes: Vec<String> = self.outcomes.iter().flat_map(Outcome::notes).collect();
        notes.dedup();
        vec![
            self.tool.title().to_owned(),
            self.what.clone(),
            drivers,
            or_dash(self.per_s.map(count)),
            or_dash(share),
            notes.join("; "),
        ]
    }

    fn facts(&self, drivers: &Value) -> Value {
        json!({
            "tool": self.tool,
            "what": self.what,
            "drivers": drivers,
            "median_per_s": self.per_s,
            "runs": self.outcomes,
        })
    }
}
