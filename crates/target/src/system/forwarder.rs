//! Whether a server on a loopback address is really here: a tunnel listens on this machine too, and
//! what answers is elsewhere.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// Who listens on a port of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// A program that serves.
    Server,
    /// A program that passes on what it hears, maybe to another machine.
    Forwarder,
    /// Nobody that we may look at.
    Unknown,
}

/// The kernel cuts names to fifteen letters.
const FORWARDERS: [&str; 14] = [
    "ssh",
    "sshd",
    "autossh",
    "kubectl",
    "socat",
    "nginx",
    "haproxy",
    "envoy",
    "caddy",
    "traefik",
    "ngrok",
    "cloudflared",
    "pproxy",
    "stunnel",
];

pub fn listener(address: SocketAddr) -> Listener {
    if !address.ip().is_loopback() {
        return Listener::Unknown;
    }
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inodes: Vec<String> = tables
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, address.port()))
        .collect();
    match owner(&inodes) {
        Some(name) if FORWARDERS.contains(&name.as_str()) => Listener::Forwarder,
        Some(_) => Listener::Server,
        None => Listener::Unknown,
    }
}

/// The inodes of sockets that listen on the port.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let own = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        (own == port && *state == LISTEN).then(|| (*inode).to_owned())
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// The name of the process that holds one of the sockets.
fn owner(inodes: &[String]) -> Option<String> {
    if inodes.is_empty() {
        return None;
    }
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let holds = |process: &Path| {
        let links = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        links
            .filter_map(|link| fs::read_link(link.path()).ok())
            .any(|socket| wanted.iter().any(|wanted| socket.as_os_str() == wanted.as_str()))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let own = processes
        .filter(|path| {
            path.file_name().is_some_and(|name| {
                name.to_string_lossy().starts_with(|c: char| c.is_ascii_digit())
            })
        })
        .find(|path| holds(path))?;
    fs::read_to_string(own.join("comm")).ok().map(|name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn sockets_that_listen_are_found_by_their_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n\
                     1: 0100007F:1F40 0100007F:8888 01 00000000:00000000 00:00000000 00000000     0        0 4343 1\n";
        assert_eq!(listening(table, 8000), ["4242"]);
        assert!(listening(table, 8001).is_empty());
        assert!(listening("", 8000).is_empty());
    }

    #[test]
    fn a_socket_of_our_own_is_a_server_and_elsewhere_is_unknown() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(listener(socket.local_addr().unwrap()), Listener::Server);
        assert_eq!(listener("192.0.2.1:80".parse().unwrap()), Listener::Unknown);
    }
}
