//! What the client runs on, as far as it can be known without asking anyone.

use inferometer_model::Environment;

const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

pub(crate) fn capture() -> Environment {
    let kernel = nix::sys::utsname::uname()
        .ok()
        .and_then(|names| names.release().to_str().map(str::to_owned));
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    Environment {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: std::env::consts::OS.to_owned(),
        kernel,
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: cpu_model(),
        cpus: std::thread::available_parallelism()
            .ok()
            .and_then(|cpus| u32::try_from(cpus.get()).ok()),
        proxy_variables: PROXY_VARIABLES
            .into_iter()
            .filter(|name| is_set(name))
            .map(str::to_owned)
            .collect(),
        machine: None,
    }
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}
