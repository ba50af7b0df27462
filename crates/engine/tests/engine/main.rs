//! The engine over real sockets, read by a client that shares no code with it.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as the test does")]

mod client;
mod echo;
mod endpoints;
mod faults;
mod generation;
mod parity;
mod replay;
mod serving;
mod serving_wire;
mod sse;
mod truth;
mod wire;
