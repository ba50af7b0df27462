//! Writes pages that no measurement made, for the browser tests: one with everything that a report can
//! have, one as long as a suite's, one whose every word is hostile.
//!
//! `cargo run -p inferometer-report --example sample_report -- FOLDER`

#![expect(clippy::print_stderr, reason = "an example talks to whoever runs it")]

#[path = "../tests/samples/mod.rs"]
mod samples;

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use inferometer_report::document::{Document, html, markdown};

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("say into which folder: sample_report FOLDER");
        return ExitCode::from(2);
    };
    let pages = [
        ("rich", samples::rich()),
        ("long", samples::suite_sized()),
        ("hostile", samples::hostile()),
    ];
    for (name, document) in pages {
        if let Err(error) = write(&Path::new(&folder).join(name), &document) {
            eprintln!("the page `{name}` was not written to {folder}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(folder: &Path, document: &Document) -> io::Result<()> {
    fs::create_dir_all(folder.join("charts"))?;
    fs::write(folder.join("report.html"), html::render(document))?;
    let page = markdown::render(document);
    fs::write(folder.join("report.md"), page.text)?;
    for (path, svg) in page.files {
        fs::write(folder.join(path), svg)?;
    }
    Ok(())
}
