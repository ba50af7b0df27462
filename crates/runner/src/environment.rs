//! What the client and the server run on, as far as it is known before a run.

use std::net::SocketAddr;
use std::sync::{OnceLock, RwLock};

use inferometer_engine::profile::Profile;
use inferometer_model::deployment::{DeploymentFacts, DeploymentHow};
use inferometer_model::spec::{EngineTable, TargetSpec};
use inferometer_model::system::{KnownBy, Machine, ServerFacts};
use inferometer_model::{Environment, Spec};
use inferometer_target::{deploy, system};

use crate::embedded;
use crate::failure::{Failure, Result};
use crate::preflight::{self, Found};

const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// The machine and the system that the client runs on.
pub fn capture() -> Environment {
    describe(machine())
}

/// The same without asking for GPUs: where nothing is measured there are none in use.
pub fn capture_host() -> Environment {
    let environment = describe(&system::host());
    Environment { proxy_variables: Vec::new(), ..environment }
}

/// This machine with its GPUs. Vendors' tools take their time, and it does not change under us: they
/// are asked once.
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(system::machine)
}

fn describe(machine: &Machine) -> Environment {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    Environment {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: std::env::consts::OS.to_owned(),
        kernel: machine.kernel.clone(),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: machine.cpu_model.clone(),
        cpus: std::thread::available_parallelism()
            .ok()
            .and_then(|cpus| u32::try_from(cpus.get()).ok()),
        proxy_variables: PROXY_VARIABLES
            .into_iter()
            .filter(|name| is_set(name))
            .map(str::to_owned)
            .collect(),
        machine: Some(machine.clone()),
        command: COMMAND.read().ok().and_then(|command| command.clone()),
    }
}

static COMMAND: RwLock<Option<String>> = RwLock::new(None);

/// Stores this command with every run that follows, so that readers can repeat it. It must hold no secret.
pub fn set_command(command: String) {
    if let Ok(mut known) = COMMAND.write() {
        *known = Some(command);
    }
}

/// What is known of the server before a run: what it reports, what `--server-info` says, and whether it
/// runs on this machine.
pub(crate) fn find_server(
    spec: &Spec,
    found: &Found,
    deployment: Option<&DeploymentFacts>,
) -> Result<ServerFacts> {
    // Vendors' tools take their time: now, and not between a warm-up and its run.
    let own = machine();
    if spec.target == TargetSpec::Embedded {
        let flags = embedded::flags(&spec.engine);
        let words = [&["inferometer engine --mode serve".to_owned()], &flags[..]].concat();
        let start_command = Some(words.join(" "));
        return Ok(ServerFacts { start_command, ..from_engine(&spec.engine)? });
    }
    let said = preflight::fetching(&found.target, async |fetch| system::ask_server(&fetch).await)?;
    let mut facts = match &spec.server_info {
        None => said,
        Some(place) => system::read_server_info(place, || own.clone())
            .map_err(|error| Failure::from_usage(error).hint(HOW_TO_TELL))?
            .over(said),
    };
    let is_here = is_here(spec, found.endpoint.address, &facts);
    if facts.machine.is_none() && is_here {
        facts.machine = Some(own.clone());
        facts.known_by = Some(KnownBy::Loopback);
    }
    // What listens for a container is not what serves in it.
    let is_contained = deployment.is_some_and(|deployment| deployment.kind == "container");
    if is_here && !is_contained {
        facts.processes = deploy::serving(found.endpoint.address);
    }
    if let Some(deployment) = deployment {
        // As it was written, with its placeholders: the port of this run would make every server another.
        let written = match &spec.target {
            TargetSpec::Deployed(deployment) => deployment.how.command_line(),
            TargetSpec::Embedded | TargetSpec::Url(_) => None,
        };
        let command = written.unwrap_or_else(|| deployment.command_line());
        facts.gpus_used = facts.gpus_used.or_else(|| system::gpus_used(&command));
        facts.start_command.get_or_insert(command);
        facts.deployment = Some(deployment.clone());
    }
    Ok(facts)
}

/// Whether the server runs on this machine: deployed here, seen here, or `--server-info local`.
pub(crate) fn is_here(spec: &Spec, address: SocketAddr, server: &ServerFacts) -> bool {
    let is_ours = match &spec.target {
        TargetSpec::Embedded => true,
        // Commands may deploy it anywhere.
        TargetSpec::Deployed(deployment) => !matches!(deployment.how, DeploymentHow::Commands(_)),
        TargetSpec::Url(_) => false,
    };
    // A tunnel listens here, too: only a server that says what it is, and that we see, is here.
    let is_seen = || server.software.is_some() && system::serves_here(address);
    is_ours || spec.server_info.as_deref() == Some("local") || is_seen()
}

const HOW_TO_TELL: &str = "a file has keys such as software, version, start_command, gpus_used and \
                           [machine]; `inferometer system --json` prints one of the machine that \
                           it runs on";

/// What the embedded engine simulates.
pub(crate) fn from_engine(spec: &EngineTable) -> Result<ServerFacts> {
    let profile = embedded::profile(spec)?;
    let Profile { gpu, model, .. } = &profile;
    let pretended = match profile.gpus() {
        1 => format!("{} with {}", gpu.title, model.title),
        several => format!("{several}× {} with {}", gpu.title, model.title),
    };
    Ok(ServerFacts {
        software: Some("Inferometer engine".to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        context_tokens: Some(profile.scheduler.max_model_len.into()),
        pretended: Some(pretended),
        gpus_used: Some(profile.gpus()),
        ..ServerFacts::default()
    })
}

#[cfg(test)]
mod tests {
    use inferometer_model::SpecDraft;
    use inferometer_model::deployment::{CommandsSpec, DeploymentSpec, ProcessSpec};

    use super::*;

    #[test]
    fn a_server_is_here_that_we_put_up_or_that_we_are_told_of() {
        let address = SocketAddr::from(([192, 0, 2, 1], 9));
        let of = |target: TargetSpec, server_info: Option<&str>| {
            let spec = SpecDraft::default().resolve().unwrap();
            let spec = Spec { target, server_info: server_info.map(str::to_owned), ..spec };
            is_here(&spec, address, &ServerFacts::default())
        };
        let url = || TargetSpec::Url("http://192.0.2.1:9".parse().unwrap());
        let deployed = |how| TargetSpec::Deployed(Box::new(DeploymentSpec::new(how)));
        let word = String::new;
        let commands = || {
            deployed(DeploymentHow::Commands(CommandsSpec {
                up: word(),
                url: word(),
                logs: None,
                down: word(),
            }))
        };
        let process = ProcessSpec { command: Vec::new(), folder: None };
        assert!(of(deployed(DeploymentHow::Process(process)), None));
        assert!(!of(commands(), None), "they may have put it up anywhere");
        assert!(of(commands(), Some("local")) && of(url(), Some("local")));
        assert!(!of(url(), None) && !of(url(), Some("server.toml")));
    }
}
