//! What differs between operating systems: kernel timers, kernel stamps, cores, pages.
//!
//! Linux has all of it. The portable side does without, on macOS and wherever the program is built with
//! `--cfg inferometer_portable`, which is how it is tested on Linux.

#[cfg(all(target_os = "linux", not(inferometer_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(inferometer_portable))))]
mod portable;

#[cfg(all(target_os = "linux", not(inferometer_portable)))]
pub use linux::*;
#[cfg(not(all(target_os = "linux", not(inferometer_portable))))]
pub use portable::*;

/// What one read brought.
pub(crate) struct Received {
    pub(crate) bytes: usize,
    pub(crate) stamp_realtime_ns: Option<u64>,
}
