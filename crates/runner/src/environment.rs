//! What the client runs on.

use std::sync::OnceLock;

use inferometer_model::Environment;
use inferometer_model::system::Machine;
use inferometer_target::system;

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
    }
}
