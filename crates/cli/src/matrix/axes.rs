//! What a file varies, checked: every list has values, none twice, and nothing that a cell decides
//! anyway.

use std::collections::BTreeMap;
use std::fmt::Display;

use inferometer_model::campaign::Strategy;
use serde_json::Value;

use super::file::{ModelFile, PresetFile};
use super::rule::Axes;
use super::tables::{MatrixTable, Values};
use crate::experiment::Layer;
use crate::failure::Failure;

/// Keys of the embedded engine that follow from a cell, and what they follow from.
const DECIDED: [(&str, &str); 6] = [
    ("tp", "`strategies` in [matrix] and the `gpus` of a preset"),
    ("pp", "`strategies` in [matrix] and the `gpus` of a preset"),
    ("max_model_len", "`contexts` in [matrix]"),
    ("model", "[[model]]"),
    ("hardware", "[[preset]]"),
    ("profile", "[[preset]]"),
];

/// Numbers of a preset; TOML has such as are none.
const NUMBERS: [&str; 4] = ["price_per_hour", "vram_gb", "vcpus", "memory_gb"];

pub(super) fn axes(
    whole: &Layer,
    presets: &[PresetFile],
    models: &[ModelFile],
    table: &MatrixTable,
) -> Result<Axes, Failure> {
    for list in ["contexts", "strategies"] {
        let written = whole.tree.pointer(&format!("/matrix/{list}")).and_then(Value::as_array);
        if written.is_some_and(Vec::is_empty) {
            let what = format!("`{list}` has no values; leave it out, or name some");
            return Err(whole.origins.failure(&format!("matrix.{list}"), &what));
        }
    }
    let strategies: Vec<Strategy> = table.strategies.iter().map(|written| written.0).collect();
    let words: Vec<&str> = strategies.iter().map(|strategy| strategy.word()).collect();
    check_once(whole, "matrix.contexts", &table.contexts)?;
    check_once(whole, "matrix.strategies", &words)?;
    let needs_gpus = presets.iter().position(|it| it.preset.gpus.is_none());
    if let Some(place) = needs_gpus.filter(|_| !strategies.is_empty()) {
        let name = &presets[place].preset.name;
        let what = format!("`{name}` has no `gpus`, and strategies spread a model over them");
        return Err(whole.origins.failure(&format!("preset.{place}"), &what));
    }
    Ok(Axes {
        presets: presets.iter().map(|it| it.preset.name.clone()).collect(),
        models: models.iter().map(|it| it.model.clone()).collect(),
        contexts: table.contexts.clone(),
        strategies,
        flags: flags(whole)?,
    })
}

fn flags(whole: &Layer) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let flags: BTreeMap<String, Values> = whole.table("flags")?;
    let is_embedded = whole.tree.get("deploy").is_none();
    for (name, values) in &flags {
        let at = format!("flags.{name}");
        let refused = |what: String| Err(whole.origins.failure(&at, &what));
        let key = engine_key(name);
        let decided = DECIDED.iter().find(|(it, _)| is_embedded && *it == key);
        if let Some((_, by)) = decided {
            return refused(format!("`{name}` is no flag: the cell decides it, by {by}"));
        }
        if Axes::FIXED.contains(&name.as_str()) {
            return refused(format!("`{name}` is the name of an axis; a flag needs another"));
        }
        if values.0.is_empty() {
            return refused(format!("the flag `{name}` has no values; leave it out, or name some"));
        }
        check_once(whole, &at, &values.0)?;
    }
    Ok(flags.into_iter().map(|(name, values)| (name, values.0)).collect())
}

/// Flags of the embedded engine are the keys of its table, however they are written.
pub(super) fn engine_key(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

fn check_once<T: PartialEq + Display>(
    whole: &Layer,
    at: &str,
    values: &[T],
) -> Result<(), Failure> {
    let twice = (1..values.len()).find(|&place| values[..place].contains(&values[place]));
    match twice {
        None => Ok(()),
        Some(place) => {
            let what = format!("`{at}` has {} twice", values[place]);
            Err(whole.origins.failure(at, &what))
        }
    }
}

/// Those that the schema would call texts, for JSON has no words for them.
pub(super) fn refuse_strange_numbers(whole: &Layer) -> Result<(), Failure> {
    let presets = whole.tree.get("preset").and_then(Value::as_array);
    for (place, preset) in presets.into_iter().flatten().enumerate() {
        for key in NUMBERS {
            let text = preset.get(key).and_then(Value::as_str);
            let number = text.and_then(|text| text.parse::<f64>().ok());
            if let Some(number) = number.filter(|number| !number.is_finite()) {
                let what = format!("`{key}` must be a number from 0 on, and {number} is none");
                return Err(whole.origins.failure(&format!("preset.{place}.{key}"), &what));
            }
        }
    }
    Ok(())
}
