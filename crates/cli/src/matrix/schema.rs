//! The JSON Schema of a matrix file, made of its own tables and of those of the experiment file.

use serde_json::{Value, json};

use super::tables::MatrixDocument;
use crate::experiment::schema;

/// Tables of an experiment that hold for every cell.
pub(super) const SHARED: [&str; 9] =
    ["target", "deploy", "engine", "workload", "load", "slo", "client", "limits", "metadata"];

pub(crate) fn document() -> Value {
    let experiment = schema::document();
    let mut document = schema::document_of::<MatrixDocument>();
    document["title"] = "Matrix".into();
    let engine = &experiment["properties"]["engine"];
    for owner in ["preset", "model"] {
        let table = &mut document["properties"][owner]["items"]["properties"]["engine"];
        let words = table["description"].clone();
        *table = engine.clone();
        table["description"] = words;
    }
    for table in SHARED {
        document["properties"][table] = experiment["properties"][table].clone();
    }
    without(&mut document["properties"]["target"], &["url", "model"]);
    let workload = &mut document["properties"]["workload"];
    // A matrix has one seed, and a saved plan would not heed it.
    without(workload, &["seed", "plan"]);
    let mut other = workload.clone();
    other["description"] = "What is asked otherwise at this context length".into();
    workload["properties"]["by_context"] = json!({
        "type": "object",
        "description": "Keys of [workload] that are others at a context length: \
                        `2048 = { output_tokens = 512 }`",
        "additionalProperties": other,
    });
    document
}

fn without(table: &mut Value, keys: &[&str]) {
    if let Some(properties) = table["properties"].as_object_mut() {
        properties.retain(|key, _| !keys.contains(&key.as_str()));
    }
}
