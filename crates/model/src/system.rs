//! What a machine is, and what runs on it. What is not known is `None`, never guessed.

use serde::{Deserialize, Serialize};

use crate::deployment::DeploymentFacts;

/// What the client ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub tool_version: String,
    pub os: String,
    pub kernel: Option<String>,
    pub architecture: String,
    pub cpu_model: Option<String>,
    pub cpus: Option<u32>,
    /// Proxy variables that were set. We never use them; a user may think we did.
    pub proxy_variables: Vec<String>,
    /// The client's machine; `None` in runs of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The command that was typed, without secrets; `None` where a program used the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A machine, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// As the distribution calls itself.
    pub os: Option<String>,
    pub kernel: Option<String>,
    pub architecture: Option<String>,
    pub cpu_model: Option<String>,
    /// Hardware threads.
    pub cpus: Option<u32>,
    pub memory_bytes: Option<u64>,
    /// Whether it is the inside of a container, and of which kind.
    pub container: Option<String>,
    /// In the order of their numbers; empty where none were found.
    pub gpus: Vec<Gpu>,
    /// Version of the GPU driver, such as `570.86.15`.
    pub gpu_driver: Option<String>,
    /// Such as `CUDA 12.8` or `ROCm 7.1.0`.
    pub gpu_runtime: Option<String>,
    /// How the GPUs reach each other, such as `NVLink` or `xGMI`.
    pub interconnect: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    pub name: String,
    /// Such as `gfx908` or `sm_90`.
    pub architecture: Option<String>,
    pub memory_bytes: Option<u64>,
    pub power_limit_w: Option<f64>,
}

/// The server that was measured, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Such as `vLLM`.
    pub software: Option<String>,
    pub version: Option<String>,
    pub start_command: Option<String>,
    pub model_revision: Option<String>,
    /// Tokens that a prompt and its answer may have together.
    pub context_tokens: Option<u64>,
    pub machine: Option<Machine>,
    /// How the machine is known.
    pub known_by: Option<KnownBy>,
    /// What the embedded engine pretends to run on.
    pub pretended: Option<String>,
    /// GPUs that the model is spread over; `None` where it is not reported.
    pub gpus_used: Option<u32>,
    /// The numbers of its processes when the run began, where they are seen on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<u32>,
    /// How it was deployed, where this program deployed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentFacts>,
    /// Anything else that was reported, by its name.
    #[serde(rename = "told", default, skip_serializing_if = "Vec::is_empty")]
    pub other: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// It is the client's own.
    Loopback,
    /// By `--server-info`.
    #[serde(rename = "told")]
    ServerInfo,
}
