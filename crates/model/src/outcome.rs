//! How a request ended. The set is closed, and its keys stand in every result.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Moment;

/// Every scheduled request ends in exactly one of these.
///
/// To add one: the enum, `ALL`, `key`, `help`, then whatever the compiler and the snapshot tests
/// point at. The stored numbers are positions, so a new outcome goes to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    HttpError,
    Rejected,
    StreamError,
    Truncated,
    ProtocolError,
    TransportError,
    TlsError,
    DnsError,
    TimeoutConnect,
    TimeoutFirstToken,
    TimeoutIdle,
    TimeoutTotal,
    Cancelled,
    NotSent,
}

impl Outcome {
    pub const ALL: [Self; 15] = [
        Self::Ok,
        Self::HttpError,
        Self::Rejected,
        Self::StreamError,
        Self::Truncated,
        Self::ProtocolError,
        Self::TransportError,
        Self::TlsError,
        Self::DnsError,
        Self::TimeoutConnect,
        Self::TimeoutFirstToken,
        Self::TimeoutIdle,
        Self::TimeoutTotal,
        Self::Cancelled,
        Self::NotSent,
    ];

    /// The key in JSON, and the word on every page.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::HttpError => "http_error",
            Self::Rejected => "rejected",
            Self::StreamError => "stream_error",
            Self::Truncated => "truncated",
            Self::ProtocolError => "protocol_error",
            Self::TransportError => "transport_error",
            Self::TlsError => "tls_error",
            Self::DnsError => "dns_error",
            Self::TimeoutConnect => "timeout_connect",
            Self::TimeoutFirstToken => "timeout_first_token",
            Self::TimeoutIdle => "timeout_idle",
            Self::TimeoutTotal => "timeout_total",
            Self::Cancelled => "cancelled",
            Self::NotSent => "not_sent",
        }
    }

    pub const fn help(self) -> &'static str {
        match self {
            Self::Ok => "a whole answer that the dialect accepts",
            Self::HttpError => "the server answered with an error status",
            Self::Rejected => "the server refused the load (429 or 503)",
            Self::StreamError => "an error object arrived inside a 200 stream",
            Self::Truncated => "the answer ended before it was whole",
            Self::ProtocolError => "the bytes were not a legal answer, or passed a bound",
            Self::TransportError => "the connection failed or broke",
            Self::TlsError => "the TLS handshake or certificate failed",
            // Only before a run: the address is pinned, so no request of a run resolves a name.
            Self::DnsError => "the host name did not resolve",
            Self::TimeoutConnect => "no connection within the limit",
            Self::TimeoutFirstToken => "no output within the limit",
            Self::TimeoutIdle => "the stream fell silent for longer than the limit",
            Self::TimeoutTotal => "the answer took longer than the limit",
            Self::Cancelled => "we ended it: the run was stopped first",
            Self::NotSent => "it was scheduled and never attempted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// How far the request had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Connect,
    Tls,
    Headers,
    FirstToken,
    Stream,
    End,
    /// The run ended first: how far the request came is not known.
    Unknown,
}

/// What exactly went wrong, where it is known. Details are separate from the outcome's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Refused,
    Unreachable,
    Reset,
    /// A connection from the pool turned out to be closed; we do not retry behind the user's back.
    StalePool,
    /// File descriptors, ports or memory of this machine: the client's fault, never the server's.
    ClientResource,
    Redirect,
    ContentType,
    ContentEncoding,
    Headers,
    BadFraming,
    BadJson,
    JsonTooDeep,
    LineTooLarge,
    EventTooLarge,
    BodyTooLarge,
    ErrorEvent,
    NoFinishReason,
    NoFinalChunk,
    UnexpectedAnswer,
    Certificate,
    Handshake,
    RunStopped,
    RunCrashed,
    /// HTTP/2: the server closes the connection, and this request came too late for it.
    GoAway,
    /// The concurrency cap of an open loop held it back until the run's time was over.
    HeldByCap,
    /// The run's time was over before its conversation came to it.
    TimeOver,
    /// An earlier turn of its conversation failed, so there is no answer to go on from.
    ConversationBroken,
}

impl Cause {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Unreachable => "host or network unreachable",
            Self::Reset => "connection reset",
            Self::StalePool => "the server had closed the pooled connection",
            Self::ClientResource => "this machine ran out of descriptors, ports or memory",
            Self::GoAway => "the server is closing this HTTP/2 connection",
            Self::HeldByCap => "held back by the concurrency cap until the time was over",
            Self::TimeOver => "the time was over before its conversation came to it",
            Self::ConversationBroken => "an earlier turn of its conversation failed",
            Self::Redirect => "a redirect, which is never followed",
            Self::ContentType => "not an event stream or JSON",
            Self::ContentEncoding => "a compressed body although identity was asked for",
            Self::Headers => "headers too large or not legal",
            Self::BadFraming => "HTTP framing not legal",
            Self::BadJson => "JSON that does not parse",
            Self::JsonTooDeep => "JSON nested too deeply or with too many keys",
            Self::LineTooLarge => "a line over its bound",
            Self::EventTooLarge => "an event over its bound",
            Self::BodyTooLarge => "a body over its bound",
            Self::ErrorEvent => "an error event",
            Self::NoFinishReason => "the stream ended without a finish reason",
            Self::NoFinalChunk => "the connection closed before the body ended",
            Self::UnexpectedAnswer => "JSON without the fields of an answer",
            Self::Certificate => "the certificate was not accepted",
            Self::Handshake => "the TLS handshake failed",
            Self::RunStopped => "the run was stopped",
            Self::RunCrashed => "the run ended without saving this request",
        }
    }
}

/// The end of one attempt: what, when, and the details beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub outcome: Outcome,
    pub at: Moment,
    pub stage: Stage,
    pub cause: Option<Cause>,
    /// The server's own words, bounded and redacted, still untrusted.
    pub message: Option<String>,
}

impl Ending {
    pub fn ok(at: Moment) -> Self {
        Self { outcome: Outcome::Ok, at, stage: Stage::End, cause: None, message: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_every_outcome_once_and_in_stored_order() {
        for (position, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, position, "{outcome}");
        }
    }

    #[test]
    fn keys_are_what_serde_writes() {
        for outcome in Outcome::ALL {
            let written = serde_json::to_string(&outcome).unwrap();
            assert_eq!(written, format!("\"{}\"", outcome.key()));
        }
    }
}
