//! Pages in a terminal: verdict first, then the numbers, then the warnings.

pub mod set;
mod style;

use inferometer_analysis::{RequirementOutcome, Summary};
use inferometer_model::system::Machine;

use crate::document::terminal;
use crate::{Files, escape, machine, pages};
pub(crate) use style::Ink;
pub use style::Style;

pub use crate::requirements::section as requirements;

/// Verdict, SLOs, failures and warnings alone, beside a page that has no place for them.
pub fn doubts(summary: &Summary, files: &Files) -> String {
    terminal::render(&pages::run_reservations(summary, files), Style::Plain)
}

/// The page of a run. `style` is plain where colour is not wanted.
pub fn render(summary: &Summary, files: &Files, style: Style) -> String {
    render_judged(summary, files, &[], style)
}

/// The page of a run with its requirements.
pub fn render_judged(
    summary: &Summary,
    files: &Files,
    required: &[RequirementOutcome],
    style: Style,
) -> String {
    terminal::render(&pages::run_brief(summary, files, required), style)
}

/// The facts of a machine, one below the other.
pub fn system(found: &Machine) -> String {
    let mut lines = machine::lines(found);
    if found.gpus.is_empty() {
        lines.insert(0, ("GPU(s)", "none reported by nvidia-smi, amd-smi or rocm-smi".to_owned()));
    }
    let line = |(name, value): &(&str, String)| format!("{name:<14} {}\n", escape::terminal(value));
    lines.iter().map(line).collect()
}
