//! The GPUs: which ones a machine has, and what they do during a run. `nvidia` and `amd` read the
//! tools and libraries of their vendors; this file chooses among them.

pub(crate) mod amd;
pub(crate) mod nvidia;

use std::io::ErrorKind;
use std::process::Command;
use std::time::Duration;

use inferometer_model::fetch::Fetch;
use inferometer_model::spec::DevicesAsked;
use inferometer_model::telemetry::{DeviceReading, DeviceSource, DevicesAbsence};

use crate::system::tool::{self, ToolError};

/// A tool that hangs is given up.
pub(crate) const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// More would fill the journal.
pub(crate) const DEVICES_MAX: u32 = 256;
/// A tool's message is stored in the run's files.
const MESSAGE_CHARS_MAX: usize = 300;

/// Reads all GPUs once.
pub(crate) type Look = Box<dyn FnMut() -> Result<Vec<DeviceReading>, LookError>>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error("{program}: {error}")]
    Tool { program: &'static str, error: ToolError },
    /// The library or tool is not installed.
    #[error("{0}")]
    NotThere(String),
    #[error("NVML: {0}")]
    #[cfg_attr(not(feature = "nvml"), expect(dead_code, reason = "only the library reports it"))]
    Driver(String),
    #[error("the exporter: {0}")]
    Exporter(String),
    #[error("{0} names no GPU that can be read")]
    Nothing(&'static str),
}

impl LookError {
    /// Whether there is nothing to ask, which is no failure.
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::Tool { error: ToolError::Start(error), .. } => {
                error.kind() == ErrorKind::NotFound
            }
            Self::NotThere(_) => true,
            Self::Tool { .. } | Self::Driver(_) | Self::Exporter(_) | Self::Nothing(_) => false,
        }
    }

    /// Whether the tool was there and refused.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Tool { error: ToolError::Failed { .. }, .. })
    }

    pub(crate) fn message(&self) -> String {
        let message = self.to_string();
        message.chars().filter(|letter| !letter.is_control()).take(MESSAGE_CHARS_MAX).collect()
    }
}

fn run_tool(program: &'static str, arguments: &[&str]) -> Result<String, LookError> {
    let mut command = Command::new(program);
    command.args(arguments);
    tool::output(command, LOOK_LIMIT).map_err(|error| LookError::Tool { program, error })
}

/// A percentage as a share; `None` outside of its range.
fn share(percent: f64) -> Option<f64> {
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// How the GPUs will be read. It is opened in the thread that reads: loading a driver takes time, and
/// what is opened may not leave its thread.
pub struct GpuProbe(pub(crate) Box<dyn FnOnce() -> Result<GpuReader, DevicesAbsence> + Send>);

/// A reader that has found GPUs at least once.
pub(crate) struct GpuReader {
    pub(crate) source: DeviceSource,
    pub(crate) look: Look,
}

impl GpuProbe {
    /// With the tools of this machine. `None` if GPUs are not wanted, or are read elsewhere.
    pub fn local(asked: &DevicesAsked) -> Option<Self> {
        let sources: &[DeviceSource] = match asked {
            DevicesAsked::Auto => &ALL_HERE,
            DevicesAsked::Nvml => &[DeviceSource::Nvml],
            DevicesAsked::NvidiaSmi => &[DeviceSource::NvidiaSmi],
            DevicesAsked::AmdSmi => &[DeviceSource::AmdSmi],
            DevicesAsked::RocmSmi => &[DeviceSource::RocmSmi],
            DevicesAsked::Off | DevicesAsked::Dcgm(_) => return None,
        };
        let sources = sources.to_vec();
        let is_named = *asked != DevicesAsked::Auto;
        Some(Self(Box::new(move || first(&sources, is_named, open))))
    }

    /// With a DCGM exporter. `fetch` is made in the thread that reads.
    pub fn exporter<F: Fetch + 'static>(fetch: impl FnOnce() -> F + Send + 'static) -> Self {
        Self(Box::new(move || {
            let look = nvidia::open_exporter(fetch()).map_err(|error| absence(&error))?;
            tried(DeviceSource::Dcgm, look).map_err(|error| absence(&error))
        }))
    }

    #[cfg(test)]
    pub(crate) fn from_readings(
        open: impl FnOnce() -> Result<Vec<Vec<DeviceReading>>, DevicesAbsence> + Send + 'static,
    ) -> Self {
        Self(Box::new(move || {
            let mut looks = open()?.into_iter();
            let look = move || looks.next().ok_or(LookError::Nothing("the test"));
            Ok(GpuReader { source: DeviceSource::NvidiaSmi, look: Box::new(look) })
        }))
    }

    #[cfg(test)]
    pub(crate) fn from_fn(look: impl FnMut() -> Vec<DeviceReading> + Send + 'static) -> Self {
        let mut look = look;
        Self(Box::new(move || {
            let look: Look = Box::new(move || Ok(look()));
            Ok(GpuReader { source: DeviceSource::NvidiaSmi, look })
        }))
    }
}

inferometer_model::debug_fields!(GpuProbe);

/// The driver's own library first: it costs the least and reports the most.
const ALL_HERE: [DeviceSource; 4] =
    [DeviceSource::Nvml, DeviceSource::NvidiaSmi, DeviceSource::AmdSmi, DeviceSource::RocmSmi];

/// The first that finds a GPU. The failure of a tool is reported only if none finds one; a tool that
/// was asked for by name must be there.
fn first(
    sources: &[DeviceSource],
    is_named: bool,
    open: impl Fn(DeviceSource) -> Result<Look, LookError>,
) -> Result<GpuReader, DevicesAbsence> {
    let mut failed = None;
    for source in sources {
        match open(*source).and_then(|look| tried(*source, look)) {
            Ok(reader) => return Ok(reader),
            Err(error) if error.is_absence() && !is_named => {}
            Err(error) => failed = failed.or(Some(absence(&error))),
        }
    }
    Err(failed.unwrap_or(DevicesAbsence::NoneFound))
}

fn tried(source: DeviceSource, mut look: Look) -> Result<GpuReader, LookError> {
    look()?;
    Ok(GpuReader { source, look })
}

fn absence(error: &LookError) -> DevicesAbsence {
    DevicesAbsence::Failed(error.message())
}

fn open(source: DeviceSource) -> Result<Look, LookError> {
    Ok(match source {
        DeviceSource::Nvml => return open_nvml(),
        DeviceSource::NvidiaSmi => {
            let mut tool = nvidia::NvidiaSmi::default();
            Box::new(move || tool.look())
        }
        DeviceSource::AmdSmi => Box::new(amd::look_amd_smi),
        DeviceSource::RocmSmi => Box::new(amd::look_rocm_smi),
        DeviceSource::Dcgm => return Err(LookError::Nothing("DCGM without a URL")),
    })
}

#[cfg(feature = "nvml")]
fn open_nvml() -> Result<Look, LookError> {
    let nvml = nvidia::nvml::open()?;
    Ok(Box::new(move || nvidia::nvml::look(&nvml)))
}

#[cfg(not(feature = "nvml"))]
fn open_nvml() -> Result<Look, LookError> {
    Err(LookError::NotThere("NVML is not built into this program".to_owned()))
}

/// GPU memory in use, in bytes over all GPUs; `None` where no tool reports it.
pub(crate) fn memory_in_use() -> Option<u64> {
    nvidia::memory_in_use().or_else(amd::memory_in_use)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_finds_a_gpu_is_used() {
        let open = |source| match source {
            DeviceSource::Nvml => Err(LookError::NotThere("no library".to_owned())),
            DeviceSource::NvidiaSmi => {
                Ok(Box::new(|| Err(LookError::Nothing("nvidia-smi"))) as Look)
            }
            DeviceSource::AmdSmi | DeviceSource::RocmSmi | DeviceSource::Dcgm => {
                Ok(Box::new(|| Ok(vec![DeviceReading::default()])) as Look)
            }
        };
        let found = first(&ALL_HERE, false, open).map(|reader| reader.source);
        assert_eq!(found, Ok(DeviceSource::AmdSmi));
        let failed = first(&ALL_HERE[..2], false, open).map(|reader| reader.source);
        let message = "nvidia-smi names no GPU that can be read".to_owned();
        assert_eq!(failed, Err(DevicesAbsence::Failed(message)));
        let none = first(&ALL_HERE[..1], false, open).map(|reader| reader.source);
        assert_eq!(none, Err(DevicesAbsence::NoneFound));
        let named = first(&ALL_HERE[..1], true, open).map(|reader| reader.source);
        assert_eq!(named, Err(DevicesAbsence::Failed("no library".to_owned())));
    }
}
