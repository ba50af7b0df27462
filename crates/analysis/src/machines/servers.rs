//! Which GPUs are the server's: those that hold one of its processes, else those that it was given,
//! else the one that there is.

use std::collections::BTreeSet;

use inferometer_model::Observations;
use inferometer_model::deployment::DeploymentFacts;
use inferometer_model::system::{KnownBy, ServerFacts};
use inferometer_model::telemetry::DevicesSample;
use serde::{Deserialize, Serialize};

/// How it is known which GPUs are the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServersBy {
    /// One of its processes was on them.
    Processes,
    /// Its environment names them.
    Environment,
    /// Its machine has no other.
    OnlyOne,
}

/// `None` where it cannot be told; then all that are in use are taken for the server's.
pub(super) fn of(observations: &Observations) -> Option<(ServersBy, BTreeSet<u32>)> {
    let server = observations.manifest.server.as_ref()?;
    let samples = &observations.machines.devices;
    let by_processes = || Some((ServersBy::Processes, by_processes(server, samples)?));
    let by_name = || Some((ServersBy::Environment, named(server.deployment.as_ref()?, samples)?));
    let only = || Some((ServersBy::OnlyOne, only(server, samples)?));
    by_processes().or_else(by_name).or_else(only)
}

/// Fewer than the model is spread over are not all: some of its processes are not known to us.
fn by_processes(server: &ServerFacts, samples: &[DevicesSample]) -> Option<BTreeSet<u32>> {
    let is_own = |process: &u32| server.processes.contains(process);
    let readings = samples.iter().flat_map(|sample| &sample.devices);
    let held = readings.filter(|it| it.processes.iter().flatten().any(is_own));
    let found: BTreeSet<u32> = held.map(|reading| reading.index).collect();
    let at_least = server.gpus_used.unwrap_or(1).max(1) as usize;
    (at_least <= found.len()).then_some(found)
}

/// Names other than numbers (`GPU-…`, `all`) say nothing here: looks have only numbers.
fn named(deployment: &DeploymentFacts, samples: &[DevicesSample]) -> Option<BTreeSet<u32>> {
    let list = match deployment.kind.as_str() {
        "process" => given(deployment)?,
        // Only the engine of containers heeds this one, and inside they are numbered anew.
        "container" if given(deployment).is_none() => value(deployment, "NVIDIA_VISIBLE_DEVICES")?,
        _ => return None,
    };
    let numbers: BTreeSet<u32> =
        list.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
    numbers.is_subset(&seen(samples)).then_some(numbers)
}

/// What the environment of the program lets it see, in its own words.
fn given(deployment: &DeploymentFacts) -> Option<&str> {
    let names = ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"];
    names.into_iter().find_map(|name| value(deployment, name))
}

fn value<'a>(deployment: &'a DeploymentFacts, name: &str) -> Option<&'a str> {
    let found = deployment.environment.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// In a container the processes on a GPU have numbers of the host, or are not told at all. A server
/// of another machine has other GPUs, and one that was given devices by name may have none.
fn only(server: &ServerFacts, samples: &[DevicesSample]) -> Option<BTreeSet<u32>> {
    let is_here = server.known_by == Some(KnownBy::Loopback);
    let is_open = server.deployment.as_ref().is_none_or(|it| given(it).is_none());
    let is_one = server.gpus_used.unwrap_or(1) <= 1;
    let seen = Some(seen(samples)).filter(|seen| seen.len() == 1)?;
    (is_here && is_open && is_one).then_some(seen)
}

fn seen(samples: &[DevicesSample]) -> BTreeSet<u32> {
    samples.iter().flat_map(|sample| &sample.devices).map(|reading| reading.index).collect()
}
