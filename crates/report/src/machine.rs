//! A machine in words: the lines of every page that shows one.

use inferometer_model::system::{Gpu, Machine};

use crate::fmt::{memory, whole};

/// What is known, as names and values, in the order in which people read it.
pub fn lines(machine: &Machine) -> Vec<(&'static str, String)> {
    let text = |name: &'static str, value: &Option<String>| Some((name, value.clone()?));
    [
        (!machine.gpus.is_empty()).then(|| ("GPU(s)", gpus(&machine.gpus))),
        text("GPU driver", &machine.gpu_driver),
        text("GPU runtime", &machine.gpu_runtime),
        text("Interconnect", &machine.interconnect),
        text("OS", &machine.os),
        text("Kernel", &machine.kernel),
        cpu(machine).map(|words| ("CPU", words)),
        machine.memory_bytes.map(|bytes| ("System RAM", memory(bytes))),
        text("Architecture", &machine.architecture),
        text("Container", &machine.container),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `4× AMD Instinct MI100 (gfx908)`; several kinds after commas.
pub fn gpus(gpus: &[Gpu]) -> String {
    let mut kinds: Vec<(&Gpu, u32)> = Vec::new();
    for gpu in gpus {
        match kinds.iter_mut().find(|(known, _)| *known == gpu) {
            Some((_, count)) => *count += 1,
            None => kinds.push((gpu, 1)),
        }
    }
    let words = |(gpu, count): &(&Gpu, u32)| {
        let number = if *count == 1 { String::new() } else { format!("{count}× ") };
        let facts: Vec<String> = [
            gpu.architecture.clone(),
            gpu.memory_bytes.map(memory),
            gpu.power_limit_w.map(|watts| format!("{} W", whole(watts))),
        ]
        .into_iter()
        .flatten()
        .collect();
        let more =
            if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        format!("{number}{}{more}", gpu.name)
    };
    kinds.iter().map(words).collect::<Vec<_>>().join(", ")
}

pub fn cpu(machine: &Machine) -> Option<String> {
    let threads = machine.cpus.map(|threads| match threads {
        1 => "1 thread".to_owned(),
        several => format!("{several} threads"),
    });
    match (&machine.cpu_model, threads) {
        (Some(model), Some(threads)) => Some(format!("{model}, {threads}")),
        (Some(one), None) => Some(one.clone()),
        (None, threads) => threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_gpus_are_counted_and_others_listed() {
        let mi100 = Gpu {
            name: "AMD Instinct MI100".to_owned(),
            architecture: Some("gfx908".to_owned()),
            ..Gpu::default()
        };
        let other = Gpu { name: "X".to_owned(), memory_bytes: Some(3 << 29), ..Gpu::default() };
        let found = gpus(&[mi100.clone(), mi100.clone(), other, mi100]);
        assert_eq!(found, "3× AMD Instinct MI100 (gfx908), X (1.5 GiB)");
    }

    #[test]
    fn what_is_not_known_has_no_line() {
        assert!(lines(&Machine::default()).is_empty());
        let machine = Machine { os: Some("Debian".to_owned()), ..Machine::default() };
        assert_eq!(lines(&machine), [("OS", "Debian".to_owned())]);
    }
}
