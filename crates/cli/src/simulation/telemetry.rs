//! What the engine would have said of itself, in the words of telemetry.

use std::time::Duration;

use inferometer_model::telemetry::{
    Counters, Dialect, Gauges, TelemetryEntry, TelemetrySample, Timings,
};

use super::observer::Sample;

/// A sample that took no time to take.
pub(crate) fn entry(sample: &Sample) -> TelemetryEntry {
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
