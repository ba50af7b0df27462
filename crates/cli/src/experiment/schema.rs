//! The JSON Schema of the experiment file, from the types that read it, and the check of a tree against
//! it: unknown keys, wrong kinds of values, numbers out of their range.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::arguments::Experiment;

/// The schema of the experiment file.
pub(crate) fn document() -> Value {
    document_of::<Experiment>()
}

/// Nothing in it refers elsewhere, so that a walk over it is a plain recursion.
pub(crate) fn document_of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut document = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut document);
    document
}

/// The schema of a value that has a grammar of its own.
pub(crate) fn embedded(name: &str) -> Schema {
    static SCHEMAS: LazyLock<BTreeMap<String, Schema>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("schemas.json")).expect("a test reads the embedded table")
    });
    SCHEMAS[name].clone()
}

/// An option that is not set is absent, never null; nothing is required; what is not named is not
/// allowed.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            if let Some(Value::Array(types)) = keys.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = &types[..] {
                    keys["type"] = only.clone();
                }
            }
            if let Some(Value::Array(names)) = keys.get_mut("enum") {
                names.retain(|name| !name.is_null());
            }
            if let Some(Value::String(words)) = keys.get_mut("description") {
                *words = words.replace('\n', " ");
            }
            keys.remove("format");
            if keys.contains_key("type") {
                keys.remove("default");
            }
            if keys.get("properties").is_some_and(Value::is_object) {
                keys.remove("required");
                keys.entry("additionalProperties").or_insert(false.into());
            }
            keys.values_mut().for_each(simplify);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schemas of a table's keys.
pub(super) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// The flag that sets a key, by a rule: the key in the manner of flags, and a few that would say
/// too little without their table. What has no flag of its own is within the reach of `--set`.
pub(crate) fn flag(path: &str) -> Option<String> {
    let name = match path.split('.').collect::<Vec<_>>()[..] {
        ["limits", limit] => &format!("{limit}-timeout"),
        // The target, the load and the plan have such keys as well.
        ["engine", key @ ("model" | "seed" | "speed" | "step")] => &format!("engine-{key}"),
        ["deploy", "command"] => "serve",
        ["deploy", "pass"] => "serve-env",
        ["deploy", key @ ("ready_timeout" | "stop_grace" | "renew")] => key,
        ["slo", "slos"] => "slo",
        // A container and commands are described in a file, as are SLOs by their metrics.
        ["target", "url"]
        | ["workload", "mix" | "body" | "agent"]
        | ["metadata" | "deploy" | "slo" | "slurm" | "kubernetes", _] => {
            return None;
        }
        ["client", "cores"] => "client-cores",
        ["repeat", "runs"] => "repeat",
        ["sweep", "targets"] => "target",
        ["workload", "agent", key] => &format!("agent-{key}"),
        ["workload", "body", "extra"] => "extra-body",
        ["workload", "body", key] | [_, key] => key,
        _ => return None,
    };
    Some(format!("--{}", name.replace('_', "-")))
}

/// The range of a flag's value in words, where its key has a least value: `from 1 to 1000`.
pub(crate) fn range_of_flag(name: &str) -> Option<String> {
    let document = document();
    let mut tables = properties(&document)?.iter().filter_map(|(table, schema)| {
        let mut keys = properties(schema)?.iter();
        keys.find(|(key, _)| flag(&join(table, key)).as_deref() == Some(name))
    });
    let (_, schema) = tables.next()?;
    let least = schema.get("minimum")?;
    let most = schema.get("maximum").map(|most| format!("from {least} to {most}"));
    Some(most.unwrap_or_else(|| format!("at least {least}")))
}

/// Fails with the key that is wrong, and what is wrong with it.
type Checked = Result<(), (String, String)>;

/// How the parts of a list may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lists {
    InOrder,
    /// Or as `--set` names them, by their index.
    ByPlace,
}

/// Checks the value at a path against its schema.
pub(super) fn check(value: &Value, schema: &Value, path: &str, lists: Lists) -> Checked {
    let kinds = kinds(schema);
    if let Some(table) = value.as_object().filter(|_| kinds.contains(&"object")) {
        return check_table(table, schema, path, lists);
    }
    if kinds.contains(&"array")
        && let Some(items) = items(value, lists)
    {
        let Some(of) = schema.get("items") else { return Ok(()) };
        let check = |(place, item): (String, _)| check(item, of, &join(path, &place), lists);
        return items.into_iter().try_for_each(check);
    }
    let known = || KINDS.iter().filter(|(kind, ..)| kinds.contains(kind));
    let what = if kinds.is_empty() || known().any(|(_, _, is_of)| is_of(value)) {
        unfit(value, schema)
    } else {
        let wanted = kinds.iter().filter_map(|kind| KINDS.iter().find(|(name, ..)| name == kind));
        let wanted: Vec<&str> = wanted.map(|(_, words, _)| *words).collect();
        let remedy = remedy(value, schema, path);
        Some(format!("must be {}, not {}{remedy}", wanted.join(" or "), found(value)))
    };
    what.map_or(Ok(()), |what| Err((path.to_owned(), format!("`{path}` {what}"))))
}

pub(super) fn join(above: &str, key: &str) -> String {
    if above.is_empty() { key.to_owned() } else { format!("{above}.{key}") }
}

type Kind = (&'static str, &'static str, fn(&Value) -> bool);

/// The JSON types, what people call them, and which values they have.
const KINDS: [Kind; 6] = [
    ("string", "text", Value::is_string),
    ("integer", "a whole number", |value| value.is_i64() || value.is_u64()),
    ("number", "a number", Value::is_number),
    ("boolean", "true or false", Value::is_boolean),
    ("array", "a list", Value::is_array),
    ("object", "a table", Value::is_object),
];

/// The JSON types that a schema allows; none is any.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn found(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text \"{text}\""),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// How to write what was meant, where TOML reads another thing in it.
fn remedy(value: &Value, schema: &Value, path: &str) -> String {
    if !value.is_object() {
        return String::new();
    }
    if schema.get("items").and_then(properties).is_some() {
        return format!("; write [[{path}]]");
    }
    // An SLO has one key, which may contain dots.
    let Some(slo) = path.strip_prefix("slo.") else { return String::new() };
    let (mut key, mut value) = (slo.to_owned(), value);
    while let Some((below, inner)) = value.as_object().and_then(|table| table.iter().next()) {
        key = join(&key, below);
        value = inner;
    }
    format!("; quote the key: \"{key}\" = …")
}

/// The parts of a list with their places.
fn items(value: &Value, lists: Lists) -> Option<Vec<(String, &Value)>> {
    if let Some(items) = value.as_array() {
        return Some((0..).map(|place: usize| place.to_string()).zip(items).collect());
    }
    let parts = value.as_object().filter(|parts| lists == Lists::ByPlace && !parts.is_empty())?;
    let by_place = parts.keys().all(|key| key.parse::<usize>().is_ok());
    by_place.then(|| parts.iter().map(|(place, item)| (place.clone(), item)).collect())
}

fn check_table(table: &Map<String, Value>, schema: &Value, path: &str, lists: Lists) -> Checked {
    let known = properties(schema);
    for (key, value) in table {
        let at = join(path, key);
        match (known.and_then(|known| known.get(key)), schema.get("additionalProperties")) {
            (Some(schema), _) => check(value, schema, &at, lists)?,
            (None, Some(Value::Bool(false))) => {
                return Err((at, unknown(key, path, known)));
            }
            (None, Some(others @ Value::Object(_))) => check(value, others, &at, lists)?,
            (None, _) => {}
        }
    }
    Ok(())
}

fn unknown(key: &str, path: &str, known: Option<&Map<String, Value>>) -> String {
    // An experiment file has nothing but tables at its top.
    let has_tables = known.is_some_and(|known| known.values().all(|it| kinds(it) == ["object"]));
    // `concurrency` for `load.concurrency`.
    let mut tables = known.filter(|_| path.is_empty()).into_iter().flatten();
    let inside = tables.find(|(_, table)| properties(table).is_some_and(|it| it.contains_key(key)));
    let known: Vec<&str> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let place = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
    let kind = if path.is_empty() && has_tables { "table" } else { "key" };
    let inside = inside.map(|(table, _)| format!("{table}.{key}"));
    match inside.as_deref().or_else(|| nearest(key, &known)) {
        Some(near) => format!("unknown {kind} `{key}`{place}; did you mean `{near}`?"),
        None => format!("unknown {kind} `{key}`{place}; known are {}", known.join(", ")),
    }
}

/// Similar enough to be a typing error.
const LIKENESS_MIN: f64 = 0.75;

/// The known name that was most likely meant.
pub(crate) fn nearest<'name>(key: &str, known: &[&'name str]) -> Option<&'name str> {
    // People write the flag's form, or capitals.
    let key = key.replace('-', "_").to_ascii_lowercase();
    let likeness = |name: &str| {
        let edits = strsim::normalized_damerau_levenshtein(&key, name);
        edits.max(strsim::jaro_winkler(&key, name) - 0.1)
    };
    let nearest =
        known.iter().map(|name| (likeness(name), *name)).max_by(|a, b| a.0.total_cmp(&b.0));
    nearest.filter(|(likeness, _)| LIKENESS_MIN <= *likeness).map(|(_, name)| name)
}

/// Why a value of the right kind is refused all the same.
fn unfit(value: &Value, schema: &Value) -> Option<String> {
    if let Some(names) = schema.get("enum").and_then(Value::as_array)
        && !names.contains(value)
    {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        return Some(format!("must be one of {}, not {}", names.join(", "), found(value)));
    }
    let number = value.as_f64()?;
    let bounds = [("minimum", "at least"), ("exclusiveMinimum", "above"), ("maximum", "at most")];
    bounds.into_iter().find_map(|(key, words)| {
        let bound = schema.get(key)?.as_f64()?;
        let is_out = match key {
            "minimum" => number < bound,
            "maximum" => bound < number,
            _ => number <= bound,
        };
        is_out.then(|| format!("must be {words} {bound}, not {value}"))
    })
}
