//! Suites: named lists of scenarios, built in or in a file, and the study that one makes together
//! with flags.
//!
//! A scenario is an experiment without a server. Four layers say what it asks: the suite's
//! defaults, the scenario, the user's experiment file and `--set`, then flags; the upper one wins.
//! What would make all scenarios alike is refused.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use inferometer_model::Spec;
use inferometer_model::spec::{Extent, LoadShape, Source, Workload};
use inferometer_model::study::{
    Condition, Level, Prompts, Question, RunOrder, Scenario, StudySpec, Suite,
};
use inferometer_study::play::known_specs;
use inferometer_workload::Inputs;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::StudyPlan;
use super::dry_run::expected;
use super::file::{self, BuiltIns, check_one_load, count_tables, refuse_keys, without_keys};
use super::sweep::{SortedLevels, spec_at_levels};
use crate::arguments::{ExperimentArguments, Grammar, PageFormat, SuiteArguments};
use crate::draft::draft_scenario;
use crate::experiment::{self, Layer, config, schema};
use crate::failure::{Failure, Result};
use crate::results::sha256;

pub(crate) const SUITES: BuiltIns = BuiltIns {
    kind: "suite",
    plural: "suites",
    default: "standard",
    files: &[
        ("standard", include_str!("builtin/standard.toml")),
        ("quick", include_str!("builtin/quick.toml")),
        ("chat", include_str!("builtin/chat.toml")),
        ("rag", include_str!("builtin/rag.toml")),
        ("code", include_str!("builtin/code.toml")),
        ("agent", include_str!("builtin/agent.toml")),
        ("long-context", include_str!("builtin/long-context.toml")),
        ("methodology", include_str!("builtin/methodology.toml")),
    ],
};

/// Tables of an experiment that a scenario may have, and those that all may share.
const SHARED: [&str; 4] = ["workload", "load", "slo", "limits"];
/// A limit against mistakes.
const SCENARIOS_MAX: usize = 200;

/// A suite of Inferometer: scenarios that are measured one after the other on one server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SuiteTable {
    /// Short name [default: the name of the file]
    name: Option<String>,
    /// Name for people [default: its short name]
    title: Option<String>,
    /// What it is for
    description: Option<String>,
    /// Whether each scenario and level has prompts of its own, or all begin alike, so that one may
    /// find what another left in the server's prefix cache [default: fresh]
    prompts: Option<Prompts>,
    /// Whether every round goes through the scenarios and levels as they are listed, or in an order
    /// of its own [default: listed]
    order: Option<RunOrder>,
    /// Scenarios, in their order
    #[schemars(length(min = 1))]
    scenario: Vec<ScenarioTable>,
}

/// One workload at one load, or at several numbers in flight
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ScenarioTable {
    /// What it is called; no two alike
    name: String,
    /// Word for the table, such as Latency [default: its name]
    category: Option<String>,
    /// What it shows, in one line
    purpose: Option<String>,
}

/// The JSON Schema of a suite file.
pub(crate) fn schema() -> Value {
    let mut experiment = schema::document();
    let mut document = schema::document_of::<SuiteTable>();
    document["title"] = "Suite".into();
    let tables = &mut experiment["properties"];
    // A suite has one seed, which a saved plan would not follow.
    without_keys(&mut tables["workload"], &["seed", "plan"]);
    document["properties"]["repeat"] = tables["repeat"].clone();
    let table = |description: &str| {
        json!({
            "type": "object",
            "description": description,
            "properties": {},
            "additionalProperties": false,
        })
    };
    let mut defaults = table("What holds for every scenario that does not say otherwise");
    let mut sweep = table("Several numbers in flight instead of one");
    for key in ["concurrencies", "waves"] {
        sweep["properties"][key] = tables["sweep"]["properties"][key].clone();
    }
    sweep["properties"]["waves"]["description"] =
        "Requests of each level as a multiple of its concurrency, and at least `requests`".into();
    let scenario = &mut document["properties"]["scenario"]["items"]["properties"];
    scenario["sweep"] = sweep;
    for shared in SHARED {
        defaults["properties"][shared] = tables[shared].clone();
        scenario[shared] = tables[shared].clone();
    }
    document["properties"]["defaults"] = defaults;
    document
}

/// A suite as it is written.
#[derive(Clone, Debug)]
struct SuiteFile {
    /// Without its hash, changes and levels, which follow from all layers.
    suite: Suite,
    description: String,
    order: RunOrder,
    /// The name of each scenario, and what it asks over the defaults of the suite.
    scenarios: Vec<(String, Layer)>,
}

impl SuiteFile {
    fn open(name: &str) -> Result<Self> {
        let (path, text) = SUITES.open(name)?;
        Self::parse(&path, &text)
    }

    /// `path` is where it was read, and where files that it names are looked for.
    fn parse(path: &Path, text: &str) -> Result<Self> {
        let whole = file::parse(path, text, &schema(), refuse_seeds)?;
        let table: SuiteTable = whole.table("")?;
        let count = table.scenario.len();
        let about = |what: String| Failure::usage(format!("suite {}: {what}", path.display()));
        if count == 0 {
            return Err(about("it has no scenarios".to_owned()).hint(
                "write each as [[scenario]]; inferometer suite --show standard is an example",
            ));
        }
        if SCENARIOS_MAX < count {
            return Err(about(format!("{count} scenarios are more than {SCENARIOS_MAX}")));
        }
        // Names must differ as they do in the names of sections and files.
        let are_alike = |one: &str, other: &str| {
            let letters = |name: &str| {
                let words = name.split(|c: char| !c.is_alphanumeric());
                words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect::<Vec<_>>()
            };
            letters(one) == letters(other)
        };
        let what = "what it is called in tables, such as \"Single user\"";
        let names = file::read_names(&whole, "scenario", what, are_alike)?;
        let mut defaults = whole.part("defaults");
        defaults.lay(whole.only("repeat"))?;
        defaults.find_files_beside(path);
        let is_said = |text: &String| !text.trim().is_empty();
        let (mut scenarios, mut layers) = (Vec::new(), Vec::new());
        for (place, (written, name)) in table.scenario.into_iter().zip(names).enumerate() {
            let at = format!("scenario.{place}");
            let Some(purpose) = written.purpose.filter(is_said) else {
                let number = place + 1;
                let what =
                    format!("scenario {number} has no `purpose`: what it shows, in one line");
                return Err(whole.origins.failure(&at, &what));
            };
            let category = written.category.filter(is_said).unwrap_or_else(|| name.clone());
            scenarios.push(Scenario { category, purpose, levels: Vec::new(), waves: None });
            let mut own = whole.part(&at);
            if let Some(tables) = own.tree.as_object_mut() {
                tables.retain(|_, table| table.is_object());
            }
            own.find_files_beside(path);
            check_one_load(&own, "sweep.concurrencies")?;
            let mut layer = defaults.clone();
            layer.lay(own)?;
            layers.push((name, layer));
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = table.name.filter(is_said).or(stem).unwrap_or_default();
        let suite = Suite {
            title: table.title.filter(is_said).unwrap_or_else(|| name.clone()),
            name,
            hash: String::new(),
            changes: Vec::new(),
            prompts: table.prompts.unwrap_or(Prompts::Fresh),
            scenarios,
        };
        Ok(Self {
            suite,
            description: table.description.unwrap_or_default(),
            order: table.order.unwrap_or(RunOrder::Listed),
            scenarios: layers,
        })
    }
}

/// The schema does not know them, but there is more to say than that.
fn refuse_seeds(whole: &Layer) -> Result<()> {
    let scenarios = (0..count_tables(whole, "scenario")).map(|place| format!("scenario.{place}"));
    let mut tables = scenarios.chain(["defaults".to_owned()]);
    tables.try_for_each(|table| refuse_keys(whole, &format!("{table}.workload."), "suite"))
}

/// The study of a suite named on the command line.
pub(crate) fn plan(arguments: &SuiteArguments) -> Result<StudyPlan> {
    let (file, typed) = choose(arguments)?;
    let mut layer = experiment::said_of_server(&typed)?;
    // Who sends the load is no part of what is asked.
    for table in ["slurm", "kubernetes"] {
        layer.tree.as_object_mut().and_then(|tree| tree.remove(table));
    }
    check_overrides(&file, &layer)?;
    let mut files = Files::default();
    let mut plan = resolve(&file, arguments, &layer, &mut files)?;
    let changes = changes(&file, arguments, &layer, &plan, &mut files);
    if let Question::Suite(suite) = &mut plan.study.question {
        suite.changes = changes;
    }
    Ok(plan)
}

/// The suite, and the rest of what was typed. The first word may be left out: then a URL is in its
/// place.
fn choose(arguments: &SuiteArguments) -> Result<(SuiteFile, ExperimentArguments)> {
    let mut typed = arguments.experiment.clone();
    let Some(name) = arguments.suite.as_deref() else {
        return Ok((SuiteFile::open(SUITES.default)?, typed));
    };
    let is_place = !experiment::is_file(name) && name.contains(':');
    match typed.places.first() {
        None if is_place => {
            typed.places = vec![name.to_owned()];
            Ok((SuiteFile::open(SUITES.default)?, typed))
        }
        Some(place) if is_place => Err(Failure::usage(format!(
            "{name} is not a suite; write its name or file first, then the URL ({place})"
        ))),
        Some(other) if SUITES.find(other).is_some() => Err(Failure::usage(format!(
            "`{name}` and `{other}` are two suites, and one is measured at a time"
        ))
        .hint("measure one after the other; the URL of a server follows the suite")),
        _ => Ok((SuiteFile::open(name)?, typed)),
    }
}

/// Every scenario with all layers on it, found possible at each of its levels, and the hash of all.
fn resolve(
    file: &SuiteFile,
    arguments: &SuiteArguments,
    overrides: &Layer,
    files: &mut Files,
) -> Result<StudyPlan> {
    let mut suite = file.suite.clone();
    suite.prompts = arguments.prompts.unwrap_or(suite.prompts);
    let (mut conditions, mut notes) = (Vec::new(), Vec::new());
    let mut repeat = None;
    for ((name, layer), scenario) in file.scenarios.iter().zip(&mut suite.scenarios) {
        let about = |failure: Failure| failure.about(&format!("scenario `{name}`"));
        let mut layer = layer.clone();
        layer.lay(overrides.clone())?;
        let has_key = |key: &str| layer.tree.pointer(&format!("/sweep/{key}")).is_some();
        if has_key("waves") && !has_key("concurrencies") {
            let what = "`sweep.waves` multiplies the levels of `sweep.concurrencies`; set them too";
            return Err(about(layer.origins.failure("sweep.waves", what)));
        }
        let drafted = draft_scenario(&arguments.experiment.headers, layer).map_err(about)?;
        let sorted = SortedLevels::from_file(drafted.sweep.concurrencies.as_ref());
        scenario.levels = sorted.levels;
        scenario.waves = drafted.sweep.waves.and_then(NonZeroU32::new);
        let spec = spec_at_levels(&drafted, &scenario.levels, None, 1, arguments.virtual_time);
        let spec = spec.map_err(about)?;
        if !sorted.was_sorted {
            notes.push(format!("the levels of `{name}` are sorted, each once"));
        }
        notes.extend(too_few_requests(name, &spec, scenario));
        conditions.push((Condition { name: name.clone(), spec }, drafted.secrets));
        repeat.get_or_insert((drafted.repetition, drafted.restart_timeout));
    }
    let repeat = repeat.ok_or_else(|| Failure::usage("the suite has no scenarios"))?;
    let (repetition, restart_timeout) = repeat;
    let mut plan = StudyPlan::new(Question::Suite(suite), conditions, repetition, file.order);
    let hash = hash(&plan.study, files)?;
    if let Question::Suite(suite) = &mut plan.study.question {
        suite.hash = hash;
    }
    Ok(StudyPlan { restart_timeout, notes, ..plan })
}

fn too_few_requests(name: &str, spec: &Spec, scenario: &Scenario) -> Option<String> {
    let Extent::Requests(requests) = spec.load.extent else { return None };
    let levels = scenario.levels.iter().filter(|_| scenario.waves.is_none());
    let users = levels.filter_map(|level| match (level, &spec.load.shape) {
        (Level::Concurrency(users), _)
        | (Level::AsAsked, LoadShape::Closed { concurrency: users, .. }) => Some(users.get()),
        (Level::AsAsked, LoadShape::Open { .. }) | (Level::Rate(_) | Level::Unlimited, _) => None,
    });
    let empty = users.filter(|users| requests.get() < u64::from(*users));
    let empty: Vec<String> = empty.map(|users| users.to_string()).collect();
    (!empty.is_empty()).then(|| {
        format!(
            "`{name}` has {requests} requests, fewer than {} at once: these concurrencies are never \
             reached",
            empty.join(", ")
        )
    })
}

/// `suite --list`: the built-in suites.
pub(crate) fn list(format: PageFormat) -> Result<String> {
    let (arguments, layer) = (SuiteArguments::default(), Layer::default());
    let row = |(name, _): &(&str, &str)| {
        let file = SuiteFile::open(name)?;
        let study = resolve(&file, &arguments, &layer, &mut Files::default())?.study;
        let suite = study.suite().ok_or_else(|| Failure::internal("a suite of another kind"))?;
        let runs = u64::from(study.repetition.runs.get());
        let specs = known_specs(&study);
        let requests: Option<u64> = specs.iter().map(|spec| expected(spec).0).sum();
        let scenarios = suite.scenarios.iter().zip(&study.conditions).map(|(scenario, it)| {
            let Scenario { category, purpose, .. } = scenario;
            json!({ "name": it.name, "category": category, "purpose": purpose })
        });
        Ok(json!({
            "name": suite.name,
            "title": suite.title,
            "description": file.description,
            "hash": suite.hash,
            "scenarios": scenarios.collect::<Vec<_>>(),
            "runs": specs.len() as u64 * runs,
            "requests": requests.map(|requests| requests * runs),
        }))
    };
    let rows = SUITES.files.iter().map(row).collect::<Result<Vec<Value>>>()?;
    let columns = ["scenarios", "runs", "requests", "hash"].map(|key| (key, key));
    Ok(SUITES.list(format, &rows, &[&columns[..], &[("", "title")]].concat()))
}

/// Refuses flags and files that would make all scenarios alike.
fn check_overrides(file: &SuiteFile, overrides: &Layer) -> Result<()> {
    if let Some(leaf) = leaves(&overrides.tree).iter().find(|leaf| belongs_to_scenarios(leaf)) {
        let (path, suite) = (leaf.join("."), &file.suite.name);
        let name = experiment::flag_at(&path).unwrap_or_else(|| format!("`{path}`"));
        let what = format!("{name} would make all scenarios of `{suite}` alike");
        return Err(overrides.origins.failure(&path, &what).hint(match SUITES.find(suite) {
            Some(_) => {
                format!("write your own suite: inferometer suite --show {suite} > mine.toml")
            }
            None => "set it in the file of the suite".to_owned(),
        }));
    }
    if overrides.tree.pointer("/workload/source").is_none() {
        return Ok(());
    }
    // Another source of prompts replaces synthetic ones only: instead of conversations or data it
    // would be another question.
    for (name, layer) in &file.scenarios {
        let workload = layer.tree.get("workload");
        let rival =
            ["turns", "agent", "sessions", "mix", "dataset", "prompt", "prompt_file", "trace"]
                .into_iter()
                .find(|key| workload.and_then(|workload| workload.get(key)).is_some());
        if let Some(key) = rival {
            return Err(overrides.origins.failure(
                "workload.source",
                &format!(
                    "--source would replace `workload.{key}` of the scenario `{name}`, which would \
                     change the scenario"
                ),
            ));
        }
    }
    Ok(())
}

fn belongs_to_scenarios(leaf: &[String]) -> bool {
    let keys: Vec<&str> = leaf.iter().map(String::as_str).collect();
    match keys[..] {
        ["workload", "source" | "tokenizer" | "count" | "stream" | "seed" | "body", ..]
        | ["load", "warm_up"] => false,
        ["workload" | "load" | "sweep", ..] => true,
        _ => false,
    }
}

/// What differs from the suite: each value without which the hash is another.
fn changes(
    file: &SuiteFile,
    arguments: &SuiteArguments,
    overrides: &Layer,
    plan: &StudyPlan,
    files: &mut Files,
) -> Vec<String> {
    let mut changes: Vec<String> = Vec::new();
    for leaf in leaves(&overrides.tree).into_iter().filter(|leaf| may_change(leaf)) {
        let mut layer = overrides.clone();
        let Some((key, above)) = leaf.split_last() else { continue };
        let table = above.iter().try_fold(&mut layer.tree, |tree, key| tree.get_mut(key));
        let removed = table.and_then(Value::as_object_mut).and_then(|table| table.remove(key));
        // What cannot even be asked without it is another question too.
        let before = resolve(file, arguments, &layer, files).ok();
        if before.is_some_and(|before| {
            before.study.suite().map(|suite| &suite.hash)
                == plan.study.suite().map(|suite| &suite.hash)
        }) {
            continue;
        }
        let removed = removed.unwrap_or_default();
        let value = match removed.as_array() {
            Some(items) => items.iter().map(config::text).collect::<Vec<_>>().join(" "),
            None => config::text(&removed),
        };
        let path = leaf.join(".");
        changes.push(match schema::flag(&path) {
            Some(flag) => format!("{flag} {value}"),
            None => format!("{path} = {value}"),
        });
    }
    if let Some(prompts) = arguments.prompts.filter(|prompts| *prompts != file.suite.prompts) {
        changes.push(format!("--prompts {}", prompts.write()));
    }
    changes
}

/// Who is asked and how tokens are counted is no part of what is asked.
fn may_change(leaf: &[String]) -> bool {
    let keys: Vec<&str> = leaf.iter().map(String::as_str).collect();
    match keys[..] {
        ["target", "api"] => true,
        ["target" | "engine" | "deploy" | "client" | "metadata", ..]
        | ["workload", "tokenizer" | "seed"] => false,
        _ => true,
    }
}

/// The keys that lead to each value; a list is one value.
fn leaves(tree: &Value) -> Vec<Vec<String>> {
    let Some(table) = tree.as_object() else { return vec![Vec::new()] };
    let below = |(key, value): (&String, &Value)| {
        let behind = move |leaf: Vec<String>| [vec![key.clone()], leaf].concat();
        leaves(value).into_iter().map(behind).collect::<Vec<_>>()
    };
    table.iter().flat_map(below).collect()
}

/// SHA-256, as hexadecimal digits, of what a suite asks: results with the same hash are comparable.
///
/// It is taken of what all layers make, so that comments, the order of keys and other words for the
/// same number do not change it. Words for people, the server and whatever belongs to it (its
/// tokenizer too), this client and the seed are not in it.
fn hash(study: &StudySpec, files: &mut Files) -> Result<String> {
    let Some(suite) = study.suite() else { return Ok(String::new()) };
    let mut scenarios = Vec::new();
    for (Condition { name, spec }, Scenario { levels, waves, .. }) in
        study.conditions.iter().zip(&suite.scenarios)
    {
        let mut workload = Workload { tokenizer: None, ..spec.workload.clone() };
        let mut held = Vec::new();
        files.replace(spec, &mut workload.source, &mut held)?;
        let mut slos: Vec<String> = spec.slos.iter().map(ToString::to_string).collect();
        slos.sort_unstable();
        let mut scenario = json!({
            "name": name,
            "api": spec.api,
            "workload": workload,
            "files": held,
            "load": spec.load,
            "levels": levels,
            "slo": slos,
            "limits": spec.limits,
        });
        // Suites from before there were waves keep their hash.
        if let Some(waves) = waves {
            scenario["waves"] = waves.get().into();
        }
        scenarios.push(scenario);
    }
    let repetition = &study.repetition;
    let mut asked = json!({
        // Counts what this program may come to mean by the same words.
        "version": 1,
        "prompts": suite.prompts,
        "order": study.order,
        "repetition": {
            "runs": repetition.runs,
            "cool_down": repetition.cool_down,
            // How is the server's affair; that it happens empties its cache.
            "restarts": repetition.restart.is_some(),
            "stop_at": repetition.stop_at,
        },
        "scenarios": scenarios,
    });
    asked.sort_all_objects();
    Ok(sha256(asked.to_string().as_bytes()))
}

/// The contents of files, which replace their paths. Each is read once, however often a suite is
/// hashed.
#[derive(Debug, Default)]
struct Files(BTreeMap<(PathBuf, String), FileContent>);

/// The kind of a file, named or found, and its SHA-256.
type FileContent = (String, String);

impl Files {
    /// Takes the names of files out of a source, and adds their contents in their order.
    fn replace(
        &mut self,
        spec: &Spec,
        source: &mut Source,
        held: &mut Vec<FileContent>,
    ) -> Result<()> {
        let whole = source.clone();
        let (path, kind) = match source {
            Source::Dataset(data) => (&mut data.path, json!(data.kind.take())),
            Source::Trace(trace) => (&mut trace.path, json!(trace.kind.take())),
            Source::Sessions(recorded) => (&mut recorded.path, json!(recorded.kind.take())),
            Source::Saved { path, .. } => (path, Value::Null),
            Source::Mix(parts) => {
                return parts
                    .iter_mut()
                    .try_for_each(|it| self.replace(spec, &mut it.source, held));
            }
            Source::Synthetic(_)
            | Source::VllmRandom(_)
            | Source::Fixed(_)
            | Source::Agents(_)
            | Source::Conversations(_) => return Ok(()),
        };
        let key = (std::mem::take(path), kind.to_string());
        let found = if let Some(found) = self.0.get(&key) {
            found.clone()
        } else {
            // Without the tokenizer: the content does not depend on it, and counting takes long.
            let workload = Workload { source: whole, tokenizer: None, ..spec.workload.clone() };
            let inputs = Inputs::gather(&Spec { workload, ..spec.clone() })?;
            let file = inputs.materials().files.last();
            let file = file.ok_or_else(|| Failure::internal("nothing is known of a file"))?;
            (file.kind.clone(), file.sha256.clone())
        };
        held.push(found.clone());
        self.0.insert(key, found);
        Ok(())
    }
}
