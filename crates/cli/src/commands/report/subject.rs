//! What a report is about: something that was measured, or results side by side.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use inferometer_analysis::sheet::{Sheet, Tool};
use inferometer_interchange::export::vllm::{Writing, line};
use inferometer_interchange::meaning;
use inferometer_report::document::Document;
use inferometer_report::json;
use inferometer_report::pages::csv;
use inferometer_report::pages::results::{PageWords, of_sheets, site};
use inferometer_store::{RunStore, Stored};

use super::stored::Source;
use crate::failure::Failure;
use crate::imports::Mapped;
use crate::narrator::Writer;
use crate::sheets;

pub(super) enum Subject {
    Measured(Source),
    Results(Results),
}

/// Results of any tool, as one page shows them.
pub(super) struct Results {
    sheets: Vec<Sheet>,
    words: PageWords,
    /// Of an import; results of several have no place of their own.
    folder: Option<PathBuf>,
}

impl Subject {
    /// Of one name. What was imported has a page of results: nothing else is known of it.
    pub(super) fn of_name(
        store: &RunStore,
        name: &str,
        talk: impl Fn(&str),
    ) -> Result<Self, Failure> {
        let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
        if matches!(found, Stored::Import(..)) {
            let mut results = Results::read(store, &[name.to_owned()])?;
            results.folder = folder_of(&found);
            return Ok(Self::Results(results));
        }
        Source::read(&found, talk).map(Self::Measured)
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Measured(source) => Some(source.folder()),
            Self::Results(results) => results.folder.as_deref(),
        }
    }

    /// Names the page, which only one of results lets itself be told.
    pub(super) fn titled(self, title: Option<&str>) -> Result<Self, Failure> {
        match (self, title) {
            (untitled, None) => Ok(untitled),
            (Self::Results(Results { sheets, words, folder }), Some(title)) => {
                let words = PageWords { title: Some(title.to_owned()), ..words };
                Ok(Self::Results(Results { sheets, words, folder }))
            }
            (Self::Measured(source), Some(_)) => {
                let name = source.folder().display();
                Err(Failure::usage(format!("the page of {name} has a title of its own"))
                    .hint("leave --title out, or make a page of results with --together"))
            }
        }
    }

    pub(super) fn document(
        &self,
        writer: &Writer,
        talk: impl Fn(&str),
    ) -> Result<Document, Failure> {
        match self {
            Self::Measured(source) => source.document(writer, talk),
            Self::Results(results) => Ok(of_sheets(&results.sheets, &results.words)),
        }
    }

    pub(super) fn csv(&self) -> String {
        match self {
            Self::Measured(source) => source.csv(),
            Self::Results(results) => csv::of_sheets(&results.sheets),
        }
    }

    pub(super) fn json(&self) -> String {
        match self {
            Self::Measured(source) => source.json(),
            Self::Results(results) => json::render_sheets(&results.sheets),
        }
    }

    /// The files of a fragment of a site, the page first.
    pub(super) fn site(&self) -> Result<Vec<(String, String)>, Failure> {
        let own;
        let results = match self {
            Self::Results(results) => results,
            Self::Measured(source) => {
                own = Results::of_source(source);
                &own
            }
        };
        let mut failed = None;
        let raw = |sheet: &Sheet| line(sheet, &Writing::default());
        for sheet in &results.sheets {
            failed = failed.or(raw(sheet).err());
        }
        if let Some(error) = failed {
            return Err(Failure::internal(error.to_string()));
        }
        Ok(site(&results.sheets, &results.words, |sheet| raw(sheet).unwrap_or_default()))
    }
}

impl Results {
    /// All that is named, on one page.
    pub(super) fn read(store: &RunStore, names: &[String]) -> Result<Self, Failure> {
        let sheets = sheets::of_names(store, names)?;
        if sheets.is_empty() {
            return Err(Failure::usage(format!("there is no result in {}", names.join(", ")))
                .hint("`inferometer runs` lists what is stored"));
        }
        let words = PageWords {
            made_from: names.to_vec(),
            remarks: remarks(store, names)?,
            ..words(&sheets)
        };
        Ok(Self { sheets, words, folder: None })
    }

    fn of_source(source: &Source) -> Self {
        let name = source.folder().file_name().unwrap_or_default();
        let made_from = vec![name.to_string_lossy().into_owned()];
        let sheets = sheets::of_source(source);
        let words = PageWords { made_from, ..words(&sheets) };
        Self { sheets, words, folder: None }
    }
}

fn words(sheets: &[Sheet]) -> PageWords {
    let tools: BTreeSet<Tool> = sheets.iter().map(|sheet| sheet.source.tool).collect();
    let definition =
        |tool: Tool| (tool, meaning(tool).iter().map(|&said| said.to_owned()).collect());
    PageWords {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        definitions: tools.into_iter().map(definition).collect(),
        ..PageWords::default()
    }
}

/// What could not be read of the files that were imported.
fn remarks(store: &RunStore, names: &[String]) -> Result<Vec<String>, Failure> {
    let mut remarks = Vec::new();
    for typed in names {
        let (_, name) = sheets::named(typed);
        let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
        let Stored::Import(import, None) = found else { continue };
        let broken = Mapped::read(&import)?.import.broken().count();
        if 0 < broken {
            remarks.push(format!(
                "{broken} records of {name} could not be read and are not on this page; its \
                 summary.json has the reasons"
            ));
        }
    }
    Ok(remarks)
}

fn folder_of(found: &Stored) -> Option<PathBuf> {
    match found {
        Stored::Import(import, _) => Some(import.path().to_owned()),
        Stored::Run(_) | Stored::Set(_) => None,
    }
}
