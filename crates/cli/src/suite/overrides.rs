//! What may be said beside a suite: what holds for all of its scenarios, and nothing that would make
//! them alike.

use serde_json::Value;

use super::builtin;
use super::file::SuiteFile;
use super::hash::{Files, hash};
use super::resolved::{Resolved, Said};
use crate::arguments::Grammar;
use crate::experiment::{self, Layer};
use crate::failure::Failure;

/// Refuses what is the business of scenarios.
pub(super) fn check(file: &SuiteFile, said: &Layer) -> Result<(), Failure> {
    let leaves = leaves(&said.tree);
    if let Some(leaf) = leaves.iter().find(|leaf| belongs_to_scenarios(leaf)) {
        let path = leaf.join(".");
        let (name, suite) = (name_of(&path), &file.name);
        return Err(said
            .origins
            .failure(&path, &format!("{name} would make all scenarios of `{suite}` alike"))
            .hint(match builtin::shown(suite) {
                Ok(_) => format!(
                    "write a suite of your own: inferometer suite --show {suite} > mine.toml"
                ),
                Err(_) => "say it in the file of the suite".to_owned(),
            }));
    }
    check_source(file, said)
}

pub(super) fn belongs_to_scenarios(leaf: &[String]) -> bool {
    let keys: Vec<&str> = leaf.iter().map(String::as_str).collect();
    match keys[..] {
        ["workload", "source" | "tokenizer" | "count" | "stream" | "seed" | "body", ..]
        | ["load", "warm_up"] => false,
        ["workload" | "load" | "sweep", ..] => true,
        _ => false,
    }
}

/// Another source of prompts takes the place of synthetic ones only: in that of conversations or
/// data it would be another question.
fn check_source(file: &SuiteFile, said: &Layer) -> Result<(), Failure> {
    if said.tree.pointer("/workload/source").is_none() {
        return Ok(());
    }
    for scenario in &file.scenarios {
        let workload = scenario.layer.tree.get("workload");
        let rival = ["turns", "mix", "dataset", "prompt", "prompt_file", "trace"]
            .into_iter()
            .find(|key| workload.and_then(|workload| workload.get(key)).is_some());
        if let Some(key) = rival {
            return Err(said.origins.failure(
                "workload.source",
                &format!(
                    "--source would take the place of `workload.{key}` in the scenario `{}`, which \
                     is then another one",
                    scenario.name
                ),
            ));
        }
    }
    Ok(())
}

/// What was asked otherwise than the suite says: each value without which the hash is another.
pub(super) fn changes(
    file: &SuiteFile,
    said: Said<'_>,
    asked: &str,
    files: &mut Files,
) -> Result<Vec<String>, Failure> {
    let mut changes: Vec<String> = Vec::new();
    for leaf in leaves(&said.layer.tree) {
        if !may_change(&leaf) {
            continue;
        }
        let layer = Layer { tree: without(&said.layer.tree, &leaf), ..said.layer.clone() };
        let before = Resolved::of(file, Said { layer: &layer, ..said });
        // What cannot even be asked without it is another question too.
        let is_same = match before {
            Ok(before) => hash(&before, files)? == asked,
            Err(_) => false,
        };
        if !is_same {
            changes.push(in_words(&said.layer.tree, &leaf));
        }
    }
    if let Some(prompts) = said.prompts.filter(|prompts| *prompts != file.prompts) {
        changes.push(format!("--prompts {}", prompts.write()));
    }
    Ok(changes)
}

/// Who is asked and how tokens are counted is no part of what is asked.
fn may_change(leaf: &[String]) -> bool {
    let keys: Vec<&str> = leaf.iter().map(String::as_str).collect();
    match keys[..] {
        ["target", "api"] => true,
        ["target" | "engine" | "deploy" | "client" | "metadata", ..]
        | ["workload", "tokenizer" | "seed"] => false,
        _ => true,
    }
}

fn in_words(tree: &Value, leaf: &[String]) -> String {
    let value = leaf.iter().try_fold(tree, |tree, key| tree.get(key));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let value = match value {
        Some(Value::Array(items)) => items.iter().map(text).collect::<Vec<_>>().join(" "),
        Some(value) => text(value),
        None => String::new(),
    };
    match experiment::schema::flag(&leaf.join(".")) {
        Some(flag) => format!("{flag} {value}"),
        None => format!("{} = {value}", leaf.join(".")),
    }
}

fn name_of(path: &str) -> String {
    experiment::flag_at(path).unwrap_or_else(|| format!("`{path}`"))
}

/// The keys that lead to each value; a list is one value.
fn leaves(tree: &Value) -> Vec<Vec<String>> {
    let Some(table) = tree.as_object() else { return vec![Vec::new()] };
    let below = |(key, value): (&String, &Value)| {
        let behind = move |leaf: Vec<String>| [vec![key.clone()], leaf].concat();
        leaves(value).into_iter().map(behind).collect::<Vec<_>>()
    };
    table.iter().flat_map(below).collect()
}

fn without(tree: &Value, leaf: &[String]) -> Value {
    let (Some((key, rest)), Some(table)) = (leaf.split_first(), tree.as_object()) else {
        return tree.clone();
    };
    let mut table = table.clone();
    match (rest, table.get(key)) {
        ([], _) => drop(table.remove(key)),
        (rest, Some(below)) => {
            let below = without(below, rest);
            table.insert(key.clone(), below);
        }
        (_, None) => {}
    }
    Value::Object(table)
}
