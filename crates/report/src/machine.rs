//! The facts of a machine, as every page shows them.

use inferometer_model::system::{Gpu, Machine};

use crate::document::distinct;
use crate::fmt::{Join, counted, memory, whole};

/// A fact of a machine: its name, whether it is about GPUs, and its value.
pub type Fact = (&'static str, bool, fn(&Machine) -> Option<String>);

pub const FACTS: [Fact; 10] = [
    ("GPU(s)", true, |it| (!it.gpus.is_empty()).then(|| gpus(&it.gpus))),
    ("GPU driver", true, |it| it.gpu_driver.clone()),
    ("GPU runtime", true, |it| it.gpu_runtime.clone()),
    ("Interconnect", true, |it| it.interconnect.clone()),
    ("OS", false, |it| it.os.clone()),
    ("Kernel", false, |it| it.kernel.clone()),
    ("CPU", false, cpu),
    ("System RAM", false, |it| it.memory_bytes.map(memory)),
    ("Architecture", false, |it| it.architecture.clone()),
    ("Container", false, |it| it.container.clone()),
];

/// Names and values of the known facts.
pub fn lines(machine: &Machine) -> Vec<(&'static str, String)> {
    FACTS.iter().filter_map(|(name, _, get)| Some((*name, get(machine)?))).collect()
}

/// `4× AMD Instinct MI100 (gfx908)`; several kinds after commas.
pub fn gpus(gpus: &[Gpu]) -> String {
    let words = |gpu: &Gpu| {
        let count = gpus.iter().filter(|other| *other == gpu).count();
        let number = if count == 1 { String::new() } else { format!("{count}× ") };
        let facts = [
            gpu.architecture.clone(),
            gpu.memory_bytes.map(memory),
            gpu.power_limit_w.map(|watts| format!("{} W", whole(watts))),
        ];
        let more = facts.into_iter().flatten().try_join(", ").map(|facts| format!(" ({facts})"));
        format!("{number}{}{}", gpu.name, more.unwrap_or_default())
    };
    distinct(gpus).into_iter().map(words).join(", ")
}

fn cpu(machine: &Machine) -> Option<String> {
    let threads = machine.cpus.map(|threads| counted(threads.into(), "thread"));
    machine.cpu_model.iter().cloned().chain(threads).try_join(", ")
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
