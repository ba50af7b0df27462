//! All integration tests of this crate, in one binary: linking is most of their cost.

mod known_limits;
mod matrices;
mod properties;
mod repeats;
mod searches;
mod suites;
mod summaries;
mod support;
