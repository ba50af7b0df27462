//! Matrices: hardware presets, models and what else is varied, built in or in a file, and the study
//! that one makes together with flags. Nothing is deployed here.
//!
//! A file is read by its schema, multiplied out and narrowed (`axes`), and each cell becomes a whole
//! spec (`cell`).

mod axes;
mod cell;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use inferometer_model::spec::TargetSpec;
use inferometer_model::study::{
    Cell, Condition, Matrix, MatrixModel, Order, Preset, Question, Repetition, Strategy, StudySpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, json};

pub(crate) use self::axes::Selection;
use self::axes::{Axis, Rule};
pub(crate) use self::cell::needed_tokens;
use super::StudyPlan;
use super::file::{self, BuiltIns, check_one_load, count_tables, refuse_keys, without_keys};
use super::sweep::{ConcurrencyLevels, SortedLevels};
use crate::arguments::{MatrixArguments, PageFormat, Written};
use crate::experiment::{self, Layer, Lists, Origins, schema};
use crate::failure::Failure;

pub(crate) const MATRICES: BuiltIns = BuiltIns {
    kind: "matrix",
    plural: "matrices",
    default: "r3",
    files: &[
        ("r3", include_str!("builtin/r3.toml")),
        ("r3-concurrency", include_str!("builtin/r3-concurrency.toml")),
    ],
};

/// Tables of an experiment that hold for every cell.
const SHARED: [&str; 9] =
    ["target", "deploy", "engine", "workload", "load", "slo", "client", "limits", "metadata"];
/// Cells times loads, and those times repetitions, of one set.
const ROWS_MAX: usize = 4_096;
const RUNS_MAX: usize = 20_000;

/// A matrix of Inferometer: servers that are put up one after the other, each measured in the same
/// way.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct MatrixDocument {
    matrix: MatrixTable,
    preset: Vec<PresetTable>,
    model: Vec<ModelTable>,
    /// Options of the server that are varied: each name with the list of its values. Of the
    /// embedded engine they are keys of `[engine]`; elsewhere {flag:NAME} and {flags} stand for them.
    flags: BTreeMap<String, Values>,
    include: Vec<BTreeMap<String, Values>>,
    exclude: Vec<BTreeMap<String, Values>>,
}

/// What is varied, and how it is gone through.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct MatrixTable {
    /// Short name [default: the name of the file]
    name: Option<String>,
    /// Name for people [default: its short name]
    title: Option<String>,
    /// What it is for
    description: Option<String>,
    /// Context lengths, in tokens of a prompt and its answer together [default: not varied]
    #[schemars(inner(range(min = 1)))]
    contexts: Vec<u32>,
    /// How a model is spread over the GPUs of a preset: tensor shares every layer, pipeline gives
    /// each GPU some of them [default: not varied; all GPUs share every layer]
    strategies: Vec<Strategy>,
    /// Requests in flight, one number or several; every cell is measured at each of them, on the
    /// same server [default: as `[load]` says]
    concurrency: Option<Written<ConcurrencyLevels>>,
    /// How often each cell is put up and measured [default: 1]
    #[schemars(range(min = 1, max = 1000))]
    repeat: Option<NonZeroU32>,
    /// Rest between two servers, such as 60s [default: not at all]
    cool_down: Option<Written<Duration>>,
    /// Presets that are measured at once [default: 1]
    #[schemars(range(min = 1, max = 64))]
    lanes: Option<NonZeroU32>,
    /// Whether cells are measured as they are listed, or every repetition goes through them in an
    /// order of its own [default: listed]
    order: Option<Order>,
    /// Seed of everything that is drawn
    seed: Option<u64>,
    /// Currency of the prices, in words or as a sign
    currency: Option<String>,
}

/// Hardware that servers are put up on, as its owner describes it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct PresetTable {
    #[serde(flatten)]
    preset: Preset,
    #[serde(flatten)]
    extra: ExtraKeys,
}

/// A model that is served.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ModelTable {
    #[serde(flatten)]
    model: MatrixModel,
    #[serde(flatten)]
    extra: ExtraKeys,
}

/// What a preset or a model says beyond its name.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ExtraKeys {
    engine: Map<String, Value>,
    /// What else commands need to know of it; {value:NAME} stands for each
    values: BTreeMap<String, Values>,
}

/// One value or several: texts, numbers or truth values, as texts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Values(Vec<String>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let values = if let Value::Array(items) = value { items } else { vec![value] };
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let texts: Option<Vec<String>> = values.iter().map(text).collect();
        texts.map(Self).ok_or_else(|| de::Error::custom("must be texts or numbers"))
    }
}

impl JsonSchema for Values {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Values".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["string", "number", "boolean", "array"],
            "items": { "type": ["string", "number", "boolean"] },
        })
    }
}

/// The JSON Schema of a matrix file.
pub(crate) fn schema() -> Value {
    let experiment = schema::document();
    let mut document = schema::document_of::<MatrixDocument>();
    document["title"] = "Matrix".into();
    for (owner, which) in [("preset", "preset, such as its hardware"), ("model", "model")] {
        let table = &mut document["properties"][owner]["items"]["properties"];
        table["engine"] = experiment["properties"]["engine"].clone();
        table["engine"]["description"] =
            format!("Of the embedded engine: keys of `[engine]` that hold for this {which}").into();
        // A placeholder stands for one value.
        table["values"]["additionalProperties"] =
            json!({ "type": ["string", "number", "boolean"] });
    }
    for table in SHARED {
        document["properties"][table] = experiment["properties"][table].clone();
    }
    without_keys(&mut document["properties"]["target"], &["url", "model"]);
    let workload = &mut document["properties"]["workload"];
    // A matrix has one seed, which a saved plan would not follow.
    without_keys(workload, &["seed", "plan"]);
    let mut other = workload.clone();
    other["description"] = "What is asked otherwise at this context length".into();
    workload["properties"]["by_context"] = json!({
        "type": "object",
        "description": "Keys of [workload] that are others at a context length: \
                        `2048 = { output_tokens = 512 }`",
        "additionalProperties": other,
    });
    document
}

/// A matrix as it is written.
#[derive(Debug)]
struct MatrixFile {
    table: MatrixTable,
    /// Without its cells.
    matrix: Matrix,
    /// Whether the levels were written from the lowest to the highest.
    was_sorted: bool,
    axes: Vec<Axis>,
    includes: Vec<Rule>,
    excludes: Vec<Rule>,
    /// What each preset and each model says beyond its name.
    presets: Vec<ExtraKeys>,
    models: Vec<ExtraKeys>,
    /// What holds for every cell.
    experiment: Layer,
    /// Keys of the workload that are others at a context length.
    by_context: BTreeMap<String, Value>,
    /// Where all of it was written.
    origins: Origins,
}

impl MatrixFile {
    fn open(name: &str, arguments: &MatrixArguments) -> Result<Self, Failure> {
        let (path, text) = MATRICES.open(name)?;
        Self::parse(&path, &text, arguments)
    }

    /// `path` is where it was read, and where files that it names are looked for.
    fn parse(path: &Path, text: &str, arguments: &MatrixArguments) -> Result<Self, Failure> {
        let schema = schema();
        let mut whole = file::parse(path, text, &schema, refuse)?;
        whole.find_files_beside(path);
        whole.lay(experiment::file::read_sets(&arguments.sets, &schema)?)?;
        let numbers = [
            ("repeat", arguments.repeat.map(Value::from)),
            ("lanes", arguments.lanes.map(Value::from)),
            ("seed", arguments.seed.map(Value::from)),
        ];
        let typed = numbers.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let typed = json!({ "matrix": typed.collect::<Map<_, _>>() });
        let typed = Layer { tree: typed, ..Layer::default() };
        typed.check_by(&schema, Lists::InOrder)?;
        whole.lay(typed)?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let mut file = Self::from_layer(&whole, &stem.unwrap_or_default())?;
        if !arguments.sets.is_empty() {
            let title = &mut file.matrix.title;
            *title = format!("{title} ({})", arguments.sets.join(", "));
        }
        Ok(file)
    }

    fn from_layer(whole: &Layer, stem: &str) -> Result<Self, Failure> {
        let table: MatrixTable = whole.table("matrix")?;
        check_one_load(whole, "matrix.concurrency")?;
        let (presets, preset_tables) = presets(whole)?;
        let (models, model_tables) = models(whole)?;
        let sorted = SortedLevels::from_file(table.concurrency.as_ref());
        let name = table.name.clone().unwrap_or_else(|| stem.trim_end_matches(".toml").to_owned());
        let matrix = Matrix {
            title: table.title.clone().unwrap_or_else(|| name.clone()),
            name,
            presets,
            models,
            cells: Vec::new(),
            levels: sorted.levels,
            lanes: table.lanes.unwrap_or(NonZeroU32::MIN),
            currency: table.currency.clone().filter(|currency| !currency.trim().is_empty()),
        };
        let axes = axes::read_axes(whole, &matrix, &table)?;
        let includes = axes::read_rules(whole, "include", &axes, true)?;
        let (experiment, by_context) = shared_tables(whole, &axes, &includes)?;
        Ok(Self {
            table,
            matrix,
            was_sorted: sorted.was_sorted,
            includes,
            excludes: axes::read_rules(whole, "exclude", &axes, false)?,
            axes,
            presets: preset_tables,
            models: model_tables,
            experiment,
            by_context,
            origins: whole.origins.clone(),
        })
    }

    /// Whether its servers are deployed, and not simulated by the embedded engine.
    fn is_deployed(&self) -> bool {
        self.experiment.tree.get("deploy").is_some()
    }
}

/// Keys that do not belong into a matrix.
fn refuse(whole: &Layer) -> Result<(), Failure> {
    let keys = [
        (
            "target.url",
            "a matrix puts its servers up: say how in [deploy], or leave it to [engine]",
        ),
        ("target.model", "the models of a matrix are written as [[model]]"),
        ("workload.seed", "a matrix has one seed: write it in [matrix]"),
        ("workload.plan", "a saved plan has its own seed and load, and no place in a matrix"),
        ("repeat", "how often each cell is measured is `repeat` in [matrix]"),
        ("sweep", "the loads of every cell are `concurrency` in [matrix]"),
    ];
    refuse_keys(whole, "", &keys)?;
    if whole.tree.get("deploy").is_none() {
        return Ok(());
    }
    let why = "[engine] is the embedded engine, and [deploy] puts up other servers; leave one out";
    refuse_keys(whole, "", &[("engine", why)])
}

/// The names of presets or models, of which there is at least one.
fn names(whole: &Layer, list: &str, what: &str) -> Result<Vec<String>, Failure> {
    if count_tables(whole, list) == 0 {
        return Err(Failure::usage(format!("the matrix has no {list}s"))
            .hint(format!("write each as [[{list}]] with its `name`")));
    }
    file::read_names(whole, list, what, str::eq_ignore_ascii_case)
}

fn presets(whole: &Layer) -> Result<(Vec<Preset>, Vec<ExtraKeys>), Failure> {
    let names = names(whole, "preset", "what it is called, such as \"gpu-small\"")?;
    let preset = |place: usize| {
        let table: PresetTable = whole.table(&format!("preset.{place}"))?;
        Ok((table.preset, table.extra))
    };
    (0..names.len()).map(preset).collect()
}

fn models(whole: &Layer) -> Result<(Vec<MatrixModel>, Vec<ExtraKeys>), Failure> {
    let names = names(whole, "model", "as the server is asked for it")?;
    let (mut models, mut tables): (Vec<MatrixModel>, _) = (Vec::new(), Vec::new());
    for (place, name) in names.into_iter().enumerate() {
        let ModelTable { mut model, extra } = whole.table(&format!("model.{place}"))?;
        if model.label.is_empty() {
            let last = name.trim_end_matches('/').rsplit('/').next();
            last.unwrap_or(&name).clone_into(&mut model.label);
        }
        let at = format!("model.{place}.label");
        file::check_name(whole, &at, &model.label)?;
        if models.iter().any(|other| other.label == model.label) {
            let what = format!("two models are called `{}`; give one another label", model.label);
            return Err(whole.origins.failure(&at, &what));
        }
        models.push(model);
        tables.push(extra);
    }
    Ok((models, tables))
}

/// The tables of an experiment, and what its workload says of single context lengths.
fn shared_tables(
    whole: &Layer,
    axes: &[Axis],
    includes: &[Rule],
) -> Result<(Layer, BTreeMap<String, Value>), Failure> {
    let mut experiment = Layer::default();
    for table in SHARED {
        experiment.lay(whole.only(table))?;
    }
    let workload = experiment.tree.get_mut("workload").and_then(Value::as_object_mut);
    let others = workload.and_then(|workload| workload.remove("by_context"));
    let Some(Value::Object(others)) = others else { return Ok((experiment, BTreeMap::new())) };
    let added = includes.iter().filter_map(|rule| rule.get("context")).flatten();
    let listed = axes.iter().filter(|axis| axis.name == "context").flat_map(|axis| &axis.values);
    let mut contexts: Vec<&str> = Vec::new();
    for context in listed.chain(added) {
        if !contexts.contains(&context.as_str()) {
            contexts.push(context);
        }
    }
    if let Some(strange) = others.keys().find(|context| !contexts.contains(&context.as_str())) {
        let known = contexts.join(", ");
        let what = format!("`{strange}` is none of the context lengths of the matrix: {known}");
        return Err(whole.origins.failure(&format!("workload.by_context.{strange}"), &what));
    }
    Ok((experiment, others.into_iter().collect()))
}

/// The study of a matrix named on the command line.
pub(crate) fn plan(arguments: &MatrixArguments) -> Result<StudyPlan, Failure> {
    let name = arguments.matrix.as_deref().unwrap_or(MATRICES.default);
    let file = MatrixFile::open(name, arguments)?;
    if file.is_deployed() && arguments.virtual_time {
        return Err(Failure::usage("servers that are deployed have no virtual time")
            .hint("leave out --virtual, or write [engine] instead of [deploy]"));
    }
    resolve(&file, arguments)
}

/// Every cell that is asked for as a whole spec.
fn resolve(file: &MatrixFile, arguments: &MatrixArguments) -> Result<StudyPlan, Failure> {
    let mut notes = Vec::new();
    if !file.was_sorted {
        let what = "the numbers in flight did not rise: they are put in order, each once";
        notes.push(what.to_owned());
    }
    let mut matrix = Matrix { cells: file.expand(&mut notes)?, ..file.matrix.clone() };
    let selection = Selection::read(&arguments.only, &matrix)?;
    let total = matrix.cells.len();
    let chosen = matrix.cells.iter().filter(|cell| selection.takes(&matrix, cell));
    matrix.cells = chosen.cloned().collect();
    if matrix.cells.len() < total {
        notes.push(format!("{} of {total} cells were asked for", matrix.cells.len()));
    }
    matrix.levels.retain(|level| selection.takes_load(level));
    let repetition = Repetition {
        runs: file.table.repeat.unwrap_or(NonZeroU32::MIN),
        cool_down: file.table.cool_down.map(|time| time.0).unwrap_or_default(),
        restart: None,
        stop_at: None,
    };
    check_runs(&matrix, repetition.runs)?;
    let (mut conditions, mut foreseen) = (Vec::new(), Vec::new());
    for (index, cell) in matrix.cells.iter().enumerate() {
        let (drafted, spec) = file.cell_spec(cell, &matrix.levels, arguments)?;
        if spec.target == TargetSpec::Embedded
            && let Some(reason) = file.foreseen_failure(cell, &spec.engine)?
        {
            foreseen.push((index, reason));
        }
        let name = axes::cell_name(&matrix, cell);
        conditions.push((Condition { name, spec }, drafted.secrets));
    }
    let matrix = without_unused(matrix);
    notes.extend(notes_on_cells(&matrix, arguments.virtual_time));
    let (question, order) = (Question::Matrix(matrix.clone()), file.table.order);
    let order = order.unwrap_or(Order::Listed);
    let plan = StudyPlan::new(question, conditions, repetition, order);
    let warnings = warnings(&matrix, &plan.study, foreseen.len());
    Ok(StudyPlan { notes, warnings, foreseen, ..plan })
}

/// The summary of a set has every cell at every load, and must stay small enough to be read.
fn check_runs(matrix: &Matrix, runs: NonZeroU32) -> Result<(), Failure> {
    let (cells, loads) = (matrix.cells.len(), matrix.levels.len());
    let rows = cells.saturating_mul(loads);
    let points = rows.saturating_mul(runs.get() as usize);
    if rows <= ROWS_MAX && points <= RUNS_MAX {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "`{}` has {cells} cells at {loads} load{}, {runs} time{} each: {points} runs, and a set has \
         at most {ROWS_MAX} cells and loads and {RUNS_MAX} runs",
        matrix.name,
        if loads == 1 { "" } else { "s" },
        if runs.get() == 1 { "" } else { "s" },
    ))
    .hint("measure it in parts with --only, at fewer loads, or less often"))
}

/// Leaves out presets and models that no cell has: nothing will be known of them.
fn without_unused(matrix: Matrix) -> Matrix {
    fn retain<T>(all: Vec<T>, cells: &mut [Cell], place: fn(&mut Cell) -> &mut u32) -> Vec<T> {
        let mut kept = Vec::new();
        for (old, value) in (0_u32..).zip(all) {
            let new = u32::try_from(kept.len()).unwrap_or(u32::MAX);
            let mut users = cells.iter_mut().map(place).filter(|place| **place == old).peekable();
            if users.peek().is_some() {
                users.for_each(|place| *place = new);
                kept.push(value);
            }
        }
        kept
    }
    let Matrix { presets, models, mut cells, .. } = matrix;
    let presets = retain(presets, &mut cells, |cell| &mut cell.preset);
    let models = retain(models, &mut cells, |cell| &mut cell.model);
    Matrix { presets, models, cells, ..matrix }
}

/// Notes on the cells that were asked for.
fn notes_on_cells(matrix: &Matrix, simulated: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let single = (0_u32..).zip(&matrix.presets).filter(|(place, preset)| {
        let has = |strategy| {
            let is_so = |cell: &Cell| cell.preset == *place && cell.strategy == Some(strategy);
            matrix.cells.iter().any(is_so)
        };
        preset.gpus == Some(1) && has(Strategy::Tensor) && has(Strategy::Pipeline)
    });
    let single: Vec<&str> = single.map(|(_, preset)| preset.name.as_str()).collect();
    if !single.is_empty() {
        let what = "on one GPU both strategies are the same server, measured twice";
        notes.push(format!("{what}: {}", single.join(", ")));
    }
    let (lanes, presets) = (matrix.lanes.get(), matrix.presets.len());
    if presets < lanes as usize {
        notes.push(format!("{lanes} lanes, and no more than {presets} presets to be in them"));
    }
    let has_speed = |cell: &Cell| cell.flags.keys().any(|flag| axes::engine_key(flag) == "speed");
    if simulated && matrix.cells.iter().any(has_speed) {
        notes.push(
            "virtual time has no speed: cells that differ by `speed` come to the same".to_owned(),
        );
    }
    notes
}

/// What will be wrong with the results, each with its remedy.
fn warnings(matrix: &Matrix, study: &StudySpec, foreseen: usize) -> Vec<String> {
    let priced = matrix.presets.iter().filter(|it| it.price_per_hour.is_some()).count();
    let plain = [
        (
            study.repetition.runs.get() == 1,
            "each cell is measured once, so that no difference has an interval; add --repeat 5",
        ),
        (
            0 < priced && priced < matrix.presets.len(),
            "not all presets have a price, so that costs cannot be compared; write price_per_hour \
             into each",
        ),
        (
            foreseen == study.conditions.len(),
            "no cell can start; use shorter contexts, larger presets or smaller models",
        ),
    ];
    let plain = plain.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned());
    let computed = [cell::same_servers(study, matrix), cell::short_contexts(study, matrix)];
    computed.into_iter().flatten().chain(plain).collect()
}

/// `matrix --list`: the built-in matrices.
pub(crate) fn list(format: PageFormat) -> Result<String, Failure> {
    let row = |(name, _): &(&str, &str)| {
        let file = MatrixFile::open(name, &MatrixArguments::default())?;
        let StudyPlan { study, foreseen, .. } = resolve(&file, &MatrixArguments::default())?;
        let matrix = study.matrix().ok_or_else(|| Failure::internal("a matrix of another kind"))?;
        let presets: Vec<&str> = matrix.presets.iter().map(|it| it.name.as_str()).collect();
        let models: Vec<&str> = matrix.models.iter().map(|it| it.label.as_str()).collect();
        Ok(json!({
            "name": matrix.name,
            "title": matrix.title,
            "description": file.table.description.as_deref().unwrap_or_default(),
            "presets": presets,
            "models": models,
            "cells": matrix.cells.len(),
            "foreseen_failures": foreseen.len(),
        }))
    };
    let rows = MATRICES.files.iter().map(row).collect::<Result<Vec<Value>, Failure>>()?;
    let columns = [
        ("presets", "presets"),
        ("models", "models"),
        ("cells", "cells"),
        ("cannot be deployed", "foreseen_failures"),
        ("", "title"),
    ];
    Ok(MATRICES.list(format, &rows, &columns))
}
