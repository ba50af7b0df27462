//! The embedded engine as a child process of our own binary, so that client and server never share
//! a scheduler.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use inferometer_model::BaseUrl;

/// How the engine announces itself on its standard output, before the URL.
pub const ANNOUNCEMENT: &str = "engine listening on ";

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the embedded engine could not be started from {program}: {error}")]
    Spawn { program: String, error: std::io::Error },
    #[error("the embedded engine ended before it was ready: {words}")]
    Ended { words: String },
    #[error("the embedded engine did not announce itself within {0:?}")]
    Silent(Duration),
}

/// A running engine; it ends when this is dropped.
#[derive(Debug)]
pub struct EngineProcess {
    child: Child,
    /// The engine ends when this closes, even if we are killed.
    stdin: Option<ChildStdin>,
    pub base: BaseUrl,
}

const START_LIMIT: Duration = Duration::from_secs(20);

impl EngineProcess {
    /// Starts `program engine ARGS… --port 0` and waits for its announcement.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self, StartError> {
        let mut child = Command::new(program)
            .arg("engine")
            .args(arguments)
            .args(["--port", "0", "--until-stdin-closes"])
            // The engine needs no key, and what it does not have it cannot leak.
            .env_remove("OPENAI_API_KEY")
            // Ctrl-C is for us: requests in flight must find their server alive while they drain.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| StartError::Spawn { program: program.display().to_string(), error })?;
        let stdin = child.stdin.take();
        match announced_url(&mut child) {
            Ok(base) => Ok(Self { child, stdin, base }),
            Err(error) => {
                drop(stdin);
                end(&mut child);
                Err(error)
            }
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.stdin = None;
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself; either way there is nothing left to do about an error.
    let _ = child.kill();
    let _ = child.wait();
}

fn announced_url(child: &mut Child) -> Result<BaseUrl, StartError> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Reading has no time-out of its own, so a thread reads and we wait for the thread.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines();
            while let Some(Ok(line)) = lines.next() {
                let _ = sender.send(line);
            }
        });
    }
    loop {
        match receiver.recv_timeout(START_LIMIT) {
            Ok(line) => {
                if let Some(base) =
                    line.split_once(ANNOUNCEMENT).and_then(|(_, url)| url.trim().parse().ok())
                {
                    return Ok(base);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => return Err(StartError::Silent(START_LIMIT)),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(StartError::Ended { words: last_words(child) });
            }
        }
    }
}

fn last_words(child: &mut Child) -> String {
    const BYTES_MAX: u64 = 4 << 10;
    let mut words = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(BYTES_MAX).read_to_string(&mut words);
    }
    let words = words.trim();
    if words.is_empty() { "it said nothing".to_owned() } else { words.to_owned() }
}
