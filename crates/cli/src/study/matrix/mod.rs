//! Matrices: hardware presets, models and other axes, built in or in a file, and the study of one
//! together with flags. Nothing is deployed here.
//!
//! A file is read by its schema. The product of its axes is filtered by rules that include, exclude or
//! select cells, and each cell becomes a whole spec (`cell`).

mod cell;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use inferometer_model::spec::TargetSpec;
use inferometer_model::study::{
    Cell, Condition, Level, Matrix, MatrixModel, Preset, Question, Repetition, RunOrder, Strategy,
    StudySpec,
};
use inferometer_report::fmt::counted;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

pub(crate) use self::cell::needed_tokens;
use super::StudyPlan;
use super::file::{self, BuiltIns, check_one_load, count_tables, refuse_keys, without_keys};
use super::sweep::{ConcurrencyLevels, SortedLevels};
use crate::arguments::{Grammar, MatrixArguments, PageFormat, Written};
use crate::experiment::{self, Layer, Lists, Origins, nearest, schema};
use crate::failure::{Failure, Result};

pub(crate) const MATRICES: BuiltIns = BuiltIns {
    kind: "matrix",
    plural: "matrices",
    default: "r3",
    files: &[
        ("r3", include_str!("builtin/r3.toml")),
        ("r3-concurrency", include_str!("builtin/r3-concurrency.toml")),
        ("current", include_str!("builtin/current.toml")),
    ],
};

/// Tables of an experiment that hold for every cell.
const SHARED: [&str; 9] =
    ["target", "deploy", "engine", "workload", "load", "slo", "client", "limits", "metadata"];
/// Cells times loads, and those times repetitions, of one set.
const ROWS_MAX: usize = 4_096;
const RUNS_MAX: usize = 20_000;

/// A matrix of Inferometer: servers that are deployed one after the other, each measured with the same
/// workload.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used; each table is read separately")]
struct MatrixDocument {
    matrix: MatrixTable,
    preset: Vec<Preset>,
    model: Vec<MatrixModel>,
    /// Options of the server that are varied: each name with the list of its values. For the
    /// embedded engine they are keys of `[engine]`; in `[deploy]`, {flag:NAME} and {flags} stand for them.
    flags: BTreeMap<String, Value>,
    include: Vec<BTreeMap<String, Value>>,
    exclude: Vec<BTreeMap<String, Value>>,
}

/// The axes that are varied, and the order of the measurements.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct MatrixTable {
    /// Short name [default: the name of the file]
    name: Option<String>,
    /// Name for people [default: its short name]
    title: Option<String>,
    /// Its purpose, and what its results depend on: a paragraph of its page
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
    /// How often each cell is deployed and measured [default: 1]
    #[schemars(range(min = 1, max = 1000))]
    repeat: Option<NonZeroU32>,
    /// Pause between two servers, such as 60s [default: none]
    cool_down: Option<Written<Duration>>,
    /// Presets that are measured at once [default: 1]
    #[schemars(range(min = 1, max = 64))]
    lanes: Option<NonZeroU32>,
    /// Whether cells are measured as they are listed, or in a different random order in every repetition
    /// [default: listed]
    order: Option<RunOrder>,
    /// Seed of all random values [default: drawn for each command; 1 in virtual time]
    seed: Option<u64>,
    /// Currency of the prices, as a name or a symbol
    currency: Option<String>,
}

/// Other keys of a preset or a model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ExtraKeys {
    engine: Map<String, Value>,
    values: BTreeMap<String, Value>,
}

/// One value or several, as strings. The schema allows strings, numbers and booleans.
fn to_texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(to_texts).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            vec![value.to_string()]
        }
    }
}

/// The JSON Schema of a matrix file.
pub(crate) fn schema() -> Value {
    let experiment = schema::document();
    let mut document = schema::document_of::<MatrixDocument>();
    document["title"] = "Matrix".into();
    let one = json!({ "type": ["string", "number", "boolean"] });
    let values = json!({ "type": ["string", "number", "boolean", "array"], "items": one });
    document["properties"]["flags"]["additionalProperties"] = values.clone();
    for list in ["include", "exclude"] {
        document["properties"][list]["items"]["additionalProperties"] = values.clone();
    }
    for (owner, which) in [("preset", "preset, such as its hardware"), ("model", "model")] {
        let table = &mut document["properties"][owner]["items"]["properties"];
        table["engine"] = experiment["properties"]["engine"].clone();
        table["engine"]["description"] =
            format!("Keys of `[engine]`, the embedded engine, for this {which}").into();
        let description = "Other values for commands; {value:NAME} stands for each";
        table["values"] = json!({
            "type": "object", "description": description, "additionalProperties": one,
        });
    }
    for table in SHARED {
        document["properties"][table] = experiment["properties"][table].clone();
    }
    without_keys(&mut document["properties"]["target"], &["url", "model"]);
    let workload = &mut document["properties"]["workload"];
    // A matrix has one seed, which a saved plan would not follow.
    without_keys(workload, &["seed", "plan"]);
    let mut other = workload.clone();
    other["description"] = "Keys of [workload] at this context length".into();
    workload["properties"]["by_context"] = json!({
        "type": "object",
        "description": "Other keys of [workload] at a context length: \
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
    /// The other keys of each preset and each model.
    presets: Vec<ExtraKeys>,
    models: Vec<ExtraKeys>,
    /// The tables for every cell.
    experiment: Layer,
    /// Other keys of the workload at a context length.
    by_context: BTreeMap<String, Value>,
    /// The positions of all keys in the file.
    origins: Origins,
}

impl MatrixFile {
    fn open(name: &str, arguments: &MatrixArguments) -> Result<Self> {
        let (path, text) = MATRICES.open(name)?;
        Self::parse(&path, &text, arguments)
    }

    /// Reads a file; files that it names are looked for beside `path`.
    fn parse(path: &Path, text: &str, arguments: &MatrixArguments) -> Result<Self> {
        let schema = schema();
        let mut whole = file::parse(path, text, &schema, refuse)?;
        whole.find_files_beside(path);
        whole.lay(experiment::file::read_sets(&arguments.sets, &schema)?)?;
        let MatrixArguments { repeat, lanes, seed, .. } = arguments;
        let mut typed = json!({ "matrix": { "repeat": repeat, "lanes": lanes, "seed": seed } });
        if let Some(table) = typed["matrix"].as_object_mut() {
            table.retain(|_, value| !value.is_null());
        }
        let typed = Layer { tree: typed, ..Layer::default() };
        typed.check_by(&schema, Lists::InOrder)?;
        whole.lay(typed)?;
        let table: MatrixTable = whole.table("matrix")?;
        check_one_load(&whole, "matrix.concurrency")?;
        let (presets, preset_keys) =
            read_tables(&whole, "preset", "what it is called, such as \"gpu-small\"")?;
        let (mut models, model_keys) = read_tables(&whole, "model", "its name on the server")?;
        label_models(&whole, &mut models)?;
        let sorted = SortedLevels::from_file(table.concurrency.as_ref());
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = table.name.clone().unwrap_or_else(|| stem.trim_end_matches(".toml").to_owned());
        let mut title = table.title.clone().unwrap_or_else(|| name.clone());
        if !arguments.sets.is_empty() {
            title = format!("{title} ({})", arguments.sets.join(", "));
        }
        let matrix = Matrix {
            title,
            name,
            description: table.description.clone().filter(|text| !text.trim().is_empty()),
            presets,
            models,
            cells: Vec::new(),
            levels: sorted.levels,
            lanes: table.lanes.unwrap_or(NonZeroU32::MIN),
            currency: table.currency.clone().filter(|currency| !currency.trim().is_empty()),
        };
        let axes = read_axes(&whole, &matrix, &table)?;
        let includes = read_rules(&whole, "include", &axes, true)?;
        let (experiment, by_context) = shared_tables(&whole, &axes, &includes)?;
        Ok(Self {
            table,
            matrix,
            was_sorted: sorted.was_sorted,
            includes,
            excludes: read_rules(&whole, "exclude", &axes, false)?,
            axes,
            presets: preset_keys,
            models: model_keys,
            experiment,
            by_context,
            origins: whole.origins,
        })
    }

    /// Whether its servers are deployed, and not simulated by the embedded engine.
    fn is_deployed(&self) -> bool {
        self.experiment.tree.get("deploy").is_some()
    }
}

/// Refuses keys that do not belong in a matrix.
fn refuse(whole: &Layer) -> Result<()> {
    refuse_keys(whole, "", "matrix")?;
    let is_deployed = whole.tree.get("deploy").is_some();
    if is_deployed { refuse_keys(whole, "", "deployed") } else { Ok(()) }
}

/// The presets or models, at least one, each with a different name, and their other keys. `what`
/// describes the name.
fn read_tables<T: DeserializeOwned>(
    whole: &Layer,
    list: &str,
    what: &str,
) -> Result<(Vec<T>, Vec<ExtraKeys>)> {
    let names = file::read_names(whole, list, what, str::eq_ignore_ascii_case)?;
    if names.is_empty() {
        return Err(Failure::usage(format!("the matrix has no {list}s"))
            .hint(format!("write each as [[{list}]] with its `name`")));
    }
    let paths = (0..names.len()).map(|index| format!("{list}.{index}"));
    paths.map(|path| Ok((whole.table(&path)?, whole.table(&path)?))).collect()
}

/// Labels each model without a label by the last part of its name; no two labels are equal.
fn label_models(whole: &Layer, models: &mut [MatrixModel]) -> Result<()> {
    for index in 0..models.len() {
        let MatrixModel { name, label } = &mut models[index];
        if label.is_empty() {
            let last = name.trim_end_matches('/').rsplit('/').next();
            last.unwrap_or(name).clone_into(label);
        }
        let (at, label) = (format!("model.{index}.label"), label.clone());
        file::check_name(whole, &at, &label)?;
        if models[..index].iter().any(|other| other.label == label) {
            let what = format!("two models are called `{label}`; give one another label");
            return Err(whole.origins.failure(&at, &what));
        }
    }
    Ok(())
}

/// The tables of an experiment, and the keys of its workload for single context lengths.
fn shared_tables(
    whole: &Layer,
    axes: &[Axis],
    includes: &[Rule],
) -> Result<(Layer, BTreeMap<String, Value>)> {
    let mut experiment = Layer::default();
    for table in SHARED {
        experiment.lay(whole.only(table))?;
    }
    let workload = experiment.tree.get_mut("workload").and_then(Value::as_object_mut);
    let others = workload.and_then(|workload| workload.remove("by_context"));
    let Some(Value::Object(others)) = others else { return Ok((experiment, BTreeMap::new())) };
    let added = includes.iter().filter_map(|rule| rule.get("context")).flatten();
    let listed = axes.iter().filter(|axis| axis.name == "context").flat_map(|axis| &axis.values);
    let contexts: Vec<&str> = listed.chain(added).map(String::as_str).collect();
    if let Some(other) = others.keys().find(|context| !contexts.contains(&context.as_str())) {
        let known = contexts.join(", ");
        let what = format!("`{other}` is not a context length of the matrix: {known}");
        return Err(whole.origins.failure(&format!("workload.by_context.{other}"), &what));
    }
    Ok((experiment, others.into_iter().collect()))
}

/// The study of a matrix named on the command line.
pub(crate) fn plan(arguments: &MatrixArguments) -> Result<StudyPlan> {
    let name = arguments.matrix.as_deref().unwrap_or(MATRICES.default);
    let file = MatrixFile::open(name, arguments)?;
    if file.is_deployed() && arguments.virtual_time {
        return Err(Failure::usage("deployed servers cannot run in virtual time")
            .hint("leave out --virtual, or write [engine] instead of [deploy]"));
    }
    resolve(&file, arguments)
}

/// Every selected cell as a whole spec.
fn resolve(file: &MatrixFile, arguments: &MatrixArguments) -> Result<StudyPlan> {
    let mut notes = Vec::new();
    if !file.was_sorted {
        notes
            .push("`concurrency` is not in rising order: it is sorted, each value once".to_owned());
    }
    let mut matrix = Matrix { cells: file.expand(&mut notes)?, ..file.matrix.clone() };
    let selection = Selection::read(&arguments.only, &matrix)?;
    let total = matrix.cells.len();
    let selected = matrix.cells.iter().filter(|cell| selection.takes(&matrix, cell));
    matrix.cells = selected.cloned().collect();
    if matrix.cells.len() < total {
        notes.push(format!("{} of {total} cells are selected", matrix.cells.len()));
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
        let name = cell_name(&matrix, cell);
        conditions.push((Condition { name, spec }, drafted.secrets));
    }
    let matrix = without_unused(matrix);
    notes.extend(notes_on_cells(&matrix, arguments.virtual_time));
    let question = Question::Matrix(matrix.clone());
    let order = file.table.order.unwrap_or(RunOrder::Listed);
    let plan = StudyPlan::new(question, conditions, repetition, order);
    let warnings = warnings(&matrix, &plan.study, foreseen.len());
    Ok(StudyPlan { notes, warnings, foreseen, ..plan })
}

/// The summary of a set has every cell at every load, and must stay small enough to be read.
fn check_runs(matrix: &Matrix, runs: NonZeroU32) -> Result<()> {
    let rows = matrix.cells.len().saturating_mul(matrix.levels.len());
    let points = rows.saturating_mul(runs.get() as usize);
    if rows <= ROWS_MAX && points <= RUNS_MAX {
        return Ok(());
    }
    let cells = counted(matrix.cells.len() as u64, "cell");
    let loads = counted(matrix.levels.len() as u64, "load");
    let runs = counted(runs.get().into(), "time");
    Err(Failure::usage(format!(
        "`{}` has {cells} at {loads}, {runs} each: {points} runs, and a set has at most {ROWS_MAX} cells \
         and loads and {RUNS_MAX} runs",
        matrix.name,
    ))
    .hint("measure it in parts with --only, at fewer loads, or with fewer repetitions"))
}

/// Leaves out presets and models that no cell has.
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

/// Notes on the selected cells.
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
        notes.push(format!("{lanes} lanes, but only {presets} presets to measure in them"));
    }
    let has_speed = |cell: &Cell| cell.flags.keys().any(|flag| engine_key(flag) == "speed");
    if simulated && matrix.cells.iter().any(has_speed) {
        notes.push(
            "virtual time has no speed: cells that differ only in `speed` are equal".to_owned(),
        );
    }
    notes
}

/// Known problems of the results, each with its remedy.
fn warnings(matrix: &Matrix, study: &StudySpec, foreseen: usize) -> Vec<String> {
    let priced = matrix.presets.iter().filter(|it| it.price_per_hour.is_some()).count();
    let plain = [
        (
            study.repetition.runs.get() == 1,
            "each cell is measured once, so differences have no confidence interval; add --repeat 5",
        ),
        (
            0 < priced && priced < matrix.presets.len(),
            "not all presets have a price, so costs cannot be compared; set price_per_hour in each",
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
pub(crate) fn list(format: PageFormat) -> Result<String> {
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
    let rows = MATRICES.files.iter().map(row).collect::<Result<Vec<Value>>>()?;
    let columns = [
        ("presets", "presets"),
        ("models", "models"),
        ("cells", "cells"),
        ("cannot be deployed", "foreseen_failures"),
        ("", "title"),
    ];
    Ok(MATRICES.list(format, &rows, &columns))
}

/// A limit against mistakes in a file.
const CELLS_MAX: usize = 4_096;
/// The axes that are no flags.
const FIXED: [&str; 4] = ["preset", "model", "context", "strategy"];
/// Keys of the embedded engine that follow from a cell, and their sources.
const DECIDED: [(&str, &str); 6] = [
    ("tp", "`strategies` in [matrix] and the `gpus` of a preset"),
    ("pp", "`strategies` in [matrix] and the `gpus` of a preset"),
    ("max_model_len", "`contexts` in [matrix]"),
    ("model", "[[model]]"),
    ("hardware", "[[preset]]"),
    ("profile", "[[preset]]"),
];
/// The key of `--only` that selects a load. It is no axis: all loads of a cell share its server.
const LOAD: &str = "concurrency";

/// A property that cells differ in.
#[derive(Clone, Debug)]
struct Axis {
    name: String,
    /// Names of presets, labels of models, or texts; empty where it is not varied.
    values: Vec<String>,
    /// Other names of the values: the whole names of models.
    aliases: Vec<String>,
}

/// The values that each axis may have; an axis that is not named may have any.
type Rule = BTreeMap<String, Vec<String>>;

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

/// The axes of a file, checked: every list has values, none twice, and no key that follows from the cell.
fn read_axes(whole: &Layer, matrix: &Matrix, table: &MatrixTable) -> Result<Vec<Axis>> {
    let check = |at: &str, what: &str, values: &[String]| {
        let twice = (1..values.len()).find(|&index| values[..index].contains(&values[index]));
        match twice {
            None if values.is_empty() => {
                let what = format!("{what} has no values; leave it out, or add some");
                Err(whole.origins.failure(at, &what))
            }
            None => Ok(()),
            Some(index) => {
                Err(whole.origins.failure(at, &format!("`{at}` has {} twice", values[index])))
            }
        }
    };
    let contexts: Vec<String> = table.contexts.iter().map(u32::to_string).collect();
    let strategies: Vec<String> = table.strategies.iter().map(Grammar::write).collect();
    for (list, values) in [("contexts", &contexts), ("strategies", &strategies)] {
        if whole.tree.pointer(&format!("/matrix/{list}")).is_some() {
            check(&format!("matrix.{list}"), &format!("`{list}`"), values)?;
        }
    }
    let needs_gpus = matrix.presets.iter().position(|preset| preset.gpus.is_none());
    if let Some(index) = needs_gpus.filter(|_| !strategies.is_empty()) {
        let name = &matrix.presets[index].name;
        let what = format!("`{name}` has no `gpus`, which `strategies` divide a model among");
        return Err(whole.origins.failure(&format!("preset.{index}"), &what));
    }
    let mut axes = fixed_axes(matrix, contexts, strategies);
    let is_embedded = whole.tree.get("deploy").is_none();
    for (name, values) in whole.table::<Map<String, Value>>("flags")? {
        let (values, at) = (to_texts(&values), format!("flags.{name}"));
        let refused = |what: String| Err(whole.origins.failure(&at, &what));
        let key = engine_key(&name);
        if let Some((_, by)) = DECIDED.iter().find(|(it, _)| is_embedded && *it == key) {
            return refused(format!("`{name}` cannot be a flag: it follows from {by}"));
        }
        if FIXED.contains(&name.as_str()) {
            return refused(format!("`{name}` is the name of an axis; rename the flag"));
        }
        check(&at, &format!("the flag `{name}`"), &values)?;
        axes.push(Axis { name, values, aliases: Vec::new() });
    }
    Ok(axes)
}

/// Flags of the embedded engine are the keys of its table, with hyphens or underscores.
fn engine_key(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

/// The rules of a list of tables. With `may_be_new` they may name context lengths and values of flags
/// that no cell has yet.
fn read_rules(whole: &Layer, list: &str, axes: &[Axis], may_be_new: bool) -> Result<Vec<Rule>> {
    let rule = |index: usize| {
        let at = format!("{list}.{index}");
        let table: Map<String, Value> = whole.table(&at)?;
        let table = table.iter().map(|(name, value)| (name.clone(), to_texts(value))).collect();
        read_rule(&table, axes, may_be_new)
            .map_err(|(axis, what)| whole.origins.failure(&format!("{at}.{axis}"), &what))
    };
    (0..count_tables(whole, list)).map(rule).collect()
}

/// A rule with its values as the axes write them, or the axis with an error, and the error.
fn read_rule(table: &Rule, axes: &[Axis], may_be_new: bool) -> Result<Rule, (String, String)> {
    let mut rule = Rule::new();
    for (name, values) in table {
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
    /// A value as the axis writes it. Only flags are case-sensitive.
    fn read(&self, text: &str, may_be_new: bool) -> Result<String, String> {
        let is_flag = !FIXED.contains(&self.name.as_str());
        if self.values.iter().any(|value| value == text) || is_flag && may_be_new {
            return Ok(text.to_owned());
        }
        let find = |names: &[String]| {
            names.iter().position(|name| !is_flag && name.eq_ignore_ascii_case(text))
        };
        if let Some(index) = find(&self.values).or_else(|| find(&self.aliases)) {
            return Ok(self.values[index].clone());
        }
        if may_be_new && self.name == "context" && text.parse::<NonZeroU32>().is_ok() {
            return Ok(text.to_owned());
        }
        let kind = if is_flag { format!("value of {}", self.name) } else { self.name.clone() };
        Err(unknown(&kind, text, &self.values.iter().map(String::as_str).collect::<Vec<_>>()))
    }
}

fn unknown(kind: &str, typed: &str, known: &[&str]) -> String {
    let lower: Vec<String> = known.iter().map(|name| name.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let near = nearest(typed, &lower).filter(|_| typed.parse::<f64>().is_err());
    match near.and_then(|near| lower.iter().position(|it| *it == near)) {
        Some(index) => format!("unknown {kind} `{typed}`; did you mean `{}`?", known[index]),
        None => format!("unknown {kind} `{typed}`; known are {}", known.join(", ")),
    }
}

/// The values of a cell with the names of their axes, without those that are not varied.
fn coordinates<'a>(matrix: &'a Matrix, cell: &'a Cell) -> Vec<(&'a str, String)> {
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

/// The name of a cell on pages: the values of all its axes.
fn cell_name(matrix: &Matrix, cell: &Cell) -> String {
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
    /// All cells: the product of all axes, without the excluded cells, and with the included ones. Rules
    /// without an effect are noted, counted from one.
    fn expand(&self, notes: &mut Vec<String>) -> Result<Vec<Cell>> {
        let takes = |rule: &Rule, cell: &Cell| takes(rule, &self.matrix, cell);
        let mut cells = self.product(&Rule::new())?;
        let mut idle = [("exclude", Vec::new()), ("include", Vec::new())];
        for (number, rule) in (1_u32..).zip(&self.excludes) {
            if !cells.iter().any(|cell| takes(rule, cell)) {
                idle[0].1.push(number.to_string());
            }
        }
        cells.retain(|cell| !self.excludes.iter().any(|rule| takes(rule, cell)));
        for (number, rule) in (1_u32..).zip(&self.includes) {
            let mut added = self.product(rule)?;
            added.retain(|cell| !cells.contains(cell));
            if added.is_empty() {
                idle[1].1.push(number.to_string());
            }
            cells.extend(added);
        }
        if cells.is_empty() {
            let name = &self.matrix.name;
            return Err(Failure::usage(format!("every cell of `{name}` is excluded"))
                .hint("remove an [[exclude]], or narrow it"));
        }
        self.check_count(cells.len())?;
        for (kind, idle) in idle.into_iter().filter(|(_, idle)| !idle.is_empty()) {
            notes.push(format!("[[{kind}]] {} changes nothing", idle.join(", ")));
        }
        // Presets stay together, and the models of each: in this order they are deployed and shown.
        cells.sort_by_key(|cell| (cell.preset, cell.model));
        Ok(cells)
    }

    fn check_count(&self, count: usize) -> Result<()> {
        if count <= CELLS_MAX {
            return Ok(());
        }
        let name = &self.matrix.name;
        Err(Failure::usage(format!("`{name}` has {count} cells, more than {CELLS_MAX}"))
            .hint("divide it into several files, or [[exclude]] cells"))
    }

    /// Every value of every axis that the rule does not narrow.
    fn product(&self, rule: &Rule) -> Result<Vec<Cell>> {
        let lists =
            self.axes.iter().map(|axis| (axis, rule.get(&axis.name).unwrap_or(&axis.values)));
        let lists = lists.filter(|(_, values)| !values.is_empty());
        let lengths = lists.clone().map(|(_, values)| values.len());
        self.check_count(lengths.fold(1, usize::saturating_mul))?;
        let mut chosen: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
        for (axis, values) in lists {
            let longer = chosen.iter().flat_map(|before| {
                let added = values.iter().map(|value| (axis.name.as_str(), value.as_str()));
                added.map(|added| [before.as_slice(), &[added]].concat())
            });
            chosen = longer.collect();
        }
        Ok(chosen.iter().map(|values| self.cell(values)).collect())
    }

    /// All GPUs of a preset serve one model, divided by the strategy.
    fn cell(&self, values: &[(&str, &str)]) -> Cell {
        let Matrix { presets, models, .. } = &self.matrix;
        let value = |axis: &str| values.iter().find(|(name, _)| *name == axis).map(|(_, it)| *it);
        let index = |found: Option<usize>| {
            found.and_then(|index| u32::try_from(index).ok()).unwrap_or(u32::MAX)
        };
        let preset = presets.iter().position(|it| Some(it.name.as_str()) == value("preset"));
        let model = models.iter().position(|it| Some(it.label.as_str()) == value("model"));
        let gpus = preset.and_then(|index| presets[index].gpus);
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

/// `--only`: the selected cells and loads; all of them without a filter.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    rules: Vec<Rule>,
    /// Numbers of requests in flight, the same for all cells; empty selects all.
    loads: Vec<String>,
}

impl Selection {
    /// Each filter is `axis=value,axis=value`: a cell must match all of its axes, with one of the values
    /// of each. A cell is selected by any of several filters.
    pub(crate) fn read(filters: &[String], matrix: &Matrix) -> Result<Self> {
        let mut axes = fixed_axes(matrix, Vec::new(), Vec::new());
        let values = matrix.cells.iter().flat_map(|cell| coordinates(matrix, cell));
        for (name, value) in values.map(|(name, value)| (name.to_owned(), value)) {
            match axes.iter_mut().find(|axis| axis.name == name) {
                Some(known) if known.values.contains(&value) => {}
                Some(known) => known.values.push(value),
                None => axes.push(Axis { name, values: vec![value], aliases: Vec::new() }),
            }
        }
        let is_flag = axes.iter().any(|axis| axis.name == LOAD);
        if !is_flag {
            let values = matrix.levels.iter().filter_map(load_text).collect();
            axes.push(Axis { name: LOAD.to_owned(), values, aliases: Vec::new() });
        }
        let (mut rules, mut loads) = (Vec::new(), Vec::new());
        for filter in filters {
            let wrong = |what: &str| Failure::usage(format!("--only {filter}: {what}"));
            let mut rule = Rule::new();
            for part in filter.split(',') {
                let (name, value) = part.split_once('=').ok_or_else(|| {
                    wrong("there is no `=`").hint("write it as preset=H100X1,model=Llama-8B")
                })?;
                rule.entry(name.trim().to_owned()).or_default().push(value.trim().to_owned());
            }
            let mut rule = read_rule(&rule, &axes, false).map_err(|(_, what)| wrong(&what))?;
            loads.push(if is_flag { None } else { rule.remove(LOAD) });
            rules.push(rule);
        }
        if loads.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(Failure::usage("--only: all cells are measured at the same loads")
                .hint(format!("write the same {LOAD}=… into every --only")));
        }
        let loads = loads.into_iter().flatten().next().unwrap_or_default();
        let selection = Self { rules, loads };
        if matrix.cells.iter().any(|cell| selection.takes(matrix, cell)) {
            return Ok(selection);
        }
        Err(Failure::usage(format!("--only {}: no cell matches", filters.join(" --only ")))
            .hint("--dry-run lists the cells of a matrix"))
    }

    pub(crate) fn takes(&self, matrix: &Matrix, cell: &Cell) -> bool {
        self.rules.is_empty() || self.rules.iter().any(|rule| takes(rule, matrix, cell))
    }

    pub(crate) fn takes_load(&self, level: &Level) -> bool {
        self.loads.is_empty() || load_text(level).is_some_and(|load| self.loads.contains(&load))
    }
}

fn load_text(level: &Level) -> Option<String> {
    if let Level::Concurrency(requests) = level { Some(requests.to_string()) } else { None }
}
