//! Errors as part of the interface: what happened, to which input, what to do, and the exit code.

use std::process::ExitCode;

use crate::output;

/// The exit codes that scripts may rely on, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Internal = 1,
    Usage = 2,
    TargetNotUsable = 3,
    RunInvalid = 4,
    /// A comparison found a side worse than its base.
    Regression = 10,
    PromiseMissed = 99,
    Interrupted = 130,
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    /// Lines of the input that it is about.
    shown: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), shown: Vec::new(), hint: None }
    }

    pub(crate) fn target(message: impl Into<String>) -> Self {
        Self { exit: Exit::TargetNotUsable, message: message.into(), shown: Vec::new(), hint: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { exit: Exit::RunInvalid, message: message.into(), shown: Vec::new(), hint: None }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { exit: Exit::Internal, message: message.into(), shown: Vec::new(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Lines of the input, to be shown below the message.
    pub(crate) fn shown(mut self, lines: Vec<String>) -> Self {
        self.shown = lines;
        self
    }

    /// Says it on standard error and gives the code to exit with.
    pub(crate) fn report(&self) -> ExitCode {
        // The message may quote a server: its control characters must not reach the terminal.
        output::talk(&format!("error: {}", inferometer_report::escape::terminal(&self.message)));
        for line in &self.shown {
            output::talk(&inferometer_report::escape::terminal(line));
        }
        if let Some(hint) = &self.hint {
            output::talk(&format!("hint: {}", inferometer_report::escape::terminal(hint)));
        }
        self.exit.into()
    }
}

impl From<inferometer_model::spec::SpecError> for Failure {
    fn from(error: inferometer_model::spec::SpecError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<inferometer_workload::WorkloadError> for Failure {
    fn from(error: inferometer_workload::WorkloadError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<inferometer_store::StoreError> for Failure {
    fn from(error: inferometer_store::StoreError) -> Self {
        Self::internal(error.to_string())
    }
}
