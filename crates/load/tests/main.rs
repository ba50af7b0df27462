//! All integration tests of this crate, in one binary: linking is most of their cost.

mod adapters;
mod bodies;
mod captures;
mod connecting;
mod conversations;
mod dialects;
mod dialling;
mod drivers;
mod faults;
mod http2;
mod seeds;
mod session_graphs;
mod sums;
mod support;
mod watchdog;
