//! Our exports before their real readers: `DuckDB`, pandas, and the parsers of Prometheus and
//! OpenTelemetry, in a Python environment of their own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: [&str; 5] =
    ["duckdb", "pandas", "pyarrow", "prometheus-client", "opentelemetry-proto"];

/// An open loop with the server's telemetry, and a closed one in virtual time with a queue.
const RUNS: [&str; 2] = [
    "run --rate 20 --duration 4s --input-tokens 64 --output-tokens 16 --telemetry-every 200ms",
    "simulate --concurrency 8 --requests 2000 --input-tokens 128 --output-tokens 64",
];

/// Measures, exports and lets the readers look.
pub(crate) fn exports(program: &Path, target: &Path) -> Result<(), String> {
    let folder = target.join("exports");
    let python = install(&folder.join("python"))?;
    let results = folder.join("results");
    // What an earlier try left would be read again.
    let _ = fs::remove_dir_all(&results);
    fs::create_dir_all(&results)
        .map_err(|error| format!("{} cannot be made: {error}", results.display()))?;
    let runs = measure(program, &results)?;
    for form in ["parquet --to tables", "openmetrics --to metrics.txt", "otlp --to otlp.json"] {
        let mut command = Command::new(program);
        command.arg("export").args(&runs).arg("--format").args(form.split(' '));
        said(command.current_dir(&results))?;
    }
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("exports/check.py");
    let mut command = Command::new(python);
    eprint!("{}", said(command.arg(check).arg(&results))?);
    Ok(())
}

/// The ids of the runs; their summaries stand in the folder.
fn measure(program: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut ids = Vec::new();
    for (number, words) in RUNS.iter().enumerate() {
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).args(["--json", "--quiet"]).current_dir(folder);
        let output = command.output().map_err(|error| unstarted(&command, &error))?;
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).map_err(|error| {
                let talk = String::from_utf8_lossy(&output.stderr).into_owned();
                format!("`inferometer {words}` gave no summary ({error}): {talk}")
            })?;
        let id = document["run"]["id"].as_str().ok_or("a summary without the run's id")?;
        ids.push(id.to_owned());
        let path = folder.join(format!("summary-{number}.json"));
        fs::write(&path, &output.stdout)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    Ok(ids)
}

/// The environment's Python; made and filled where it is not there yet.
fn install(place: &Path) -> Result<PathBuf, String> {
    let python = place.join("bin/python");
    let imports = "import duckdb, pandas, pyarrow, prometheus_client, opentelemetry.proto";
    let is_filled = || Command::new(&python).args(["-c", imports]).output();
    if is_filled().is_ok_and(|output| output.status.success()) {
        return Ok(python);
    }
    eprintln!("installing {} into {}", PACKAGES.join(", "), place.display());
    said(Command::new("python3").args([OsStr::new("-m"), "venv".as_ref(), place.as_os_str()]))?;
    said(Command::new(place.join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES))?;
    Ok(python)
}

/// What it printed; what it complained of, where it failed.
pub(crate) fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| unstarted(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{} ended with {}:\n{talk}", command.get_program().display(), output.status))
}

pub(crate) fn unstarted(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` does not start: {error}", command.get_program().display())
}
