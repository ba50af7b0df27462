//! One cell as an experiment: its server, its workload, and warnings about cells that measure nothing.
//!
//! Placeholders of `[deploy]` stand for values of the cell. Those that are known only when a server
//! starts stay as they are.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use inferometer_model::Spec;
use inferometer_model::spec::{EngineTable, Source, TargetSpec};
use inferometer_model::study::{Cell, Level, Matrix, StudySpec};
use inferometer_study::play::unfit;
use inferometer_target::deploy::placeholder::{escaped, fill_planned};
use serde_json::{Map, Value, json};

use super::{MatrixFile, cell_name, coordinates, engine_key, to_texts};
use crate::arguments::{Grammar, MatrixArguments};
use crate::draft::{Drafted, draft_scenario};
use crate::experiment::{Layer, nearest};
use crate::failure::{Failure, Result};
use crate::study::sweep::spec_at_levels;

impl MatrixFile {
    /// The spec of a cell at the first of its levels, after all levels were checked.
    pub(super) fn cell_spec(
        &self,
        cell: &Cell,
        levels: &[Level],
        arguments: &MatrixArguments,
    ) -> Result<(Drafted, Spec)> {
        let about =
            |failure: Failure| failure.about(&format!("cell `{}`", cell_name(&self.matrix, cell)));
        let layer = self.cell_layer(cell)?;
        let mut drafted = draft_scenario(&arguments.headers, layer).map_err(about)?;
        drafted.spec.workload.seed = self.table.seed;
        let spec =
            spec_at_levels(&drafted, levels, None, 1, arguments.virtual_time).map_err(about)?;
        Ok((drafted, spec))
    }

    fn cell_layer(&self, cell: &Cell) -> Result<Layer> {
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
        let deploy = Placeholders { file: self, cell }.fill_table(&layer.tree["deploy"]);
        layer.tree["deploy"] = deploy.map_err(|(key, why)| layer.origins.failure(&key, &why))?;
        layer.tree["target"]["model"] = self.matrix.models[cell.model as usize].name.clone().into();
        Ok(layer)
    }

    /// The keys of the embedded engine from model, preset and flags, and those that follow from the cell.
    fn cell_engine(&self, cell: &Cell) -> Result<Map<String, Value>> {
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
                "add engine = { hardware = \"…\" } to it (inferometer engine --list shows them), or \
                 write in [deploy] how servers are deployed",
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
                let what =
                    format!("`{key}` is {said} here, but {by} it {value}; remove one of them");
                return Err(self.origins.failure(&self.engine_key_path(cell, key), &what));
            }
            engine.insert(key.to_owned(), value);
        }
        Ok(engine)
    }

    /// The path of a key of the engine of a cell in the file.
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
    /// mistake that affects every cell is reported at its position in the file.
    pub(super) fn foreseen_failure(
        &self,
        cell: &Cell,
        engine: &EngineTable,
    ) -> Result<Option<Vec<String>>> {
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
            None => failure.about(&format!("cell `{}`", cell_name(&self.matrix, cell))),
        })
    }
}

/// Flags of the embedded engine are the keys of its table.
fn known_engine_key(flag: &str) -> Result<String> {
    let known = serde_json::to_value(EngineTable::default())
        .map_err(|error| Failure::internal(format!("[engine]: {error}")))?;
    let known: Vec<&str> =
        known.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let key = engine_key(flag);
    if known.contains(&key.as_str()) {
        return Ok(key);
    }
    let near = nearest(&key, &known).map(|near| format!("; did you mean `{near}`?"));
    let near = near.unwrap_or_else(|| format!("; it has {}", known.join(", ")));
    Err(Failure::usage(format!("[flags] the embedded engine has no `{flag}`{near}")))
}

/// A warning for cells that deploy the same server, because an axis is varied that the servers
/// ignore. Both strategies on one GPU have a separate note.
pub(super) fn same_servers(study: &StudySpec, matrix: &Matrix) -> Option<String> {
    let mut servers: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
    for (condition, cell) in study.conditions.iter().zip(&matrix.cells) {
        let Spec { target, engine, model, .. } = &condition.spec;
        servers.entry(json!([target, engine, model]).to_string()).or_default().push(cell);
    }
    let (mut axes, mut cells) = (BTreeSet::new(), 0);
    for alike in servers.values() {
        let preset = matrix.presets.get(alike[0].preset as usize);
        let is_single = preset.is_some_and(|preset| preset.gpus == Some(1));
        let ours = coordinates(matrix, alike[0]);
        let mut found = BTreeSet::new();
        for other in &alike[1..] {
            let theirs = coordinates(matrix, other);
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
    let placeholder = |axis: &String| match axis.as_str() {
        "preset" | "model" | "context" => format!("{{{axis}}}"),
        "strategy" => "{tp} and {pp}".to_owned(),
        flag => format!("{{flag:{flag}}}"),
    };
    let axes: Vec<String> = axes.into_iter().collect();
    let placeholders = axes.iter().map(placeholder).collect::<Vec<_>>().join(" and ");
    let is_deployed = study.conditions.iter().any(|it| it.spec.target != TargetSpec::Embedded);
    let remedy = if is_deployed {
        format!("put {placeholders} into [deploy], or do not vary it")
    } else {
        "make their engines differ, or leave one out".to_owned()
    };
    let axes = axes.join(" and ");
    (!axes.is_empty()).then(|| {
        format!(
            "{cells} cells deploy the same server as others and differ by {axes} alone; {remedy}"
        )
    })
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
    let short: Vec<String> =
        short.iter().map(|(context, needed)| format!("{context} (needed: {needed})")).collect();
    (!short.is_empty()).then(|| {
        format!(
            "a prompt and its output together are longer than the context of {}: such requests are \
             refused or cut; set shorter lengths for it in [workload.by_context]",
            short.join(", ")
        )
    })
}

/// Tokens of the shortest request, where they are known without a tokenizer.
pub(crate) fn needed_tokens(spec: &Spec) -> Option<u32> {
    let (read, written) = if let Source::Synthetic(it) = &spec.workload.source {
        (it.input.least(), &it.output)
    } else if let Source::Fixed(it) = &spec.workload.source {
        // A prompt has a token at least.
        (1, &it.output)
    } else {
        return None;
    };
    Some(written.least().saturating_add(read))
}

/// Keys with texts that a shell reads.
const SHELL: [&str; 4] = ["up", "url", "logs", "down"];
const KNOWN: &str = "preset model label context tp pp gpus strategy flags flag:NAME value:NAME";

/// The values of placeholders in one cell.
struct Placeholders<'a> {
    file: &'a MatrixFile,
    cell: &'a Cell,
}

impl Placeholders<'_> {
    /// The table with the values of the cell filled in; else the key with an error, and the error.
    fn fill_table(&self, deploy: &Value) -> Result<Value, (String, String)> {
        let Some(table) = deploy.as_object() else { return Ok(deploy.clone()) };
        let mut full = Map::new();
        for (key, value) in table {
            let value = match value.as_str() {
                // Split first: a value with spaces stays one argument.
                Some(text) if key == "command" => shlex::split(text)
                    .ok_or_else(|| "a quote is not closed".to_owned())
                    .and_then(|words| self.fill_value(&words.into())),
                Some(text) if SHELL.contains(&key.as_str()) => {
                    self.fill(text, true).map(Value::String)
                }
                _ => self.fill_value(value),
            };
            let wrong = |why: String| (format!("deploy.{key}"), format!("`deploy.{key}`: {why}"));
            full.insert(key.clone(), value.map_err(wrong)?);
        }
        Ok(Value::Object(full))
    }

    fn fill_value(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill(text, false).map(Value::String),
            Value::Array(items) => {
                let mut filled = Vec::new();
                for item in items {
                    // As many words as there are.
                    if item == "{flags}" {
                        filled.extend(self.flags().iter().map(|word| escaped(word).into()));
                    } else {
                        filled.push(self.fill_value(item)?);
                    }
                }
                Ok(Value::Array(filled))
            }
            Value::Object(table) => {
                let fill =
                    |(key, value): (&String, &Value)| Ok((key.clone(), self.fill_value(value)?));
                table.iter().map(fill).collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    /// Values are quoted where a shell reads the text.
    fn fill(&self, text: &str, for_shell: bool) -> Result<String, String> {
        let in_quotes = if for_shell { quoted_placeholders(text) } else { Vec::new() };
        let value = |name: &str| -> Result<Option<String>, String> {
            let Some(words) = self.words(name)? else { return Ok(None) };
            let plain = words.join(" ");
            if !for_shell {
                return Ok(Some(plain));
            }
            let quoted = shlex::try_join(words.iter().map(String::as_str))
                .map_err(|_| "a value with a zero byte cannot be given to a shell".to_owned())?;
            if in_quotes.contains(&name) && quoted != plain {
                return Err(format!(
                    "the value of {{{name}}} is quoted for the shell, and is already in quotes; \
                     remove them"
                ));
            }
            Ok(Some(quoted))
        };
        let refused = RefCell::new(None);
        let lookup = |name: &str| {
            let keep = |why: String| drop(refused.replace(Some(why)));
            value(name).map_err(keep).ok().flatten()
        };
        let known: Vec<&str> = KNOWN.split(' ').collect();
        let filled = fill_planned(text, &known, &lookup);
        filled.map_err(|error| refused.take().unwrap_or_else(|| error.to_string()))
    }

    /// The arguments that a placeholder stands for; `None` where the name is unknown.
    fn words(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        let Self { file, cell } = self;
        let (preset, model) = (cell.preset as usize, cell.model as usize);
        let keys = [&file.presets[preset], &file.models[model]];
        let (preset, model) = (&file.matrix.presets[preset], &file.matrix.models[model]);
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let no_gpus = format!("preset `{}` has no `gpus`", preset.name);
        let (value, why) = match name {
            "preset" => (Some(preset.name.clone()), String::new()),
            "model" => (Some(model.name.clone()), String::new()),
            "label" => (Some(model.label.clone()), String::new()),
            "context" => (number(cell.context), "the matrix has no `contexts`".to_owned()),
            "tp" => (number(cell.tp), no_gpus),
            "pp" => (number(cell.pp), no_gpus),
            "gpus" => (number(preset.gpus), no_gpus),
            "strategy" => {
                let strategy = cell.strategy.map(|strategy| strategy.write());
                (strategy, "the matrix has no `strategies`".to_owned())
            }
            "flags" => return Ok(Some(self.flags())),
            _ => match name.split_once(':') {
                Some(("flag", flag)) => {
                    let known: Vec<&str> = cell.flags.keys().map(String::as_str).collect();
                    let value = cell.flags.get(flag).cloned();
                    (value, format!("the names in [flags] are: {}", known.join(", ")))
                }
                Some(("value", key)) => {
                    let value = keys.iter().find_map(|keys| keys.values.get(key));
                    let owners = format!("`{}` and `{}`", preset.name, model.label);
                    let value = value.map(|value| to_texts(value).concat());
                    (value, format!("no such key in the `values` of {owners}"))
                }
                _ => return Ok(None),
            },
        };
        let nothing = || format!("there is no value for {{{name}}}: {why}");
        value.map(|value| Some(vec![value])).ok_or_else(nothing)
    }

    /// As most servers read them; a flag that is `false` is left out.
    fn flags(&self) -> Vec<String> {
        let word = |(name, value): (&String, &String)| {
            let name = name.replace('_', "-");
            match value.as_str() {
                "true" => Some(format!("--{name}")),
                "false" => None,
                value => Some(format!("--{name}={value}")),
            }
        };
        self.cell.flags.iter().filter_map(word).collect()
    }
}

/// Placeholders of a shell's text that stand between quotes.
fn quoted_placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut quote = None;
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match (sign, quote) {
            ('\\', None | Some('"')) => drop(signs.next()),
            ('\'' | '"', None) => quote = Some(sign),
            (closing, Some(open)) if closing == open => quote = None,
            ('{', Some(_)) => names.extend(text[at + 1..].split(['{', '}']).next()),
            _ => {}
        }
    }
    names
}
