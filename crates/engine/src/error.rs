//! Why the engine could not start or go on.

use std::io;
use std::net::SocketAddr;

use crate::options::OptionsError;

/// Why [`serve`](crate::serve()) ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(
        "cannot listen on {address}: port {port} is in use; choose another with --port or use --port 0",
        port = .address.port()
    )]
    PortInUse { address: SocketAddr },
    #[error(
        "cannot listen on {address}: no permission; choose a port above 1023 with --port or use --port 0"
    )]
    PortForbidden { address: SocketAddr },
    #[error(
        "cannot listen on {address}: this machine has no such address; choose one of its own, such as 127.0.0.1"
    )]
    NoSuchAddress { address: SocketAddr },
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the event loop cannot {action}")]
    EventLoop { action: &'static str, source: io::Error },
}

impl EngineError {
    /// Names the remedy where the reason is one that the user can do something about.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "io::ErrorKind is open; every other kind has no remedy of its own"
    )]
    pub(crate) fn listening(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortInUse { address },
            io::ErrorKind::PermissionDenied => Self::PortForbidden { address },
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress { address },
            _ => Self::Listen { address, source },
        }
    }

    /// Wraps a failure of the event loop with what it was doing.
    pub(crate) fn doing(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::EventLoop { action, source }
    }
}
