//! A process of this machine that leads a group of its own, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use inferometer_model::BaseUrl;
use inferometer_model::deployment::{DepartureEnding, DeploymentStage};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::{Presence, Server, Stopped};
use crate::system::listener;

/// What is killed is gone after that, or hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    leader: i32,
    family: Family,
    _guard: Guard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Signal(Signal),
}

/// What a process is started with besides its words, variables and log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    pub(super) mark: &'a str,
    pub(super) folder: Option<&'a str>,
    pub(super) grace: Duration,
    /// A command that takes down what is not a process, should we be killed.
    pub(super) farewell: &'a [String],
}

impl Process {
    pub(super) fn start(
        words: &[String],
        variables: &BTreeMap<String, OsString>,
        log: PipeWriter,
        start: Start<'_>,
    ) -> io::Result<Self> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
        // First, so that there is no moment without it.
        let mut guard = Guard::start(&start, variables)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(variables)
            .env(MARK, start.mark)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // What it starts is ended with it, and Ctrl-C does not reach it.
            .process_group(0);
        if let Some(folder) = start.folder {
            command.current_dir(folder);
        }
        let child = command.spawn()?;
        let leader = i32::try_from(child.id()).map_err(io::Error::other)?;
        guard.watch(leader);
        let mark = format!("{MARK}={}", start.mark);
        let family = Family { leader, mark, seen: BTreeMap::new() };
        Ok(Self { child, leader, family, _guard: guard })
    }

    fn is_gone(&mut self) -> bool {
        self.ended().is_some() && self.family.members().is_empty()
    }
}

impl Server for Process {
    fn group(&self) -> Option<i32> {
        Some(self.leader)
    }

    fn presence(&mut self, base: &mut BaseUrl, _within: Duration) -> Presence {
        let port = base.port;
        let who = match find_listener(port, &mut || self.family.members()) {
            Listener::Absent => return Presence::NotYet(format!("port {port} is not open yet")),
            Listener::Ours => return Presence::Ready,
            Listener::Stranger(None) => "an unknown process".to_owned(),
            Listener::Stranger(Some((pid, name))) => format!("`{name}` (process {pid})"),
        };
        let what = format!(
            "{who} listens on port {port} and was not started by us; nothing was sent there. \
             A server in a container must be deployed as one",
        );
        Presence::Failed(DeploymentStage::Start, what)
    }

    fn look_around(&mut self) {
        drop(self.family.members());
    }

    /// It is looked at and not reaped, so that its group stays its own.
    fn ended(&self) -> Option<Exit> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let id = WaitId::Pid(rustix::process::Pid::from_child(&self.child));
        let status = waitid(id, look).ok()??;
        let signal = || Signal::try_from(status.terminating_signal()?).ok().map(Exit::Signal);
        status.exit_status().map(Exit::Code).or_else(signal)
    }

    /// Sends SIGTERM, waits, and kills.
    fn end(&mut self, grace: Duration) -> Stopped {
        let exit_before = self.ended();
        let alive = self.family.members();
        let mut ending = DepartureEnding::Before;
        if exit_before.is_none() || !alive.is_empty() {
            self.family.signal(Signal::SIGTERM);
            let went = until(grace, || self.is_gone());
            ending = if went { DepartureEnding::OnRequest } else { DepartureEnding::Killed };
            if !went {
                until(KILL_PATIENCE, || {
                    self.family.signal(Signal::SIGKILL);
                    self.is_gone()
                });
            }
        }
        let exit = self.ended();
        if exit.is_some() {
            let _ = self.child.wait();
        }
        let mut troubles = Vec::new();
        if exit_before.is_some() {
            ending = DepartureEnding::Before;
            let outlived: Vec<String> =
                alive.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
            if !outlived.is_empty() {
                let outlived = outlived.join(", ");
                troubles.push(format!("processes that outlived it were killed: {outlived}"));
            }
        }
        Stopped { ending, exit, left: self.family.members(), troubles }
    }
}

impl Exit {
    pub(super) fn words(self) -> String {
        match self {
            Self::Code(0) => {
                "it ended with status 0; a server must stay in the foreground".to_owned()
            }
            Self::Code(code) => format!("it ended with status {code}"),
            Self::Signal(Signal::SIGKILL) => {
                "it was killed (SIGKILL), as the kernel does when memory runs out".to_owned()
            }
            Self::Signal(signal) => format!("it was ended by {signal}"),
        }
    }
}

/// What every process of a deployment finds in its environment.
pub(super) const MARK: &str = "INFEROMETER_DEPLOYMENT";

#[derive(Debug)]
pub(super) struct Family {
    /// The group, which its first process leads; that one is not reaped before the end, so that
    /// no other process can have its number.
    leader: i32,
    mark: String,
    /// Start of each process that was ever seen as one of it, in ticks since boot.
    seen: BTreeMap<i32, u64>,
}

/// The number and the name of a process.
type Member = (u32, String);

/// A process as `/proc` reports it.
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
    /// Those that are alive.
    pub(super) fn members(&mut self) -> Vec<Member> {
        let all = processes();
        let is_own = |process: &&Seen| {
            process.group == self.leader
                || self.seen.get(&process.pid) == Some(&process.started)
                || is_marked(process.pid, &self.mark)
        };
        let own = all.iter().filter(is_own);
        let mut own: BTreeMap<i32, &Seen> = own.map(|process| (process.pid, process)).collect();
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
        let alive = own.into_values().filter(|process| !process.is_dead);
        alive
            .filter_map(|process| Some((process.pid.try_into().ok()?, process.name.clone())))
            .collect()
    }

    /// To the group at once and to all others one by one.
    pub(super) fn signal(&mut self, signal: Signal) {
        let pids = self.members().into_iter().filter_map(|(pid, _)| i32::try_from(pid).ok());
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

/// The processes of the listener there, by number: its group, its children, and all that bear the
/// mark that we gave it. None for a listener that is not seen, or that forwards.
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
        found.extend(family.members().into_iter().map(|(pid, _)| pid));
    }
    // We may be of its group, where a script started us both.
    found.remove(&std::process::id());
    found.into_iter().collect()
}

/// The mark in the environment of a process; one that does not exist where it has none.
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

/// It receives the group first: workers that rename themselves write over the mark. `$1` is the mark, `$2` the grace in seconds, and the rest a command that takes down what is not a
/// process of ours.
const SCRIPT: &str = r#"read -r group
read -r ended && exit 0
mark=$1 grace=$2; shift 2
marked() { grep -lszxF -e "$mark" /proc/[0-9]*/environ | cut -d / -f 3; }
alive() { marked; [ -n "$group" ] && kill -s 0 -- "-$group" && echo "$group"; }
end() { [ -z "$group" ] || kill -s "$1" -- "-$group"; for pid in $(marked); do kill -s "$1" "$pid"; done; }
end TERM
[ $# -eq 0 ] || "$@"
while [ "$grace" -gt 0 ] && [ -n "$(alive)" ]; do sleep 1; grace=$((grace - 1)); done
end KILL"#;

#[derive(Debug)]
pub(super) struct Guard(Option<Child>);

impl Guard {
    fn start(start: &Start<'_>, environment: &BTreeMap<String, OsString>) -> io::Result<Self> {
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(format!("{MARK}={}", start.mark))
            .arg(start.grace.as_secs().max(1).to_string())
            .args(start.farewell)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends us all at once, such as Ctrl-C, must not end it.
            .process_group(0)
            .spawn()?;
        Ok(Self(Some(child)))
    }

    pub(super) fn watch(&mut self, group: i32) {
        let pipe = self.0.as_mut().and_then(|child| child.stdin.as_mut());
        let _ = pipe.map(|pipe| writeln!(pipe, "{group}"));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        if let Some(mut pipe) = child.stdin.take() {
            // Twice: there may have been no group to tell.
            let _ = pipe.write_all(b"done\ndone\n");
        }
        let _ = child.wait();
    }
}

/// Ports that this process has given away: the kernel may offer one again before its server listens.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
const TRIES: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    Absent,
    Ours,
    /// By number and name, where it may be looked at.
    Stranger(Option<(u32, String)>),
}

/// One of them; another may have it when this is dropped.
#[derive(Debug)]
pub(super) struct GivenPort(pub(super) u16);

/// A free port of this machine.
pub(super) fn free() -> io::Result<GivenPort> {
    for _ in 0..TRIES {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let is_new = GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
        let given = is_new.then(|| GivenPort(port));
        if let Some(given) = given.filter(|_| !listener::is_listened_on(port)) {
            return Ok(given);
        }
    }
    Err(io::Error::other("no free port was found"))
}

impl Drop for GivenPort {
    fn drop(&mut self) {
        GIVEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

pub(super) fn is_free(port: u16) -> bool {
    if Path::new("/proc/net/tcp").exists() {
        return !listener::is_listened_on(port);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Who receives what is sent to that port of loopback. All of several that share it must be ours. Members
/// are looked for only when something listens: that costs, and a server takes long to load.
pub(super) fn find_listener(port: u16, members: &mut dyn FnMut() -> Vec<Member>) -> Listener {
    let sockets = listener::sockets_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    if sockets.is_empty() {
        return Listener::Absent;
    }
    let members = members();
    let is_ours = |socket: &&String| members.iter().any(|(pid, _)| listener::holds(*pid, socket));
    match sockets.iter().find(|socket| !is_ours(socket)) {
        None => Listener::Ours,
        Some(foreign) => Listener::Stranger(listener::owner(foreign)),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Instant);

#[expect(
    clippy::disallowed_methods,
    reason = "a server is deployed before the clock of a run starts and stopped after it"
)]
impl Stopwatch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn passed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Looks again and again until it is so, at most so long. Whether it became so.
pub(super) fn until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let since = Stopwatch::start();
    loop {
        if is_so() {
            return true;
        }
        if limit <= since.passed() {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod family_tests {
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

#[cfg(test)]
mod port_tests {
    use super::*;

    fn is_given(port: u16) -> bool {
        GIVEN.lock().unwrap().contains(&port)
    }

    #[test]
    fn a_port_is_given_back_when_nobody_keeps_it() {
        let given = free().unwrap();
        let port = given.0;
        assert!(is_given(port));
        drop(given);
        assert!(!is_given(port));
    }
}
