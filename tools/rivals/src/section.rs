//! One measurement of the report, for people and for programs.

use super::table::Table;

#[derive(Debug)]
pub(crate) struct Section {
    /// Its name in the JSON report.
    pub(crate) key: String,
    pub(crate) table: Table,
    pub(crate) facts: serde_json::Value,
}
