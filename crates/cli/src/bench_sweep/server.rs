//! A server of a sweep: started with its parameters, awaited, and stopped with all its processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inferometer_load::Target;
use inferometer_load::resources::resolve;
use inferometer_load::target::Credentials;
use inferometer_model::deployment::{
    DeploymentFailure, DeploymentHow, DeploymentSpec, DeploymentStage, EnvironmentSpec,
    ProcessSpec, Renewal,
};
use inferometer_model::fetch::{FetchRequest, Post, PostRequest};
use inferometer_model::{BaseUrl, Fetch, SpecDraft};
use inferometer_target::deploy::{Deployment, Probe, Waited, placeholder, secret};

use super::plan::address;
use crate::failure::Failure;
use crate::preflight::{bare_target, fetching};
use crate::signals::{Companion, Interruption};

const CONNECT: Duration = Duration::from_secs(2);
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long a server that is being stopped has before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// What a server of vLLM forgets what it has seen by; it has them with `VLLM_SERVER_DEV_MODE=1`.
const RESETS: [&str; 3] = ["/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache"];

/// Ends when it is dropped.
pub(super) struct Server {
    deployment: Deployment,
    base: BaseUrl,
    program: String,
    log: PathBuf,
    /// Keys of its command, which it may repeat in its log.
    keys: Vec<String>,
    _companion: Companion,
}

impl Server {
    /// Starts it and waits until it answers that it is healthy. Refuses where somebody else listens
    /// already: that server would be measured.
    pub(super) fn start(
        words: &[String],
        log: PathBuf,
        timeout: Duration,
        interruption: &Interruption,
    ) -> Result<Self, Failure> {
        let base = address(words)?;
        if resolve(&base, CONNECT).is_ok() {
            return Err(Failure::target(format!("something listens on {base} already"))
                .hint("end it, or give the server of --serve-cmd another --port"));
        }
        let program = secret::hidden(words).swap_remove(0);
        let failed = |what: String| Failure::target(format!("--serve-cmd `{program}`: {what}"));
        if let Some(folder) = log.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
        }
        let deployment = Deployment::start_at(&spec(words, timeout), base.port, &log)
            .map_err(|found| failed(found.what))?;
        let (keys, companion) =
            (secret::values(words), interruption.accompanied_by(deployment.group()));
        let mut server = Self { deployment, base, program, log, keys, _companion: companion };
        let base = server.base.clone();
        let waited = server
            .deployment
            .wait(&mut |_, _| health(&base), &mut |time| interruption.wait(time).is_some());
        let found = match waited {
            Ok(Waited::Ready(_)) => return Ok(server),
            Ok(Waited::Stopped) => return interruption.check().map(|()| server),
            Err(found) => found,
        };
        Err(match found.stage {
            DeploymentStage::Ready | DeploymentStage::Generate => server
                .failure("was not ready in time", found)
                .hint("give it longer with --server-ready-timeout"),
            DeploymentStage::Start => server
                .failure("is not measured", found)
                .hint("--serve-cmd must listen itself, on its --port"),
            DeploymentStage::Ended
            | DeploymentStage::Died
            | DeploymentStage::Measure
            | DeploymentStage::Stop => server.failure("ended before it was ready", found),
        })
    }

    /// Why it is not there any more, and what it said last.
    pub(super) fn died(&mut self) -> Option<Failure> {
        let found = self.deployment.ended()?;
        Some(self.failure("ended during a run", found))
    }

    fn failure(&self, why: &str, found: DeploymentFailure) -> Failure {
        let where_all = format!("(all of it is in {})", self.log.display());
        let said = found.log.iter().map(|line| format!("  {}", secret::without(&self.keys, line)));
        let what = if found.what.is_empty() { found.what } else { format!(": {}", found.what) };
        let failure = Failure::target(format!("the server `{}` {why}{what}", self.program))
            .shown(said.chain([where_all]).collect());
        match found.cause {
            Some(cause) => failure.hint(cause.remedy()),
            None => failure,
        }
    }

    /// Makes it forget the prompts that it has seen, so that the next run finds it as this one did.
    /// The reason where it cannot.
    pub(super) fn forget(&self) -> Result<(), String> {
        if !Path::new(&self.program).ends_with("vllm") {
            return Err(format!("it is not known how to reset the caches of `{}`", self.program));
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

/// Whether it says that it is well, which is what a sweep of vLLM waits for.
fn health(base: &BaseUrl) -> Probe {
    let Some(target) = plain_target(base) else {
        return Probe::NotYet("no server answers".to_owned());
    };
    let asked = fetching(&target, async |fetch| {
        let well = FetchRequest { path: "/health", body_limit: BODY_BYTES_MAX };
        fetch.fetch(well).await
    });
    match asked {
        Ok(Ok(reply)) if reply.status == 200 => Probe::Generated,
        Ok(Ok(reply)) => Probe::NotYet(format!("/health is answered with HTTP {}", reply.status)),
        Ok(Err(error)) => Probe::NotYet(error.to_string()),
        Err(failure) => Probe::NotYet(failure.message().to_owned()),
    }
}

/// The command as it was typed: braces in it are its own. As with vLLM's sweep it finds all of our
/// environment.
fn spec(words: &[String], ready_timeout: Duration) -> DeploymentSpec {
    let command = words.iter().map(|word| placeholder::escaped(word)).collect();
    let set = BTreeMap::from([("VLLM_SERVER_DEV_MODE".to_owned(), "1".to_owned())]);
    // By their whole names: a pattern does not mean what sounds like a key.
    let pass = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    DeploymentSpec {
        ready_timeout,
        environment: EnvironmentSpec { pass, set },
        grace: GRACE,
        renewal: Renewal::Never,
        ..DeploymentSpec::new(DeploymentHow::Process(ProcessSpec { command, folder: None }))
    }
}

fn plain_target(base: &BaseUrl) -> Option<Target> {
    let spec = SpecDraft { url: Some(base.clone()), ..SpecDraft::default() }.resolve().ok()?;
    let address = resolve(base, CONNECT).ok()?;
    Some(bare_target(&spec, Credentials::default(), base, address))
}
