//! The axes of a matrix: their values, the cells that they make, and rules that include, exclude or
//! choose some of them.

use std::collections::BTreeMap;

use inferometer_model::study::{Cell, Level, Matrix, Strategy};
use serde_json::Value;

use super::{MatrixFile, MatrixTable, Values};
use crate::arguments::Grammar;
use crate::experiment::{Layer, nearest};
use crate::failure::Failure;
use crate::study::file::count_tables;

/// A limit against mistakes.
const CELLS_MAX: usize = 4_096;
/// The axes that are no flags.
const FIXED: [&str; 4] = ["preset", "model", "context", "strategy"];
/// Keys of the embedded engine that follow from a cell, and what they follow from.
const DECIDED: [(&str, &str); 6] = [
    ("tp", "`strategies` in [matrix] and the `gpus` of a preset"),
    ("pp", "`strategies` in [matrix] and the `gpus` of a preset"),
    ("max_model_len", "`contexts` in [matrix]"),
    ("model", "[[model]]"),
    ("hardware", "[[preset]]"),
    ("profile", "[[preset]]"),
];
/// What chooses a load. It is no axis: all loads of a cell share its server.
const LOAD: &str = "concurrency";

/// Something that cells differ in.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    /// Names of presets, labels of models, or texts; empty where it is not varied.
    pub(super) values: Vec<String>,
    /// Other names of the values: the whole names of models.
    aliases: Vec<String>,
}

/// The values that each axis may have; an axis that is not named may have any.
pub(super) type Rule = BTreeMap<String, Vec<String>>;

/// The axes before the flags.
fn fixed_axes(matrix: &Matrix, contexts: Vec<String>, strategies: Vec<String>) -> Vec<Axis> {
    let presets = matrix.presets.iter().map(|preset| preset.name.clone()).collect();
    let labels = matrix.models.iter().map(|model| model.label.clone()).collect();
    let mut axes: Vec<Axis> = FIXED
        .into_iter()
        .zip([presets, labels, contexts, strategies])
        .map(|(name, values)| Axis { name: name.to_owned(), values, aliases: Vec::new() })
        .collect();
    axes[1].aliases = matrix.models.iter().map(|model| model.name.clone()).collect();
    axes
}

/// What a file varies, checked: every list has values, none twice, and nothing that a cell decides
/// anyway.
pub(super) fn read_axes(
    whole: &Layer,
    matrix: &Matrix,
    table: &MatrixTable,
) -> Result<Vec<Axis>, Failure> {
    for list in ["contexts", "strategies"] {
        let written = whole.tree.pointer(&format!("/matrix/{list}")).and_then(Value::as_array);
        if written.is_some_and(Vec::is_empty) {
            let what = format!("`{list}` has no values; leave it out, or name some");
            return Err(whole.origins.failure(&format!("matrix.{list}"), &what));
        }
    }
    let contexts: Vec<String> = table.contexts.iter().map(u32::to_string).collect();
    let strategies: Vec<String> = table.strategies.iter().map(Grammar::write).collect();
    check_once(whole, "matrix.contexts", &contexts)?;
    check_once(whole, "matrix.strategies", &strategies)?;
    let needs_gpus = matrix.presets.iter().position(|preset| preset.gpus.is_none());
    if let Some(place) = needs_gpus.filter(|_| !strategies.is_empty()) {
        let name = &matrix.presets[place].name;
        let what = format!("`{name}` has no `gpus`, and strategies spread a model over them");
        return Err(whole.origins.failure(&format!("preset.{place}"), &what));
    }
    let mut axes = fixed_axes(matrix, contexts, strategies);
    let is_embedded = whole.tree.get("deploy").is_none();
    for (name, Values(values)) in whole.table::<BTreeMap<String, Values>>("flags")? {
        let at = format!("flags.{name}");
        let refused = |what: String| Err(whole.origins.failure(&at, &what));
        let key = engine_key(&name);
        if let Some((_, by)) = DECIDED.iter().find(|(it, _)| is_embedded && *it == key) {
            return refused(format!("`{name}` is no flag: the cell decides it, by {by}"));
        }
        if FIXED.contains(&name.as_str()) {
            return refused(format!("`{name}` is the name of an axis; a flag needs another"));
        }
        if values.is_empty() {
            return refused(format!("the flag `{name}` has no values; leave it out, or name some"));
        }
        check_once(whole, &at, &values)?;
        axes.push(Axis { name, values, aliases: Vec::new() });
    }
    Ok(axes)
}

/// Flags of the embedded engine are the keys of its table, however they are written.
pub(super) fn engine_key(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

fn check_once(whole: &Layer, at: &str, values: &[String]) -> Result<(), Failure> {
    match (1..values.len()).find(|&place| values[..place].contains(&values[place])) {
        None => Ok(()),
        Some(place) => {
            let what = format!("`{at}` has {} twice", values[place]);
            Err(whole.origins.failure(at, &what))
        }
    }
}

/// The rules of a list of tables. With `may_be_new` they may name context lengths and values of flags
/// that no cell has yet.
pub(super) fn read_rules(
    whole: &Layer,
    list: &str,
    axes: &[Axis],
    may_be_new: bool,
) -> Result<Vec<Rule>, Failure> {
    let rule = |place: usize| {
        let at = format!("{list}.{place}");
        read_rule(&whole.table(&at)?, axes, may_be_new)
            .map_err(|(axis, what)| whole.origins.failure(&format!("{at}.{axis}"), &what))
    };
    (0..count_tables(whole, list)).map(rule).collect()
}

/// The rule of a table, or the axis that is wrong in it, and why.
fn read_rule(
    table: &BTreeMap<String, Values>,
    axes: &[Axis],
    may_be_new: bool,
) -> Result<Rule, (String, String)> {
    let mut rule = Rule::new();
    for (name, Values(values)) in table {
        let varies = |axis: &&Axis| !axis.values.is_empty() || may_be_new && axis.name == "context";
        let Some(found) = axes.iter().filter(varies).find(|axis| axis.name == *name) else {
            let known = axes.iter().filter(|axis| !axis.values.is_empty());
            let known: Vec<&str> = known.map(|axis| axis.name.as_str()).collect();
            return Err((name.clone(), unknown("axis", name, &known)));
        };
        let values = values.iter().map(|value| found.read(value.trim(), may_be_new));
        let values = values.collect::<Result<_, _>>().map_err(|what| (name.clone(), what))?;
        rule.insert(name.clone(), values);
    }
    Ok(rule)
}

impl Axis {
    /// A value as the axis writes it.
    fn read(&self, text: &str, may_be_new: bool) -> Result<String, String> {
        let is_flag = !FIXED.contains(&self.name.as_str());
        if self.values.iter().any(|value| value == text) || is_flag && may_be_new {
            return Ok(text.to_owned());
        }
        let known: Vec<&str> = self.values.iter().map(String::as_str).collect();
        match self.name.as_str() {
            "preset" | "model" => {
                let find = |names: &[String]| {
                    names.iter().position(|name| name.eq_ignore_ascii_case(text))
                };
                let found = find(&self.values).or_else(|| find(&self.aliases));
                let found = found.map(|place| self.values[place].clone());
                found.ok_or_else(|| unknown(&self.name, text, &known))
            }
            "context" => match text.parse::<u32>().ok().filter(|number| 0 < *number) {
                Some(number) if may_be_new => Ok(number.to_string()),
                _ => Err(format!("unknown context `{text}`; known are {}", known.join(", "))),
            },
            "strategy" => Err(unknown("strategy", text, &known)),
            flag => Err(unknown(&format!("value of {flag}"), text, &known)),
        }
    }
}

fn unknown(kind: &str, typed: &str, known: &[&str]) -> String {
    let lower: Vec<String> = known.iter().map(|name| name.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let near = nearest(typed, &lower).and_then(|near| lower.iter().position(|it| *it == near));
    match near {
        Some(place) => format!("unknown {kind} `{typed}`; did you mean `{}`?", known[place]),
        None => format!("unknown {kind} `{typed}`; known are {}", known.join(", ")),
    }
}

/// The values of a cell with the names of their axes, without those that are not varied.
pub(super) fn coordinates<'a>(matrix: &'a Matrix, cell: &'a Cell) -> Vec<(&'a str, String)> {
    let fixed = [
        matrix.presets.get(cell.preset as usize).map(|preset| preset.name.clone()),
        matrix.models.get(cell.model as usize).map(|model| model.label.clone()),
        cell.context.map(|context| context.to_string()),
        cell.strategy.map(|strategy| strategy.write()),
    ];
    let fixed = FIXED.into_iter().zip(fixed).filter_map(|(axis, value)| Some((axis, value?)));
    let flags = cell.flags.iter().map(|(name, value)| (name.as_str(), value.clone()));
    fixed.chain(flags).collect()
}

/// What pages call a cell: the values of all its axes.
pub(super) fn cell_name(matrix: &Matrix, cell: &Cell) -> String {
    let part = |(axis, value): (&str, String)| {
        if FIXED.contains(&axis) { value } else { format!("{axis}={value}") }
    };
    coordinates(matrix, cell).into_iter().map(part).collect::<Vec<_>>().join(" · ")
}

fn takes(rule: &Rule, matrix: &Matrix, cell: &Cell) -> bool {
    let values = coordinates(matrix, cell);
    rule.iter().all(|(axis, allowed)| {
        values.iter().any(|(name, value)| name == axis && allowed.contains(value))
    })
}

impl MatrixFile {
    /// All cells: everything times everything, less what is excluded, and what is included beside it.
    /// Rules without an effect are noted, by the numbers that people count them with.
    pub(super) fn expand(&self, notes: &mut Vec<String>) -> Result<Vec<Cell>, Failure> {
        let takes = |rule: &Rule, cell: &Cell| takes(rule, &self.matrix, cell);
        let mut cells = self.product(&Rule::new())?;
        let (mut idle_excludes, mut idle_includes) = (Vec::new(), Vec::new());
        for (number, rule) in (1..).zip(&self.excludes) {
            if !cells.iter().any(|cell| takes(rule, cell)) {
                idle_excludes.push(number);
            }
        }
        cells.retain(|cell| !self.excludes.iter().any(|rule| takes(rule, cell)));
        for (number, rule) in (1..).zip(&self.includes) {
            let mut added = self.product(rule)?;
            added.retain(|cell| !cells.contains(cell));
            if added.is_empty() {
                idle_includes.push(number);
            }
            cells.extend(added);
        }
        if cells.is_empty() {
            let name = &self.matrix.name;
            return Err(Failure::usage(format!("every cell of `{name}` is excluded"))
                .hint("leave out an [[exclude]], or narrow it"));
        }
        self.check_count(cells.len())?;
        for (kind, idle) in [("exclude", idle_excludes), ("include", idle_includes)] {
            let idle: Vec<String> = idle.iter().map(usize::to_string).collect();
            if !idle.is_empty() {
                notes.push(format!("[[{kind}]] {} changes nothing", idle.join(", ")));
            }
        }
        // Presets stay together, and the models of each: that is how they are deployed and read.
        cells.sort_by_key(|cell| (cell.preset, cell.model));
        Ok(cells)
    }

    fn check_count(&self, count: usize) -> Result<(), Failure> {
        if count <= CELLS_MAX {
            return Ok(());
        }
        let name = &self.matrix.name;
        Err(Failure::usage(format!("`{name}` has {count} cells, more than {CELLS_MAX}"))
            .hint("cut it into several files, or [[exclude]] what is not needed"))
    }

    /// Every value of every axis that the rule does not narrow.
    fn product(&self, rule: &Rule) -> Result<Vec<Cell>, Failure> {
        let lists = self
            .axes
            .iter()
            .map(|axis| (axis.name.as_str(), rule.get(&axis.name).unwrap_or(&axis.values)));
        let lists: Vec<(&str, &Vec<String>)> =
            lists.filter(|(_, values)| !values.is_empty()).collect();
        let lengths = lists.iter().map(|(_, values)| values.len());
        self.check_count(lengths.fold(1, usize::saturating_mul))?;
        let mut chosen: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
        for (axis, values) in lists {
            let mut longer = Vec::new();
            for before in &chosen {
                for value in values {
                    longer.push([before.as_slice(), &[(axis, value.as_str())]].concat());
                }
            }
            chosen = longer;
        }
        Ok(chosen.iter().map(|values| self.cell(values)).collect())
    }

    /// All GPUs of a preset serve one model: side by side, or one after the other.
    fn cell(&self, values: &[(&str, &str)]) -> Cell {
        let Matrix { presets, models, .. } = &self.matrix;
        let value = |axis: &str| values.iter().find(|(name, _)| *name == axis).map(|(_, it)| *it);
        let index = |place: Option<usize>| {
            place.and_then(|place| u32::try_from(place).ok()).unwrap_or(u32::MAX)
        };
        let preset = presets.iter().position(|it| Some(it.name.as_str()) == value("preset"));
        let model = models.iter().position(|it| Some(it.label.as_str()) == value("model"));
        let gpus = preset.and_then(|place| presets[place].gpus);
        let strategy = value("strategy").and_then(|text| Strategy::read(text).ok());
        let (tp, pp) = match strategy {
            None | Some(Strategy::Tensor) => (gpus, gpus.and(Some(1))),
            Some(Strategy::Pipeline) => (gpus.and(Some(1)), gpus),
        };
        let flags = values.iter().filter(|(axis, _)| !FIXED.contains(axis));
        Cell {
            preset: index(preset),
            model: index(model),
            context: value("context").and_then(|text| text.parse().ok()),
            strategy,
            tp,
            pp,
            flags: flags.map(|(flag, value)| (str::to_owned(flag), str::to_owned(value))).collect(),
        }
    }
}

/// `--only`: the cells and loads that were asked for, all of them where nothing was said.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    rules: Vec<Rule>,
    /// The same for all cells; empty where nothing was said of them.
    levels: Vec<Level>,
}

impl Selection {
    /// Each filter is `axis=value,axis=value`: a cell must have all of them, and of two values of
    /// one axis either. Of several filters one is enough.
    pub(crate) fn read(filters: &[String], matrix: &Matrix) -> Result<Self, Failure> {
        let mut axes = fixed_axes(matrix, Vec::new(), Vec::new());
        for (name, value) in matrix.cells.iter().flat_map(|cell| coordinates(matrix, cell)) {
            match axes.iter_mut().find(|axis| axis.name == name) {
                Some(known) if known.values.contains(&value) => {}
                Some(known) => known.values.push(value),
                None => {
                    let (values, aliases) = (vec![value], Vec::new());
                    axes.push(Axis { name: name.to_owned(), values, aliases });
                }
            }
        }
        let (mut rules, mut loads) = (Vec::new(), Vec::new());
        for filter in filters {
            let (rule, levels) = read_filter(filter, &axes, matrix)?;
            rules.push(rule);
            loads.push(levels);
        }
        let levels = loads.first().cloned().unwrap_or_default();
        if loads.iter().any(|other| *other != levels) {
            return Err(Failure::usage("--only: all cells are measured at the same loads")
                .hint(format!("write the same {LOAD}=… into every --only")));
        }
        let selection = Self { rules, levels };
        if matrix.cells.iter().any(|cell| selection.takes(matrix, cell)) {
            return Ok(selection);
        }
        Err(Failure::usage(format!("--only {}: no cell is so", filters.join(" --only ")))
            .hint("--dry-run lists the cells of a matrix"))
    }

    pub(crate) fn takes(&self, matrix: &Matrix, cell: &Cell) -> bool {
        self.rules.is_empty() || self.rules.iter().any(|rule| takes(rule, matrix, cell))
    }

    pub(crate) fn takes_load(&self, level: &Level) -> bool {
        self.levels.is_empty() || self.levels.contains(level)
    }
}

fn read_filter(
    filter: &str,
    axes: &[Axis],
    matrix: &Matrix,
) -> Result<(Rule, Vec<Level>), Failure> {
    let wrong = |what: &str| Failure::usage(format!("--only {filter}: {what}"));
    let load = |level: &Level| {
        if let Level::Concurrency(users) = level { Some(users.to_string()) } else { None }
    };
    let mut table: BTreeMap<String, Values> = BTreeMap::new();
    let mut levels = Vec::new();
    for part in filter.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            wrong("there is no `=`").hint("write it as preset=H100X1,model=Llama-8B")
        })?;
        let (name, value) = (name.trim(), value.trim());
        if name == LOAD && !axes.iter().any(|axis| axis.name == LOAD) {
            let found = matrix.levels.iter().find(|level| load(level).as_deref() == Some(value));
            levels.push(*found.ok_or_else(|| {
                let known: Vec<String> = matrix.levels.iter().filter_map(load).collect();
                wrong(&match known.as_slice() {
                    [] => format!("the matrix has no `{LOAD}`"),
                    known => format!("unknown {LOAD} `{value}`; known are {}", known.join(", ")),
                })
            })?);
            continue;
        }
        table.entry(name.to_owned()).or_default().0.push(value.to_owned());
    }
    let rule = read_rule(&table, axes, false).map_err(|(_, what)| wrong(&what))?;
    Ok((rule, levels))
}
