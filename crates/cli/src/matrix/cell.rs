//! One cell as an experiment: which server it is, and what it is asked.

use inferometer_model::Spec;
use inferometer_model::campaign::{Cell, Level};
use inferometer_model::spec::EngineTable;
use inferometer_study::play::unfit;
use serde_json::{Map, Value, json};

use super::axes;
use super::file::{MatrixFile, Owned};
use super::template;
use crate::arguments::ExperimentArguments;
use crate::draft::{Drafted, draft_scenario};
use crate::experiment::{Layer, nearest};
use crate::failure::Failure;
use crate::sweep::at_level;

/// What pages call a cell: the values of all its axes.
pub(super) fn name(file: &MatrixFile, cell: &Cell) -> String {
    let place = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
    let preset = file.presets.get(place(cell.preset)).map(|it| it.preset.name.clone());
    let model = file.models.get(place(cell.model)).map(|it| it.model.label.clone());
    let context = cell.context.map(|context| context.to_string());
    let strategy = cell.strategy.map(|strategy| strategy.word().to_owned());
    let flags = cell.flags.iter().map(|(name, value)| format!("{name}={value}"));
    let parts: Vec<String> =
        [preset, model, context, strategy].into_iter().flatten().chain(flags).collect();
    parts.join(" · ")
}

/// What the cell is asked at each of the levels; at least one.
pub(super) struct CellSpecs {
    pub(super) drafted: Drafted,
    pub(super) first: Spec,
}

impl CellSpecs {
    pub(super) fn of(
        file: &MatrixFile,
        cell: &Cell,
        headers: &[String],
        simulated: bool,
    ) -> Result<Self, Failure> {
        let of_cell = |failure: Failure| failure.about(&format!("cell `{}`", name(file, cell)));
        let layer = layer(file, cell)?;
        let arguments = ExperimentArguments { headers: headers.to_vec(), ..<_>::default() };
        let mut drafted = draft_scenario(&arguments, &layer).map_err(of_cell)?;
        drafted.spec.workload.seed = file.seed;
        let at = |level: &Level| at_level(&drafted, *level, None, 1, simulated).map_err(of_cell);
        let specs: Vec<Spec> = file.levels.iter().map(at).collect::<Result<_, Failure>>()?;
        let first = specs.into_iter().next();
        let first = first.ok_or_else(|| Failure::usage("the matrix has no load"))?;
        Ok(Self { drafted, first })
    }
}

fn layer(file: &MatrixFile, cell: &Cell) -> Result<Layer, Failure> {
    let mut layer = file.experiment.clone();
    let other = cell.context.and_then(|context| file.by_context.get(&context));
    if let Some(other) = other {
        layer.lay(Layer { tree: json!({ "workload": other }), ..Layer::default() })?;
    }
    if !file.is_deployed() {
        let engine = engine(file, cell)?;
        layer.lay(Layer { tree: json!({ "engine": engine }), ..Layer::default() })?;
        return Ok(layer);
    }
    let deploy = layer.tree.get("deploy").cloned().unwrap_or_default();
    let deploy = template::filled(&deploy, file, cell);
    layer.tree["deploy"] = deploy.map_err(|(key, why)| layer.origins.failure(&key, &why))?;
    let model = usize::try_from(cell.model).ok().and_then(|place| file.models.get(place));
    layer.tree["target"]["model"] = model.map(|it| it.model.name.clone()).into();
    Ok(layer)
}

/// What model, preset and flags say of the embedded engine, and what the cell itself decides.
fn engine(file: &MatrixFile, cell: &Cell) -> Result<Map<String, Value>, Failure> {
    let place = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
    let (Some(preset), Some(model)) =
        (file.presets.get(place(cell.preset)), file.models.get(place(cell.model)))
    else {
        return Err(Failure::internal("a cell of no preset or model"));
    };
    let mut engine = Map::new();
    engine.insert("model".to_owned(), model.model.name.clone().into());
    engine.extend(model.owned.engine.clone());
    engine.extend(preset.owned.engine.clone());
    let shared = file.experiment.tree.get("engine").and_then(Value::as_object);
    let says =
        |key: &str| engine.contains_key(key) || shared.is_some_and(|it| it.contains_key(key));
    if !says("hardware") && !says("profile") {
        let name = &preset.preset.name;
        return Err(Failure::usage(format!("preset `{name}`: `hardware` is not set")).hint(
            "write engine = { hardware = \"…\" } into it (inferometer engine --list shows \
                 them), or write into [deploy] how servers are deployed",
        ));
    }
    for (flag, value) in &cell.flags {
        engine.insert(engine_key(flag)?, typed(value));
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
            return Err(file.origins.failure(&says_where(file, cell, key), &what));
        }
        engine.insert(key.to_owned(), value);
    }
    Ok(engine)
}

/// Flags of the embedded engine are the keys of its table.
fn engine_key(flag: &str) -> Result<String, Failure> {
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

/// As it would have been read from a file.
fn typed(value: &str) -> Value {
    match serde_json::from_str(value) {
        Ok(plain @ (Value::Number(_) | Value::Bool(_))) => plain,
        Ok(_) | Err(_) => value.into(),
    }
}

/// Why an embedded engine with these options cannot start, line by line; `None` if it can.
/// A mistake that affects every cell is reported at its place in the file.
pub(super) fn foreseen(
    file: &MatrixFile,
    cell: &Cell,
    engine: &EngineTable,
) -> Result<Option<Vec<String>>, Failure> {
    let failure = unfit(engine).map_err(|failure| placed(file, cell, engine, failure))?;
    Ok(failure.map(|failure| [vec![failure.what], failure.log].concat()))
}

fn placed(file: &MatrixFile, cell: &Cell, engine: &EngineTable, failure: Failure) -> Failure {
    let says =
        [("hardware", &engine.hardware), ("profile", &engine.profile), ("model", &engine.model)];
    let is_named = |name: &Option<String>| {
        name.as_ref().is_some_and(|name| failure.message().contains(&format!("`{name}`")))
    };
    let Some((key, _)) = says.into_iter().find(|(_, name)| is_named(name)) else {
        return failure.about(&format!("cell `{}`", name(file, cell)));
    };
    file.origins.failure(&says_where(file, cell, key), failure.message())
}

/// Where the file says this of the engine of a cell.
fn says_where(file: &MatrixFile, cell: &Cell, key: &str) -> String {
    let owns = |owned: Option<&Owned>| owned.is_some_and(|owned| owned.engine.contains_key(key));
    let place = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
    let preset = file.presets.get(place(cell.preset)).map(|it| &it.owned);
    let model = file.models.get(place(cell.model)).map(|it| &it.owned);
    let shared = file.experiment.tree.pointer(&format!("/engine/{key}"));
    match key {
        _ if owns(preset) => format!("preset.{}.engine.{key}", cell.preset),
        _ if owns(model) => format!("model.{}.engine.{key}", cell.model),
        "model" if shared.is_none() => format!("model.{}.name", cell.model),
        _ => format!("engine.{key}"),
    }
}
