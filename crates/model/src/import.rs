//! What is kept of another tool's file that was taken in.

use serde::{Deserialize, Serialize};

/// Written last, behind the file itself, so that an import is there as a whole or not at all. What the
/// file says is mapped again whenever it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportManifest {
    pub format: u32,
    pub import: String,
    /// RFC 3339, UTC.
    pub imported: String,
    pub tool_version: String,
    pub file: ForeignFile,
    pub reading: ImportReading,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignFile {
    /// Its name without its folder.
    pub name: String,
    pub sha256: String,
    pub bytes: u64,
}

/// How the user wants the file to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImportReading {
    /// What its configurations are called, in their order; the names in the file where there are
    /// fewer.
    pub names: Vec<String>,
    /// Whether a load that comes again is a repeated run of one configuration, and not the
    /// beginning of another.
    pub repeats: bool,
    /// What a configuration is called of which the file says nothing: after the file, so that those
    /// of two files stay apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameless: Option<String>,
}
