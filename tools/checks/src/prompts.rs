//! Making prompts, ours beside those of `vllm bench serve`: the same tokenizer, the same length,
//! one after the other on the same machine.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const OURS: u32 = 100_000;
/// Enough for a mean: theirs takes minutes for all.
const THEIRS: u32 = 1_000;
const TOKENS: u32 = 1_024;

/// Theirs, timed by themselves: without the imports, and without loading the tokenizer.
const SCRIPT: &str = include_str!("../prompts.py");

/// Prints both, and the ratio. Ours is the whole program: it also loads the tokenizer, plans,
/// writes all prompts as JSON lines to a file, and draws the outline.
pub(crate) fn prompts(
    binary: &Path,
    python: &str,
    tokenizer: &str,
    scratch: &Path,
) -> Result<String, String> {
    let theirs = timed_theirs(python, tokenizer)? / THEIRS;
    let ours = timed_ours(binary, tokenizer, scratch)? / OURS;
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    Ok(format!(
        "a prompt of {TOKENS} tokens: ours {:.1} µs ({OURS} prompts, saved to a file), vLLM's {:.1} µs \
         ({THEIRS} prompts, in memory): {ratio:.0} times as fast",
        ours.as_secs_f64() * 1e6,
        theirs.as_secs_f64() * 1e6,
    ))
}

fn timed_theirs(python: &str, tokenizer: &str) -> Result<Duration, String> {
    let (requests, tokens) = (THEIRS.to_string(), TOKENS.to_string());
    let ran = Command::new(python)
        .args(["-c", SCRIPT, tokenizer, &requests, &tokens])
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .map_err(|error| format!("{python}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let seconds = said.lines().last().and_then(|line| line.trim().parse().ok());
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        format!("{python} gave no time: {}", String::from_utf8_lossy(&ran.stderr).trim())
    })
}

fn timed_ours(binary: &Path, tokenizer: &str, scratch: &Path) -> Result<Duration, String> {
    let saved = scratch.join("prompts.jsonl");
    #[expect(clippy::disallowed_methods, reason = "a chore has no run, and no clock of one")]
    let began = Instant::now();
    let ran = Command::new(binary)
        .args(["plan", "--api", "completions", "--tokenizer", tokenizer])
        .args(["--input-tokens", &TOKENS.to_string(), "--requests", &OURS.to_string()])
        .arg("--save")
        .arg(&saved)
        .output()
        .map_err(|error| format!("{}: {error}", binary.display()))?;
    let took = began.elapsed();
    let removed = std::fs::remove_file(&saved);
    if ran.status.success() && removed.is_ok() {
        Ok(took)
    } else {
        Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned())
    }
}
