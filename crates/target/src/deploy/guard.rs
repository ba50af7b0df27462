//! Somebody who ends a server when we are killed and cannot.
//!
//! The kernel could be asked for this only with unsafe code between fork and exec, and its signal
//! reaches one process of many. A small shell waits instead for the end of a pipe that we hold: it is
//! told when all is done, and hears nothing but the end when we are gone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::family::MARK;

/// It is told the group first: workers that rename themselves write over the mark. `$1` is the mark, `$2` the grace in seconds, and the rest a command that takes down what is not a
/// process of ours.
const SCRIPT: &str = r#"read -r group
read -r told && exit 0
mark=$1 grace=$2; shift 2
marked() { grep -lszxF -e "$mark" /proc/[0-9]*/environ | cut -d / -f 3; }
alive() { marked; [ -n "$group" ] && kill -s 0 -- "-$group" && echo "$group"; }
end() { [ -z "$group" ] || kill -s "$1" -- "-$group"; for pid in $(marked); do kill -s "$1" "$pid"; done; }
end TERM
[ $# -eq 0 ] || "$@"
while [ "$grace" -gt 0 ] && [ -n "$(alive)" ]; do sleep 1; grace=$((grace - 1)); done
end KILL"#;

#[derive(Debug)]
pub(super) struct Guard(Option<Child>);

impl Guard {
    pub(super) fn start(
        mark: &str,
        grace: Duration,
        farewell: &[String],
        environment: &BTreeMap<String, OsString>,
    ) -> io::Result<Self> {
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(format!("{MARK}={mark}"))
            .arg(grace.as_secs().max(1).to_string())
            .args(farewell)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends us all at once, such as Ctrl-C, must not end it.
            .process_group(0)
            .spawn()?;
        Ok(Self(Some(child)))
    }

    pub(super) fn watch(&mut self, group: i32) {
        let pipe = self.0.as_mut().and_then(|child| child.stdin.as_mut());
        let _ = pipe.map(|pipe| writeln!(pipe, "{group}"));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        if let Some(mut pipe) = child.stdin.take() {
            // Twice: there may have been no group to tell.
            let _ = pipe.write_all(b"done\ndone\n");
        }
        let _ = child.wait();
    }
}
