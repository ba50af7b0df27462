//! Programs on a core of their own, under a time limit, with their words kept in files.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::bench::Bench;

/// A program that ran.
#[derive(Debug)]
pub(crate) struct Run {
    /// Where it ran and left its files.
    pub(crate) folder: PathBuf,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    status: ExitStatus,
    time_limit_s: u32,
}

impl Run {
    pub(crate) fn succeeded(&self) -> Result<(), String> {
        match self.status.code() {
            Some(0) => Ok(()),
            // What `timeout` exits with, the second when the program had to be killed.
            Some(124 | 137) => Err(format!("did not end within {} s", self.time_limit_s)),
            _ => Err(format!("ended with {}", self.status)),
        }
    }

    pub(crate) fn json(&self, name: &str) -> Result<serde_json::Value, String> {
        let path = self.folder.join(name);
        let text = std::fs::read_to_string(&path).map_err(|_| format!("wrote no {name}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{name} is no JSON: {error}"))
    }
}

/// Runs a client on the client's core.
///
/// Its words go to files: a pipe would stay open for as long as any process that a client left
/// behind, and the time limit would not hold.
pub(crate) fn run(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    bench: &Bench,
) -> Result<Run, String> {
    let out = |name: &str| {
        File::create(folder.join(name)).map_err(|error| format!("cannot write {name}: {error}"))
    };
    let status = Command::new("timeout")
        .arg("--kill-after=5")
        .arg(bench.time_limit_s.to_string())
        .args(["taskset", "--cpu-list"])
        .arg(&bench.client_cores)
        .arg(program)
        .args(arguments)
        .envs(bench.environment_variables())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out("stdout.txt")?)
        .stderr(out("stderr.txt")?)
        .status()
        .map_err(|error| format!("`timeout` did not start: {error}"))?;
    let words = |name: &str| {
        std::fs::read(folder.join(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    };
    Ok(Run {
        folder: folder.to_path_buf(),
        stdout: words("stdout.txt"),
        stderr: words("stderr.txt"),
        status,
        time_limit_s: bench.time_limit_s,
    })
}

/// The end of what a program said, in one line.
pub(crate) fn last_words(run: &Run) -> String {
    let words = if run.stderr.trim().is_empty() { &run.stdout } else { &run.stderr };
    let lines: Vec<&str> = words
        .lines()
        .map(|line| line.trim_matches(|c: char| !c.is_ascii_graphic()))
        .filter(|line| line.contains(char::is_alphanumeric))
        .collect();
    let end = lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ");
    let skipped = end.chars().count().saturating_sub(LAST_CHARACTERS);
    format!("“{}”", end.chars().skip(skipped).collect::<String>())
}

/// Parts of a command line.
pub(crate) fn words<T: Into<OsString>>(words: impl IntoIterator<Item = T>) -> Vec<OsString> {
    words.into_iter().map(Into::into).collect()
}

const LAST_LINES: usize = 3;
const LAST_CHARACTERS: usize = 240;

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn ended(code: i32, stderr: &str) -> Run {
        Run {
            folder: PathBuf::new(),
            stdout: "said".to_owned(),
            stderr: stderr.to_owned(),
            status: ExitStatus::from_raw(code << 8),
            time_limit_s: 9,
        }
    }

    #[test]
    fn a_time_limit_is_told_from_a_failure() {
        assert_eq!(ended(0, "").succeeded(), Ok(()));
        assert_eq!(ended(124, "").succeeded(), Err("did not end within 9 s".to_owned()));
        assert_eq!(ended(1, "").succeeded(), Err("ended with exit status: 1".to_owned()));
    }

    #[test]
    fn the_last_words_are_the_last_lines_that_say_something() {
        let run = ended(1, "a\nb\n│ c │\n\nd\n╰────╯\n");
        assert_eq!(last_words(&run), "“b / c / d”");
        assert_eq!(last_words(&ended(1, "")), "“said”");
    }
}
