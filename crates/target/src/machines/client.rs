//! The client's own machine, by the kernel's files: read in no time, so at every look.

use std::fs;
use std::time::Duration;

use inferometer_model::Moment;
use inferometer_model::telemetry::ClientSample;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Remembers the totals of the look before, for the shares of the time between.
#[derive(Debug, Default)]
pub(super) struct ClientWatch {
    before: Option<Totals>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    at: Moment,
    cpu: Option<CpuTicks>,
    own: Option<Duration>,
}

/// Of all hardware threads together, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTicks {
    all: u64,
    idle: u64,
    steal: u64,
}

impl ClientWatch {
    pub(super) fn look(&mut self, at: Moment) -> ClientSample {
        let text = |path: &str| fs::read_to_string(path).ok();
        let now = Totals { at, cpu: text("/proc/stat").as_deref().and_then(ticks), own: own() };
        let net = text("/proc/net/dev").as_deref().and_then(traffic);
        let memory_available_bytes = text("/proc/meminfo").as_deref().and_then(available);
        let (cpu_share, steal_share, own_cpus) = self.since(&now);
        self.before = Some(now);
        ClientSample {
            at,
            cpu_share,
            steal_share,
            own_cpus,
            received_bytes: net.map(|(received, _)| received),
            sent_bytes: net.map(|(_, sent)| sent),
            memory_available_bytes,
        }
    }

    /// Share of all, share stolen, and processors of our own since the look before.
    fn since(&self, now: &Totals) -> (Option<f64>, Option<f64>, Option<f64>) {
        let Some(before) = self.before else { return (None, None, None) };
        let ticks = before.cpu.zip(now.cpu);
        let share = |part: fn(CpuTicks) -> u64| {
            let (then, now) = ticks?;
            let all = now.all.checked_sub(then.all).filter(|all| 0 < *all)?;
            // The kernel counts waiting for disks so that it may go back.
            Some((part(now).saturating_sub(part(then)) as f64 / all as f64).min(1.0))
        };
        let own = || {
            let used = now.own?.checked_sub(before.own?)?;
            let passed = now.at.since(before.at).filter(|passed| !passed.is_zero())?;
            Some(used.as_secs_f64() / passed.as_secs_f64())
        };
        (share(|ticks| ticks.all - ticks.idle), share(|ticks| ticks.steal), own())
    }
}

/// The line of all processors. Guests are counted within the user's time already.
fn ticks(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> =
        line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, _, _, idle, waiting, ..] = *fields.as_slice() else { return None };
    let all = fields.iter().copied().fold(0, u64::saturating_add);
    let idle = idle.saturating_add(waiting);
    Some(CpuTicks { all, idle, steal: fields.get(7).copied().unwrap_or(0) })
}

fn own() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    u64::try_from(micros).ok().map(Duration::from_micros)
}

/// Bytes received and sent over all interfaces.
fn traffic(table: &str) -> Option<(u64, u64)> {
    let of_line = |line: &str| {
        let (_, counts) = line.split_once(':')?;
        let counts: Vec<&str> = counts.split_whitespace().collect();
        Some((counts.first()?.parse::<u64>().ok()?, counts.get(8)?.parse::<u64>().ok()?))
    };
    table
        .lines()
        .filter_map(of_line)
        .reduce(|sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)))
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read_and_others_are_not() {
        let stat = "cpu  100 0 50 800 20 0 5 25 7 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5\n";
        assert_eq!(ticks(stat), Some(CpuTicks { all: 1_000, idle: 820, steal: 25 }));
        assert_eq!(ticks("cpu  100 0 fifty 800 20\n"), None);
        assert_eq!(ticks("cpu0 1 2 3 4 5\n"), None);
        let net = "Inter-|   Receive |  Transmit\n face |bytes    packets\n    \
                   lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0\n  \
                   eth0:2000 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n";
        assert_eq!(traffic(net), Some((3_000, 1_030)));
        assert_eq!(traffic("nothing"), None);
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn shares_are_of_the_time_between_two_looks() {
        let totals = |second: u64, all, idle, steal, own_ms| Totals {
            at: Moment::from_nanos(second * 1_000_000_000),
            cpu: Some(CpuTicks { all, idle, steal }),
            own: Some(Duration::from_millis(own_ms)),
        };
        let watch = ClientWatch { before: Some(totals(1, 1_000, 900, 10, 500)) };
        let (cpu, steal, own) = watch.since(&totals(3, 1_400, 1_000, 30, 4_500));
        assert_eq!((cpu, steal, own), (Some(0.75), Some(0.05), Some(2.0)));
        // No tick has passed, or the clock did not move: nothing is not zero.
        assert_eq!(watch.since(&totals(1, 1_000, 900, 10, 500)), (None, None, None));
        assert_eq!(ClientWatch::default().since(&totals(1, 1, 1, 0, 0)), (None, None, None));
    }

    #[test]
    fn this_machine_tells() {
        let mut watch = ClientWatch::default();
        let first = watch.look(Moment::ZERO);
        assert_eq!((first.cpu_share, first.own_cpus), (None, None));
        assert!(first.memory_available_bytes.is_some_and(|bytes| 0 < bytes));
        let second = watch.look(Moment::from_nanos(1_000_000_000));
        assert!(second.own_cpus.is_some_and(|own| 0.0 <= own));
    }
}
