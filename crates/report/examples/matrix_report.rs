//! Writes pages of matrices that no measurement made, to look at: one as large as what people publish,
//! one with several loads.
//!
//! `cargo run -p inferometer-report --example matrix_report -- FOLDER [SUMMARY]`: with the summary of a
//! set, the page of that set as it is without its runs, and what a terminal shows of it.

#![expect(clippy::print_stderr, reason = "an example talks to whoever runs it")]
#![expect(clippy::unwrap_used, reason = "the numbers are made up here")]

#[path = "../tests/matrix/made.rs"]
mod made;

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use inferometer_analysis::set::SetSummary;
use inferometer_report::document::{html, markdown};
use inferometer_report::narrative::Narrative;
use inferometer_report::pages::{self, SuiteInput};
use inferometer_report::terminal::Style;
use inferometer_report::terminal::set::{SetFiles, render};

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("say into which folder: matrix_report FOLDER");
        return ExitCode::from(2);
    };
    let mut sets = vec![("large", made::large()), ("small", made::small()), ("tiny", made::tiny())];
    if let Some(path) = std::env::args().nth(2) {
        match read(&path) {
            Ok(set) => sets = vec![("set", set)],
            Err(error) => {
                eprintln!("{path} is no summary of a set: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    for (name, set) in sets {
        if let Err(error) = write(&Path::new(&folder).join(name), &set) {
            eprintln!("the page `{name}` was not written to {folder}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn read(path: &str) -> io::Result<SetSummary> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn write(folder: &Path, set: &SetSummary) -> io::Result<()> {
    let document =
        pages::of_set(&SuiteInput { set, points: &[], narrative: &Narrative::default() });
    fs::create_dir_all(folder.join("charts"))?;
    fs::write(folder.join("report.html"), html::render(&document))?;
    let path = folder.display().to_string();
    let files = SetFiles {
        set: path.clone(),
        summary: Some(path),
        report: None,
        markdown: None,
        table: None,
    };
    fs::write(folder.join("report.txt"), render(set, &files, Style::Plain))?;
    let page = markdown::render(&document);
    fs::write(folder.join("report.md"), page.text)?;
    for (path, svg) in page.files {
        fs::write(folder.join(path), svg)?;
    }
    Ok(())
}
