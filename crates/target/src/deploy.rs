//! Servers that are put up for a measurement and taken down after it, whatever happens meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use inferometer_model::BaseUrl;
use inferometer_model::deployment::{
    Departure, DeploymentFacts, DeploymentFailure, DeploymentSpec, DeploymentStage,
};

/// A server that we have put up. It is taken down when this is dropped, if nobody did before.
#[derive(Debug)]
pub struct Deployment {
    base: BaseUrl,
    log: PathBuf,
}

/// What a server answered to a request for one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It generated one.
    Generated,
    /// Nobody answers yet, or it says that it is not ready.
    NotYet(String),
    /// It answers, and cannot generate, in these words.
    Unable(String),
}

/// How waiting for a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It has generated a token, this long after its start.
    Ready(Duration),
    /// Somebody asked us to stop.
    Stopped,
}

impl Deployment {
    /// Puts it up and returns at once. What it says goes to `log`, bounded: its beginning and its
    /// end.
    pub fn start(_spec: &DeploymentSpec, _log: &Path) -> Result<Self, DeploymentFailure> {
        Err(DeploymentFailure {
            stage: DeploymentStage::Start,
            what: "deployments are not built yet".to_owned(),
            cause: None,
            log: Vec::new(),
        })
    }

    /// Asks again and again until it has generated a token. `pause` lets time pass and says whether
    /// to stop. Nothing that listens there but is not ours is ever asked.
    pub fn wait(
        &mut self,
        _probe: &mut dyn FnMut(&BaseUrl) -> Probe,
        _pause: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Waited, DeploymentFailure> {
        Ok(Waited::Stopped)
    }

    pub fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// The process group that it leads, where it is one of this machine.
    pub fn group(&self) -> Option<i32> {
        None
    }

    /// Why it is not there any more; `None` while it is.
    pub fn ended(&mut self) -> Option<DeploymentFailure> {
        None
    }

    /// A failure with what it said last and what that looks like.
    pub fn failure(&self, stage: DeploymentStage, what: String) -> DeploymentFailure {
        let _ = &self.log;
        DeploymentFailure { stage, what, cause: None, log: Vec::new() }
    }

    pub fn facts(&self, ready_after: Duration, restarts: u32) -> DeploymentFacts {
        DeploymentFacts {
            kind: String::new(),
            command: Vec::new(),
            image: None,
            environment: Vec::new(),
            ready_after,
            restarts,
        }
    }

    /// Takes it down and proves that it is gone.
    pub fn stop(self) -> Departure {
        unimplemented!("deployments are not built yet")
    }
}
