//! What is known of the server before a run: what it says itself, what we are told, and whether it
//! runs on this machine.

use inferometer_engine::profile::Profile;
use inferometer_model::Spec;
use inferometer_model::deployment::DeploymentFacts;
use inferometer_model::spec::{EngineSpec, TargetSpec};
use inferometer_model::system::{KnownBy, ServerFacts};
use inferometer_target::{deploy, system};

use crate::embedded;
use crate::environment;
use crate::failure::Failure;
use crate::preflight::{self, Found};

pub(crate) fn find(
    spec: &Spec,
    found: &Found,
    deployment: Option<&DeploymentFacts>,
) -> Result<ServerFacts, Failure> {
    // Vendors' tools take their time: now, and not between a warm-up and its run.
    let own = environment::machine();
    if spec.target == TargetSpec::Embedded {
        let flags = embedded::flags(&spec.engine)?;
        let words = [&["inferometer engine --mode serve".to_owned()], &flags[..]].concat();
        let start_command = Some(words.join(" "));
        return Ok(ServerFacts { start_command, ..of_engine(&spec.engine)? });
    }
    let said = preflight::fetching(&found.target, async |fetch| system::ask_server(&fetch).await)?;
    let mut facts = match &spec.server_info {
        None => said,
        Some(place) => system::tell(place, || own.clone())
            .map_err(|error| Failure::usage(error.to_string()).hint(HOW_TO_TELL))?
            .over(said),
    };
    // A tunnel listens here, too: only a server that says what it is, and that we see, is here.
    let is_here = facts.software.is_some() && system::serves_here(found.endpoint.address);
    let is_here = is_here || deployment.is_some_and(DeploymentFacts::is_here);
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
        let command = start_command(spec).unwrap_or_else(|| deployment.command_line());
        facts.gpus_used = facts.gpus_used.or_else(|| system::gpus_used(&command));
        facts.start_command.get_or_insert(command);
        facts.deployment = Some(deployment.clone());
    }
    Ok(facts)
}

/// As it was written, with its placeholders: the port of this once would make every server another.
fn start_command(spec: &Spec) -> Option<String> {
    match &spec.target {
        TargetSpec::Deployed(deployment) => deployment.how.command_line(),
        TargetSpec::Embedded | TargetSpec::Url(_) => None,
    }
}

const HOW_TO_TELL: &str = "a file has keys such as software, version, start_command, gpus_used and \
                           [machine]; `inferometer system --json` prints one of the machine that \
                           it runs on";

/// The embedded engine pretends to have hardware, and says which.
pub(crate) fn of_engine(spec: &EngineSpec) -> Result<ServerFacts, Failure> {
    let profile = embedded::profile(spec)?;
    Ok(ServerFacts {
        software: Some("Inferometer engine".to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        context_tokens: Some(profile.scheduler.max_model_len.into()),
        pretended: Some(pretended(&profile)),
        gpus_used: Some(profile.gpus()),
        ..ServerFacts::default()
    })
}

fn pretended(profile: &Profile) -> String {
    let Profile { gpu, model, .. } = profile;
    match profile.gpus() {
        1 => format!("{} with {}", gpu.title, model.title),
        several => format!("{several}× {} with {}", gpu.title, model.title),
    }
}
