//! Trials that take too long for tests: runs that are killed at random moments, and many streams for
//! a long time.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::exports::unstarted;
use crate::simulate_speed::{memory_kib, peak_kib};

/// An engine or another server of ours as a process of its own; ends with this value.
pub(crate) struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn engine(program: &Path, mode: &str) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(["engine", "--port", "0", "--until-stdin-closes", "--mode"]);
        Self::start(command.args(mode.split(' ')))
    }

    /// Starts a command that prints its URL.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| unstarted(command, &error))?;
        let mut line = String::new();
        let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        match (said, line.trim().trim_end_matches('/').rsplit('/').next()) {
            (Some(Ok(_)), Some(address)) if address.contains(':') => {
                Ok(Self { child, address: address.to_owned() })
            }
            _ => Err(format!("the server said {line:?}, and no address")),
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it knows of the requests that it served; forgotten afterwards.
    fn take_truth(&self) -> Result<Value, String> {
        let reply = self.ask("GET /truth")?;
        self.ask("DELETE /truth")?;
        let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body)
            .map_err(|error| format!("the engine's truth cannot be read: {error}"))
    }

    /// The reply to a method with a path, with its head.
    pub(crate) fn ask(&self, what: &str) -> Result<String, String> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.address)?;
            let host = &self.address;
            write!(stream, "{what} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
            std::io::read_to_string(stream)
        };
        ask().map_err(|error| format!("the server does not answer: {error}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How the runs were found, and what they lost.
#[derive(Debug, Default)]
struct Killed {
    before_the_run: u64,
    after_the_end: u64,
    recovered: u64,
    records: u64,
    /// Answers that the server had finished and that the recovered run lacks.
    lost: u64,
    lost_max: u64,
}

#[expect(clippy::disallowed_methods, reason = "a chore takes the time of another program")]
pub(crate) fn kills(program: &Path, count: u64) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("inferometer-kills-{}", std::process::id()));
    let engine = Served::engine(program, "paced --ttft 2ms --gap 2ms")?;
    let mut killed = Killed::default();
    // The first one lives, and shows how long the others would.
    let began = Instant::now();
    kill_one(program, &engine, &folder, Duration::MAX, &mut Killed::default())?;
    let whole_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let mut drawn = 1_u64;
    for number in 0..count {
        drawn =
            drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let life = Duration::from_millis((drawn >> 33) % whole_ms);
        kill_one(program, &engine, &folder, life, &mut killed).map_err(|why| {
            format!("kill {number} after {life:?}, in {}: {why}", folder.display())
        })?;
    }
    let _ = fs::remove_dir_all(&folder);
    let Killed { before_the_run, after_the_end, recovered, records, lost, lost_max } = killed;
    Ok(format!(
        "{count} runs were killed: {before_the_run} before they began, {after_the_end} after their end, \
         {recovered} in between, which were all recovered and verified with {records} records; of \
         {} answers that the server had finished, {lost} were not recorded yet, at most {lost_max} in \
         a run",
        records + lost
    ))
}

fn kill_one(
    program: &Path,
    engine: &Served,
    folder: &Path,
    life: Duration,
    killed: &mut Killed,
) -> Result<(), String> {
    // What the one before left is not looked at again.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let load =
        "-q --requests 1500 --concurrency 8 --output-tokens 8 --input-tokens 16 --telemetry off";
    let mut run = Command::new(program)
        .args(["run", &engine.url()])
        .args(load.split(' '))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    if life < Duration::MAX {
        std::thread::sleep(life);
        run.kill().map_err(|error| error.to_string())?;
    }
    run.wait().map_err(|error| error.to_string())?;
    let truth = engine.take_truth()?;
    let Some(stored) = stored_run(folder) else {
        killed.before_the_run += 1;
        return Ok(());
    };
    let is_sealed = stored.join("summary.json").exists();
    if !is_sealed {
        asked(program, folder, &["recover", "latest"])?;
    }
    asked(program, folder, &["verify", "latest"])?;
    let listed = asked(program, folder, &["runs", "--json"])?;
    let listed: Value = serde_json::from_str(&listed).map_err(|error| error.to_string())?;
    let ok = listed["runs"][0]["outcomes"]["ok"].as_u64().ok_or("a run without outcomes")?;
    if is_sealed {
        killed.after_the_end += 1;
        return Ok(());
    }
    let id = stored.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_finished = |request: &&Value| {
        request["ended"] == "complete"
            && request["request_id"].as_str().is_some_and(|name| name.contains(&id))
    };
    let finished =
        truth["requests"].as_array().map_or(0, |all| all.iter().filter(is_finished).count());
    let lost = (finished as u64).saturating_sub(ok);
    killed.recovered += 1;
    killed.records += ok;
    killed.lost += lost;
    killed.lost_max = killed.lost_max.max(lost);
    Ok(())
}

/// The run in this folder, if it has begun: without a journal nothing was sent.
fn stored_run(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder.join("runs")).ok()?.flatten().map(|entry| entry.path());
    entries.find(|path| path.join("requests.journal").exists())
}

/// What it printed.
fn asked(program: &Path, folder: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    let output = command.args(words).current_dir(folder).output();
    let output = output.map_err(|error| unstarted(&command, &error))?;
    // A run of which nothing was measured is recovered, and invalid.
    let is_invalid = words.first() == Some(&"recover") && output.status.code() == Some(4);
    if output.status.success() || is_invalid {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = words.join(" ");
    Err(format!("`{words}` failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// How much the memory may grow between the second and the last third of the time.
const GROWTH_MAX: f64 = 1.05;

#[expect(clippy::disallowed_methods, reason = "a chore takes the time of another program")]
pub(crate) fn soak(program: &Path, streams: u64, seconds: u64) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("inferometer-soak-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let engine = Served::engine(program, "paced --ttft 200ms --gap 500ms --jitter 0.5")?;
    // Answers of ten seconds and twenty tokens: streams end and begin all the time.
    let load = format!(
        "-q --concurrency {streams} --duration {seconds}s --output-tokens 20 --input-tokens 16 \
         --telemetry off --connect-timeout 60s --drain-timeout 60s"
    );
    let mut run = Command::new(program)
        .args(["run", &engine.url()])
        .args(load.split(' '))
        .current_dir(&folder)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut memory_mib: Vec<f64> = Vec::new();
    // What is taken after the end of the load belongs to its summary.
    while began.elapsed().as_secs() < seconds {
        std::thread::sleep(Duration::from_secs(1));
        if let Ok(Some(status)) = run.try_wait() {
            return Err(format!("the run ended before its time, with {status}"));
        }
        memory_mib.extend(memory_kib(run.id(), "VmRSS:").map(|kib| kib as f64 / 1_024.0));
    }
    // The first third is the warm-up. Single peaks depend on the moment.
    let third = memory_mib.len() / 3;
    let [second, last] = [third..2 * third, 2 * third..memory_mib.len()].map(|part| {
        let values = &mut memory_mib[part];
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    });
    let status = run.wait().map_err(|error| error.to_string())?;
    let figures = format!(
        "{streams} streams for {seconds} s: the client had {second:.1} MiB in the second third of the time \
         and {last:.1} MiB in the last (medians); the run ended with {status}"
    );
    asked(program, &folder, &["verify", "latest"])?;
    let _ = fs::remove_dir_all(&folder);
    // A busy machine makes a run invalid; that is no matter of memory.
    let is_saved = matches!(status.code(), Some(0 | 4));
    if is_saved && last <= second * GROWTH_MAX { Ok(figures) } else { Err(figures) }
}

/// Decimal megabytes that a command may have, however many requests a run has.
const MEMORY_MB_MAX: f64 = 200.0;
const STREAM_TOKENS: u64 = 1_000;

pub(crate) fn memory(program: &Path, requests: u64) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("inferometer-memory-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut table = format!("{:<24} {:>8} {:>10}\n", "command", "seconds", "peak MB");
    let mut is_bounded = true;
    let streams = (requests / STREAM_TOKENS).max(1);
    for (kind, mode, load) in [
        ("one-shot", "echo", format!("--requests {requests} --no-stream --output-tokens 4")),
        (
            "streams",
            "paced --ttft 1ms --gap 1ms",
            format!("--requests {streams} --output-tokens {STREAM_TOKENS}"),
        ),
    ] {
        let engine = Served::engine(program, mode)?;
        let run =
            format!("run {} -q --concurrency 64 --input-tokens 16 --telemetry off", engine.url());
        let run = format!("{run} {load}");
        for (name, command) in [
            ("run", run.as_str()),
            ("verify", "verify latest"),
            ("report", "report latest --to report"),
            ("export csv", "export latest --format csv --to latest.csv"),
            ("export vllm", "export latest --format vllm --to latest.json"),
            ("export parquet", "export latest --format parquet --to tables"),
        ] {
            let (seconds, peak_mb) = measured(program, &folder, command)?;
            is_bounded &= peak_mb <= MEMORY_MB_MAX;
            let name = format!("{kind}: {name}");
            let _ = writeln!(table, "{name:<24} {seconds:>8.1} {peak_mb:>10.0}");
        }
    }
    let _ = fs::remove_dir_all(&folder);
    if is_bounded { Ok(table) } else { Err(format!("more than {MEMORY_MB_MAX} MB:\n{table}")) }
}

/// The seconds that a command takes, and the megabytes that it has at most.
#[expect(clippy::disallowed_methods, reason = "a chore takes the time of another program")]
fn measured(program: &Path, folder: &Path, command: &str) -> Result<(f64, f64), String> {
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(command.split(' '))
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (ended, peak_kib) = peak_kib(&mut child)?;
    // A busy machine makes a run invalid; that is no matter of memory.
    if !matches!(ended.code(), Some(0 | 4)) {
        return Err(format!("`{command}` ended with {ended}, in {}", folder.display()));
    }
    Ok((began.elapsed().as_secs_f64(), peak_kib as f64 * 1.024e-3))
}
