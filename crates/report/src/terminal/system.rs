//! A machine on the terminal.

use std::fmt::Write;

use inferometer_model::system::Machine;

use crate::escape::terminal;
use crate::machine;

pub fn render(found: &Machine) -> String {
    let mut lines = machine::lines(found);
    if found.gpus.is_empty() {
        lines.insert(0, ("GPU(s)", "none that nvidia-smi, amd-smi or rocm-smi tell of".to_owned()));
    }
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<14} {}", terminal(value));
        text
    })
}
