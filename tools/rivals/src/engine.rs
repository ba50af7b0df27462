//! The embedded engine as a process of its own, on a core of its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bench::Bench;
use super::truth::Truth;

/// A running engine; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Engine {
    child: Child,
    pub(crate) url: String,
}

/// What the engine is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Behaviour {
    /// Answers as fast as it can.
    Echo { events_per_write: u32 },
    /// A token after each gap, the first after 100 ms; keeps the truth.
    Paced { gap_ms: u32 },
    /// The same, with further words of the engine's command line.
    PacedBut(&'static str),
}

const PACE: &str = "--mode paced --ttft 100ms";

impl Behaviour {
    /// The name of the one model that is served.
    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Echo { .. } => "echo",
            Self::Paced { .. } | Self::PacedBut(_) => "paced",
        }
    }

    fn arguments(self) -> Vec<String> {
        let words = match self {
            Self::Echo { events_per_write } => {
                format!("--mode echo --events-per-write {events_per_write}")
            }
            Self::Paced { gap_ms } => format!("{PACE} --gap {gap_ms}ms"),
            Self::PacedBut(more) => format!("{PACE} --gap 10ms {more}"),
        };
        words.split_whitespace().map(str::to_owned).collect()
    }
}

impl Engine {
    pub(crate) fn start(behaviour: Behaviour, bench: &Bench) -> Result<Self, String> {
        let mut child = Command::new("taskset")
            .arg("--cpu-list")
            .arg(bench.server_core.to_string())
            .arg(&bench.binary)
            .args(["engine", "--port", "0"])
            .args(behaviour.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`taskset` did not start: {error}"))?;
        let mut announcement = String::new();
        if let Some(stdout) = child.stdout.take() {
            // The engine says nothing after its address, so nothing is lost with the reader.
            let _ = BufReader::new(stdout).read_line(&mut announcement);
        }
        let mut engine = Self { child, url: String::new() };
        let url = announcement.split_whitespace().find(|word| word.starts_with("http://"));
        url.ok_or("the engine announced no address")?.clone_into(&mut engine.url);
        Ok(engine)
    }

    pub(crate) fn truth(&self) -> Result<Truth, String> {
        let body = self.fetch("/truth").map_err(|error| format!("GET /truth: {error}"))?;
        serde_json::from_slice(&body).map_err(|error| format!("GET /truth: {error}"))
    }

    fn fetch(&self, path: &str) -> io::Result<Vec<u8>> {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let body = head.map(|end| answer.split_off(end + 4));
        body.ok_or_else(|| io::Error::other("the answer has no end of its head"))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
