//! What machines are: this one by its own files and tools, and another by what its server reports or by a
//! file or a command. What cannot be found out is absent, never guessed.

mod clock;
pub(crate) mod listener;
mod server;
pub(crate) mod tool;

pub use clock::{KERNEL, clock_host};
pub use listener::serves_here;
pub use server::{ServerInfo, ServerInfoError, ask_server, gpus_used, read_server_info};
pub use tool::output;

use std::fs;
use std::path::Path;

use inferometer_model::system::Machine;

use crate::gpu::{amd, nvidia};

/// This machine with its GPUs, as the tools of their vendors report them. May take some seconds.
pub fn machine() -> Machine {
    let mut machine = host();
    // A machine may have both kinds for different purposes; both are listed.
    nvidia::add_to(&mut machine);
    amd::add_to(&mut machine);
    machine
}

/// This machine without its GPUs, from files only and therefore at once.
pub fn host() -> Machine {
    let read = |path: &str| fs::read_to_string(path).ok();
    let cpu = read("/proc/cpuinfo");
    Machine {
        os: read("/etc/os-release").as_deref().and_then(os_name),
        kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        cpu_model: cpu.as_deref().and_then(cpu_model),
        // All that the machine has: a quota of ours is no property of it.
        cpus: cpu
            .as_deref()
            .and_then(cpu_count)
            .or_else(|| u32::try_from(std::thread::available_parallelism().ok()?.get()).ok()),
        memory_bytes: read("/proc/meminfo").and_then(|text| memory_bytes(&text, "MemTotal:")),
        container: container(
            Path::new("/.dockerenv").exists(),
            Path::new("/run/.containerenv").exists(),
            std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            read("/proc/1/cgroup").as_deref().unwrap_or_default(),
        ),
        ..Machine::default()
    }
}

fn os_name(os_release: &str) -> Option<String> {
    let line = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    named(line.trim().trim_matches(['"', '\'']))
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    named(line.split_once(':')?.1.trim())
}

fn cpu_count(cpuinfo: &str) -> Option<u32> {
    let count = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    u32::try_from(count).ok().filter(|count| 0 < *count)
}

/// The bytes of a line of `/proc/meminfo`.
pub(crate) fn memory_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn container(docker: bool, podman: bool, kubernetes: bool, cgroup: &str) -> Option<String> {
    let kinds = [
        (kubernetes, "Kubernetes"),
        (docker || cgroup.contains("/docker"), "Docker"),
        (podman || cgroup.contains("libpod"), "Podman"),
        (cgroup.contains("/lxc"), "LXC"),
    ];
    kinds.into_iter().find_map(|(is_it, name)| is_it.then(|| name.to_owned()))
}

fn named(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_workstation_are_read() {
        let release = "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 22.04.5 LTS\"\n";
        assert_eq!(os_name(release).as_deref(), Some("Ubuntu 22.04.5 LTS"));
        let cpuinfo =
            "processor\t: 0\nmodel name\t: AMD Ryzen X\n\nprocessor\t: 1\nmodel name\t: b\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("AMD Ryzen X"));
        assert_eq!(cpu_count(cpuinfo), Some(2));
        assert_eq!(
            memory_bytes("MemTotal:  263833600 kB\nMemFree: 1 kB", "MemTotal:"),
            Some(270_165_606_400)
        );
    }

    #[test]
    fn what_is_not_there_is_not_guessed() {
        assert_eq!(os_name("NAME=x"), None);
        assert_eq!(cpu_model("Hardware : BCM2711"), None);
        assert_eq!(cpu_count(""), None);
        assert_eq!(memory_bytes("MemTotal: many", "MemTotal:"), None);
        assert_eq!(container(false, false, false, "0::/init.scope"), None);
        assert_eq!(container(true, false, true, "").as_deref(), Some("Kubernetes"));
        assert_eq!(container(false, true, false, "").as_deref(), Some("Podman"));
    }

    #[test]
    fn this_machine_has_a_kernel() {
        assert!(host().kernel.is_some_and(|kernel| !kernel.is_empty()));
    }
}
