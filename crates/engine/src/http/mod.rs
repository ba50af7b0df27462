//! HTTP/1.1 as this server speaks it: requests out of bytes, small replies into bytes.

mod reply;
mod request;
mod route;

pub(crate) use reply::{ErrorBody, JSON_HEAD, STREAM_HEAD, Status, empty, json};
pub(crate) use request::{Parsed, Request, parse};
pub(crate) use route::{Route, route};

/// Tells a client that waits for it to send the body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
