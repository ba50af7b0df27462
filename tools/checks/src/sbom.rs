//! The parts list of the program in `CycloneDX`: every crate that is compiled into it, with its licence and
//! what it needs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use xtask::cargo_command;

use crate::exports::said;

const PROGRAM: &str = "inferometer-cli";

/// What cargo knows about the crates of one target.
pub(crate) fn metadata(target: &str) -> Result<Value, String> {
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", target];
    let text = said(&mut cargo_command(arguments))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// The version of the program.
pub(crate) fn version(metadata: &Value) -> Option<&str> {
    list(metadata, "packages").find(|package| text(package, "name") == PROGRAM)?["version"].as_str()
}

/// The document; parts are in the order of their names.
pub(crate) fn document(metadata: &Value) -> Value {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").map(|package| (text(package, "id"), package)).collect();
    let needs: BTreeMap<&str, Vec<&str>> =
        list(&metadata["resolve"], "nodes").map(|node| (text(node, "id"), needed(node))).collect();
    let program = packages.iter().find(|(_, package)| text(package, "name") == PROGRAM);
    let root = program.map_or("", |(id, _)| id);
    let mut parts = BTreeSet::new();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        if parts.insert(id) {
            waiting.extend(needs.get(id).into_iter().flatten());
        }
    }
    let mut components: Vec<Value> = parts
        .iter()
        .filter_map(|id| packages.get(id).filter(|_| *id != root).map(|package| component(package)))
        .collect();
    components.sort_by_key(|part| text(part, "bom-ref").to_owned());
    let name = |id: &&str| packages.get(id).map_or_else(String::new, |package| reference(package));
    let dependencies: Vec<Value> = parts
        .iter()
        .map(|id| {
            let needed: BTreeSet<String> = needs.get(id).into_iter().flatten().map(name).collect();
            json!({"ref": name(id), "dependsOn": needed})
        })
        .collect();
    let mut program = packages.get(root).map_or(Value::Null, |package| component(package));
    program["type"] = "application".into();
    program["name"] = "inferometer".into();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": components,
        "dependencies": dependencies,
    })
}

/// The ids of what a crate needs to be built; what only its tests need is no part of the program.
fn needed(node: &Value) -> Vec<&str> {
    let is_built_in = |dependency: &&Value| {
        list(dependency, "dep_kinds").any(|kind| kind["kind"].as_str() != Some("dev"))
    };
    list(node, "deps").filter(is_built_in).map(|dependency| text(dependency, "pkg")).collect()
}

fn component(package: &Value) -> Value {
    let mut part = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // An old way to write `OR`.
        part["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    part
}

fn reference(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_is_compiled_in_and_not_what_only_tests_need() {
        let document = document(&metadata("x86_64-unknown-linux-gnu").unwrap());
        let names: Vec<&str> =
            list(&document, "components").map(|part| text(part, "name")).collect();
        for part in ["clap", "inferometer-load", "libmimalloc-sys", "tokio"] {
            assert!(names.contains(&part), "{part} is missing");
        }
        for absent in ["divan", "insta", "proptest", "inferometer-cli", "windows-sys"] {
            assert!(!names.contains(&absent), "{absent} is no part of the program");
        }
        let known: BTreeSet<&str> = list(&document, "components")
            .chain([&document["metadata"]["component"]])
            .map(|part| text(part, "bom-ref"))
            .collect();
        for dependency in list(&document, "dependencies") {
            let needed = list(dependency, "dependsOn").filter_map(Value::as_str);
            for name in needed.chain([text(dependency, "ref")]) {
                assert!(known.contains(name), "{name} is no part");
            }
        }
        assert!(list(&document, "components").all(|part| part["licenses"].is_array()));
    }
}
