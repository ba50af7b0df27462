//! Pages in a terminal: verdict first, then the numbers, then the warnings.

use inferometer_analysis::{RequirementOutcome, Summary};
use inferometer_model::system::Machine;

use crate::document::{Block, Section, terminal};
use crate::{Files, machine, pages};

pub use crate::pages::simulated;
pub use crate::requirements::rendered as requirements;

/// Verdict, SLOs, failures and warnings alone, for output that has no room for them.
pub fn reservations(summary: &Summary, files: &Files) -> String {
    terminal::render(&pages::run_reservations(summary, files), Style::Plain)
}

/// The page of a run.
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

/// The first screen of a run: what most people look at.
pub fn render_summary(
    summary: &Summary,
    files: &Files,
    required: &[RequirementOutcome],
    style: Style,
) -> String {
    terminal::render(&pages::run_summary(summary, files, required), style)
}

/// The facts of a machine, one below the other.
pub fn system(found: &Machine) -> String {
    let mut lines = machine::lines(found);
    if found.gpus.is_empty() {
        lines.insert(0, ("GPU(s)", "none reported by nvidia-smi, amd-smi or rocm-smi".to_owned()));
    }
    terminal::sections(&[Section::new("", vec![Block::facts(lines)])], Style::Plain)
}

/// The page of a set of runs.
pub mod set {
    use inferometer_analysis::set::SetSummary;

    use super::Style;
    pub use crate::pages::SetFiles;

    pub fn render(set: &SetSummary, files: &SetFiles, style: Style) -> String {
        super::terminal::render(&crate::pages::set_brief(set, files), style)
    }
}

/// Whether text is coloured. Everything reads as well without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Coloured,
}

/// Displayed as the code of its escape sequence.
#[derive(Clone, Copy, Debug, strum::Display)]
pub(crate) enum Ink {
    #[strum(serialize = "1")]
    Bold,
    #[strum(serialize = "2")]
    Dim,
    #[strum(serialize = "1;32")]
    Good,
    #[strum(serialize = "1;33")]
    Doubtful,
    #[strum(serialize = "1;31")]
    Bad,
}

impl Style {
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{ink}m{text}\u{1b}[0m"),
        }
    }
}
