//! Tests of `sample`.

mod estimate;
mod sample;
