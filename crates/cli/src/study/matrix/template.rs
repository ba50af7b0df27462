//! Placeholders of `[deploy]` whose values a cell gives. Those that are known only when a server
//! starts stay as they are.

use std::cell::RefCell;

use inferometer_model::study::{Cell, MatrixModel, Preset};
use inferometer_target::deploy::placeholder::{escaped, fill_planned};
use serde_json::{Map, Value};

use super::{MatrixFile, Owned};
use crate::arguments::Grammar;

/// Keys whose texts a shell reads.
const SHELL: [&str; 4] = ["up", "url", "logs", "down"];
const KNOWN: [&str; 11] = [
    "preset",
    "model",
    "label",
    "context",
    "tp",
    "pp",
    "gpus",
    "strategy",
    "flags",
    "flag:NAME",
    "value:NAME",
];

/// What placeholders stand for in one cell.
struct Placeholders<'a> {
    cell: &'a Cell,
    preset: &'a Preset,
    model: &'a MatrixModel,
    /// What the preset and the model say beyond their names.
    owned: [&'a Owned; 2],
}

/// The table with the values of the cell filled in; else the key that is wrong, and why.
pub(super) fn fill_table(
    deploy: &Value,
    file: &MatrixFile,
    cell: &Cell,
) -> Result<Value, (String, String)> {
    let (preset, model) = (cell.preset as usize, cell.model as usize);
    let placeholders = Placeholders {
        cell,
        preset: &file.matrix.presets[preset],
        model: &file.matrix.models[model],
        owned: [&file.presets[preset], &file.models[model]],
    };
    let Some(table) = deploy.as_object() else { return Ok(deploy.clone()) };
    let mut full = Map::new();
    for (key, value) in table {
        let value = match value.as_str() {
            // Split first: what is put into a word stays in it.
            Some(text) if key == "command" => shlex::split(text)
                .ok_or_else(|| "a quote is not closed".to_owned())
                .and_then(|words| placeholders.fill_value(&words.into())),
            Some(text) if SHELL.contains(&key.as_str()) => {
                placeholders.fill(text, true).map(Value::String)
            }
            _ => placeholders.fill_value(value),
        };
        let wrong = |why: String| (format!("deploy.{key}"), format!("`deploy.{key}`: {why}"));
        full.insert(key.clone(), value.map_err(wrong)?);
    }
    Ok(Value::Object(full))
}

impl Placeholders<'_> {
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
                     leave them out"
                ));
            }
            Ok(Some(quoted))
        };
        let refused = RefCell::new(None);
        let lookup = |name: &str| {
            value(name).unwrap_or_else(|why| {
                refused.replace(Some(why));
                None
            })
        };
        let filled = fill_planned(text, &KNOWN, &lookup);
        filled.map_err(|error| refused.take().unwrap_or_else(|| error.to_string()))
    }

    /// The words that a placeholder stands for; `None` where there is no such name.
    fn words(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        let Self { cell, preset, model, owned } = self;
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
                    let known =
                        if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
                    (cell.flags.get(flag).cloned(), format!("[flags] has {known}"))
                }
                Some(("value", key)) => {
                    let value = owned.iter().find_map(|owned| owned.values.get(key));
                    let owners = format!("`{}` and `{}`", preset.name, model.label);
                    let value = value.map(|value| value.0.concat());
                    (value, format!("no such key in the `values` of {owners}"))
                }
                _ => return Ok(None),
            },
        };
        let nothing = || format!("nothing is known for {{{name}}}: {why}");
        value.map(|value| Some(vec![value])).ok_or_else(nothing)
    }

    /// As most servers read them; what is off is left out.
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
