//! Data sets in JSON: one long array of conversations, or an object to a line.

use std::fmt;
use std::io::BufReader;

use inferometer_model::spec::{Lengths, OWN_FIELDS, TOKENS_MAX};
use inferometer_model::{Message, Prompt};
use serde::Deserialize;
use serde::de::{self, Deserializer as _, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::collect::{Collector, Output, Raw};
use crate::data_file::{DataFile, DataFileError, Position, reason_of};

/// The first two turns of each conversation: a prompt and a reference answer. Files have hundreds
/// of megabytes, so they are read as a stream.
pub(super) fn read_share_gpt(
    file: &mut DataFile,
    output: Option<&Lengths>,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let mut walk = Walk { output, collector, begun: 0, failure: None };
    let mut parser = serde_json::Deserializer::from_reader(BufReader::new(&mut *file));
    let parsed = parser.deserialize_seq(&mut walk).and_then(|()| parser.end());
    let (begun, failure) = (walk.begun, walk.failure);
    match (parsed, failure) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(failure)) => Err(failure),
        (Err(error), None) if error.is_io() => Err(file.failed(error.into())),
        (Err(error), None) => Err(file.wrong(Position::Item(begun.max(1)), reason(&error))),
    }
}

fn reason(error: &serde_json::Error) -> String {
    if error.is_eof() {
        format!("the file ends too early ({error}); is it whole?")
    } else {
        error.to_string()
    }
}

struct Walk<'w, 'c> {
    output: Option<&'w Lengths>,
    collector: &'w mut Collector<'c>,
    /// How many conversations have been begun.
    begun: u64,
    /// What a parser's error has no room for.
    failure: Option<DataFileError>,
}

#[derive(Deserialize)]
struct Conversation {
    conversations: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    value: String,
}

impl<'de> Visitor<'de> for &mut Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects with `conversations`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut conversations: A) -> Result<(), A::Error> {
        self.begun = 1;
        while let Some(conversation) = conversations.next_element::<Conversation>()? {
            if let Err(failure) = self.take(conversation) {
                self.failure = Some(failure);
                return Err(de::Error::custom("given up"));
            }
            self.begun += 1;
        }
        Ok(())
    }
}

impl Walk<'_, '_> {
    fn take(&mut self, conversation: Conversation) -> Result<(), DataFileError> {
        let mut turns = conversation.conversations.into_iter();
        let (Some(prompt), Some(answer)) = (turns.next(), turns.next()) else {
            self.collector.leave_out("fewer than two turns");
            return Ok(());
        };
        let output = match self.output {
            Some(lengths) => Output::Chosen(lengths.fixed()),
            None => Output::Reference(answer.value),
        };
        self.collector.push(Raw { prompt: Prompt::Text(prompt.value), output, fields: Map::new() })
    }
}

/// Names of an answer's length in data sets.
pub(super) const OUTPUT_KEYS: [&str; 3] = ["output_tokens", "max_tokens", "output_len"];
const BODY_KEYS: [&str; 2] = ["body", "extra_body"];

/// An object to a line: `prompt` or `messages`, and what belongs to this request alone.
pub(super) fn read_lines(
    file: &mut DataFile,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let path = file.path().to_path_buf();
    let mut lines = file.lines();
    while let Some((place, line)) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |reason| DataFileError::Wrong { path: path.clone(), place, reason };
        let object = serde_json::from_str::<Map<String, Value>>(line)
            .map_err(|error| wrong(format!("not a JSON object: {}", reason_of(&error))))?;
        let (raw, strangers) = item(object).map_err(wrong)?;
        for stranger in &strangers {
            collector.ignore("key", stranger);
        }
        collector.push(raw)?;
    }
    Ok(())
}

/// The item of a line, and the keys that mean nothing to us.
fn item(mut object: Map<String, Value>) -> Result<(Raw, Vec<String>), String> {
    let prompt = match (object.remove("prompt"), object.remove("messages")) {
        (Some(_), Some(_)) => return Err("both `prompt` and `messages`; leave one".to_owned()),
        (Some(Value::String(text)), None) => Prompt::Text(text),
        (Some(_), None) => return Err("`prompt` must be a text".to_owned()),
        (None, Some(messages)) => messages_of(messages)?,
        (None, None) => {
            let keys = object.keys().map(|key| format!("`{key}`")).collect::<Vec<_>>();
            let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
            return Err(format!("neither `prompt` nor `messages`; it has {keys}"));
        }
    };
    let output = match only_one(&mut object, &OUTPUT_KEYS)? {
        None | Some((_, Value::Null)) => Output::Unknown,
        Some((key, value)) => Output::Tokens(output_tokens(key, &value.to_string())?),
    };
    let fields = match only_one(&mut object, &BODY_KEYS)? {
        None | Some((_, Value::Null)) => Map::new(),
        Some((key, Value::Object(fields))) => {
            match OWN_FIELDS.iter().find(|own| fields.contains_key(**own)) {
                None => fields,
                Some(own) => {
                    return Err(format!(
                        "`{own}` in `{key}` is set by the measurement itself; leave it out \
                         (`output_tokens` beside `{key}` sets an answer's length)"
                    ));
                }
            }
        }
        Some((key, _)) => return Err(format!("`{key}` must be an object")),
    };
    let strangers = object.into_iter().map(|(key, _)| key).collect();
    Ok((Raw { prompt, output, fields }, strangers))
}

fn messages_of(messages: Value) -> Result<Prompt, String> {
    let messages: Vec<Message> = serde_json::from_value(messages)
        .map_err(|error| format!("`messages` must be a list of objects ({error})"))?;
    match messages.iter().position(|message| message.role().is_empty()) {
        None => Ok(Prompt::Messages(messages)),
        Some(place) => Err(format!("message {} has no `role`", place + 1)),
    }
}

/// The value of a key that has several names.
fn only_one(
    object: &mut Map<String, Value>,
    names: &[&'static str],
) -> Result<Option<(&'static str, Value)>, String> {
    let mut found = None;
    for name in names {
        if let Some(value) = object.remove(*name)
            && let Some((other, _)) = found.replace((*name, value))
        {
            return Err(format!("both `{other}` and `{name}`; leave one"));
        }
    }
    Ok(found)
}

pub(super) fn output_tokens(key: &str, text: &str) -> Result<u32, String> {
    let tokens = text.trim().parse().ok();
    let allowed = tokens.filter(|tokens| (1..=TOKENS_MAX).contains(tokens));
    allowed.ok_or_else(|| format!("`{key}` is {text}, not a whole number from 1 to {TOKENS_MAX}"))
}

pub(super) fn read_table(
    file: &mut DataFile,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let path = file.path().to_path_buf();
    let mut table = file.table()?;
    let prompts = table.needed("prompt")?;
    let outputs = OUTPUT_KEYS.iter().find_map(|name| Some((*name, table.column(name)?)));
    let strangers: Vec<String> = table
        .columns()
        .enumerate()
        .filter(|(place, _)| *place != prompts && outputs.is_none_or(|(_, known)| known != *place))
        .map(|(_, name)| name.to_owned())
        .collect();
    while let Some((place, row)) = table.next()? {
        let output =
            match outputs.map(|(name, column)| (name, row.get(column).unwrap_or(""))) {
                None | Some((_, "")) => Output::Unknown,
                Some((name, text)) => {
                    Output::Tokens(output_tokens(name, text).map_err(|reason| {
                        DataFileError::Wrong { path: path.clone(), place, reason }
                    })?)
                }
            };
        let prompt = Prompt::Text(row.get(prompts).unwrap_or_default().to_owned());
        collector.push(Raw { prompt, output, fields: Map::new() })?;
        for stranger in &strangers {
            collector.ignore("column", stranger);
        }
    }
    Ok(())
}

pub(super) fn read_text_table(
    file: &mut DataFile,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let mut lines = file.lines();
    while let Some((_, line)) = lines.next()? {
        if line.trim().is_empty() {
            collector.leave_out("blank line");
            continue;
        }
        let prompt = Prompt::Text(line.to_owned());
        collector.push(Raw { prompt, output: Output::Unknown, fields: Map::new() })?;
    }
    Ok(())
}
