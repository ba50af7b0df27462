//! Arrivals, tokens, latencies and rows of single requests.

mod arrivals;
mod detail;
mod request_metrics;
mod ruler;
mod tokens;
