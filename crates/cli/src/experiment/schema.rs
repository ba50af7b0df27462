//! The JSON Schema of the experiment file, from the types that read it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::arguments::Experiment;

/// The whole document.
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
        ["target", "url"] | ["workload", "mix" | "body"] | ["metadata", _] => return None,
        ["limits", limit] => format!("{limit}-timeout"),
        // The target, the load and the plan have such keys as well.
        ["engine", key @ ("model" | "seed" | "speed" | "step")] => {
            format!("engine-{key}")
        }
        // A container and commands are described in a file.
        ["deploy", "command"] => "serve".to_owned(),
        ["deploy", "pass"] => "serve-env".to_owned(),
        ["deploy", key] => {
            let is_typed = matches!(key, "ready_timeout" | "stop_grace" | "renew");
            is_typed.then(|| key.to_owned())?
        }
        ["client", "cores"] => "client-cores".to_owned(),
        ["repeat", "runs"] => "repeat".to_owned(),
        ["sweep", "targets"] => "target".to_owned(),
        ["slo", key] => (key == "promises").then(|| "slo".to_owned())?,
        ["workload", "body", "extra"] => "extra-body".to_owned(),
        ["workload", "body", key] | [_, key] => key.to_owned(),
        _ => return None,
    };
    Some(format!("--{}", name.replace('_', "-")))
}
