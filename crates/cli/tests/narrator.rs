//! A model as the writer of a report: what of its words stands, whom it is told what, and what
//! happens when it is not there.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use support::{http, inferometer, output, server_hearing, text};

const TRUE: &str = "Output throughput is highest at c=8.";
const FALSE: &str = "Output throughput is highest at c=2.";

/// Two scenarios that are quickly simulated.
const SUITE: &str = "\
[defaults.load]
requests = 20
[defaults.workload]
input_tokens = 64
output_tokens = 8
[[scenario]]
name = \"First\"
category = \"Latency\"
purpose = \"One by one.\"
[scenario.load]
concurrency = 1
[[scenario]]
name = \"Second\"
category = \"Throughput\"
purpose = \"More at once.\"
[scenario.sweep]
concurrencies = [2, 4]
";

fn models() -> String {
    let list = json!({ "object": "list", "data": [{ "id": "writer", "object": "model" }] });
    http("200 OK", "application/json", &list.to_string())
}

fn answer(said: &str) -> String {
    let reply = json!({ "choices": [{ "message": { "role": "assistant", "content": said } }] });
    http("200 OK", "application/json", &reply.to_string())
}

/// Says what it is told to, and hands on the heads of the questions.
fn narrator(said: &'static str) -> (SocketAddr, mpsc::Receiver<String>) {
    let (heard, questions) = mpsc::channel();
    let address = server_hearing(move |head| {
        if head.starts_with("GET /v1/models ") {
            return models();
        }
        heard.send(head.to_owned()).unwrap();
        answer(said)
    });
    (address, questions)
}

/// An address where nobody answers.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[track_caller]
fn played(arguments: &[&str], folder: &Path) -> PathBuf {
    let ran = output(arguments, folder);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let mut entries = fs::read_dir(folder.join("runs")).unwrap();
    entries.next().unwrap().unwrap().path()
}

fn sweep(folder: &Path) -> PathBuf {
    let levels = ["sweep", "--virtual", "--concurrencies", "2,4,8", "--requests", "80", "--quiet"];
    let sizes = ["--input-tokens", "64", "--output-tokens", "32", "--engine-step", "10ms"];
    played(&[&levels[..], &sizes[..]].concat(), folder)
}

fn suite_in(folder: &Path) -> String {
    let file = folder.join("small.toml");
    fs::write(&file, SUITE).unwrap();
    file.to_str().unwrap().to_owned()
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    output(&[&["report", "latest"], arguments].concat(), folder)
}

fn page(set: &Path) -> String {
    fs::read_to_string(set.join("report.md")).unwrap()
}

#[test]
fn what_is_true_stands_on_the_page_and_what_is_false_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let set = sweep(folder.path());
    let said = "SUMMARY\n- Output throughput is highest at c=8.\n\
                - Output throughput is highest at c=2.\n";
    let (address, questions) = narrator(said);
    let url = format!("http://{address}");
    let ran = report(&["--narrator", &url], folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains(&format!("`writer` at {url}")), "{}", text(&ran.stderr));
    assert!(questions.recv().unwrap().starts_with("POST /v1/chat/completions "));
    let told = page(&set);
    assert!(told.contains(TRUE) && !told.contains(FALSE), "{told}");
    assert!(told.contains("written by the model writer"), "{told}");
    assert!(told.contains("1 kept, 1 rejected"), "{told}");

    let ran = report(&["--narrator", &nobody()], folder.path());
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("no page was changed"), "{}", text(&ran.stderr));
    assert_eq!(page(&set), told, "as it was");
    assert!(report(&[], folder.path()).status.success());
    assert_eq!(page(&set), told, "nobody is asked again");

    fs::write(set.join("narration.json"), "{ damaged").unwrap();
    let ran = report(&[], folder.path());
    assert!(ran.status.success() && text(&ran.stderr).contains("narration.json"));
    assert!(page(&set).contains("made from the numbers by rules"), "{}", page(&set));
}

/// A run at a server that takes any key, and then a report that asks that server to write.
#[test]
fn a_stored_run_cannot_ask_for_keys() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "typed-now\n").unwrap();
    let run = played(
        &["run", "--requests", "4", "--output-tokens", "4", "--engine-step", "1ms", "--quiet"],
        folder.path(),
    );
    let (address, questions) = narrator("Nothing.");
    let manifest = run.join("manifest.json");
    let mut hostile: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    hostile["spec"]["target"] = json!({ "url": format!("http://{address}") });
    fs::write(&manifest, hostile.to_string()).unwrap();
    let asked = |arguments: &[&str]| {
        let ran = inferometer()
            .args(["report", "latest", "--narrator", "target"])
            .args(arguments)
            .env("OPENAI_API_KEY", "from-the-environment")
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        questions.recv().unwrap().to_lowercase()
    };
    let head = asked(&[]);
    assert!(!head.contains("authorization"), "{head}");
    let head = asked(&["--narrator-key-file", key.to_str().unwrap()]);
    assert!(head.contains("authorization: bearer typed-now"), "{head}");
}

#[test]
fn an_engine_that_babbles_leaves_the_page_to_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let run = played(
        &["run", "--requests", "4", "--output-tokens", "4", "--engine-step", "50us", "--quiet"],
        folder.path(),
    );
    let ran = report(&["--narrator", "target"], folder.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let told = page(&run);
    assert!(told.contains("by rules; the model") && told.contains("gave none"), "{told}");
}

#[test]
fn a_narrator_that_cannot_write_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let suite = suite_in(folder.path());
    let nobody = nobody();
    for (arguments, code, why) in [
        (&["--virtual", "--narrator", "target"][..], 2, "no model was measured"),
        (&["--narrator", "target", "--narrator-key-file", "key"], 2, "its own key"),
        (&["--narrator", &nobody, "--narrator-key-file", "missing"], 2, "missing"),
        (&["--virtual", "--narrator", &nobody], 3, "--narrator http://127.0.0.1"),
    ] {
        let ran = output(&[&["suite", &suite], arguments].concat(), folder.path());
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
        let made = fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
        assert_eq!(made, 0, "{arguments:?}");
    }
}

#[test]
fn a_signal_ends_the_writing_and_the_page_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let suite = suite_in(folder.path());
    let (heard, asked) = mpsc::channel();
    let address = server_hearing(move |head| {
        if head.starts_with("GET /v1/models ") {
            return models();
        }
        heard.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    let child = inferometer()
        .args(["suite", &suite, "--virtual", "--narrator", &format!("http://{address}")])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    asked.recv().unwrap();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(130), "{}", text(&ran.stderr));
    let told = text(&ran.stdout);
    assert!(told.trim_end().ends_with("report.html"), "{told}");
    let set = fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    assert!(page(&set).contains("it was stopped by a signal"), "{}", page(&set));
    assert!(set.join("report.html").is_file() && set.join("summary.json").is_file());
}

#[test]
fn a_report_that_cannot_be_written_takes_nothing_from_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let suite = suite_in(folder.path());
    let ran = output(&["suite", &suite, "--virtual", "--json", "--quiet"], folder.path());
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let written = PathBuf::from(document["files"]["report"].as_str().unwrap());
    let written = folder.path().join(written);
    assert!(written.is_file() && ran.stderr.is_empty(), "{}", text(&ran.stderr));
    let before = ran.status.code().unwrap();

    fs::remove_file(&written).unwrap();
    fs::create_dir(&written).unwrap();
    fs::write(written.join("in-the-way"), "").unwrap();
    let ran = output(&["suite", "--resume", "latest", "--json", "--quiet"], folder.path());
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(if before == 0 { 1 } else { before }), "{said}");
    assert!(said.contains("warning: no report was written") && !said.contains("--to"), "{said}");
    assert!(said.contains("inferometer report runs"), "{said}");
    let again: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(again["verdict"], document["verdict"]);
    assert!(again["files"].get("report").is_none(), "{}", again["files"]);
}
