//! Programs that tell something, bounded in time and words.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A driver that hangs must not hang us.
const WAIT_MAX: Duration = Duration::from_secs(10);
const BYTES_MAX: u64 = 1 << 20;

/// What a program prints; `None` when it is not there, fails or takes too long.
pub(super) fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    output(command, WAIT_MAX).ok()
}

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("it cannot be started: {0}")]
    Start(std::io::Error),
    #[error("it did not end within {0:?}")]
    TooLong(Duration),
    #[error("it ended with {status}: {words}")]
    Failed { status: String, words: String },
}

/// Standard output of a command that ended well.
pub(super) fn output(mut command: Command, within: Duration) -> Result<String, ToolError> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("OPENAI_API_KEY")
        .spawn();
    let mut child = child.map_err(ToolError::Start)?;
    let printed = drained(child.stdout.take());
    let complained = drained(child.stderr.take());
    let Ok(printed) = printed.recv_timeout(within) else {
        end(&mut child);
        return Err(ToolError::TooLong(within));
    };
    let words = complained.recv_timeout(within).unwrap_or_default();
    match child.wait() {
        Ok(status) if status.success() => Ok(printed),
        Ok(status) => {
            let words = words.trim().lines().last().unwrap_or("it said nothing").to_owned();
            Err(ToolError::Failed { status: status.to_string(), words })
        }
        Err(error) => Err(ToolError::Start(error)),
    }
}

/// Reading has no time-out of its own, so a thread reads.
fn drained(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(BYTES_MAX).read_to_end(&mut bytes);
            // What is longer is read on, so that its writer can end.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(words: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", words]);
        command
    }

    #[test]
    fn a_command_is_heard_or_its_failure_told() {
        let brief = Duration::from_millis(200);
        assert_eq!(output(shell("echo 4"), WAIT_MAX).unwrap(), "4\n");
        let failed = output(shell("echo no driver >&2; exit 9"), WAIT_MAX).unwrap_err();
        assert!(failed.to_string().contains("9: no driver"), "{failed}");
        assert!(matches!(output(shell("exec sleep 60"), brief), Err(ToolError::TooLong(_))));
        assert_eq!(said("a-program-that-nobody-has", &[]), None);
    }
}
