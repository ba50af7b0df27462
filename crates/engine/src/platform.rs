//! What differs between operating systems: the timer of the event loop, kernel stamps, the table of files.
//!
//! Linux has all of it. The portable side does without, on macOS and wherever the program is built with
//! `--cfg inferometer_portable`, which is how it is tested on Linux.

#[cfg(all(target_os = "linux", not(inferometer_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(inferometer_portable))))]
mod portable;

#[cfg(all(target_os = "linux", not(inferometer_portable)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(inferometer_portable))))]
pub(crate) use portable::*;
