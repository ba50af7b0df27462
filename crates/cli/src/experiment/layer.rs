//! One layer of what was said: a tree of values, and where each was written.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::check::{self, Lists};
use super::origins::Origins;
use super::overlay;
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
        let pointer: String = path.split_terminator('.').map(|key| format!("/{key}")).collect();
        let value = self.tree.pointer(&pointer).unwrap_or(&nothing);
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

/// `ttft.p99 = "1s"` is the promise "ttft.p99", however it was written, and not one of "ttft".
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
