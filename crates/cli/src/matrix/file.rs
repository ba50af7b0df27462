//! A matrix as it is written: TOML, with the tables of an experiment beside its own.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use inferometer_model::campaign::{Level, MatrixModel, Order, Preset};
use serde_json::{Map, Value};

use super::axes::{axes, refuse_strange_numbers};
use super::builtin;
use super::rule::{Axes, Openness, Rule};
use super::schema::{self, SHARED};
use super::tables::{MatrixTable, ModelTable, Plain, PresetTable, RuleTable};
use crate::experiment::{self, Layer, Lists, Origins};
use crate::failure::Failure;

/// What a table of results has room for.
const NAME_CHARS_MAX: usize = 80;

#[derive(Clone, Debug)]
pub(super) struct MatrixFile {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) axes: Axes,
    pub(super) levels: Vec<Level>,
    /// Whether the levels were written from the lowest to the highest.
    pub(super) rising: bool,
    pub(super) runs: NonZeroU32,
    pub(super) cool_down: Duration,
    pub(super) lanes: NonZeroU32,
    pub(super) order: Order,
    pub(super) seed: Option<u64>,
    pub(super) currency: Option<String>,
    pub(super) presets: Vec<PresetFile>,
    pub(super) models: Vec<ModelFile>,
    pub(super) includes: Vec<Rule>,
    pub(super) excludes: Vec<Rule>,
    /// What holds for every cell.
    pub(super) experiment: Layer,
    /// Keys of the workload that are others at a context length.
    pub(super) by_context: BTreeMap<u32, Value>,
    /// Where all of it was written.
    pub(super) origins: Origins,
}

#[derive(Clone, Debug)]
pub(super) struct PresetFile {
    pub(super) preset: Preset,
    pub(super) owned: Owned,
}

#[derive(Clone, Debug)]
pub(super) struct ModelFile {
    pub(super) model: MatrixModel,
    pub(super) owned: Owned,
}

/// What a preset or a model says beyond its name.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) engine: Map<String, Value>,
    pub(super) values: BTreeMap<String, String>,
}

/// What was said on the command line, over the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over<'a> {
    pub(super) sets: &'a [String],
    /// Keys of `[matrix]`.
    pub(super) flags: &'a Map<String, Value>,
}

impl MatrixFile {
    /// A built-in one by its name, or a file.
    pub(super) fn named(name: &str, over: Over<'_>) -> Result<Self, Failure> {
        match builtin::text_of(name) {
            Some(text) => Self::parse(&builtin::place_of(name), text, over),
            None if experiment::is_file(name) => {
                let path = Path::new(name);
                Self::parse(path, &experiment::file::text(path, "matrix")?, over)
            }
            None => Err(builtin::unknown(name)),
        }
    }

    /// `path` is where it was read, and where files that it names are looked for.
    pub(super) fn parse(path: &Path, text: &str, over: Over<'_>) -> Result<Self, Failure> {
        let schema = schema::document();
        let mut whole = experiment::file::parse(path, text)?;
        refuse_strangers(&whole)?;
        refuse_strange_numbers(&whole)?;
        whole.check_by(&schema, Lists::InOrder)?;
        whole.find_files_beside(path);
        whole.lay(experiment::file::read_sets_by(over.sets, &schema)?)?;
        let flags = Value::Object(Map::from_iter([(
            "matrix".to_owned(),
            Value::Object(over.flags.clone()),
        )]));
        let flags = Layer { tree: flags, ..Layer::default() };
        flags.check_by(&schema, Lists::InOrder)?;
        whole.lay(flags)?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let mut file = Self::of(&whole, &stem.unwrap_or_default())?;
        if !over.sets.is_empty() {
            file.title = format!("{} ({})", file.title, over.sets.join(", "));
        }
        Ok(file)
    }

    fn of(whole: &Layer, stem: &str) -> Result<Self, Failure> {
        let table: MatrixTable = whole.table("matrix")?;
        check_load(whole, &table)?;
        let presets = presets(whole)?;
        let models = models(whole)?;
        let axes = axes(whole, &presets, &models, &table)?;
        let name = table.name.unwrap_or_else(|| stem.trim_end_matches(".toml").to_owned());
        let includes = rules(whole, "include", &axes, Openness::MayBeNew)?;
        let added = includes.iter().flat_map(|rule| rule.contexts.iter().flatten());
        let contexts: Vec<u32> = once(axes.contexts.iter().chain(added).copied());
        let (experiment, by_context) = shared(whole, &contexts)?;
        let rising = table.concurrency.map(|levels| levels.0.rising());
        let (levels, rising) =
            rising.map_or((vec![Level::AsAsked], true), |rising| (rising.levels, rising.as_typed));
        let at_least_one = |number: Option<u32>| number.and_then(NonZeroU32::new);
        Ok(Self {
            title: table.title.unwrap_or_else(|| name.clone()),
            name,
            description: table.description.unwrap_or_default(),
            levels,
            rising,
            runs: at_least_one(table.repeat).unwrap_or(NonZeroU32::MIN),
            cool_down: table.cool_down.map(|time| time.0).unwrap_or_default(),
            lanes: at_least_one(table.lanes).unwrap_or(NonZeroU32::MIN),
            order: table.order.map_or(Order::Listed, |order| order.0),
            seed: table.seed,
            currency: table.currency.filter(|currency| !currency.trim().is_empty()),
            includes,
            excludes: rules(whole, "exclude", &axes, Openness::Known)?,
            presets,
            models,
            axes,
            experiment,
            by_context,
            origins: whole.origins.clone(),
        })
    }

    /// Whether its servers are deployed, and not simulated by the embedded engine.
    pub(super) fn is_deployed(&self) -> bool {
        self.experiment.tree.get("deploy").is_some()
    }
}

/// The schema does not know them, but there is more to say than that.
fn refuse_strangers(whole: &Layer) -> Result<(), Failure> {
    for (path, why) in [
        (
            "target.url",
            "a matrix puts its servers up: say how in [deploy], or leave it to [engine]",
        ),
        ("target.model", "the models of a matrix are written as [[model]]"),
        ("workload.seed", "a matrix has one seed: write it in [matrix]"),
        ("workload.plan", "a saved plan has its own seed and load, and no place in a matrix"),
        ("repeat", "how often each cell is measured is `repeat` in [matrix]"),
        ("sweep", "the loads of every cell are `concurrency` in [matrix]"),
    ] {
        if whole.tree.pointer(&format!("/{}", path.replace('.', "/"))).is_some() {
            return Err(whole.origins.failure(path, why));
        }
    }
    let has = |table: &str| whole.tree.get(table).is_some();
    if has("deploy") && has("engine") {
        return Err(whole.origins.failure(
            "engine",
            "[engine] is the embedded engine, and [deploy] puts up other servers; leave one out",
        ));
    }
    Ok(())
}

/// Several numbers in flight, and yet another, would be two loads.
fn check_load(whole: &Layer, table: &MatrixTable) -> Result<(), Failure> {
    let load = whole.tree.get("load");
    let rival = ["concurrency", "rate", "ramp"]
        .into_iter()
        .find(|key| load.and_then(|load| load.get(key)).is_some());
    match rival.filter(|_| table.concurrency.is_some()) {
        None => Ok(()),
        Some(key) => Err(whole.origins.failure(
            &format!("load.{key}"),
            &format!("`load.{key}` and `matrix.concurrency` are two loads; choose one of them"),
        )),
    }
}

fn count(whole: &Layer, list: &str) -> usize {
    whole.tree.get(list).and_then(Value::as_array).map_or(0, Vec::len)
}

fn presets(whole: &Layer) -> Result<Vec<PresetFile>, Failure> {
    let names = Names::of(whole, "preset", "what it is called, such as \"gpu-small\"")?;
    let preset = |(place, name): (usize, String)| {
        let table: PresetTable = whole.table(&format!("preset.{place}"))?;
        let preset = Preset {
            name,
            gpus: table.gpus,
            gpu_type: table.gpu_type,
            vram_gb: table.vram_gb,
            vcpus: table.vcpus,
            memory_gb: table.memory_gb,
            price_per_hour: table.price_per_hour,
        };
        Ok(PresetFile { preset, owned: Owned::of(table.engine, table.values) })
    };
    names.0.into_iter().enumerate().map(preset).collect()
}

fn models(whole: &Layer) -> Result<Vec<ModelFile>, Failure> {
    let names = Names::of(whole, "model", "as the server is asked for it")?;
    let mut models: Vec<ModelFile> = Vec::new();
    for (place, name) in names.0.into_iter().enumerate() {
        let table: ModelTable = whole.table(&format!("model.{place}"))?;
        let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(&name).to_owned();
        let label = table.label.unwrap_or(last);
        let at = format!("model.{place}.label");
        check_name(whole, &at, "label", &label)?;
        if models.iter().any(|other| other.model.label == label) {
            let what = format!("two models are called `{label}`; give one another label");
            return Err(whole.origins.failure(&at, &what));
        }
        let model = MatrixModel { name, label };
        models.push(ModelFile { model, owned: Owned::of(table.engine, table.values) });
    }
    Ok(models)
}

impl Owned {
    fn of(engine: BTreeMap<String, Value>, values: BTreeMap<String, Plain>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name, value.0)).collect();
        Self { engine: engine.into_iter().collect(), values }
    }
}

/// The names of a list of tables: there are some, each has one, no two are alike.
struct Names(Vec<String>);

impl Names {
    fn of(whole: &Layer, list: &str, what: &str) -> Result<Self, Failure> {
        let count = count(whole, list);
        if count == 0 {
            return Err(Failure::usage(format!("the matrix has no {list}s"))
                .hint(format!("write each as [[{list}]] with its `name`")));
        }
        let mut names: Vec<String> = Vec::new();
        for place in 0..count {
            let name = whole.tree.pointer(&format!("/{list}/{place}/name")).and_then(Value::as_str);
            let Some(name) = name.filter(|name| !name.trim().is_empty()) else {
                let what = format!("{list} {} has no `name`: {what}", place + 1);
                return Err(whole.origins.failure(&format!("{list}.{place}"), &what));
            };
            let at = format!("{list}.{place}.name");
            check_name(whole, &at, "name", name)?;
            if names.iter().any(|other| other.eq_ignore_ascii_case(name)) {
                let what = format!("`{name}` is the name of another {list} already");
                return Err(whole.origins.failure(&at, &what));
            }
            names.push(name.to_owned());
        }
        Ok(Self(names))
    }
}

fn check_name(whole: &Layer, at: &str, kind: &str, name: &str) -> Result<(), Failure> {
    if name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let what = format!("a {kind} is one line of at most {NAME_CHARS_MAX} characters");
    Err(whole.origins.failure(at, &what))
}

/// Each value once, in the order of first occurrence.
fn once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

fn rules(whole: &Layer, list: &str, axes: &Axes, open: Openness) -> Result<Vec<Rule>, Failure> {
    let rule = |place: usize| {
        let at = format!("{list}.{place}");
        let table: RuleTable = whole.table(&at)?;
        Rule::read(&table, axes, open)
            .map_err(|wrong| whole.origins.failure(&format!("{at}.{}", wrong.axis), &wrong.what))
    };
    (0..count(whole, list)).map(rule).collect()
}

/// The tables of an experiment, and what its workload says of single context lengths.
fn shared(whole: &Layer, contexts: &[u32]) -> Result<(Layer, BTreeMap<u32, Value>), Failure> {
    let mut experiment = Layer::default();
    for table in SHARED {
        experiment.lay(whole.only(table))?;
    }
    let workload = experiment.tree.get_mut("workload").and_then(Value::as_object_mut);
    let others = workload.and_then(|workload| workload.remove("by_context"));
    let mut by_context = BTreeMap::new();
    for (context, other) in others.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let known = context.parse().ok().filter(|number| contexts.contains(number));
        let Some(context) = known else {
            let at = format!("workload.by_context.{context}");
            let known: Vec<String> = contexts.iter().map(u32::to_string).collect();
            let what = format!(
                "`{context}` is none of the context lengths of the matrix: {}",
                known.join(", ")
            );
            return Err(whole.origins.failure(&at, &what));
        };
        by_context.insert(context, other.clone());
    }
    Ok((experiment, by_context))
}
