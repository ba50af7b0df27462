//! Real servers: deployed, measured, scraped, restarted five times, and stopped.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const SERVERS: [&str; 3] = ["VLLM", "LLAMA", "TRANSFORMERS"];
const RENEWALS: usize = 5;
/// The variable in the environment of every process of a deployed server.
const MARKER: &str = "INFEROMETER_DEPLOYMENT=";

pub(crate) fn deployments(program: &Path, target: &Path) -> Result<(), String> {
    let mut tried = 0;
    for name in SERVERS {
        let variable = format!("INFEROMETER_DEPLOY_{name}");
        let Ok(command) = std::env::var(&variable) else {
            eprintln!("{name}: {variable} is not set, so it is left out");
            continue;
        };
        let model = std::env::var(format!("{variable}_MODEL")).ok();
        let folder = target.join("deployments").join(name.to_lowercase());
        let before = marked();
        measure(program, &folder, &command, model.as_deref())
            .and_then(|()| check(&folder, name != "TRANSFORMERS"))
            .map_err(|why| format!("{name}: {why}"))?;
        let mut left = marked();
        left.retain(|process| !before.contains(process));
        if !left.is_empty() {
            return Err(format!("{name}: processes are left: {left:?}"));
        }
        eprintln!("{name}: deployed {RENEWALS} times, measured, scraped and stopped");
        tried += 1;
    }
    if tried == 0 { Err("no server is set".to_owned()) } else { Ok(()) }
}

fn measure(
    program: &Path,
    folder: &Path,
    command: &str,
    model: Option<&str>,
) -> Result<(), String> {
    // What an earlier try left would be counted again.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let load = "--repeat 5 --renew each-repetition --requests 12 --concurrency 2 --input-tokens 24 \
                --output-tokens 12 --telemetry-every 200ms";
    let mut measuring = Command::new(program);
    measuring.args(["run", "--serve", command]).args(load.split_whitespace());
    measuring.args(["--serve-env", "HF_*", "--serve-env", "VLLM_*", "--serve-env", "OMP_*"]);
    measuring.args(model.into_iter().flat_map(|model| ["--model", model]));
    let status = measuring
        .current_dir(folder)
        .status()
        .map_err(|error| format!("{} does not start: {error}", program.display()))?;
    // A busy machine makes a run invalid; that is no matter of deployments.
    match status.code() {
        Some(0 | 4) => Ok(()),
        _ => Err(format!("the measurement ended with {status}")),
    }
}

/// Every server of the set was ready, was scraped where it has metrics, and left nothing.
fn check(folder: &Path, has_metrics: bool) -> Result<(), String> {
    let runs = folder.join("runs");
    let set = paths_in(&runs)?.into_iter().find(|path| path.is_dir());
    let set = set.ok_or_else(|| format!("{} holds no set", runs.display()))?;
    let records = json_files(&set.join("deployments"))?;
    if records.len() != RENEWALS {
        return Err(format!("{} servers are recorded, and not {RENEWALS}", records.len()));
    }
    for record in &records {
        let departure = &record["departure"];
        let is_gone = departure["port_closed"] == true
            && departure["left"].as_array().is_some_and(Vec::is_empty);
        if !is_gone || record["facts"]["ready_after"].is_null() {
            return Err(format!("a server was not stopped cleanly: {record}"));
        }
    }
    for number in 0..RENEWALS {
        let path = set.join("points").join(number.to_string()).join("telemetry.journal");
        let was_scraped = fs::metadata(&path).is_ok_and(|file| 0 < file.len());
        if has_metrics && !was_scraped {
            return Err(format!("run {number} has no telemetry in {}", path.display()));
        }
    }
    Ok(())
}

fn paths_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

fn json_files(folder: &Path) -> Result<Vec<Value>, String> {
    let mut paths = paths_in(folder)?;
    paths.retain(|path| path.extension() == Some(OsStr::new("json")));
    let read = |path: &PathBuf| {
        let unread = |error: String| format!("{}: {error}", path.display());
        let bytes = fs::read(path).map_err(|error| unread(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string()))
    };
    paths.iter().map(read).collect()
}

/// Processes that carry the mark of a deployment.
fn marked() -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_marked = |path: &PathBuf| {
        fs::read(path.join("environ")).is_ok_and(|bytes| {
            bytes.split(|byte| *byte == 0).any(|entry| entry.starts_with(MARKER.as_bytes()))
        })
    };
    processes.map(|entry| entry.path()).filter(is_marked).collect()
}
