//! The state of this machine's clock, as the programs that keep it report it.

use std::fs;

use inferometer_model::stripe::HostFacts;

use super::tool;

/// What one program says: whether the clock is synchronized, and its error in nanoseconds at most.
type State = (bool, Option<u64>);

/// The source of a bound that the kernel keeps.
pub const KERNEL: &str = "the kernel";

/// This machine's name and the state of its clock. Chrony's bound is the better one; the kernel has the
/// flag and the bound of every program that keeps the time, in containers too.
pub fn clock_host() -> HostFacts {
    let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let chrony = || Some(("chronyc", read_chrony(&tool::run("chronyc", &["-c", "tracking"])?)?));
    let (clock_source, state) = chrony().or_else(|| Some((KERNEL, ask_kernel()?))).unzip();
    HostFacts {
        name: line("/proc/sys/kernel/hostname").unwrap_or_default(),
        boot: line("/proc/sys/kernel/random/boot_id"),
        clock_source: clock_source.map(str::to_owned),
        synchronized: state.map(|(synchronized, _)| synchronized),
        error_ns: state.and_then(|(_, error_ns)| error_ns),
    }
}

/// `adjtimex` without a change: whether somebody synchronizes the clock, and the error at most, in
/// microseconds.
#[cfg(target_os = "linux")]
fn ask_kernel() -> Option<State> {
    /// `STA_UNSYNC` of `<sys/timex.h>`.
    const UNSYNCHRONIZED: i32 = 0x40;
    let mut clock = rtime_clock::adjtime::Timex::new();
    rtime_clock::adjtime::adjtimex(&mut clock).ok()?;
    let synchronized = clock.0.status & UNSYNCHRONIZED == 0;
    let error_ns = u64::try_from(clock.0.maxerror).ok()?.checked_mul(1_000)?;
    Some((synchronized, synchronized.then_some(error_ns)))
}

#[cfg(not(target_os = "linux"))]
fn ask_kernel() -> Option<State> {
    None
}

/// One line of values after commas. The bound of the error is the one of chrony's manual: the distance
/// to the estimated time, the dispersion of the path, and half of its delay.
fn read_chrony(line: &str) -> Option<State> {
    let values: Vec<&str> = line.trim().split(',').collect();
    let seconds = |place: usize| values.get(place)?.parse::<f64>().ok().filter(|it| it.is_finite());
    let bound_s = seconds(4)?.abs() + seconds(11)?.abs() + seconds(10)?.abs() / 2.0;
    let synchronized = values.get(13).is_some_and(|leap| *leap != "Not synchronised");
    let error_ns = inferometer_model::whole::to_u64((bound_s * 1e9).ceil());
    Some((synchronized, synchronized.then_some(error_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chrony_states_the_bound_of_its_error() {
        let line = "A29FC801,162.159.200.1,4,1763496000.1,-0.000011,0.000002,0.000180,-8.3,0.0,0.1,\
                    0.004,0.0005,64.2,Normal\n";
        assert_eq!(read_chrony(line), Some((true, Some(2_511_000))));
        let alone = "00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised";
        assert_eq!(read_chrony(alone), Some((false, None)));
        for odd in ["", "506 Cannot talk to daemon", "a,b,c", "1,2,3,4,nan,6,7,8,9,10,11,12,13,14"]
        {
            assert_eq!(read_chrony(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_machine_has_a_name_and_what_is_not_known_is_absent() {
        let host = clock_host();
        assert!(!host.name.is_empty());
        assert_eq!(host.clock_source.is_some(), host.synchronized.is_some());
        assert!(host.synchronized == Some(true) || host.error_ns.is_none(), "{host:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_says_whether_its_clock_is_synchronized() {
        let (synchronized, error_ns) = ask_kernel().unwrap();
        assert_eq!(synchronized, error_ns.is_some());
    }
}
