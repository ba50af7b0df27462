//! Whether a server on a loopback address is really here: a tunnel listens on this machine too, and
//! what answers is elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Programs that serve models themselves, by the beginnings of their names. The kernel cuts names to
/// fifteen letters.
const SERVERS: &str = "python vllm VLLM sglang llama-server llama_server ollama text-generation \
                       trtllm tritonserver uvicorn docker-proxy";

/// Whether the process that listens there is seen on this machine and is a server of models. Anything
/// else may forward it.
pub fn serves_here(address: SocketAddr) -> bool {
    address.ip().is_loopback()
        && owners(address)
            .is_some_and(|owners| !owners.is_empty() && owners.iter().all(|name| is_server(name)))
}

fn is_server(name: &str) -> bool {
    SERVERS.split(' ').any(|known| name.starts_with(known))
}

/// The names of all processes that hold the listening sockets; `None` when one may not be looked at.
fn owners(address: SocketAddr) -> Option<Vec<String>> {
    sockets_at(address).iter().map(|inode| Some(owner(inode)?.1)).collect()
}

/// The inodes of all sockets that hear what is sent there.
pub(crate) fn sockets_at(address: SocketAddr) -> Vec<String> {
    tables().iter().flat_map(|table| listening(table, |at| accepts(at, address))).collect()
}

/// Whether anything of this machine listens on that port, at any address.
pub(crate) fn is_listened_on(port: u16) -> bool {
    tables().iter().any(|table| !listening(table, |at| at.port() == port).is_empty())
}

/// The sockets that something listens on now.
pub(crate) fn all_sockets() -> BTreeSet<String> {
    tables().iter().flat_map(|table| listening(table, |_| true)).collect()
}

fn tables() -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables.into_iter().filter_map(|table| fs::read_to_string(table).ok()).collect()
}

fn accepts(listening: SocketAddr, address: SocketAddr) -> bool {
    let ip = listening.ip();
    listening.port() == address.port() && (ip == address.ip() || ip.is_unspecified())
}

/// The inodes of sockets that listen where it is wanted.
fn listening(table: &str, is_wanted: impl Fn(SocketAddr) -> bool) -> Vec<String> {
    const LISTEN: &str = "0A";
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (ip, port) = local.rsplit_once(':')?;
        let at = SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?);
        (*state == LISTEN && is_wanted(at)).then(|| (*inode).to_owned())
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// The kernel writes addresses as words of four bytes, each in the order of the machine.
fn ip_of(hexadecimal: &str) -> Option<IpAddr> {
    let word = |place: usize| {
        let digits = hexadecimal.get(8 * place..8 * (place + 1))?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hexadecimal.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let bytes: Vec<u8> = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let whole: [u8; 16] = bytes.try_into().ok()?;
            let ip = Ipv6Addr::from(whole);
            Some(ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4))
        }
        _ => None,
    }
}

/// The process that holds a socket, by number and name; `None` where it may not be looked at.
pub(crate) fn owner(inode: &str) -> Option<(u32, String)> {
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let own = processes.filter_map(|entry| number(&entry.path())).find(|pid| holds(*pid, inode))?;
    let name = fs::read_to_string(format!("/proc/{own}/comm")).ok()?;
    Some((own, name.trim().to_owned()))
}

/// Whether that process has that socket open.
pub(crate) fn holds(pid: u32, inode: &str) -> bool {
    let wanted = format!("socket:[{inode}]");
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links
        .filter_map(|link| fs::read_link(link.path()).ok())
        .any(|socket| socket.as_os_str() == wanted.as_str())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn sockets_that_listen_are_found_by_address_and_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n\
                     1: 0100007F:1F40 0100007F:8888 01 00000000:00000000 00:00000000 00000000     0        0 4343 1\n\
                     2: 0500000A:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4444 1\n\
                     3: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4545 1\n";
        let at = |port: u16| {
            move |listening_at: SocketAddr| {
                accepts(listening_at, SocketAddr::from(([127, 0, 0, 1], port)))
            }
        };
        assert_eq!(listening(table, at(8000)), ["4242", "4545"]);
        assert!(listening(table, at(8001)).is_empty());
        assert!(listening("", at(8000)).is_empty());
    }

    #[test]
    fn servers_of_models_are_told_from_what_passes_on() {
        for (name, expected) in [
            ("python3.12", true),
            ("llama-server", true),
            ("VLLM::EngineCor", true),
            ("ssh", false),
            ("kubectl", false),
            ("node", false),
            ("code", false),
            ("nginx", false),
        ] {
            assert_eq!(is_server(name), expected, "{name}");
        }
    }

    #[test]
    fn a_socket_of_our_own_is_found_and_others_are_unknown() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(owners(address).map(|owners| owners.len()), Some(1));
        assert!(!serves_here(address), "a test is no server of models");
        assert!(!serves_here("192.0.2.1:80".parse().unwrap()));
    }
}
