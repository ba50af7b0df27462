//! What the files of suites and of matrices have in common: they come with the program or are written
//! by the user, they are TOML with the tables of an experiment inside, and a schema describes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use inferometer_report::document::{Cell, Columns, terminal};
use inferometer_report::fmt::{NOTHING, count};
use inferometer_report::terminal::Style;
use serde_json::{Value, json};

use crate::arguments::PageFormat;
use crate::experiment::{self, Layer, Lists, nearest};
use crate::failure::{Failure, Result};

/// What a table of results has room for.
const NAME_CHARS_MAX: usize = 80;
/// Digits of a hash that identify a suite.
pub(crate) const HASH_PREFIX: usize = 12;

/// The files of one kind of study that come with the program.
pub(crate) struct BuiltIns {
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    /// The one that is measured if none is named.
    pub(crate) default: &'static str,
    /// Names and texts, in the order in which they are listed.
    pub(crate) files: &'static [(&'static str, &'static str)],
}

impl BuiltIns {
    pub(crate) fn find(&self, name: &str) -> Option<&'static str> {
        self.files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The text of a built-in file, as a beginning for one's own.
    pub(crate) fn show(&self, name: &str) -> Result<&'static str> {
        self.find(name).ok_or_else(|| self.unknown(name))
    }

    /// A built-in file by its name, or a file of the user's: its path for messages, and its text.
    pub(super) fn open(&self, name: &str) -> Result<(PathBuf, String)> {
        match self.find(name) {
            Some(text) => Ok((format!("{name}.toml (built in)").into(), text.to_owned())),
            None if experiment::is_file(name) => {
                Ok((name.into(), experiment::file::text(Path::new(name), self.kind)?))
            }
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Failure {
        let Self { kind, default, .. } = self;
        let known: Vec<&str> = self.files.iter().map(|(name, _)| *name).collect();
        let near = nearest(name, &known).map(|near| format!("did you mean `{near}`?"));
        let near = near.unwrap_or_else(|| format!("built in are {}", known.join(", ")));
        Failure::usage(format!("no {kind} is called `{name}`; {near}")).hint(format!(
            "a {kind} of your own is a file: inferometer {kind} --show {default} > mine.toml"
        ))
    }

    /// `--list`: the rows as a JSON document, or some of their keys as the columns of a table, each
    /// with its title.
    pub(super) fn list(
        &self,
        format: PageFormat,
        rows: &[Value],
        columns: &[(&'static str, &'static str)],
    ) -> String {
        if format == PageFormat::Json {
            let schema = format!("inferometer.{}/1", self.plural);
            return format!("{:#}\n", json!({ "schema": schema, self.plural: rows }));
        }
        let mut table = Columns::new(self.kind, |row: &&Value| cell(row, "name"));
        for &(title, key) in columns {
            let get = move |row: &&Value| cell(row, key);
            let is_text = rows.first().is_some_and(|row| row[key].is_string());
            table = if is_text { table.left(title, get) } else { table.right(title, get) };
        }
        terminal::table(&table.table("", "", rows), Style::Plain)
    }
}

fn cell(row: &Value, key: &str) -> Cell {
    let value = &row[key];
    Cell::text(match (value.as_str(), value.as_array()) {
        (Some(hash), _) if key == "hash" => hash[..HASH_PREFIX].to_owned(),
        (Some(text), _) => text.to_owned(),
        (None, Some(items)) => items.len().to_string(),
        (None, None) => value.as_u64().map_or_else(|| NOTHING.to_owned(), count),
    })
}

/// The tree of a file, checked by its schema. `refuse` comes first: of some keys that the schema does
/// not know there is more to say than that.
pub(super) fn parse(
    path: &Path,
    text: &str,
    schema: &Value,
    refuse: impl Fn(&Layer) -> Result<()>,
) -> Result<Layer> {
    let whole = experiment::file::parse(path, text)
        .map_err(|failure| misspelt_table(path, text, schema).unwrap_or(failure))?;
    refuse(&whole)?;
    whole.check_by(schema, Lists::InOrder)?;
    Ok(whole)
}

/// A misspelt table that occurs twice is no valid TOML either, but the misspelling is the error to
/// report.
fn misspelt_table(path: &Path, text: &str, schema: &Value) -> Option<Failure> {
    let known: Vec<&str> = schema["properties"].as_object()?.keys().map(String::as_str).collect();
    text.lines().zip(1..).find_map(|(line, number): (&str, usize)| {
        let header = line.trim().trim_start_matches('[');
        let name = header.split(['.', ']']).next()?.trim();
        let is_header = header.len() < line.trim().len() && !known.contains(&name);
        let near = nearest(name, &known).filter(|_| is_header)?;
        let place = path.display();
        Some(Failure::usage(format!(
            "{place}:{number}: unknown key `{name}`; did you mean `{near}`?"
        )))
    })
}

/// The keys that do not belong in a file of some kind, each with the reason.
static REFUSED: LazyLock<BTreeMap<String, Vec<(String, String)>>> = LazyLock::new(|| {
    toml::from_str(include_str!("refused.toml")).expect("a test reads the embedded table")
});

/// Refuses the first of the keys of a list in `refused.toml` that the table has.
pub(super) fn refuse_keys(whole: &Layer, table: &str, list: &str) -> Result<()> {
    for (key, why) in &REFUSED[list] {
        let path = format!("{table}{key}");
        if whole.tree.pointer(&format!("/{}", path.replace('.', "/"))).is_some() {
            return Err(whole.origins.failure(&path, why));
        }
    }
    Ok(())
}

/// Refuses another load beside a list of them.
pub(super) fn check_one_load(layer: &Layer, levels: &str) -> Result<()> {
    let has_levels = layer.tree.pointer(&format!("/{}", levels.replace('.', "/"))).is_some();
    let rival = ["concurrency", "rate", "ramp"]
        .into_iter()
        .find(|key| has_levels && layer.tree.get("load").and_then(|load| load.get(key)).is_some());
    let Some(key) = rival else { return Ok(()) };
    let what = format!("`load.{key}` and `{levels}` are two loads; choose one of them");
    Err(layer.origins.failure(&format!("load.{key}"), &what))
}

pub(super) fn count_tables(whole: &Layer, list: &str) -> usize {
    whole.tree.get(list).and_then(Value::as_array).map_or(0, Vec::len)
}

/// The names of a list of tables: each has one, and no two are alike.
pub(super) fn read_names(
    whole: &Layer,
    list: &str,
    what: &str,
    are_alike: impl Fn(&str, &str) -> bool,
) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for place in 0..count_tables(whole, list) {
        let name = whole.tree.pointer(&format!("/{list}/{place}/name")).and_then(Value::as_str);
        let Some(name) = name.filter(|name| !name.trim().is_empty()) else {
            let what = format!("{list} {} has no `name`: {what}", place + 1);
            return Err(whole.origins.failure(&format!("{list}.{place}"), &what));
        };
        let at = format!("{list}.{place}.name");
        check_name(whole, &at, name)?;
        if let Some(other) = names.iter().position(|other| are_alike(other, name)) {
            let what = format!("`{name}` is the name of {list} {} already", other + 1);
            return Err(whole.origins.failure(&at, &what));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

pub(super) fn check_name(whole: &Layer, at: &str, name: &str) -> Result<()> {
    if name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let what = format!("a name is one line of at most {NAME_CHARS_MAX} characters");
    Err(whole.origins.failure(at, &what))
}

/// Takes keys out of the schema of a table.
pub(super) fn without_keys(table: &mut Value, keys: &[&str]) {
    if let Some(properties) = table["properties"].as_object_mut() {
        properties.retain(|key, _| !keys.contains(&key.as_str()));
    }
}
