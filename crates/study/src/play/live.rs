//! Points over the wire. A server of others is asked once what it serves, and again after each
//! restart. The embedded engine is started anew for every run, in a suite for every round. A server
//! that is deployed here is kept for as long as its spec says.

use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::Summary;
use inferometer_load::SystemClock;
use inferometer_model::deployment::{DeploymentSpec, Renewal};
use inferometer_model::spec::{TargetSpec, Workload};
use inferometer_model::study::{Condition, DeploymentRecord, StudySpec};
use inferometer_model::{Clock, Spec};
use inferometer_runner::deployed::last_lines;
use inferometer_runner::deployed::{self, Deployed};
use inferometer_runner::interruption::Interruption;
use inferometer_runner::live::{Live, Server};
use inferometer_runner::measurement::Planned;
use inferometer_runner::secrets::Secrets;
use inferometer_runner::{Failure, Session};
use inferometer_store::SetDirectory;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::{Job, server_name};

/// Between two questions to a server that is still starting.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often a running command is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Lines that are shown of a command that failed.
const LINES_SHOWN: usize = 10;

/// The server of one condition.
#[derive(Debug)]
pub struct ConditionServer {
    pub(super) secrets: Secrets,
    /// `None` until the server was asked what it serves.
    live: Option<Arc<Live>>,
    /// What it was asked with.
    spec: Option<Spec>,
}

impl ConditionServer {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, live: None, spec: None }
    }

    fn remember(&mut self, live: Option<Arc<Live>>, spec: &Spec) {
        (self.live, self.spec) = (live, Some(spec.clone()));
    }

    /// What the server has answered to another condition, where it would answer the same.
    fn answered(sides: &[Self], spec: &Spec) -> Option<Arc<Live>> {
        let alike = |side: &&Self| side.spec.as_ref().is_some_and(|other| asks_alike(other, spec));
        sides.iter().find(alike)?.live.clone()
    }
}

/// Asks all servers that are already running what they serve.
pub(super) fn probe(
    sides: &mut [ConditionServer],
    study: &StudySpec,
    talk: &dyn Fn(String),
) -> Result<(), Failure> {
    let is_suite = study.suite().is_some();
    for (place, Condition { name, spec }) in study.conditions.iter().enumerate() {
        let known = if is_suite { ConditionServer::answered(sides, spec) } else { None };
        let Some(side) = sides.get_mut(place) else { break };
        side.remember(known, spec);
        if !is_ours(spec) && side.live.is_none() {
            let server = if is_suite { server_name(spec) } else { name.clone() };
            talk(format!("asking {server} what it serves …"));
            let planned = Planned::new(spec.clone())?;
            let server = Arc::new(Server::new(spec)?);
            side.live = Some(Arc::new(Live::reach(server, &side.secrets, &planned)?));
        }
    }
    Ok(())
}

pub(super) struct LiveRunner<'session> {
    pub(super) session: &'session Session,
    /// In the order of the conditions.
    pub(super) sides: Vec<ConditionServer>,
    /// The engine that a suite keeps.
    pub(super) engine: Option<Arc<Server>>,
    pub(super) restart: Option<Restart>,
    pub(super) deployment: CurrentDeployment<'session>,
}

impl LiveRunner<'_> {
    pub(super) fn measure(&mut self, job: &Job<'_>) -> Result<Summary, Failure> {
        let planned = Planned::new(job.spec.clone())?;
        if job.needs_restart {
            self.renew(job, &planned)?;
        }
        self.deployment.provide(job, &side(&mut self.sides, job)?.secrets)?;
        let measured = self.live(job, &planned).and_then(|live| {
            let measured = live.measure(planned, job.location, self.session)?;
            Ok((live, measured.summary))
        });
        // A run whose server ended meanwhile is no result of the set.
        let stop = measured.as_ref().ok().map(|(_, summary)| summary.run.stop);
        if let Some(up) = &self.deployment.up
            && let Some(deployed) = up.server.deployed()
            && let Some(found) = deployed.lost(stop)
        {
            job.location.abandon()?;
            return Err(deployed.explain(&found, &up.log));
        }
        let (live, summary) = measured?;
        // Outside of a suite the embedded engine ends here, with its cache and its queue. A deployed
        // server is kept by its deployment alone.
        let is_kept = self.deployment.up.is_none() && (job.before.is_some() || !is_ours(&job.spec));
        side(&mut self.sides, job)?.remember(Some(live).filter(|_| is_kept), &job.spec);
        Ok(summary)
    }

    /// Provides a server that has answered nothing yet: a new engine, or one that was restarted.
    fn renew(&mut self, job: &Job<'_>, planned: &Planned) -> Result<(), Failure> {
        self.engine = None;
        let is_ours = is_ours(&job.spec);
        let restart = self.restart.clone().zip(job.location.restart_log()).filter(|_| !is_ours);
        // All scenarios of a suite have the same server.
        if is_ours || restart.is_some() && job.before.is_some() {
            self.sides.iter_mut().for_each(|side| side.live = None);
        }
        let Some((restart, log)) = restart else { return Ok(()) };
        let side = side(&mut self.sides, job)?;
        side.live = None;
        let interruption = &self.session.interruption;
        let clock = SystemClock::new();
        restart.run(&clock, job.condition, &log, interruption)?;
        loop {
            let server = Arc::new(Server::new(&job.spec)?);
            match Live::reach(server, &side.secrets, planned) {
                Ok(live) => {
                    side.remember(Some(Arc::new(live)), &job.spec);
                    return Ok(());
                }
                // A key that is refused now is refused later too.
                Err(failure) if !failure.is_passing() => return Err(failure),
                Err(failure) if restart.is_over(&clock) => {
                    return Err(failure.hint(format!(
                        "`{}` ended, and the server did not answer within {:?}; give it longer \
                         with --restart-timeout",
                        restart.command, restart.timeout
                    )));
                }
                Err(_) => {}
            }
            interruption.rest(ASK_AGAIN)?;
        }
    }

    /// The server of a point, asked what it serves.
    fn live(&mut self, job: &Job<'_>, planned: &Planned) -> Result<Arc<Live>, Failure> {
        let is_shared = job.before.is_some();
        let known = is_shared.then(|| ConditionServer::answered(&self.sides, &job.spec)).flatten();
        let side = side(&mut self.sides, job)?;
        if let Some(up) = &self.deployment.up {
            return Live::reach(Arc::clone(&up.server), &side.secrets, planned).map(Arc::new);
        }
        if let Some(live) = side.live.take().or(known) {
            return Ok(live);
        }
        let server = if let Some(engine) = self.engine.take() {
            engine
        } else {
            if is_ours(&job.spec) && job.before.as_ref().is_some_and(|it| !it.is_empty()) {
                let notice = "the engine is new: its prefix cache has nothing of stored runs";
                self.session.talk(notice);
            }
            Arc::new(Server::new(&job.spec)?)
        };
        let live = Arc::new(Live::reach(Arc::clone(&server), &side.secrets, planned)?);
        self.engine = (is_shared && is_ours(&job.spec)).then_some(server);
        Ok(live)
    }
}

fn side<'sides>(
    sides: &'sides mut [ConditionServer],
    job: &Job<'_>,
) -> Result<&'sides mut ConditionServer, Failure> {
    let side = sides.get_mut(job.point.condition as usize);
    side.ok_or_else(|| Failure::internal("a point of a server that is not listed"))
}

/// Whether the server is started for the measurement: an engine, or a deployment.
fn is_ours(spec: &Spec) -> bool {
    !matches!(spec.target, TargetSpec::Url(_))
}

/// Whether a server would answer both the same before a run: when, how much and how often it will be
/// asked makes no difference.
fn asks_alike(one: &Spec, other: &Spec) -> bool {
    let (from, to) = (&one.workload.source, &other.workload.source);
    let bare = |spec: &Spec| Spec {
        load: one.load.clone(),
        seed: 0,
        slos: Vec::new(),
        telemetry: None,
        metadata: one.metadata.clone(),
        workload: Workload { source: from.clone(), ..spec.workload.clone() },
        ..spec.clone()
    };
    from.kind() == to.kind()
        && from.chooses_output() == to.chooses_output()
        && one.workload.body.images.is_none()
        && bare(one) == bare(other)
}

/// Deploys the servers of a set. At most one is up: two would share the hardware. It is stopped when
/// this is dropped.
pub(super) struct CurrentDeployment<'session> {
    pub(super) session: &'session Session,
    pub(super) up: Option<RunningServer>,
}

pub(super) struct RunningServer {
    server: Arc<Server>,
    how: DeploymentSpec,
    condition: u32,
    repetition: u32,
    log: PathBuf,
    set: Option<SetDirectory>,
}

impl CurrentDeployment<'_> {
    /// Makes sure that the server of a point is up, if it is to be deployed.
    fn provide(&mut self, job: &Job<'_>, secrets: &Secrets) -> Result<(), Failure> {
        let TargetSpec::Deployed(how) = &job.spec.target else {
            self.stop();
            return Ok(());
        };
        let (condition, repetition) = (job.point.condition, job.point.repetition);
        let can_answer = |up: &RunningServer| {
            up.how == **how
                && match how.renewal {
                    Renewal::EachRepetition => up.repetition == repetition,
                    Renewal::EachRun => false,
                    Renewal::Never => true,
                }
        };
        if self.up.as_ref().is_some_and(can_answer) {
            return Ok(());
        }
        self.stop();
        let log = deployed::free(&job.location.deployment_log(condition, repetition));
        let deployed = match Deployed::start(&job.spec, secrets, &log, self.session) {
            Ok(deployed) => deployed,
            Err(not_up) => {
                let record = not_up.record(condition, repetition, &log);
                if let (Some(set), Some(record)) = (job.location.set(), record) {
                    self.store(set, &record);
                }
                return Err(not_up.failure(&job.spec, &log));
            }
        };
        let server = Arc::new(Server::Deployed(Box::new(deployed)));
        let (how, set) = ((**how).clone(), job.location.set().cloned());
        self.up = Some(RunningServer { server, how, condition, repetition, log, set });
        Ok(())
    }

    fn stop(&mut self) {
        let Some(up) = self.up.take() else { return };
        let Some(deployed) = up.server.deployed() else { return };
        let departure = deployed.stop(self.session);
        let Some(set) = up.set else { return };
        let record = DeploymentRecord {
            condition: up.condition,
            repetition: up.repetition,
            facts: Some(deployed.facts.clone()),
            departure,
            drained_after_s: None,
            log: deployed::name_of(&up.log),
        };
        self.store(&set, &record);
    }

    fn store(&self, set: &SetDirectory, record: &DeploymentRecord) {
        if let Err(error) = set.write_deployment(record) {
            self.session.warn(format!("the record of the deployment is not stored: {error}"));
        }
    }
}

impl Drop for CurrentDeployment<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The user's command that restarts a server between runs.
#[derive(Clone, Debug)]
pub(super) struct Restart {
    pub(super) command: String,
    /// How long the server has to answer again.
    pub(super) timeout: Duration,
}

impl Restart {
    /// Whether the time is over, by a clock that was started with the restart.
    fn is_over(&self, clock: &SystemClock) -> bool {
        self.timeout <= Duration::from_nanos(clock.now().as_nanos())
    }

    /// Runs the command to its end; its output goes to the log. A signal ends the command too, and is
    /// a failure.
    fn run(
        &self,
        clock: &SystemClock,
        condition: &Condition,
        log: &Path,
        interruption: &Interruption,
    ) -> Result<(), Failure> {
        let failed =
            |error: io::Error| Failure::usage(format!("--restart `{}`: {error}", self.command));
        let opened = OpenOptions::new().create(true).append(true).open(log);
        let mut file = opened.map_err(|error| {
            Failure::usage(format!("{}, the log of --restart: {error}", log.display()))
        })?;
        let from = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let ended = |why: String| {
            let last = last_lines(log, from, LINES_SHOWN).unwrap_or_default();
            let where_all = format!("(the whole log is in {})", log.display());
            let shown = last.into_iter().map(|line| format!("  {line}")).chain([where_all]);
            Failure::target(format!("--restart `{}` {why}", self.command)).shown(shown.collect())
        };
        let url = match &condition.spec.target {
            TargetSpec::Url(base) => base.to_string(),
            TargetSpec::Embedded | TargetSpec::Deployed(_) => String::new(),
        };
        let mut child = Command::new("sh")
            .args(["-c", &self.command])
            .env("INFEROMETER_CONDITION", &condition.name)
            .env("INFEROMETER_URL", url)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            // A group of its own: what it starts is ended with it, and Ctrl-C does not reach it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        loop {
            match child.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(ended(format!("ended with {status}"))),
                None => {}
            }
            if self.is_over(clock) {
                end(&mut child);
                return Err(ended(format!("did not end within {:?}", self.timeout)).hint(
                    "give it longer with --restart-timeout, or let it start its server in the \
                     background",
                ));
            }
            interruption.rest(LOOK_EVERY).inspect_err(|_| end(&mut child))?;
        }
    }
}

/// Ends a command with all that it started.
fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // It may have ended by itself meanwhile, which is as good.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use inferometer_model::SpecDraft;

    use super::*;

    fn run(command: &str, timeout: Duration) -> (Result<(), Failure>, String) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("restart.log");
        let url = Some("http://127.0.0.1:9".parse().unwrap());
        let spec = SpecDraft { url, ..SpecDraft::default() }.resolve().unwrap();
        let condition = Condition { name: "v1".to_owned(), spec };
        let restart = Restart { command: command.to_owned(), timeout };
        let ended = restart.run(&SystemClock::new(), &condition, &log, &Interruption::default());
        (ended, std::fs::read_to_string(&log).unwrap())
    }

    #[test]
    fn a_command_knows_its_server_and_its_words_are_kept() {
        let command = "echo \"$INFEROMETER_CONDITION $INFEROMETER_URL\"; echo oops >&2";
        let (ended, log) = run(command, Duration::from_mins(1));
        ended.unwrap();
        assert!(log.starts_with("v1 http://127.0.0.1:9") && log.ends_with("\noops\n"), "{log}");
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_an_error_with_its_last_lines() {
        let (ended, _) = run("echo one; echo two; exit 7", Duration::from_mins(1));
        let failure = format!("{:?}", ended.unwrap_err());
        assert!(failure.contains("exit status: 7") && failure.contains("  two"), "{failure}");
        let (ended, _) = run("echo waiting; sleep 1000", Duration::from_millis(300));
        let failure = format!("{:?}", ended.unwrap_err());
        assert!(failure.contains("did not end within") && failure.contains("waiting"), "{failure}");
    }
}
