//! Who looks at the GPUs: the one that was asked for, or the first on this machine that sees some.

use std::fmt;

use inferometer_model::fetch::Fetch;
use inferometer_model::spec::DevicesAsked;
use inferometer_model::telemetry::{DeviceReading, DeviceSource, DevicesAbsence};

use super::nvidia::NvidiaSmi;
use super::reading::{Look, LookError};
use super::{amd, dcgm};

/// How the GPUs will be looked at. Opened in the thread that looks: loading a driver takes its time,
/// and what is opened may not leave its thread.
pub struct Opening(Box<dyn FnOnce() -> Result<Eyes, DevicesAbsence> + Send>);

/// A reader that has seen GPUs at least once.
pub(super) struct Eyes {
    pub(super) source: DeviceSource,
    look: Look,
}

impl Opening {
    /// By what this machine has. `None` where nobody is asked, or somebody elsewhere.
    pub fn here(asked: &DevicesAsked) -> Option<Self> {
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

    /// By an exporter of DCGM. `fetch` is made in the thread that looks.
    pub fn exporter<F: Fetch + 'static>(fetch: impl FnOnce() -> F + Send + 'static) -> Self {
        Self(Box::new(move || {
            let look = dcgm::open(fetch()).map_err(|error| absence(&error))?;
            tried(DeviceSource::Dcgm, look).map_err(|error| absence(&error))
        }))
    }

    #[cfg(test)]
    pub(super) fn of(
        open: impl FnOnce() -> Result<Vec<Vec<DeviceReading>>, DevicesAbsence> + Send + 'static,
    ) -> Self {
        Self(Box::new(move || {
            let mut looks = open()?.into_iter();
            let look = move || looks.next().ok_or(LookError::Nothing("the test"));
            Ok(Eyes { source: DeviceSource::NvidiaSmi, look: Box::new(look) })
        }))
    }

    #[cfg(test)]
    pub(super) fn of_looks(look: impl FnMut() -> Vec<DeviceReading> + Send + 'static) -> Self {
        let mut look = look;
        Self(Box::new(move || {
            let look: Look = Box::new(move || Ok(look()));
            Ok(Eyes { source: DeviceSource::NvidiaSmi, look })
        }))
    }

    pub(super) fn open(self) -> Result<Eyes, DevicesAbsence> {
        (self.0)()
    }
}

impl Eyes {
    pub(super) fn look(&mut self) -> Result<Vec<DeviceReading>, LookError> {
        (self.look)()
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opening")
    }
}

/// The driver's own library first: it costs the least and tells the most.
const ALL_HERE: [DeviceSource; 4] =
    [DeviceSource::Nvml, DeviceSource::NvidiaSmi, DeviceSource::AmdSmi, DeviceSource::RocmSmi];

/// The first that sees a GPU. A tool that is there and fails is told of where none sees one; whoever
/// was asked for by name must be there.
fn first(
    sources: &[DeviceSource],
    is_named: bool,
    open: impl Fn(DeviceSource) -> Result<Look, LookError>,
) -> Result<Eyes, DevicesAbsence> {
    let mut failed = None;
    for source in sources {
        match open(*source).and_then(|look| tried(*source, look)) {
            Ok(eyes) => return Ok(eyes),
            Err(error) if error.is_absence() && !is_named => {}
            Err(error) => failed = failed.or(Some(absence(&error))),
        }
    }
    Err(failed.unwrap_or(DevicesAbsence::NoneFound))
}

fn tried(source: DeviceSource, mut look: Look) -> Result<Eyes, LookError> {
    look()?;
    Ok(Eyes { source, look })
}

fn absence(error: &LookError) -> DevicesAbsence {
    DevicesAbsence::Failed(error.words())
}

fn open(source: DeviceSource) -> Result<Look, LookError> {
    Ok(match source {
        DeviceSource::Nvml => return open_nvml(),
        DeviceSource::NvidiaSmi => {
            let mut tool = NvidiaSmi::default();
            Box::new(move || tool.look())
        }
        DeviceSource::AmdSmi => Box::new(amd::look_amd_smi),
        DeviceSource::RocmSmi => Box::new(amd::look_rocm_smi),
        DeviceSource::Dcgm => return Err(LookError::Nothing("DCGM without a URL")),
    })
}

#[cfg(feature = "nvml")]
fn open_nvml() -> Result<Look, LookError> {
    let nvml = super::nvml::open()?;
    Ok(Box::new(move || super::nvml::look(&nvml)))
}

#[cfg(not(feature = "nvml"))]
fn open_nvml() -> Result<Look, LookError> {
    Err(LookError::NotThere("NVML is not built into this program".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_sees_a_gpu_is_asked() {
        let open = |source| match source {
            DeviceSource::Nvml => Err(LookError::NotThere("no library".to_owned())),
            DeviceSource::NvidiaSmi => {
                Ok(Box::new(|| Err(LookError::Nothing("nvidia-smi"))) as Look)
            }
            DeviceSource::AmdSmi | DeviceSource::RocmSmi | DeviceSource::Dcgm => {
                Ok(Box::new(|| Ok(vec![DeviceReading::default()])) as Look)
            }
        };
        let found = first(&ALL_HERE, false, open).map(|eyes| eyes.source);
        assert_eq!(found, Ok(DeviceSource::AmdSmi));
        let failed = first(&ALL_HERE[..2], false, open).map(|eyes| eyes.source);
        let words = "nvidia-smi names no GPU that can be read".to_owned();
        assert_eq!(failed, Err(DevicesAbsence::Failed(words)));
        let none = first(&ALL_HERE[..1], false, open).map(|eyes| eyes.source);
        assert_eq!(none, Err(DevicesAbsence::NoneFound));
        let named = first(&ALL_HERE[..1], true, open).map(|eyes| eyes.source);
        assert_eq!(named, Err(DevicesAbsence::Failed("no library".to_owned())));
    }
}
