//! Whether and how the server's own metrics are read during a run.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SpecError;
use super::devices::DevicesAsked;

#[derive(Clone, Debug, Default)]
pub struct TelemetryDraft {
    pub on: Option<bool>,
    pub path: Option<String>,
    pub every: Option<Duration>,
    pub devices: Option<DevicesAsked>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TelemetrySpec {
    /// Behind the base URL.
    pub path: String,
    pub every: Duration,
    /// Who is asked about the GPUs; nobody was, before it could be said.
    #[serde(default = "DevicesAsked::nobody")]
    pub devices: DevicesAsked,
}

const PATH: &str = "/metrics";
const EVERY: Duration = Duration::from_secs(1);
/// Ten times a second is a load of its own; once in a minute shows nothing.
const EVERY_BOUNDS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);
const PATH_BYTES_MAX: usize = 1 << 10;

impl TelemetryDraft {
    pub(super) fn resolve(self) -> Result<Option<TelemetrySpec>, SpecError> {
        if self.on == Some(false) {
            return match (self.path, self.every, self.devices) {
                (Some(_), _, _) => Err(SpecError::TelemetryOff("--metrics-path")),
                (None, Some(_), _) => Err(SpecError::TelemetryOff("--telemetry-every")),
                (None, None, None | Some(DevicesAsked::Off)) => Ok(None),
                (None, None, Some(_)) => Err(SpecError::TelemetryOff("--gpu-telemetry")),
            };
        }
        let path = self.path.unwrap_or_else(|| PATH.to_owned());
        let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if !path.starts_with('/') || !is_plain || PATH_BYTES_MAX < path.len() {
            return Err(SpecError::MetricsPath);
        }
        let every = self.every.unwrap_or(EVERY);
        if !EVERY_BOUNDS.contains(&every) {
            let (least, most) = (*EVERY_BOUNDS.start(), *EVERY_BOUNDS.end());
            return Err(SpecError::TelemetryEvery { least, most });
        }
        Ok(Some(TelemetrySpec { path, every, devices: self.devices.unwrap_or_default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_every_second_unless_somebody_objects() {
        let spec = TelemetryDraft::default().resolve().unwrap().unwrap();
        assert_eq!((spec.path.as_str(), spec.every), ("/metrics", Duration::from_secs(1)));
        let off = TelemetryDraft { on: Some(false), ..TelemetryDraft::default() };
        assert_eq!(off.clone().resolve(), Ok(None));
        let path = Some("/m".to_owned());
        let torn = TelemetryDraft { path, ..off };
        assert_eq!(torn.resolve(), Err(SpecError::TelemetryOff("--metrics-path")));
        assert_eq!(spec.devices, DevicesAsked::Auto);
        let older: TelemetrySpec =
            serde_json::from_str(r#"{"path":"/metrics","every":{"secs":1,"nanos":0}}"#).unwrap();
        assert_eq!(older.devices, DevicesAsked::Off, "nobody was asked then");
    }

    #[test]
    fn a_path_is_a_path_and_a_period_is_bounded() {
        for path in ["metrics", "", "/a b", "/a\r\nHost: x", "/m#f"] {
            let draft = TelemetryDraft { path: Some(path.to_owned()), ..<_>::default() };
            assert_eq!(draft.resolve(), Err(SpecError::MetricsPath), "{path}");
        }
        for ms in [0, 99, 60_001] {
            let every = Some(Duration::from_millis(ms));
            let draft = TelemetryDraft { every, ..TelemetryDraft::default() };
            assert!(matches!(draft.resolve(), Err(SpecError::TelemetryEvery { .. })), "{ms} ms");
        }
    }
}
