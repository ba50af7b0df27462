//! Completions, manual pages and versions, as packages contain them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{output, text};

fn printed(words: &[&str]) -> String {
    let ran = output(words, Path::new("."));
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    text(&ran.stdout)
}

#[test]
fn every_shell_completes_flags_and_the_names_that_they_take() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("concurrency"), "{shell} does not know --concurrency");
        // Elvish and PowerShell complete words that begin with a dash, and no values.
        if ["bash", "fish", "zsh"].contains(&shell) {
            for name in ["long-context", "mi300x4-llama-70b", "r3-concurrency"] {
                assert!(script.contains(name), "{shell} does not know {name}");
            }
        }
    }
    let refused = output(&["completions", "tcsh"], Path::new("."));
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn bash_completes_with_the_script() {
    let script = printed(&["completions", "bash"]);
    let mut bash =
        Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let complete = "COMP_WORDS=(inferometer suite long); COMP_CWORD=2\n\
                    _inferometer inferometer long suite\necho \"${COMPREPLY[@]}\"\n";
    bash.stdin.take().unwrap().write_all(format!("{script}\n{complete}").as_bytes()).unwrap();
    let done = bash.wait_with_output().unwrap();
    assert_eq!(text(&done.stdout).trim(), "long-context");
}

#[test]
fn a_folder_has_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    printed(&["man", pages.to_str().unwrap()]);
    let page = std::fs::read_to_string(pages.join("inferometer-run.1")).unwrap();
    assert!(page.starts_with(".ie ") && page.contains("concurrency"), "{page}");
    for command in ["", "-suite", "-compare", "-bench-serve", "-engine"] {
        assert!(pages.join(format!("inferometer{command}.1")).exists(), "no page of {command}");
    }
    assert!(printed(&["man"]).contains("inferometer"));
    let page = printed(&["man", "run"]);
    assert!(page.contains("Measure one server") && page.contains("concurrency"), "{page}");
    let unknown = output(&["man", "man1"], folder.path());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("inferometer man ./man1"), "{}", text(&unknown.stderr));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = output(&["man", file.to_str().unwrap()], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("cannot be written"), "{}", text(&refused.stderr));
}

#[test]
fn the_long_version_names_commit_profile_and_target() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed(&["-V"]), format!("inferometer {version}\n"));
    let long = printed(&["--version"]);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], format!("inferometer {version}"));
    assert!(lines[1].starts_with("commit: "), "{long}");
    assert!(lines[2].starts_with("build:  ") && lines[2].contains(", rustc "), "{long}");
}
