//! The page of another tool's file: what was found in it, what its numbers mean, the reasons to
//! doubt them, and what could not be taken over.

mod left_out;
mod meaning;
mod results;

use std::fmt::Write;

use inferometer_analysis::sheet::{Sheet, Tool};
use inferometer_model::import::ImportManifest;

use super::style::{Ink, Style};
use crate::escape::{terminal, terminal_line};
use crate::fmt::count;
use crate::lines::hanging;

/// A name comes from a stranger's file.
const NAME_CHARS_MAX: usize = 60;
/// Of a list that a stranger's file makes as long as it likes.
const NAMES_SHOWN_MAX: usize = 3;

/// All that a page tells of an import.
#[derive(Clone, Debug)]
pub struct ImportPage<'a> {
    pub manifest: &'a ImportManifest,
    /// Where it is stored.
    pub folder: &'a str,
    /// Who wrote the file.
    pub tool: Tool,
    /// In the file's order.
    pub sheets: Vec<&'a Sheet>,
    pub broken: Vec<BrokenLine<'a>>,
    /// What this tool's numbers are, in words that hold for all of its files.
    pub notes: Vec<&'a str>,
}

/// A record that could not be read.
#[derive(Clone, Copy, Debug)]
pub struct BrokenLine<'a> {
    pub line: u32,
    pub reason: &'a str,
}

/// The whole page. `style` is plain where nobody wants colour.
pub fn render(page: &ImportPage<'_>, style: Style) -> String {
    let mut sections = vec![head(page, style)];
    sections.extend(results::tables(page, style));
    sections.push(meaning::meaning(page, style));
    sections.push(left_out::missing(page, style));
    sections.push(left_out::unmapped(page, style));
    sections.push(left_out::broken(page, style));
    sections.push(files(page, style));
    let mut text: String =
        sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
    if style == Style::Plain {
        // Padding at line ends is noise in a log.
        text = text.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    }
    text
}

fn head(page: &ImportPage<'_>, style: Style) -> String {
    let manifest = page.manifest;
    let title = format!(
        "Inferometer {}  ·  import {}",
        terminal(&manifest.tool_version),
        terminal(&manifest.import)
    );
    let mut found = format!(
        "{}: {} of {}",
        terminal_line(&manifest.file.name, NAME_CHARS_MAX),
        plural(page.sheets.len(), "result"),
        page.tool.program(),
    );
    let configurations = results::configurations(&page.sheets).len();
    if 1 < configurations {
        let _ = write!(found, " in {configurations} configurations");
    }
    if !page.broken.is_empty() {
        let _ = write!(found, "; {} cannot be read", plural(page.broken.len(), "record"));
    }
    style.paint(Ink::Bold, &title) + "\n" + &hanging("", 0, &found)
}

fn files(page: &ImportPage<'_>, style: Style) -> String {
    let folder = terminal(page.folder);
    let whose = format!("one result is named {}/N, with N from the column #", page.manifest.import);
    format!(
        "{}  {folder}\n       {folder}/foreign is the file as it was\n{}",
        style.paint(Ink::Bold, "files"),
        hanging("       ", 7, &terminal(&whose)),
    )
}

fn plural(found: usize, what: &str) -> String {
    let ending = if found == 1 { "" } else { "s" };
    format!("{} {what}{ending}", count(found as u64))
}

/// Each value once, in the order of their first coming, safe for the page; no more than a few.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut found: Vec<&str> = Vec::new();
    for value in values.filter(|value| !value.is_empty()) {
        if !found.contains(&value) {
            found.push(value);
        }
        if NAMES_SHOWN_MAX < found.len() {
            found.truncate(NAMES_SHOWN_MAX);
            let shown = found.iter().map(|value| terminal_line(value, NAME_CHARS_MAX));
            return Some(shown.collect::<Vec<_>>().join(", ") + " and others");
        }
    }
    let shown: Vec<String> =
        found.iter().map(|value| terminal_line(value, NAME_CHARS_MAX)).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}
