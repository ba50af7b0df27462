//! One cell as an experiment: which server it is, what it is asked, and which cells make no sense.

use std::collections::{BTreeMap, BTreeSet};

use inferometer_model::Spec;
use inferometer_model::spec::{EngineTable, Source, TargetSpec};
use inferometer_model::study::{Cell, Level, Matrix, StudySpec};
use inferometer_study::play::unfit;
use serde_json::{Map, Value, json};

use super::{MatrixFile, axes, template};
use crate::arguments::ExperimentArguments;
use crate::draft::{Drafted, draft_scenario};
use crate::experiment::{Layer, nearest};
use crate::failure::Failure;
use crate::study::sweep::spec_at_levels;

impl MatrixFile {
    /// What a cell is asked at the first of its levels, after all were found possible.
    pub(super) fn cell_spec(
        &self,
        cell: &Cell,
        levels: &[Level],
        headers: &[String],
        simulated: bool,
    ) -> Result<(Drafted, Spec), Failure> {
        let about = |failure: Failure| {
            failure.about(&format!("cell `{}`", axes::cell_name(&self.matrix, cell)))
        };
        let layer = self.cell_layer(cell)?;
        let arguments = ExperimentArguments { headers: headers.to_vec(), ..<_>::default() };
        let mut drafted = draft_scenario(&arguments, &layer).map_err(about)?;
        drafted.spec.workload.seed = self.seed;
        let spec = spec_at_levels(&drafted, levels, None, 1, simulated).map_err(about)?;
        Ok((drafted, spec))
    }

    fn cell_layer(&self, cell: &Cell) -> Result<Layer, Failure> {
        let mut layer = self.experiment.clone();
        let other = cell.context.and_then(|context| self.by_context.get(&context.to_string()));
        if let Some(other) = other {
            layer.lay(Layer { tree: json!({ "workload": other }), ..Layer::default() })?;
        }
        if !self.is_deployed() {
            let engine = self.cell_engine(cell)?;
            layer.lay(Layer { tree: json!({ "engine": engine }), ..Layer::default() })?;
            return Ok(layer);
        }
        let deploy = template::fill_table(&layer.tree["deploy"], self, cell);
        layer.tree["deploy"] = deploy.map_err(|(key, why)| layer.origins.failure(&key, &why))?;
        layer.tree["target"]["model"] = self.matrix.models[cell.model as usize].name.clone().into();
        Ok(layer)
    }

    /// What model, preset and flags say of the embedded engine, and what the cell itself decides.
    fn cell_engine(&self, cell: &Cell) -> Result<Map<String, Value>, Failure> {
        let (preset, model) = (cell.preset as usize, cell.model as usize);
        let mut engine = Map::new();
        engine.insert("model".to_owned(), self.matrix.models[model].name.clone().into());
        engine.extend(self.models[model].engine.clone());
        engine.extend(self.presets[preset].engine.clone());
        let shared = self.experiment.tree.get("engine").and_then(Value::as_object);
        let says =
            |key: &str| engine.contains_key(key) || shared.is_some_and(|it| it.contains_key(key));
        if !says("hardware") && !says("profile") {
            let name = &self.matrix.presets[preset].name;
            return Err(Failure::usage(format!("preset `{name}`: `hardware` is not set")).hint(
                "write engine = { hardware = \"…\" } into it (inferometer engine --list shows \
                 them), or write into [deploy] how servers are deployed",
            ));
        }
        for (flag, value) in &cell.flags {
            // As it would have been read from a file.
            let value = match serde_json::from_str(value) {
                Ok(plain @ (Value::Number(_) | Value::Bool(_))) => plain,
                Ok(_) | Err(_) => value.as_str().into(),
            };
            engine.insert(known_engine_key(flag)?, value);
        }
        let decided = [
            ("tp", cell.tp, "the preset's `gpus` and the strategy make"),
            ("pp", cell.pp, "the preset's `gpus` and the strategy make"),
            ("max_model_len", cell.context, "`contexts` make"),
        ];
        for (key, value, by) in decided {
            let Some(value) = value.map(Value::from) else { continue };
            let said = engine.get(key).or_else(|| shared?.get(key));
            if let Some(said) = said.filter(|said| **said != value) {
                let what = format!("`{key}` is {said} here, and {by} it {value}; leave one out");
                return Err(self.origins.failure(&self.engine_key_path(cell, key), &what));
            }
            engine.insert(key.to_owned(), value);
        }
        Ok(engine)
    }

    /// Where the file says this of the engine of a cell.
    fn engine_key_path(&self, cell: &Cell, key: &str) -> String {
        let Cell { preset, model, .. } = cell;
        if self.presets[*preset as usize].engine.contains_key(key) {
            return format!("preset.{preset}.engine.{key}");
        }
        if self.models[*model as usize].engine.contains_key(key) {
            return format!("model.{model}.engine.{key}");
        }
        let is_shared = self.experiment.tree.pointer(&format!("/engine/{key}")).is_some();
        if key == "model" && !is_shared {
            return format!("model.{model}.name");
        }
        format!("engine.{key}")
    }

    /// Why an embedded engine with these options cannot start, line by line; `None` if it can. A
    /// mistake that affects every cell is reported at its place in the file.
    pub(super) fn foreseen_failure(
        &self,
        cell: &Cell,
        engine: &EngineTable,
    ) -> Result<Option<Vec<String>>, Failure> {
        let failure = match unfit(engine) {
            Ok(failure) => return Ok(failure.map(|it| [vec![it.what], it.log].concat())),
            Err(failure) => failure,
        };
        let named = [
            ("hardware", &engine.hardware),
            ("profile", &engine.profile),
            ("model", &engine.model),
        ];
        let is_meant = |name: &Option<String>| {
            name.as_ref().is_some_and(|name| failure.message().contains(&format!("`{name}`")))
        };
        Err(match named.into_iter().find(|(_, name)| is_meant(name)) {
            Some((key, _)) => {
                self.origins.failure(&self.engine_key_path(cell, key), failure.message())
            }
            None => failure.about(&format!("cell `{}`", axes::cell_name(&self.matrix, cell))),
        })
    }
}

/// Flags of the embedded engine are the keys of its table.
fn known_engine_key(flag: &str) -> Result<String, Failure> {
    let known = serde_json::to_value(EngineTable::default())
        .map_err(|error| Failure::internal(format!("[engine]: {error}")))?;
    let known: Vec<&str> =
        known.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let key = axes::engine_key(flag);
    if known.contains(&key.as_str()) {
        return Ok(key);
    }
    let near = nearest(&key, &known).map(|near| format!("; did you mean `{near}`?"));
    let near = near.unwrap_or_else(|| format!("; it has {}", known.join(", ")));
    Err(Failure::usage(format!("[flags] the embedded engine has no `{flag}`{near}")))
}

/// A warning for cells that deploy the same server, because an axis is varied that the servers
/// ignore. Both strategies on one GPU have a note of their own.
pub(super) fn same_servers(study: &StudySpec, matrix: &Matrix) -> Option<String> {
    let mut servers: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
    for (condition, cell) in study.conditions.iter().zip(&matrix.cells) {
        let Spec { target, engine, model, .. } = &condition.spec;
        servers.entry(json!([target, engine, model]).to_string()).or_default().push(cell);
    }
    let (mut axes, mut cells) = (BTreeSet::new(), 0);
    for alike in servers.values() {
        let Some((first, others)) = alike.split_first() else { continue };
        let is_single =
            matrix.presets.get(first.preset as usize).is_some_and(|it| it.gpus == Some(1));
        let ours = axes::coordinates(matrix, first);
        let mut found = BTreeSet::new();
        for other in others {
            let theirs = axes::coordinates(matrix, other);
            let lost = ours.iter().filter(|value| !theirs.contains(value));
            let new = theirs.iter().filter(|value| !ours.contains(value));
            let differing = lost.chain(new).map(|(axis, _)| (*axis).to_owned());
            found.extend(differing.filter(|axis| !(is_single && axis == "strategy")));
        }
        if !found.is_empty() {
            cells += alike.len();
            axes.extend(found);
        }
    }
    if axes.is_empty() {
        return None;
    }
    let axes: Vec<String> = axes.into_iter().collect();
    let is_deployed = study.conditions.iter().any(|it| it.spec.target != TargetSpec::Embedded);
    let remedy = if is_deployed {
        let placeholder = |axis: &String| match axis.as_str() {
            "preset" | "model" | "context" => format!("{{{axis}}}"),
            "strategy" => "{tp} and {pp}".to_owned(),
            flag => format!("{{flag:{flag}}}"),
        };
        let placeholders: Vec<String> = axes.iter().map(placeholder).collect();
        format!("put {} into [deploy], or do not vary it", placeholders.join(" and "))
    } else {
        "let their engines differ, or leave one out".to_owned()
    };
    Some(format!(
        "{cells} cells deploy the same server as others and differ by {} alone; {remedy}",
        axes.join(" and ")
    ))
}

/// A warning for contexts in which no request of the workload has room.
pub(super) fn short_contexts(study: &StudySpec, matrix: &Matrix) -> Option<String> {
    let mut short = BTreeMap::new();
    for (condition, cell) in study.conditions.iter().zip(&matrix.cells) {
        if let (Some(context), Some(needed)) = (cell.context, needed_tokens(&condition.spec))
            && context < needed
        {
            short.insert(context, needed);
        }
    }
    if short.is_empty() {
        return None;
    }
    let short: Vec<String> =
        short.iter().map(|(context, needed)| format!("{context} (needed: {needed})")).collect();
    Some(format!(
        "a prompt and its answer share the context, and together they are longer than {}: such \
         requests are refused or cut; write shorter ones for it into [workload.by_context]",
        short.join(", ")
    ))
}

/// Tokens of the shortest request, as far as they are known without counting words.
pub(crate) fn needed_tokens(spec: &Spec) -> Option<u32> {
    match &spec.workload.source {
        Source::Synthetic(it) => Some(it.input.least().saturating_add(it.output.least())),
        // A prompt has a token at least.
        Source::Fixed(it) => Some(it.output.least().saturating_add(1)),
        Source::VllmRandom(_)
        | Source::Dataset(_)
        | Source::Trace(_)
        | Source::Conversations(_)
        | Source::Mix(_)
        | Source::Saved { .. } => None,
    }
}
