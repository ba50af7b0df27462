//! What this machine can hold and what it gives: file descriptors bound the requests in flight,
//! and processor time may go elsewhere.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inferometer_model::journal::CpuFacts;
use inferometer_model::{BaseUrl, Moment};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;

use crate::connection::io_failure;
use crate::platform::{THREAD_CPU, set_small_pages};
pub use crate::platform::{allowed, pin_to};

/// Refuses huge pages for this process, as long as it lives. The kernel wipes two megabytes at the
/// touch of one byte, which stops a driver for milliseconds in the middle of a stream, and ten
/// thousand streams that need little each would hold twice what they use.
///
/// What is started meanwhile inherits the refusal, so it lasts no longer than the drive.
#[derive(Debug)]
pub(crate) struct SmallPages(());

impl SmallPages {
    pub(crate) fn keep() -> Self {
        set_small_pages(true);
        Self(())
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        set_small_pages(false);
    }
}

/// Kept for files, timers, the runtime and the terminal.
const RESERVED_DESCRIPTORS: u64 = 64;

/// For each driver: its runtime and its timers.
const DESCRIPTORS_PER_DRIVER: u64 = 8;

/// Raises the soft limit to the hard one and returns how many requests can be in flight beside so
/// many drivers.
pub fn raise_in_flight_ceiling(drivers: NonZeroU32) -> usize {
    let ceiling = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < hard => {
            let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
            if raised { hard } else { soft }
        }
        Ok((soft, _)) => soft,
        Err(_) => 1_024,
    };
    let reserved = RESERVED_DESCRIPTORS + DESCRIPTORS_PER_DRIVER * u64::from(drivers.get());
    usize::try_from(ceiling.saturating_sub(reserved)).unwrap_or(usize::MAX)
}

/// Processor time up to now.
pub(crate) fn cpu_reading() -> Option<CpuFacts> {
    let process_ns = u64::try_from(cpu_time(UsageWho::RUSAGE_SELF)?.as_nanos()).ok()?;
    let (ticks, stolen_ticks) = machine_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
    Some(CpuFacts { process_ns, ticks, stolen_ticks })
}

fn cpu_time(who: UsageWho) -> Option<Duration> {
    let usage = getrusage(who).ok()?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    u64::try_from(micros).ok().map(Duration::from_micros)
}

/// Processor time since a reading.
pub(crate) fn cpu_since(before: CpuFacts) -> Option<CpuFacts> {
    let now = cpu_reading()?;
    Some(CpuFacts {
        process_ns: now.process_ns.saturating_sub(before.process_ns),
        ticks: now.ticks.saturating_sub(before.ticks),
        stolen_ticks: now.stolen_ticks.saturating_sub(before.stolen_ticks),
    })
}

/// The CPU time of the calling thread, second by second.
#[derive(Debug, Default)]
pub(crate) struct ThreadCpu {
    /// When the second began, and the thread's CPU time then.
    since: Option<(Moment, Duration)>,
    busiest_us: Option<u32>,
}

impl ThreadCpu {
    /// Takes a reading if this much time has passed since the one before; called often.
    pub(crate) fn look(&mut self, now: Moment, every: Duration) {
        let passed = self.since.map(|(since, _)| now.since(since).unwrap_or_default());
        if passed.is_some_and(|passed| passed < every) {
            return;
        }
        let Some(used) = THREAD_CPU.and_then(cpu_time) else { return };
        if let Some((passed, (_, before))) = passed.zip(self.since.replace((now, used))) {
            let share = used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a thread uses at most one second per second"
            )]
            let used_us = (share.clamp(0.0, 1.0) * 1e6) as u32;
            self.busiest_us = self.busiest_us.max(Some(used_us));
        }
    }

    /// In microseconds per second; `None` for a run that was too short to tell.
    pub(crate) fn busiest_second_us(&mut self, now: Moment) -> Option<u32> {
        self.look(now, Duration::from_millis(200));
        self.busiest_us
    }
}

/// All ticks and the stolen ones, from the first line of `/proc/stat`: user, nice, system, idle,
/// iowait, irq, softirq, steal. What follows is contained in these.
fn machine_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    Some((ticks.iter().sum(), *ticks.get(7)?))
}

/// Memory of this machine, or of a control group that this process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub limit_bytes: u64,
    /// What can still be used, with what the kernel can take back from files.
    pub left_bytes: u64,
    /// What this process uses.
    pub own_bytes: u64,
}

impl Memory {
    /// The one with the least left; `None` where the system reports nothing.
    pub fn find() -> Option<Self> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let machine = read("/proc/meminfo").and_then(|text| Self::from_meminfo(&text));
        let groups = memory_groups(&read("/proc/self/cgroup").unwrap_or_default());
        let groups = groups.iter().filter_map(|folder| Self::of_group(folder));
        let least = groups.chain(machine).min_by_key(|memory| memory.left_bytes)?;
        let own = read("/proc/self/status").and_then(|text| kilobytes(&text, "VmRSS:"));
        Some(Self { own_bytes: own.unwrap_or_default(), ..least })
    }

    fn from_meminfo(text: &str) -> Option<Self> {
        let limit_bytes = kilobytes(text, "MemTotal:")?;
        Some(Self { limit_bytes, left_bytes: kilobytes(text, "MemAvailable:")?, own_bytes: 0 })
    }

    /// By the files of either version of control groups; `None` where a group has no limit.
    fn of_group(folder: &Path) -> Option<Self> {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let number =
            |names: [&str; 2]| names.into_iter().find_map(read)?.trim().parse::<u64>().ok();
        let limit_bytes = number(["memory.max", "memory.limit_in_bytes"])?;
        let used = number(["memory.current", "memory.usage_in_bytes"])?;
        let of_files = |line: &str| {
            let (name, bytes) = line.split_once(' ')?;
            let is_of_files = matches!(name, "inactive_file" | "active_file");
            is_of_files.then(|| bytes.trim().parse::<u64>().ok()).flatten()
        };
        let files: u64 = read("memory.stat")?.lines().filter_map(of_files).sum();
        let left_bytes = limit_bytes.saturating_sub(used.saturating_sub(files));
        Some(Self { limit_bytes, left_bytes, own_bytes: 0 })
    }
}

/// The value of a line such as `VmRSS:  12 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The folders of the control groups that limit the memory of a process, from its `/proc/PID/cgroup`:
/// its own and those above. In a container the outermost has no name of its own.
fn memory_groups(cgroup: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next());
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            list if list.split(',').any(|name| name == "memory") => {
                Path::new("/sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        let own = root.join(path.unwrap_or_default().trim_start_matches('/'));
        found.extend(own.ancestors().take_while(|it| it.starts_with(root)).map(Path::to_owned));
    }
    found
}

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
    let cause = io_failure(&error).cause;
    let what = cause.map_or_else(|| error.to_string(), |cause| cause.text().to_owned());
    let reason = format!("{what} (at {address})");
    Err(ResolveError::NoConnection { base: base.clone(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_ticks_are_the_eighth_and_guests_are_not_counted_twice() {
        let stat = "cpu  10 1 20 60 3 1 2 3 99 99\ncpu0 5 0 10 30 1 0 1 1 0 0\n";
        assert_eq!(machine_ticks(stat), Some((100, 3)));
        assert_eq!(machine_ticks("cpu  1 2 3\n"), None);
        assert_eq!(machine_ticks("intr 5\n"), None);
    }

    #[test]
    fn the_groups_of_both_versions_are_found_with_those_above() {
        let first = "4:memory:/docker/abc\n3:cpuset:/docker/abc\n";
        let root = Path::new("/sys/fs/cgroup/memory");
        assert_eq!(memory_groups(first), ["docker/abc", "docker", ""].map(|it| root.join(it)));
        assert_eq!(memory_groups("0::/\n"), [Path::new("/sys/fs/cgroup")]);
    }

    #[test]
    fn memory_that_files_use_is_not_lost() {
        let text = "MemTotal:  1000 kB\nMemFree:  1 kB\nMemAvailable:  400 kB\n";
        let found = Memory::from_meminfo(text).unwrap();
        assert_eq!((found.limit_bytes, found.left_bytes), (1_024_000, 409_600));
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("memory.max", "1000\n"),
            ("memory.current", "900\n"),
            ("memory.stat", "anon 300\nfile 600\ninactive_file 500\nactive_file 100\n"),
        ];
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let found = Memory::of_group(folder.path()).unwrap();
        assert_eq!((found.limit_bytes, found.left_bytes), (1_000, 700));
        std::fs::write(folder.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(Memory::of_group(folder.path()), None);
    }
}
