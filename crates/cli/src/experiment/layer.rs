//! One layer of an experiment: a tree of values, and where each was written, for error messages.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use inferometer_model::spec::SpecError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::check::{self, Lists};
use super::overlay;
use super::schema::flag;
use crate::failure::Failure;

#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) tree: Value,
    pub(crate) origins: Origins,
}

impl Default for Layer {
    fn default() -> Self {
        Self { tree: Value::Object(Map::new()), origins: Origins::default() }
    }
}

impl Layer {
    /// Refuses what the schema does not know.
    pub(super) fn checked(mut self, lists: Lists) -> Result<Self, Failure> {
        self.check_by(&super::schema::document(), lists)?;
        join_promises(&mut self.tree);
        Ok(self)
    }

    /// The same by another schema, such as that of a suite.
    pub(crate) fn check_by(&self, schema: &Value, lists: Lists) -> Result<(), Failure> {
        check::check(&self.tree, schema, lists)
            .map_err(|wrong| self.origins.failure(&wrong.path, &wrong.what))
    }

    /// The experiment that stands inside of something larger, at these keys joined with dots.
    pub(crate) fn part(&self, path: &str) -> Self {
        let tree = overlay::at(&self.tree, path).cloned();
        let mut tree = tree.unwrap_or_else(|| Value::Object(Map::new()));
        join_promises(&mut tree);
        Self { tree, origins: self.origins.below(path) }
    }

    /// One of its tables, and nothing else.
    pub(crate) fn only(&self, table: &str) -> Self {
        let mut tree = Map::new();
        tree.extend(self.tree.get(table).map(|value| (table.to_owned(), value.clone())));
        let mut tree = Value::Object(tree);
        join_promises(&mut tree);
        Self { tree, origins: self.origins.only(table) }
    }

    /// Puts another layer on top.
    pub(crate) fn lay(&mut self, above: Self) -> Result<(), Failure> {
        overlay::lay(&mut self.tree, above.tree.clone()).map_err(Failure::usage)?;
        self.origins.lay(&self.tree, &above.tree, above.origins);
        Ok(())
    }

    /// One table as its type; an absent one says nothing.
    pub(crate) fn table<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let nothing = Value::Object(Map::new());
        let mut keys = path.split_terminator('.');
        let value = keys.try_fold(&self.tree, |tree, key| tree.pointer(&format!("/{key}")));
        let value = value.unwrap_or(&nothing);
        serde_path_to_error::deserialize(value).map_err(|error| {
            let keys = error.path().iter().filter_map(|segment| match segment {
                Segment::Map { key } => Some(key.clone()),
                Segment::Seq { index } => Some(index.to_string()),
                Segment::Enum { .. } | Segment::Unknown => None,
            });
            let above = path.split_terminator('.').map(str::to_owned);
            let path = above.chain(keys).collect::<Vec<_>>().join(".");
            self.origins.failure(&path, &format!("`{path}`: {}", error.inner()))
        })
    }
}

/// `ttft.p99 = "1s"` is the SLO "ttft.p99", however it was written, and not one on "ttft".
fn join_promises(tree: &mut Value) {
    let Some(Value::Object(promises)) = tree.get_mut("slo") else { return };
    let mut joined = Map::new();
    for (metric, limit) in std::mem::take(promises) {
        if let Value::Object(statistics) = limit {
            let name = |(statistic, limit)| (format!("{metric}.{statistic}"), limit);
            joined.extend(statistics.into_iter().map(name));
        } else {
            joined.insert(metric, limit);
        }
    }
    *promises = joined;
}

/// Takes out what says nothing: flags that were not typed.
pub(super) fn prune(tree: &mut Value) {
    let Value::Object(table) = tree else { return };
    // A null in the extra fields of a body is sent as one.
    table.iter_mut().filter(|(key, _)| *key != "extra").for_each(|(_, value)| prune(value));
    let says_nothing =
        |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    table.retain(|_, value| !says_nothing(value));
}

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

    /// Messages name flags; a hint adds where the file sets them.
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
        let said_above =
            |path: &str| overlay::at(above, path).is_some_and(|value| !value.is_object());
        self.0.retain(|path, _| overlay::at(tree, path).is_some() && !said_above(path));
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
