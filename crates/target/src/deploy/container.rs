//! A server in a container of docker or podman. Its engine runs in the foreground as a process of
//! ours, so that what the server prints comes through our pipes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use inferometer_model::deployment::{ContainerSpec, DepartureEnding};
use inferometer_model::{BaseUrl, Redactor};

use super::placeholder::FillError;
use super::process::{Exit, Process, until};
use super::{
    Presence, Server, StartContext, StartError, StartedServer, Stopped, not_started, secret,
};
use crate::system::tool::{ToolError, output};

/// For an engine to answer, beyond what it waits for itself.
const ANSWER: Duration = Duration::from_secs(20);
/// For the engine's own process to end when its container is gone.
const CLIENT_GRACE: Duration = Duration::from_secs(5);
/// As shells count a process that was killed: 128 and the number of SIGKILL.
const KILLED: i32 = 137;

#[derive(Debug)]
pub(super) struct Container {
    client: Process,
    engine: String,
    /// As it may be shown.
    engine_shown: String,
    name: String,
    /// The engine has reported it once: when it runs no more its client ends.
    is_running: bool,
    asked_image: String,
    /// Strikes out what variables put into the name of the image.
    redactor: Redactor,
    /// By its digest, when the engine has reported it.
    image: Option<String>,
    variables: BTreeMap<String, OsString>,
}

impl StartContext<'_> {
    pub(super) fn container(
        &self,
        how: &ContainerSpec,
        log: &Path,
    ) -> Result<StartedServer, StartError> {
        let fill = |word: &String| self.start.fill(word);
        let all = |words: &[String]| words.iter().map(fill).collect::<Result<Vec<_>, FillError>>();
        let engine = fill(&how.engine)?;
        let image = fill(&how.image)?;
        let words = [
            self.run_words(&engine, how, false),
            all(&how.options)?,
            vec![image.clone()],
            all(&how.arguments)?,
        ]
        .concat();
        let engine_shown = self.start.redact(&how.engine);
        let shown = |words: &[String]| words.iter().map(|word| self.start.redact(word)).collect();
        let shown: Vec<String> = [
            self.run_words(&engine_shown, how, true),
            shown(&how.options),
            vec![self.start.redact(&how.image)],
            shown(&how.arguments),
        ]
        .concat();
        let single = [&how.engine, &how.image];
        let named = single.into_iter().chain(&how.options).chain(&how.arguments);
        let named: Vec<String> = named.cloned().collect();
        let (log, writer) = self.log(log, &named)?;
        // What the engine itself finds: values that are set for the server, such as another `PATH`,
        // are not for it.
        let mut variables = self.environment.always.clone();
        variables.extend(self.environment.passed.clone());
        let keys = self.environment.set.iter().filter(|(_, (value, shown))| value != shown);
        variables.extend(keys.map(|(name, (value, _))| (name.clone(), OsString::from(value))));
        let name = self.start.name.clone();
        let farewell = [&engine, "rm", "-f", &name].map(str::to_owned);
        let client = Process::start(&words, &variables, writer, self.spawned(&farewell))
            .map_err(|error| not_started(&shown, error))?;
        let container = Container {
            client,
            engine,
            engine_shown,
            name,
            is_running: false,
            asked_image: image,
            redactor: Redactor::new(&self.start.keys(&how.image)),
            image: None,
            variables,
        };
        Ok(StartedServer {
            server: Box::new(container),
            log,
            command: secret::hidden(&shown),
            environment: self.environment.named(),
        })
    }

    /// Up to the user's own options. Values of keys are in the environment of the engine, not among
    /// its words.
    fn run_words(&self, engine: &str, how: &ContainerSpec, is_shown: bool) -> Vec<String> {
        let mut words =
            [engine, "run", "--rm", "--name", &self.start.name].map(str::to_owned).to_vec();
        if !is_on_host_network(&how.options) {
            let published = format!("127.0.0.1:{}:{}", self.start.port, how.port);
            words.extend(["--publish".to_owned(), published]);
        }
        for name in self.environment.passed.keys() {
            words.extend(["--env".to_owned(), name.clone()]);
        }
        for (name, (value, shown)) in &self.environment.set {
            let variable = match (value == shown, is_shown) {
                (true, _) | (false, true) => format!("{name}={shown}"),
                (false, false) => name.clone(),
            };
            words.extend(["--env".to_owned(), variable]);
        }
        words
    }
}

/// Where nothing is published: the server listens on the machine itself, at `{port}`.
fn is_on_host_network(options: &[String]) -> bool {
    let is_one = |word: &String| matches!(word.as_str(), "--network=host" | "--net=host");
    let are_two = |pair: &[String]| matches!(pair, [flag, value] if (flag == "--network" || flag == "--net") && value == "host");
    options.iter().any(is_one) || options.windows(2).any(are_two)
}

impl Server for Container {
    fn ended(&self) -> Option<Exit> {
        self.client.ended()
    }

    fn group(&self) -> Option<i32> {
        self.client.group()
    }

    fn image(&self) -> Option<String> {
        self.image.clone()
    }

    /// The digest, which is known when the image is there; an image that was built here has only an
    /// identity.
    fn look_around(&mut self) {
        let asked = |format: &str| {
            self.ask(&["image", "inspect", "--format", format, &self.asked_image], ANSWER)
                .ok()
                .map(|answer| answer.trim().to_owned())
                .filter(|answer| !answer.is_empty())
        };
        let image = asked("{{index .RepoDigests 0}}").or_else(|| asked("{{.Id}}"));
        self.image = image.map(|image| self.redactor.redact(&image));
    }

    /// Its port was free before, and an engine that cannot have the port ends. But while
    /// an image is pulled another process may listen there.
    fn presence(&mut self, _base: &mut BaseUrl, within: Duration) -> Presence {
        if self.is_running {
            return Presence::Ready;
        }
        let asked = ["inspect", "--format", "{{.State.Running}}", &self.name];
        match self.ask(&asked, ANSWER.min(within)) {
            Ok(answer) if answer.trim() == "true" => {
                self.is_running = true;
                Presence::Ready
            }
            Ok(_) => Presence::NotYet("its container does not run yet".to_owned()),
            Err(error) => Presence::NotYet(format!("its container is not there yet: {error}")),
        }
    }

    fn end(&mut self, grace: Duration) -> Stopped {
        let was_gone = self.client.ended().is_some();
        let mut troubles = Vec::new();
        if !was_gone {
            let seconds = grace.as_secs().max(1).to_string();
            let answer = self.ask(&["stop", "-t", &seconds, &self.name], grace + ANSWER);
            troubles
                .extend(answer.err().map(|error| format!("`{} stop`: {error}", self.engine_shown)));
            // It ends by itself with the status of the server, which tells whether that was killed.
            until(CLIENT_GRACE, || self.client.ended().is_some());
        }
        let mut stopped = self.client.end(CLIENT_GRACE);
        let was_killed =
            stopped.ending == DepartureEnding::Killed || stopped.exit == Some(Exit::Code(KILLED));
        // It does not exist any more unless something went wrong, and then the list shows it.
        let _ = self.ask(&["rm", "-f", &self.name], ANSWER);
        stopped.ending = match (was_gone, was_killed) {
            (true, _) => DepartureEnding::Before,
            (false, true) => DepartureEnding::Killed,
            (false, false) => DepartureEnding::OnRequest,
        };
        let filter = format!("name={}", self.name);
        match self.ask(&["ps", "-a", "--filter", &filter, "--format", "{{.Names}}"], ANSWER) {
            // The filter finds parts of names.
            Ok(all) if all.lines().any(|line| line.trim() == self.name) => {
                let pid = self.ask(&["inspect", "--format", "{{.State.Pid}}", &self.name], ANSWER);
                let pid = pid.ok().and_then(|pid| pid.trim().parse().ok()).unwrap_or(0);
                stopped.left.push((pid, format!("container {}", self.name)));
            }
            Ok(_) => {}
            Err(error) => troubles.push(format!(
                "`{}` did not report whether the container {} is gone: {error}",
                self.engine_shown, self.name
            )),
        }
        stopped.troubles.extend(troubles);
        stopped
    }
}

impl Container {
    fn ask(&self, arguments: &[&str], within: Duration) -> Result<String, ToolError> {
        let mut command = Command::new(&self.engine);
        command.args(arguments).env_clear().envs(&self.variables);
        output(command, within)
    }
}
