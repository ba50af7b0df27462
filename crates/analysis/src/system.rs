//! What a run ran on, as the summary repeats it: the client's machine and the server's, apart.

use inferometer_model::Observations;
use inferometer_model::system::{Machine, ServerFacts};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemFacts {
    /// Null in runs of versions that did not look.
    pub client: Option<Machine>,
    /// Null where nothing is known of it.
    pub server: Option<ServerFacts>,
}

impl SystemFacts {
    pub(crate) fn of(observations: &Observations) -> Self {
        let manifest = &observations.manifest;
        Self { client: manifest.environment.machine.clone(), server: manifest.server.clone() }
    }

    /// GPUs that answer together, where that is known.
    pub fn gpus_used(&self) -> Option<u32> {
        self.server.as_ref()?.gpus_used
    }
}
