//! The output of programs, bounded in time and size.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// A driver that hangs must not hang us.
const WAIT_MAX: Duration = Duration::from_secs(10);
const BYTES_MAX: u64 = 1 << 20;

/// What a program prints; `None` when it is not there, fails or takes too long.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Option<String> {
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
    #[error("it printed more than {BYTES_MAX} bytes")]
    TooMuch,
    #[error("it ended with {status}: {words}")]
    Failed { status: String, words: String },
}

/// Standard output of a command that ended well. Nothing here waits for long, whatever the command and
/// its children do.
pub fn output(mut command: Command, within: Duration) -> Result<String, ToolError> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("OPENAI_API_KEY")
        // Its children end with it.
        .process_group(0)
        .spawn();
    let mut child = child.map_err(ToolError::Start)?;
    let printed = drained(child.stdout.take(), BYTES_MAX);
    let complained = drained(child.stderr.take(), BYTES_MAX);
    let looks = within.as_millis() / LOOK_EVERY.as_millis().max(1);
    let ended = (0..=looks).find_map(|_| {
        let status = child.try_wait().ok().flatten();
        if status.is_none() {
            std::thread::sleep(LOOK_EVERY);
        }
        status
    });
    // Nothing that it started outlives it.
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let Some(status) = ended else {
        // A process that hangs in the kernel cannot be killed: a thread waits for it.
        std::thread::spawn(move || child.wait());
        return Err(ToolError::TooLong(within));
    };
    let printed = printed.recv_timeout(DRAIN_MAX).unwrap_or_default();
    if !status.success() {
        let words = complained.recv_timeout(DRAIN_MAX).unwrap_or_default();
        // Some tools complain where others print.
        let last = |words: &str| words.trim().lines().last().map(str::to_owned);
        let words = last(&words).or_else(|| last(&printed));
        let words = words.unwrap_or_else(|| "it printed nothing".to_owned());
        return Err(ToolError::Failed { status: status.to_string(), words });
    }
    if BYTES_MAX <= printed.len() as u64 {
        return Err(ToolError::TooMuch);
    }
    Ok(printed)
}

/// Between two looks at a child.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// For what an ended child has left in its pipes.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The beginning of what comes, when all of it has come. Reading has no time-out of its own, so a
/// thread reads.
pub(crate) fn drained(
    stream: Option<impl Read + Send + 'static>,
    bytes_kept: u64,
) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(bytes_kept).read_to_end(&mut bytes);
            // What is longer is read on, so that its writer can end.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
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
        let failed = output(shell("echo no device; exit 9"), WAIT_MAX).unwrap_err();
        assert!(failed.to_string().contains("9: no device"), "{failed}");
        assert!(matches!(output(shell("exec sleep 60"), brief), Err(ToolError::TooLong(_))));
        // One that prints no more and stays, and one whose child stays.
        let silent = shell("exec >&- 2>&-; exec sleep 60");
        assert!(matches!(output(silent, brief), Err(ToolError::TooLong(_))));
        assert!(matches!(output(shell("sleep 60 | cat"), brief), Err(ToolError::TooLong(_))));
        let much = shell("head -c 2000000 /dev/zero");
        assert!(matches!(output(much, WAIT_MAX), Err(ToolError::TooMuch)));
        assert_eq!(run("a-program-that-nobody-has", &[]), None);
    }
}
