//! `--only`: some cells of a matrix.

use inferometer_model::campaign::{Cell, Matrix};

use super::rule::{Axes, Openness, Rule};
use super::tables::{RuleTable, Values};
use crate::failure::Failure;

/// Cells that were asked for: all of them where nothing was said.
#[derive(Clone, Debug)]
pub(crate) struct Selection(Vec<Rule>);

impl Selection {
    /// Each filter is `axis=value,axis=value`: a cell must have all of them, and of two values of
    /// one axis either. Of several filters one is enough.
    pub(crate) fn read(filters: &[String], matrix: &Matrix) -> Result<Self, Failure> {
        let axes = Axes::of(matrix);
        let rules: Vec<Rule> =
            filters.iter().map(|filter| rule(filter, &axes)).collect::<Result<_, Failure>>()?;
        let selection = Self(rules);
        if matrix.cells.iter().any(|cell| selection.takes(cell)) {
            return Ok(selection);
        }
        Err(Failure::usage(format!("--only {}: no cell is so", filters.join(" --only ")))
            .hint("--dry-run lists the cells of a matrix"))
    }

    pub(crate) fn takes(&self, cell: &Cell) -> bool {
        self.0.is_empty() || self.0.iter().any(|rule| rule.takes(cell))
    }
}

fn rule(filter: &str, axes: &Axes) -> Result<Rule, Failure> {
    let wrong = |what: &str| Failure::usage(format!("--only {filter}: {what}"));
    let mut table = RuleTable::new();
    for part in filter.split(',') {
        let (axis, value) = part.split_once('=').ok_or_else(|| {
            wrong("there is no `=`").hint("write it as preset=H100X1,model=Llama-8B")
        })?;
        let Values(values) = table.entry(axis.trim().to_owned()).or_default();
        values.push(value.trim().to_owned());
    }
    Rule::read(&table, axes, Openness::Known).map_err(|error| wrong(&error.what))
}
