//! Tests of `figures`.

mod curve;
pub(crate) mod figures;
mod gaps;
mod requests;
mod steps;
