//! The name of what a suite asks, by which results of it are known to be comparable.
//!
//! It is taken of what comes out of all layers, so that comments, the order of keys and other words
//! for the same number do not change it. Words for people, the server and whatever belongs to it
//! (its tokenizer too), this client and the seed are not in it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use inferometer_model::Spec;
use inferometer_model::spec::{Source, Workload};
use inferometer_workload::Inputs;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::resolved::{Resolved, ResolvedScenario};
use crate::failure::Failure;

/// Counts what this program may come to mean by the same words.
const VERSION: u32 = 1;

/// SHA-256 as hexadecimal digits.
pub(super) fn hash(suite: &Resolved, files: &mut Files) -> Result<String, Failure> {
    let scenarios: Vec<Value> =
        suite.scenarios.iter().map(|it| scenario(it, files)).collect::<Result<_, Failure>>()?;
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

fn scenario(scenario: &ResolvedScenario, files: &mut Files) -> Result<Value, Failure> {
    let ResolvedScenario { name, spec, levels, .. } = scenario;
    let mut workload = spec.workload.clone();
    workload.tokenizer = None;
    let mut held = Vec::new();
    files.replace(spec, &mut workload.source, &mut held)?;
    let mut promises: Vec<String> = spec.slos.iter().map(ToString::to_string).collect();
    promises.sort_unstable();
    Ok(json!({
        "name": name,
        "api": spec.api,
        "workload": workload,
        "files": held,
        "load": spec.load,
        "levels": levels,
        "slo": promises,
        "limits": spec.limits,
    }))
}

/// The contents of files, which replace their paths. Each is read once, however often a suite is
/// hashed.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<(PathBuf, Option<String>), Held>);

/// The kind of a file, named or found, and its SHA-256.
type Held = (String, String);

impl Files {
    /// Takes the names of files out of a source, and adds what they hold in their order.
    fn replace(
        &mut self,
        spec: &Spec,
        source: &mut Source,
        held: &mut Vec<Held>,
    ) -> Result<(), Failure> {
        let whole = source.clone();
        let (path, kind) = match source {
            Source::Dataset(data) => {
                (&mut data.path, data.kind.take().map(|kind| json!(kind).to_string()))
            }
            Source::Trace(trace) => {
                (&mut trace.path, trace.kind.take().map(|kind| json!(kind).to_string()))
            }
            Source::Saved { path, .. } => (path, None),
            Source::Mix(parts) => {
                return parts
                    .iter_mut()
                    .try_for_each(|it| self.replace(spec, &mut it.source, held));
            }
            Source::Synthetic(_)
            | Source::VllmRandom(_)
            | Source::Fixed(_)
            | Source::Conversations(_) => return Ok(()),
        };
        let key = (std::mem::take(path), kind);
        let found = match self.0.get(&key) {
            Some(found) => found.clone(),
            None => read(spec, whole)?,
        };
        held.push(found.clone());
        self.0.insert(key, found);
        Ok(())
    }
}

/// Without the tokenizer: what a file holds does not depend on it, and counting takes long.
fn read(spec: &Spec, source: Source) -> Result<Held, Failure> {
    let workload = Workload { source, tokenizer: None, ..spec.workload.clone() };
    let inputs = Inputs::gather(&Spec { workload, ..spec.clone() })?;
    let file = inputs.materials().files.last();
    let file = file.ok_or_else(|| Failure::internal("a file of which nothing is known"))?;
    Ok((file.kind.clone(), file.sha256.clone()))
}
