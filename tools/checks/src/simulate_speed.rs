//! How fast `simulate` is, and whether its time and memory grow as they should: traces of three
//! sizes, without records, on the release binary.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const REQUESTS: u64 = 1_000_000;
const OUTPUT_TOKENS: u64 = 64;
/// Forty requests per second: what one large GPU carries with a small model.
const GAP_MS: u64 = 25;
/// Tokens of a block in this kind of trace.
const BLOCK: u64 = 512;
/// Beginnings that requests share.
const PREFIXES: u64 = 64;

pub(crate) fn simulate_speed(binary: &Path, words: &[&str]) -> Result<String, String> {
    let number = words.split_first().and_then(|(first, rest)| Some((first.parse().ok()?, rest)));
    let (requests, flags) = number.unwrap_or((REQUESTS, words));
    let folder = std::env::temp_dir().join(format!("inferometer-speed-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let table = measure(binary, &folder, requests, flags);
    // What cannot be removed is in the folder for such things.
    let _ = fs::remove_dir_all(&folder);
    table
}

fn measure(binary: &Path, folder: &Path, requests: u64, flags: &[&str]) -> Result<String, String> {
    let mut table = format!(
        "{:>12} {:>10} {:>14} {:>16} {:>12}\n",
        "requests", "seconds", "requests/s", "tokens out/s", "peak MiB"
    );
    for size in [requests / 4, requests / 2, requests] {
        let trace = folder.join(format!("{size}.jsonl"));
        write_trace(&trace, size).map_err(|error| format!("{}: {error}", trace.display()))?;
        let (took, peak_kib) = simulate(binary, &trace, flags)?;
        let seconds = took.as_secs_f64();
        let per_s = size as f64 / seconds;
        let _ = writeln!(
            table,
            "{size:>12} {seconds:>10.2} {per_s:>14.0} {:>16.0} {:>12}",
            per_s * OUTPUT_TOKENS as f64,
            peak_kib / 1_024
        );
    }
    Ok(table)
}

/// Lengths from 64 to 1,087 tokens, of which the first block is shared by some; drawn by a plain
/// congruence, so that everybody has the same.
fn write_trace(path: &Path, requests: u64) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut drawn = 1_u64;
    for number in 0..requests {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let input = 64 + (drawn >> 33) % 1_024;
        let at = number * GAP_MS + (drawn >> 20) % GAP_MS;
        let own = (1..input.div_ceil(BLOCK)).map(|block| PREFIXES + number * 4 + block);
        let ids: Vec<String> =
            std::iter::once((drawn >> 50) % PREFIXES).chain(own).map(|id| id.to_string()).collect();
        writeln!(
            file,
            r#"{{"timestamp": {at}, "input_length": {input}, "output_length": {OUTPUT_TOKENS}, "hash_ids": [{}]}}"#,
            ids.join(", ")
        )?;
    }
    file.flush()
}

/// How long it took, and the most memory that it had.
#[expect(clippy::disallowed_methods, reason = "a chore takes the time of another program")]
fn simulate(binary: &Path, trace: &Path, flags: &[&str]) -> Result<(Duration, u64), String> {
    let began = Instant::now();
    let mut child = Command::new(binary)
        .args(["simulate", "--quiet", "--records", "none", "--trace"])
        .arg(trace)
        .args(flags)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", binary.display()))?;
    let (ended, peak_kib) = peak_kib(&mut child)?;
    if ended.success() {
        Ok((began.elapsed(), peak_kib))
    } else {
        Err(format!("the simulation ended with {ended}"))
    }
}

/// A line of the kernel's account of a process.
pub(crate) fn memory_kib(process: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Waits for a process: how it ended, and the most memory that it had.
pub(crate) fn peak_kib(child: &mut Child) -> Result<(ExitStatus, u64), String> {
    // The kernel keeps the highest value, so a look now and then misses little.
    let mut peak_kib = 0;
    loop {
        peak_kib = peak_kib.max(memory_kib(child.id(), "VmHWM:").unwrap_or(0));
        let waited = child.try_wait();
        if let Some(ended) = waited.map_err(|error| format!("the process was lost: {error}"))? {
            return Ok((ended, peak_kib));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
