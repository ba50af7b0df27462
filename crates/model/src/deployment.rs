//! How a server is deployed for a measurement, and how it ended.
//!
//! Nothing here is secret: a command or a variable that needs a key names the variable that holds it
//! (`{env:NAME}`), and the value is read when the server is started.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

use crate::variant_name;

/// A server that is ours for the time of a measurement. What is left of placeholders in it is known
/// only when it starts: `{port}`, `{name}` and `{env:NAME}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentSpec {
    pub how: DeploymentHow,
    #[serde(default)]
    pub environment: EnvironmentSpec,
    /// Until it has generated a token.
    pub ready_timeout: Duration,
    /// Time between the request to stop and being killed.
    pub grace: Duration,
    pub renewal: Renewal,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DeploymentHow {
    Process(ProcessSpec),
    Container(ContainerSpec),
    Commands(CommandsSpec),
}

/// The kinds of deployment, by the names that users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum DeployKind {
    Process,
    Container,
    Commands,
}

/// A program on this machine, without a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSpec {
    /// The program and its arguments. It must listen on `127.0.0.1` at `{port}`.
    pub command: Vec<String>,
    /// Where it runs; `None` is where we run.
    pub folder: Option<String>,
}

/// A container of docker or podman.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// The program to call: `docker`, `podman`, or another that takes the same arguments.
    pub engine: String,
    pub image: String,
    /// Options of `run`, before the image: devices, mounts, memory.
    pub options: Vec<String>,
    /// What the image is given to do.
    pub arguments: Vec<String>,
    /// Where the server listens inside the container; it is published on loopback at `{port}`.
    pub port: u16,
}

/// Commands of the user, each run by `sh -c`; placeholders in them are quoted for the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandsSpec {
    /// Starts the server and returns.
    pub up: String,
    /// Prints where it is, as a URL on its last line.
    pub url: String,
    /// Prints or follows its log; `None` where there is no log.
    pub logs: Option<String>,
    /// Stops it and returns when it is gone.
    pub down: String,
}

/// What a server finds in its environment: nothing that is not named here or needed by every program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentSpec {
    /// Variables of ours that are passed on, by their names; `CUDA_*` names all that begin so.
    pub pass: Vec<String>,
    /// Variables with their values. None of them is secret.
    pub set: BTreeMap<String, String>,
}

/// When the server must be a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum Renewal {
    /// Before every repetition: its levels share a server.
    #[default]
    EachRepetition,
    EachRun,
    /// One server for all.
    Never,
}

/// Facts about a deployed server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeploymentFacts {
    /// `process`, `container` or `commands`.
    pub kind: String,
    /// As it was started, without secrets.
    pub command: Vec<String>,
    /// The image of a container by its digest, where the engine reports it.
    pub image: Option<String>,
    /// What it found in its environment, by name; secret values are left out.
    pub environment: Vec<(String, String)>,
    /// From the start to its first generated token.
    pub ready_after: Duration,
    /// How many were deployed before it in this process.
    pub restarts: u32,
}

/// How a server went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Departure {
    pub ending: DepartureEnding,
    pub took: Duration,
    /// No process listens on its port any more.
    pub port_closed: bool,
    /// Processes of it that are still there, by number and name.
    pub left: Vec<(u32, String)>,
    /// Bytes of GPU memory in use before it was started and after it was gone; `None` where no tool
    /// tells.
    pub gpu_memory: Option<(u64, u64)>,
    /// What else did not go as it should.
    pub troubles: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DepartureEnding {
    /// It had ended before it was asked to stop.
    Before,
    /// It stopped when it was asked to.
    #[serde(rename = "told")]
    OnRequest,
    /// It had to be killed.
    Killed,
}

/// A server that could not be deployed or did not stay up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeploymentFailure {
    pub stage: DeploymentStage,
    /// What happened, in one line.
    pub what: String,
    pub cause: Option<LikelyCause>,
    /// The last lines of its log.
    pub log: Vec<String>,
}

impl DeploymentFailure {
    /// Its cause where that is known, else how far it came.
    pub fn in_short(&self) -> String {
        self.cause.map_or_else(|| self.stage.to_string(), |cause| cause.words().to_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
pub enum DeploymentStage {
    /// It could not be started at all.
    #[strum(to_string = "not started")]
    Start,
    #[strum(to_string = "ended before it was ready")]
    Ended,
    #[strum(to_string = "not ready in time")]
    Ready,
    /// It reported to be healthy and could not generate.
    #[strum(to_string = "could not generate")]
    Generate,
    #[strum(to_string = "died during the measurement")]
    Died,
    /// The measurement itself could not be made.
    #[strum(to_string = "not measured")]
    Measure,
    #[strum(to_string = "did not stop")]
    Stop,
}

texts! {
    /// What the words of a server look like.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LikelyCause, words {
        OutOfMemory: "out of memory";
        PortInUse: "port in use";
        GatedModel: "gated model";
        NoSuchModel: "no such model";
        BadFlag: "bad flag";
        NoGpu: "no GPU";
        MissingLibrary: "missing library";
        DiskFull: "disk full";
        NoSuchImage: "no such image";
        NoContainerDaemon: "no container daemon";
        Permission: "not permitted";
        /// The model cannot be divided among so many GPUs.
        CannotSpread: "cannot be divided so";
        NoSuchProgram: "no such program";
        /// One that `{env:NAME}` names.
        VariableNotSet: "variable not set";
    }
}

impl LikelyCause {
    /// What it is, and what to do about it.
    pub fn remedy(self) -> &'static str {
        let mut causes = include_str!("causes.txt").lines();
        let own = |line: &'static str| line.strip_prefix(variant_name(&self))?.strip_prefix(": ");
        causes.find_map(own).unwrap_or_default()
    }
}

impl DeploymentHow {
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The program with its arguments, in one line, with quotes where a shell would need them;
    /// `None` where others start it.
    pub fn command_line(&self) -> Option<String> {
        match self {
            Self::Process(process) => Some(line(&process.command)),
            Self::Container(container) => {
                let run = [container.engine.clone(), "run".to_owned()];
                let image = std::slice::from_ref(&container.image);
                Some(line(&[&run, &container.options[..], image, &container.arguments].concat()))
            }
            Self::Commands(_) => None,
        }
    }

    /// What is deployed, in one line.
    pub fn words(&self) -> String {
        match self {
            Self::Process(process) => format!("`{}`", line(&process.command)),
            Self::Container(it) => format!("the image `{}` by {}", it.image, it.engine),
            Self::Commands(commands) => format!("a server by `{}`", commands.up),
        }
    }
}

impl DeploymentFacts {
    /// The command in one line, with quotes where a shell would need them.
    pub fn command_line(&self) -> String {
        line(&self.command)
    }
}

fn line(words: &[String]) -> String {
    let is_plain = |word: &str| {
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./:=,@%+{}".contains(sign);
        !word.is_empty() && word.chars().all(is_plain)
    };
    let quoted = words.iter().map(|word| {
        if is_plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

impl DeploymentSpec {
    pub const READY_TIMEOUT: Duration = Duration::from_mins(10);
    pub const GRACE: Duration = Duration::from_secs(20);

    pub fn new(how: DeploymentHow) -> Self {
        Self {
            how,
            environment: EnvironmentSpec::default(),
            ready_timeout: Self::READY_TIMEOUT,
            grace: Self::GRACE,
            renewal: Renewal::default(),
        }
    }
}
