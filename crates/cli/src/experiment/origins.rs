//! Where values were written: for errors that come after the file was read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use inferometer_model::spec::SpecError;
use serde_json::Value;

use super::overlay::at;
use super::schema::flag;
use crate::failure::Failure;

/// By the path of the value, its keys joined with dots. Flags are not in it: messages name them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(BTreeMap<String, Origin>);

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Line { file: PathBuf, line: usize },
    Set(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Set(typed) => write!(f, "--set {typed}"),
        }
    }
}

impl FromIterator<(String, Origin)> for Origins {
    fn from_iter<T: IntoIterator<Item = (String, Origin)>>(origins: T) -> Self {
        Self(origins.into_iter().collect())
    }
}

impl Origins {
    /// A failure at a value, which names where it was written.
    pub(crate) fn failure(&self, path: &str, what: &str) -> Failure {
        match self.find(path) {
            Some(origin) => Failure::usage(format!("{origin}: {what}")),
            None => Failure::usage(what),
        }
    }

    /// A refusal speaks of flags; whoever wrote a file is told where it says so.
    pub(crate) fn explain(&self, error: &SpecError) -> Failure {
        let message = error.to_string();
        let words: Vec<&str> = message
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|word| word.starts_with("--"))
            .collect();
        let says = |(path, origin): (&String, &Origin)| {
            let is_meant = flag(path).is_some_and(|flag| words.contains(&flag.as_str()));
            is_meant.then(|| format!("`{path}` is set at {origin}"))
        };
        let places: Vec<String> = self.0.iter().filter_map(says).collect();
        match &places[..] {
            [] => Failure::usage(message),
            places => Failure::usage(message).hint(places.join(", ")),
        }
    }

    /// Takes in another layer. `tree` is what both came to: what is not in it any more was dropped.
    pub(super) fn lay(&mut self, tree: &Value, above: &Value, origins: Self) {
        let said_above = |path: &str| at(above, path).is_some_and(|value| !value.is_object());
        self.0.retain(|path, _| at(tree, path).is_some() && !said_above(path));
        self.0.extend(origins.0);
    }

    /// Those of one table, by their paths inside of it.
    pub(super) fn below(&self, path: &str) -> Self {
        let inside = |(key, origin): (&String, &Origin)| {
            let key = key.strip_prefix(path)?.strip_prefix('.')?;
            Some((key.to_owned(), origin.clone()))
        };
        self.0.iter().filter_map(inside).collect()
    }

    /// Those of one table, by their whole paths.
    pub(super) fn only(&self, table: &str) -> Self {
        let is_inside = |key: &str| key.split('.').next() == Some(table);
        let origins = self.0.iter().filter(|(key, _)| is_inside(key));
        Self(origins.map(|(key, origin)| (key.clone(), origin.clone())).collect())
    }

    /// Where a value was written, or the nearest table around it.
    fn find(&self, path: &str) -> Option<&Origin> {
        let mut path = path;
        loop {
            if let Some(origin) = self.0.get(path) {
                return Some(origin);
            }
            path = path.rsplit_once('.')?.0;
        }
    }
}
