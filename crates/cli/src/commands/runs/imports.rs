//! Imports in the list of what is stored: a line for each.

use std::collections::BTreeSet;
use std::fmt::Write;

use inferometer_analysis::sheet::Tool;
use inferometer_report::escape::{terminal, terminal_line};
use inferometer_report::fmt::count;
use inferometer_store::ImportListing;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

pub(super) fn table(imports: &[ImportListing]) -> String {
    if imports.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{:<20} {:<20} {:<26} {:>7} {:>6}  {}\n",
        "import", "tool", "file", "results", "broken", "configurations"
    );
    for listing in imports {
        let kept = Kept::read(listing);
        let figure = |of: fn(&Kept) -> usize| {
            kept.as_ref().map_or_else(|| "–".to_owned(), |kept| count(of(kept) as u64))
        };
        let (file, names) = match &listing.manifest {
            Ok(manifest) => (terminal_line(&manifest.file.name, 26), kept.as_ref().map(names)),
            Err(reason) => ("unreadable".to_owned(), Some(terminal(reason))),
        };
        let line = format!(
            "{:<20} {:<20} {file:<26} {:>7} {:>6}  {}",
            terminal_line(listing.import.id(), 20),
            kept.as_ref().map_or("–", |kept| kept.tool.program()),
            figure(Kept::results),
            figure(Kept::broken),
            names.unwrap_or_default(),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

pub(super) fn json(listing: &ImportListing) -> Value {
    let kept = Kept::read(listing);
    let manifest = listing.manifest.as_ref().ok();
    json!({
        "id": listing.import.id(),
        "path": listing.import.path().display().to_string(),
        "reason": listing.manifest.as_ref().err(),
        "imported": manifest.map(|manifest| &manifest.imported),
        "file": manifest.map(|manifest| &manifest.file),
        "tool": kept.as_ref().map(|kept| kept.tool),
        "results": kept.as_ref().map(Kept::results),
        "broken": kept.as_ref().map(Kept::broken),
        "configurations": kept.as_ref().map(Kept::configurations),
    })
}

/// So much of a stored summary as a line shows; a whole one may hold every gap of every request.
#[derive(Deserialize)]
struct Kept {
    tool: Tool,
    records: Vec<KeptRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptRecord {
    Result(KeptResult),
    Broken(IgnoredAny),
}

#[derive(Deserialize)]
struct KeptResult {
    configuration: String,
}

impl KeptRecord {
    fn configuration(&self) -> Option<&str> {
        match self {
            Self::Result(result) => Some(&result.configuration),
            Self::Broken(_) => None,
        }
    }
}

impl Kept {
    fn read(listing: &ImportListing) -> Option<Self> {
        serde_json::from_slice(&listing.import.read_summary().ok()??).ok()
    }

    fn results(&self) -> usize {
        self.records.iter().filter(|record| matches!(record, KeptRecord::Result(_))).count()
    }

    fn broken(&self) -> usize {
        self.records.len() - self.results()
    }

    /// Each once, in the order of their first coming.
    fn configurations(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.records.iter().filter_map(KeptRecord::configuration);
        names.filter(|name| !name.is_empty() && seen.insert(*name)).collect()
    }
}

fn names(kept: &Kept) -> String {
    terminal_line(&kept.configurations().join(", "), 60)
}
