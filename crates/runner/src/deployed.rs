//! Servers that this program deploys: started, awaited until they have generated a token, and stopped
//! with the proof that they are gone.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::deployment::{
    Departure, DeploymentFacts, DeploymentFailure, DeploymentHow, DeploymentSpec, DeploymentStage,
    LikelyCause,
};
use inferometer_model::fmt;
use inferometer_model::journal::RunStop;
use inferometer_model::spec::TargetSpec;
use inferometer_model::{BaseUrl, Clock, Spec};
use inferometer_target::deploy::{Deployment, IsOver, Probe, Waited};

use crate::failure::{Failure, Refusal, Result};
use crate::interruption::Companion;
use crate::measurement::Server;
use crate::preflight;
use crate::secrets::Secrets;
use crate::session::{Event, Session};

/// Servers that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A deployed server that has generated a token. It is killed when this is dropped without
/// [`Deployed::stop`].
#[derive(Debug)]
pub struct Deployed {
    /// The base URL of the server.
    pub base: BaseUrl,
    /// How it was deployed.
    pub how: DeploymentSpec,
    /// What is stored of the deployment.
    pub facts: DeploymentFacts,
    /// The file that the server's output goes to.
    pub log: PathBuf,
    /// `None` once it was stopped.
    deployment: Mutex<Option<Deployment>>,
    _companion: Companion,
}

impl Deployed {
    /// Starts the server of a spec and waits for its first token. What it prints goes to `log`.
    /// A server that does not generate is stopped.
    pub fn start(
        spec: &Spec,
        secrets: &Secrets,
        log: &Path,
        session: &Session,
    ) -> Result<Self, Box<NotDeployed>> {
        let TargetSpec::Deployed(how) = &spec.target else {
            return Err(Failure::internal("the target is not a deployment").into());
        };
        Self::start_with(how, None, log, session, |base, is_over| {
            ask(spec, secrets, base, session, is_over)
        })
    }

    /// Starts a server and waits until `ask` finds it ready; `ask` also returns what the server
    /// refused. The server listens on the port that its command names, or else on a free one.
    pub fn start_with(
        how: &DeploymentSpec,
        port: Option<u16>,
        log: &Path,
        session: &Session,
        ask: impl FnMut(&BaseUrl, IsOver<'_>) -> (Probe, Option<Refusal>),
    ) -> Result<Self, Box<NotDeployed>> {
        session.interruption.check()?;
        if let Some(folder) = log.parent() {
            std::fs::create_dir_all(folder).map_err(|error| {
                let what = format!("{}: {error}", folder.display());
                let found = failed_at(DeploymentStage::Start, what);
                NotDeployed::new(found, None, how, log)
            })?;
        }
        session.emit(Event::Deploying { what: how.how.words() });
        let mut deployment = Deployment::start_at(how, port, log)
            .map_err(|found| NotDeployed::new(found, None, how, log))?;
        let restarts = STARTED.fetch_add(1, Ordering::Relaxed);
        let companion = session.interruption.accompanied_by(deployment.group());
        let waited = until_ready(&how.how, session, &mut deployment, ask);
        let ready_after = match waited {
            Ok(ready_after) => ready_after,
            Err(reason) => {
                let departure = Some(stop(deployment, session));
                let not_deployed = match reason {
                    Ok((found, refusal)) => NotDeployed::new(found, refusal, how, log),
                    Err(interrupted) => interrupted.into(),
                };
                return Err(Box::new(NotDeployed { departure, ..*not_deployed }));
            }
        };
        session.emit(Event::Ready { after: ready_after });
        Ok(Self {
            base: deployment.base().clone(),
            how: how.clone(),
            facts: deployment.facts(ready_after, restarts),
            log: log.to_owned(),
            deployment: Mutex::new(Some(deployment)),
            _companion: companion,
        })
    }

    /// The same as a server, or the error for the user.
    pub fn server(spec: &Spec, secrets: &Secrets, log: &Path, session: &Session) -> Result<Server> {
        Self::start(spec, secrets, log, session)
            .map(|deployed| Server::Deployed(Box::new(deployed)))
            .map_err(|not_deployed| not_deployed.failure)
    }

    /// Why a run has lost it: the server ended, or it cannot be reached any more.
    pub fn lost(&self, stop: Option<RunStop>) -> Option<DeploymentFailure> {
        let ended = self.held().as_mut().and_then(Deployment::ended);
        ended.or_else(|| {
            let what = "its process runs, but it cannot be reached any more".to_owned();
            (stop == Some(RunStop::Unreachable)).then(|| self.failure(DeploymentStage::Died, what))
        })
    }

    /// The last lines that the server printed.
    pub fn last_lines(&self) -> Vec<String> {
        self.failure(DeploymentStage::Measure, String::new()).log
    }

    /// A failure with the last lines that the server printed.
    pub fn failure(&self, stage: DeploymentStage, what: String) -> DeploymentFailure {
        match self.held().as_mut() {
            Some(deployment) => deployment.failure(stage, what),
            None => failed_at(stage, what),
        }
    }

    /// The error for the user about a failure of this server, whose log is at `log`.
    pub fn explain(&self, found: &DeploymentFailure, log: &Path) -> Failure {
        explain(found, &self.how, log)
    }

    /// Stops it and returns how that went; `None` if it was stopped before.
    pub fn stop(&self, session: &Session) -> Option<Departure> {
        let deployment = self.held().take()?;
        Some(stop(deployment, session))
    }

    fn held(&self) -> MutexGuard<'_, Option<Deployment>> {
        self.deployment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops a server. What it leaves behind is a warning.
fn stop(deployment: Deployment, session: &Session) -> Departure {
    session.emit(Event::StoppingServer);
    let departure = deployment.stop();
    for line in troubles(&departure) {
        session.warn(line);
    }
    session.emit(Event::ServerStopped(departure.clone()));
    departure
}

/// What is left of a stopped server, each with what to do.
fn troubles(departure: &Departure) -> Vec<String> {
    let mut lines = departure.troubles.clone();
    if !departure.left.is_empty() {
        let left = departure.left.iter().map(|(pid, name)| format!("{pid} ({name})"));
        let left = left.collect::<Vec<_>>().join(" ");
        lines.push(format!("processes of the server are left, end them by hand: {left}"));
    }
    lines
}

/// A failure of which nothing is known but this.
pub fn failed_at(stage: DeploymentStage, what: impl Into<String>) -> DeploymentFailure {
    DeploymentFailure { stage, what: what.into(), cause: None, log: Vec::new() }
}

/// Why the server cannot be measured, with its last lines and what to do.
fn explain(found: &DeploymentFailure, how: &DeploymentSpec, log: &Path) -> Failure {
    let mut shown: Vec<String> = found.log.iter().map(|line| format!("  {line}")).collect();
    if log.exists() {
        shown.push(format!("(the whole log is in {})", log.display()));
    }
    let is_by_commands = matches!(how.how, DeploymentHow::Commands(_));
    let late = || {
        let where_it_listens = if is_by_commands {
            "check that `url` prints where it listens"
        } else {
            "let it listen on {port}"
        };
        let timeout = fmt::duration(how.ready_timeout);
        format!("it was given {timeout}; allow more with --ready-timeout, and {where_it_listens}")
    };
    let hint = match (found.cause, found.stage) {
        (Some(cause), _) => cause.remedy(),
        (None, DeploymentStage::Ready) => &late(),
        (None, DeploymentStage::Generate) => {
            "does it serve that model and API? See --model and --api"
        }
        (None, DeploymentStage::Start) if is_by_commands => {
            "run `up` by hand to see what it needs; status 127 is a program that is not installed"
        }
        (None, _) => "its last lines may say why; start it by hand to see more",
    };
    Failure::target(format!("server {}: {}", found.stage, found.what)).shown(shown).hint(hint)
}

const KEY: &str = "the server refused the key, or needs one: set its key with --api-key-file FILE or \
                   OPENAI_API_KEY";

/// A server that was to be deployed and is not running.
#[derive(Debug)]
pub struct NotDeployed {
    /// The error for the user.
    pub failure: Failure,
    /// What went wrong with the server; `None` after a signal.
    pub found: Option<DeploymentFailure>,
    /// How it was stopped; `None` if it was never started.
    pub departure: Option<Departure>,
}

impl NotDeployed {
    fn new(
        found: DeploymentFailure,
        refusal: Option<Refusal>,
        how: &DeploymentSpec,
        log: &Path,
    ) -> Box<Self> {
        let failure = explain(&found, how, log);
        let failure = if refusal == Some(Refusal::Key) { failure.hint(KEY) } else { failure };
        Box::new(Self { failure, found: Some(found), departure: None })
    }
}

impl From<Failure> for Box<NotDeployed> {
    fn from(failure: Failure) -> Self {
        Self::new(NotDeployed { failure, found: None, departure: None })
    }
}

/// Time between two events while a server is starting, and after the first minute.
const REPORT_EVERY: Duration = Duration::from_secs(15);
const REPORT_EVERY_LATER: Duration = Duration::from_mins(1);
/// How often a signal is looked for while a probe waits for its answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A server that repeats the same refusal for so long will not change its answer.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(30);

/// What the server answered last while it was starting.
#[derive(Default)]
struct LastAnswer {
    probe: Option<Probe>,
    refusal: Option<Refusal>,
    /// Since when it repeats the same refusal.
    refused_since: Option<Duration>,
}

/// The time until the first token; or a failure of the server with what it refused, or an
/// interruption.
fn until_ready(
    how: &DeploymentHow,
    session: &Session,
    deployment: &mut Deployment,
    mut ask: impl FnMut(&BaseUrl, IsOver<'_>) -> (Probe, Option<Refusal>),
) -> Result<Duration, Result<(DeploymentFailure, Option<Refusal>)>> {
    let clock = SystemClock::new();
    let passed = || Duration::from_nanos(clock.now().as_nanos());
    let last = std::cell::RefCell::new(LastAnswer::default());
    let last_words = || match &last.borrow().probe {
        Some(Probe::Unable(words) | Probe::NotYet(words)) => Some(words.clone()),
        Some(Probe::Generated) | None => None,
    };
    let mut reported_at = Duration::ZERO;
    let waited = deployment.wait(
        &mut |base, is_over| {
            let (probe, refusal) = ask(base, is_over);
            let mut last = last.borrow_mut();
            let is_same = last.probe.as_ref() == Some(&probe);
            let since = last.refused_since.filter(|_| is_same).unwrap_or_else(passed);
            let refused_since = matches!(probe, Probe::Unable(_)).then_some(since);
            *last = LastAnswer { probe: Some(probe.clone()), refusal, refused_since };
            probe
        },
        // Returns whether to stop waiting: on a signal, or when the server keeps refusing.
        &mut |time| {
            let now = passed();
            let every = if now < REPORT_EVERY_LATER { REPORT_EVERY } else { REPORT_EVERY_LATER };
            if every <= now.saturating_sub(reported_at) {
                reported_at = now;
                session.emit(Event::Waiting { waited: now, answer: last_words() });
            }
            let LastAnswer { refusal, refused_since, .. } = *last.borrow();
            let refused_for = refused_since.map(|since| now.saturating_sub(since));
            let is_over = |(time, most): (Duration, Duration)| most <= time;
            refused_for.zip(patience(how, refusal)).is_some_and(is_over)
                || session.interruption.wait(time).is_some()
        },
    );
    let found = match (waited, session.interruption.exit()) {
        (Ok(Waited::Ready(after)), _) => return Ok(after),
        (Ok(Waited::Stopped), Some(exit)) => return Err(Err(Failure::interrupted(exit))),
        (Ok(Waited::Stopped), None) => {
            let answer = last_words().unwrap_or_else(|| "it did not answer".to_owned());
            deployment.failure(DeploymentStage::Generate, answer)
        }
        (Err(found), _) => found,
    };
    Err(Ok(blamed(found, last.into_inner().refusal)))
}

/// How long the same refusal is accepted; `None` is until --ready-timeout.
fn patience(how: &DeploymentHow, refusal: Option<Refusal>) -> Option<Duration> {
    match (how, refusal) {
        // A gateway may answer anything until the server behind it is ready.
        (DeploymentHow::Commands(_), None | Some(Refusal::Model)) => None,
        // A server that does not know the model has loaded its own by then.
        (_, Some(Refusal::Model)) => Some(Duration::from_secs(2)),
        (_, None | Some(Refusal::Key)) => Some(REFUSAL_PATIENCE),
    }
}

/// Adds the cause that the last answer names: it is more certain than what the log looks like.
fn blamed(
    mut found: DeploymentFailure,
    refusal: Option<Refusal>,
) -> (DeploymentFailure, Option<Refusal>) {
    let refusal = refusal.filter(|_| found.stage == DeploymentStage::Generate);
    match refusal {
        Some(Refusal::Model) => found.cause = Some(LikelyCause::NoSuchModel),
        Some(Refusal::Key) => found.cause = None,
        None => {}
    }
    (found, refusal)
}

/// Requests one token on another thread, so that a signal need not wait for the answer. Returns the
/// answer, and what the server refused.
fn ask(
    spec: &Spec,
    secrets: &Secrets,
    base: &BaseUrl,
    session: &Session,
    is_over: IsOver<'_>,
) -> (Probe, Option<Refusal>) {
    let not_yet = |words: &str| (Probe::NotYet(words.to_owned()), None);
    let (answered, answers) = channel();
    let (spec, secrets, base) = (spec.clone(), secrets.clone(), base.clone());
    std::thread::spawn(move || {
        let answer = match preflight::first_token(&spec, &secrets, &base) {
            Ok(()) => (Probe::Generated, None),
            Err(failure) if failure.is_passing() => {
                (Probe::NotYet(failure.message().to_owned()), None)
            }
            Err(failure) => (Probe::Unable(failure.message().to_owned()), failure.refusal),
        };
        // A signal may have ended the waiting.
        let _ = answered.send(answer);
    });
    loop {
        match answers.recv_timeout(LOOK_EVERY) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => return not_yet("the probe could not be sent"),
            Err(RecvTimeoutError::Timeout) if session.interruption.exit().is_some() => {
                return not_yet("stopped");
            }
            Err(RecvTimeoutError::Timeout) if is_over() => {
                return not_yet("a request for one token was not answered");
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The log of a server until there is a run to store it with. The file is created here, so that no
/// other process takes the same name.
pub fn log_in(folder: &Path) -> PathBuf {
    let first = folder.join(format!("server-{}.log", std::process::id()));
    // Where it cannot be made, the server is not started, with the reason.
    let _ = std::fs::create_dir_all(folder);
    let is_taken = |path: &PathBuf| {
        File::create_new(path).is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    };
    names(&first).find(|path| !is_taken(path)).unwrap_or(first)
}

/// The same path, or the next one that does not exist.
pub fn free(log: &Path) -> PathBuf {
    names(log).find(|path| !path.exists()).unwrap_or_else(|| log.to_owned())
}

fn names(log: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let first = log.to_owned();
    let numbered = move |number: u32| first.with_extension(format!("{number}.log"));
    // Names that are tried for a log before an old one is written over.
    std::iter::once(log.to_owned()).chain((1..10_000).map(numbered))
}

/// Moves the log of a server beside its run, and returns its path. The server may go on writing.
pub fn keep_log(log: &Path, run: &Path) -> PathBuf {
    let kept = run.join("server.log");
    match std::fs::rename(log, &kept) {
        Ok(()) => kept,
        // It was moved before.
        Err(_) if kept.exists() => kept,
        Err(_) => log.to_owned(),
    }
}

const BYTES_SHOWN: u64 = 16 << 10;

/// At most so many lines of a log, of what was written from this byte on.
pub fn last_lines(log: &Path, from: u64, count: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(log)?;
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(BYTES_SHOWN))))?;
    let mut bytes = Vec::new();
    file.take(BYTES_SHOWN).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    Ok(lines[lines.len().saturating_sub(count)..].to_vec())
}

#[cfg(test)]
mod tests {
    use inferometer_model::deployment::{CommandsSpec, DepartureEnding, ProcessSpec};

    use super::*;

    #[test]
    fn a_failure_has_the_last_lines_and_the_remedy_of_its_cause() {
        let process = ProcessSpec { command: Vec::new(), folder: None };
        let how = DeploymentHow::Process(process);
        let found = DeploymentFailure {
            stage: DeploymentStage::Ended,
            what: "exit status: 1".to_owned(),
            cause: Some(LikelyCause::OutOfMemory),
            log: vec!["CUDA out of memory".to_owned()],
        };
        let told = explain(&found, &DeploymentSpec::new(how), Path::new("/nonexistent/log"));
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
            format!("{:?}", explain(&found, &how, Path::new("/nonexistent/log")))
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
            ending: DepartureEnding::OnRequest,
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

    #[test]
    fn who_is_refused_for_a_key_is_not_asked_for_the_model() {
        let process = ProcessSpec { command: Vec::new(), folder: None };
        let how = DeploymentSpec::new(DeploymentHow::Process(process));
        let told = |refusal| {
            let found = failed_at(DeploymentStage::Generate, "HTTP 401");
            let not_up = NotDeployed::new(found, refusal, &how, Path::new("/nonexistent/log"));
            format!("{:?}", not_up.failure)
        };
        assert!(told(Some(Refusal::Key)).contains("--api-key-file"));
        assert!(!told(Some(Refusal::Key)).contains("does it serve that model"));
        assert!(told(None).contains("does it serve that model"));
    }

    #[test]
    fn a_gateway_is_given_all_the_time_and_a_wrong_name_hardly_any() {
        let process = DeploymentHow::Process(ProcessSpec { command: Vec::new(), folder: None });
        let word = String::new;
        let commands = DeploymentHow::Commands(CommandsSpec {
            up: word(),
            url: word(),
            logs: None,
            down: word(),
        });
        assert_eq!(patience(&commands, None), None);
        assert_eq!(patience(&commands, Some(Refusal::Model)), None);
        assert_eq!(patience(&commands, Some(Refusal::Key)), Some(REFUSAL_PATIENCE));
        assert_eq!(patience(&process, None), Some(REFUSAL_PATIENCE));
        assert!(patience(&process, Some(Refusal::Model)) < Some(REFUSAL_PATIENCE));
    }

    #[test]
    fn the_answer_names_the_cause_before_the_log_does() {
        let found = |stage| DeploymentFailure {
            stage,
            what: "it said no".to_owned(),
            cause: Some(LikelyCause::Permission),
            log: Vec::new(),
        };
        for (stage, refusal, wanted) in [
            (DeploymentStage::Generate, Some(Refusal::Model), Some(LikelyCause::NoSuchModel)),
            (DeploymentStage::Generate, Some(Refusal::Key), None),
            (DeploymentStage::Generate, None, Some(LikelyCause::Permission)),
            (DeploymentStage::Ended, Some(Refusal::Key), Some(LikelyCause::Permission)),
        ] {
            let (found, _) = blamed(found(stage), refusal);
            assert_eq!(found.cause, wanted, "{stage} {refusal:?}");
        }
    }

    #[test]
    fn no_two_servers_of_a_store_share_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (log_in(folder.path()), log_in(folder.path()));
        assert_ne!(one, other);
        assert!(one.exists() && other.exists(), "nobody else takes them");
        std::fs::write(&one, "words").unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let kept = keep_log(&one, &run);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "words");
        assert_eq!(keep_log(&one, &run), kept, "it is found where it was put before");
    }
}
