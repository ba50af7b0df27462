//! Hand-made runs that the tests share.

use std::io::Cursor;
use std::num::NonZeroU32;
use std::path::PathBuf;

use inferometer_model::journal::{
    ClientFacts, ClockMapping, CpuFacts, LagHistogram, NotSent, RunStop, StartedRequest,
};
use inferometer_model::observations::{
    ClockAnchor, Connections, Correction, Endpoint, FileFacts, InputLength, Materials,
    PinnedOutput, TokenizerFacts, UsageAsk,
};
use inferometer_model::outcome::Cause;
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::record::{
    Carried, ConnectionFacts, Dial, DoneMark, Event, Finish, FinishReason, Read, RequestedLengths,
    ResponseHead, Usage,
};
use inferometer_model::spec::{LoadTable, PerSecond};
use inferometer_model::{
    Ending, Environment, JournalEntry, Manifest, Moment, RequestId, RequestRecord, RunEnding,
    SpecDraft,
};
use inferometer_store::{Integrity, JournalReader, JournalWriter, RunStore, StoreError};
use tempfile::TempDir;

/// 2026-01-02 03:04:05.5 UTC.
pub(crate) const STARTED_NS: u64 = 1_767_323_045_500_000_000;

pub(crate) fn ms(count: u64) -> Moment {
    Moment::from_nanos(count * 1_000_000)
}

fn materials() -> Materials {
    let correction = Correction { tokens_per_word: 1.0 / 3.0, overhead_tokens: 30.0 };
    Materials {
        tokenizer: Some(TokenizerFacts { name: "tiny".to_owned(), sha256: "ab12".to_owned() }),
        files: vec![FileFacts {
            name: "sharegpt.json".to_owned(),
            kind: "sharegpt".to_owned(),
            sha256: "cd34".to_owned(),
            items: 1_024,
            dropped: [("too long".to_owned(), 7)].into(),
        }],
        input_length: InputLength::Corrected(correction),
        notes: vec!["moments lie on a grid of 3 s".to_owned()],
    }
}

pub(crate) fn new_run(requests: Option<u64>) -> Manifest {
    let load = LoadTable { rate: Some(PerSecond(0.1 + 0.2)), ..LoadTable::default() };
    Manifest {
        format: 0,
        run: String::new(),
        started: String::new(),
        spec: SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap(),
        bounds: Bounds {
            requests,
            release_before: None,
            requests_min: 0,
            slots: NonZeroU32::new(8),
        },
        fingerprints: Fingerprints { workload: "w-1".to_owned(), plan: "p-1".to_owned() },
        materials: materials(),
        endpoint: Endpoint {
            base: "http://127.0.0.1:8000".parse().unwrap(),
            address: "127.0.0.1:8000".parse().unwrap(),
            model: "tiny".to_owned(),
            usage: UsageAsk::Final,
            connections: Connections::Reuse,
            pinned: PinnedOutput::default(),
            embedded: false,
        },
        warm_up: None,
        seen_before: None,
        calibration: None,
        simulated: None,
        stripe: None,
        merged: None,
        server: None,
        environment: Environment {
            tool_version: "0.1.0".to_owned(),
            os: "linux".to_owned(),
            architecture: "x86_64".to_owned(),
            cpus: Some(2),
            ..Environment::default()
        },
        clock: ClockAnchor { monotonic_ns: 7, realtime_ns: STARTED_NS },
    }
}

pub(crate) fn store() -> (TempDir, RunStore) {
    let place = tempfile::tempdir().unwrap();
    let store = RunStore::open(place.path().join("runs")).unwrap();
    (place, store)
}

pub(crate) fn started(id: u64) -> JournalEntry {
    let asked = RequestedLengths {
        input_tokens: 512,
        output_tokens: 128,
        part: 0,
        turn: 0,
        ..RequestedLengths::default()
    };
    JournalEntry::Started(StartedRequest {
        id: RequestId(id),
        intended: ms(id),
        admitted: ms(id + 1),
        asked,
    })
}

/// A streamed answer with every part of a record in use.
pub(crate) fn record(id: u64) -> RequestRecord {
    RequestRecord {
        id: RequestId(id),
        attempt: 1,
        intended: ms(id),
        admitted: ms(id + 1),
        sent: Some(ms(id + 2)),
        asked: RequestedLengths {
            input_tokens: 512,
            output_tokens: 2,
            part: 0,
            turn: 0,
            ..RequestedLengths::default()
        },
        connection: Some(ConnectionFacts {
            ordinal: 3,
            reused: false,
            dial: Some(Dial { started: ms(id + 1), connected: ms(id + 2), secured: None }),
        }),
        head: Some(ResponseHead { status: 200, read: 0, streamed: true }),
        reads: vec![
            Read {
                kernel: Some(ms(id + 10)),
                user: ms(id + 11),
                turn: ms(id + 9),
                bytes: 300,
                drained: false,
            },
            Read { kernel: None, user: ms(id + 20), turn: ms(id + 19), bytes: 120, drained: true },
        ],
        events: vec![
            Event {
                read: 0,
                choice: 0,
                carried: Carried::CHOICE | Carried::ROLE | Carried::CONTENT,
                tokens: Some(1),
                text_bytes: 4,
            },
            Event { read: 1, choice: 0, carried: Carried::DONE, tokens: None, text_bytes: 0 },
        ],
        comments: 1,
        usage: Some(Usage {
            prompt_tokens: Some(512),
            completion_tokens: Some(2),
            cached_tokens: None,
        }),
        server: None,
        finishes: vec![
            Finish { choice: 0, reason: FinishReason::Length },
            Finish { choice: 1, reason: FinishReason::Other("eos".to_owned()) },
        ],
        done: DoneMark { seen: true, events_after: 0 },
        other_model: Some("tiny-awq".to_owned()),
        ending: Ending::ok(ms(id + 20)),
        grade: None,
        answer: None,
    }
}

pub(crate) fn ended(id: u64) -> JournalEntry {
    JournalEntry::Ended(Box::new(record(id)))
}

pub(crate) fn not_sent(first: u64, count: u64) -> JournalEntry {
    let first = RequestId(first);
    JournalEntry::NotSent(NotSent { first, count, cause: Cause::RunStopped, at: ms(50) })
}

pub(crate) fn run_ended() -> JournalEntry {
    let mut loop_lag = LagHistogram::default();
    loop_lag.add(3_000);
    JournalEntry::RunEnded(RunEnding {
        began: Some(ms(1)),
        at: ms(60),
        stop: RunStop::PlanDone,
        client: ClientFacts {
            drivers: 1,
            cpu: Some(CpuFacts { process_ns: 5_000, ticks: 400, stolen_ticks: 3 }),
            mapping: Some(ClockMapping { estimates: 4, error_ns_max: 900, jumps: 0 }),
            loop_lag,
            journal_waits: 0,
            driver_cpu_us: Some(250_000),
            dialling: None,
        },
    })
}

/// Five requests: three answered out of order, two never sent.
pub(crate) fn whole_run() -> Vec<JournalEntry> {
    vec![
        started(0),
        started(1),
        ended(1),
        started(2),
        ended(0),
        ended(2),
        not_sent(3, 2),
        run_ended(),
    ]
}

pub(crate) fn journal_bytes(entries: &[JournalEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = JournalWriter::new(&mut bytes, PathBuf::from("memory"));
    for entry in entries {
        writer.append(entry).unwrap();
    }
    writer.flush().unwrap();
    bytes
}

pub(crate) fn read_journal(bytes: &[u8]) -> Result<(Vec<JournalEntry>, Integrity), StoreError> {
    let mut reader = JournalReader::new(Cursor::new(bytes), PathBuf::from("memory"))?;
    let entries = reader.by_ref().collect::<Result<_, _>>()?;
    Ok((entries, reader.into_integrity()))
}
