//! Until a server has generated its first token, or it is clear that it never will.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::deployment::{
    DeploymentFailure, DeploymentHow, DeploymentSpec, DeploymentStage, LikelyCause,
};
use inferometer_model::{BaseUrl, Clock, Spec};
use inferometer_target::deploy::{Deployment, IsOver, Probe, Waited};

use super::not_up::Reason;
use crate::event::Event;
use crate::failure::Refusal;
use crate::preflight;
use crate::secrets::Secrets;
use crate::session::Session;

/// Between two words about a server that takes its time, and about one that takes long.
const SAY_EVERY: Duration = Duration::from_secs(15);
const SAY_EVERY_LATER: Duration = Duration::from_mins(1);
/// How often a signal is looked for while a server is asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A server that answers with the same refusal for so long will not think better of it.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(30);
/// One that knows no such model has read its own by then.
const MODEL_PATIENCE: Duration = Duration::from_secs(2);

/// What it said, and what it is not content with.
type Answer = (Probe, Option<Refusal>);

/// Waiting for the first token.
pub(super) struct Waiting<'a> {
    spec: &'a Spec,
    how: &'a DeploymentSpec,
    secrets: &'a Secrets,
    session: &'a Session,
    clock: SystemClock,
    said_at: Duration,
    /// What it answered last, and since when that is the same refusal.
    answer: Option<Probe>,
    refusal: Option<Refusal>,
    refused_since: Option<Duration>,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(
        spec: &'a Spec,
        how: &'a DeploymentSpec,
        secrets: &'a Secrets,
        session: &'a Session,
    ) -> Self {
        Self {
            spec,
            how,
            secrets,
            session,
            clock: SystemClock::new(),
            said_at: Duration::ZERO,
            answer: None,
            refusal: None,
            refused_since: None,
        }
    }

    pub(super) fn until_ready(mut self, deployment: &mut Deployment) -> Result<Duration, Reason> {
        let (spec, secrets, session) = (self.spec, self.secrets, self.session);
        let this = std::cell::RefCell::new(&mut self);
        let waited = deployment.wait(
            &mut |base, is_over| {
                let (probe, refusal) = ask(spec, secrets, base, session, is_over);
                this.borrow_mut().hear(&probe, refusal);
                probe
            },
            &mut |time| this.borrow_mut().pause(time),
        );
        let found = match (waited, session.interruption.exit()) {
            (Ok(Waited::Ready(after)), _) => return Ok(after),
            (Ok(Waited::Stopped), Some(exit)) => return Err(Reason::Stopped(exit)),
            (Ok(Waited::Stopped), None) => {
                deployment.failure(DeploymentStage::Generate, self.last_words())
            }
            (Err(found), _) => found,
        };
        Err(blamed(found, self.refusal))
    }

    fn last_words(&self) -> String {
        match &self.answer {
            Some(Probe::Unable(words) | Probe::NotYet(words)) => words.clone(),
            Some(Probe::Generated) | None => "it was not waited for".to_owned(),
        }
    }

    fn hear(&mut self, probe: &Probe, refusal: Option<Refusal>) {
        self.refusal = refusal;
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
            let answer = match &self.answer {
                Some(Probe::NotYet(words) | Probe::Unable(words)) => Some(words.clone()),
                Some(Probe::Generated) | None => None,
            };
            self.session.emit(Event::Waiting { waited: now, answer });
        }
        let refused_for = self.refused_since.map(|since| now.saturating_sub(since));
        let is_hopeless = match (refused_for, patience(&self.how.how, self.refusal)) {
            (Some(refused_for), Some(patience)) => patience <= refused_for,
            (None, _) | (_, None) => false,
        };
        is_hopeless || self.session.interruption.wait(time).is_some()
    }

    fn passed(&self) -> Duration {
        Duration::from_nanos(self.clock.now().as_nanos())
    }
}

/// How long the same refusal is listened to; `None` is for as long as the server is awaited at all.
fn patience(how: &DeploymentHow, refusal: Option<Refusal>) -> Option<Duration> {
    match (how, refusal) {
        // A gateway before it says all kinds of things until the server is there.
        (DeploymentHow::Commands(_), None | Some(Refusal::Model)) => None,
        (_, Some(Refusal::Model)) => Some(MODEL_PATIENCE),
        (_, None | Some(Refusal::Key)) => Some(REFUSAL_PATIENCE),
    }
}

/// With the cause that the last answer names: it is surer than what the log looks like.
fn blamed(mut found: DeploymentFailure, refusal: Option<Refusal>) -> Reason {
    let refusal = refusal.filter(|_| found.stage == DeploymentStage::Generate);
    match refusal {
        Some(Refusal::Model) => found.cause = Some(LikelyCause::NoSuchModel),
        Some(Refusal::Key) => found.cause = None,
        None => {}
    }
    Reason::Failed { found, refusal }
}

/// Asks for one token in a thread of its own, so that a signal need not wait for the answer.
fn ask(
    spec: &Spec,
    secrets: &Secrets,
    base: &BaseUrl,
    session: &Session,
    is_over: IsOver<'_>,
) -> Answer {
    let (answered, answers) = channel();
    let (spec, secrets, base) = (spec.clone(), secrets.clone(), base.clone());
    std::thread::spawn(move || {
        // Nobody hears it where a signal came first.
        let _ = answered.send(token(&spec, &secrets, &base));
    });
    loop {
        match answers.recv_timeout(LOOK_EVERY) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => {
                return (not_yet("the question could not be asked"), None);
            }
            Err(RecvTimeoutError::Timeout) if session.interruption.exit().is_some() => {
                return (not_yet("stopped"), None);
            }
            Err(RecvTimeoutError::Timeout) if is_over() => {
                return (not_yet("a request for one token was not answered"), None);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn token(spec: &Spec, secrets: &Secrets, base: &BaseUrl) -> Answer {
    match preflight::first_token(spec, secrets, base) {
        Ok(()) => (Probe::Generated, None),
        Err(failure) if failure.is_passing() => (not_yet(failure.message()), None),
        Err(failure) => (Probe::Unable(failure.message().to_owned()), failure.refusal()),
    }
}

fn not_yet(words: &str) -> Probe {
    Probe::NotYet(words.to_owned())
}

#[cfg(test)]
mod tests {
    use inferometer_model::deployment::{CommandsSpec, ProcessSpec};

    use super::*;

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
            let Reason::Failed { found, .. } = blamed(found(stage), refusal) else { panic!() };
            assert_eq!(found.cause, wanted, "{stage} {refusal:?}");
        }
    }
}
