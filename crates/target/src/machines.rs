//! What machines do while a run goes on: the GPUs, by whoever can tell, and the client's own
//! processors and network.
//!
//! `reading` is what the readers have in common; `nvml`, `nvidia`, `amd` and `dcgm` are the readers;
//! `client` reads the kernel's files; `sampler` asks them all again and again.

mod amd;
mod client;
mod dcgm;
mod eyes;
mod nvidia;
#[cfg(feature = "nvml")]
mod nvml;
mod reading;
mod sampler;

pub use self::eyes::Opening;
pub use self::sampler::{Devices, Sampler, SamplerError, Sampling};
