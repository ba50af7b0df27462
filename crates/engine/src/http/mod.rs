//! HTTP/1.1 as this server speaks it: requests out of bytes, small replies into bytes.

mod body;
mod reply;
mod request;
mod route;

pub(crate) use body::{body, status_of};
pub(crate) use reply::{
    ErrorBody, JSON_HEAD, STREAM_HEAD, Status, empty, json, json_body, plain_error,
};
pub(crate) use request::{ID_BYTES_KEPT, Parsed, Request, parse};
pub(crate) use route::{Route, RouteError, route};

/// Tells a client that waits for it to send the body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
