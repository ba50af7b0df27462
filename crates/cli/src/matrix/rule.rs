//! Cells by the values of their axes: what is included, excluded or asked for alone.

use std::collections::BTreeMap;

use inferometer_model::campaign::{Cell, Matrix, MatrixModel, Strategy};

use super::tables::{RuleTable, Values};
use crate::arguments::Grammar;
use crate::experiment::nearest;

/// What cells differ in.
#[derive(Clone, Debug, Default)]
pub(super) struct Axes {
    pub(super) presets: Vec<String>,
    pub(super) models: Vec<MatrixModel>,
    pub(super) contexts: Vec<u32>,
    pub(super) strategies: Vec<Strategy>,
    pub(super) flags: BTreeMap<String, Vec<String>>,
}

/// Every axis has one of these values; an axis that is not named may have any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rule {
    pub(super) presets: Option<Vec<u32>>,
    pub(super) models: Option<Vec<u32>>,
    pub(super) contexts: Option<Vec<u32>>,
    pub(super) strategies: Option<Vec<Strategy>>,
    pub(super) flags: BTreeMap<String, Vec<String>>,
}

/// Whether a rule may name lengths and values of flags that no cell has yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Openness {
    Known,
    MayBeNew,
}

#[derive(Debug)]
pub(super) struct WrongRule {
    pub(super) axis: String,
    pub(super) what: String,
}

impl Axes {
    pub(super) const FIXED: [&'static str; 4] = ["preset", "model", "context", "strategy"];

    /// Those of cells that are laid out already.
    pub(super) fn of(matrix: &Matrix) -> Self {
        let mut axes = Self {
            presets: matrix.presets.iter().map(|preset| preset.name.clone()).collect(),
            models: matrix.models.clone(),
            ..Self::default()
        };
        for cell in &matrix.cells {
            add(&mut axes.contexts, cell.context);
            add(&mut axes.strategies, cell.strategy);
            for (name, value) in &cell.flags {
                add(axes.flags.entry(name.clone()).or_default(), Some(value.clone()));
            }
        }
        axes
    }

    fn names(&self) -> Vec<&str> {
        let flags = self.flags.keys().map(String::as_str);
        Self::FIXED.into_iter().filter(|axis| self.varies(axis)).chain(flags).collect()
    }

    fn varies(&self, axis: &str) -> bool {
        match axis {
            "context" => !self.contexts.is_empty(),
            "strategy" => !self.strategies.is_empty(),
            _ => true,
        }
    }
}

fn add<T: PartialEq>(values: &mut Vec<T>, value: Option<T>) {
    values.extend(value.filter(|value| !values.contains(value)));
}

impl Rule {
    pub(super) fn read(table: &RuleTable, axes: &Axes, open: Openness) -> Result<Self, WrongRule> {
        let mut rule = Self::default();
        for (axis, values) in table {
            rule.narrow(axis, values, axes, open)
                .map_err(|what| WrongRule { axis: axis.clone(), what })?;
        }
        Ok(rule)
    }

    fn narrow(
        &mut self,
        name: &str,
        Values(values): &Values,
        axes: &Axes,
        open: Openness,
    ) -> Result<(), String> {
        let may_be_new = open == Openness::MayBeNew;
        match name {
            "preset" => self.presets = Some(each(values, |name| preset(name, axes))?),
            "model" => self.models = Some(each(values, |name| model(name, axes))?),
            "context" if may_be_new || axes.varies(name) => {
                self.contexts = Some(each(values, |text| context(text, axes, open))?);
            }
            "strategy" if axes.varies(name) => {
                self.strategies = Some(each(values, |text| strategy(text, axes))?);
            }
            flag => {
                let Some(known) = axes.flags.get(flag) else {
                    return Err(unknown("axis", flag, &axes.names()));
                };
                let check = |value: &str| {
                    let is_known = may_be_new || known.iter().any(|it| it == value);
                    let names: Vec<&str> = known.iter().map(String::as_str).collect();
                    if is_known {
                        Ok(value.to_owned())
                    } else {
                        Err(unknown(&format!("value of {flag}"), value, &names))
                    }
                };
                self.flags.insert(flag.to_owned(), each(values, check)?);
            }
        }
        Ok(())
    }

    pub(super) fn takes(&self, cell: &Cell) -> bool {
        let has = |values: &Option<Vec<u32>>, value: u32| {
            values.as_ref().is_none_or(|values| values.contains(&value))
        };
        let is_among = |(flag, values): (&String, &Vec<String>)| {
            cell.flags.get(flag).is_some_and(|value| values.contains(value))
        };
        has(&self.presets, cell.preset)
            && has(&self.models, cell.model)
            && self.contexts.as_ref().is_none_or(|it| cell.context.is_some_and(|c| it.contains(&c)))
            && self
                .strategies
                .as_ref()
                .is_none_or(|it| cell.strategy.is_some_and(|strategy| it.contains(&strategy)))
            && self.flags.iter().all(is_among)
    }
}

fn each<T>(values: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    values.iter().map(|value| read(value.trim())).collect()
}

fn preset(name: &str, axes: &Axes) -> Result<u32, String> {
    let known: Vec<&str> = axes.presets.iter().map(String::as_str).collect();
    let found = known.iter().position(|known| known.eq_ignore_ascii_case(name));
    place(found).ok_or_else(|| unknown("preset", name, &known))
}

/// By its label or by its whole name.
fn model(name: &str, axes: &Axes) -> Result<u32, String> {
    let is = |model: &MatrixModel| {
        model.label.eq_ignore_ascii_case(name) || model.name.eq_ignore_ascii_case(name)
    };
    let labels: Vec<&str> = axes.models.iter().map(|model| model.label.as_str()).collect();
    place(axes.models.iter().position(is)).ok_or_else(|| unknown("model", name, &labels))
}

fn place(found: Option<usize>) -> Option<u32> {
    u32::try_from(found?).ok()
}

fn context(text: &str, axes: &Axes, open: Openness) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| 0 < *number);
    let is_known = |number: &u32| open == Openness::MayBeNew || axes.contexts.contains(number);
    number.filter(is_known).ok_or_else(|| {
        let known: Vec<String> = axes.contexts.iter().map(u32::to_string).collect();
        format!("unknown context `{text}`; known are {}", known.join(", "))
    })
}

fn strategy(text: &str, axes: &Axes) -> Result<Strategy, String> {
    let known: Vec<&str> = axes.strategies.iter().map(|strategy| strategy.word()).collect();
    let found = Strategy::read(text).ok().filter(|strategy| axes.strategies.contains(strategy));
    found.ok_or_else(|| unknown("strategy", text, &known))
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
