//! A GPU as its data sheet has it.

use serde::Deserialize;

use super::bytes::GIB;
use crate::physics::GRAPHS_MAX;

/// One kind of GPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub name: String,
    pub title: String,
    pub vendor: Vendor,
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What the driver gives to a program.
    pub memory_gib: f64,
    /// Bytes/s.
    pub bandwidth: f64,
    pub flops: Flops,
    /// Weights in fp8 are unpacked to 16 bits where the matrix units have no such type.
    #[serde(default)]
    pub unpacks_fp8: bool,
    /// Above it no batch is captured.
    #[serde(default = "graphs_max")]
    pub graphs_max: u32,
    pub link: Link,
}

fn graphs_max() -> u32 {
    GRAPHS_MAX
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    Amd,
    Nvidia,
}

/// Dense operations per second of the matrix units, by type.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flops {
    pub fp16: f64,
    pub bf16: Option<f64>,
    pub fp8: Option<f64>,
    pub int8: Option<f64>,
}

/// How GPUs of one server reach each other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub kind: String,
    /// Bytes/s and direction, over all links of one GPU.
    pub bandwidth: f64,
    pub latency_s: f64,
    /// Neighbours with a link of their own each; none behind a switch or a bus.
    pub mesh_peers: Option<u32>,
}

impl Gpu {
    pub fn takes_fp8_weights(&self) -> bool {
        self.unpacks_fp8 || self.flops.fp8.is_some()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "memory sizes are positive and far below 2^53"
    )]
    pub fn memory_bytes(&self) -> u64 {
        (self.memory_gib * GIB) as u64
    }
}

impl Link {
    /// Bytes/s and direction that one GPU of a group of `gpus` has to the others.
    pub fn bandwidth_within(&self, gpus: u32) -> f64 {
        match self.mesh_peers {
            Some(peers) if gpus.saturating_sub(1) < peers => {
                self.bandwidth * f64::from(gpus.saturating_sub(1).max(1)) / f64::from(peers)
            }
            _ => self.bandwidth,
        }
    }
}
