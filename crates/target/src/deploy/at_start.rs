//! What is known when a server starts: its port, its name, and the variables around us.

use std::collections::BTreeMap;
use std::ffi::OsString;

use inferometer_model::Secret;

use super::placeholder::{self, AT_START, PlaceholderError};
use super::shell::fill_shell;

#[derive(Debug)]
pub(super) struct AtStart {
    pub(super) port: u16,
    pub(super) name: String,
    pub(super) ours: BTreeMap<String, OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FillError {
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    #[error("`{{env:{0}}}` names a variable that is not set here; set {0} before you start")]
    NotSet(String),
}

impl AtStart {
    pub(super) fn fill(&self, text: &str) -> Result<String, FillError> {
        for name in placeholder::names(text)? {
            self.check(&name)?;
        }
        Ok(placeholder::fill(text, &AT_START, &|name| self.value(name))?)
    }

    /// For the shell, which finds the variables in its environment.
    pub(super) fn fill_shell(&self, text: &str) -> Result<String, FillError> {
        for name in placeholder::names(text)? {
            self.check(&name)?;
        }
        Ok(fill_shell(text, &AT_START, &|name| self.value(name))?)
    }

    /// As it may be told: without the values of variables.
    pub(super) fn told(&self, text: &str) -> String {
        let shown = |name: &str| match name.strip_prefix("env:") {
            Some(_) => Some(format!("{{{name}}}")),
            None => self.value(name),
        };
        placeholder::fill(text, &AT_START, &shown).unwrap_or_else(|_| text.to_owned())
    }

    /// The values of variables that a text names.
    pub(super) fn keys(&self, text: &str) -> Vec<Secret> {
        let names = placeholder::names(text).unwrap_or_default();
        let variables = names.iter().filter(|name| name.starts_with("env:"));
        variables.filter_map(|name| self.value(name)).map(Secret::new).collect()
    }

    fn check(&self, name: &str) -> Result<(), FillError> {
        match name.strip_prefix("env:") {
            Some(variable) if !self.ours.contains_key(variable) => {
                Err(FillError::NotSet(variable.to_owned()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "port" => Some(self.port.to_string()),
            "name" => Some(self.name.clone()),
            _ => {
                let variable = name.strip_prefix("env:")?;
                self.ours.get(variable).map(|value| value.to_string_lossy().into_owned())
            }
        }
    }
}
