//! Judging clients: every one that is installed, on all loads and on the conformance corpus.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

const PAGE: &str = "docs/judged.md";
/// The name of the preset, the program, and what prints its version.
const CLIENTS: [(&str, &str, &[&str]); 9] = [
    ("inferometer", "", &["--version"]),
    ("vllm", "vllm", &["--version"]),
    ("guidellm", "guidellm", &["--version"]),
    ("aiperf", "aiperf", &["--version"]),
    ("genai-perf", "genai-perf", &["--version"]),
    (
        "inference-perf",
        "python3",
        &["-c", "import importlib.metadata as m; print(m.version('inference-perf'))"],
    ),
    ("sglang", "python3", &["-c", "import sglang; print(sglang.__version__)"]),
    ("oha", "oha", &["--version"]),
    ("k6", "k6", &["version"]),
];

/// What is known of a client, kept as a file.
#[derive(Serialize, Deserialize)]
struct Judged {
    preset: String,
    version: String,
    /// The day on which it was judged.
    date: String,
    loads: Judgement,
    corpus: Judgement,
}

/// The parts of `inferometer judge --json` that the page shows.
#[derive(Serialize, Deserialize)]
struct Judgement {
    client: String,
    grade: String,
    loads: Vec<Load>,
}

#[derive(Serialize, Deserialize)]
struct Load {
    name: String,
    grade: String,
    reasons: Vec<Reason>,
    is_untimed: bool,
}

#[derive(Serialize, Deserialize)]
struct Reason {
    text: String,
}

/// Judges what is installed, and writes the page of all clients whose results are kept.
pub(crate) fn judge_clients(
    program: &Path,
    folder: &Path,
    target: &Path,
) -> Result<String, String> {
    let kept = target.join("judged");
    std::fs::create_dir_all(&kept).map_err(|error| error.to_string())?;
    for (preset, name, version) in CLIENTS {
        let client = if name.is_empty() {
            program.to_owned()
        } else {
            folder.join(preset).join("bin").join(name)
        };
        if !client.is_file() {
            eprintln!("{preset}: not installed");
            continue;
        }
        let judged = Judged {
            preset: preset.to_owned(),
            version: version_in(&printed(Command::new(&client).args(version))?),
            date: printed(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned(),
            loads: judge(program, preset, &client, &[])?,
            corpus: judge(program, preset, &client, &["--conformance"])?,
        };
        let json = serde_json::to_string_pretty(&judged).map_err(|error| error.to_string())?;
        write(&kept.join(format!("{preset}.json")), &json)?;
    }
    let read = |(preset, ..): &(&str, &str, &[&str])| {
        let text = std::fs::read(kept.join(format!("{preset}.json"))).ok()?;
        serde_json::from_slice(&text).ok()
    };
    let all: Vec<Judged> = CLIENTS.iter().filter_map(read).collect();
    write(&PathBuf::from(PAGE), &page(&all))?;
    Ok(format!("{PAGE}: {} clients", all.len()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn printed(command: &mut Command) -> Result<String, String> {
    let ran = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// The last word with a digit and a dot of the first line that has one, behind what some tools print before.
fn version_in(printed: &str) -> String {
    let is_version = |word: &&str| {
        word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
    };
    let found = printed.lines().find_map(|line| line.split_whitespace().rfind(is_version));
    let found = found.unwrap_or("unknown");
    found.trim_start_matches('v').to_owned()
}

fn judge(program: &Path, preset: &str, client: &Path, more: &[&str]) -> Result<Judgement, String> {
    eprintln!("judging {preset} {}", more.join(" "));
    let mut command = Command::new(program);
    command.args(["judge", "--preset", preset, "--json", "--quiet"]);
    let json = printed(command.args(more).arg("--").arg(client))?;
    serde_json::from_str(&json).map_err(|error| format!("{preset}: no judgement: {error}"))
}

fn page(clients: &[Judged]) -> String {
    let mut page = include_str!("judged.txt").to_owned();
    let mut line = |text: String| {
        page.push_str(&text);
        page.push('\n');
    };
    line("| client | version | judged on | grade | loads with A | corpus with A |\n|---|---|---|---|---|---|".to_owned());
    for it in clients {
        let good = |judgement: &Judgement| {
            let good = judgement.loads.iter().filter(|load| load.grade == "A").count();
            match judgement.loads.len() {
                0 => "not judged".to_owned(),
                all => format!("{good} of {all}"),
            }
        };
        let grade = (&it.loads.grade).max(&it.corpus.grade);
        let (client, version, date) = (&it.loads.client, &it.version, &it.date);
        let (loads, corpus) = (good(&it.loads), good(&it.corpus));
        line(format!("| {client} | {version} | {date} | {grade} | {loads} | {corpus} |"));
    }
    for (title, of) in [
        ("Loads", (|it| &it.loads) as fn(&Judged) -> &Judgement),
        ("Conformance corpus", |it| &it.corpus),
    ] {
        let judged: Vec<&Judgement> =
            clients.iter().map(of).filter(|it| !it.loads.is_empty()).collect();
        line(format!("\n## {title}\n\n{}", grades(&judged)));
        for judgement in judged {
            line(reasons(judgement));
        }
    }
    page.trim_end().to_owned() + "\n"
}

/// A row for each load, a column for each client.
fn grades(clients: &[&Judgement]) -> String {
    let cells = |cell: &dyn Fn(&Judgement) -> String| {
        clients.iter().fold(String::new(), |row, it| row + &format!(" {} |", cell(it)))
    };
    let names = cells(&|it| it.client.clone());
    let mut table = format!("| load |{names}\n|---|{}\n", "---|".repeat(clients.len()));
    for load in clients.first().map_or(&[][..], |it| &it.loads) {
        let grade = |it: &Judgement| {
            let Some(found) = it.loads.iter().find(|known| known.name == load.name) else {
                return "–".to_owned();
            };
            format!("{}{}", found.grade, if found.is_untimed { " \\*" } else { "" })
        };
        let _ = writeln!(table, "| `{}` |{}", load.name, cells(&grade));
    }
    table
}

/// On one line. What a client printed when it failed has paths of one machine in it: their last parts stay.
fn without_paths(text: &str) -> String {
    let last_part = |word: &str| {
        let begin = word.find('/').filter(|_| !word.contains("://"));
        let (before, path) = word.split_at(begin.unwrap_or(word.len()));
        format!("{before}{}", path.rsplit('/').next().unwrap_or_default())
    };
    let words: Vec<String> = text.split_whitespace().map(last_part).collect();
    words.join(" ").replace('|', "\\|")
}

/// What is held against a client, load by load.
fn reasons(judgement: &Judgement) -> String {
    let mut text = format!("**{}**\n\n", judgement.client);
    for load in judgement.loads.iter().filter(|load| !load.reasons.is_empty()) {
        let known: Vec<String> = load.reasons.iter().map(|it| without_paths(&it.text)).collect();
        let _ = writeln!(text, "- `{}`, {}: {}", load.name, load.grade, known.join("; "));
    }
    if judgement.loads.iter().all(|load| load.reasons.is_empty()) {
        text.push_str("Nothing is held against it.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_keep_what_follows_a_colon_and_lose_folders() {
        let text = "no result: it failed:\n  File \"/srv/u/x/run.py\", at http://h/v1: No such file: '/tmp/a'";
        let shown = "no result: it failed: File \"run.py\", at http://h/v1: No such file: 'a'";
        assert_eq!(without_paths(text), shown);
    }
}
