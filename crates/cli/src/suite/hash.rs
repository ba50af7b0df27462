//! The name of what a suite asks, by which results of it are known to be comparable.
//!
//! It is taken of what comes out of all layers, so that comments, the order of keys and other words
//! for the same number do not change it. Words for people, the server and whatever belongs to it
//! (its tokenizer too), this client and the seed are not in it.

use std::fmt::Write;

use inferometer_model::Spec;
use inferometer_model::spec::Source;
use inferometer_workload::Ingredients;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::resolved::{Resolved, ResolvedScenario};
use crate::failure::Failure;

/// Counts what this program may come to mean by the same words.
const VERSION: u32 = 1;

/// SHA-256 as hexadecimal digits.
pub(super) fn hash(suite: &Resolved) -> Result<String, Failure> {
    let scenarios: Vec<Value> =
        suite.scenarios.iter().map(scenario).collect::<Result<_, Failure>>()?;
    let repetition = &suite.repetition;
    let asked = json!({
        "version": VERSION,
        "prompts": suite.prompts,
        "order": suite.order,
        "repetition": {
            "runs": repetition.runs,
            "cool_down": repetition.cool_down,
            // How is the server's affair; that it happens empties its cache.
            "restarts": repetition.restart.is_some(),
            "stop_at": repetition.stop_at,
        },
        "scenarios": scenarios,
    });
    let digest = Sha256::digest(canonical(asked)?);
    Ok(digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Keys in the order of their letters, and no space between.
fn canonical(mut asked: Value) -> Result<Vec<u8>, Failure> {
    asked.sort_all_objects();
    serde_json::to_vec(&asked).map_err(|error| Failure::internal(format!("suite: {error}")))
}

fn scenario(scenario: &ResolvedScenario) -> Result<Value, Failure> {
    let ResolvedScenario { name, spec, levels, .. } = scenario;
    let mut workload = spec.workload.clone();
    workload.tokenizer = None;
    let mut workload = json!(workload);
    let files = if names_files(&spec.workload.source) { contents(spec)? } else { Vec::new() };
    forget_paths(&mut workload["source"]);
    let mut promises: Vec<String> = spec.slos.iter().map(ToString::to_string).collect();
    promises.sort_unstable();
    Ok(json!({
        "name": name,
        "api": spec.api,
        "workload": workload,
        "files": files,
        "load": spec.load,
        "levels": levels,
        "slo": promises,
        "limits": spec.limits,
    }))
}

fn names_files(source: &Source) -> bool {
    match source {
        Source::Dataset(_) | Source::Trace(_) | Source::Saved { .. } => true,
        Source::Mix(parts) => parts.iter().any(|part| names_files(&part.source)),
        Source::Synthetic(_)
        | Source::VllmRandom(_)
        | Source::Fixed(_)
        | Source::Conversations(_) => false,
    }
}

/// What files hold stands for where they lie.
fn contents(spec: &Spec) -> Result<Vec<(String, String)>, Failure> {
    let ingredients = Ingredients::gather(spec)?;
    let files = &ingredients.materials().files;
    Ok(files.iter().map(|file| (file.kind.clone(), file.sha256.clone())).collect())
}

fn forget_paths(source: &mut Value) {
    match source {
        Value::Object(keys) => {
            keys.remove("path");
            keys.values_mut().for_each(forget_paths);
        }
        Value::Array(parts) => parts.iter_mut().for_each(forget_paths),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
