//! The cores that this process may run on.

/// The cores that this process may use, by number; empty where the system does not say.
pub fn allowed() -> Vec<usize> {
    affinity::allowed()
}

/// Keeps the calling thread on one core. A core that is not there leaves it where it was: the
/// cores were checked when they were chosen.
pub fn pin_to(core: usize) {
    affinity::pin_to(core);
}

#[cfg(target_os = "linux")]
mod affinity {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    const THIS_THREAD: Pid = Pid::from_raw(0);

    pub(super) fn allowed() -> Vec<usize> {
        let Ok(set) = sched_getaffinity(THIS_THREAD) else { return Vec::new() };
        (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
    }

    pub(super) fn pin_to(core: usize) {
        let mut set = CpuSet::new();
        if set.set(core).is_ok() {
            let _ = sched_setaffinity(THIS_THREAD, &set);
        }
    }
}

/// Elsewhere threads cannot be pinned in this way.
#[cfg(not(target_os = "linux"))]
mod affinity {
    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn pin_to(_: usize) {}
}
