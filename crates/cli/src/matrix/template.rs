//! Placeholders of [deploy] that a cell gives a meaning to. Those that are known only when a server
//! starts stay as they are.

use inferometer_model::campaign::Cell;
use serde_json::{Map, Value};

use super::file::MatrixFile;
use crate::experiment::nearest;

/// What a placeholder stands for.
#[derive(Debug, PartialEq)]
enum Meaning {
    Word(String),
    /// As many words as there are.
    Words(Vec<String>),
    /// It is filled when the server starts.
    Later,
}

/// Texts that a shell reads.
const SHELL: [&str; 4] = ["up", "url", "logs", "down"];
const KNOWN: [&str; 12] = [
    "preset",
    "model",
    "label",
    "context",
    "tp",
    "pp",
    "gpus",
    "strategy",
    "flags",
    "port",
    "name",
    "flag:NAME",
];

/// The table with all that the cell says in its places.
pub(super) fn filled(deploy: &Value, file: &MatrixFile, cell: &Cell) -> Result<Value, String> {
    let find = |name: &str| meaning(name, file, cell);
    let Some(table) = deploy.as_object() else { return Ok(deploy.clone()) };
    let mut full = Map::new();
    for (key, value) in table {
        let value = match value {
            // Split first: what is put into a word stays in it.
            Value::String(text) if key == "command" => {
                let words = shlex::split(text).ok_or("`deploy.command`: a quote is not closed")?;
                fill_value(&words.into(), &find)
            }
            Value::String(text) if SHELL.contains(&key.as_str()) => {
                fill(text, &find, Inside::Shell).map(Value::String)
            }
            other => fill_value(other, &find),
        };
        full.insert(key.clone(), value.map_err(|why| format!("`deploy.{key}`: {why}"))?);
    }
    Ok(Value::Object(full))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Text,
    Shell,
}

fn fill_value(
    value: &Value,
    find: &impl Fn(&str) -> Result<Meaning, String>,
) -> Result<Value, String> {
    match value {
        Value::String(text) => fill(text, find, Inside::Text).map(Value::String),
        Value::Array(items) => {
            let mut filled = Vec::new();
            for item in items {
                match item.as_str().and_then(alone).map(find).transpose()? {
                    Some(Meaning::Words(words)) => {
                        filled.extend(words.iter().map(|word| Value::String(braced(word))));
                    }
                    Some(Meaning::Word(_) | Meaning::Later) | None => {
                        filled.push(fill_value(item, find)?);
                    }
                }
            }
            Ok(Value::Array(filled))
        }
        Value::Object(table) => {
            let fill =
                |(key, value): (&String, &Value)| Ok((key.clone(), fill_value(value, find)?));
            table.iter().map(fill).collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

/// The name of a placeholder that is all of a word.
fn alone(word: &str) -> Option<&str> {
    let name = word.strip_prefix('{')?.strip_suffix('}')?;
    (!name.contains(['{', '}'])).then_some(name)
}

fn fill(
    text: &str,
    find: &impl Fn(&str) -> Result<Meaning, String>,
    inside: Inside,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        if let Some(after) = after.strip_prefix('{') {
            // A brace itself; it is read again when the server starts.
            filled += "{{";
            rest = after;
            continue;
        }
        let (name, after) = after.split_once('}').ok_or_else(|| {
            format!("`{{{after}` is not closed; a brace itself is written `{{{{`")
        })?;
        match find(name)? {
            Meaning::Word(word) => filled += &braced(&quoted(&word, inside)?),
            Meaning::Words(words) => {
                let words: Vec<String> =
                    words.iter().map(|word| quoted(word, inside)).collect::<Result<_, _>>()?;
                filled += &braced(&words.join(" "));
            }
            Meaning::Later => filled += &format!("{{{name}}}"),
        }
        rest = after;
    }
    Ok(filled + rest)
}

fn quoted(word: &str, inside: Inside) -> Result<String, String> {
    match inside {
        Inside::Text => Ok(word.to_owned()),
        Inside::Shell => shlex::try_quote(word)
            .map(std::borrow::Cow::into_owned)
            .map_err(|_| "a value with a zero byte cannot be given to a shell".to_owned()),
    }
}

/// So that it is not taken for a placeholder when the server starts.
fn braced(word: &str) -> String {
    word.replace('{', "{{")
}

fn meaning(name: &str, file: &MatrixFile, cell: &Cell) -> Result<Meaning, String> {
    let preset = usize::try_from(cell.preset).ok().and_then(|place| file.presets.get(place));
    let model = usize::try_from(cell.model).ok().and_then(|place| file.models.get(place));
    let (Some(preset), Some(model)) = (preset, model) else {
        return Err("a cell of no preset or model".to_owned());
    };
    let said = |value: Option<String>, remedy: &str| {
        value.map(Meaning::Word).ok_or_else(|| format!("nothing is known for {{{name}}}: {remedy}"))
    };
    let gpus = || format!("preset `{}` has no `gpus`", preset.preset.name);
    match name {
        "preset" => Ok(Meaning::Word(preset.preset.name.clone())),
        "model" => Ok(Meaning::Word(model.model.name.clone())),
        "label" => Ok(Meaning::Word(model.model.label.clone())),
        "context" => said(number(cell.context), "the matrix has no `contexts`"),
        "tp" => said(number(cell.tp), &gpus()),
        "pp" => said(number(cell.pp), &gpus()),
        "gpus" => said(number(preset.preset.gpus), &gpus()),
        "strategy" => said(
            cell.strategy.map(|strategy| strategy.word().to_owned()),
            "the matrix has no `strategies`",
        ),
        "flags" => Ok(Meaning::Words(cell.flags.iter().filter_map(word).collect())),
        "port" | "name" => Ok(Meaning::Later),
        _ => match name.split_once(':') {
            Some(("env", _)) => Ok(Meaning::Later),
            Some(("flag", flag)) => {
                let known: Vec<&str> = cell.flags.keys().map(String::as_str).collect();
                let value = cell.flags.get(flag).cloned();
                said(value, &format!("[flags] has {}", listed(&known)))
            }
            Some(("value", value)) => {
                let own = preset.owned.values.get(value).or(model.owned.values.get(value));
                let owners = format!("`{}` and `{}`", preset.preset.name, model.model.label);
                said(own.cloned(), &format!("no such key in the `values` of {owners}"))
            }
            _ => Err(unknown(name)),
        },
    }
}

fn listed(known: &[&str]) -> String {
    if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
}

fn number(number: Option<u32>) -> Option<String> {
    number.map(|number| number.to_string())
}

/// As most servers read it; what is off is left out.
fn word((name, value): (&String, &String)) -> Option<String> {
    let name = name.replace('_', "-");
    match value.as_str() {
        "true" => Some(format!("--{name}")),
        "false" => None,
        value => Some(format!("--{name}={value}")),
    }
}

fn unknown(name: &str) -> String {
    let near = nearest(name, &KNOWN).map(|near| format!("did you mean {{{near}}}?"));
    let near = near.unwrap_or_else(|| {
        format!(
            "known are {}, {{value:NAME}} and {{env:NAME}}",
            KNOWN.map(|it| format!("{{{it}}}")).join(", ")
        )
    });
    format!("unknown placeholder {{{name}}}; {near} (a brace itself is written `{{{{`)")
}
