//! Tests of `output`.

mod arrivals;
mod ruler;
mod tokens;
