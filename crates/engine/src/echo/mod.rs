//! The echo mode: answers as fast as one core can, to find the floor and the ceiling of a client.
//!
//! Answers are built once for each kind of request and then only copied to sockets. A body is not
//! parsed; a few keys are looked for in its bytes. No truth is kept.

mod cache;
mod scan;
mod service;

pub(crate) use service::Echo;
