//! What this machine can hold: file descriptors bound the requests in flight.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Kept for files, timers, the runtime and the terminal.
const RESERVED_DESCRIPTORS: u64 = 64;

/// Raises the soft limit to the hard one and returns how many requests can be in flight.
pub fn raise_in_flight_ceiling() -> usize {
    let ceiling = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < hard => {
            let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
            if raised { hard } else { soft }
        }
        Ok((soft, _)) => soft,
        Err(_) => 1_024,
    };
    usize::try_from(ceiling.saturating_sub(RESERVED_DESCRIPTORS)).unwrap_or(usize::MAX)
}
