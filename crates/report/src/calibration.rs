//! The pages of a calibration: terminal, Markdown, the JSON document, and two charts.

mod charts;
mod sections;

use std::fmt::Write;

use inferometer_analysis::calibration::Calibration;
use serde::Serialize;

use crate::escape;
use crate::terminal::{Ink, Style};
pub use charts::{latency, throughput};

/// Where the calibration is stored, so that a page can say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CalibrationFiles {
    pub folder: String,
    pub document: String,
    pub page: String,
    pub throughput: String,
    pub latency: String,
}

/// The page for a terminal.
pub fn terminal(calibration: &Calibration, files: &CalibrationFiles, style: Style) -> String {
    let machine = escape::terminal(&sections::machine(calibration));
    let capacity = sections::capacity(calibration);
    let head = format!(
        "{}\n{machine}\n",
        style.paint(Ink::Bold, &escape::terminal(&sections::title(calibration)))
    );
    let capacity = format!("{}  {capacity}\n", style.paint(Ink::Good, "CAPACITY"));
    let tables = sections::tables(calibration).map(|table| table.to_terminal(style));
    let memory =
        format!("{}\n  {}\n", style.paint(Ink::Bold, "Memory"), sections::memory(calibration));
    let mut notes = String::new();
    for note in &calibration.notes {
        let head = style.paint(Ink::Doubtful, "note");
        let _ = writeln!(notes, "{head}: {}", escape::terminal(note));
    }
    let folder = escape::terminal(&files.folder);
    let place = format!("{}  {folder}\n", style.paint(Ink::Bold, "files"));
    let sections = [vec![head, capacity], tables.to_vec(), vec![memory, notes, place]].concat();
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The page that lies beside the charts and shows them.
pub fn markdown(calibration: &Calibration, throughput: &str, latency: &str) -> String {
    let tables = sections::tables(calibration).map(|table| table.to_markdown());
    let notes: Vec<String> =
        calibration.notes.iter().map(|note| format!("- {}\n", escape::markdown(note))).collect();
    let notes =
        if notes.is_empty() { String::new() } else { format!("\n## Notes\n\n{}", notes.concat()) };
    format!(
        "# {}\n\n{}\n\n**Capacity:** {}\n\n\
         ![Client throughput capacity]({throughput})\n\n![Client latency profile]({latency})\n\n\
         {}\n## Memory\n\n{}\n{notes}",
        escape::markdown(&sections::title(calibration)),
        escape::markdown(&sections::machine(calibration)),
        escape::markdown(&sections::capacity(calibration)),
        tables.join("\n"),
        escape::markdown(&sections::memory(calibration)),
    )
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    calibration: &'a Calibration,
    files: &'a CalibrationFiles,
}

/// Exactly one document, with a line feed at its end.
pub fn json(calibration: &Calibration, files: &CalibrationFiles) -> String {
    // A calibration has finite numbers and no maps, so it always has a JSON form.
    let document = Document { calibration, files };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
