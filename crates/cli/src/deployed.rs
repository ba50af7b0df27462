//! Servers that this program puts up: started, awaited until they have generated a token, and taken
//! down with the proof that they are gone.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::deployment::{
    Departure, DepartureEnding, DeploymentFacts, DeploymentFailure, DeploymentHow, DeploymentSpec,
    DeploymentStage,
};
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{BaseUrl, Clock, Spec};
use inferometer_report::escape::terminal;
use inferometer_target::deploy::{Deployment, IsOver, Probe, Waited};

use crate::failure::{Exit, Failure};
use crate::live::Session;
use crate::preflight;
use crate::secrets::Secrets;
use crate::signals::Companion;

/// Between two words about a server that takes its time, and about one that takes long.
const SAY_EVERY: Duration = Duration::from_secs(15);
const SAY_EVERY_LATER: Duration = Duration::from_mins(1);
/// How often a signal is looked for while a server is asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A server that answers with the same refusal for so long will not think better of it.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(30);

/// Names that are tried for a log before an old one is written over.
const LOGS_MAX: u32 = 10_000;

/// Put up by this process so far.
static PUT_UP: AtomicU32 = AtomicU32::new(0);

/// A server of ours that has generated a token. It ends when this is dropped, if nobody took it
/// down before.
#[derive(Debug)]
pub(crate) struct Deployed {
    base: BaseUrl,
    facts: DeploymentFacts,
    /// `None` once it was taken down.
    deployment: Mutex<Option<Deployment>>,
    _companion: Companion,
}

impl Deployed {
    /// Puts the server of a spec up and waits for its first token. What it says goes to `log`.
    /// `Err` inside is the signal that came first; the server is gone then.
    pub(crate) fn put_up(
        spec: &Spec,
        secrets: &Secrets,
        log: &Path,
        session: &Session,
    ) -> Result<Result<Self, Exit>, DeploymentFailure> {
        let TargetSpec::Deployed(how) = &spec.target else {
            return Err(not_started("there is no server to put up".to_owned()));
        };
        if let Some(exit) = session.interruption.exit() {
            return Ok(Err(exit));
        }
        if let Some(folder) = log.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| not_started(format!("{}: {error}", folder.display())))?;
        }
        session.talk(&format!("putting up {} …", terminal(&how.how.words())));
        let mut deployment = Deployment::start(how, log)?;
        let restarts = PUT_UP.fetch_add(1, Ordering::Relaxed);
        let companion = session.interruption.accompanied_by(deployment.group());
        let mut waiting = Waiting::new(spec, secrets, session);
        let ready_after = match waiting.until_ready(&mut deployment)? {
            Ok(ready_after) => ready_after,
            Err(exit) => {
                session.talk("taking the server down …");
                deployment.stop();
                return Ok(Err(exit));
            }
        };
        session.talk(&format!("it generates, {:.1} s after its start", ready_after.as_secs_f64()));
        Ok(Ok(Self {
            base: deployment.base().clone(),
            facts: deployment.facts(ready_after, restarts),
            deployment: Mutex::new(Some(deployment)),
            _companion: companion,
        }))
    }

    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    pub(crate) fn facts(&self) -> &DeploymentFacts {
        &self.facts
    }

    /// Why it is not there any more; `None` while it is.
    fn died(&self) -> Option<DeploymentFailure> {
        self.held().as_mut()?.ended()
    }

    /// Why a run has lost it: it ended, or nobody answers there any more.
    pub(crate) fn lost(&self, stop: Option<RunStop>) -> Option<DeploymentFailure> {
        let unreachable = || {
            let what = "it is there, and cannot be reached any more".to_owned();
            (stop == Some(RunStop::Unreachable)).then(|| self.failure(DeploymentStage::Died, what))
        };
        self.died().or_else(unreachable)
    }

    pub(crate) fn last_words(&self) -> Vec<String> {
        self.failure(DeploymentStage::Measure, String::new()).log
    }

    /// A failure with what the server said last.
    pub(crate) fn failure(&self, stage: DeploymentStage, what: String) -> DeploymentFailure {
        match self.held().as_mut() {
            Some(deployment) => deployment.failure(stage, what),
            None => DeploymentFailure { stage, what, cause: None, log: Vec::new() },
        }
    }

    /// Takes it down and tells how that went; `None` where it was taken down before.
    pub(crate) fn take_down(&self, session: &Session) -> Option<Departure> {
        let deployment = self.held().take()?;
        session.talk("taking the server down …");
        let departure = deployment.stop();
        for line in troubles(&departure) {
            crate::output::talk(&terminal(&format!("warning: {line}")));
        }
        session.talk(&farewell(&departure));
        Some(departure)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Deployment>> {
        self.deployment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_started(what: String) -> DeploymentFailure {
    DeploymentFailure { stage: DeploymentStage::Start, what, cause: None, log: Vec::new() }
}

/// How a server went, in one line.
fn farewell(departure: &Departure) -> String {
    let how = match departure.ending {
        DepartureEnding::Before => "it had gone by itself",
        DepartureEnding::Told => "it went when it was told",
        DepartureEnding::Killed => "it had to be killed",
    };
    format!("{how}, {:.1} s", departure.took.as_secs_f64())
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

/// Waiting for the first token.
struct Waiting<'a> {
    spec: &'a Spec,
    secrets: &'a Secrets,
    session: &'a Session,
    clock: SystemClock,
    said_at: Duration,
    /// What it answered last, and since when that is the same refusal.
    answer: Option<Probe>,
    refused_since: Option<Duration>,
}

impl<'a> Waiting<'a> {
    fn new(spec: &'a Spec, secrets: &'a Secrets, session: &'a Session) -> Self {
        let (clock, said_at) = (SystemClock::new(), Duration::ZERO);
        Self { spec, secrets, session, clock, said_at, answer: None, refused_since: None }
    }

    fn until_ready(
        &mut self,
        deployment: &mut Deployment,
    ) -> Result<Result<Duration, Exit>, DeploymentFailure> {
        let (spec, secrets, session) = (self.spec, self.secrets, self.session);
        let this = std::cell::RefCell::new(&mut *self);
        let waited = deployment.wait(
            &mut |base, is_over| {
                let probe = ask(spec, secrets, base, session, is_over);
                this.borrow_mut().hear(&probe);
                probe
            },
            &mut |time| this.borrow_mut().pause(time),
        )?;
        match (waited, self.session.interruption.exit()) {
            (Waited::Ready(after), _) => Ok(Ok(after)),
            (Waited::Stopped, Some(exit)) => Ok(Err(exit)),
            (Waited::Stopped, None) => {
                let words = match self.answer.take() {
                    Some(Probe::Unable(words) | Probe::NotYet(words)) => words,
                    Some(Probe::Generated) | None => "it was not waited for".to_owned(),
                };
                Err(deployment.failure(DeploymentStage::Generate, words))
            }
        }
    }

    fn hear(&mut self, probe: &Probe) {
        let is_same = self.answer.as_ref() == Some(probe);
        let now = self.passed();
        self.refused_since = match probe {
            Probe::Unable(_) => self.refused_since.filter(|_| is_same).or(Some(now)),
            Probe::Generated | Probe::NotYet(_) => None,
        };
        self.answer = Some(probe.clone());
    }

    /// Whether to stop waiting: a signal came, or the server refuses for good.
    fn pause(&mut self, time: Duration) -> bool {
        let now = self.passed();
        let every = if now < SAY_EVERY_LATER { SAY_EVERY } else { SAY_EVERY_LATER };
        if every <= now.saturating_sub(self.said_at) {
            self.said_at = now;
            let words = match &self.answer {
                Some(Probe::NotYet(words) | Probe::Unable(words)) => words.as_str(),
                Some(Probe::Generated) | None => "nobody answers yet",
            };
            let waited = now.as_secs();
            self.session.talk(&format!("waiting for the server, {waited} s: {}", terminal(words)));
        }
        let is_hopeless =
            self.refused_since.is_some_and(|since| REFUSAL_PATIENCE <= now.saturating_sub(since));
        is_hopeless || self.session.interruption.wait(time).is_some()
    }

    fn passed(&self) -> Duration {
        Duration::from_nanos(self.clock.now().as_nanos())
    }
}

/// Asks for one token in a thread of its own, so that a signal need not wait for the answer.
fn ask(
    spec: &Spec,
    secrets: &Secrets,
    base: &BaseUrl,
    session: &Session,
    is_over: IsOver<'_>,
) -> Probe {
    let (answered, answers) = channel();
    let (spec, secrets, base) = (spec.clone(), secrets.clone(), base.clone());
    std::thread::spawn(move || {
        // Nobody hears it where a signal came first.
        let _ = answered.send(token(&spec, &secrets, &base));
    });
    loop {
        match answers.recv_timeout(LOOK_EVERY) {
            Ok(probe) => return probe,
            Err(RecvTimeoutError::Disconnected) => {
                return Probe::NotYet("the question could not be asked".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if session.interruption.exit().is_some() => {
                return Probe::NotYet("stopped".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if is_over() => {
                return Probe::NotYet("a request for one token was not answered".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn token(spec: &Spec, secrets: &Secrets, base: &BaseUrl) -> Probe {
    match preflight::first_token(spec, secrets, base) {
        Ok(()) => Probe::Generated,
        Err(failure) if failure.is_passing() => Probe::NotYet(failure.message().to_owned()),
        Err(failure) => Probe::Unable(failure.message().to_owned()),
    }
}

/// Where a server's words go until there is a run to keep them with.
pub(crate) fn log_in(folder: &Path) -> PathBuf {
    free(&folder.join("server.log"))
}

/// The same path, or the next one that nobody has written to.
pub(crate) fn free(log: &Path) -> PathBuf {
    let numbered = |number: u32| log.with_extension(format!("{number}.log"));
    let mut names = std::iter::once(log.to_owned()).chain((1..LOGS_MAX).map(numbered));
    names.find(|path| !path.exists()).unwrap_or_else(|| log.to_owned())
}

/// Puts the words of a server beside its run, and says where they are.
pub(crate) fn keep_log(log: &Path, run: &Path) -> PathBuf {
    let kept = run.join("server.log");
    match std::fs::rename(log, &kept) {
        Ok(()) => kept,
        Err(_) => log.to_owned(),
    }
}

/// Why the server of a measurement is of no use, with its last words and what to do.
pub(crate) fn failure(found: &DeploymentFailure, how: &DeploymentSpec, log: &Path) -> Failure {
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
    use inferometer_model::deployment::{CommandsSpec, LikelyCause};

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
        assert_eq!(farewell(&gone), "it went when it was told, 1.2 s");
        let left = vec![(7, "worker".to_owned())];
        let told = troubles(&Departure { left, troubles: vec!["so".to_owned()], ..gone });
        assert!(told[0] == "so" && told[1].contains("7 (worker)"), "{told:?}");
    }
}
