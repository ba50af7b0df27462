//! The real binary, its engine, and stored runs, for tests that use them as a user would.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

pub(crate) mod deployments;
pub(crate) mod matrices;
pub(crate) mod suites;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use inferometer_engine::truth::Truth;
use inferometer_model::Observations;
use inferometer_store::{RunDirectory, RunStore, Stored};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) fn inferometer() -> Command {
    heed_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_inferometer"));
    // A developer's own settings must not change a test.
    for variable in [
        "OPENAI_API_KEY",
        "INFEROMETER_ENGINE_API_KEY",
        "INFEROMETER_RUNS",
        "GITHUB_STEP_SUMMARY",
        "http_proxy",
        "HTTP_PROXY",
    ] {
        command.env_remove(variable);
    }
    // Nor may a calibration of theirs: it would judge the test's runs.
    command.env("XDG_CACHE_HOME", "/nonexistent");
    // Sets that one process of a test begins another may resume.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    // Nor may a file or variable that configures inferometer.
    command.env("INFEROMETER_NO_CONFIG", "1");
    command.env("NO_COLOR", "1");
    command
}

/// A shell starts what runs in its background with SIGINT ignored, and what is ignored stays so in
/// every child. Where the tests are started like that, they take the signal themselves: their
/// children begin with its usual effect then.
fn heed_signals() {
    static HEED: std::sync::Once = std::sync::Once::new();
    HEED.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        let ignored = u64::from_str_radix(mask.trim(), 16).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        for kind in [SignalKind::interrupt(), SignalKind::hangup(), SignalKind::terminate()] {
            if ignored & (1 << (kind.as_raw_value() - 1)) != 0 {
                drop(signal(kind).unwrap());
            }
        }
    });
}

/// Writes a script that can be executed. Another process writes it: a child that a test of another
/// thread starts meanwhile would hold the file open for writing, and nothing could execute it.
pub(crate) fn write_program(path: &Path, script: &str) {
    let mut writer = Command::new("install");
    writer.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

/// Runs to the end and returns what it said.
pub(crate) fn output(arguments: &[&str], folder: &Path) -> Output {
    inferometer().args(arguments).current_dir(folder).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The words of a page, wherever its lines are broken.
pub(crate) fn words(bytes: &[u8]) -> String {
    text(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An engine process of a test's own; ends with it.
pub(crate) struct Engine {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Engine {
    /// One that keeps a given pace, where no other mode is named.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mode: &[&str] = if arguments.contains(&"--mode") { &[] } else { &["--mode", "paced"] };
        let mut child = inferometer()
            .args(["engine", "--port", "0", "--until-stdin-closes"])
            .args(mode)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().unwrap().parse().unwrap();
        Self { child, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn truth(&self) -> Truth {
        serde_json::from_slice(&get(self.address, "/truth")).unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plain GET over a socket of our own: the client under test has no part in it.
pub(crate) fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let end = reply.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    reply.split_off(end + 4)
}

pub(crate) fn latest_run(folder: &Path) -> RunDirectory {
    let found = RunStore::open(folder.join("runs")).unwrap().find("latest").unwrap();
    let Stored::Run(run) = found else { panic!("{found:?} is not a run") };
    run
}

pub(crate) fn observations(folder: &Path) -> Observations {
    latest_run(folder).read().unwrap().observations
}

/// Answers every request by its path and closes, until the test's process ends.
pub(crate) fn server_saying(reply: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    server_hearing(move |head| reply(head.split(' ').nth(1).unwrap_or_default()))
}

/// The same by the whole head of a request.
pub(crate) fn server_hearing(reply: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    server_taking(move |head, _| reply(head))
}

/// The same by the head and the body.
pub(crate) fn server_taking(reply: impl Fn(&str, &str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some((head, body)) = read_request(&mut stream) else { continue };
            let _ = stream.write_all(reply(&head, &body).as_bytes());
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0; 1]);
        }
    });
    address
}

/// Reads a request: its head, and its body of Content-Length.
fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned)
        })
        .map_or(0, |value| value.trim().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8_lossy(&body).into_owned()))
}

pub(crate) fn http(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
