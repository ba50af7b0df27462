//! What the engine would have said of itself, in the words of telemetry.

use std::time::Duration;

use inferometer_engine::scheduler::Generation;
use inferometer_model::telemetry::{
    Counters, DevicesAbsence, Dialect, Gauges, TelemetryEntry, TelemetrySample, Timings,
};
use inferometer_store::{StoreError, TelemetryWriter};

use super::observer::Sample;

/// Writes samples down as they come. What cannot be written does not stop the simulation.
#[derive(Debug)]
pub struct Watching {
    /// `None` where nobody asked for it, and from the first failure on.
    writer: Option<TelemetryWriter>,
    failed: Option<StoreError>,
    pub kv_usage_max: f64,
    generation: Generation,
}

impl Watching {
    pub fn new(writer: Option<TelemetryWriter>, generation: Generation) -> Self {
        let mut watching = Self { writer, failed: None, kv_usage_max: 0.0, generation };
        watching.write(&TelemetryEntry::DevicesAbsent(DevicesAbsence::Pretended));
        watching
    }

    pub fn note(&mut self, sample: &Sample) {
        self.kv_usage_max = self.kv_usage_max.max(sample.gauges.kv_usage);
        self.write(&entry(sample, self.generation));
    }

    fn write(&mut self, entry: &TelemetryEntry) {
        let written = self.writer.as_mut().map(|writer| writer.append(entry));
        if let Some(Err(error)) = written {
            self.writer = None;
            self.failed = Some(error);
        }
    }

    /// Puts everything on disk.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        match (self.failed.take(), self.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish(),
            (None, None) => Ok(()),
        }
    }
}

/// A sample that took no time to take. The older generation tells of blocks in host memory, of which
/// there are never any here, and of its prefix cache no more than a rate.
fn entry(sample: &Sample, generation: Generation) -> TelemetryEntry {
    let (gauges, counters) = (sample.gauges, sample.counters);
    let is_older = generation != Generation::V1;
    let of_older = is_older.then_some(0.0);
    let of_newer = |count: u64| (!is_older).then_some(count as f64);
    TelemetryEntry::Sample(TelemetrySample {
        at: sample.at,
        took: Duration::ZERO,
        dialect: if is_older { Dialect::VllmV0 } else { Dialect::VllmV1 },
        process_start_s: None,
        gauges: Gauges {
            running: Some(gauges.running.into()),
            waiting: Some(gauges.waiting.into()),
            swapped: of_older,
            kv_usage: Some(gauges.kv_usage),
            cpu_kv_usage: of_older,
        },
        counters: Counters {
            prefix_queries: of_newer(counters.prefix_queries),
            prefix_hits: of_newer(counters.prefix_hits),
            preemptions: Some(counters.preemptions as f64),
            prompt_tokens: Some(counters.prompt_tokens as f64),
            generation_tokens: Some(counters.generation_tokens as f64),
        },
        timings: Timings::default(),
        dropped: 0,
    })
}

#[cfg(test)]
mod tests {
    use inferometer_engine::scheduler::{self, Gauges as EngineGauges};
    use inferometer_model::Moment;

    use super::*;

    fn told(generation: Generation) -> TelemetrySample {
        let gauges = EngineGauges { running: 3, waiting: 1, kv_usage: 0.5 };
        let counters = scheduler::Counters { prefix_queries: 32, ..<_>::default() };
        let sample = Sample { at: Moment::from_nanos(7), stands_for: 1, gauges, counters };
        let TelemetryEntry::Sample(sample) = entry(&sample, generation) else {
            panic!("no sample")
        };
        sample
    }

    #[test]
    fn each_generation_tells_what_its_servers_do() {
        let newer = told(Generation::V1);
        assert_eq!((newer.dialect, newer.gauges.swapped), (Dialect::VllmV1, None));
        assert_eq!(newer.counters.prefix_queries, Some(32.0));
        let older = told(Generation::V0 { scheduler_steps: 1 });
        assert_eq!((older.dialect, older.gauges.swapped), (Dialect::VllmV0, Some(0.0)));
        assert_eq!((older.gauges.cpu_kv_usage, older.counters.prefix_queries), (Some(0.0), None));
        assert_eq!(older.gauges.running, Some(3.0));
    }
}
