//! What another tool published about one run: summary figures, each of which may be missing.

use std::collections::BTreeMap;

/// One run as another tool summed it up.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignResult {
    pub origin: Origin,
    pub kind: ResultKind,
    pub model: Option<String>,
    pub request_rate: Option<ForeignRate>,
    /// The gamma shape of the gaps between arrivals; infinite where they were all equal.
    pub burstiness: Option<f64>,
    pub max_concurrency: Option<u32>,
    pub requests_planned: Option<u64>,
    pub completed: Option<u64>,
    pub failed: Option<u64>,
    pub duration_s: Option<f64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub request_throughput: Option<f64>,
    pub request_goodput: Option<f64>,
    pub output_throughput: Option<f64>,
    /// Of stream events in the best second, whatever the label says of tokens.
    pub peak_output_throughput: Option<f64>,
    pub peak_concurrent_requests: Option<u64>,
    pub total_token_throughput: Option<f64>,
    pub ttft: Spread,
    pub tpot: Spread,
    pub itl: Spread,
    pub e2el: Spread,
    /// What the file says beyond this: keys without a field, and values that are no figures, each
    /// with its line.
    pub unmapped: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where the record begins, counted from one.
    pub line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// A JSON object of `vllm bench serve --save-result`, or of `benchmark_serving` before it.
    VllmJson,
    /// The printed "Serving Benchmark Result".
    VllmBlock,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ForeignRate {
    PerSecond(f64),
    /// All requests at once, or as the concurrency allows.
    Unlimited,
}

/// What is known of a latency's distribution, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    pub mean_ms: Option<f64>,
    pub median_ms: Option<f64>,
    /// Of the population (divided by n), as the tool computes it.
    pub std_ms: Option<f64>,
    /// By their rank as the tool writes it: `99`, `99.9`.
    pub percentiles_ms: BTreeMap<String, f64>,
}

impl Spread {
    pub fn p99_ms(&self) -> Option<f64> {
        self.percentiles_ms.get("99").copied()
    }
}

impl ForeignResult {
    pub(crate) fn new(kind: ResultKind, line: u32) -> Self {
        Self {
            origin: Origin { line },
            kind,
            model: None,
            request_rate: None,
            burstiness: None,
            max_concurrency: None,
            requests_planned: None,
            completed: None,
            failed: None,
            duration_s: None,
            input_tokens: None,
            output_tokens: None,
            request_throughput: None,
            request_goodput: None,
            output_throughput: None,
            peak_output_throughput: None,
            peak_concurrent_requests: None,
            total_token_throughput: None,
            ttft: Spread::default(),
            tpot: Spread::default(),
            itl: Spread::default(),
            e2el: Spread::default(),
            unmapped: Vec::new(),
        }
    }

    /// Whether fewer requests completed than were planned: by a limit of time, or by failures. Its
    /// figures then describe a part of the load, and the part that was quick.
    pub fn is_cut(&self) -> bool {
        matches!((self.completed, self.requests_planned), (Some(done), Some(planned)) if done < planned)
    }
}
