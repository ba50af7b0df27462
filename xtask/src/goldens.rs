//! `cargo xtask goldens`: freezes what a build prints about a fixed set of stored runs, and compares
//! another build with it.
//!
//! `record` makes runs and sets of every kind in virtual time, a few live ones on the embedded
//! engine, and imports; then it keeps every view of them: pages, JSON, CSV, exports, lists, plans,
//! help. `compare` renders the same stored runs with the build at hand and shows every difference.
//! Stored runs are written once, so a difference is always a difference of the program.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const HELP: &str = "\
cargo xtask goldens record DIR [PROGRAM]    store runs of every kind and what this build says of them
cargo xtask goldens compare DIR [PROGRAM]   render the same runs with this build; fails on differences
";

/// What is stored, each in a folder of runs of its own: a name and a command line in which a tilde
/// is a space inside a word.
const STORED: [(&str, &str); 12] = [
    (
        "open",
        "simulate --hardware h200 --engine-model qwen3-32b --rate 4 --requests 150 --slo ttft<500ms --slo tpot.p99<50ms",
    ),
    ("closed", "simulate --profile mi100x4-devstral-24b --concurrency 8 --requests 120"),
    (
        "conversations",
        "simulate --hardware h100 --engine-model llama-3.1-8b --turns 4 --turn-think-time 1s --rate 1 --requests 60",
    ),
    (
        "sweep",
        "sweep --virtual --hardware h100 --engine-model llama-3.1-8b --concurrencies 1..16*2 --repeat 3 --requests 80",
    ),
    (
        "rates",
        "sweep --virtual --hardware h100 --engine-model llama-3.1-8b --rates 2,8,32 --repeat 2 --requests 120",
    ),
    (
        "search",
        "sweep --virtual --hardware h100 --engine-model llama-3.1-8b --find max~rate~where~ttft.p99<400ms --from 1 --at-most 64 --requests 150",
    ),
    ("suite", "suite quick --virtual"),
    ("matrix", "matrix r3 --virtual --only model=Llama-8B"),
    (
        "live",
        "run --profile mi100x4-devstral-24b --concurrency 4 --requests 24 --output-tokens 16 --engine-speed 20",
    ),
    (
        "live-completions",
        "run --api completions --no-stream --rate 20 --requests 40 --output-tokens 8",
    ),
    ("live-repeat", "run --rate 20 --requests 40 --output-tokens 8 --repeat 3 --cool-down 0s"),
    (
        "import",
        "import crates/interchange/tests/foreign/guidellm-poisson.json crates/interchange/tests/foreign/sglang.jsonl",
    ),
];

/// What is printed of each stored run, set or import.
const VIEWS: [(&str, &str); 19] = [
    ("report.html", "report latest --format html --to -"),
    ("report.md", "report latest --format md --to -"),
    ("report.csv", "report latest --format csv --to -"),
    ("report.json", "report latest --format json --to -"),
    ("site", "report latest --format site --to {out}"),
    ("verify", "verify latest"),
    ("runs", "runs"),
    ("runs.json", "runs --json"),
    ("require", "require latest ttft.p99<400ms error_rate<1%"),
    ("compare", "compare latest latest"),
    ("compare.json", "compare latest latest --json"),
    ("export.vllm", "export latest --format vllm --to {out}"),
    ("export.csv", "export latest --format csv"),
    ("export.aiperf", "export latest --format aiperf --to {out}"),
    ("export.llm-d", "export latest --format llm-d --to {out}"),
    ("export.openmetrics", "export latest --format openmetrics"),
    ("export.otlp", "export latest --format otlp"),
    ("export.bencher", "export latest --format bencher"),
    ("export.junit", "export latest --format junit"),
];

/// Commands that need no stored run; those in virtual time are exact, so their pages are compared.
const COMMANDS: [&str; 40] = [
    "simulate --hardware h200 --engine-model qwen3-32b --rate 4 --requests 150 --slo ttft<500ms --slo tpot.p99<50ms",
    "simulate --hardware h200 --engine-model qwen3-32b --rate 4 --requests 150 --json",
    "simulate --profile mi100x4-devstral-24b --concurrency 8 --requests 120 --format vllm",
    "simulate --hardware h100 --engine-model llama-3.1-8b --turns 4 --turn-think-time 1s --rate 1 --requests 60",
    "sweep --virtual --hardware h100 --engine-model llama-3.1-8b --concurrencies 1..16*2 --repeat 3 --requests 80",
    "sweep --virtual --hardware h100 --engine-model llama-3.1-8b --concurrencies 1..16*2 --repeat 3 --requests 80 --json",
    "sweep --virtual --hardware h100 --engine-model llama-3.1-8b --find max~rate~where~ttft.p99<400ms --from 1 --at-most 64 --requests 150",
    "suite quick --virtual",
    "matrix r3 --virtual --only model=Llama-8B",
    "plan --rate 5 --duration 60s",
    "plan --rate 5 --duration 60s --json",
    "run --dry-run --rate 5 --duration 60s --repeat 3",
    "sweep --dry-run --concurrencies 1..64*2 --repeat 3",
    "suite standard --dry-run",
    "suite --list",
    "suite --show quick",
    "matrix --list",
    "matrix r3 --dry-run",
    "engine --list",
    "schema",
    "schema suite",
    "schema matrix",
    "explain ttft",
    "explain inter_token_latency",
    "explain",
    "--help",
    "run --help",
    "sweep --help",
    "suite --help",
    "matrix --help",
    "compare --help",
    "report --help",
    "export --help",
    "engine --help",
    "bench serve --help",
    "run --rate nope",
    "run --rate -1",
    "run --concurency 3",
    "sweep --find ttft<1ms",
    "compare nothing latest",
];

/// Records the golden output of `program` in `folder`.
pub(crate) fn record(program: &Path, folder: &Path) -> Result<String, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, words) in STORED {
        let store = folder.join("stored").join(name);
        if store.exists() {
            continue;
        }
        let words = format!("{words} --output {}", store.display());
        let made = run(program, Path::new("."), &words)?;
        if !store.exists() {
            return Err(format!("`{words}` stored nothing:\n{made}"));
        }
    }
    let expected = folder.join("expected");
    let _ = fs::remove_dir_all(&expected);
    render(program, folder, &expected)?;
    Ok(format!("golden output is in {}\n", expected.display()))
}

/// Renders what is stored in `folder` again and lists the views that differ; an error when some do.
pub(crate) fn compare(program: &Path, folder: &Path) -> Result<String, String> {
    let (expected, actual) = (folder.join("expected"), folder.join("actual"));
    let _ = fs::remove_dir_all(&actual);
    render(program, folder, &actual)?;
    let differences = Command::new("diff")
        .args(["--recursive", "--unified=0"])
        .args([&expected, &actual])
        .output()
        .map_err(|error| format!("diff: {error}"))?;
    let text = String::from_utf8_lossy(&differences.stdout).into_owned();
    fs::write(folder.join("differences.diff"), &text).map_err(|error| error.to_string())?;
    if text.is_empty() {
        return Ok("nothing differs\n".to_owned());
    }
    let mut summary = String::new();
    for part in text.split("\ndiff ").filter(|part| !part.is_empty()) {
        let file = part.lines().next().and_then(|line| line.rsplit('/').next()).unwrap_or_default();
        let changed = part.lines().filter(|line| line.starts_with(['+', '-'])).count();
        let _ = writeln!(summary, "{changed:>6} lines  {file}");
    }
    Err(format!("{summary}see {}", folder.join("differences.diff").display()))
}

/// Writes every view into `out`, one file each.
fn render(program: &Path, folder: &Path, out: &Path) -> Result<(), String> {
    let write = |path: PathBuf, text: &str| {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(out).map_err(|error| error.to_string())?;
    for (name, _) in STORED {
        let stored = folder.join("stored");
        for (view, words) in VIEWS {
            let file = out.join(format!("{name}.{view}"));
            let words = words.replace("{out}", &format!("{}.files", file.display()));
            let words = format!("{words} --output {name}");
            write(file, &run(program, &stored, &words)?.replace(&*out.to_string_lossy(), "OUT"))?;
        }
    }
    let scratch = folder.join("scratch");
    for (number, words) in COMMANDS.iter().enumerate() {
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
        let name: String = words
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(60)
            .collect();
        write(out.join(format!("{number:02}-{name}")), &run(program, &scratch, words)?)?;
    }
    Ok(())
}

/// What a command prints, its errors and its exit code, with ids and times replaced.
fn run(program: &Path, folder: &Path, words: &str) -> Result<String, String> {
    let output = Command::new(program)
        .args(words.split(' ').map(|word| word.replace('~', " ")))
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        text += &String::from_utf8_lossy(&output.stderr);
        let _ = writeln!(text, "exit code {:?}", output.status.code());
    }
    Ok(without_ids(&text))
}

/// Replaces ids of runs, such as `20260102-030405-0a1b`, and moments, such as
/// `2026-01-02T03:04:05.678Z`: they differ in every run.
fn without_ids(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, found) = rest.split_at(at);
        kept.push_str(before);
        let id = matches_shape(found, "dddddddd-dddddd-xxxx").then_some((20, "RUN-ID"));
        let moment = || {
            let end = found.find('Z').filter(|end| *end <= 30)? + 1;
            matches_shape(found, "dddd-dd-ddTdd:dd:dd").then_some((end, "MOMENT"))
        };
        let digits = found.find(|c: char| !c.is_ascii_digit()).unwrap_or(found.len());
        let (end, word) = id.or_else(moment).unwrap_or((digits, &found[..digits]));
        kept.push_str(word);
        rest = &found[end..];
    }
    kept + rest
}

/// Whether a text begins like this: `d` is a digit, `x` a hexadecimal digit, the rest itself.
fn matches_shape(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            _ => byte == wanted,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_moments_are_replaced_and_numbers_kept() {
        let text = "run 20260102-030405-0a1b at 2026-01-02T03:04:05.678Z: 1,524 of 1524 in 2.5 s";
        assert_eq!(without_ids(text), "run RUN-ID at MOMENT: 1,524 of 1524 in 2.5 s");
    }
}
