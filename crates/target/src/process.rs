//! The embedded engine as a child process of our own binary, so that client and server never share
//! a scheduler.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use inferometer_model::BaseUrl;

use crate::system::tool;

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
/// Bytes of the engine's talk that are told when it did not start.
const TALK_KEPT: u64 = 4 << 10;

impl EngineProcess {
    /// Starts `program engine ARGS… --port 0` and waits for its announcement.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self, StartError> {
        let mut child = Command::new(program)
            .arg("engine")
            .args(arguments)
            .args(["--port", "0", "--until-stdin-closes"])
            // The engine needs no key, and what it does not have it cannot leak.
            .env_remove("OPENAI_API_KEY")
            // Nor does it ask for one: the process that started it has none.
            .env_remove("INFEROMETER_ENGINE_API_KEY")
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

/// Waits for the announcement, at most `START_LIMIT` in all.
fn announced_url(child: &mut Child) -> Result<BaseUrl, StartError> {
    let talk = tool::drained(child.stderr.take(), TALK_KEPT);
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take();
    // Reading has no time-out of its own, so a thread reads and we wait for the thread. It goes on
    // reading after that, so that the engine never waits for us.
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
        for line in lines.map_while(Result::ok) {
            if let Some((_, url)) = line.split_once(ANNOUNCEMENT) {
                let _ = sender.send(url.trim().to_owned());
            }
        }
    });
    match receiver.recv_timeout(START_LIMIT) {
        Ok(url) => url.parse().map_err(|_| StartError::Ended { words: url }),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(StartError::Silent(START_LIMIT)),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let talk = talk.recv_timeout(START_LIMIT).unwrap_or_default();
            let words = if talk.trim().is_empty() { "it printed nothing" } else { talk.trim() };
            Err(StartError::Ended { words: words.to_owned() })
        }
    }
}
