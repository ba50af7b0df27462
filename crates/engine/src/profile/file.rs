//! A profile as a TOML file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::physics::{Coefficients, Front};

use super::{EngineTable, Profile, ProfileError};

/// What a file says; what it leaves out is generic or follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileFile {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub serve: EngineTable,
    #[serde(default)]
    pub coefficients: Coefficients,
    #[serde(default)]
    pub front: Front,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<Fitted>,
}

/// Where a profile's coefficients come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// What was measured, by whom, as a sentence.
    pub source: String,
    /// Rows of data behind the fit.
    pub rows: u32,
    /// Coefficients that were free.
    #[serde(default)]
    pub free: Vec<String>,
    /// Relative error by figure, as in `"rate 5 mean_tpot" = 0.03`.
    #[serde(default)]
    pub residuals: BTreeMap<String, f64>,
    /// The same with the figure's row left out of the fit.
    #[serde(default)]
    pub leave_one_out: BTreeMap<String, f64>,
}

impl ProfileFile {
    pub(super) fn read(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let file: Self = toml::from_str(text).map_err(|source| ProfileError::Parse {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        if file.serve.speed.is_some() || file.serve.step.is_some() {
            let error = "`speed` and `step` are options of a run, not of a profile";
            let source = Box::new(serde::de::Error::custom(error));
            return Err(ProfileError::Parse { origin: origin.to_owned(), source });
        }
        if file.serve.profile.is_some() {
            return Err(ProfileError::Nested { origin: origin.to_owned() });
        }
        if file.serve.hardware.is_none() || file.serve.model.is_none() {
            return Err(ProfileError::Incomplete { origin: origin.to_owned() });
        }
        Ok(file)
    }

    pub(super) fn at_path(path: &str) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProfileError::Read { path: path.to_owned(), source })?;
        Self::read(&text, path)
    }

    pub(super) fn of(profile: &Profile) -> Self {
        let choice = profile.choice().clone();
        Self {
            name: profile.name.clone(),
            description: profile.description.clone(),
            serve: EngineTable {
                profile: None,
                hardware: Some(profile.gpu.name.clone()),
                model: Some(profile.model.name.clone()),
                noise: None,
                speed: None,
                step: None,
                ..choice
            },
            coefficients: *profile.coefficients(),
            front: profile.front,
            fitted: profile.fitted.clone(),
        }
    }

    pub(super) fn write(&self) -> String {
        toml::to_string(self).expect("numbers, words and tables always have a TOML form")
    }
}
