//! Servers that are put up for a measurement: our own engine as the command, and what goes wrong.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::deployment::DepartureEnding;
use inferometer_model::{Clock, observations::Manifest};
use inferometer_store::{RunDirectory, SetDirectory};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::{inferometer, latest_run, output, text};

/// The engine as a program that is put up.
fn engine() -> String {
    format!("{} engine --mode paced --gap 1ms --port {{port}}", env!("CARGO_BIN_EXE_inferometer"))
}

/// A server that a shell starts, with its port as `$1`.
fn by_shell(script: &str) -> String {
    format!("sh -c {} sh {{port}}", shlex_quoted(script))
}

fn shlex_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The same engine behind a shell.
fn engine_at_port() -> String {
    engine().replace("{port}", "$1")
}

const SMALL: [&str; 6] = ["--requests", "6", "--concurrency", "2", "--output-tokens", "4"];

fn run(folder: &Path, serve: &str, more: &[&str]) -> Output {
    output(&[&["run", "--serve", serve][..], &SMALL, more].concat(), folder)
}

fn manifest(directory: &RunDirectory) -> Manifest {
    directory.manifest().unwrap()
}

fn port_of(manifest: &Manifest) -> u16 {
    manifest.endpoint.address.port()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

fn the_set(folder: &Path) -> SetDirectory {
    let path = fs::read_dir(folder.join("runs")).unwrap().map(|it| it.unwrap().path());
    SetDirectory::at(path.into_iter().find(|path| path.join("set.json").exists()).unwrap())
}

/// Waits until a process is gone: one that was killed is there a moment longer.
fn is_gone(pid: i32) -> bool {
    let clock = SystemClock::new();
    while kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH) {
        if Duration::from_secs(10) < Duration::from_nanos(clock.now().as_nanos()) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Begins a run, waits until it says `word`, and then does as it is told.
fn begun(
    folder: &Path,
    arguments: &[&str],
    word: &str,
    then: impl FnOnce(Pid),
) -> (ExitStatus, String) {
    let mut run = inferometer()
        .args(arguments)
        .current_dir(folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(word) {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    then(Pid::from_raw(i32::try_from(run.id()).unwrap()));
    stderr.read_to_string(&mut said).unwrap();
    (run.wait().unwrap(), said)
}

/// Waits for a file that another process writes, and gives the number in it.
fn number_in(path: &Path) -> i32 {
    let clock = SystemClock::new();
    loop {
        if let Ok(number) = fs::read_to_string(path).unwrap_or_default().trim().parse() {
            return number;
        }
        assert!(clock.now().as_nanos() < 30_000_000_000, "{} is not written", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_server_is_put_up_measured_and_taken_down() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &engine(), &["--serve-env", "SOME_TOKEN"]);
    let said = text(&ran.stderr);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{said}");
    assert!(said.contains("it generates") && said.contains("it went"), "{said}");
    let directory = latest_run(folder.path());
    let manifest = manifest(&directory);
    let server = manifest.server.clone().unwrap();
    let deployment = server.deployment.unwrap();
    assert_eq!((deployment.kind.as_str(), deployment.restarts), ("process", 0));
    assert!(deployment.command.contains(&port_of(&manifest).to_string()), "{deployment:?}");
    assert!(server.start_command.unwrap().contains("engine --mode paced"));
    assert!(is_free(port_of(&manifest)), "no server is left behind");
    assert!(directory.path().join("server.log").exists(), "its words are kept beside the run");
    let strays = fs::read_dir(folder.path().join("runs")).unwrap().count();
    assert_eq!(strays, 1, "and nowhere else");
}

#[test]
fn a_new_server_for_each_of_five_repetitions_and_none_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &engine(), &["--repeat", "5"]);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let set = the_set(folder.path());
    let records = set.deployments().unwrap();
    assert_eq!(records.len(), 5);
    for (number, record) in (0..).zip(&records) {
        let departure = record.departure.clone().unwrap();
        assert_eq!(record.facts.as_ref().unwrap().restarts, number);
        assert_ne!(departure.ending, DepartureEnding::Before, "{departure:?}");
        assert!(departure.port_closed && departure.left.is_empty(), "{departure:?}");
        assert!(set.deployment_log(0, number).exists());
        assert!(is_free(port_of(&manifest(&set.point(number)))));
    }
}

#[test]
fn levels_of_a_repetition_share_a_server_unless_each_run_wants_its_own() {
    for (renew, wanted) in [("each-repetition", 2), ("each-run", 4), ("never", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let serve = engine();
        let words = ["sweep", "--serve", &serve, "--concurrencies", "1,2", "--repeat", "2"];
        let words = [&words[..], &["--requests", "4", "--output-tokens", "4", "--renew", renew]];
        let ran = output(&words.concat(), folder.path());
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
        let set = the_set(folder.path());
        let servers = (0..4).map(|number| {
            let facts = manifest(&set.point(number)).server.unwrap().deployment.unwrap();
            facts.restarts
        });
        let servers: std::collections::BTreeSet<u32> = servers.collect();
        assert_eq!(servers.len(), wanted, "{renew}");
    }
}

#[test]
fn what_cannot_be_put_up_exits_with_3_and_says_why() {
    let oom = by_shell("echo torch.OutOfMemoryError: CUDA out of memory. >&2; exit 7");
    for (serve, more, words) in [
        ("no-such-server-program --port {port}", &[][..], &["not started", "no-such-server"][..]),
        (&oom, &[], &["ended before it was ready", "CUDA out of memory", "hint", "server.log"]),
        (
            &by_shell("echo loading; exec sleep 1000"),
            &["--ready-timeout", "300ms"],
            &["not ready in time", "--ready-timeout", "loading"],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let ran = run(folder.path(), serve, more);
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{said}");
        for word in words {
            assert!(said.contains(word), "{word} in {said}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_deployment_is_refused_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    for (words, wanted) in [
        (&["--serve", "vllm serve m"][..], "{port}"),
        (&["--serve", "s {port} --api-key sesame-123456"], "{env:NAME}"),
        (&["--serve", "s {port} {prot}"], "{prot}"),
        (&["--serve", "s {port}", "http://127.0.0.1:9"], "leave one out"),
        (&["--serve", "s {port}", "--profile", "paced"], "leave one out"),
        (&["--renew", "never"], "--serve"),
        (&["--serve", "s {port}", "--repeat", "2", "--restart", "true"], "--renew"),
    ] {
        let ran = output(&[&["run"][..], words].concat(), folder.path());
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted) && !said.contains("sesame"), "{words:?}: {said}");
    }
    assert!(!folder.path().join("runs").exists(), "nothing was begun");
}

#[test]
fn keys_reach_the_server_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("case $2 in sesame-1*6) exec {};; esac", engine_at_port());
    let serve = format!("{} {{env:SOME_KEY}}", by_shell(&script));
    let ran = inferometer()
        .args(["run", "--serve", &serve])
        .args(SMALL)
        .env("SOME_KEY", "sesame-123456")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let mut folders = vec![folder.path().join("runs")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let stored = fs::read(&path).unwrap();
            let stored = String::from_utf8_lossy(&stored);
            assert!(!stored.contains("sesame-123456"), "{}", path.display());
        }
    }
}

#[test]
fn a_file_names_commands_that_put_the_server_up_and_take_it_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let engine = engine();
    let file = format!(
        r#"
        [deploy]
        kind = "commands"
        up = "{engine} > engine.log 2>&1 & echo $! > pid; echo {{port}} > port"
        url = "echo http://127.0.0.1:$(cat port)"
        logs = "cat engine.log"
        down = "kill $(cat pid)"
        [workload]
        output_tokens = 4
        [load]
        concurrency = 2
        requests = 6
        "#
    );
    fs::write(path.join("deploy.toml"), file).unwrap();
    let ran = output(&["run", "deploy.toml"], path);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let manifest = manifest(&latest_run(path));
    assert_eq!(manifest.server.clone().unwrap().deployment.unwrap().kind, "commands");
    assert!(is_gone(number_in(&path.join("pid"))));
    assert!(is_free(port_of(&manifest)));
    // Another server on the command line takes the place of the file's.
    let ran = output(&["run", "deploy.toml", "--serve", "no-such-program {port}"], path);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
    let checked = output(&["check", "--serve", &engine], path);
    let said = text(&checked.stderr);
    assert!(checked.status.success() && text(&checked.stdout).contains("usable"), "{said}");
}

const LONG: [&str; 6] = ["--duration", "10m", "--concurrency", "1", "--output-tokens", "64"];

/// Waits until a run is written.
fn until_measured(folder: &Path) {
    let clock = SystemClock::new();
    let is_begun = || {
        let mut runs = fs::read_dir(folder.join("runs")).into_iter().flatten().flatten();
        runs.any(|run| run.path().join("requests.journal").exists())
    };
    while !is_begun() {
        assert!(clock.now().as_nanos() < 60_000_000_000, "no run is begun");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_dies_in_a_run_is_named_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script = format!(
        "{} & until [ -e die ]; do sleep 0.05; done; echo the GPU fell off the bus; kill -9 $!",
        engine_at_port()
    );
    let serve = by_shell(&script);
    let words = [&["run", "--serve", &serve][..], &LONG].concat();
    let (status, said) = begun(path, &words, "measuring", |_| {
        until_measured(path);
        fs::write(path.join("die"), "").unwrap();
    });
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("died during the measurement"), "{said}");
    assert!(said.contains("the GPU fell off the bus"), "{said}");
    let directory = latest_run(path);
    assert!(directory.path().join("server.log").exists());
    assert!(is_free(port_of(&manifest(&directory))));
}

#[test]
fn a_set_whose_server_died_goes_on_with_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script =
        format!("{} & until [ -e die ]; do sleep 0.05; done; rm die; kill -9 $!", engine_at_port());
    let serve = by_shell(&script);
    let repeat =
        ["--duration", "2s", "--concurrency", "1", "--output-tokens", "8", "--repeat", "2"];
    let words = [&["run", "--serve", &serve][..], &repeat].concat();
    let (status, said) =
        begun(path, &words, "it generates", |_| fs::write(path.join("die"), "").unwrap());
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("--resume"), "{said}");
    let set = the_set(path);
    let place = set.path().to_string_lossy().into_owned();
    let resumed = output(&["sweep", "--resume", &place], path);
    assert!(matches!(resumed.status.code(), Some(0 | 4)), "{}", text(&resumed.stderr));
    assert_eq!(set.deployments().unwrap().len(), 2);
}

#[test]
fn a_signal_while_a_server_starts_takes_it_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let serve = by_shell("echo $$ > pid; exec sleep 1000");
    let words = [&["run", "--serve", &serve][..], &LONG].concat();
    let (status, said) = begun(path, &words, "putting up", |us| {
        number_in(&path.join("pid"));
        kill(us, Signal::SIGINT).unwrap();
    });
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(is_gone(number_in(&path.join("pid"))), "{said}");
}

#[test]
fn signals_in_a_run_save_it_and_leave_no_server() {
    // Ignores being told, so that a user who will not wait has it killed.
    let stubborn = format!("trap '' TERM; echo $$ > pid; {}", engine_at_port());
    for (script, signals) in [
        (format!("echo $$ > pid; exec {}", engine_at_port()), &[Signal::SIGINT][..]),
        (format!("echo $$ > pid; exec {}", engine_at_port()), &[Signal::SIGTERM]),
        (stubborn, &[Signal::SIGINT; 3]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let serve = by_shell(&script);
        let words = [&["run", "--serve", &serve][..], &LONG].concat();
        let (status, said) = begun(path, &words, "measuring", |us| {
            until_measured(path);
            for signal in signals {
                kill(us, *signal).unwrap();
            }
        });
        let wanted = if signals[0] == Signal::SIGINT { 130 } else { 143 };
        assert_eq!(status.code(), Some(wanted), "{said}");
        assert!(latest_run(path).path().exists(), "what was measured is kept");
        assert!(is_gone(number_in(&path.join("pid"))), "{said}");
    }
}
