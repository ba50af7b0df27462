//! Real servers, put up by us: started, measured, scraped, renewed five times, and gone.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) const HELP: &str = "\
cargo xtask deployments [PROGRAM]   does PROGRAM (a release build where none is named) put up real
                                servers, measure and renew them five times, and leave nothing behind?
                                INFEROMETER_DEPLOY_VLLM, …_LLAMA and …_TRANSFORMERS hold the commands,
                                each with {port} in it; …_MODEL behind one of them names its model
";

const SERVERS: [&str; 3] = ["VLLM", "LLAMA", "TRANSFORMERS"];
const RENEWALS: usize = 5;
/// What every process of a server that was put up finds in its environment.
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
            .and_then(|()| check_gone(&before))
            .map_err(|why| format!("{name}: {why}"))?;
        eprintln!("{name}: put up {RENEWALS} times, measured, scraped, and gone");
        tried += 1;
    }
    if tried == 0 { Err("no server was named".to_owned()) } else { Ok(()) }
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
    let set = only_folder(&folder.join("runs"))?;
    let records = json_files(&set.join("deployments"))?;
    if records.len() != RENEWALS {
        return Err(format!("{} servers are told of, not {RENEWALS}", records.len()));
    }
    for record in &records {
        let departure = &record["departure"];
        let is_gone = departure["port_closed"] == true
            && departure["left"].as_array().is_some_and(Vec::is_empty);
        if !is_gone || record["facts"]["ready_after"].is_null() {
            return Err(format!("a server did not go as it should: {record}"));
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

/// Nobody carries our mark who did not before.
fn check_gone(before: &[PathBuf]) -> Result<(), String> {
    let mut left = marked();
    left.retain(|process| !before.contains(process));
    if left.is_empty() { Ok(()) } else { Err(format!("processes are left: {left:?}")) }
}

fn only_folder(folder: &Path) -> Result<PathBuf, String> {
    let unread = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(unread)?;
    let mut folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|it| it.is_dir());
    folders.next().ok_or_else(|| format!("{} holds no set", folder.display()))
}

fn json_files(folder: &Path) -> Result<Vec<Value>, String> {
    let unread = |error| format!("{}: {error}", folder.display());
    let mut documents = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if path.extension() == Some(OsStr::new("json")) {
            let bytes = fs::read(&path).map_err(unread)?;
            let document = serde_json::from_slice(&bytes);
            documents.push(document.map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    Ok(documents)
}

/// Processes that carry the mark of a deployment, whosever they are.
fn marked() -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_marked = |path: &PathBuf| {
        fs::read(path.join("environ")).is_ok_and(|bytes| {
            bytes.split(|byte| *byte == 0).any(|entry| entry.starts_with(MARKER.as_bytes()))
        })
    };
    processes.map(|entry| entry.path()).filter(is_marked).collect()
}
