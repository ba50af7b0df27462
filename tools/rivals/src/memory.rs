//! What an open stream costs our client in memory, as the system counts it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::Bench;
use super::engine::{Behaviour, Engine};
use super::section::Section;
use super::sizes::Sizes;
use super::table::{Table, count, or_dash};
use super::tool::{Extent, Load, Tool};
use super::tools::ours;

const FEW: u32 = 8;
const TOKENS: u32 = 100;
/// When all connections are open and every stream has had some eighty of its tokens.
const LOOK_AFTER: Duration = Duration::from_millis(4_500);

pub(crate) fn memory(bench: &Bench, tools: &[Tool], sizes: &Sizes) -> Section {
    let (mut rows, mut facts) = (Vec::new(), Vec::new());
    for &tool in tools.iter().filter(|tool| matches!(tool, Tool::Ours | Tool::Before)) {
        let few = resident_bytes(tool, FEW, bench);
        let many = resident_bytes(tool, sizes.waiting_streams, bench);
        let each = few
            .clone()
            .ok()
            .zip(many.clone().ok())
            .map(|(few, many)| (many - few) / f64::from(sizes.waiting_streams - FEW) / 1024.0);
        let notes: Vec<String> =
            [&few, &many].into_iter().filter_map(|it| it.clone().err()).collect();
        facts.push(json!({"tool": tool, "kib_per_stream": each, "bytes": [few.ok(), many.ok()]}));
        let each = or_dash(each.map(|each| format!("{each:.1}")));
        let streams = count(f64::from(sizes.waiting_streams));
        rows.push(vec![tool.title().to_owned(), streams, each, notes.join("; ")]);
    }
    Section {
        key: "memory".to_owned(),
        facts: Value::Array(facts),
        table: Table {
            heading: "Memory: open streams with about eighty tokens received".to_owned(),
            columns: vec!["tool", "streams", "KiB per stream", "note"],
            rows,
            remarks: vec![format!(
                "Resident memory with all streams open, less that with {FEW}, for each stream: \
                 buffers, tasks, and what was recorded so far."
            )],
        },
    }
}

/// The client's resident memory in the middle of a run.
fn resident_bytes(tool: Tool, streams: u32, bench: &Bench) -> Result<f64, String> {
    let engine = Engine::start(Behaviour::Paced { gap_ms: 50 }, bench)?;
    let load = Load {
        label: format!("memory-{streams}"),
        url: engine.url.clone(),
        model: "paced",
        concurrency: streams,
        extent: Extent::Requests(streams),
        output_tokens: TOKENS,
        streamed: true,
        flags: Vec::new(),
    };
    let folder = bench.folder_for(tool, &load)?;
    let failed = |why: std::io::Error| format!("the client did not start: {why}");
    let child = Command::new("taskset")
        .args(["--cpu-list", &bench.client_cores])
        .arg(tool.program(bench))
        .args(ours::arguments(&load))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut client = Client(child);
    std::thread::sleep(LOOK_AFTER);
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.0.id()));
    let has_ended = client.0.try_wait().map_err(failed)?.is_some();
    let status = status.ok().filter(|_| !has_ended).ok_or("the client had ended")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.map(|kib| kib * 1024.0).ok_or_else(|| "the system reports no memory".to_owned())
}

struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
