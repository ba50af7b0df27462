//! Another tool's file, kept as it is, with what was read from it.

use std::fs;
use std::path::{Path, PathBuf};

use inferometer_model::import::{ForeignFile, ImportManifest, ImportReading};
use jiff::Timestamp;

use crate::directory::stored_directory;
use crate::error::StoreError;
use crate::{directory, files, manifest};

pub(crate) const IMPORT_FILE: &str = "import.json";
/// One name for every foreign file: what a file is called elsewhere must not choose a path here.
const FOREIGN_FILE: &str = "foreign";
const IMPORT_FORMAT: u32 = 1;
/// Files with every gap of every request are large.
pub const FOREIGN_BYTES_MAX: u64 = 1 << 30;
const SUMMARY_BYTES_MAX: u64 = 2 << 30;

/// All that is known of a file before it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImport {
    pub file: ForeignFile,
    pub reading: ImportReading,
    pub tool_version: String,
    /// The wall time that names the import.
    pub realtime_ns: u64,
}

/// A directory that holds another tool's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportDirectory {
    id: String,
    path: PathBuf,
}

stored_directory!(ImportDirectory, SUMMARY_BYTES_MAX);

impl NewImport {
    pub(crate) fn into_manifest(self, import: String, started: Timestamp) -> ImportManifest {
        ImportManifest {
            format: IMPORT_FORMAT,
            import,
            imported: started.to_string(),
            tool_version: self.tool_version,
            file: self.file,
            reading: self.reading,
        }
    }
}

impl ImportDirectory {
    /// The import at `path`, inside a store or elsewhere. Nothing is read yet.
    pub fn at(path: PathBuf) -> Self {
        Self { id: directory::name(&path), path }
    }

    /// A file whose manifest was never written is one that was cut off: it is listed as broken, so
    /// that the user can delete it.
    pub(crate) fn holds_import(path: &Path) -> bool {
        [IMPORT_FILE, FOREIGN_FILE].iter().any(|name| path.join(name).is_file())
    }

    pub fn foreign_path(&self) -> PathBuf {
        self.path.join(FOREIGN_FILE)
    }

    pub fn manifest(&self) -> Result<ImportManifest, StoreError> {
        let path = self.path.join(IMPORT_FILE);
        let damaged = |path, error| StoreError::Import { path, error };
        let read = manifest::read_versioned(&path, IMPORT_FORMAT, damaged)?;
        read.ok_or(StoreError::NoImport { path })
    }

    /// The other tool's file, byte for byte.
    pub fn foreign(&self) -> Result<Vec<u8>, StoreError> {
        let path = self.foreign_path();
        files::read_at_most(&path, FOREIGN_BYTES_MAX)?.ok_or(StoreError::NoImport { path })
    }

    /// The manifest last: with it an import is whole.
    pub(crate) fn write(
        &self,
        manifest: &ImportManifest,
        foreign: &[u8],
    ) -> Result<(), StoreError> {
        files::write_atomically(&self.foreign_path(), foreign)
            .and_then(|()| manifest::write_json(&self.path.join(IMPORT_FILE), manifest))
            .inspect_err(|_error| {
                // An import without its manifest would only litter the folder.
                let _ = fs::remove_dir_all(&self.path);
            })
    }
}
