//! The whole client against the echo engine, which is a process of its own: plan, bodies, wire,
//! decoder and records, without a store.
//!
//! `cargo bench -p inferometer-cli` measures; `cargo test` runs each case once, with few requests.
//! An item is a request of the one-shot case and a token of the streams.
//!
//! Client and engine share the cores of this machine: the engine is put on the first core that this
//! process may use, the driver on the last, and what else runs there takes its share.
//! `taskset -c 2,3 cargo bench …` chooses two cores that do nothing else; with only one
//! (`taskset -c 3`) it is the work of both that is measured. How others fare on the same engine is
//! what `cargo rivals` says.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use divan::counter::ItemsCount;
use inferometer_load::resources::resolve;
use inferometer_load::resources::{allowed, pin_to};
use inferometer_load::target::Credentials;
use inferometer_load::{Control, Drive, Drivers, Progress, SystemClock, Target, drive};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::spec::{Limits, LoadTable, SourceTable, WorkloadTable};
use inferometer_model::{JournalEntry, Outcome, Plan, SpecDraft};
use inferometer_target::EngineProcess;
use inferometer_workload::{Inputs, make_plan};

/// The allocator of the binary that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lengths and numbers in flight are those of `cargo rivals`, so that its tables can be held
/// beside these figures.
const INPUT_TOKENS: u32 = 16;
/// Batches of records that may wait to be counted.
const JOURNAL_QUEUE: usize = 1 << 13;

fn main() {
    divan::main();
}

#[divan::bench(args = [100], sample_count = 10, sample_size = 1)]
fn one_shot(bencher: divan::Bencher<'_, '_>, slots: u32) {
    let server = Server::start(1);
    let load = Load { slots, streaming: false, output_tokens: 16, requests: requests(100_000) };
    bencher.counter(ItemsCount::new(load.requests)).bench_local(|| server.answer(load));
}

#[divan::bench(args = [1, 8], sample_count = 10, sample_size = 1)]
fn streamed(bencher: divan::Bencher<'_, '_>, events_per_write: u32) {
    let server = Server::start(events_per_write);
    let load = Load { slots: 64, streaming: true, output_tokens: 256, requests: requests(2_500) };
    let tokens = load.requests * u64::from(load.output_tokens);
    bencher.counter(ItemsCount::new(tokens)).bench_local(|| server.answer(load));
}

/// Enough that opening the connections at the start, four each millisecond, does not matter; as a test,
/// enough to use each of them.
fn requests(measured: u64) -> u64 {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    if is_measured { measured } else { 200 }
}

/// A closed loop.
#[derive(Clone, Copy)]
struct Load {
    slots: u32,
    streaming: bool,
    output_tokens: u32,
    requests: u64,
}

/// An echo engine, and the core that is left to the client.
struct Server {
    engine: EngineProcess,
    client_core: Option<usize>,
}

impl Server {
    fn start(events_per_write: u32) -> Self {
        let cores = allowed();
        let program = Path::new(env!("CARGO_BIN_EXE_inferometer"));
        let arguments = ["--mode", "echo", "--events-per-write", &events_per_write.to_string()]
            .map(str::to_owned);
        // A process inherits the core of the thread that starts it.
        let starting = || {
            cores.first().copied().into_iter().for_each(pin_to);
            EngineProcess::start(program, &arguments)
        };
        let started = thread::scope(|scope| scope.spawn(starting).join());
        let engine = started.expect("no panic").expect("an engine");
        Self { engine, client_core: cores.last().copied() }
    }

    /// Plays a load to its end. Records are counted and dropped on the receiving thread, as they are
    /// when a store has written them.
    fn answer(&self, load: Load) {
        let (journal, entries) = sync_channel(JOURNAL_QUEUE);
        let run = Drive {
            start_at: None,
            plan: load.plan(),
            target: Arc::new(self.target(load.streaming)),
            clock: SystemClock::new(),
            control: Control::default(),
            progress: Arc::new(Progress::default()),
            ceiling: load.slots as usize,
            drivers: Drivers { cores: self.client_core.into_iter().collect(), ..Drivers::ONE },
            stall_grace: Drive::STALL_GRACE,
            journal,
        };
        let driving = thread::spawn(move || drive(run));
        let answered = entries.into_iter().flatten().filter(is_answered).count();
        assert_eq!(answered as u64, load.requests);
        assert!(matches!(driving.join(), Ok(Ok(_))));
    }

    fn target(&self, streaming: bool) -> Target {
        let limits = Limits::default();
        let address = resolve(&self.engine.base, limits.connect).expect("an address of our own");
        Target {
            base: self.engine.base.clone(),
            address,
            api: Api::Chat,
            model: "echo".to_owned(),
            streaming,
            usage: if streaming { UsageAsk::Final } else { UsageAsk::None },
            fields: serde_json::Map::new(),
            pinned: PinnedOutput::default(),
            connections: Connections::Reuse,
            limits,
            credentials: Credentials::default(),
            request_id_prefix: "inferometer-bench".to_owned(),
            cancel: None,
            replicas: Vec::new(),
            kernel_stamps: true,
            http: HttpVersion::Http1,
            tls: None,
        }
    }
}

impl Load {
    fn plan(self) -> Arc<dyn Plan> {
        let draft = SpecDraft {
            workload: WorkloadTable {
                stream: Some(self.streaming),
                source: SourceTable {
                    input_tokens: Some(INPUT_TOKENS.into()),
                    output_tokens: Some(self.output_tokens.into()),
                    ..SourceTable::default()
                },
                ..WorkloadTable::default()
            },
            load: LoadTable {
                concurrency: Some(self.slots),
                requests: Some(self.requests),
                ..LoadTable::default()
            },
            ..SpecDraft::default()
        };
        let spec = draft.resolve().expect("a plain spec");
        let inputs = Inputs::gather(&spec).expect("nothing to read");
        make_plan(&spec, &inputs).0
    }
}

fn is_answered(entry: &JournalEntry) -> bool {
    matches!(entry, JournalEntry::Ended(record) if record.ending.outcome == Outcome::Ok)
}
