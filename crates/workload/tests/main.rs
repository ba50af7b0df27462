//! All integration tests of this crate, in one binary: linking is most of their cost.

mod exact_lengths;
mod golden;
mod saved;
