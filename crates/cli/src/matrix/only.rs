//! `--only`: some cells of a matrix, and some of its loads.

use inferometer_model::campaign::{Cell, Level, Matrix};

use super::rule::{Axes, Openness, Rule};
use super::tables::{RuleTable, Values};
use crate::failure::Failure;

/// Cells that were asked for: all of them where nothing was said.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    rules: Vec<Rule>,
    /// Of all cells alike; empty where nothing was said of them.
    levels: Vec<Level>,
}

/// What chooses a load. No axis: all loads of a cell share its server.
const LOAD: &str = "concurrency";

impl Selection {
    /// Each filter is `axis=value,axis=value`: a cell must have all of them, and of two values of
    /// one axis either. Of several filters one is enough.
    pub(crate) fn read(filters: &[String], matrix: &Matrix) -> Result<Self, Failure> {
        let axes = Axes::of(matrix);
        let (mut rules, mut loads) = (Vec::new(), Vec::new());
        for filter in filters {
            let (rule, levels) = parts(filter, &axes, matrix)?;
            rules.push(rule);
            loads.push(levels);
        }
        let levels = loads.first().cloned().unwrap_or_default();
        if loads.iter().any(|other| *other != levels) {
            return Err(Failure::usage("--only: all cells are measured at the same loads")
                .hint(format!("write the same {LOAD}=… into every --only")));
        }
        let selection = Self { rules, levels };
        if matrix.cells.iter().any(|cell| selection.takes(cell)) {
            return Ok(selection);
        }
        Err(Failure::usage(format!("--only {}: no cell is so", filters.join(" --only ")))
            .hint("--dry-run lists the cells of a matrix"))
    }

    pub(crate) fn takes(&self, cell: &Cell) -> bool {
        self.rules.is_empty() || self.rules.iter().any(|rule| rule.takes(cell))
    }

    pub(crate) fn takes_load(&self, level: &Level) -> bool {
        self.levels.is_empty() || self.levels.contains(level)
    }
}

fn parts(filter: &str, axes: &Axes, matrix: &Matrix) -> Result<(Rule, Vec<Level>), Failure> {
    let wrong = |what: &str| Failure::usage(format!("--only {filter}: {what}"));
    let mut table = RuleTable::new();
    let mut levels = Vec::new();
    for part in filter.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            wrong("there is no `=`").hint("write it as preset=H100X1,model=Llama-8B")
        })?;
        let (name, value) = (name.trim(), value.trim());
        if name == LOAD && !axes.flags.contains_key(LOAD) {
            levels.push(level(value, matrix).map_err(|what| wrong(&what))?);
            continue;
        }
        let Values(values) = table.entry(name.to_owned()).or_default();
        values.push(value.to_owned());
    }
    let rule = Rule::read(&table, axes, Openness::Known).map_err(|error| wrong(&error.what))?;
    Ok((rule, levels))
}

fn level(text: &str, matrix: &Matrix) -> Result<Level, String> {
    let number = |level: &Level| {
        if let Level::Concurrency(users) = level { Some(users.to_string()) } else { None }
    };
    let known: Vec<String> = matrix.levels.iter().filter_map(number).collect();
    let found = matrix.levels.iter().find(|level| number(level).as_deref() == Some(text));
    found.copied().ok_or_else(|| match known.as_slice() {
        [] => format!("the matrix has no `{LOAD}`"),
        known => format!("unknown {LOAD} `{text}`; known are {}", known.join(", ")),
    })
}
