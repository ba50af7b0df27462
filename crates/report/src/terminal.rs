//! The page for a terminal: verdict first, then the numbers, then the reasons to doubt them.

mod audit;
mod groups;
mod machines;
mod promises;
mod sections;
mod server;
pub mod set;
mod style;
pub mod system;
mod validity;

use inferometer_analysis::{RequirementOutcome, Summary};

use crate::Files;
pub use crate::requirements::section as requirements;
pub(crate) use server::speaker;
pub(crate) use style::Ink;
pub use style::Style;

/// Verdict, promises, failures and warnings alone, for beside a page that has no place for them.
pub fn doubts(summary: &Summary, files: &Files) -> String {
    [
        sections::simulated(summary, Style::Plain),
        sections::verdict(summary, Style::Plain),
        promises::promises(summary, Style::Plain),
        sections::outcomes(summary, Style::Plain),
        sections::warnings(summary, Style::Plain),
        sections::files(files, Style::Plain),
    ]
    .concat()
}

/// The whole page. `style` is plain where nobody wants colour.
pub fn render(summary: &Summary, files: &Files, style: Style) -> String {
    render_judged(summary, files, &[], style)
}

/// The whole page, with what was required of the run.
pub fn render_judged(
    summary: &Summary,
    files: &Files,
    required: &[RequirementOutcome],
    style: Style,
) -> String {
    let page = [
        sections::simulated(summary, style),
        sections::head(summary, style),
        sections::verdict(summary, style),
        requirements(required, style),
        sections::latencies(summary, style),
        sections::throughputs(summary, style),
        validity::steady(summary, style),
        promises::promises(summary, style),
        groups::turns(summary, style),
        groups::parts(summary, style),
        audit::audit(summary, style),
        sections::outcomes(summary, style),
        server::server(summary, style),
        machines::machines(summary, style),
        sections::client(summary, style),
        validity::checks(summary, style),
        sections::files(files, style),
    ];
    let mut text: String =
        page.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
    if style == Style::Plain {
        // Padding at line ends is noise in a log.
        text = text.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    }
    text
}
