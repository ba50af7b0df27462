//! Keys and headers: read here, sent by the driver, stored nowhere.

use std::path::{Path, PathBuf};

use inferometer_load::target::Credentials;
use inferometer_model::spec::{ControlTable, Hook, TargetTable};
use inferometer_model::{Secret, SpecDraft, file};
use inferometer_target::deploy::secret;
use serde_json::Value;

use crate::failure::{Failure, Result};

/// What a server may ask for before it answers. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// What is sent with every request.
    pub credentials: Credentials,
    /// Whether there is a key among it.
    pub has_key: bool,
    /// The names of the headers; their values are stored nowhere.
    pub header_names: Vec<String>,
    /// Where the key was read, as the whole path; `None`: in the environment, or nowhere.
    pub key_file: Option<PathBuf>,
}

const KEY_VARIABLE: &str = "OPENAI_API_KEY";

impl Secrets {
    /// Reads the key from a file or the environment, and headers as they were typed.
    pub fn read(key_file: Option<&Path>, headers: &[String]) -> Result<Self> {
        let (key, source) = match key_file {
            Some(path) => {
                let flag = "--api-key-file";
                (Some(key_by(flag, path)?), format!("{flag} {}", path.display()))
            }
            None => (key_in_environment(KEY_VARIABLE)?, KEY_VARIABLE.to_owned()),
        };
        // The value is not repeated in the message: it may be a key.
        let header = |typed: &String| match typed.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), Secret::new(value.trim())))
            }
            _ => Err(Failure::usage("--header must be of the form \"Name: value\"")),
        };
        let headers = headers.iter().map(header).collect::<Result<_, _>>()?;
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
        Ok(Self { key_file: key_file.map(whole), ..Self::new(key, &source, headers)? })
    }

    /// The key in the file that a flag names now, and none from anywhere else.
    pub fn typed(flag: &str, key_file: Option<&Path>) -> Result<Self> {
        Self::new(key_file.map(|path| key_by(flag, path)).transpose()?, flag, Vec::new())
    }

    /// Hides what was typed into a spec or a command and is secret by its name or its form.
    pub fn hide_typed(&mut self, spec: &SpecDraft, restart: Option<&str>) {
        let TargetTable { metrics_path, metrics_url, server_info, .. } = &spec.target;
        let ControlTable { before_run, after_run, .. } = &spec.control;
        let hooks = before_run.iter().chain(after_run).flatten().map(Hook::text);
        let commands = restart.into_iter().chain(server_info.as_deref()).chain(hooks.clone());
        let mut found: Vec<String> = commands.flat_map(secret::typed_in_command).collect();
        let addresses = metrics_path.iter().chain(metrics_url.iter().flatten());
        let addresses = addresses.map(String::as_str).chain(hooks);
        found.extend(secret::typed(addresses.flat_map(|path| path.split(['?', '&']))));
        let body = spec.workload.body.extra.clone().unwrap_or_default();
        found.extend(secret::typed_in(&Value::Object(body)));
        let found: Vec<Secret> = found.into_iter().map(Secret::new).collect();
        self.credentials.hide(&found);
    }

    fn new(key: Option<String>, source: &str, headers: Vec<(String, Secret)>) -> Result<Self> {
        let key = key.map(Secret::new);
        Credentials::new(key.as_ref(), &[]).map_err(|_| {
            Failure::usage(format!("{source}: the key holds characters that no key can have"))
        })?;
        let credentials = Credentials::new(key.as_ref(), &headers)
            .map_err(|error| Failure::usage(format!("--header: {error}")))?;
        let header_names = headers.into_iter().map(|(name, _)| name).collect();
        Ok(Self { credentials, has_key: key.is_some(), header_names, key_file: None })
    }
}

/// A key out of an environment variable; one that is unset or empty holds none.
pub fn key_in_environment(variable: &str) -> Result<Option<String>> {
    match std::env::var(variable) {
        Ok(key) => Ok(Some(key.trim().to_owned()).filter(|key| !key.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("{variable} is not text")))
        }
    }
}

/// The key in the file that a flag names.
pub fn key_by(flag: &str, path: &Path) -> Result<String> {
    let unusable = |reason: String| Failure::usage(format!("{flag} {}: {reason}", path.display()));
    let text = file::read_text(path, 64 << 10).map_err(|error| unusable(error.to_string()))?;
    match text.trim() {
        "" => Err(unusable("is empty".to_owned())),
        key => Ok(key.to_owned()),
    }
}
