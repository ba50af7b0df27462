//! What a summary costs. An item is a token event.
//!
//! `cargo bench -p inferometer-analysis` summarises a run of ten million token events, which is to
//! take less than two seconds on one core and to keep the process, records included, below a
//! gigabyte; `cargo test` does the same with a small run. The hash is of the summary: a faster pass
//! that changes it is another pass.

#![expect(clippy::print_stdout, reason = "a benchmark talks to who started it")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::LazyLock;

use divan::counter::ItemsCount;
use inferometer_analysis::summarize;
use inferometer_model::endpoint::Api;
use inferometer_model::journal::{ClientFacts, RunEnding, RunStop};
use inferometer_model::observations::{
    ClockAnchor, Connections, Endpoint, Manifest, Materials, PinnedOutput, UsageAsk,
};
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::record::{
    Carried, DoneMark, Event, Finish, FinishReason, Read, RequestedLengths, ResponseHead, Usage,
};
use inferometer_model::spec::{Lengths, SourceTable, TargetTable, WorkloadTable};
use inferometer_model::{
    Ending, Environment, Moment, Observations, RequestId, RequestRecord, SpecDraft, StartedRequest,
};

/// The allocator of the binary that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SLOTS: u32 = 64;
const EVENTS: u32 = 250;

static RUN: LazyLock<Observations> = LazyLock::new(|| {
    // Cargo says which of the two it is.
    let requests = if std::env::args().any(|word| word == "--bench") { 40_000 } else { 200 };
    run_of(requests)
});

fn main() {
    divan::main();
    if let Some(peak) = memory_peak() {
        println!("peak memory of the process  {peak}");
    }
    let bytes = summarize(&RUN).to_json_bytes();
    println!("hash of the summary         {:016x}", hash(&bytes));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn summary(bencher: divan::Bencher<'_, '_>) {
    let events: usize = RUN.records.iter().map(|record| record.events.len()).sum();
    bencher.counter(ItemsCount::new(events)).bench_local(|| summarize(black_box(&RUN)));
}

/// A closed loop of streams, every token in a read of its own with the kernel's stamp.
fn run_of(requests: u32) -> Observations {
    let mut draws = Draws(7);
    let mut free_ns = vec![0_u64; SLOTS as usize];
    let mut records = Vec::with_capacity(requests as usize);
    for id in 0..requests {
        let slot = (0..free_ns.len()).min_by_key(|slot| free_ns[*slot]).unwrap_or(0);
        let record = answer(id.into(), free_ns[slot], &mut draws);
        free_ns[slot] = record.ending.at.as_nanos();
        records.push(record);
    }
    let end = free_ns.into_iter().max().unwrap_or(0);
    Observations::new(manifest(), records, Vec::new(), ending(end))
        .expect("every request ends once")
}

fn answer(id: u64, from_ns: u64, draws: &mut Draws) -> RequestRecord {
    let moment = Moment::from_nanos;
    let asked = RequestedLengths {
        input_tokens: 512,
        output_tokens: EVENTS,
        part: 0,
        turn: 0,
        ..RequestedLengths::default()
    };
    let (intended, admitted) = (moment(from_ns), moment(from_ns));
    let started = StartedRequest { id: RequestId(id), intended, admitted, asked };
    let sent = from_ns + draws.below(90_000);
    let mut now = sent + 40_000_000 + draws.below(60_000_000);
    let (mut reads, mut events) = (exactly(EVENTS), exactly(EVENTS));
    for read in 0..EVENTS {
        let user = now + 15_000 + draws.below(120_000);
        reads.push(Read {
            kernel: Some(moment(now)),
            user: moment(user),
            turn: moment(user - 9_000),
            bytes: 180,
            drained: true,
        });
        let carried = Carried::CHOICE | Carried::CONTENT;
        events.push(Event { read, choice: 0, carried, tokens: Some(1), text_bytes: 5 });
        // Steps of a batch, and now and then a prompt of somebody else between them.
        let stall = if draws.below(50) == 0 { draws.below(80_000_000) } else { 0 };
        now += 18_000_000 + draws.below(6_000_000) + stall;
    }
    let last = reads.last().map_or(sent, |read| read.user.as_nanos());
    RequestRecord {
        sent: Some(moment(sent)),
        head: Some(ResponseHead { status: 200, read: 0, streamed: true }),
        reads,
        events,
        usage: Some(Usage {
            prompt_tokens: Some(512),
            completion_tokens: Some(EVENTS.into()),
            cached_tokens: None,
        }),
        finishes: vec![Finish { choice: 0, reason: FinishReason::Length }],
        done: DoneMark { seen: true, events_after: 0 },
        ..RequestRecord::without_answer(&started, Ending::ok(moment(last + 20_000)))
    }
}

/// As a reader that knows the length allocates: what a vector holds in reserve is not the run's.
fn exactly<T>(length: u32) -> Vec<T> {
    Vec::with_capacity(length as usize)
}

fn manifest() -> Manifest {
    let source = SourceTable {
        input_tokens: Some(Lengths::Fixed(512)),
        output_tokens: Some(Lengths::Fixed(EVENTS)),
        ..SourceTable::default()
    };
    let draft = SpecDraft {
        url: Some("http://127.0.0.1:8000".parse().expect("a URL")),
        target: TargetTable { api: Some(Api::Completions), ..TargetTable::default() },
        workload: WorkloadTable { source, seed: Some(7), ..WorkloadTable::default() },
        ..SpecDraft::default()
    };
    Manifest {
        format: 1,
        run: "20260101-000000-long".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        clock: ClockAnchor { monotonic_ns: 0, realtime_ns: 0 },
        spec: draft.resolve().expect("the defaults make a spec"),
        bounds: Bounds {
            requests: None,
            release_before: None,
            requests_min: 0,
            slots: NonZeroU32::new(SLOTS),
        },
        fingerprints: Fingerprints { workload: String::new(), plan: String::new() },
        materials: Materials::default(),
        endpoint: Endpoint {
            base: "http://127.0.0.1:8000".parse().expect("a URL"),
            address: ([127, 0, 0, 1], 8000).into(),
            model: "tiny".to_owned(),
            usage: UsageAsk::Continuous,
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
        environment: Environment::default(),
        server: None,
    }
}

fn ending(at_ns: u64) -> RunEnding {
    RunEnding {
        began: Some(Moment::ZERO),
        at: Moment::from_nanos(at_ns),
        stop: RunStop::PlanDone,
        client: ClientFacts::default(),
    }
}

/// `SplitMix64`: the run is the same on every machine.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Where the system says it.
fn memory_peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
