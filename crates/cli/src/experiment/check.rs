//! A tree against the schema: unknown keys, wrong kinds of values, numbers out of their range.

use serde_json::{Map, Value};

use super::schema::properties;

/// What is wrong, and at which key.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) path: String,
    pub(super) what: String,
}

/// How the parts of a list may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lists {
    InOrder,
    /// Or as `--set` names them, by their place alone.
    ByPlace,
}

pub(super) fn check(tree: &Value, schema: &Value, lists: Lists) -> Result<(), Wrong> {
    check_value(tree, schema, "", lists)
}

fn check_value(value: &Value, schema: &Value, path: &str, lists: Lists) -> Result<(), Wrong> {
    let kinds = kinds(schema);
    let is = |kind: &str| kinds.contains(&kind);
    if let Some(table) = value.as_object().filter(|_| is("object")) {
        return check_table(table, schema, path, lists);
    }
    if is("array")
        && let Some(items) = items(value, lists)
    {
        let Some(of) = schema.get("items") else { return Ok(()) };
        let check = |(place, item)| check_value(item, of, &format!("{path}.{place}"), lists);
        return items.into_iter().try_for_each(check);
    }
    let what = if kinds.is_empty() || kinds.iter().any(|kind| is_of(value, kind)) {
        unfit(value, schema)
    } else {
        let wanted: Vec<&str> = kinds.iter().map(|kind| words(kind)).collect();
        let remedy = remedy(value, schema, path);
        Some(format!("must be {}, not {}{remedy}", wanted.join(" or "), found(value)))
    };
    match what {
        Some(what) => Err(Wrong { path: path.to_owned(), what: format!("`{path}` {what}") }),
        None => Ok(()),
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
    match path.strip_prefix("slo.") {
        // An SLO has one key, which may contain dots.
        Some(promise) => format!("; quote the key: \"{}\" = …", whole_key(promise, value)),
        None => String::new(),
    }
}

fn whole_key(above: &str, value: &Value) -> String {
    match value.as_object().and_then(|table| table.iter().next()) {
        Some((key, value)) => whole_key(&format!("{above}.{key}"), value),
        None => above.to_owned(),
    }
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

fn check_table(
    table: &Map<String, Value>,
    schema: &Value,
    path: &str,
    lists: Lists,
) -> Result<(), Wrong> {
    let known = properties(schema);
    for (key, value) in table {
        let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (known.and_then(|known| known.get(key)), schema.get("additionalProperties")) {
            (Some(schema), _) => check_value(value, schema, &at, lists)?,
            (None, Some(Value::Bool(false))) => {
                let what = unknown(key, path, known);
                return Err(Wrong { path: at, what });
            }
            (None, Some(others @ Value::Object(_))) => check_value(value, others, &at, lists)?,
            (None, _) => {}
        }
    }
    Ok(())
}

fn unknown(key: &str, path: &str, known: Option<&Map<String, Value>>) -> String {
    // An experiment file has nothing but tables at its top.
    let has_tables = known.is_some_and(|known| known.values().all(|it| kinds(it) == ["object"]));
    let known: Vec<&str> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let place = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
    let kind = if path.is_empty() && has_tables { "table" } else { "key" };
    match nearest(key, &known) {
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

/// The JSON types that a schema allows; none is any.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn words(kind: &str) -> &str {
    match kind {
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        other => other,
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

/// Why a value of the right kind is refused all the same.
fn unfit(value: &Value, schema: &Value) -> Option<String> {
    if let Some(names) = schema.get("enum").and_then(Value::as_array)
        && !names.contains(value)
    {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        return Some(format!("must be one of {}, not {}", names.join(", "), found(value)));
    }
    let number = value.as_f64()?;
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(bound) = bound("minimum").filter(|bound| number < *bound) {
        return Some(format!("must be at least {bound}, not {value}"));
    }
    if let Some(bound) = bound("exclusiveMinimum").filter(|bound| number <= *bound) {
        return Some(format!("must be above {bound}, not {value}"));
    }
    let bound = bound("maximum").filter(|bound| *bound < number)?;
    Some(format!("must be at most {bound}, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_key_and_nonsense_finds_none() {
        let known = ["input_tokens", "output_tokens", "prompt", "prefixes"];
        for (typed, wanted) in [
            ("outptu_tokens", "output_tokens"),
            ("output-tokens", "output_tokens"),
            ("outputtokens", "output_tokens"),
            ("promt", "prompt"),
            ("Prefixes", "prefixes"),
        ] {
            assert_eq!(nearest(typed, &known), Some(wanted), "{typed}");
        }
        for typed in ["gpu", "colour", "x"] {
            assert_eq!(nearest(typed, &known), None, "{typed}");
        }
    }
}
