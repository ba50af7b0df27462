//! False alarms: honest servers and loads of ten kinds, measured again and again on a quiet machine. What
//! is not called valid here makes every other warning less believable.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Lines with a name, and the flags of `run` on the embedded engine.
const KINDS: &str = include_str!("../clean_runs.txt");

pub(crate) fn clean_runs(binary: &Path, rounds: u64) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("inferometer-clean-{}", std::process::id()));
    let mut table = String::new();
    let (mut runs, mut alarms) = (0_u32, 0_u32);
    for (name, flags) in KINDS.lines().filter_map(|line| line.split_once(": ")) {
        let mut warnings: BTreeMap<String, u32> = BTreeMap::new();
        let mut valid = 0;
        for _ in 0..rounds {
            let summary = measure(binary, &folder, flags)?;
            runs += 1;
            if summary["verdict"] == "valid" {
                valid += 1;
                continue;
            }
            alarms += 1;
            for warning in summary["warnings"].as_array().into_iter().flatten() {
                if warning["severity"] != "note" {
                    let key = warning["key"].as_str().unwrap_or_default();
                    *warnings.entry(key.to_owned()).or_default() += 1;
                }
            }
        }
        let warnings: Vec<String> =
            warnings.into_iter().map(|(key, count)| format!("{key} × {count}")).collect();
        let _ = writeln!(table, "{name:<24}{valid:>4} of {rounds} valid  {}", warnings.join(", "));
    }
    // What cannot be removed is in the folder for such things.
    let _ = std::fs::remove_dir_all(&folder);
    let _ = write!(table, "{alarms} of {runs} runs were not called valid");
    if u64::from(runs) < u64::from(alarms) * 100 { Err(table) } else { Ok(table) }
}

/// Streams that are long enough for the view to be drawn, and many enough to be disturbed by it.
const VIEWED: &str = "--concurrency 16 --requests 320 --output-tokens 64 --input-tokens 64";
/// The share by which the view may move what is measured.
const MOVED_MAX: f64 = 0.05;

pub(crate) fn live_view(binary: &Path, rounds: u64) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("inferometer-live-{}", std::process::id()));
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..rounds.max(1) {
        for (values, style) in found.iter_mut().zip(["none", "live"]) {
            let summary = measure(binary, &folder, &format!("{VIEWED} --progress {style}"))?;
            let p99 = summary["metrics"]["itl_ms"]["p99"].as_f64();
            values.push(p99.ok_or("a summary without the p99 of ITL")?);
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    let [without, with] = found.map(|mut values| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    });
    let moved = with / without - 1.0;
    let text = format!(
        "ITL p99, the median of {rounds} runs each: {without:.3} ms without the live view, {with:.3} ms \
         with it, {:+.1} %",
        moved * 100.0
    );
    if moved.abs() <= MOVED_MAX { Ok(text) } else { Err(text) }
}

/// The summary of a run that is stored in a folder of its own.
fn measure(binary: &Path, folder: &Path, flags: &str) -> Result<Value, String> {
    let mut command = Command::new(binary);
    command.args(["run", "--json", "--output"]).arg(folder).args(flags.split(' '));
    let ran = command.output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&ran.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&ran.stderr)))
}
