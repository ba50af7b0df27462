//! A port for a server, and who listens on it.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::family::Member;
use crate::system::listener;

/// Ports that this process has given away: the kernel may offer one again before its server listens.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
const TRIES: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    Nobody,
    Ours,
    /// By number and name, where it may be looked at.
    Stranger(Option<(u32, String)>),
}

/// One of them; another may have it when this is dropped.
#[derive(Debug)]
pub(super) struct GivenPort(u16);

/// A port of this machine that nobody listens on.
pub(super) fn free() -> io::Result<GivenPort> {
    for _ in 0..TRIES {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let is_new = GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
        let given = is_new.then(|| GivenPort(port));
        if let Some(given) = given.filter(|_| !listener::is_heard(port)) {
            return Ok(given);
        }
    }
    Err(io::Error::other("no free port was found"))
}

impl GivenPort {
    pub(super) const fn number(&self) -> u16 {
        self.0
    }
}

impl Drop for GivenPort {
    fn drop(&mut self) {
        GIVEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

pub(super) fn is_free(port: u16) -> bool {
    if Path::new("/proc/net/tcp").exists() {
        return !listener::is_heard(port);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Who hears what is sent to that port of loopback. All of several that share it must be ours. Members
/// are looked for only when somebody listens: that costs, and a server takes long to load.
pub(super) fn listener(port: u16, members: &mut dyn FnMut() -> Vec<Member>) -> Listener {
    let sockets = listener::sockets_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    if sockets.is_empty() {
        return Listener::Nobody;
    }
    let members = members();
    let is_ours =
        |socket: &&String| members.iter().any(|member| listener::holds(member.pid, socket));
    match sockets.iter().find(|socket| !is_ours(socket)) {
        None => Listener::Ours,
        Some(foreign) => Listener::Stranger(listener::owner(foreign)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_given(port: u16) -> bool {
        GIVEN.lock().unwrap().contains(&port)
    }

    #[test]
    fn a_port_is_given_back_when_nobody_keeps_it() {
        let given = free().unwrap();
        let port = given.number();
        assert!(is_given(port));
        drop(given);
        assert!(!is_given(port));
    }
}
