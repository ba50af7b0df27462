//! Servers that this program puts up: started, awaited until they have generated a token, and taken
//! down with the proof that they are gone.

mod log;
mod not_up;
mod waiting;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use inferometer_model::deployment::{
    Departure, DeploymentFacts, DeploymentFailure, DeploymentHow, DeploymentSpec, DeploymentStage,
};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{BaseUrl, Spec};
use inferometer_target::deploy::Deployment;

pub use self::log::{free, keep_log, log_in, name_of};
pub use self::not_up::{NotUp, Reason};
use self::waiting::Waiting;
use crate::event::Event;
use crate::failure::Failure;
use crate::interruption::Companion;
use crate::secrets::Secrets;
use crate::session::Session;

/// Put up by this process so far.
static PUT_UP: AtomicU32 = AtomicU32::new(0);

/// A server of ours that has generated a token. It ends when this is dropped, if nobody took it
/// down before.
#[derive(Debug)]
pub struct Deployed {
    base: BaseUrl,
    facts: DeploymentFacts,
    log: PathBuf,
    /// `None` once it was taken down.
    deployment: Mutex<Option<Deployment>>,
    _companion: Companion,
}

impl Deployed {
    /// Puts the server of a spec up and waits for its first token. What it says goes to `log`. A
    /// server that is not up afterwards is gone, and how it went is told.
    pub fn put_up(
        spec: &Spec,
        secrets: &Secrets,
        log: &Path,
        session: &Session,
    ) -> Result<Self, Box<NotUp>> {
        let TargetSpec::Deployed(how) = &spec.target else {
            return Err(NotUp::unbegun(not_started("there is no server to put up".to_owned())));
        };
        if let Some(exit) = session.interruption.exit() {
            return Err(NotUp::unbegun(Reason::Stopped(exit)));
        }
        if let Some(folder) = log.parent() {
            std::fs::create_dir_all(folder).map_err(|error| {
                NotUp::unbegun(not_started(format!("{}: {error}", folder.display())))
            })?;
        }
        session.emit(Event::Deploying { what: how.how.words() });
        let started = Deployment::start(how, log);
        let mut deployment =
            started.map_err(|found| NotUp::unbegun(Reason::Failed { found, refusal: None }))?;
        let restarts = PUT_UP.fetch_add(1, Ordering::Relaxed);
        let companion = session.interruption.accompanied_by(deployment.group());
        let waited = Waiting::new(spec, how, secrets, session).until_ready(&mut deployment);
        let ready_after = match waited {
            Ok(ready_after) => ready_after,
            Err(reason) => {
                let departure = Some(taken_down(deployment, session));
                return Err(Box::new(NotUp { reason, departure }));
            }
        };
        session.emit(Event::Ready { after: ready_after });
        Ok(Self {
            base: deployment.base().clone(),
            facts: deployment.facts(ready_after, restarts),
            log: log.to_owned(),
            deployment: Mutex::new(Some(deployment)),
            _companion: companion,
        })
    }

    pub fn base(&self) -> &BaseUrl {
        &self.base
    }

    pub fn facts(&self) -> &DeploymentFacts {
        &self.facts
    }

    /// Where its words are.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Why it is not there any more; `None` while it is.
    fn died(&self) -> Option<DeploymentFailure> {
        self.held().as_mut()?.ended()
    }

    /// Why a run has lost it: it ended, or nobody answers there any more.
    pub fn lost(&self, stop: Option<RunStop>) -> Option<DeploymentFailure> {
        let unreachable = || {
            let what = "it is there, and cannot be reached any more".to_owned();
            (stop == Some(RunStop::Unreachable)).then(|| self.failure(DeploymentStage::Died, what))
        };
        self.died().or_else(unreachable)
    }

    pub fn last_words(&self) -> Vec<String> {
        self.failure(DeploymentStage::Measure, String::new()).log
    }

    /// A failure with what the server said last.
    pub fn failure(&self, stage: DeploymentStage, what: String) -> DeploymentFailure {
        match self.held().as_mut() {
            Some(deployment) => deployment.failure(stage, what),
            None => DeploymentFailure { stage, what, cause: None, log: Vec::new() },
        }
    }

    /// Takes it down and tells how that went; `None` where it was taken down before.
    pub fn take_down(&self, session: &Session) -> Option<Departure> {
        let deployment = self.held().take()?;
        Some(taken_down(deployment, session))
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Deployment>> {
        self.deployment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_started(what: String) -> Reason {
    let stage = DeploymentStage::Start;
    let found = DeploymentFailure { stage, what, cause: None, log: Vec::new() };
    Reason::Failed { found, refusal: None }
}

/// Stops it and says how that went; what is left behind is said to those who want quiet, too.
fn taken_down(deployment: Deployment, session: &Session) -> Departure {
    session.emit(Event::StoppingServer);
    let departure = deployment.stop();
    for line in troubles(&departure) {
        session.warn(line);
    }
    session.emit(Event::ServerStopped(departure.clone()));
    departure
}

/// What is left of it, each with what to do.
fn troubles(departure: &Departure) -> Vec<String> {
    let mut lines = departure.troubles.clone();
    if !departure.left.is_empty() {
        let mut left = "processes of the server are left, end them by hand:".to_owned();
        for (pid, name) in &departure.left {
            let _ = write!(left, " {pid} ({name})");
        }
        lines.push(left);
    }
    lines
}

/// Why the server of a measurement is of no use, with its last words and what to do.
pub fn failure(found: &DeploymentFailure, how: &DeploymentSpec, log: &Path) -> Failure {
    let mut shown: Vec<String> = found.log.iter().map(|line| format!("  {line}")).collect();
    if log.exists() {
        shown.push(format!("(all of it is in {})", log.display()));
    }
    let failure = Failure::target(format!("server {}: {}", found.stage, found.what)).shown(shown);
    let patience = how.ready_timeout;
    let is_by_commands = matches!(how.how, DeploymentHow::Commands(_));
    match (found.cause, found.stage) {
        (Some(cause), _) => failure.hint(cause.remedy()),
        (None, DeploymentStage::Ready) if is_by_commands => failure.hint(format!(
            "it was given {patience:?}; allow more with --ready-timeout, and look whether `url` \
             prints where it listens"
        )),
        (None, DeploymentStage::Ready) => failure.hint(format!(
            "it was given {patience:?}; allow more with --ready-timeout, and let it listen on {{port}}"
        )),
        (None, DeploymentStage::Generate) => {
            failure.hint("does it serve that model and API? See --model and --api")
        }
        (None, DeploymentStage::Start) if is_by_commands => failure.hint(
            "run `up` by hand to see what it needs; status 127 is a program that is not installed",
        ),
        (
            None,
            DeploymentStage::Start
            | DeploymentStage::Ended
            | DeploymentStage::Died
            | DeploymentStage::Measure
            | DeploymentStage::Stop,
        ) => failure.hint("its last words may say why; start it by hand to see more"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use inferometer_model::deployment::{CommandsSpec, DepartureEnding, LikelyCause};

    use super::*;

    #[test]
    fn a_failure_has_the_last_words_and_the_remedy_of_its_cause() {
        let how = inferometer_model::deployment::DeploymentHow::Process(
            inferometer_model::deployment::ProcessSpec { command: Vec::new(), folder: None },
        );
        let found = DeploymentFailure {
            stage: DeploymentStage::Ended,
            what: "exit status: 1".to_owned(),
            cause: Some(LikelyCause::OutOfMemory),
            log: vec!["CUDA out of memory".to_owned()],
        };
        let told = failure(&found, &DeploymentSpec::new(how), Path::new("/nonexistent/log"));
        let told = format!("{told:?}");
        for words in ["ended before it was ready: exit status: 1", "  CUDA out", "shorter context"]
        {
            assert!(told.contains(words), "{told}");
        }
        assert!(!told.contains("nonexistent"), "a log that is not there is not named: {told}");
    }

    #[test]
    fn hints_about_commands_speak_of_commands() {
        let words = || "true".to_owned();
        let (up, url, down) = (words(), words(), words());
        let how = DeploymentHow::Commands(CommandsSpec { up, url, logs: None, down });
        let how = DeploymentSpec::new(how);
        let told = |stage, cause| {
            let found = DeploymentFailure { stage, what: words(), cause, log: Vec::new() };
            format!("{:?}", failure(&found, &how, Path::new("/nonexistent/log")))
        };
        let late = told(DeploymentStage::Ready, None);
        assert!(late.contains("`url`") && !late.contains("{port}"), "{late}");
        assert!(told(DeploymentStage::Start, None).contains("run `up` by hand"));
        let unset = told(DeploymentStage::Start, Some(LikelyCause::VariableNotSet));
        assert!(unset.contains("{env:NAME} has no value here"), "{unset}");
    }

    #[test]
    fn what_a_server_left_behind_is_told() {
        let gone = Departure {
            ending: DepartureEnding::Told,
            took: Duration::from_millis(1200),
            port_closed: true,
            left: Vec::new(),
            gpu_memory: None,
            troubles: Vec::new(),
        };
        assert_eq!(troubles(&gone), Vec::<String>::new());
        let left = vec![(7, "worker".to_owned())];
        let told = troubles(&Departure { left, troubles: vec!["so".to_owned()], ..gone });
        assert!(told[0] == "so" && told[1].contains("7 (worker)"), "{told:?}");
    }
}
