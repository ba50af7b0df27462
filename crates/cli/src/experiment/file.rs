//! Reads an experiment from a file, from the built-in ones, or from `--set KEY=VALUE`: TOML to a tree,
//! with the line of each key.

use std::ops::Range;
use std::path::Path;

use inferometer_model::file;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::layer::{Layer, Origins, join_slos};
use super::schema::{Lists, join};
use crate::failure::{Failure, Result};

/// Keys that name files, which are looked for beside the experiment file.
pub(super) const PATHS: [&str; 9] = [
    "api_key_file",
    "dataset",
    "prompt_file",
    "trace",
    "plan",
    "tools",
    "sessions",
    "image_files",
    "audio_files",
];

/// The file's layer; the files that it names are beside it.
pub(super) fn read(path: &Path) -> Result<Layer> {
    let mut layer = parse(path, &text(path, "experiment")?)?.checked(Lists::InOrder)?;
    layer.find_files_beside(path);
    Ok(layer)
}

/// The text of a file of this kind.
pub(crate) fn text(path: &Path, kind: &str) -> Result<String> {
    // A larger file is a mistake, such as a dataset.
    file::read_text(path, 16 << 20).map_err(|error| {
        let failure = Failure::usage(format!("{kind} {}: {error}", path.display()));
        let is_too_large = error.kind() == std::io::ErrorKind::FileTooLarge;
        if is_too_large { failure.hint(format!("{kind}s are a few lines")) } else { failure }
    })
}

/// The tree as it is written, not checked yet.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Layer> {
    let table = DeTable::parse(text).map_err(|error| syntax_error(path, text, &error))?;
    let mut origins = Origins::default();
    let line_ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end).collect();
    let tree = plain_table(table.get_ref(), "", &mut |key, span| {
        let line = line_ends.partition_point(|end| *end < span.start) + 1;
        origins.0.insert(key, format!("{}:{line}", path.display()));
    });
    Ok(Layer { tree, origins })
}

fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let start = error.span().map_or(0, |span| span.start);
    let (line, column) = line_and_column(text, start);
    let shown = format!(" {line} | {}", text.lines().nth(line - 1).unwrap_or_default());
    let margin = " ".repeat(line.to_string().len());
    let mark = format!(" {margin} | {}^", " ".repeat(column - 1));
    Failure::usage(format!("{}:{line}:{column}: {}", path.display(), error.message()))
        .shown(vec![shown, mark])
        .hint("this is not TOML; text and times are written in quotes, such as duration = \"30s\"")
}

/// Both counted from one, the column in characters.
fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Receives the path and the position of a key.
type Note<'a> = &'a mut dyn FnMut(String, Range<usize>);

/// The table as plain values; `note` is called with the path and the position of every key.
fn plain_table(table: &DeTable<'_>, above: &str, note: Note<'_>) -> Value {
    let entries = table.iter().map(|(key, value)| {
        let name = key.get_ref().to_string();
        let path = join(above, &name);
        note(path.clone(), key.span());
        (name, plain_value(value, &path, note))
    });
    Value::Object(entries.collect())
}

fn plain_value(value: &Spanned<DeValue<'_>>, path: &str, note: Note<'_>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => {
            let (digits, radix) = (number.as_str(), number.radix());
            let signed = i64::from_str_radix(digits, radix).map(Value::from);
            let number = signed.or_else(|_| u64::from_str_radix(digits, radix).map(Value::from));
            number.unwrap_or_else(|_| digits.into())
        }
        // JSON has no infinity; a rate takes it as text.
        DeValue::Float(number) => {
            let digits = number.as_str();
            let number = digits.parse().ok().and_then(serde_json::Number::from_f64);
            number.map_or_else(|| digits.trim_start_matches('+').into(), Value::Number)
        }
        DeValue::Boolean(truth) => (*truth).into(),
        DeValue::Datetime(moment) => moment.to_string().into(),
        DeValue::Array(items) => {
            let items = items.iter().enumerate().map(|(place, item)| {
                let path = join(path, &place.to_string());
                note(path.clone(), item.span());
                plain_value(item, &path, note)
            });
            Value::Array(items.collect())
        }
        DeValue::Table(table) => plain_table(table, path, note),
    }
}

impl Layer {
    /// Makes paths relative to the folder of the file that names them.
    pub(crate) fn find_files_beside(&mut self, file: &Path) {
        let Some(folder) = file.parent() else { return };
        let beside = |path: &str| folder.join(path).to_string_lossy().into_owned();
        let find = |table: &mut Map<String, Value>| {
            for (key, path) in table {
                let Value::String(path) = path else { continue };
                // A tokenizer may be a name on the hub, and the source of server facts a command.
                let may_be_file = matches!(key.as_str(), "tokenizer" | "server_info");
                let is_on_hub = key == "dataset" && path.starts_with("hf:");
                if PATHS.contains(&key.as_str()) && !is_on_hub
                    || (may_be_file && folder.join(&*path).exists())
                {
                    *path = beside(path);
                }
            }
        };
        for table in ["target", "workload"] {
            let Some(Value::Object(table)) = self.tree.get_mut(table) else { continue };
            find(table);
            let parts = table.get_mut("mix").and_then(Value::as_array_mut).into_iter().flatten();
            parts.filter_map(Value::as_object_mut).for_each(find);
            table.get_mut("body").and_then(Value::as_object_mut).into_iter().for_each(find);
        }
        if let Some(Value::String(path)) = self.tree.pointer_mut("/deploy/folder") {
            *path = beside(path);
        }
    }
}

/// Experiments that come with the program, by their names.
pub(super) const BUILT_IN: [(&str, &str); 1] = [("r3", include_str!("builtin/r3.toml"))];

/// A built-in one by its name, unless a file is called so; else a file.
pub(super) fn read_named(path: &Path) -> Result<Layer> {
    match BUILT_IN.iter().find(|(name, _)| Path::new(name) == path && !path.is_file()) {
        Some((name, text)) => {
            let shown = format!("{name}.toml (built in)");
            parse(Path::new(&shown), text)?.checked(Lists::InOrder)
        }
        None => read(path),
    }
}

/// All of them as one layer over a file of this schema.
pub(crate) fn read_sets(sets: &[String], schema: &Value) -> Result<Layer> {
    let mut all = Layer::default();
    for typed in sets {
        let mut one = read_set(typed)?;
        one.check_by(schema, Lists::ByPlace)?;
        join_slos(&mut one.tree);
        all.merge(one)?;
    }
    Ok(all)
}

fn read_set(typed: &str) -> Result<Layer> {
    let (path, value) = typed.split_once('=').unwrap_or((typed, ""));
    let (path, value) = (path.trim(), value.trim());
    // Only the key is repeated: a value may hold what should not be shown.
    let wanted = |why: &str| {
        Failure::usage(format!("--set {path}: {why}"))
            .hint("write it as TABLE.KEY=VALUE, such as --set load.rate=5")
    };
    if !typed.contains('=') {
        return Err(wanted("there is no `=`"));
    }
    // What is not a value of TOML is text without its quotes: most shells remove them.
    let quoted = Value::from(value).to_string();
    let parse = |value: &str| {
        // A line break would begin another key.
        if value.is_empty() || path.contains('\n') {
            return None;
        }
        let text = format!("{path} = {value}");
        let table = DeTable::parse(&text).ok().filter(|table| table.get_ref().len() == 1)?;
        let mut origins = Origins::default();
        let tree = plain_table(table.get_ref(), "", &mut |key, _| {
            origins.0.insert(key, format!("--set {path}"));
        });
        Some(Layer { tree, origins })
    };
    parse(value).or_else(|| parse(&quoted)).ok_or_else(|| wanted("this is not a key"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        let text = "ab\ncdé = 1\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 3), (2, 1));
        assert_eq!(line_and_column(text, text.len() - 2), (2, 7));
        assert_eq!(line_and_column(text, text.len()), (3, 1));
    }

    #[test]
    fn numbers_of_every_kind_are_kept() {
        let text = "a = 0x1F\nb = 1_000\nc = -3\nd = inf\ne = 2.5\nf = 2026-01-02";
        let table = DeTable::parse(text).unwrap();
        let plain = plain_table(table.get_ref(), "", &mut |_, _| ());
        let wanted = serde_json::json!({
            "a": 31, "b": 1000, "c": -3, "d": "inf", "e": 2.5, "f": "2026-01-02",
        });
        assert_eq!(plain, wanted);
    }

    #[track_caller]
    fn assert_reads(typed: &str, wanted: &Value) {
        assert_eq!(&read_set(typed).unwrap().tree, wanted, "{typed}");
    }

    #[test]
    fn values_are_those_of_toml_or_bare_text() {
        assert_reads("load.rate=5", &json!({ "load": { "rate": 5 } }));
        assert_reads("load.duration = 30s", &json!({ "load": { "duration": "30s" } }));
        assert_reads("target.model=\"a b\"", &json!({ "target": { "model": "a b" } }));
        assert_reads("target.model=", &json!({ "target": { "model": "" } }));
        let lora = json!({ "workload": { "body": { "lora": ["a", "b"] } } });
        assert_reads("workload.body.lora=[\"a\", \"b\"]", &lora);
        let weight = json!({ "workload": { "mix": { "0": { "weight": 2 } } } });
        assert_reads("workload.mix.0.weight=2", &weight);
        assert_reads("slo.ttft.p99=500ms", &json!({ "slo": { "ttft": { "p99": "500ms" } } }));
        let url = json!({ "target": { "url": "http://h:1/?a=b" } });
        assert_reads("target.url=http://h:1/?a=b", &url);
    }

    #[test]
    fn what_has_no_key_is_refused() {
        for wrong in ["load.rate", "=5", "a b=5", "load..rate=5"] {
            assert!(read_set(wrong).is_err(), "{wrong}");
        }
    }
}
