//! What the tool must not destroy, lose or wait for, whatever happens around it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::{Engine, inferometer, output, text};

fn send(signal: Signal, child: &Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Waits until `holds`, for at most half a minute.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1_500 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} did not happen");
}

#[test]
fn outputs_replace_nothing_but_regular_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = |words: &str| {
        let ran = output(&words.split_whitespace().collect::<Vec<_>>(), path);
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
        text(&ran.stdout)
    };
    run("simulate --requests 20 --quiet");
    let table = run("export latest --format csv --to -");
    assert!(table.starts_with("result") || table.contains(','), "{table}");

    let commands: [(&str, &str); 4] = [
        ("export latest --format csv --to", &table),
        ("report latest --format html --to", ""),
        ("report latest --format md --to", ""),
        ("plan --requests 3 --save", ""),
    ];
    for (command, expected) in commands {
        // A device is written to.
        symlink("/dev/null", path.join("null")).unwrap();
        run(&format!("{command} null"));
        assert_eq!(fs::read_link(path.join("null")).unwrap(), Path::new("/dev/null"), "{command}");
        fs::remove_file(path.join("null")).unwrap();

        // A link is followed, also where it leads to nothing yet.
        symlink("elsewhere", path.join("link")).unwrap();
        for _ in 0..2 {
            run(&format!("{command} link"));
            assert_eq!(fs::read_link(path.join("link")).unwrap(), Path::new("elsewhere"));
            let found = fs::read_to_string(path.join("elsewhere")).unwrap();
            assert!(!found.is_empty() && found.contains(expected), "{command}: {found}");
        }
        fs::remove_file(path.join("link")).unwrap();
        fs::remove_file(path.join("elsewhere")).unwrap();

        // A FIFO has a reader.
        assert!(Command::new("mkfifo").arg(path.join("fifo")).status().unwrap().success());
        let words: Vec<&str> = command.split(' ').chain(["fifo"]).collect();
        let unread = output(&words, path);
        assert!(!unread.status.success(), "nothing reads it");
        assert!(text(&unread.stderr).contains("use - to print"), "{}", text(&unread.stderr));
        let fifo = path.join("fifo");
        let reader = std::thread::spawn(move || fs::read_to_string(fifo).unwrap());
        run(&format!("{command} fifo"));
        assert!(reader.join().unwrap().contains(expected), "{command}");
        assert!(fs::symlink_metadata(path.join("fifo")).unwrap().file_type().is_fifo());
        fs::remove_file(path.join("fifo")).unwrap();
    }
}

#[test]
fn a_plan_that_is_not_saved_to_its_end_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let size = || -> u64 {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().map_or(0, |found| found.len())).sum()
    };
    let mut plan = inferometer()
        .args(["plan", "--requests", "300000", "--save", "plan.jsonl"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("a draft", || 0 < size());
    send(Signal::SIGINT, &plan);
    assert_eq!(plan.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    let engine = Engine::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mut run = Command::new("nohup");
    run.arg(env!("CARGO_BIN_EXE_inferometer")).args(["run", &engine.url(), "--json"]);
    run.args(["--concurrency", "1", "--requests", "40", "--output-tokens", "4"]);
    let mut run = run
        .env("XDG_CACHE_HOME", "/nonexistent")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("a request", || !engine.truth().requests.is_empty());
    send(Signal::SIGHUP, &run);
    assert!(matches!(run.wait().unwrap().code(), Some(0 | 4)));
    let stopped = support::observations(folder.path()).ending.stop;
    assert_eq!(stopped, inferometer_model::journal::RunStop::PlanDone);
}

/// Every file below a folder, with its bytes.
fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found
}

#[test]
fn secrets_that_were_typed_reach_no_file_and_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let key = "sk-test/0123456789+abc";
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms", "--model", key]);
    let ran = inferometer()
        .args(["run", &engine.url(), "--requests", "4", "--output-tokens", "2", "--repeat", "2"])
        .args(["--restart", &format!("HF_TOKEN=restart-secret true '{key}'"), "--stop", key])
        .args(["--extra-body", &format!(r#"{{"user":"{key}","in":{{"password":"body-secret"}}}}"#)])
        .args(["--metrics-path", "/metrics?api_key=query-secret", "--prompt", key])
        .args(["--header", "X-Any: header-secret", "--metadata", &format!("{key}={key}")])
        .env("OPENAI_API_KEY", key)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let mut places = files_below(folder.path());
    assert!(10 <= places.len(), "a set of two runs has more files");
    places.push(("stdout".into(), ran.stdout));
    places.push(("stderr".into(), ran.stderr));
    // The base64 spelling was made by another program (Python's base64 module).
    let spellings = [key, "c2stdGVzdC8wMTIzNDU2Nzg5K2FiYw", "sk-test%2F0123456789%2Babc"];
    let typed = ["restart-secret", "body-secret", "query-secret", "header-secret"];
    for (path, bytes) in &places {
        for secret in spellings.iter().chain(&typed) {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds {secret}", path.display());
        }
    }

    // What was struck out is missing when the set is resumed, so it is not resumed.
    let resumed = output(&["sweep", "--resume", "latest"], folder.path());
    let said = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(2), "{said}");
    assert!(said.contains("without the secrets"), "{said}");
}

#[test]
fn a_secret_in_a_file_of_another_program_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let restart = "echo our-own-password";
    let ran = inferometer()
        .args(["run", &engine.url(), "--requests", "4", "--output-tokens", "2", "--repeat", "2"])
        .args(["--restart", restart, "--header", "X-Any: our-own-password"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = text(&ran.stderr);
    assert!(said.contains("restart.log holds a key or password"), "{said}");
}

#[test]
fn messages_do_not_repeat_passwords() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["run", "--gpu-telemetry", "dcgm=http://u:PW-of-mine@gpu1:9400/metrics"][..],
        &["run", "http://u:PW-of-mine@host:80"],
        &["run", "--concurrency", "http://u:PW-of-mine@host:80"],
        &["run", "--header", "PW-of-mine"],
    ] {
        let ran = output(arguments, folder.path());
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(!said.contains("PW-of-mine") && said.contains("error"), "{said}");
    }
}

#[test]
fn a_set_from_elsewhere_is_resumed_only_if_it_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    fs::write(folder.path().join("own-key"), "mine\n").unwrap();
    let ran = inferometer()
        .args(["run", &engine.url(), "--requests", "4", "--output-tokens", "2", "--repeat", "3"])
        .args(["--restart", "true", "--api-key-file", "own-key", "--quiet"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let set = fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let resume = |more: &[&str]| {
        fs::remove_dir_all(set.join("points/2")).unwrap();
        let ran = output(&[&["sweep", "--resume", "latest"], more].concat(), folder.path());
        (ran.status.code(), text(&ran.stderr))
    };
    let (code, said) = resume(&[]);
    assert!(matches!(code, Some(0 | 4)), "it was begun here: {said}");

    // Somebody else's set has another command, and sends another file as a key.
    let path = set.join("set.json");
    let changed = fs::read_to_string(&path).unwrap().replace("\"true\"", "\"touch stolen\"");
    fs::write(&path, changed.replace("own-key", "your-key")).unwrap();
    fs::write(folder.path().join("your-key"), "yours\n").unwrap();
    let (code, said) = resume(&[]);
    assert_eq!(code, Some(2), "{said}");
    let your_key = folder.path().join("your-key").display().to_string();
    let shown = [format!("url: {}", engine.url()), "restart: touch stolen".to_owned(), your_key];
    assert!(
        said.contains("key file: ")
            && shown.iter().all(|line| said.contains(line))
            && said.contains("--trust"),
        "{said}"
    );
    assert!(!folder.path().join("stolen").exists(), "nothing was run");
    fs::create_dir_all(set.join("points/2")).unwrap();
    let (code, said) = resume(&["--trust"]);
    assert!(matches!(code, Some(0 | 4)), "{said}");
    assert!(folder.path().join("stolen").exists());
}

#[test]
fn files_without_an_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let endless = folder.path().join("endless.toml");
    symlink("/dev/zero", &endless).unwrap();
    let endless = endless.to_str().unwrap();
    let engine = ["engine", "--profile", endless];
    for arguments in [
        &["run", "--prompt-file", endless][..],
        &["run", "http://127.0.0.1:9", "--api-key-file", endless],
        &["run", "--dataset", endless],
        &["run", "--trace", endless],
        &["run", "--plan", endless],
        &["run", "--tools", endless],
        &["run", "--tokenizer", endless],
        &["run", endless],
        &["suite", endless],
        &["matrix", endless],
        &["import", endless],
        &["fit", endless, "--profile", "h100-llama-8b"],
        &engine,
    ] {
        // A reader without a bound would take all memory of the machine.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 4194304; ulimit -t 20; exec \"$0\" \"$@\""]);
        command.arg(env!("CARGO_BIN_EXE_inferometer"));
        let ran = command.args(arguments).current_dir(folder.path()).output().unwrap();
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
        let is_named = said.contains("it is a device") || said.contains("neither a file");
        assert!(arguments == engine || is_named, "{arguments:?}: {said}");
    }
    let long = folder.path().join("long.txt");
    fs::write(&long, vec![b'x'; 5 << 20]).unwrap();
    let ran = output(&["run", "--prompt-file", "long.txt"], folder.path());
    assert!(text(&ran.stderr).contains("long.txt: it is longer than 4 MiB"));
}

#[test]
fn a_terminal_that_takes_nothing_does_not_delay_the_storing() {
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    // A pipe that is full is as a terminal that was stopped with Ctrl-S.
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&vec![b' '; 64 << 10]).unwrap();
    let mut run = inferometer()
        .args(["run", &engine.url(), "--requests", "4", "--output-tokens", "2", "--seed", "1"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(writer)
        .spawn()
        .unwrap();
    let is_stored = || {
        let runs = fs::read_dir(folder.path().join("runs")).into_iter().flatten();
        runs.flatten().any(|run| run.path().join("summary.json").exists())
    };
    wait_until("the storing", is_stored);
    assert_eq!(run.try_wait().unwrap(), None, "what it said is still waiting");
    let mut said = Vec::new();
    reader.read_to_end(&mut said).unwrap();
    assert!(matches!(run.wait().unwrap().code(), Some(0 | 4)));
    assert!(text(&said).contains("measuring"), "{}", text(&said));
}

#[test]
fn a_run_whose_folder_is_removed_is_stored_all_the_same() {
    let engine = Engine::start(&["--ttft", "20ms", "--gap", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let run = inferometer()
        .args(["run", &engine.url(), "--concurrency", "1", "--requests", "150"])
        .args(["--output-tokens", "2"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("some requests", || 30 < engine.truth().requests.len());
    fs::remove_dir_all(folder.path().join("runs")).unwrap();
    let ran = run.wait_with_output().unwrap();
    let said = text(&ran.stderr);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{said}");
    assert!(said.contains("records are written again"), "{said}");
    assert_eq!(support::observations(folder.path()).records.len(), 150);
    assert!(output(&["verify", "latest"], folder.path()).status.success());
}

#[test]
fn what_was_changed_by_hand_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&["simulate", "--requests", "40", "--quiet"], folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let run = support::latest_run(folder.path());
    let export = || output(&["export", "latest", "--format", "csv"], folder.path());
    let honest = export();
    let path = run.path().join("summary.json");
    let written = fs::read_to_string(&path).unwrap();
    let changed = written.replacen("\"mean\": ", "\"mean\": 1", 1);
    assert_ne!(changed, written);
    fs::write(&path, &changed).unwrap();
    let exported = export();
    assert_eq!(text(&exported.stdout), text(&honest.stdout), "the records count");
    for arguments in [
        &["export", "latest", "--format", "csv"][..],
        &["report", "latest", "--format", "json"],
        &["compare", "latest", "latest"],
        &["runs"],
    ] {
        let said = text(&output(arguments, folder.path()).stderr);
        assert!(said.contains("changed after it was written"), "{arguments:?}: {said}");
    }
    fs::write(&path, written).unwrap();

    // Whatever it is, a field of the manifest cannot be changed unnoticed.
    let path = run.path().join("manifest.json");
    let written = fs::read_to_string(&path).unwrap();
    for (key, value) in [("monotonic_ns\": ", "1"), ("os\": \"", "x"), ("drivers\": ", "1")] {
        let changed = written.replacen(key, &format!("{key}{value}"), 1);
        assert_ne!(changed, written, "{key}");
        fs::write(&path, changed).unwrap();
        let verified = output(&["verify", "latest"], folder.path());
        assert_eq!(verified.status.code(), Some(4), "{key}: {}", text(&verified.stderr));
    }
    fs::write(&path, written).unwrap();
    assert!(output(&["verify", "latest"], folder.path()).status.success());
}

#[test]
fn a_suite_of_many_scenarios_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = |number| format!("[[scenario]]\nname = \"s{number}\"\npurpose = \"p\"\n");
    let text_of = (0..20_000).map(scenario).collect::<String>();
    fs::write(folder.path().join("many.toml"), text_of).unwrap();
    // Quadratic work takes minutes.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -t 20; exec \"$0\" suite many.toml --dry-run"]);
    command.arg(env!("CARGO_BIN_EXE_inferometer"));
    let ran = command.current_dir(folder.path()).output().unwrap();
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("20000 scenarios are more than"), "{said}");
}

#[test]
fn an_engine_that_everyone_can_reach_says_so() {
    for (host, is_said) in [("0.0.0.0", true), ("127.0.0.1", false)] {
        let ran = inferometer()
            .args(["engine", "--mode", "paced", "--port", "0", "--until-stdin-closes"])
            .args(["--host", host])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = text(&ran.stderr);
        assert_eq!(said.contains("everyone who reaches this machine"), is_said, "{said}");
    }
}
