//! The JSON Schema of a suite file, made of that of the experiment file.

use inferometer_model::campaign::{Order, Prompts};
use serde_json::{Map, Value, json};

use crate::arguments::Named;
use crate::experiment::schema;

/// Tables of an experiment that a scenario may have, and those that all may share.
const SHARED: [&str; 4] = ["workload", "load", "slo", "limits"];

pub(crate) fn document() -> Value {
    let experiment = schema::document();
    let mut shared: Map<String, Value> =
        SHARED.iter().map(|table| ((*table).to_owned(), table_of(&experiment, table))).collect();
    let defaults = table("What holds for every scenario that does not say otherwise", &shared);
    shared.insert("sweep".to_owned(), levels(&experiment));
    for (key, words) in [
        ("name", "What it is called; no two alike"),
        ("category", "Word for the table, such as Latency [default: its name]"),
        ("purpose", "What it shows, in one line"),
    ] {
        shared.insert(key.to_owned(), text(words));
    }
    let scenario = table("One workload at one load, or at several numbers in flight", &shared);
    let properties = json!({
        "name": text("Short name [default: the name of the file]"),
        "title": text("Name for people [default: its short name]"),
        "description": text("What it is for"),
        "prompts": names::<Prompts>(
            "Whether each scenario and level has prompts of its own, or all begin alike, so that \
             one may find what another left in the server's prefix cache [default: fresh]"
        ),
        "order": names::<Order>(
            "Whether every round goes through the scenarios and levels as they are listed, or in an \
             order of its own [default: listed]"
        ),
        "repeat": table_of(&experiment, "repeat"),
        "defaults": defaults,
        "scenario": {
            "type": "array",
            "minItems": 1,
            "items": scenario,
            "description": "Scenarios, in their order",
        },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Suite",
        "description": "A suite of Inferometer: scenarios that are measured one after the other \
                        on one server.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn table(description: &str, properties: &Map<String, Value>) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn names<T: Named>(description: &str) -> Value {
    let names: Vec<&str> = T::names().into_iter().map(|(name, _)| name).collect();
    json!({ "type": "string", "enum": names, "description": description })
}

fn table_of(experiment: &Value, name: &str) -> Value {
    let mut table = experiment["properties"][name].clone();
    if name == "workload"
        && let Some(Value::Object(keys)) = table.get_mut("properties")
    {
        // A suite has one seed, and a saved plan would not heed it.
        keys.remove("seed");
        keys.remove("plan");
    }
    table
}

/// Of all that a sweep can be, a scenario has the numbers in flight.
fn levels(experiment: &Value) -> Value {
    let concurrencies = &experiment["properties"]["sweep"]["properties"]["concurrencies"];
    let mut keys = Map::new();
    keys.insert("concurrencies".to_owned(), concurrencies.clone());
    table("Several numbers in flight instead of one", &keys)
}
