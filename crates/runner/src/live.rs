//! What is known of a run while it goes on, from the entries of its journal and its telemetry.
//!
//! It is gathered by the threads that write these files, after the drivers have handed the entries
//! over: the measuring path does nothing for it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inferometer_analysis::AbortWatch;
use inferometer_load::ProgressView;
use inferometer_model::journal::RunStop;
use inferometer_model::record::Read;
use inferometer_model::telemetry::{Gauges, TelemetryEntry};
use inferometer_model::{JournalEntry, Manifest, Moment, Outcome, RequestRecord};
use inferometer_store::{JournalReader, Result, RunDirectory};
use serde::Serialize;

use crate::ProgressTick;
use crate::simulation::Histogram;

/// The figures of a run so far. Rates and latencies are of the requests that ended in the last
/// [`RECENT`]; they are for following a run, and its summary has the exact ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveFigures {
    /// Requests that ended well, per second.
    pub requests_per_s: f64,
    /// Output tokens of the requests that ended, per second.
    pub output_tokens_per_s: f64,
    /// Time to first token, from sending.
    pub ttft_ms: Option<Spread>,
    /// Time between two arrivals of output.
    pub itl_ms: Option<Spread>,
    /// All requests that did not end well.
    pub failures: BTreeMap<Outcome, u64>,
    /// What the server's metrics reported last.
    pub server: Gauges,
    /// Power of all GPUs together.
    pub gpu_power_w: Option<f64>,
    /// CPU time of the client, in hardware threads.
    pub client_cpus: Option<f64>,
    /// From when a request was let go to its first byte: what the client itself adds.
    pub send_lag_ms: Option<Spread>,
}

/// The middle and the tail of recent values, within a hundredth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// 50th percentile.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// How long a request counts as recent.
pub const RECENT: Duration = Duration::from_secs(5);

/// Gathers the figures. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveTally(Arc<Mutex<Tally>>);

#[derive(Debug, Default)]
struct Tally {
    /// The last seconds, the newest at the end.
    seconds: VecDeque<Second>,
    /// All but rates and latencies.
    figures: LiveFigures,
    /// The conditions of `--abort-on`.
    abort: Option<AbortWatch>,
}

/// What ended in one second of the run.
#[derive(Debug, Default)]
struct Second {
    number: u64,
    requests: u64,
    output_tokens: u64,
    ttft: Histogram,
    itl: Histogram,
    send_lag: Histogram,
}

impl LiveTally {
    /// With the conditions that end the run early.
    pub(crate) fn watching(abort: Option<AbortWatch>) -> Self {
        Self(Arc::new(Mutex::new(Tally { abort, ..Tally::default() })))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, entry: &JournalEntry) {
        if let JournalEntry::Ended(record) = entry {
            self.tally().add_record(record);
        }
    }

    /// Why the run shall end early, if it shall.
    pub(crate) fn abort(&self, elapsed: Duration, at: ProgressView) -> Option<(RunStop, String)> {
        self.tally().abort.as_mut()?.verdict(elapsed, at.started, at.in_flight())
    }

    pub(crate) fn add_telemetry(&self, entry: &TelemetryEntry) {
        let figures = &mut self.tally().figures;
        match entry {
            TelemetryEntry::Sample(sample) => figures.server = sample.gauges,
            TelemetryEntry::Devices(sample) => {
                let powers = sample.devices.iter().filter_map(|device| device.power_w);
                figures.gpu_power_w = powers.reduce(|sum, power| sum + power);
            }
            TelemetryEntry::Client(sample) => figures.client_cpus = sample.own_cpus,
            TelemetryEntry::Missed(_)
            | TelemetryEntry::Absent(_)
            | TelemetryEntry::Skipped(_)
            | TelemetryEntry::DevicesAbsent(_)
            | TelemetryEntry::DevicesMissed(_)
            | TelemetryEntry::FromSource(..) => {}
        }
    }

    /// The figures at this time of the run.
    pub(crate) fn figures(&self, elapsed: Duration) -> LiveFigures {
        let mut tally = self.tally();
        let oldest = elapsed.as_secs().saturating_sub(RECENT.as_secs());
        tally.seconds.retain(|second| oldest <= second.number);
        let mut sum = Second::default();
        for second in &tally.seconds {
            sum.requests += second.requests;
            sum.output_tokens = sum.output_tokens.saturating_add(second.output_tokens);
            sum.ttft.merge(&second.ttft);
            sum.itl.merge(&second.itl);
            sum.send_lag.merge(&second.send_lag);
        }
        let over_s = (elapsed.as_secs_f64() - oldest as f64).max(1.0);
        LiveFigures {
            requests_per_s: sum.requests as f64 / over_s,
            output_tokens_per_s: sum.output_tokens as f64 / over_s,
            ttft_ms: Spread::from_histogram(&sum.ttft),
            itl_ms: Spread::from_histogram(&sum.itl),
            send_lag_ms: Spread::from_histogram(&sum.send_lag),
            ..tally.figures.clone()
        }
    }
}

impl Tally {
    fn add_record(&mut self, record: &RequestRecord) {
        if let Some(abort) = &mut self.abort {
            abort.add(record);
        }
        let outcome = record.ending.outcome;
        if outcome == Outcome::Abandoned {
            return;
        }
        if outcome != Outcome::Ok {
            *self.figures.failures.entry(outcome).or_default() += 1;
            return;
        }
        let second = self.second(record.ending.at.as_nanos() / 1_000_000_000);
        second.requests += 1;
        if let Some(sent) = record.sent {
            second.send_lag.add(sent.as_nanos().saturating_sub(record.admitted.as_nanos()));
        }
        let (mut before, mut tokens) = (None, 0);
        for event in record.events.iter().filter(|event| event.is_output()) {
            tokens += u64::from(event.tokens.unwrap_or(1));
            let Some(at) = record.reads.get(event.read as usize).map(Read::at) else {
                continue;
            };
            let since = |earlier: Moment| at.as_nanos().saturating_sub(earlier.as_nanos());
            match before {
                None => second.ttft.add(since(record.sent.unwrap_or(record.admitted))),
                Some(before) if before < at => second.itl.add(since(before)),
                Some(_) => {}
            }
            before = Some(at);
        }
        let counted = record.usage.and_then(|usage| usage.completion_tokens);
        // A server may report any number, and a sum of two may be beyond all.
        second.output_tokens = second.output_tokens.saturating_add(counted.unwrap_or(tokens));
    }

    /// The second with this number. Drivers hand over what they have in batches, so that it need not be
    /// the newest.
    fn second(&mut self, number: u64) -> &mut Second {
        let place = self.seconds.partition_point(|second| second.number < number);
        if self.seconds.get(place).is_none_or(|second| second.number != number) {
            self.seconds.insert(place, Second { number, ..Second::default() });
        }
        &mut self.seconds[place]
    }
}

/// Follows a run that another process measures, by what that process writes to its folder.
#[derive(Debug)]
pub struct RunFollower {
    manifest: Manifest,
    journal: JournalReader<File>,
    /// `None` until it is there; a run may have none.
    telemetry: Option<JournalReader<File, TelemetryEntry>>,
    directory: RunDirectory,
    tally: LiveTally,
    counts: ProgressView,
    last: Moment,
    has_ended: bool,
}

impl RunFollower {
    /// Entries that one step reads at most: what is left is read by the next one.
    const ENTRIES_MAX: usize = 20_000;

    /// Begins with the first request of the run.
    pub fn open(directory: RunDirectory) -> Result<Self> {
        Ok(Self {
            manifest: directory.manifest()?,
            journal: directory.open_journal()?,
            telemetry: directory.open_telemetry().ok(),
            directory,
            tally: LiveTally::default(),
            counts: ProgressView::default(),
            last: Moment::default(),
            has_ended: false,
        })
    }

    /// Reads what was written since the last step. `now_ns` is the wall time.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are failures")]
    pub fn step(&mut self, now_ns: u64) -> Result<ProgressTick> {
        self.journal.extend()?;
        let mut read = 0;
        for entry in self.journal.by_ref().take(Self::ENTRIES_MAX) {
            read += 1;
            let entry = entry?;
            self.tally.add(&entry);
            let at = match &entry {
                JournalEntry::Started(started) => {
                    self.counts.started += 1;
                    started.admitted
                }
                JournalEntry::Ended(record) => {
                    *match record.ending.outcome {
                        Outcome::Ok => &mut self.counts.ok,
                        Outcome::Abandoned => &mut self.counts.abandoned,
                        _ => &mut self.counts.failed,
                    } += 1;
                    record.ending.at
                }
                JournalEntry::NotSent(part) => part.at,
                JournalEntry::RunEnded(ending) => {
                    self.has_ended = true;
                    ending.at
                }
            };
            self.last = self.last.max(at);
        }
        self.read_telemetry()?;
        let since_start = now_ns.saturating_sub(self.manifest.clock.realtime_ns);
        // A run that has ended, and one that is still being caught up with, is as old as its entries.
        let is_now = read < Self::ENTRIES_MAX && !self.has_ended;
        let elapsed_ns = self.last.as_nanos().max(if is_now { since_start } else { 0 });
        let elapsed = Duration::from_nanos(elapsed_ns);
        let (counts, bounds) = (self.counts, self.manifest.bounds);
        Ok(ProgressTick { counts, bounds, elapsed, live: self.tally.figures(elapsed) })
    }

    fn read_telemetry(&mut self) -> Result<()> {
        let Some(telemetry) = &mut self.telemetry else {
            self.telemetry = self.directory.open_telemetry().ok();
            return Ok(());
        };
        telemetry.extend()?;
        for entry in telemetry.by_ref().take(Self::ENTRIES_MAX) {
            self.tally.add_telemetry(&entry?);
        }
        Ok(())
    }
}

impl Spread {
    fn from_histogram(times: &Histogram) -> Option<Self> {
        let at = |share| times.quantile_ns(share).map(|ns| ns as f64 / 1e6);
        Some(Self { p50: at(0.50)?, p99: at(0.99)? })
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::journal::StartedRequest;
    use inferometer_model::record::{Carried, Event, RequestedLengths, Usage};
    use inferometer_model::{Ending, RequestId};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A request of two tokens, 20 ms and 30 ms after it was sent.
    fn record(outcome: Outcome, ended_ns: u64) -> JournalEntry {
        let at = |ns| Moment::from_nanos(ns);
        let sent = at(ended_ns - 30 * MS);
        let asked = RequestedLengths {
            input_tokens: 1,
            output_tokens: 2,
            part: 0,
            turn: 0,
            ..RequestedLengths::default()
        };
        let started = StartedRequest { id: RequestId(0), intended: sent, admitted: sent, asked };
        let ending = Ending { outcome, ..Ending::ok(at(ended_ns)) };
        let read = |ns| Read { kernel: None, user: at(ns), turn: sent, bytes: 1, drained: true };
        let carried = Carried::CHOICE | Carried::CONTENT;
        let event = |read| Event { read, choice: 0, carried, tokens: None, text_bytes: 1 };
        JournalEntry::Ended(Box::new(RequestRecord {
            sent: Some(sent),
            reads: vec![read(ended_ns - 10 * MS), read(ended_ns)],
            events: vec![event(0), event(1)],
            ..RequestRecord::without_answer(&started, ending)
        }))
    }

    #[test]
    fn figures_are_of_what_ended_in_the_last_seconds() {
        let live = LiveTally::default();
        for second in 0..20 {
            for _ in 0..10 {
                live.add(&record(Outcome::Ok, 1_000 * MS * second + 500 * MS));
            }
        }
        let figures = live.figures(Duration::from_secs(20));
        assert_eq!((figures.requests_per_s, figures.output_tokens_per_s), (10.0, 20.0));
        let near = |spread: Option<Spread>, ms: f64| (spread.unwrap().p99 / ms - 1.0).abs() < 0.01;
        assert!(near(figures.ttft_ms, 20.0) && near(figures.itl_ms, 10.0), "{figures:?}");
        let lag = figures.send_lag_ms.expect("all were sent");
        assert!(lag.p99.abs() < 1e-6, "they left when they were let go: {figures:?}");
        let later = live.figures(Duration::from_mins(1));
        assert!(later.requests_per_s.abs() < f64::EPSILON, "all are long ago: {later:?}");
    }

    #[test]
    fn impossible_token_counts_do_not_overflow() {
        let live = LiveTally::default();
        for ended_ms in [500, 600, 1_500] {
            let JournalEntry::Ended(mut one) = record(Outcome::Ok, ended_ms * MS) else { return };
            let completion_tokens = Some(u64::MAX);
            let usage = Usage { prompt_tokens: None, completion_tokens, cached_tokens: None };
            one.usage = Some(usage);
            live.add(&JournalEntry::Ended(one));
        }
        let figures = live.figures(Duration::from_secs(2));
        assert!(
            figures.output_tokens_per_s.is_finite() && figures.ttft_ms.is_some(),
            "{figures:?}"
        );
    }

    #[test]
    fn failures_are_counted_by_their_kind_for_the_whole_run() {
        let live = LiveTally::default();
        live.add(&record(Outcome::Rejected, 50 * MS));
        live.add(&record(Outcome::Rejected, 60 * MS));
        let figures = live.figures(Duration::from_mins(1));
        assert_eq!(figures.failures, BTreeMap::from([(Outcome::Rejected, 2)]));
        assert_eq!((figures.requests_per_s, figures.ttft_ms), (0.0, None));
    }
}
