//! Tests of `steady`.

mod series;
mod steady;
