//! Whether a stored set may be resumed: `set.json` holds commands that a shell runs and files whose
//! content is sent to a server, so a set that was begun elsewhere is shown first.
//!
//! Of every set that is begun here the hash of its file is kept in the user's state folder.

use std::collections::BTreeSet;
use std::path::PathBuf;

use inferometer_model::secret::REDACTED;
use inferometer_model::study::SetManifest;
use inferometer_store::{SetDirectory, write_atomically};
use serde_json::Value;

use crate::calibration::folder_of_user;
use crate::failure::{Failure, Result};
use crate::results::sha256;

/// Keeps that the set was begun here. Where that is not possible, resuming it takes `--trust`.
pub(super) fn remember(set: &SetDirectory) {
    let Some(record) = record(set) else { return };
    let _ = record.parent().map(std::fs::create_dir_all);
    let _ = write_atomically(&record, b"");
}

/// Fails where the set was not begun here and is not trusted, or lacks what it needs.
pub(super) fn check(set: &SetDirectory, manifest: &SetManifest, is_trusted: bool) -> Result<()> {
    let study = serde_json::to_value(&manifest.study).map_err(Failure::from_error)?;
    if study.to_string().contains(REDACTED) {
        return Err(Failure::usage(format!(
            "{} was stored without the secrets that were typed with it, so it cannot be resumed",
            set.id()
        ))
        .hint("begin it again, with keys in --api-key-file or in variables of the environment"));
    }
    if is_trusted || manifest.simulated || record(set).is_some_and(|record| record.exists()) {
        return Ok(());
    }
    let mut effects = BTreeSet::new();
    find_effects("study", &study, &mut effects);
    let keys = manifest.key_files.iter().flatten();
    effects.extend(keys.map(|path| format!("key file: {}", path.display())));
    effects.extend(manifest.workers.iter().map(|settings| format!("workers: {settings}")));
    if effects.is_empty() {
        return Ok(());
    }
    let message = format!("{} was not begun on this machine by this user", set.id());
    Err(Failure::usage(message)
        .shown(effects.into_iter().map(|effect| format!("  {effect}")).collect())
        .hint("it would use the above; check that, and add --trust to resume it"))
}

/// What a study runs, reads or contacts; `name` is that of the value, or of the list that it is in.
fn find_effects(name: &str, value: &Value, effects: &mut BTreeSet<String>) {
    const NAMES: [&str; 8] = [
        "restart",
        "server_info",
        "path",
        "tokenizer",
        "before_run",
        "after_run",
        "image_files",
        "files",
    ];
    match value {
        Value::String(text) if NAMES.contains(&name) || text.contains("://") => {
            effects.insert(format!("{}: {text}", name.replace('_', " ")));
        }
        Value::Object(_) if name == "deployed" => {
            effects.insert(format!("{name}: {value}"));
        }
        Value::Object(entries) => {
            entries.iter().for_each(|(name, value)| find_effects(name, value, effects));
        }
        Value::Array(items) => items.iter().for_each(|item| find_effects(name, item, effects)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The file whose presence says that a set was begun here.
fn record(set: &SetDirectory) -> Option<PathBuf> {
    let name = sha256(&set.manifest_bytes().ok()??);
    let state = folder_of_user("XDG_STATE_HOME", ".local/state")?;
    Some(state.join("inferometer").join("sets").join(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn effects_inside_lists_are_shown() {
        let study = json!({
            "urls": ["http://one:8000", "http://two:8000", "label"],
            "scenarios": [{"source": {"path": ["/etc/passwd"]}, "tokens": [1, 2]}],
            "deployed": [{"command": "serve"}],
            "restart": ["touch stolen"],
        });
        let mut effects = BTreeSet::new();
        find_effects("study", &study, &mut effects);
        let shown = [
            "deployed: {\"command\":\"serve\"}",
            "path: /etc/passwd",
            "restart: touch stolen",
            "urls: http://one:8000",
            "urls: http://two:8000",
        ];
        assert_eq!(effects.iter().map(String::as_str).collect::<Vec<_>>(), shown);
    }
}
