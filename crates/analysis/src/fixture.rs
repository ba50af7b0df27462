//! Hand-made records and runs for the tests of this crate.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::journal::{ClientFacts, ClockMapping, LagHistogram, RunEnding, RunStop};
use inferometer_model::observations::{
    ClockAnchor, Connections, Endpoint, InputLength, Manifest, Materials, PinnedOutput, UsageAsk,
};
use inferometer_model::outcome::Stage;
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::record::{
    Carried, ConnectionFacts, DoneMark, Event, Finish, FinishReason, Read, RequestedLengths,
    ResponseHead, SessionPlace, Usage,
};
use inferometer_model::spec::{
    Lengths, LoadShape, LoadTable, SourceTable, TargetTable, Think, WorkloadTable,
};
use inferometer_model::telemetry::{
    Counters, Dialect, Gauges, Recording, Telemetry, TelemetrySample, Timings,
};
use inferometer_model::{
    Ending, Environment, Moment, Observations, Outcome, RequestId, RequestRecord, SpecDraft,
    StartedRequest,
};

use crate::judge::{RunContext, Severity, run_warnings};
use crate::record::Measured;

pub(crate) fn ms(ms: u64) -> Moment {
    Moment::from_nanos(ms * 1_000_000)
}

/// A record in the making. Moments are whole milliseconds since the run's zero.
pub(crate) struct Given(RequestRecord);

impl Given {
    /// Sent at zero, without output so far, ending with its last read.
    pub(crate) fn ok(id: u64) -> Self {
        let started = StartedRequest {
            id: RequestId(id),
            intended: Moment::ZERO,
            admitted: Moment::ZERO,
            asked: RequestedLengths {
                input_tokens: 512,
                output_tokens: 3,
                part: 0,
                turn: 0,
                ..RequestedLengths::default()
            },
        };
        Self(RequestRecord {
            sent: Some(Moment::ZERO),
            finishes: vec![Finish { choice: 0, reason: FinishReason::Length }],
            done: DoneMark { seen: true, events_after: 0 },
            ..RequestRecord::without_answer(&started, Ending::ok(Moment::ZERO))
        })
    }

    /// With the head of an event stream.
    pub(crate) fn streamed(mut self) -> Self {
        self.0.head = Some(ResponseHead { status: 200, read: 0, streamed: true });
        self
    }

    pub(crate) fn failed(id: u64, outcome: Outcome) -> Self {
        let mut given = Self::ok(id);
        given.0.ending.outcome = outcome;
        given.0.ending.stage = Stage::Stream;
        given.0.finishes.clear();
        given
    }

    pub(crate) fn moments(mut self, intended: u64, admitted: u64, sent: u64) -> Self {
        self.0.intended = ms(intended);
        self.0.admitted = ms(admitted);
        self.0.sent = Some(ms(sent));
        self.ends(sent)
    }

    /// One read with one content event for each entry, carrying that many tokens.
    pub(crate) fn arrival(mut self, at: u64, tokens: &[Option<u32>]) -> Self {
        let read = self.read(at);
        for tokens in tokens {
            let carried = Carried::CHOICE | Carried::CONTENT;
            self.0.events.push(Event { read, choice: 0, carried, tokens: *tokens, text_bytes: 4 });
        }
        self
    }

    /// One read with one event that is not marked with tokens.
    pub(crate) fn event(mut self, at: u64, carried: Carried) -> Self {
        let read = self.read(at);
        self.0.events.push(Event { read, choice: 0, carried, tokens: None, text_bytes: 0 });
        self
    }

    pub(crate) fn usage(mut self, prompt: u64, completion: u64) -> Self {
        self.0.usage = Some(Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            cached_tokens: None,
        });
        self
    }

    pub(crate) fn cached(mut self, tokens: u64) -> Self {
        if let Some(usage) = &mut self.0.usage {
            usage.cached_tokens = Some(tokens);
        }
        self
    }

    pub(crate) fn asked(mut self, input_tokens: u32, output_tokens: u32) -> Self {
        (self.0.asked.input_tokens, self.0.asked.output_tokens) = (input_tokens, output_tokens);
        self
    }

    pub(crate) fn turn(mut self, turn: u16) -> Self {
        self.0.asked.turn = turn;
        self
    }

    pub(crate) fn place(&mut self, session: SessionPlace) {
        self.0.asked.session = session;
    }

    pub(crate) fn part(mut self, part: u16) -> Self {
        self.0.asked.part = part;
        self
    }

    pub(crate) fn no_usage(mut self) -> Self {
        self.0.usage = None;
        self
    }

    pub(crate) fn connection(mut self, ordinal: u32, reused: bool) -> Self {
        self.0.connection = Some(ConnectionFacts { ordinal, reused, dial: None });
        self
    }

    pub(crate) fn ends(mut self, at: u64) -> Self {
        self.0.ending.at = ms(at);
        self
    }

    pub(crate) fn record(self) -> RequestRecord {
        self.0
    }

    fn read(&mut self, at: u64) -> u32 {
        let at = ms(at);
        self.0.reads.push(Read { kernel: Some(at), user: at, turn: at, bytes: 100, drained: true });
        self.0.ending.at = self.0.ending.at.max(at);
        u32::try_from(self.0.reads.len() - 1).unwrap()
    }
}

/// An answer as asked for: sent at `100 · id`, three tokens 50, 110 and 120 ms later.
pub(crate) fn calm_record(id: u64) -> RequestRecord {
    let at = 100 * id;
    Given::ok(id)
        .moments(at, at, at)
        .connection(0, 0 < id)
        .arrival(at + 50, &[Some(1)])
        .arrival(at + 110, &[Some(1)])
        .arrival(at + 120, &[Some(1)])
        .usage(512, 3)
        .record()
}

/// A run that gives no reason to doubt it.
pub(crate) fn calm() -> Observations {
    run((0..40).map(calm_record).collect())
}

/// The same with so many requests, of one user who is always there.
pub(crate) fn calm_of(requests: u64) -> Observations {
    let mut observations = run((0..requests).map(calm_record).collect());
    observations.manifest.spec.load.shape =
        LoadShape::Closed { concurrency: NonZeroU32::MIN, think: Think::None };
    observations
}

/// A closed loop of eight with these records, played to its end on a healthy client.
pub(crate) fn run(records: Vec<RequestRecord>) -> Observations {
    let end = records.iter().map(|record| record.ending.at).max().unwrap_or_default();
    Observations::new(manifest(), records, Vec::new(), ending(end)).unwrap()
}

/// The same run, with a scrape before it and one after it between which a server's counters grew.
pub(crate) fn scraped(
    observations: Observations,
    prompt_tokens: f64,
    generation_tokens: f64,
) -> Observations {
    let end = observations.ending.at + Duration::from_millis(1);
    let at = |at, prompt: f64, generation: f64| TelemetrySample {
        counters: Counters {
            prefix_queries: Some(prompt),
            prefix_hits: Some(7.0),
            preemptions: None,
            prompt_tokens: Some(prompt),
            generation_tokens: Some(generation),
        },
        ..sample(at)
    };
    let samples = vec![
        at(Moment::ZERO, 1_000.0, 100.0),
        at(end, 1_000.0 + prompt_tokens, 100.0 + generation_tokens),
    ];
    let telemetry = Telemetry::Recorded(Recording { samples, missed: Vec::new(), skipped: 0 });
    Observations { telemetry, ..observations }
}

/// A scrape of a server that says nothing.
pub(crate) fn sample(at: Moment) -> TelemetrySample {
    TelemetrySample {
        at,
        took: Duration::from_millis(2),
        dialect: Dialect::VllmV1,
        process_start_s: Some(1_000.0),
        gauges: Gauges::default(),
        counters: Counters::default(),
        timings: Timings::default(),
        speculation: None,
        dropped: 0,
    }
}

/// The key and severity of every warning that a run raises, the gravest first.
pub(crate) fn raised(observations: &Observations) -> Vec<(&'static str, Severity)> {
    let measured = Measured::from_observations(observations);
    let warnings = run_warnings(&RunContext::new(observations, &measured));
    warnings.into_iter().map(|warning| (&*warning.key.leak(), warning.severity)).collect()
}

fn manifest() -> Manifest {
    let spec = SpecDraft {
        url: Some("http://127.0.0.1:8000".parse().unwrap()),
        target: TargetTable { api: Some(Api::Completions), ..TargetTable::default() },
        load: LoadTable { concurrency: Some(4), ..LoadTable::default() },
        workload: WorkloadTable {
            source: SourceTable {
                input_tokens: Some(Lengths::Fixed(512)),
                output_tokens: Some(Lengths::Fixed(3)),
                ..SourceTable::default()
            },
            seed: Some(7),
            ..WorkloadTable::default()
        },
        metadata: BTreeMap::from([("site".to_owned(), "lab".to_owned())]),
        ..SpecDraft::default()
    }
    .resolve()
    .unwrap();
    Manifest {
        format: 1,
        run: "20260101-000000-calm".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        clock: ClockAnchor { monotonic_ns: 0, realtime_ns: 0 },
        bounds: Bounds {
            requests: None,
            release_before: None,
            requests_min: 0,
            slots: NonZeroU32::new(8),
        },
        fingerprints: Fingerprints { workload: "w-1".to_owned(), plan: "p-1".to_owned() },
        materials: Materials { input_length: InputLength::Exact, ..Materials::default() },
        endpoint: Endpoint {
            base: "http://127.0.0.1:8000".parse().unwrap(),
            address: "127.0.0.1:8000".parse().unwrap(),
            model: "model".to_owned(),
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
        server: None,
        environment: Environment {
            tool_version: "0.1.0".to_owned(),
            os: "Linux".to_owned(),
            architecture: "x86_64".to_owned(),
            ..Environment::default()
        },
        spec,
    }
}

fn ending(at: Moment) -> RunEnding {
    let mut loop_lag = LagHistogram::default();
    loop_lag.add(40_000);
    RunEnding {
        began: Some(Moment::ZERO),
        at,
        stop: RunStop::PlanDone,
        client: ClientFacts {
            drivers: 1,
            cpu: None,
            mapping: Some(ClockMapping { estimates: 10, error_ns_max: 0, jumps: 0 }),
            loop_lag,
            journal_waits: 0,
            driver_cpu_us: None,
            dialling: None,
        },
    }
}
