//! Measures the client itself: how fast and how exact it is on this machine, against engines of our
//! own, and where the result is kept.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel, sync_channel};
use std::time::Duration;

use inferometer_analysis::DiallingFigures;
use inferometer_analysis::calibration::{
    Calibration, FidelityRow, Ladder, Level, Machine, MemorySample, Method, PacingRow, SCHEMA,
    StreamMemory, TrueAnswer,
};
use inferometer_engine::truth::{RequestTruth, Truth};
use inferometer_engine::{EngineOptions, Mode, Pacing};
use inferometer_load::resources::resolve;
use inferometer_load::target::Credentials;
use inferometer_load::{SystemClock, Target, resources};
use inferometer_model::fetch::FetchRequest;
use inferometer_model::journal::ClientFacts;
use inferometer_model::observations::{CalibrationFacts, UsageAsk};
use inferometer_model::spec::{
    ClientSpec, Limits, LoadTable, PerSecond, SourceTable, WorkloadTable,
};
use inferometer_model::{
    BaseUrl, Clock, Fetch, JournalEntry, Moment, RequestId, RequestRecord, RunEnding, Spec,
    SpecDraft,
};
use inferometer_store::{read_at_most, write_atomically};
use sha2::{Digest, Sha256};

use crate::embedded::Engine;
use crate::environment;
use crate::failure::{Failure, Result};
use crate::live::LiveTally;
use crate::measurement::{JOURNAL_QUEUE, Planned, RunContext, drive_plan};
use crate::preflight::{bare_target, fetching};
use crate::session::Session;

const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");
/// Approximate length of every prompt. The engine does not read it; the client makes and sends it.
const INPUT_TOKENS: u32 = 128;
/// Tokens of every answer on the ladder.
const LADDER_TOKENS: u32 = 64;
/// Time to first token of the engine that fidelity is measured against.
const TTFT: Duration = Duration::from_millis(100);
/// Requests of each slot.
const WAVES: u32 = 2;
/// How often memory is read.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Begins every request's id; the number follows.
const REQUEST_ID_PREFIX: &str = "inferometer-calibration";

/// The stored calibration of this client on this machine, in this version.
pub fn known(session: &Session) -> Option<CalibrationFacts> {
    // A damaged file is as good as none.
    let ignored = |why: String| session.talk(&format!("warning: {why}"));
    CalibrationFolder::new(&this_machine())?.read(ignored).map(|calibration| calibration.facts())
}

/// Measures memory, throughput, pacing and fidelity of a client with these threads.
pub fn measure(
    client: &ClientSpec,
    quick: bool,
    machine: Machine,
    report: impl Fn(&str),
) -> Result<Calibration> {
    let threads = client.drivers;
    let client = Client {
        kernel_stamps: true,
        threads: ClientSpec { drivers_by_load: false, ..client.clone() },
        ceiling: resources::raise_in_flight_ceiling(threads),
        scope: if quick { Scope::QUICK } else { Scope::FULL },
        report: &report,
    };
    let now_ns = SystemClock::new().anchor().realtime_ns;
    let now = jiff::Timestamp::from_nanosecond(now_ns.into())
        .map_err(|error| Failure::internal(format!("the wall clock: {error}")))?;
    let (streams, wanted) = (client.memory_streams(), client.scope.memory_streams);
    let few_streams = format!(
        "file descriptors allow {streams} streams in flight instead of {wanted} for the memory of a \
         stream; raise the limit with `ulimit -n`"
    );
    let few_streams = (streams < wanted).then_some(few_streams);
    let notes = [busy_note(&machine), few_streams, client.ladder_note()];
    let memory = client.measure_memory()?;
    let ladder = client.measure_ladder()?;
    let pacing = client.measure_pacing()?;
    let fidelity = client.measure_fidelity()?;
    let capacity = ladder.capacity().ok_or_else(|| {
        Failure::internal("no level of the ladder was steady, so the capacity is unknown")
    })?;
    Ok(Calibration {
        schema: SCHEMA.to_owned(),
        when: now.round(jiff::Unit::Second).unwrap_or(now).to_string(),
        tool_version: TOOL_VERSION.to_owned(),
        machine,
        method: Method {
            quick,
            drivers: threads.get(),
            input_tokens: INPUT_TOKENS,
            ladder_tokens: LADDER_TOKENS,
            ttft_ms: TTFT.as_secs_f64() * 1e3,
        },
        capacity,
        ladder,
        fidelity,
        pacing,
        memory,
        notes: notes.into_iter().flatten().collect(),
    })
}

/// How much is measured: all of it, or a short version for tests.
#[derive(Clone, Copy, Debug)]
struct Scope {
    levels: &'static [u32],
    /// How long requests are let go at each level.
    level_time: Duration,
    /// A level with fewer requests in its steady time is measured again, by number.
    level_requests_min: u64,
    fidelity_streams: &'static [u32],
    fidelity_tokens_max: u32,
    pacing_rates_per_s: &'static [f64],
    pacing_time: Duration,
    memory_streams: u32,
    /// Long enough to open all connections and look at the memory.
    memory_ttft: Duration,
}

impl Scope {
    const FULL: Self = Self {
        levels: &[100, 250, 500, 750, 1_000, 1_500, 2_000],
        level_time: Duration::from_millis(1_250),
        level_requests_min: 1_000,
        fidelity_streams: &[64, 256, 1_024, 4_096],
        fidelity_tokens_max: 200,
        pacing_rates_per_s: &[100.0, 1_000.0, 10_000.0],
        pacing_time: Duration::from_secs(3),
        memory_streams: 10_000,
        memory_ttft: Duration::from_secs(4),
    };

    const QUICK: Self = Self {
        levels: &[100, 250, 500],
        level_time: Duration::from_millis(400),
        level_requests_min: 200,
        fidelity_streams: &[16, 64],
        fidelity_tokens_max: 40,
        pacing_rates_per_s: &[100.0, 1_000.0],
        pacing_time: Duration::from_secs(1),
        memory_streams: 200,
        memory_ttft: Duration::from_secs(1),
    };

    /// Tokens of a stream: all streams of a level together stay within what both processes can
    /// keep and compare in a few seconds.
    fn fidelity_tokens(&self, streams: u32) -> u32 {
        const EVENTS_MAX: u32 = 500_000;
        const TOKENS_MIN: u32 = 50;
        let fitting = (EVENTS_MAX / (WAVES * streams)).max(TOKENS_MIN);
        fitting.min(self.fidelity_tokens_max)
    }
}

/// The client under measurement.
#[derive(Clone)]
struct Client<'a> {
    kernel_stamps: bool,
    threads: ClientSpec,
    /// Requests that this machine can hold in flight.
    ceiling: usize,
    scope: Scope,
    report: &'a dyn Fn(&str),
}

/// A number of requests in a closed loop.
fn closed(slots: u32, requests: u64) -> LoadTable {
    LoadTable { concurrency: Some(slots), requests: Some(requests), ..LoadTable::default() }
}

impl Client<'_> {
    /// Measured first: what an earlier drive has freed is not given back to the system, and would
    /// be used again without being seen.
    fn measure_memory(&self) -> Result<StreamMemory> {
        let streams = self.memory_streams();
        (self.report)(&format!("memory: {streams} streams in flight …"));
        let engine = TestEngine::paced(self.scope.memory_ttft, None)?;
        // Memory that every drive needs is allocated before the first look.
        self.drive(SystemClock::new(), &engine, (true, 1), closed(1, 1))?;
        let clock = SystemClock::new();
        let before = resident_bytes().unwrap_or(0);
        let (stop, stopped) = channel::<()>();
        let looking = std::thread::spawn(move || {
            let mut looks = Vec::new();
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let look = |resident_bytes| MemorySample { at: clock.now(), resident_bytes };
                looks.extend(resident_bytes().map(look));
            }
            looks
        });
        let driven = self.drive(clock, &engine, (true, 1), closed(streams, streams.into()));
        drop(stop);
        let looks = looking.join().map_err(|_| Failure::internal("the look at memory failed"))?;
        driven?;
        let truths = answers(&engine.truth()?, clock);
        Ok(StreamMemory::from_drives(streams, before, &looks, &truths))
    }

    /// As many as planned, or as many as file descriptors allow.
    fn memory_streams(&self) -> u32 {
        u32::try_from(self.ceiling).unwrap_or(u32::MAX).clamp(1, self.scope.memory_streams)
    }

    /// More and more requests in flight, against an engine that answers at once.
    fn measure_ladder(&self) -> Result<Ladder> {
        let engine = TestEngine::echo()?;
        let levels = |streaming: bool, name: &str| {
            let fitting = self.scope.levels.iter().filter(|slots| **slots as usize <= self.ceiling);
            fitting
                .map(|slots| {
                    (self.report)(&format!("ladder: {name}, {slots} in flight …"));
                    self.measure_level(&engine, *slots, streaming)
                })
                .collect::<Result<Vec<Level>>>()
        };
        Ok(Ladder { one_shot: levels(false, "one-shot")?, streamed: levels(true, "streamed")? })
    }

    fn measure_level(&self, engine: &TestEngine, slots: u32, streaming: bool) -> Result<Level> {
        let level = |load: LoadTable| -> Result<Level> {
            let answers = (streaming, LADDER_TOKENS);
            let driven = self.drive(SystemClock::new(), engine, answers, load)?;
            Ok(Level::from_records(slots, &driven.records))
        };
        let enough = self.scope.level_requests_min;
        let time = Some(self.scope.level_time.into());
        let mut found = level(LoadTable { requests: None, duration: time, ..closed(slots, 0) })?;
        // Too slow for its time. The first request of each slot is not counted, nor is its last; and
        // one slot that is slow to connect may see the others use up what was planned for all.
        let mut requests = enough + 2 * u64::from(slots);
        // How often a level that was never steady is measured again, four times as long each time.
        for _ in 0..=3 {
            if enough <= found.steady_requests {
                break;
            }
            found = level(closed(slots, requests))?;
            requests *= 4;
        }
        Ok(found)
    }

    /// Levels that this machine cannot hold are left out.
    fn ladder_note(&self) -> Option<String> {
        let levels = self.scope.levels.iter().chain(self.scope.fidelity_streams);
        let left_out: Vec<String> = levels
            .filter(|streams| self.ceiling < **streams as usize)
            .map(u32::to_string)
            .collect();
        (!left_out.is_empty()).then(|| {
            format!(
                "file descriptors allow {} requests in flight, so these levels were left out: {}; \
                 raise the limit with `ulimit -n`",
                self.ceiling,
                left_out.join(", ")
            )
        })
    }

    /// Whether the requests of an open loop leave when they should.
    fn measure_pacing(&self) -> Result<Vec<PacingRow>> {
        let engine = TestEngine::echo()?;
        let rates = self.scope.pacing_rates_per_s.iter().copied();
        rates
            .map(|rate_per_s| {
                (self.report)(&format!("pacing: {rate_per_s} requests/s …"));
                let load = LoadTable {
                    rate: Some(PerSecond(rate_per_s)),
                    duration: Some(self.scope.pacing_time.into()),
                    ..LoadTable::default()
                };
                let (clock, answers) = (SystemClock::new(), (false, LADDER_TOKENS));
                let driven = self.drive(clock, &engine, answers, load)?;
                Ok(PacingRow::from_records(rate_per_s, &driven.records, driven.not_sent))
            })
            .collect()
    }

    /// What the client reports of paced streams, against what the engine did.
    fn measure_fidelity(&self) -> Result<Vec<FidelityRow>> {
        let mut rows = Vec::new();
        for kernel_stamps in [true, false] {
            let client = Self { kernel_stamps, ..self.clone() };
            let all = self.scope.fidelity_streams.iter().copied();
            for streams in all.filter(|streams| *streams as usize <= self.ceiling) {
                let stamps = if kernel_stamps { "with" } else { "without" };
                (self.report)(&format!("fidelity: {streams} streams, {stamps} kernel stamps …"));
                rows.push(client.measure_fidelity_of(streams)?);
            }
        }
        Ok(rows)
    }

    /// A new engine for every row, so that its truth is of this row alone.
    fn measure_fidelity_of(&self, streams: u32) -> Result<FidelityRow> {
        let tokens = self.scope.fidelity_tokens(streams);
        // One engine process writes some hundred thousand tokens per second; at the pace of a few
        // streams it would be late with thousands, and prove nothing.
        let gap = Duration::from_millis(if streams <= 1_024 { 10 } else { 50 });
        let engine = TestEngine::paced(TTFT, Some(gap))?;
        let requests = u64::from(streams) * u64::from(WAVES);
        let clock = SystemClock::new();
        let Driven { records, client, .. } =
            self.drive(clock, &engine, (true, tokens), closed(streams, requests))?;
        let truth = engine.truth()?;
        let all_tokens = u64::from(tokens) * requests;
        let asked = FidelityRow {
            streams,
            gap_ms: gap.as_secs_f64() * 1e3,
            tokens,
            kernel_stamps: self.kernel_stamps,
            engine_late_ms_p99: truth.lateness.p99_ns.map(|ns| ns as f64 / 1e6),
            cpu_us_per_token: client.cpu.map(|cpu| cpu.process_ns as f64 / 1e3 / all_tokens as f64),
            dialling: client.dialling.as_ref().map(DiallingFigures::new),
            ..FidelityRow::default()
        };
        Ok(asked.compare(&records, &answers(&truth, clock)))
    }

    /// Sends the requests of a load, whose answers are streamed or not and have so many tokens.
    fn drive(
        &self,
        clock: SystemClock,
        engine: &TestEngine,
        (streaming, output_tokens): (bool, u32),
        load: LoadTable,
    ) -> Result<Driven> {
        let source = SourceTable {
            input_tokens: Some(INPUT_TOKENS.into()),
            output_tokens: Some(output_tokens.into()),
            ..SourceTable::default()
        };
        let workload =
            WorkloadTable { stream: Some(streaming), source, ..WorkloadTable::default() };
        let draft = SpecDraft { workload, load, ..SpecDraft::default() };
        let spec = Spec { client: self.threads.clone(), ..draft.resolve()? };
        let plan = Planned::new(spec.clone())?.plan;
        let target = engine.target(streaming, self.kernel_stamps)?;
        let session = Session::new(self.ceiling, Arc::new(|_| {}));
        let (journal, entries) = sync_channel(JOURNAL_QUEUE);
        let driving = std::thread::spawn(move || {
            let live = &LiveTally::default();
            let context = RunContext { spec: &spec, session: &session, live, worker: None };
            drive_plan(plan, target, clock, journal, context)
        });
        let (mut records, mut not_sent) = (Vec::new(), 0);
        for entry in entries.into_iter().flatten() {
            match entry {
                JournalEntry::Ended(record) => records.push(*record),
                JournalEntry::NotSent(part) => not_sent += part.count,
                JournalEntry::Started(_) | JournalEntry::RunEnded(_) => {}
            }
        }
        let ended = driving.join().map_err(|_| Failure::internal("the driver panicked"))?;
        let RunEnding { stop, client, .. } = ended.map_err(Failure::from_error)?;
        if stop.is_partial() {
            return Err(Failure::internal(format!("a drive was not finished: {}", stop.text())));
        }
        Ok(Driven { records, not_sent, client })
    }
}

/// What came of a load.
struct Driven {
    /// In the order in which they ended.
    records: Vec<RequestRecord>,
    not_sent: u64,
    client: ClientFacts,
}

/// Resident memory of this process, where the system reports it.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page_bytes).ok()?)
}

/// An engine of our own to measure a client with; it ends when this is dropped.
#[derive(Debug)]
pub struct TestEngine {
    engine: Engine,
    mode: Mode,
}

impl TestEngine {
    /// A child process, as the flags of `inferometer engine` say.
    pub fn with_flags(mode: Mode, flags: Vec<String>) -> Result<Self> {
        Ok(Self { engine: Engine::start(EngineOptions::new(mode), flags)?, mode })
    }

    /// Where it serves.
    pub fn base(&self) -> &BaseUrl {
        self.engine.base()
    }

    /// Answers at once.
    fn echo() -> Result<Self> {
        let engine = Engine::start(EngineOptions::new(Mode::Echo), Vec::new())?;
        Ok(Self { engine, mode: Mode::Echo })
    }

    /// Answers on a schedule and records when it did.
    fn paced(ttft: Duration, gap: Option<Duration>) -> Result<Self> {
        let default = Pacing::default();
        let pacing = Pacing { ttft, gap: gap.unwrap_or(default.gap), ..default };
        let gap = gap.map(|gap| format!("--gap={gap:?}"));
        let flags = [format!("--ttft={ttft:?}")].into_iter().chain(gap).collect();
        let options = EngineOptions { pacing, ..EngineOptions::new(Mode::Paced) };
        Ok(Self { engine: Engine::start(options, flags)?, mode: Mode::Paced })
    }

    fn target(&self, streaming: bool, kernel_stamps: bool) -> Result<Target> {
        // What a run would find out by probing: the paced engine counts on every event.
        let usage = match (streaming, self.mode) {
            (false, _) => UsageAsk::None,
            (true, Mode::Paced) => UsageAsk::Continuous,
            (true, Mode::Echo | Mode::Serve | Mode::Corpus) => UsageAsk::Final,
        };
        let base = self.engine.base();
        let address = resolve(base, Limits::default().connect).map_err(Failure::from_error)?;
        let spec = SpecDraft::default().resolve()?;
        Ok(Target {
            model: self.mode.to_string(),
            streaming,
            usage,
            request_id_prefix: REQUEST_ID_PREFIX.to_owned(),
            cancel: None,
            replicas: Vec::new(),
            kernel_stamps,
            ..bare_target(&spec, Credentials::default(), base, address)
        })
    }

    /// What the engine recorded of everything it did.
    pub fn truth(&self) -> Result<Truth> {
        let failed = |why: String| Failure::internal(format!("the engine's truth: {why}"));
        // Half a million writes have some seventy megabytes.
        let request = FetchRequest { path: "/truth", body_limit: 1 << 30 };
        let target = self.target(false, true)?;
        let reply = fetching(&target, async |fetch| fetch.fetch(request).await)?;
        let reply = reply.map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&reply.body).map_err(|error| failed(error.to_string()))
    }
}

/// The engine's truth on the clock of the run. Client and engine read the same `CLOCK_MONOTONIC`, so
/// they differ only by the zero of the run's clock. Requests of others, and what lies before that
/// zero, are left out.
fn answers(truth: &Truth, clock: SystemClock) -> Vec<TrueAnswer> {
    let zero_ns = clock.anchor().monotonic_ns;
    truth.requests.iter().filter_map(|request| answer(request, zero_ns)).collect()
}

fn answer(request: &RequestTruth, zero_ns: u64) -> Option<TrueAnswer> {
    let moment = |ns: u64| ns.checked_sub(zero_ns).map(Moment::from_nanos);
    let id = request.request_id.as_deref()?.strip_prefix(REQUEST_ID_PREFIX)?;
    let id = RequestId(id.strip_prefix('-')?.parse().ok()?);
    let received = moment(request.received_kernel_ns.unwrap_or(request.received_user_ns))?;
    let writes = request.writes.iter();
    let events = writes
        .flat_map(|write| std::iter::repeat_n(moment(write.before_ns), write.events as usize));
    Some(TrueAnswer { id, received, events: events.collect::<Option<_>>()? })
}

/// The machine that a calibration is valid for.
pub fn this_machine() -> Machine {
    let environment = environment::capture_host();
    Machine {
        cpu_model: environment.cpu_model,
        cpus: environment.cpus,
        memory_bytes: environment.machine.and_then(|machine| machine.memory_bytes),
        os: environment.os,
        architecture: environment.architecture,
        kernel: environment.kernel,
    }
}

/// Equal for equal machine, kernel and version: every other has its own calibration.
fn key(machine: &Machine, tool_version: &str) -> String {
    // A kernel keeps a little more or less for itself from one boot to the next.
    let memory_gib = machine.memory_bytes.map(|bytes| (bytes + (1 << 29)) >> 30);
    let facts = format!(
        "{:?}\n{:?}\n{memory_gib:?}\n{}\n{:?}\n{tool_version}",
        machine.cpu_model, machine.cpus, machine.architecture, machine.kernel
    );
    let hash = Sha256::digest(facts.as_bytes());
    hash.iter().take(6).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Other programs take time from the client and from the engine.
fn busy_note(machine: &Machine) -> Option<String> {
    const IDLE_SHARE: f64 = 0.25;
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    let cpus = machine.cpus?;
    (f64::from(cpus) * IDLE_SHARE < load).then(|| {
        format!(
            "the machine was busy before the calibration (load {load} on {cpus} CPUs), so the client \
             may be faster than measured; calibrate again when nothing else runs"
        )
    })
}

/// Where a calibration is kept: in the user's cache folder, one folder for each machine, kernel and
/// version.
#[derive(Clone, Debug)]
pub struct CalibrationFolder {
    path: PathBuf,
}

impl CalibrationFolder {
    /// The calibration itself.
    pub const DOCUMENT: &str = "calibration.json";
    /// Its page.
    pub const PAGE: &str = "calibration.md";
    /// The chart of the ladder.
    pub const THROUGHPUT: &str = "throughput.svg";
    /// The chart of the fidelity.
    pub const LATENCY: &str = "latency.svg";

    /// The folder of a machine; `None` if the user has no cache folder.
    pub fn new(machine: &Machine) -> Option<Self> {
        let cache = folder_of_user("XDG_CACHE_HOME", ".cache")?;
        Some(Self {
            path: cache.join("inferometer").join("calibration").join(key(machine, TOOL_VERSION)),
        })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder, before anything is measured that could not be kept.
    pub fn create(&self) -> Result<()> {
        std::fs::create_dir_all(&self.path).map_err(|error| {
            Failure::usage(format!("cannot keep a calibration in {}: {error}", self.path.display()))
                .hint("choose another folder with the variable XDG_CACHE_HOME")
        })
    }

    /// The calibration that is kept there. If it cannot be read, `ignored` receives the reason.
    pub fn read(&self, ignored: impl FnOnce(String)) -> Option<Calibration> {
        let path = self.path.join(Self::DOCUMENT);
        // A calibration has some tens of kilobytes; a longer file is not one.
        let found = match read_at_most(&path, 16 << 20) {
            Ok(found) => Calibration::from_json_bytes(&found?).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        found.map_err(|why| ignored(format!("{} is ignored: {why}", path.display()))).ok()
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(write_atomically(&self.path.join(name), bytes)?)
    }
}

/// A folder of the user's: where this variable says, or there below their home. By the rules of the
/// desktop, relative paths are as if they were not set.
pub fn folder_of_user(variable: &str, below_home: &str) -> Option<PathBuf> {
    chosen_folder(std::env::var_os(variable), std::env::var_os("HOME"), below_home)
}

fn chosen_folder(
    named: Option<OsString>,
    home: Option<OsString>,
    below_home: &str,
) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    named.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(below_home)))
}

#[cfg(test)]
mod tests {
    use inferometer_engine::truth::{Api, Ended, WriteTruth};

    use super::*;

    #[test]
    fn the_cache_is_where_the_desktop_says() {
        let found = |xdg: Option<&str>, home: Option<&str>| {
            chosen_folder(xdg.map(OsString::from), home.map(OsString::from), ".cache")
        };
        assert_eq!(found(Some("/cache"), Some("/people/ada")), Some("/cache".into()));
        assert_eq!(found(None, Some("/people/ada")), Some("/people/ada/.cache".into()));
        assert_eq!(found(Some("not/absolute"), Some("/a")), Some("/a/.cache".into()));
        assert_eq!(found(Some(""), None), None);
    }

    #[test]
    fn what_is_damaged_is_reported_and_ignored() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = CalibrationFolder { path: temporary.path().to_owned() };
        assert!(folder.read(|why| panic!("{why}")).is_none(), "nothing there is no damage");
        for damage in ["", "{", "{\"schema\": \"another/7\"}", "[1, 2]"] {
            folder.write(CalibrationFolder::DOCUMENT, damage.as_bytes()).unwrap();
            let mut said = String::new();
            assert!(folder.read(|why| said = why).is_none());
            assert!(said.contains("calibration.json is ignored: "), "{said}");
        }
    }

    #[test]
    fn many_streams_are_shorter() {
        let tokens = [64, 1_024, 4_096].map(|streams| Scope::FULL.fidelity_tokens(streams));
        assert_eq!(tokens, [200, 200, 61]);
        assert_eq!(Scope::QUICK.fidelity_tokens(64), 40);
    }

    fn request(id: &str) -> RequestTruth {
        let write = |before_ns, events| WriteTruth {
            due_ns: None,
            before_ns,
            after_ns: before_ns + 5,
            bytes: 100,
            events,
            tokens: events,
        };
        RequestTruth {
            ordinal: 0,
            request_id: Some(id.to_owned()),
            session_id: None,
            api: Api::Chat,
            streamed: true,
            received_kernel_ns: Some(1_100),
            received_mapping_error_ns: Some(1),
            received_user_ns: 1_150,
            case: None,
            prompt_tokens: 1,
            media: Vec::new(),
            tokens: 3,
            right: None,
            writes: vec![write(1_200, 1), write(1_250, 0), write(1_300, 2)],
            ended: Ended::Complete,
        }
    }

    #[test]
    fn every_event_has_the_moment_of_its_write() {
        let found = answer(&request("inferometer-calibration-7"), 1_000).unwrap();
        let events = [200, 300, 300].map(Moment::from_nanos).to_vec();
        let received = Moment::from_nanos(100);
        assert_eq!(found, TrueAnswer { id: RequestId(7), received, events });
    }

    #[test]
    fn what_is_not_of_this_run_is_passed_over() {
        assert_eq!(answer(&request("inferometer-probe-7"), 1_000), None);
        assert_eq!(answer(&request("inferometer-calibration-7"), 1_150), None);
    }

    #[test]
    fn a_key_is_short_and_differs_with_what_matters() {
        let machine = Machine { cpus: Some(8), memory_bytes: Some(16 << 30), ..Machine::default() };
        let name = key(&machine, "0.1.0");
        assert_eq!(name.len(), 12);
        assert_eq!(name, key(&machine, "0.1.0"));
        let after_a_boot = Machine { memory_bytes: Some((16 << 30) - 4_096), ..machine.clone() };
        assert_eq!(name, key(&after_a_boot, "0.1.0"));
        assert_ne!(name, key(&machine, "0.2.0"));
        assert_ne!(name, key(&Machine { cpus: Some(4), ..machine.clone() }, "0.1.0"));
        let other_kernel = Machine { kernel: Some("6.1".to_owned()), ..machine };
        assert_ne!(name, key(&other_kernel, "0.1.0"));
    }
}
