//! What a set came to, as the user wants to see it. The one place where sets are printed.

use std::fmt::Write;

use inferometer_analysis::set::{PointLine, SetSummary};
use inferometer_report::escape;
use inferometer_store::SetDirectory;

use crate::arguments::PageFormat;
use crate::failure::Failure;
use crate::output;

pub(crate) fn show(
    summary: &SetSummary,
    set: &SetDirectory,
    format: PageFormat,
) -> Result<(), Failure> {
    match format {
        PageFormat::Json => {
            let json = summary.to_json_bytes();
            output::result(&String::from_utf8_lossy(&json))
        }
        PageFormat::Page | PageFormat::Vllm => output::result(&page(summary, set)),
    }
}

fn page(summary: &SetSummary, set: &SetDirectory) -> String {
    let simulated = if summary.simulated { ", simulated" } else { "" };
    let mut text = format!("set {}: {}{simulated}\n\n", summary.set, summary.verdict.key());
    for point in &summary.points {
        let _ = writeln!(text, "{}", line(summary, point));
    }
    let _ = writeln!(text, "\nstored in {}", set.path().display());
    text
}

fn line(summary: &SetSummary, point: &PointLine) -> String {
    let place = usize::try_from(point.condition).unwrap_or(usize::MAX);
    let name = summary.conditions.get(place).map_or("", |condition| condition.name.as_str());
    format!(
        "{:>4}  {}  {}  run {}  {}",
        point.number,
        escape::terminal(name),
        point.level,
        point.repetition + 1,
        point.verdict.key()
    )
}
