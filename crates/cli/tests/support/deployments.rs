//! Servers that are put up for a test: our own engine, and shells that go wrong.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::{Clock, observations::Manifest};
use inferometer_store::{RunDirectory, SetDirectory};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::{inferometer, output};

/// The engine as a program that is put up.
pub(crate) fn engine() -> String {
    format!("{} engine --mode paced --gap 1ms --port {{port}}", env!("CARGO_BIN_EXE_inferometer"))
}

/// A server that a shell starts, with its port as `$1`.
pub(crate) fn by_shell(script: &str) -> String {
    format!("sh -c {} sh {{port}}", shlex_quoted(script))
}

pub(crate) fn shlex_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The same engine behind a shell.
pub(crate) fn engine_at_port() -> String {
    engine().replace("{port}", "$1")
}

pub(crate) const SMALL: [&str; 6] =
    ["--requests", "6", "--concurrency", "2", "--output-tokens", "4"];

pub(crate) fn run(folder: &Path, serve: &str, more: &[&str]) -> Output {
    output(&[&["run", "--serve", serve][..], &SMALL, more].concat(), folder)
}

pub(crate) fn manifest(directory: &RunDirectory) -> Manifest {
    directory.manifest().unwrap()
}

pub(crate) fn port_of(manifest: &Manifest) -> u16 {
    manifest.endpoint.address.port()
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

pub(crate) fn the_set(folder: &Path) -> SetDirectory {
    let path = fs::read_dir(folder.join("runs")).unwrap().map(|it| it.unwrap().path());
    SetDirectory::at(path.into_iter().find(|path| path.join("set.json").exists()).unwrap())
}

/// Waits until a process is gone: one that was killed is there a moment longer.
pub(crate) fn is_gone(pid: i32) -> bool {
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
pub(crate) fn begun(
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
pub(crate) fn number_in(path: &Path) -> i32 {
    let clock = SystemClock::new();
    loop {
        if let Ok(number) = fs::read_to_string(path).unwrap_or_default().trim().parse() {
            return number;
        }
        assert!(clock.now().as_nanos() < 30_000_000_000, "{} is not written", path.display());
        std::thread::yield_now();
    }
}

pub(crate) const LONG: [&str; 6] =
    ["--duration", "10m", "--concurrency", "1", "--output-tokens", "64"];

/// Waits until a run is written.
pub(crate) fn until_measured(folder: &Path) {
    until_there(|| {
        let mut runs = fs::read_dir(folder.join("runs")).into_iter().flatten().flatten();
        runs.any(|run| run.path().join("requests.journal").exists())
    });
}

pub(crate) fn until_there(is_there: impl Fn() -> bool) {
    let clock = SystemClock::new();
    while !is_there() {
        assert!(clock.now().as_nanos() < 60_000_000_000, "it never came");
        std::thread::yield_now();
    }
}
