//! All processes of a server: its group, whoever left it with our mark in the environment, and the
//! children of both. Servers rename their workers by writing over their environment, so a process
//! that was seen once is known again by its number and the moment of its start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::system::listener;

/// What every process of a deployment finds in its environment.
pub(super) const MARK: &str = "INFEROMETER_DEPLOYMENT";

#[derive(Debug)]
pub(super) struct Family {
    /// The group, which its first process leads; that one is not reaped before the end, so that
    /// nobody else can have its number.
    leader: i32,
    mark: String,
    /// Start of each process that was ever seen as one of it, in ticks since boot.
    seen: BTreeMap<i32, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) name: String,
}

/// A process as `/proc` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    pid: i32,
    parent: i32,
    group: i32,
    started: u64,
    is_dead: bool,
    name: String,
}

impl Family {
    pub(super) fn new(leader: i32, mark: &str) -> Self {
        Self { leader, mark: format!("{MARK}={mark}"), seen: BTreeMap::new() }
    }

    /// Those that are alive.
    pub(super) fn members(&mut self) -> Vec<Member> {
        let all = processes();
        let mut own: BTreeMap<i32, &Seen> = all
            .iter()
            .filter(|process| self.is_own(process))
            .map(|process| (process.pid, process))
            .collect();
        // Children of children: as often as there are generations.
        loop {
            let before = own.len();
            for process in &all {
                if own.contains_key(&process.parent) {
                    own.insert(process.pid, process);
                }
            }
            if own.len() == before {
                break;
            }
        }
        self.seen.extend(own.values().map(|process| (process.pid, process.started)));
        own.into_values()
            .filter(|process| !process.is_dead)
            .filter_map(|process| {
                Some(Member { pid: process.pid.try_into().ok()?, name: process.name.clone() })
            })
            .collect()
    }

    fn is_own(&self, process: &Seen) -> bool {
        process.group == self.leader
            || self.seen.get(&process.pid) == Some(&process.started)
            || is_marked(process.pid, &self.mark)
    }

    /// To the group at once and to all others one by one.
    pub(super) fn signal(&mut self, signal: Signal) {
        let pids = self.members().into_iter().filter_map(|member| i32::try_from(member.pid).ok());
        let (group, others): (Vec<Seen>, Vec<Seen>) =
            pids.filter_map(process).partition(|process| process.group == self.leader);
        if !group.is_empty() {
            let _ = killpg(Pid::from_raw(self.leader), signal);
        }
        for other in others {
            let _ = kill(Pid::from_raw(other.pid), signal);
        }
    }
}

/// The processes of whoever listens there, by number: its group, its children, and all that bear the
/// mark that we gave it. None of a listener that is not seen, or that passes on what it hears.
pub fn serving(address: SocketAddr) -> Vec<u32> {
    const PASSERS_ON: [&str; 4] = ["docker", "rootlessport", "conmon", "ssh"];
    let owners = listener::sockets_at(address).into_iter().filter_map(|it| listener::owner(&it));
    let mut found = BTreeSet::new();
    for (pid, name) in owners {
        let seen = i32::try_from(pid).ok().and_then(process);
        let Some(seen) = seen.filter(|_| !PASSERS_ON.iter().any(|one| name.starts_with(one)))
        else {
            continue;
        };
        let mut family = Family { leader: seen.group, mark: mark(seen.pid), seen: BTreeMap::new() };
        found.extend(family.members().into_iter().map(|member| member.pid));
    }
    // We may be of its group, where a script started us both.
    found.remove(&std::process::id());
    found.into_iter().collect()
}

/// As it stands in the environment of a process; one that nobody has where it has none.
fn mark(pid: i32) -> String {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let begin = format!("{MARK}=");
    let own = environment.split(|byte| *byte == 0).find(|it| it.starts_with(begin.as_bytes()));
    own.map_or(begin, |mark| String::from_utf8_lossy(mark).into_owned())
}

fn is_marked(pid: i32, mark: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
        environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    })
}

fn processes() -> Vec<Seen> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .collect()
}

fn process(pid: i32) -> Option<Seen> {
    parsed(pid, &String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// `PID (NAME) STATE PARENT GROUP …`; a name may have brackets and blanks in it.
fn parsed(pid: i32, stat: &str) -> Option<Seen> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Seen {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        // What has ended and was not fetched by its parent holds nothing any more.
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "71 (a) b (c) S 7 70 70 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 9912 0 0";
        let read = parsed(71, stat).unwrap();
        assert_eq!((read.parent, read.group, read.started), (7, 70, 9912));
        assert_eq!((read.name.as_str(), read.is_dead), ("a) b (c", false));
        assert!(parsed(71, &stat.replace(" S ", " Z ")).unwrap().is_dead);
        assert_eq!(parsed(71, "71 (a"), None);
    }

    #[test]
    fn children_of_who_listens_are_of_the_server_and_whoever_asks_is_not() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let found = serving(listening.local_addr().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()) && !found.contains(&std::process::id()), "{found:?}");
        let unheard = listening.local_addr().unwrap();
        drop(listening);
        assert!(serving(unheard).is_empty());
    }
}
