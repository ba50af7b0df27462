//! Tests of `latencies`.

mod detail;
mod request_metrics;
