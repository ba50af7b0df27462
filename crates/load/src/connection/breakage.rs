//! What went wrong on a connection, in our words.

use std::error::Error as _;
use std::io;

use inferometer_model::observations::HttpVersion;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use nix::errno::Errno;
use rustls::AlertDescription;

use crate::answer::Failure;

pub(super) fn tls_failure(error: &io::Error, asked: HttpVersion) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(tls @ rustls::Error::InvalidCertificate(_)) => {
            Failure::with_message(Outcome::TlsError, Cause::Certificate, tls.to_string())
        }
        Some(rustls::Error::InvalidMessage(_)) => Failure::with_message(
            Outcome::TlsError,
            Cause::Handshake,
            "the server answered without TLS",
        ),
        Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            not_offered(asked)
        }
        Some(tls) => Failure::with_message(Outcome::TlsError, Cause::Handshake, tls.to_string()),
        None => Failure {
            outcome: Outcome::TlsError,
            cause: io_failure(error).cause,
            message: Some(error.to_string()),
        },
    }
}

/// The server speaks TLS, but not the HTTP that was asked for.
pub(super) fn not_offered(asked: HttpVersion) -> Failure {
    let words = match asked {
        HttpVersion::Http1 => "the server does not offer HTTP/1.1",
        HttpVersion::Http2 => "the server does not offer HTTP/2",
    };
    Failure::with_message(Outcome::TlsError, Cause::Handshake, words)
}

/// What a socket's error means, in our words.
pub(crate) fn io_failure(error: &io::Error) -> Failure {
    let errno = error.raw_os_error().map(Errno::from_raw);
    let cause = match errno {
        Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => {
            Some(Cause::ClientResource)
        }
        Some(Errno::EADDRNOTAVAIL) => Some(Cause::ClientResource),
        Some(Errno::ECONNREFUSED) => Some(Cause::Refused),
        Some(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENETDOWN) => {
            Some(Cause::Unreachable)
        }
        Some(Errno::ECONNRESET | Errno::EPIPE | Errno::ECONNABORTED) => Some(Cause::Reset),
        // Libraries may pass the kind on, and lose the number.
        _ => is_breakage(error.kind()).then_some(Cause::Reset),
    };
    Failure { outcome: Outcome::TransportError, cause, message: Some(error.to_string()) }
}

/// The kernel's own connect time-out is one too; on an open connection it means something else.
pub(super) fn connect_failure(error: &io::Error) -> Failure {
    let failure = io_failure(error);
    let timed_out = error.raw_os_error().map(Errno::from_raw) == Some(Errno::ETIMEDOUT);
    let outcome = if timed_out { Outcome::TimeoutConnect } else { failure.outcome };
    Failure { outcome, ..failure }
}

/// What hyper's error means, in our words. `was_closed` is a reused connection that broke at once,
/// without a byte for this request: the server had closed it before.
pub(crate) fn http_failure(error: &hyper::Error, stage: Stage, was_closed: bool) -> Failure {
    // A frame that ends one stream of a shared connection says so itself.
    if let Some(h2) = error.source().and_then(|source| source.downcast_ref::<h2::Error>()) {
        return http2_failure(h2);
    }
    if was_closed && !error.is_parse() {
        return Failure::new(Outcome::TransportError, Cause::StalePool);
    }
    if error.is_parse() {
        return Failure::with_message(Outcome::ProtocolError, Cause::Headers, error.to_string());
    }
    let in_body = Stage::FirstToken <= stage;
    if let Some(io) = error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        return body_io_failure(io, in_body);
    }
    if error.is_incomplete_message() && in_body {
        return Failure::new(Outcome::Truncated, Cause::NoFinalChunk);
    }
    Failure::with_message(Outcome::TransportError, Cause::Reset, error.to_string())
}

fn http2_failure(error: &h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        return io_failure(io);
    }
    let (outcome, cause) = if error.is_library() {
        // What the server sent is not HTTP/2 as we read it.
        (Outcome::ProtocolError, Cause::BadFraming)
    } else if error.is_go_away() && error.is_remote() {
        (Outcome::TransportError, Cause::GoAway)
    } else {
        (Outcome::TransportError, Cause::Reset)
    };
    Failure::with_message(outcome, cause, error.to_string())
}

fn is_breakage(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
    )
}

fn body_io_failure(error: &io::Error, in_body: bool) -> Failure {
    let kind = error.kind();
    if kind == io::ErrorKind::UnexpectedEof && in_body {
        // Also a TLS stream without close_notify, which may have been cut by anyone.
        Failure::new(Outcome::Truncated, Cause::NoFinalChunk)
    } else if kind == io::ErrorKind::UnexpectedEof {
        Failure::new(Outcome::TransportError, Cause::Reset)
    } else if matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) {
        Failure::with_message(Outcome::ProtocolError, Cause::BadFraming, error.to_string())
    } else {
        io_failure(error)
    }
}
