//! Drives without a store: what happened is collected from the journal's channel, in memory.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use inferometer_load::{Control, Drive, Drivers, Progress, SystemClock, drive};
use inferometer_model::spec::{LoadDraft, SourceDraft, WorkloadDraft};
use inferometer_model::{JournalEntry, RequestRecord, SpecDraft};
use inferometer_workload::{Ingredients, make_plan};

use super::scope::INPUT_TOKENS;
use super::server::Server;
use crate::failure::Failure;

/// How the client drives; what a run may choose about itself belongs here.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    pub kernel_stamps: bool,
    pub drivers: Drivers,
}

/// The client under measurement.
#[derive(Clone, Debug)]
pub struct Client {
    pub options: DriveOptions,
    /// Requests that this machine can hold in flight.
    pub ceiling: usize,
}

/// What to ask of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) streaming: bool,
    pub(super) output_tokens: u32,
    pub(super) load: Load,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    ClosedFor { slots: u32, time: Duration },
    Closed { slots: u32, requests: u64 },
    OpenFor { rate_per_s: f64, time: Duration },
}

/// What came of it.
pub(super) struct Driven {
    /// In the order in which they ended.
    pub(super) records: Vec<RequestRecord>,
    pub(super) not_sent: u64,
    /// The moments of the records are on this clock.
    pub(super) clock: SystemClock,
}

/// Batches that may wait to be collected.
const JOURNAL_QUEUE: usize = 1 << 13;

impl Client {
    pub(super) fn drive(&self, server: &Server, ask: Ask) -> Result<Driven, Failure> {
        self.drive_on(SystemClock::new(), server, ask)
    }

    /// Plays a plan to its end and collects the records.
    pub(super) fn drive_on(
        &self,
        clock: SystemClock,
        server: &Server,
        ask: Ask,
    ) -> Result<Driven, Failure> {
        let spec = ask.draft().resolve()?;
        let (plan, _) = make_plan(&spec, &Ingredients::gather(&spec)?);
        let (journal, entries) = sync_channel(JOURNAL_QUEUE);
        let run = Drive {
            plan,
            target: Arc::new(server.target(ask.streaming, self.options.kernel_stamps)),
            clock,
            control: Control::default(),
            progress: Arc::new(Progress::default()),
            ceiling: self.ceiling,
            drivers: self.options.drivers.clone(),
            stall_grace: Drive::STALL_GRACE,
            journal,
        };
        let driving = std::thread::Builder::new()
            .name("driver".to_owned())
            .spawn(move || drive(run))
            .map_err(|error| Failure::internal(format!("driver thread: {error}")))?;
        let mut driven = Driven { records: Vec::new(), not_sent: 0, clock };
        for entry in entries.into_iter().flatten() {
            match entry {
                JournalEntry::Ended(record) => driven.records.push(*record),
                JournalEntry::NotSent(part) => driven.not_sent += part.count,
                JournalEntry::Started(_) | JournalEntry::RunEnded(_) => {}
            }
        }
        match driving.join() {
            Ok(Ok(ending)) if ending.stop.is_partial() => {
                Err(Failure::internal(format!("a drive was not finished: {}", ending.stop.text())))
            }
            Ok(Ok(_)) => Ok(driven),
            Ok(Err(error)) => Err(Failure::internal(error.to_string())),
            Err(_) => Err(Failure::internal("the driver ended abnormally")),
        }
    }
}

impl Ask {
    fn draft(self) -> SpecDraft {
        let any = LoadDraft::default();
        let load = match self.load {
            Load::ClosedFor { slots, time } => {
                LoadDraft { concurrency: Some(slots), duration: Some(time), ..any }
            }
            Load::Closed { slots, requests } => {
                LoadDraft { concurrency: Some(slots), requests: Some(requests), ..any }
            }
            Load::OpenFor { rate_per_s, time } => {
                LoadDraft { rate_per_s: Some(rate_per_s), duration: Some(time), ..any }
            }
        };
        SpecDraft {
            workload: WorkloadDraft {
                streaming: Some(self.streaming),
                source: SourceDraft {
                    input: Some(INPUT_TOKENS.into()),
                    output: Some(self.output_tokens.into()),
                    ..SourceDraft::default()
                },
                ..WorkloadDraft::default()
            },
            load,
            ..SpecDraft::default()
        }
    }
}
