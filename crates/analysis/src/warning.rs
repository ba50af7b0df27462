//! Reasons to doubt a run: each is data, has a text, and says what to do about it.
//!
//! To add a warning: its variant in the enum of its kind (`run`, `load`, `client`, `workload`,
//! `answers`, `server` or `machines`), then key, severity, text, remedy and the check that it belongs to
//! (`check/belongs.rs`), which the compiler asks for, its condition in `found` beside them, and tests
//! that raise it and that do not.

mod answers;
pub(crate) mod client;
mod load;
pub(crate) mod machines;
mod run;
mod server;
mod workload;

use std::fmt;

use inferometer_model::Observations;
use serde::{Deserialize, Serialize};

pub(crate) use self::run::ERRORS_SHARE;
pub(crate) use self::server::FOREIGN_SHARE_GRAVE;
pub(crate) use self::workload::{CACHED_SHARE, CACHED_SHARE_GRAVE, cached_share, new_prompts};

pub use self::answers::AnswerWarning;
pub use self::client::ClientWarning;
pub use self::load::LoadWarning;
pub use self::machines::{MachineWarning, ThrottledBy};
pub use self::run::RunWarning;
pub use self::server::{ServerTokens, ServerWarning};
pub use self::workload::{NewPrompts, WorkloadWarning};
use crate::measured::Measured;
use crate::verdict::Severity;

/// A reason to doubt, with the numbers that gave it.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// How the run went as a whole.
    Run(RunWarning),
    /// Whether the load was the one asked for, and steady.
    Load(LoadWarning),
    /// The instrument doubts itself.
    Client(ClientWarning),
    /// Whether the server met what it was meant to meet.
    Workload(WorkloadWarning),
    /// What the server said.
    Answers(AnswerWarning),
    /// What the server's metrics say.
    Server(ServerWarning),
    /// What the machines say.
    Machines(MachineWarning),
}

/// A warning as the summary stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub key: String,
    /// The key of the check that it belongs to; absent for a warning about a set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    pub severity: Severity,
    pub text: String,
    pub remedy: String,
}

impl Warning {
    /// All warnings of a run, the gravest first.
    pub(crate) fn found(observations: &Observations, measured: &Measured) -> Vec<Self> {
        let run = RunWarning::found(observations, measured).into_iter().map(Self::Run);
        let load = LoadWarning::found(measured).into_iter().map(Self::Load);
        let client = ClientWarning::found(observations, measured).into_iter().map(Self::Client);
        let workload = WorkloadWarning::found(observations, measured).into_iter();
        let workload = workload.map(Self::Workload);
        let answers = AnswerWarning::found(observations, measured).into_iter().map(Self::Answers);
        let server = ServerWarning::found(measured).into_iter().map(Self::Server);
        let machines = MachineWarning::found(&measured.machines.figures).into_iter();
        let machines = machines.map(Self::Machines);
        let answered = workload.chain(answers).chain(server).chain(machines);
        let mut warnings: Vec<Self> = run.chain(load).chain(client).chain(answered).collect();
        warnings.sort_by_key(|warning| std::cmp::Reverse(warning.severity()));
        warnings
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::Run(warning) => warning.key(),
            Self::Load(warning) => warning.key(),
            Self::Client(warning) => warning.key(),
            Self::Workload(warning) => warning.key(),
            Self::Answers(warning) => warning.key(),
            Self::Server(warning) => warning.key(),
            Self::Machines(warning) => warning.key(),
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            Self::Run(warning) => warning.severity(),
            Self::Load(warning) => warning.severity(),
            Self::Client(warning) => warning.severity(),
            Self::Workload(warning) => warning.severity(),
            Self::Answers(warning) => warning.severity(),
            Self::Server(warning) => warning.severity(),
            Self::Machines(warning) => warning.severity(),
        }
    }

    /// What to do about it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Run(warning) => warning.remedy(),
            Self::Load(warning) => warning.remedy(),
            Self::Client(warning) => warning.remedy(),
            Self::Workload(warning) => warning.remedy(),
            Self::Answers(warning) => warning.remedy(),
            Self::Server(warning) => warning.remedy(),
            Self::Machines(warning) => warning.remedy(),
        }
    }

    pub fn notice(&self) -> Notice {
        Notice {
            key: self.key().to_owned(),
            check: Some(self.check().key().to_owned()),
            severity: self.severity(),
            text: self.to_string(),
            remedy: self.remedy().to_owned(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(warning) => warning.fmt(f),
            Self::Load(warning) => warning.fmt(f),
            Self::Client(warning) => warning.fmt(f),
            Self::Workload(warning) => warning.fmt(f),
            Self::Answers(warning) => warning.fmt(f),
            Self::Server(warning) => warning.fmt(f),
            Self::Machines(warning) => warning.fmt(f),
        }
    }
}

/// A share as a text shows it.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.0 * 100.0)
    }
}

/// Degrades above the limit, and is worth a note below it.
fn degraded_above(limit: f64, part: u64, whole: u64) -> Severity {
    if limit * (whole as f64) < part as f64 { Severity::Degraded } else { Severity::Note }
}
