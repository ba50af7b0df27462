//! The run that a page has started: a child process of this program, one at a time.
//!
//! Its arguments are a list and pass through no shell. It is its own process: it stores its results
//! whatever becomes of this one.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::watch;

use crate::live::Newest;

/// Lines of a job that are kept, the newest, and bytes of each.
const LINES_MAX: usize = 200;
const LINE_BYTES_MAX: usize = 2_000;

#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    program: PathBuf,
    job: Arc<Mutex<Job>>,
    newest: watch::Sender<String>,
}

#[derive(Debug, Default)]
struct Job {
    arguments: Vec<String>,
    /// While it runs.
    process: Option<Pid>,
    lines: VecDeque<String>,
    progress: Value,
    /// The name of its results, once it has ended.
    stored: Option<String>,
    /// How it ended.
    ending: Option<String>,
}

impl Jobs {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, job: Arc::default(), newest: watch::Sender::new(String::new()) }
    }

    fn job(&self) -> MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn newest(&self) -> Newest {
        self.newest.subscribe()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.job().process.is_some()
    }

    /// What it was asked, for a page; empty where nothing was started yet.
    pub(crate) fn arguments(&self) -> Vec<String> {
        self.job().arguments.clone()
    }

    /// Starts a command of this program, with its results in `folder`.
    pub(crate) fn start(&self, arguments: Vec<String>, folder: &Path) -> Result<(), String> {
        let mut job = self.job();
        if job.process.is_some() {
            return Err("a run is going on already; wait for it, or stop it".to_owned());
        }
        let spawned = Command::new(&self.program)
            .args(&arguments)
            .arg("--output")
            .arg(folder)
            .args(["--progress", "json"])
            .env("NO_COLOR", "1")
            // Ctrl-C in the terminal is for this process, which passes it on once.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.map_err(|error| format!("it does not start: {error}"))?;
        let process = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        *job = Job { arguments, process, ..Job::default() };
        drop(job);
        self.publish();
        let (folder, before) = (folder.to_owned(), newest(folder));
        let (jobs, stdout, stderr) = (self.clone(), child.stdout.take(), child.stderr.take());
        tokio::spawn(async move {
            tokio::join!(jobs.read(stdout), jobs.read(stderr));
            let ended = match child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            let mut job = jobs.job();
            (job.process, job.ending) = (None, Some(ended));
            job.stored = newest(&folder).filter(|name| before.as_ref() < Some(name));
            drop(job);
            jobs.publish();
        });
        Ok(())
    }

    /// Asks it to end: once to drain and save, again to cut.
    pub(crate) fn stop(&self) {
        if let Some(process) = self.job().process {
            // It may have ended meanwhile.
            let _ = kill(process, Signal::SIGINT);
        }
    }

    async fn read(&self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(pipe) = pipe else { return };
        let mut lines = BufReader::new(pipe).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            self.note(&line);
        }
    }

    fn note(&self, line: &str) {
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        let mut job = self.job();
        let text = event["text"].as_str().unwrap_or(line);
        if event["progress"].is_object() {
            job.progress = event["progress"].clone();
        } else if !text.is_empty() {
            if job.lines.len() == LINES_MAX {
                job.lines.pop_front();
            }
            job.lines.push_back(text.chars().take(LINE_BYTES_MAX).collect());
        }
        drop(job);
        self.publish();
    }

    fn publish(&self) {
        let job = self.job();
        let event = json!({
            "event": "job",
            "running": job.process.is_some(),
            "ending": job.ending,
            "stored": job.stored,
            "progress": job.progress,
            "lines": job.lines,
        });
        self.newest.send_replace(event.to_string());
    }
}

/// The last name in a folder of runs: names begin with the date.
fn newest(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).max()
}
