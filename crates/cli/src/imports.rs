//! Foreign files as they are stored: read again, mapped again, shown.

use std::collections::BTreeMap;
use std::fmt::Write;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_interchange::vllm::block::{self, BlockOptions};
use inferometer_interchange::{Import, Imported, meaning, read_file};
use inferometer_model::import::ImportManifest;
use inferometer_report::pages::results::import::{BrokenLine, ImportPage, render};
use inferometer_store::{ImportDirectory, StoreError};
use sha2::{Digest, Sha256};

use crate::commands::style;
use crate::failure::Failure;

/// An import with its file mapped.
pub(crate) struct Mapped {
    pub(crate) directory: ImportDirectory,
    pub(crate) manifest: ImportManifest,
    pub(crate) import: Import,
}

impl Mapped {
    /// From the file itself: the summary beside it may be an older program's.
    pub(crate) fn read(directory: &ImportDirectory) -> Result<Self, Failure> {
        let manifest = directory.manifest().map_err(|error| refused(&error))?;
        let foreign = directory.foreign().map_err(|error| refused(&error))?;
        let import = read_file(&manifest.file.name, &foreign, &manifest.reading)
            .map_err(|error| Failure::usage(format!("{}: {error}", directory.id())))?;
        Ok(Self { directory: directory.clone(), manifest, import })
    }

    /// What is kept beside the file.
    pub(crate) fn summary(&self) -> Result<Vec<u8>, Failure> {
        summary_of(&self.import)
    }

    /// One document for programs.
    pub(crate) fn json(&self) -> Result<serde_json::Value, Failure> {
        let import = serde_json::to_value(&self.import).map_err(|error| unwritable(&error))?;
        Ok(serde_json::json!({
            "id": self.directory.id(),
            "path": self.directory.path().display().to_string(),
            "imported": self.manifest.imported,
            "tool_version": self.manifest.tool_version,
            "file": self.manifest.file,
            "reading": self.manifest.reading,
            "results": self.import.sheets().count(),
            "broken": self.import.broken().count(),
            "import": import,
        }))
    }

    /// Every result as `vllm bench serve` prints one.
    pub(crate) fn blocks(&self) -> String {
        let block = |sheet| block::from_result(sheet, &BlockOptions::all_of(sheet));
        self.import.sheets().map(block).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn page(&self) -> String {
        let folder = self.directory.path().display().to_string();
        let broken = self.import.broken();
        let page = ImportPage {
            manifest: &self.manifest,
            folder: &folder,
            tool: self.import.tool,
            sheets: self.import.sheets().collect(),
            broken: broken
                .map(|broken| BrokenLine { line: broken.line, reason: &broken.reason })
                .collect(),
            notes: meaning(self.import.tool).to_vec(),
        };
        render(&page, style())
    }
}

/// All results of an import, or the one with this number.
pub(crate) fn sheets(
    directory: &ImportDirectory,
    number: Option<u32>,
) -> Result<Vec<ToolResult>, Failure> {
    let Mapped { import, manifest, .. } = Mapped::read(directory)?;
    let results = import.records.into_iter().filter_map(|record| match record {
        Imported::Result(sheet) => Some(*sheet),
        Imported::Broken(_) => None,
    });
    let mut results: Vec<ToolResult> = results.collect();
    name_all(&mut results, directory.id(), &manifest.file.name);
    let Some(number) = number else { return Ok(results) };
    let found = results.len();
    results.into_iter().nth(number as usize).map(|sheet| vec![sheet]).ok_or_else(|| {
        let last = found.saturating_sub(1);
        Failure::usage(format!("{} has no result {number}", directory.id()))
            .hint(format!("it has {found}, named {0}/0 to {0}/{last}", directory.id()))
    })
}

/// Those that share a name, or have none but the file's, are called as they are asked for.
fn name_all(results: &mut [ToolResult], id: &str, file: &str) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for sheet in results.iter() {
        *times.entry(sheet.source.name.clone()).or_default() += 1;
    }
    for (number, sheet) in results.iter_mut().enumerate() {
        let name = &mut sheet.source.name;
        if *name == file || 1 < times[name.as_str()] {
            *name = format!("{id}/{number}");
        }
    }
}

pub(crate) fn summary_of(import: &Import) -> Result<Vec<u8>, Failure> {
    let mut json = serde_json::to_vec_pretty(import).map_err(|error| unwritable(&error))?;
    json.push(b'\n');
    Ok(json)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn refused(error: &StoreError) -> Failure {
    Failure::usage(error.to_string())
}

fn unwritable(error: &serde_json::Error) -> Failure {
    Failure::internal(format!("the results cannot be written as JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_apart_by_name() {
        let sheet = |name: &str| {
            let mut sheet = ToolResult::default();
            name.clone_into(&mut sheet.source.name);
            sheet
        };
        let mut results = ["page.md", "tag", "tag", "calm-1", "page.md"].map(sheet);
        name_all(&mut results, "imp", "page.md");
        let names = results.map(|sheet| sheet.source.name);
        assert_eq!(names, ["imp/0", "imp/1", "imp/2", "calm-1", "imp/4"]);
    }
}
