//! One layer of an experiment: a tree of values, and where each was written, for error messages. A key
//! of the upper layer wins; and where keys exclude each other, choosing one above drops its rivals
//! below, with all that belongs to them alone.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use inferometer_model::spec::SpecError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::schema::{self, Lists, flag};
use crate::failure::{Failure, Result};

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
    pub(super) fn checked(mut self, lists: Lists) -> Result<Self> {
        self.check_by(&schema::document(), lists)?;
        join_slos(&mut self.tree);
        Ok(self)
    }

    /// The same by another schema, such as that of a suite.
    pub(crate) fn check_by(&self, schema: &Value, lists: Lists) -> Result<()> {
        schema::check(&self.tree, schema, "", lists)
            .map_err(|(path, what)| self.origins.failure(&path, &what))
    }

    /// The experiment that stands inside of something larger, at these keys joined with dots.
    pub(crate) fn part(&self, path: &str) -> Self {
        let mut tree = at(&self.tree, path).cloned().unwrap_or_else(|| Map::new().into());
        join_slos(&mut tree);
        let inside = |(key, origin): (&String, &String)| {
            let key = key.strip_prefix(path)?.strip_prefix('.')?;
            Some((key.to_owned(), origin.clone()))
        };
        Self { tree, origins: Origins(self.origins.0.iter().filter_map(inside).collect()) }
    }

    /// One of its tables, and nothing else.
    pub(crate) fn only(&self, table: &str) -> Self {
        let mut only = self.clone();
        only.tree.as_object_mut().into_iter().for_each(|tree| tree.retain(|key, _| key == table));
        join_slos(&mut only.tree);
        only.origins.0.retain(|key, _| key.split('.').next() == Some(table));
        only
    }

    /// Puts another layer on top.
    pub(crate) fn lay(&mut self, above: Self) -> Result<()> {
        for group in ["loop", "levels", "source"] {
            drop_rivals(&mut self.tree, &above.tree, &RIVALS[group]);
        }
        // Where both ends are set above, `until` below still decides between them.
        if !["load.requests", "load.duration"].iter().all(|end| at(&above.tree, end).is_some()) {
            drop_rivals(&mut self.tree, &above.tree, &RIVALS["end"]);
        }
        // A list of SLOs is one value: `--slo` replaces the SLOs of the file.
        if at(&above.tree, "slo.slos").or_else(|| at(&above.tree, "slo.promises")).is_some() {
            remove(&mut self.tree, "slo");
        }
        drop_servers(&mut self.tree, &above.tree);
        // Parts of a mix may be named by their index before there are any.
        if at(&above.tree, "workload.mix").is_some_and(Value::is_object)
            && at(&self.tree, "workload.mix").is_none()
        {
            self.tree["workload"]["mix"] = Value::Array(Vec::new());
        }
        self.merge(above)
    }

    /// Puts another layer on top, key by key.
    pub(super) fn merge(&mut self, above: Self) -> Result<()> {
        merge(&mut self.tree, above.tree.clone(), "").map_err(Failure::usage)?;
        // What is not in the tree any more was dropped.
        let said_above = |path: &str| at(&above.tree, path).is_some_and(|value| !value.is_object());
        self.origins.0.retain(|path, _| at(&self.tree, path).is_some() && !said_above(path));
        self.origins.0.extend(above.origins.0);
        Ok(())
    }

    /// One table as its type; an absent one says nothing.
    pub(crate) fn table<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let nothing = Value::Object(Map::new());
        let mut keys = path.split_terminator('.');
        let value = keys.try_fold(&self.tree, |tree, key| tree.pointer(&format!("/{key}")));
        serde_path_to_error::deserialize(value.unwrap_or(&nothing)).map_err(|error| {
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
pub(super) fn join_slos(tree: &mut Value) {
    let Some(Value::Object(slos)) = tree.get_mut("slo") else { return };
    for (metric, limit) in std::mem::take(slos) {
        if let Value::Object(statistics) = limit {
            let name = |(statistic, limit)| (format!("{metric}.{statistic}"), limit);
            slos.extend(statistics.into_iter().map(name));
        } else {
            slos.insert(metric, limit);
        }
    }
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

/// Where values were written (`FILE:LINE` or `--set KEY`), by their keys joined with dots. Flags are
/// not in it: messages name them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(pub(super) BTreeMap<String, String>);

impl Origins {
    /// Whether a value was written in a file.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// A failure at a value, which names where it was written, or the nearest table around it.
    pub(crate) fn failure(&self, path: &str, what: &str) -> Failure {
        let mut around = Some(path);
        while let Some(path) = around {
            if let Some(origin) = self.0.get(path) {
                return Failure::usage(format!("{origin}: {what}"));
            }
            around = path.rsplit_once('.').map(|(above, _)| above);
        }
        Failure::usage(what)
    }

    /// Messages name flags; a hint adds where the file sets them.
    pub(crate) fn explain(&self, error: &SpecError) -> Failure {
        let message = error.to_string();
        let words: Vec<&str> =
            message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
        let is_meant = |path: &str| flag(path).is_some_and(|flag| words.contains(&flag.as_str()));
        let places = self.0.iter().filter(|(path, _)| is_meant(path));
        let places: Vec<String> =
            places.map(|(path, origin)| format!("`{path}` is set at {origin}")).collect();
        let failure = Failure::from_usage(error);
        if places.is_empty() { failure } else { failure.hint(places.join(", ")) }
    }
}

/// Keys that exclude each other, each with the keys that go with it: a group of `rivals.toml`.
type Rivals = BTreeMap<String, String>;

static RIVALS: LazyLock<BTreeMap<String, Rivals>> = LazyLock::new(|| {
    toml::from_str(include_str!("rivals.toml")).expect("a test reads the embedded table")
});

/// A URL, the embedded engine and a deployment exclude each other: naming one drops the others.
fn drop_servers(below: &mut Value, above: &Value) {
    let is_deployed = RIVALS["deployments"].keys().any(|key| at(above, key).is_some());
    if is_deployed && at(above, "deploy.kind").is_none() {
        remove(below, "deploy.kind");
    }
    drop_rivals(below, above, &RIVALS["deployments"]);
    let is_named = |server: &str| match server {
        "deploy" => is_deployed,
        server => at(above, server).is_some(),
    };
    let servers = ["target.url", "engine", "deploy"];
    for chosen in servers.into_iter().filter(|server| is_named(server)) {
        servers.iter().filter(|rival| **rival != chosen).for_each(|rival| remove(below, rival));
    }
}

fn drop_rivals(below: &mut Value, above: &Value, group: &'static Rivals) {
    let keys = |(choice, with): (&'static String, &'static String)| {
        [choice.as_str()].into_iter().chain(with.split_whitespace())
    };
    let chosen = group.iter().filter(|(key, _)| at(above, key).is_some());
    let stays: Vec<&str> = chosen.flat_map(keys).collect();
    if !stays.is_empty() {
        let dropped = group.iter().flat_map(keys).filter(|key| !stays.contains(key));
        dropped.for_each(|key| remove(below, key));
    }
}

pub(super) fn at<'tree>(tree: &'tree Value, path: &str) -> Option<&'tree Value> {
    let child = |key: &str| match tree.as_array() {
        Some(items) => items.get(key.parse::<usize>().ok()?),
        None => tree.get(key),
    };
    // A key may contain a dot: the SLO `ttft.p99`.
    child(path).or_else(|| {
        let (key, rest) = path.split_once('.')?;
        at(child(key)?, rest)
    })
}

fn remove(tree: &mut Value, path: &str) {
    let (table, key) = match path.split_once('.') {
        Some((table, key)) => (tree.get_mut(table), key),
        None => (Some(tree), path),
    };
    if let Some(table) = table.and_then(Value::as_object_mut) {
        table.remove(key);
    }
}

fn merge(below: &mut Value, above: Value, path: &str) -> Result<(), String> {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                match below.get_mut(&key) {
                    Some(under) => merge(under, value, &format!("{path}{key}."))?,
                    None => drop(below.insert(key, value)),
                }
            }
        }
        // `mix.0.weight`: parts of a list by their index, the one after the last included.
        (Value::Array(below), Value::Object(above)) => {
            for (place, value) in above {
                let count = below.len();
                let Some(at) = place.parse::<usize>().ok().filter(|place| *place <= count) else {
                    return Err(format!("--set {path}{place}: write a number from 0 to {count}"));
                };
                if at == count {
                    below.push(Value::Object(Map::new()));
                }
                merge(&mut below[at], value, &format!("{path}{place}."))?;
            }
        }
        (below, above) => *below = above,
    }
    Ok(())
}
