//! Errors as part of the interface: what happened, to which input, what to do, and the exit code.

use nix::sys::signal::Signal;

/// What functions return that fail with a [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The exit codes that scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Something is wrong with this program or its machine.
    Internal = 1,
    /// The user asked for something that is not possible.
    Usage = 2,
    /// The server cannot be measured.
    TargetNotUsable = 3,
    /// The run cannot be trusted.
    RunInvalid = 4,
    /// A comparison found a side worse than its baseline.
    Regression = 10,
    /// An SLO or a requirement was missed.
    PromiseMissed = 99,
    /// The user pressed Ctrl-C.
    Interrupted = 130,
    /// The process was asked to end.
    Terminated = 143,
}

impl Exit {
    /// The code of a process that this signal stopped.
    pub fn from_signal(signal: i32) -> Self {
        if signal == Signal::SIGINT as i32 { Self::Interrupted } else { Self::Terminated }
    }

    /// The code to exit with after several runs: a signal goes first, then a run that cannot be
    /// trusted, whose SLOs mean nothing.
    pub fn gravest(exits: impl IntoIterator<Item = Self>) -> Option<Self> {
        exits.into_iter().max_by_key(|exit| match exit {
            Self::PromiseMissed => 0,
            Self::Regression => 1,
            Self::RunInvalid => 2,
            Self::TargetNotUsable => 3,
            Self::Usage => 4,
            Self::Internal => 5,
            Self::Interrupted | Self::Terminated => 6,
        })
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What went wrong, for which input, and what to do about it.
#[derive(Debug)]
#[must_use]
pub struct Failure {
    /// The code to exit with.
    pub exit: Exit,
    message: String,
    /// Lines of the input that it is about.
    pub shown: Vec<String>,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
    passing: bool,
    /// What a server that answered refused.
    pub refusal: Option<Refusal>,
}

/// What a server refuses although it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key that was sent, or that none was sent.
    Key,
    /// It does not serve the model.
    Model,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        let (message, shown) = (message.into(), Vec::new());
        Self { exit, message, shown, hint: None, passing: false, refusal: None }
    }

    /// The message, without hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The user asked for something that is not possible.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The server cannot be measured.
    pub fn target(message: impl Into<String>) -> Self {
        Self::new(Exit::TargetNotUsable, message)
    }

    /// The data cannot be trusted.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Exit::RunInvalid, message)
    }

    /// Something is wrong with this program or its machine.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, message)
    }

    /// An error of this program or its machine.
    pub fn from_error(error: impl std::fmt::Display) -> Self {
        Self::internal(error.to_string())
    }

    /// An error in the user's input.
    pub fn from_usage(error: impl std::fmt::Display) -> Self {
        Self::usage(error.to_string())
    }

    /// A signal stopped the work. There is no message: the user knows why.
    pub fn interrupted(exit: Exit) -> Self {
        Self::new(exit, String::new())
    }

    /// Whether a signal stopped the work.
    pub fn is_interruption(&self) -> bool {
        matches!(self.exit, Exit::Interrupted | Exit::Terminated)
    }

    /// Adds what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Puts what it is about before the message.
    pub fn about(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// Changes the words of the message, of the lines below it and of the hint.
    pub fn reworded(self, reword: impl Fn(&str) -> String) -> Self {
        let (message, shown) =
            (reword(&self.message), self.shown.iter().map(|line| reword(line)).collect());
        Self { message, shown, hint: self.hint.as_deref().map(reword), ..self }
    }

    /// Marks a failure that may be temporary.
    pub fn passing_if(self, passing: bool) -> Self {
        Self { passing, ..self }
    }

    /// Whether it may be temporary: the server may still be starting.
    pub fn is_passing(&self) -> bool {
        self.passing
    }

    /// Sets what the server refused.
    pub fn refused(self, refusal: Option<Refusal>) -> Self {
        Self { refusal, ..self }
    }

    /// Whether the server is not to blame: a signal came, or something is wrong with this program
    /// or its machine.
    pub fn is_our_own(&self) -> bool {
        self.exit == Exit::Internal || self.is_interruption()
    }

    /// Everything that is shown below the message.
    pub fn lines(&self) -> Vec<String> {
        self.shown.iter().chain(&self.hint).cloned().collect()
    }

    /// Sets the lines of the input that are shown below the message.
    pub fn shown(self, shown: Vec<String>) -> Self {
        Self { shown, ..self }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{} ({hint})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Failure {}

impl From<inferometer_model::spec::SpecError> for Failure {
    fn from(error: inferometer_model::spec::SpecError) -> Self {
        Self::from_usage(error)
    }
}

impl From<inferometer_workload::WorkloadError> for Failure {
    fn from(error: inferometer_workload::WorkloadError) -> Self {
        Self::from_usage(error)
    }
}

impl From<inferometer_store::StoreError> for Failure {
    fn from(error: inferometer_store::StoreError) -> Self {
        Self::from_error(error)
    }
}
