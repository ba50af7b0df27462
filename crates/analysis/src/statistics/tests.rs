//! Tests of the statistics against simulated truth.

mod truth;
