//! Source of GPU metrics during a run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::BaseUrl;

/// Written `auto`, `off`, by the name of a tool, or `dcgm=URL`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DevicesAsked {
    /// Whatever this machine has, if the server runs on it.
    #[default]
    Auto,
    Off,
    Nvml,
    NvidiaSmi,
    AmdSmi,
    RocmSmi,
    /// An exporter of DCGM, wherever it is.
    Dcgm(BaseUrl),
}

impl DevicesAsked {
    /// What has a name and no more.
    const NAMED: [Self; 6] =
        [Self::Auto, Self::Off, Self::Nvml, Self::NvidiaSmi, Self::AmdSmi, Self::RocmSmi];

    pub(super) const fn nobody() -> Self {
        Self::Off
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DevicesAskedError {
    #[error(
        "`{0}` is not a source of GPU metrics; write auto, off, nvml, nvidia-smi, amd-smi, rocm-smi, or \
         dcgm=URL of an exporter, such as dcgm=http://gpu1:9400"
    )]
    Unknown(String),
    #[error("the exporter's URL cannot be used: {0}")]
    Url(String),
}

impl FromStr for DevicesAsked {
    type Err = DevicesAskedError;

    fn from_str(text: &str) -> Result<Self, DevicesAskedError> {
        let text = text.trim();
        if let Some(url) = text.strip_prefix("dcgm=") {
            // Exporters are copied with the path that every one of them has.
            let base = url.trim_end_matches('/').trim_end_matches("/metrics");
            let parsed = base.parse::<BaseUrl>();
            return parsed
                .map(Self::Dcgm)
                .map_err(|error| DevicesAskedError::Url(error.to_string()));
        }
        let named = Self::NAMED.into_iter().find(|asked| asked.to_string() == text);
        named.ok_or_else(|| DevicesAskedError::Unknown(text.chars().take(100).collect()))
    }
}

impl fmt::Display for DevicesAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::Nvml => f.write_str("nvml"),
            Self::NvidiaSmi => f.write_str("nvidia-smi"),
            Self::AmdSmi => f.write_str("amd-smi"),
            Self::RocmSmi => f.write_str("rocm-smi"),
            Self::Dcgm(base) => write!(f, "dcgm={base}"),
        }
    }
}

impl TryFrom<String> for DevicesAsked {
    type Error = DevicesAskedError;

    fn try_from(text: String) -> Result<Self, DevicesAskedError> {
        text.parse()
    }
}

impl From<DevicesAsked> for String {
    fn from(asked: DevicesAsked) -> Self {
        asked.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["auto", "off", "nvml", "nvidia-smi", "amd-smi", "rocm-smi"] {
            assert_eq!(text.parse::<DevicesAsked>().unwrap().to_string(), text);
        }
        let dcgm: DevicesAsked = "dcgm=http://gpu1:9400/metrics".parse().unwrap();
        let stored = serde_json::to_string(&dcgm).unwrap();
        assert_eq!(stored, r#""dcgm=http://gpu1:9400""#);
        assert_eq!(serde_json::from_str::<DevicesAsked>(&stored).unwrap(), dcgm);
    }

    #[test]
    fn what_is_not_known_says_what_is_and_secrets_are_refused() {
        let unknown = "cuda".parse::<DevicesAsked>().unwrap_err().to_string();
        assert!(unknown.contains("`cuda`") && unknown.contains("dcgm=http"), "{unknown}");
        let secret = "dcgm=http://me:pass@gpu1:9400".parse::<DevicesAsked>().unwrap_err();
        assert!(matches!(secret, DevicesAskedError::Url(_)));
        assert!(!secret.to_string().contains("pass@"), "{secret}");
    }
}
