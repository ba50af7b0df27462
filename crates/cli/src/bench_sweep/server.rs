//! A server of a sweep: started with its parameters, awaited, and ended with all that it started.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use inferometer_load::resolve::resolve;
use inferometer_load::target::Credentials;
use inferometer_load::{SystemClock, Target};
use inferometer_model::fetch::{FetchRequest, Post, PostRequest};
use inferometer_model::{BaseUrl, Clock, Fetch, SpecDraft};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::secret;
use crate::failure::{Exit, Failure};
use crate::log_tail::last_lines;
use crate::preflight::{bare_target, fetching};
use crate::signals::{Companion, Interruption};

const LOOK_EVERY: Duration = Duration::from_millis(250);
const CONNECT: Duration = Duration::from_secs(2);
const LINES_SHOWN: usize = 15;
const BODY_BYTES_MAX: usize = 64 << 10;
/// A server that was told to end has this long before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// What a server of vLLM forgets what it has seen by; it has them with `VLLM_SERVER_DEV_MODE=1`.
const RESETS: [&str; 3] = ["/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache"];

/// Ends when it is dropped.
pub(super) struct Server {
    child: Child,
    base: BaseUrl,
    program: String,
    log: PathBuf,
    /// Keys of its command, which it may repeat in its log.
    keys: Vec<String>,
    _companion: Companion,
}

impl Server {
    /// Refuses where somebody else listens already: his server would be measured.
    pub(super) fn start(
        words: &[String],
        base: BaseUrl,
        log: PathBuf,
        interruption: &Interruption,
    ) -> Result<Self, Failure> {
        if resolve(&base, CONNECT).is_ok() {
            return Err(Failure::target(format!("something listens on {base} already"))
                .hint("end it, or give the server of --serve-cmd another --port"));
        }
        let program = secret::hidden(words).swap_remove(0);
        let failed =
            |error: io::Error| Failure::target(format!("--serve-cmd `{program}`: {error}"));
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = File::create(&log).map_err(failed)?;
        let child = Command::new(&words[0])
            .args(&words[1..])
            .env("VLLM_SERVER_DEV_MODE", "1")
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            // A group of its own: what it starts is ended with it, and Ctrl-C does not reach it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (keys, companion) = (secret::values(words), interruption.accompanied_by_child(&child));
        Ok(Self { child, base, program, log, keys, _companion: companion })
    }

    /// Until it says that it is well. `Some` is a signal that came meanwhile.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        interruption: &Interruption,
    ) -> Result<Option<Exit>, Failure> {
        let clock = SystemClock::new();
        loop {
            if let Some(status) = self.ended() {
                return Err(self.failure(&format!("ended with {status} before it was ready")));
            }
            if self.is_ready() {
                return Ok(None);
            }
            if timeout <= Duration::from_nanos(clock.now().as_nanos()) {
                let why = format!("was not ready within {} s", timeout.as_secs());
                return Err(self.failure(&why).hint("give it longer with --server-ready-timeout"));
            }
            if let Some(exit) = interruption.wait(LOOK_EVERY) {
                return Ok(Some(exit));
            }
        }
    }

    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Why it cannot be gone on with, and what it said last.
    pub(super) fn failure(&self, why: &str) -> Failure {
        let said = last_lines(&self.log, 0, LINES_SHOWN).unwrap_or_default();
        let where_all = format!("(all of it is in {})", self.log.display());
        let shown = said
            .into_iter()
            .map(|line| format!("  {}", secret::without(&self.keys, &line)))
            .chain([where_all]);
        Failure::target(format!("the server `{}` {why}", self.program)).shown(shown.collect())
    }

    fn is_ready(&self) -> bool {
        let Some(target) = plain_target(&self.base) else { return false };
        let asked = fetching(&target, async |fetch| {
            let well = FetchRequest { path: "/health", body_limit: BODY_BYTES_MAX };
            fetch.fetch(well).await
        });
        matches!(asked, Ok(Ok(reply)) if reply.status == 200)
    }

    /// Makes it forget the prompts that it has seen, so that the next run finds it as this one did.
    /// The reason where it cannot.
    pub(super) fn forget(&self) -> Result<(), String> {
        if !Path::new(&self.program).ends_with("vllm") {
            return Err(format!("it is not known how `{}` is told", self.program));
        }
        let target = plain_target(&self.base).ok_or("its name is not known any more")?;
        let asked = fetching(&target, async |fetch| {
            for path in RESETS {
                let reset = PostRequest {
                    path,
                    json: "",
                    body_limit: BODY_BYTES_MAX,
                    patience: Duration::from_secs(30),
                };
                let reply = fetch.post(reset).await.map_err(|error| error.to_string())?;
                if !(200..300).contains(&reply.status) {
                    return Err(format!("{path} was answered with HTTP {}", reply.status));
                }
            }
            Ok(())
        });
        asked.map_err(|failure| failure.message().to_owned())?
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Ok(group) = i32::try_from(self.child.id()) else { return };
        let group = Pid::from_raw(group);
        let _ = killpg(group, Signal::SIGTERM);
        let clock = SystemClock::new();
        let passed = || Duration::from_nanos(clock.now().as_nanos());
        while self.ended().is_none() && passed() < GRACE {
            Interruption::default().wait(LOOK_EVERY);
        }
        // What is left of the group, be it the server or something that it started.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

fn plain_target(base: &BaseUrl) -> Option<Target> {
    let spec = SpecDraft { url: Some(base.clone()), ..SpecDraft::default() }.resolve().ok()?;
    let address = resolve(base, CONNECT).ok()?;
    Some(bare_target(&spec, Credentials::default(), base, address))
}
