//! Placeholders of `[deploy]` that a cell gives a meaning to. Those that are known only when a server
//! starts stay as they are.

use std::cell::RefCell;

use inferometer_model::campaign::Cell;
use inferometer_target::deploy::placeholder::{escaped, fill_planned};
use serde_json::{Map, Value};

use super::file::{MatrixFile, ModelFile, PresetFile};

/// What placeholders stand for in one cell.
struct Meanings<'a> {
    cell: &'a Cell,
    preset: &'a PresetFile,
    model: &'a ModelFile,
}

/// Who reads a text: only the server, or a shell before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Server,
    Shell,
}

/// Texts that a shell reads.
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

/// The table with all that the cell says in its places; else the key that is wrong, and why.
pub(super) fn filled(
    deploy: &Value,
    file: &MatrixFile,
    cell: &Cell,
) -> Result<Value, (String, String)> {
    let place = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
    let (Some(preset), Some(model)) =
        (file.presets.get(place(cell.preset)), file.models.get(place(cell.model)))
    else {
        return Err(("deploy".to_owned(), "a cell of no preset or model".to_owned()));
    };
    let meanings = Meanings { cell, preset, model };
    let Some(table) = deploy.as_object() else { return Ok(deploy.clone()) };
    let mut full = Map::new();
    for (key, value) in table {
        let value = match value {
            // Split first: what is put into a word stays in it.
            Value::String(text) if key == "command" => shlex::split(text)
                .ok_or_else(|| "a quote is not closed".to_owned())
                .and_then(|words| meanings.fill_value(&words.into())),
            Value::String(text) if SHELL.contains(&key.as_str()) => {
                meanings.fill(text, Reader::Shell).map(Value::String)
            }
            Value::String(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => meanings.fill_value(value),
        };
        let wrong = |why: String| (format!("deploy.{key}"), format!("`deploy.{key}`: {why}"));
        full.insert(key.clone(), value.map_err(wrong)?);
    }
    Ok(Value::Object(full))
}

impl Meanings<'_> {
    fn fill_value(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill(text, Reader::Server).map(Value::String),
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

    fn fill(&self, text: &str, reader: Reader) -> Result<String, String> {
        let in_quotes = if reader == Reader::Shell { in_quotes(text) } else { Vec::new() };
        let refused = RefCell::new(None);
        let lookup = |name: &str| match self.meaning(name, reader, &in_quotes) {
            Ok(value) => value,
            Err(why) => {
                refused.replace(Some(why));
                None
            }
        };
        let filled = fill_planned(text, &KNOWN, &lookup);
        filled.map_err(|error| refused.take().unwrap_or_else(|| error.to_string()))
    }

    /// As the reader needs it; `None` where there is no such name.
    fn meaning(
        &self,
        name: &str,
        reader: Reader,
        in_quotes: &[String],
    ) -> Result<Option<String>, String> {
        let Some(words) = self.words(name)? else { return Ok(None) };
        if reader == Reader::Server {
            return Ok(Some(words.join(" ")));
        }
        let quoted = shlex::try_join(words.iter().map(String::as_str))
            .map_err(|_| "a value with a zero byte cannot be given to a shell".to_owned())?;
        if in_quotes.iter().any(|it| it == name) && quoted != words.join(" ") {
            return Err(format!(
                "the value of {{{name}}} is quoted for the shell, and is already in quotes; \
                 leave them out"
            ));
        }
        Ok(Some(quoted))
    }

    fn words(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        let Self { cell, preset, model } = self;
        let gpus = || format!("preset `{}` has no `gpus`", preset.preset.name);
        let said = |value: Option<String>, why: &str| {
            let nothing = || format!("nothing is known for {{{name}}}: {why}");
            value.map(|value| Some(vec![value])).ok_or_else(nothing)
        };
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        match name {
            "preset" => said(Some(preset.preset.name.clone()), ""),
            "model" => said(Some(model.model.name.clone()), ""),
            "label" => said(Some(model.model.label.clone()), ""),
            "context" => said(number(cell.context), "the matrix has no `contexts`"),
            "tp" => said(number(cell.tp), &gpus()),
            "pp" => said(number(cell.pp), &gpus()),
            "gpus" => said(number(preset.preset.gpus), &gpus()),
            "strategy" => {
                let word = cell.strategy.map(|strategy| strategy.word().to_owned());
                said(word, "the matrix has no `strategies`")
            }
            "flags" => Ok(Some(self.flags())),
            _ => match name.split_once(':') {
                Some(("flag", flag)) => {
                    let known: Vec<&str> = cell.flags.keys().map(String::as_str).collect();
                    said(cell.flags.get(flag).cloned(), &format!("[flags] has {}", listed(&known)))
                }
                Some(("value", key)) => {
                    let own = preset.owned.values.get(key).or_else(|| model.owned.values.get(key));
                    let owners = format!("`{}` and `{}`", preset.preset.name, model.model.label);
                    said(own.cloned(), &format!("no such key in the `values` of {owners}"))
                }
                _ => Ok(None),
            },
        }
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

fn listed(known: &[&str]) -> String {
    if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
}

/// Placeholders of a shell's text that stand between quotes.
fn in_quotes(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut quote = None;
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match (sign, quote) {
            ('\\', None | Some('"')) => drop(signs.next()),
            ('\'' | '"', None) => quote = Some(sign),
            (closing, Some(open)) if closing == open => quote = None,
            ('{', Some(_)) => {
                let name = text[at + 1..].split(['{', '}']).next().unwrap_or_default();
                names.push(name.to_owned());
            }
            _ => {}
        }
    }
    names
}
