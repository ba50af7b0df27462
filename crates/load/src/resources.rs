//! What this machine can hold and what it gives: file descriptors bound the requests in flight,
//! and processor time may go elsewhere.

use std::num::NonZeroU32;

use inferometer_model::journal::CpuFacts;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;

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

/// Where it cannot be said, nothing is lost but a little of both.
fn set_small_pages(small: bool) {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_thp_disable(small);
    #[cfg(not(target_os = "linux"))]
    let _ = small;
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

/// Processor time up to a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuReading {
    process_ns: u64,
    ticks: u64,
    stolen_ticks: u64,
}

impl CpuReading {
    pub(crate) fn take() -> Option<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        let process = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        let (ticks, stolen_ticks) = machine_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { process_ns: u64::try_from(process).ok()? * 1_000, ticks, stolen_ticks })
    }

    pub(crate) fn until_now(self) -> Option<CpuFacts> {
        let now = Self::take()?;
        Some(CpuFacts {
            process_ns: now.process_ns.saturating_sub(self.process_ns),
            ticks: now.ticks.saturating_sub(self.ticks),
            stolen_ticks: now.stolen_ticks.saturating_sub(self.stolen_ticks),
        })
    }
}

/// All ticks and the stolen ones, from the first line of `/proc/stat`: user, nice, system, idle,
/// iowait, irq, softirq, steal. What follows is contained in these.
fn machine_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    Some((ticks.iter().sum(), *ticks.get(7)?))
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
}
