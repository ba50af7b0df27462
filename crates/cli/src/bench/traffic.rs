//! What the other client prints before it sends: scripts keep it beside the block.

use std::fmt::Write;

use crate::arguments::{RampStrategy, ServeLoadArguments};

/// `recorded` is whether requests leave at the moments of the data.
pub(crate) fn lines(said: &ServeLoadArguments, recorded: bool) -> String {
    let mut text = "Starting main benchmark run...\n".to_owned();
    if recorded {
        return text + "Self timing is set, using the timestamps from the trace file.\n";
    }
    if let Some(strategy) = said.ramp_up_strategy {
        let strategy = name(strategy);
        let end = |rate: Option<i64>| rate.unwrap_or_default();
        let (from, to) = (end(said.ramp_up_start_rps), end(said.ramp_up_end_rps));
        let _ = write!(
            text,
            "Traffic ramp-up strategy: {strategy}.\n\
             Will increase RPS from {from} to {to} RPS over the duration of the benchmark.\n"
        );
    } else {
        let rate = said.request_rate.unwrap_or(f64::INFINITY);
        let _ = writeln!(text, "Traffic request rate: {rate:?}");
    }
    let burstiness = said.burstiness.unwrap_or(1.0);
    let is_poisson = (burstiness - 1.0).abs() < f64::EPSILON;
    let gaps = if is_poisson { "Poisson process" } else { "Gamma distribution" };
    let cap = said.max_concurrency.map_or_else(|| "None".to_owned(), |cap| cap.to_string());
    let _ = write!(
        text,
        "Burstiness factor: {burstiness:?} ({gaps})\nMaximum request concurrency: {cap}\n"
    );
    text
}

/// In the other client's word.
pub(super) fn name(strategy: RampStrategy) -> &'static str {
    match strategy {
        RampStrategy::Linear => "linear",
        RampStrategy::Exponential => "exponential",
    }
}
