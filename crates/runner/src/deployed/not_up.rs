//! A server that was to be put up and is not: why, and how it went.

use std::path::Path;

use inferometer_model::campaign::DeploymentRecord;
use inferometer_model::deployment::{Departure, DeploymentFailure, DeploymentSpec};

use super::log;
use crate::failure::{Exit, Failure, Refusal};

const KEY: &str = "it refuses the key that was sent, or wants one: give the server's own with \
                   --api-key-file FILE or OPENAI_API_KEY";

#[derive(Debug)]
pub struct NotUp {
    pub reason: Reason,
    /// How it went; `None` where nothing was started.
    pub departure: Option<Departure>,
}

#[derive(Debug)]
pub enum Reason {
    /// By a signal.
    Stopped(Exit),
    Failed {
        found: DeploymentFailure,
        /// What it answered last, where it answered.
        refusal: Option<Refusal>,
    },
}

impl NotUp {
    pub(super) fn unbegun(reason: Reason) -> Box<Self> {
        Box::new(Self { reason, departure: None })
    }

    /// What is kept of it in a set; `None` where nothing was started.
    pub fn record(&self, condition: u32, repetition: u32, log: &Path) -> Option<DeploymentRecord> {
        let departure = Some(self.departure.clone()?);
        let log = log::name_of(log);
        Some(DeploymentRecord {
            condition,
            repetition,
            facts: None,
            departure,
            drained_after_s: None,
            log,
        })
    }

    /// What to tell the user.
    pub fn failure(self, how: &DeploymentSpec, log: &Path) -> Failure {
        match self.reason {
            Reason::Stopped(exit) => Failure::interrupted(exit),
            Reason::Failed { found, refusal } => {
                let failure = super::failure(&found, how, log);
                let is_of_key = refusal == Some(Refusal::Key);
                if is_of_key { failure.hint(KEY) } else { failure }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::deployment::{DeploymentHow, DeploymentStage, ProcessSpec};

    use super::*;

    #[test]
    fn who_is_refused_for_a_key_is_not_asked_for_the_model() {
        let process = ProcessSpec { command: Vec::new(), folder: None };
        let how = DeploymentSpec::new(DeploymentHow::Process(process));
        let told = |refusal| {
            let what = "HTTP 401".to_owned();
            let stage = DeploymentStage::Generate;
            let found = DeploymentFailure { stage, what, cause: None, log: Vec::new() };
            let not_up = NotUp { reason: Reason::Failed { found, refusal }, departure: None };
            format!("{:?}", not_up.failure(&how, Path::new("/nonexistent/log")))
        };
        assert!(told(Some(Refusal::Key)).contains("--api-key-file"));
        assert!(!told(Some(Refusal::Key)).contains("does it serve that model"));
        assert!(told(None).contains("does it serve that model"));
    }
}
