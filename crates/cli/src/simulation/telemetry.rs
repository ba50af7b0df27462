//! What the engine would have said of itself, in the words of telemetry.

use std::time::Duration;

use inferometer_model::telemetry::{
    Counters, DevicesAbsence, Dialect, Gauges, TelemetryEntry, TelemetrySample, Timings,
};
use inferometer_store::{StoreError, TelemetryWriter};

use super::observer::Sample;

/// Writes samples down as they come. What cannot be written does not stop the simulation.
#[derive(Debug)]
pub(crate) struct Watching {
    /// `None` where nobody asked for it, and from the first failure on.
    writer: Option<TelemetryWriter>,
    failed: Option<StoreError>,
    pub(crate) kv_usage_max: f64,
}

impl Watching {
    pub(crate) fn new(writer: Option<TelemetryWriter>) -> Self {
        let mut watching = Self { writer, failed: None, kv_usage_max: 0.0 };
        watching.write(&TelemetryEntry::DevicesAbsent(DevicesAbsence::Pretended));
        watching
    }

    pub(crate) fn note(&mut self, sample: &Sample) {
        self.kv_usage_max = self.kv_usage_max.max(sample.gauges.kv_usage);
        self.write(&entry(sample));
    }

    fn write(&mut self, entry: &TelemetryEntry) {
        let written = self.writer.as_mut().map(|writer| writer.append(entry));
        if let Some(Err(error)) = written {
            self.writer = None;
            self.failed = Some(error);
        }
    }

    /// Puts everything on disk.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        match (self.failed.take(), self.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish(),
            (None, None) => Ok(()),
        }
    }
}

/// A sample that took no time to take.
fn entry(sample: &Sample) -> TelemetryEntry {
    let (gauges, counters) = (sample.gauges, sample.counters);
    TelemetryEntry::Sample(TelemetrySample {
        at: sample.at,
        took: Duration::ZERO,
        dialect: Dialect::VllmV1,
        process_start_s: None,
        gauges: Gauges {
            running: Some(gauges.running.into()),
            waiting: Some(gauges.waiting.into()),
            swapped: None,
            kv_usage: Some(gauges.kv_usage),
            cpu_kv_usage: None,
        },
        counters: Counters {
            prefix_queries: Some(counters.prefix_queries as f64),
            prefix_hits: Some(counters.prefix_hits as f64),
            preemptions: Some(counters.preemptions as f64),
            prompt_tokens: Some(counters.prompt_tokens as f64),
            generation_tokens: Some(counters.generation_tokens as f64),
        },
        timings: Timings::default(),
        dropped: 0,
    })
}
