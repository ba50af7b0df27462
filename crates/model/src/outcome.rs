//! How a request ended. The set is closed, and its keys stand in every result.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::{Moment, variant_name};

texts! {
    /// Every scheduled request ends in exactly one of these.
    ///
    /// To add one: the enum, `help`, then whatever the compiler and the snapshot tests
    /// point at. The stored numbers are positions, so a new outcome goes to the end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[derive(VariantArray)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome, help {
        Ok: "a whole answer that the dialect accepts";
        HttpError: "the server answered with an error status";
        Rejected: "the server refused the load (429 or 503)";
        StreamError: "an error arrived inside a 200 answer: an error object, or a finish reason such as `abort`";
        Truncated: "the answer ended before it was whole";
        ProtocolError: "the bytes were not a legal answer, or passed a bound";
        TransportError: "the connection failed or broke";
        TlsError: "the TLS handshake or certificate failed";
        /// Only before a run: the address is pinned, so no request of a run resolves a name.
        DnsError: "the host name did not resolve";
        TimeoutConnect: "no connection within the limit";
        TimeoutFirstToken: "no output within the limit";
        TimeoutIdle: "the stream fell silent for longer than the limit";
        TimeoutTotal: "the answer took longer than the limit";
        Cancelled: "we ended it: the run was stopped first";
        NotSent: "it was scheduled and never attempted";
        /// Neither a success nor a failure: the server did as it should, up to there.
        Abandoned: "the client ended it after some tokens, as --cancel asks";
    }
}

impl Outcome {
    pub fn all() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied()
    }

    /// Whether the client ended it on purpose, so that it is no failure of the server's.
    pub const fn is_by_client(self) -> bool {
        matches!(self, Self::Cancelled | Self::Abandoned)
    }

    /// The key in JSON, and the word on every page.
    pub fn key(self) -> &'static str {
        variant_name(&self)
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

texts! {
    /// What exactly went wrong, where it is known. Details are separate from the outcome's name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Cause, text {
        Refused: "connection refused";
        Unreachable: "host or network unreachable";
        Reset: "connection reset";
        /// A connection from the pool turned out to be closed; we do not retry behind the user's back.
        StalePool: "the server had closed the pooled connection";
        /// File descriptors, ports or memory of this machine: the client's fault, never the server's.
        ClientResource: "this machine ran out of descriptors, ports or memory";
        Redirect: "a redirect, which is never followed";
        ContentType: "not an event stream or JSON";
        ContentEncoding: "a compressed body although identity was requested";
        Headers: "headers too large or not legal";
        BadFraming: "HTTP framing not legal";
        BadJson: "JSON that does not parse";
        JsonTooDeep: "JSON nested too deeply or with too many keys";
        LineTooLarge: "a line over its bound";
        EventTooLarge: "an event over its bound";
        BodyTooLarge: "a body over its bound";
        ErrorEvent: "an error event";
        NoFinishReason: "the stream ended without a finish reason";
        NoFinalChunk: "the connection closed before the body ended";
        UnexpectedAnswer: "JSON without the fields of an answer";
        Certificate: "the certificate was not accepted";
        Handshake: "the TLS handshake failed";
        RunStopped: "the run was stopped";
        RunCrashed: "the run ended without saving this request";
        /// HTTP/2: the server closes the connection, and this request came too late for it.
        GoAway: "the server is closing this HTTP/2 connection";
        /// The concurrency cap of an open loop held it back until the run's time was over.
        HeldByCap: "held back by the concurrency cap until the time was over";
        /// The run's time was over before its conversation came to it.
        TimeOver: "the time was over before its conversation came to it";
        /// A turn of its session that it waited for failed or was not sent, so there is no answer to go on from.
        ConversationBroken: "an earlier turn of its conversation failed";
        GivenUp: "the finish reason says that the server gave the answer up";
        WorkerMissing: "there is no run of the worker that was to send it";
        WorkerLate: "its worker began after the request was due";
    }
}

/// The end of one attempt: what, when, and the details beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub outcome: Outcome,
    pub at: Moment,
    pub stage: Stage,
    pub cause: Option<Cause>,
    /// The server's own message, bounded and redacted, still untrusted.
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
        for (position, outcome) in Outcome::all().enumerate() {
            assert_eq!(outcome as usize, position, "{outcome}");
        }
    }

    #[test]
    fn keys_are_what_serde_writes() {
        for outcome in Outcome::all() {
            let written = serde_json::to_string(&outcome).unwrap();
            assert_eq!(written, format!("\"{}\"", outcome.key()));
        }
    }
}
