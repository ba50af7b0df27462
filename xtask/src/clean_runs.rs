//! False alarms: honest servers and loads of ten kinds, measured again and again on a quiet machine. What
//! is not called valid here makes every other warning less believable.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

pub(crate) const HELP: &str = "\
cargo xtask clean-runs [ROUNDS]   measure ten kinds of honest servers and loads so many times each
                                (20), on a machine that does nothing else; fails if more than 1 % of
                                the runs are not called valid (about a quarter of an hour)
";

/// A name, and the flags of `run` on the embedded engine.
const KINDS: [(&str, &str); 10] = [
    ("one user", "--concurrency 1 --requests 60 --output-tokens 16 --input-tokens 64"),
    ("closed loop of 8", "--concurrency 8 --requests 160 --output-tokens 32 --input-tokens 128"),
    ("closed loop of 32", "--concurrency 32 --requests 480 --output-tokens 32 --input-tokens 64"),
    ("long prompts", "--concurrency 4 --requests 60 --output-tokens 16 --input-tokens 2048"),
    ("Poisson arrivals", "--rate 20 --requests 160 --output-tokens 16 --input-tokens 64"),
    (
        "constant arrivals",
        "--rate 30 --arrivals constant --requests 200 --output-tokens 16 --input-tokens 64",
    ),
    (
        "bursty arrivals",
        "--rate 20 --burstiness 0.5 --requests 200 --output-tokens 16 --input-tokens 64",
    ),
    (
        "answers in one piece",
        "--no-stream --concurrency 8 --requests 160 --output-tokens 16 --input-tokens 64",
    ),
    (
        "conversations",
        "--turns 3 --concurrency 8 --requests 240 --output-tokens 16 --input-tokens 64",
    ),
    (
        "many lengths",
        "--concurrency 16 --requests 320 --output-tokens 24±50% --input-tokens 256±50%",
    ),
];

pub(crate) fn clean_runs(binary: &Path, words: &[&str]) -> Result<String, String> {
    let rounds = match words {
        [] => 20,
        [rounds] => rounds.parse().map_err(|_| format!("`{rounds}` is not a number of rounds"))?,
        _ => return Err("expected one number of rounds".to_owned()),
    };
    let folder = std::env::temp_dir().join(format!("inferometer-clean-{}", std::process::id()));
    let mut table = String::new();
    let (mut runs, mut alarms) = (0_u32, 0_u32);
    for (name, flags) in KINDS {
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

/// The summary of a run that is stored in a folder of its own.
fn measure(binary: &Path, folder: &Path, flags: &str) -> Result<Value, String> {
    let mut command = Command::new(binary);
    command.args(["run", "--json", "-q", "--output"]).arg(folder).args(flags.split(' '));
    let ran = command.stderr(Stdio::piped()).output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&ran.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&ran.stderr)))
}
