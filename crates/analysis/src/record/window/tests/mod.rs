//! Tests of `window`.

mod concurrency;
mod throughput;
