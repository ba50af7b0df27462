//! What the client ran on. What is not known is `None`, never guessed.

use serde::{Deserialize, Serialize};

use crate::system::Machine;

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
}
