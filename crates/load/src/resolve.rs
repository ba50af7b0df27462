//! From a host name to the one address that a run is pinned to.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use inferometer_model::BaseUrl;

use crate::connection::io_failure;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("the host name `{host}` does not resolve ({reason})")]
    NoAddress { host: String, reason: String },
    #[error("no connection to {base}: {reason}")]
    NoConnection { base: BaseUrl, reason: String },
}

/// Tries every address of the host and returns the first that accepts a connection: `localhost`
/// may mean `::1` where the server listens on IPv4 alone.
pub fn resolve(base: &BaseUrl, connect: Duration) -> Result<SocketAddr, ResolveError> {
    let host = base.host_to_resolve();
    let no_address = |reason: String| ResolveError::NoAddress { host: host.to_owned(), reason };
    let addresses: Vec<SocketAddr> = (host, base.port)
        .to_socket_addrs()
        .map_err(|error| no_address(error.to_string()))?
        .collect();
    let mut last = None;
    for address in &addresses {
        match TcpStream::connect_timeout(address, connect) {
            Ok(_) => return Ok(*address),
            Err(error) => last = Some((address, error)),
        }
    }
    let Some((address, error)) = last else {
        return Err(no_address("no addresses".to_owned()));
    };
    let failure = io_failure(&error);
    Err(ResolveError::NoConnection {
        base: base.clone(),
        reason: failure.cause.map_or_else(
            || format!("{error} (at {address})"),
            |cause| format!("{} (at {address})", cause.text()),
        ),
    })
}
