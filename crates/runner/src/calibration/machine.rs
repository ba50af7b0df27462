//! The machine that a calibration holds for, and its name in the cache.

use std::fmt::Write;

use inferometer_analysis::calibration::Machine;
use sha2::{Digest, Sha256};

use crate::environment;

pub fn this() -> Machine {
    let environment = environment::capture_host();
    Machine {
        cpu_model: environment.cpu_model,
        cpus: environment.cpus,
        memory_bytes: memory_bytes(),
        os: environment.os,
        architecture: environment.architecture,
        kernel: environment.kernel,
    }
}

/// Equal for equal machine, kernel and version: what was measured with another says nothing.
pub fn key(machine: &Machine, tool_version: &str) -> String {
    const BYTES: usize = 6;
    // A kernel keeps a little more or less for itself from one boot to the next.
    let memory_gib = machine.memory_bytes.map(|bytes| (bytes + (1 << 29)) >> 30);
    let facts = format!(
        "{:?}\n{:?}\n{memory_gib:?}\n{}\n{:?}\n{tool_version}",
        machine.cpu_model, machine.cpus, machine.architecture, machine.kernel
    );
    let hash = Sha256::digest(facts.as_bytes());
    hash.iter().take(BYTES).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whatever else runs takes from the client and from the engine, and that is said.
pub fn busy_note(machine: &Machine) -> Option<String> {
    const IDLE_SHARE: f64 = 0.25;
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    let cpus = machine.cpus?;
    (f64::from(cpus) * IDLE_SHARE < load).then(|| {
        format!(
            "the machine was busy before this began (load {load} on {cpus} CPUs): the client may do \
             better than this; calibrate again when nothing else runs"
        )
    })
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_short_and_differs_with_what_matters() {
        let machine = Machine { cpus: Some(8), memory_bytes: Some(16 << 30), ..Machine::default() };
        let name = key(&machine, "0.1.0");
        assert_eq!(name.len(), 12);
        assert_eq!(name, key(&machine, "0.1.0"));
        let after_a_boot = Machine { memory_bytes: Some((16 << 30) - 4_096), ..machine.clone() };
        assert_eq!(name, key(&after_a_boot, "0.1.0"));
        assert_ne!(name, key(&machine, "0.2.0"));
        assert_ne!(name, key(&Machine { cpus: Some(4), ..machine.clone() }, "0.1.0"));
        let other_kernel = Machine { kernel: Some("6.1".to_owned()), ..machine };
        assert_ne!(name, key(&other_kernel, "0.1.0"));
    }
}
