//! The pages, as a person sees them, from a stored summary.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::Summary;
use inferometer_report::terminal::Style;
use inferometer_report::{Files, block, json, terminal};

/// A run with failures, doubts, and a server that tries to steer the terminal.
fn summary() -> Summary {
    Summary::from_json_bytes(include_bytes!("summary.json")).unwrap()
}

fn files() -> Files {
    let place = |name: &str| format!("runs/20260102-030405-abcd{name}");
    Files {
        run: place(""),
        manifest: place("/manifest.json"),
        journal: place("/requests.journal"),
        summary: place("/summary.json"),
    }
}

#[test]
fn the_terminal_page() {
    insta::assert_snapshot!(terminal::render(&summary(), &files(), Style::Plain));
}

#[test]
fn a_server_cannot_steer_the_terminal() {
    let plain = terminal::render(&summary(), &files(), Style::Plain);
    assert!(!plain.contains('\u{1b}'));
    // With colour there are escapes, but only ours: the server's are shown as text.
    let coloured = terminal::render(&summary(), &files(), Style::Coloured);
    assert!(!coloured.contains("\u{1b}[31m|") && !coloured.contains("\u{1b}[2J"));
    assert!(coloured.contains("\\u{1b}[2J"));
}

#[test]
fn colour_changes_nothing_but_colour() {
    let coloured = terminal::render(&summary(), &files(), Style::Coloured);
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    let trimmed: String = bare.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    assert_eq!(trimmed, terminal::render(&summary(), &files(), Style::Plain));
}

#[test]
fn the_serving_block() {
    insta::assert_snapshot!(block::render(&summary()));
}

#[test]
fn the_document_is_the_summary_and_its_files() {
    let document: serde_json::Value =
        serde_json::from_str(&json::render(&summary(), &files())).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&summary().to_json_bytes()).unwrap();
    for (key, value) in stored.as_object().unwrap() {
        assert_eq!(&document[key], value, "{key}");
    }
    assert_eq!(document["files"]["run"], "runs/20260102-030405-abcd");
}
