//! Tests of `machines`.

mod energy;
mod machines;
