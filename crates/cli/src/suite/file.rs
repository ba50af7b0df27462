//! A suite as it is written: TOML, with the tables of an experiment inside.

use std::path::Path;

use inferometer_model::campaign::{Order, Prompts};
use serde_json::Value;

use super::schema;
use crate::arguments::Grammar;
use crate::experiment::{self, Layer, Lists, nearest};
use crate::failure::Failure;

/// A limit against mistakes.
const SCENARIOS_MAX: usize = 200;
/// What a table of results has room for.
const NAME_CHARS_MAX: usize = 80;

#[derive(Clone, Debug)]
pub(super) struct SuiteFile {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) prompts: Prompts,
    pub(super) order: Order,
    pub(super) scenarios: Vec<ScenarioFile>,
}

#[derive(Clone, Debug)]
pub(super) struct ScenarioFile {
    pub(super) name: String,
    /// Its name, unless the file has another.
    pub(super) category: String,
    pub(super) purpose: String,
    /// What it asks, over the defaults of the suite.
    pub(super) layer: Layer,
}

impl SuiteFile {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        Self::parse(path, &experiment::file::text(path, "suite")?)
    }

    /// `path` is where it was read, and where files that it names are looked for.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let whole = experiment::file::parse(path, text)
            .map_err(|failure| strange_table(path, text).unwrap_or(failure))?;
        refuse_seeds(&whole)?;
        whole.check_by(&schema::document(), Lists::InOrder)?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = text_at(&whole.tree, "name").or(stem).unwrap_or_default();
        let scenarios = scenarios(&whole, path)?;
        check_names(&whole, &scenarios)?;
        Ok(Self {
            title: text_at(&whole.tree, "title").unwrap_or_else(|| name.clone()),
            name,
            description: text_at(&whole.tree, "description").unwrap_or_default(),
            prompts: named_at(&whole.tree, "prompts").unwrap_or(Prompts::Fresh),
            order: named_at(&whole.tree, "order").unwrap_or(Order::Listed),
            scenarios,
        })
    }
}

/// A misspelt table that occurs twice is no valid TOML either, but the misspelling is the error to
/// report.
fn strange_table(path: &Path, text: &str) -> Option<Failure> {
    let schema = schema::document();
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

/// The schema has seen to it that it is text.
fn text_at(table: &Value, key: &str) -> Option<String> {
    table.get(key)?.as_str().map(str::to_owned).filter(|text| !text.trim().is_empty())
}

fn named_at<T: Grammar>(table: &Value, key: &str) -> Option<T> {
    T::read(table.get(key)?.as_str()?).ok()
}

/// The schema does not know them, but there is more to say than that.
fn refuse_seeds(whole: &Layer) -> Result<(), Failure> {
    let places = (0..count(whole)).map(|place| format!("scenario.{place}"));
    for table in places.chain(["defaults".to_owned()]) {
        let said = whole.tree.pointer(&format!("/{}/workload", table.replace('.', "/")));
        for (key, why) in [
            ("seed", "a suite has one seed for all of its scenarios: give it with --seed"),
            ("plan", "a saved plan has its own seed and load, and no place in a suite"),
        ] {
            if said.and_then(|workload| workload.get(key)).is_some() {
                return Err(whole.origins.failure(&format!("{table}.workload.{key}"), why));
            }
        }
    }
    Ok(())
}

fn count(whole: &Layer) -> usize {
    whole.tree.get("scenario").and_then(Value::as_array).map_or(0, Vec::len)
}

fn scenarios(whole: &Layer, path: &Path) -> Result<Vec<ScenarioFile>, Failure> {
    let count = count(whole);
    if count == 0 {
        return Err(Failure::usage(format!("suite {}: it has no scenarios", path.display()))
            .hint("write each as [[scenario]]; inferometer suite --show standard is an example"));
    }
    if SCENARIOS_MAX < count {
        return Err(Failure::usage(format!(
            "suite {}: {count} scenarios are more than {SCENARIOS_MAX}",
            path.display()
        )));
    }
    let mut defaults = whole.part("defaults");
    defaults.lay(whole.only("repeat"))?;
    defaults.find_files_beside(path);
    (0..count).map(|place| scenario(whole, &defaults, place, path)).collect()
}

fn scenario(
    whole: &Layer,
    defaults: &Layer,
    place: usize,
    path: &Path,
) -> Result<ScenarioFile, Failure> {
    let at = format!("scenario.{place}");
    let mut own = whole.part(&at);
    let said = |key: &str, what: &str| {
        text_at(&own.tree, key).ok_or_else(|| {
            let number = place + 1;
            whole.origins.failure(&at, &format!("scenario {number} has no `{key}`: {what}"))
        })
    };
    let name = said("name", "what it is called in tables, such as \"Single user\"")?;
    let purpose = said("purpose", "what it shows, in one line")?;
    let category = text_at(&own.tree, "category").unwrap_or_else(|| name.clone());
    if let Some(tables) = own.tree.as_object_mut() {
        tables.retain(|_, table| table.is_object());
    }
    own.find_files_beside(path);
    check_levels(&own)?;
    let mut layer = defaults.clone();
    layer.lay(own)?;
    Ok(ScenarioFile { name, category, purpose, layer })
}

/// Several numbers in flight, and yet another, would be two loads.
fn check_levels(own: &Layer) -> Result<(), Failure> {
    let has_levels = own.tree.pointer("/sweep/concurrencies").is_some();
    let load = own.tree.get("load");
    let rival = ["concurrency", "rate", "ramp"]
        .into_iter()
        .find(|key| load.and_then(|load| load.get(key)).is_some());
    match rival.filter(|_| has_levels) {
        None => Ok(()),
        Some(key) => Err(own.origins.failure(
            &format!("load.{key}"),
            &format!("`load.{key}` and `sweep.concurrencies` are two loads; choose one of them"),
        )),
    }
}

/// Names must differ as they do in the names of sections and files.
fn check_names(whole: &Layer, scenarios: &[ScenarioFile]) -> Result<(), Failure> {
    for (place, ScenarioFile { name, .. }) in scenarios.iter().enumerate() {
        let refused =
            |what: &str| Err(whole.origins.failure(&format!("scenario.{place}.name"), what));
        if NAME_CHARS_MAX < name.chars().count() || name.chars().any(char::is_control) {
            return refused(&format!(
                "the name of a scenario is one line of at most {NAME_CHARS_MAX} characters"
            ));
        }
        let is_alike = |other: &ScenarioFile| plain(&other.name) == plain(name);
        if let Some(other) = scenarios[..place].iter().position(is_alike) {
            let number = other + 1;
            return refused(&format!("`{name}` is the name of scenario {number} already"));
        }
    }
    Ok(())
}

fn plain(name: &str) -> Vec<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
