//! Everything that reads foreign bytes, as functions of bytes: whatever comes, none of them may panic,
//! take for ever or contradict itself.
//!
//! `cargo xtask fuzz` feeds them mutations of the files in `seeds/`, with the stable toolchain and
//! without guidance. With a nightly toolchain, `cargo fuzz run TARGET` feeds the same functions by
//! coverage; its entry points are in `fuzz/` at the root.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a panic is what a fuzzer looks for"
)]

pub mod mutation;

use std::future::Future;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use inferometer_analysis::{LatencyOrigin, Requirement, check_slos};
use inferometer_interchange::{Import, PublishedTable, read_file};
use inferometer_load::answer::{Answer, AnswerReader, Failure, Framing};
use inferometer_load::http1::read_pieces;
use inferometer_load::sse::{JsonLines, SseBounds, SseDecoder};
use inferometer_model::endpoint::Api;
use inferometer_model::fetch::{Fetch, FetchError, FetchReply, FetchRequest};
use inferometer_model::import::ImportReading;
use inferometer_model::spec::{
    ClientTable, EngineTable, LimitTable, LoadTable, Slo, SourceTable, TargetTable, WorkloadTable,
};
use inferometer_model::telemetry::TelemetryEntry;
use inferometer_model::{JournalEntry, SpecDraft};
use inferometer_report::narrative::Facts;
use inferometer_report::narrative::claims::{Ruling, Scope, check};
use inferometer_report::narrative::facts::FactRow;
use inferometer_store::{Framed, JournalReader, JournalWriter};
use inferometer_target::list_models;
use inferometer_target::metrics::read_reply;
use inferometer_target::system::ask_server;
use inferometer_workload::tokenizer::Tokenizer;
use inferometer_workload::{Inputs, make_plan};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A reader of foreign bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Also the name of the folder of its seeds.
    pub name: &'static str,
    /// Returns whether the bytes were what it reads.
    pub run: fn(&[u8]) -> bool,
}

pub static TARGETS: [Target; 14] = [
    Target { name: "http1", run: http1 },
    Target { name: "sse", run: sse },
    Target { name: "answer", run: answer },
    Target { name: "prometheus", run: prometheus },
    Target { name: "server", run: server },
    Target { name: "experiment", run: experiment },
    Target { name: "sessions", run: sessions },
    Target { name: "dataset", run: dataset },
    Target { name: "tokenizer", run: tokenizer },
    Target { name: "import", run: import },
    Target { name: "published", run: published },
    Target { name: "journal", run: journal },
    Target { name: "threshold", run: threshold },
    Target { name: "claim", run: claim },
];

/// Answers of HTTP/1.1: the same, however they are cut.
pub fn http1(data: &[u8]) -> bool {
    let whole = read_pieces(&[data]);
    let bytes: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(read_pieces(&bytes), whole);
    assert!(whole.head.is_some() || whole.body.is_empty() && whole.cause.is_some());
    whole.cause.is_none()
}

/// Event streams and JSON lines: the same, however they are cut.
pub fn sse(data: &[u8]) -> bool {
    let bytes: Vec<&[u8]> = data.chunks(1).collect();
    let (found, comments, is_read) = events(&[data]);
    assert_eq!(events(&bytes), (found, comments, is_read));
    assert_eq!(lines(&[data]), lines(&bytes));
    is_read
}

/// Small enough for mutations to reach them.
const LINE_BYTES: usize = 200;

/// Name and data of an event.
type Event = (Vec<u8>, Vec<u8>);

fn events(parts: &[&[u8]]) -> (Vec<Event>, u32, bool) {
    let mut decoder = SseDecoder::new(SseBounds { line_bytes: LINE_BYTES, event_bytes: 500 });
    let mut events = Vec::new();
    let is_read = parts.iter().all(|part| {
        decoder.push(part, |event| events.push((event.name.to_vec(), event.data.to_vec()))).is_ok()
    });
    (events, decoder.comments(), is_read)
}

fn lines(parts: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let mut decoder = JsonLines::new(LINE_BYTES);
    let mut lines = Vec::new();
    let is_read =
        parts.iter().all(|part| decoder.push(part, |line| lines.push(line.to_vec())).is_ok());
    if is_read {
        lines.push(decoder.take_rest());
    }
    (lines, is_read)
}

/// Answers of every API in every framing. The first byte chooses both.
pub fn answer(data: &[u8]) -> bool {
    let Some((choice, body)) = data.split_first() else { return false };
    let apis: Vec<Api> = Api::all().collect();
    let choice = usize::from(*choice);
    // APIs are only ever added at the end of their list, so that a seed keeps its meaning.
    let framings = [Framing::EventStream, Framing::JsonLines, Framing::Whole];
    let (api, framing) = (apis[choice / 3 % apis.len()], framings[choice % 3]);
    let whole = read_answer(api, framing, &[body]);
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(read_answer(api, framing, &bytes), whole, "{api}");
    whole.1.is_ok()
}

fn read_answer(api: Api, framing: Framing, parts: &[&[u8]]) -> (Answer, Result<(), Failure>) {
    let mut reader = AnswerReader::new(api, framing).keeping_text();
    let pushed = parts.iter().try_for_each(|part| reader.push(part, 0));
    let ended = pushed.and_then(|()| reader.end(0));
    let mut answer = reader.into_answer();
    // Comments behind a fault count as far as they had come.
    if ended.is_err() {
        answer.comments = 0;
    }
    (answer, ended)
}

/// The metrics page of a server.
pub fn prometheus(data: &[u8]) -> bool {
    let reply = FetchReply { status: 200, content_type: None, body: data.to_vec() };
    read_reply(&reply).is_ok()
}

/// A server that gives the same answer to every question about itself.
struct Parrot<'a>(&'a [u8]);

impl Fetch for Parrot<'_> {
    async fn fetch(&self, _: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
        Ok(FetchReply { status: 200, content_type: None, body: self.0.to_vec() })
    }
}

/// What servers report of themselves and of their models.
pub fn server(data: &[u8]) -> bool {
    let parrot = Parrot(data);
    let facts = at_once(ask_server(&parrot));
    let stored = serde_json::to_vec(&facts).unwrap();
    assert_eq!(facts, serde_json::from_slice(&stored).unwrap(), "stored facts are read again");
    at_once(list_models(&parrot)).is_ok() || facts != at_once(ask_server(&Parrot(b"null")))
}

/// What comes of a future that waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found,
        Poll::Pending => panic!("it waits"),
    }
}

/// The tables of an experiment file.
pub fn experiment(data: &[u8]) -> bool {
    fn table<T: DeserializeOwned + Default>(file: &Value, name: &str) -> Option<T> {
        match file.get(name) {
            None => Some(T::default()),
            Some(table) => serde_json::from_value(table.clone()).ok(),
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(file) = toml::from_str::<Value>(text) else { return false };
    let draft = || {
        Some(SpecDraft {
            engine: table::<EngineTable>(&file, "engine")?,
            target: table::<TargetTable>(&file, "target")?,
            workload: table::<WorkloadTable>(&file, "workload")?,
            load: table::<LoadTable>(&file, "load")?,
            client: table::<ClientTable>(&file, "client")?,
            limits: table::<LimitTable>(&file, "limits")?,
            ..SpecDraft::default()
        })
    };
    let Some(Ok(spec)) = draft().map(SpecDraft::resolve) else { return false };
    let stored = serde_json::to_vec(&spec).unwrap();
    assert_eq!(spec, serde_json::from_slice(&stored).unwrap(), "a stored spec is read again");
    true
}

/// Recorded sessions, by the format that their beginning shows.
pub fn sessions(data: &[u8]) -> bool {
    with_file("", data, |path| {
        plans(SourceTable { sessions: Some(path.to_owned()), ..SourceTable::default() })
    })
}

/// Datasets, by their beginning or by the ending of their name, which the first byte chooses.
pub fn dataset(data: &[u8]) -> bool {
    let Some((choice, data)) = data.split_first() else { return false };
    let endings = ["", ".csv", ".txt"];
    with_file(endings[usize::from(*choice) % endings.len()], data, |path| {
        plans(SourceTable { dataset: Some(path.to_owned()), ..SourceTable::default() })
    })
}

/// Tokenizers: `tokenizer.json`, models of `SentencePiece`, tiktoken ranks and tekken files.
pub fn tokenizer(data: &[u8]) -> bool {
    let opened = with_file("", data, |path| Tokenizer::open(&path.display().to_string()));
    if let Ok(tokenizer) = &opened {
        let ids = tokenizer.encode("Some text, 1234 numbers and ünïcödé.");
        tokenizer.decode(&ids);
    }
    opened.is_ok()
}

/// A file of these bytes in a folder of its own, as long as it is read.
fn with_file<T>(ending: &str, data: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    let folder = std::env::temp_dir().join(format!("inferometer-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("file{ending}"));
    std::fs::write(&path, data).unwrap();
    let found = read(&path);
    std::fs::remove_dir_all(&folder).unwrap();
    found
}

/// Whether a plan with requests can be made of a source.
fn plans(source: SourceTable) -> bool {
    let workload = WorkloadTable { source, seed: Some(1), ..WorkloadTable::default() };
    let load = LoadTable { concurrency: Some(2), ..LoadTable::default() };
    let spec = SpecDraft { workload, load, ..SpecDraft::default() }.resolve().unwrap();
    let inputs = Inputs::gather(&spec);
    inputs.is_ok_and(|inputs| !make_plan(&spec, &inputs).1.plan.is_empty())
}

/// Tables of published figures.
pub fn published(data: &[u8]) -> bool {
    std::str::from_utf8(data).is_ok_and(|text| PublishedTable::read(text).is_ok())
}

/// Result files of other tools.
pub fn import(data: &[u8]) -> bool {
    let import = read_file("file", data, &ImportReading::default());
    if let Ok(import) = &import {
        let stored = serde_json::to_vec(import).unwrap();
        assert_eq!(*import, serde_json::from_slice::<Import>(&stored).unwrap());
    }
    import.is_ok()
}

/// A journal, and the payload of a frame behind its checksum.
pub fn journal(data: &[u8]) -> bool {
    let mut is_read = false;
    if let Ok(reader) = JournalReader::new(Cursor::new(data), PathBuf::new()) {
        let entries: Vec<JournalEntry> = reader.map(Result::unwrap).collect();
        assert_eq!(written_and_read(&entries), entries);
        is_read = !entries.is_empty();
    }
    let Some((kind, payload)) = data.split_first() else { return is_read };
    if let Ok(entry) = JournalEntry::read(kind % 8, payload) {
        let entries = [entry];
        assert_eq!(written_and_read(&entries), entries);
        is_read = true;
    }
    is_read || TelemetryEntry::read(*kind, payload).is_ok()
}

fn written_and_read(entries: &[JournalEntry]) -> Vec<JournalEntry> {
    let mut bytes = Vec::new();
    let mut writer = JournalWriter::new(&mut bytes, PathBuf::new());
    for entry in entries {
        writer.append(entry).unwrap();
    }
    writer.flush().unwrap();
    let reader = JournalReader::new(Cursor::new(bytes), PathBuf::new()).unwrap();
    reader.map(Result::unwrap).collect()
}

/// SLOs and requirements.
pub fn threshold(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(slo) = text.parse::<Slo>() else { return false };
    assert_eq!(slo.to_string().parse::<Slo>().as_ref(), Ok(&slo), "it is read as it is shown");
    for streaming in [true, false] {
        let _ = check_slos(std::slice::from_ref(&slo), streaming);
    }
    let origins = [LatencyOrigin::Sent, LatencyOrigin::Schedule];
    origins.map(|origin| Requirement::from_slo(&slo, origin).is_ok()).contains(&true)
}

/// Sentences about a report.
pub fn claim(data: &[u8]) -> bool {
    static FACTS: LazyLock<Facts> = LazyLock::new(facts);
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let is_read = [Scope::Page, Scope::Scenario("Mixed Traffic")].map(|scope| {
        match check(text, scope, &FACTS) {
            Ruling::Holds { facts } => assert!(!facts.is_empty(), "it holds without a fact"),
            Ruling::Fails { reasons } => assert!(!reasons.is_empty(), "it fails for no reason"),
            Ruling::Uncheckable { .. } => return false,
        }
        true
    });
    is_read.contains(&true)
}

fn facts() -> Facts {
    let mut facts = Facts::default();
    let rows = [("Mixed Traffic", 4, 115.15, 20.83), ("Scaling (c=8)", 8, 186.29, 33.5)];
    for (name, concurrency, ttft, tpot) in rows {
        let row = FactRow { scenario: Some(name.to_owned()), concurrency: Some(concurrency) };
        let numbers = [
            ("concurrency", f64::from(concurrency)),
            ("output_throughput", 387.1),
            ("ttft.mean", ttft),
            ("ttft.p99", ttft * 1.5),
            ("tpot.p99", tpot),
        ];
        for (quantity, value) in numbers {
            facts.add(&row, "performance-summary", quantity, Some(value));
        }
    }
    facts
}
