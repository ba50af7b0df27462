//! What readers of GPUs have in common: bounds, shares, and how a look fails.

use std::io::ErrorKind;
use std::process::Command;
use std::time::Duration;

use inferometer_model::telemetry::DeviceReading;

use crate::system::tool::{self, ToolError};

/// A tool that hangs is given up.
pub(super) const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// More are nonsense, and would fill the journal.
pub(super) const DEVICES_MAX: u32 = 256;
/// A tool's words go into the run's files.
const WORDS_MAX: usize = 300;

/// All GPUs now.
pub(super) type Look = Box<dyn FnMut() -> Result<Vec<DeviceReading>, LookError>>;

#[derive(Debug, thiserror::Error)]
pub(super) enum LookError {
    #[error("{program}: {error}")]
    Tool { program: &'static str, error: ToolError },
    /// What would tell is not installed.
    #[error("{0}")]
    NotThere(String),
    #[error("NVML: {0}")]
    #[cfg_attr(not(feature = "nvml"), expect(dead_code, reason = "only the library says so"))]
    Driver(String),
    #[error("the exporter: {0}")]
    Exporter(String),
    #[error("{0} names no GPU that can be read")]
    Nothing(&'static str),
}

impl LookError {
    /// Whether nobody is there to ask, which is no failure.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Tool { error: ToolError::Start(error), .. } => {
                error.kind() == ErrorKind::NotFound
            }
            Self::NotThere(_) => true,
            Self::Tool { .. } | Self::Driver(_) | Self::Exporter(_) | Self::Nothing(_) => false,
        }
    }

    /// Whether a tool was there and said no.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Tool { error: ToolError::Failed { .. }, .. })
    }

    pub(super) fn words(&self) -> String {
        let words = self.to_string();
        words.chars().filter(|letter| !letter.is_control()).take(WORDS_MAX).collect()
    }
}

pub(super) fn said(program: &'static str, arguments: &[&str]) -> Result<String, LookError> {
    let mut command = Command::new(program);
    command.args(arguments);
    tool::output(command, LOOK_LIMIT).map_err(|error| LookError::Tool { program, error })
}

/// Of a percentage; one outside of its range is nobody's.
pub(super) fn share(percent: f64) -> Option<f64> {
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}
