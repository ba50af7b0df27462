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

/// Three paragraphs of command lines, in which a tilde is a space inside a word. First what is stored,
/// each behind the name of a folder of runs of its own; then what is printed of each stored run, set
/// or import, behind the name of the view; last commands that need no stored run. Those in virtual
/// time are exact, so their pages are compared.
const COMMANDS: &str = include_str!("../goldens.txt");

/// The lines of a paragraph.
fn commands(paragraph: usize) -> impl Iterator<Item = &'static str> {
    COMMANDS.split("\n\n").nth(paragraph).into_iter().flat_map(str::lines)
}

/// The names and command lines of a paragraph.
fn named(paragraph: usize) -> impl Iterator<Item = (&'static str, &'static str)> {
    commands(paragraph).filter_map(|line| line.split_once(' '))
}

/// Records the golden output of `program` in `folder`.
pub(crate) fn record(program: &Path, folder: &Path) -> Result<String, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, words) in named(0) {
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
    for (name, _) in named(0) {
        let stored = folder.join("stored");
        for (view, words) in named(1) {
            let file = out.join(format!("{name}.{view}"));
            let words = words.replace("{out}", &format!("{}.files", file.display()));
            let words = format!("{words} --output {name}");
            write(file, &run(program, &stored, &words)?.replace(&*out.to_string_lossy(), "OUT"))?;
        }
    }
    let scratch = folder.join("scratch");
    for (number, words) in commands(2).enumerate() {
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
