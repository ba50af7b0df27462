//! Files of parameters, as `vllm bench sweep serve` reads them, and how they change a command.

use std::path::Path;

use indexmap::IndexMap;
use inferometer_store::read_at_most;
use inferometer_target::deploy::secret;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::failure::Failure;

/// The key of the name of a combination.
const NAME_KEY: &str = "_benchmark_name";
const FILE_BYTES_MAX: u64 = 16 << 20;
const COMBINATIONS_MAX: usize = 10_000;

/// Parameters that belong together, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Combination {
    name: Option<String>,
    parameters: IndexMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ParameterFile {
    List(Vec<Entry>),
    Named(IndexMap<String, Entry>),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Object(IndexMap<String, Value>),
    Other(IgnoredAny),
}

/// A list of objects, or an object whose keys name them; without a file the command is run as it is.
pub(super) fn read(flag: &str, file: Option<&Path>) -> Result<Vec<Combination>, Failure> {
    let Some(path) = file else { return Ok(vec![Combination::default()]) };
    let about = |why: String| Failure::usage(format!("{flag} {}: {why}", path.display()));
    let bytes = read_at_most(path, FILE_BYTES_MAX)
        .map_err(Failure::from_usage)?
        .ok_or_else(|| about("there is no such file".to_owned()))?;
    combinations(&bytes)
        .map_err(|why| about(why).hint("such as [{\"max_num_seqs\": 64}, {\"max_num_seqs\": 128}]"))
}

fn combinations(json: &[u8]) -> Result<Vec<Combination>, String> {
    let file = serde_json::from_slice(json).map_err(|error| format!("is not JSON: {error}"))?;
    let (is_named, entries): (bool, Vec<(String, Entry)>) = match file {
        ParameterFile::List(list) => {
            (false, (0..).map(|number: usize| format!("entry {number}")).zip(list).collect())
        }
        ParameterFile::Named(named) => (true, named.into_iter().collect()),
        ParameterFile::Other(_) => {
            return Err("holds neither a list of objects nor an object of them".to_owned());
        }
    };
    let read = |(place, entry): (String, Entry)| {
        let label = if is_named { format!("`{place}`") } else { place.clone() };
        let found = combination(entry).map_err(|why| format!("{label} {why}"))?;
        Ok(Combination { name: is_named.then_some(place).or(found.name), ..found })
    };
    let found = entries.into_iter().map(read).collect::<Result<Vec<_>, String>>()?;
    if found.is_empty() {
        return Err("holds no combination".to_owned());
    }
    if COMBINATIONS_MAX < found.len() {
        return Err(format!("holds {} combinations; {COMBINATIONS_MAX} is the most", found.len()));
    }
    // Results of two combinations of one name would be written over each other.
    let mut names: Vec<String> = found.iter().map(Combination::name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("has two combinations called `{}`", pair[0])),
        None => Ok(found),
    }
}

fn combination(entry: Entry) -> Result<Combination, String> {
    let Entry::Object(mut parameters) = entry else {
        return Err("is not an object of parameters".to_owned());
    };
    let name = match parameters.shift_remove(NAME_KEY) {
        None => None,
        Some(Value::String(name)) => Some(name),
        Some(other) => return Err(format!("has a `{NAME_KEY}` that is no text: {other}")),
    };
    for (key, value) in &parameters {
        if matches!(value, Value::Null | Value::Array(_)) {
            return Err(format!(
                "has `{key}`: {value}, which is no value of a flag; write a number, a text, true \
                 or false, or an object"
            ));
        }
        let mut words = Vec::new();
        set_flag(&mut words, key, value);
        // `--hf-token` alone tells the server to find its own.
        if secret::is_secret(key) && !value.is_boolean() || !secret::values(&words).is_empty() {
            return Err(format!(
                "has a key or a header in `{key}`, which would be written into results and names; \
                 set VLLM_API_KEY for the server and OPENAI_API_KEY for the benchmark in the \
                 environment, or write it into --serve-cmd or --bench-cmd, where it is hidden"
            ));
        }
    }
    Ok(Combination { name, parameters })
}

impl Combination {
    pub(super) fn is_empty(&self) -> bool {
        self.name.is_none() && self.parameters.is_empty()
    }

    /// As its file says, or by its parameters.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let parts =
                self.parameters.iter().map(|(key, value)| format!("{key}={}", format_value(value)));
            parts.collect::<Vec<_>>().join("-")
        })
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.parameters.get(key)
    }

    /// All keys with their values, as they go into a result.
    pub(super) fn entries(&self) -> Vec<(String, Value)> {
        let name = self.name.iter().map(|name| (NAME_KEY.to_owned(), name.clone().into()));
        let parameters = self.parameters.iter().map(|(key, value)| (key.clone(), value.clone()));
        name.chain(parameters).collect()
    }

    pub(super) fn with(&self, key: &str, value: Value) -> Self {
        let mut changed = self.clone();
        match changed.parameters.iter_mut().find(|(name, _)| canonical(name) == canonical(key)) {
            Some((_, old)) => *old = value,
            None => {
                changed.parameters.insert(key.to_owned(), value);
            }
        }
        changed
    }

    /// The command with these parameters: a flag that it has gets the new value, the others are
    /// added.
    pub(super) fn applied_to(&self, command: &[String]) -> Vec<String> {
        let mut words = command.to_vec();
        for (key, value) in &self.parameters {
            set_flag(&mut words, key, value);
        }
        words
    }
}

fn set_flag(words: &mut Vec<String>, key: &str, value: &Value) {
    // Off is another flag than on, so the one that is there may be either.
    let held = |word: &str| {
        let flag = word.split_once('=').map_or(word, |(flag, _)| flag);
        let name = flag.strip_prefix("--").map(canonical);
        let off = canonical(&format!("no-{key}"));
        name.is_some_and(|name| name == canonical(key) || value.is_boolean() && name == off)
    };
    let found = words.iter().position(|word| held(word));
    let flag = format!("--{}", canonical(key));
    let new = match value {
        // A field of a flag that is an object takes its truth behind an equals sign.
        Value::Bool(on) if key.contains('.') => vec![format!("{flag}={on}")],
        Value::Bool(true) => vec![flag],
        Value::Bool(false) => vec![format!("--no-{}", canonical(key))],
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            vec![flag, format_value(value)]
        }
    };
    let Some(at) = found else {
        words.extend(new);
        return;
    };
    let joined = words[at].contains('=') || value.is_boolean();
    let end = if joined { at + 1 } else { (at + 2).min(words.len()) };
    words.splice(at..end, new);
}

/// `max_num_seqs` and `max-num-seqs` are one flag; what stands behind a dot is a key of its own.
fn canonical(key: &str) -> String {
    match key.split_once('.') {
        Some((flag, rest)) => format!("{}.{rest}", flag.replace('_', "-")),
        None => key.replace('_', "-"),
    }
}

/// A value as a command line has it.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Python's words: they are part of the names of files.
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn one(json: &str) -> Combination {
        combinations(format!("[{json}]").as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn a_flag_that_is_there_is_replaced_in_either_spelling() {
        let given = one(r#"{"max_num_seqs": 64, "enable_prefix_caching": false, "new": "x"}"#);
        assert_eq!(
            given.applied_to(&words("vllm serve m --max-num-seqs 8 --enable-prefix-caching")),
            words("vllm serve m --max-num-seqs 64 --no-enable-prefix-caching --new x")
        );
        assert_eq!(
            given.applied_to(&words("vllm serve --max_num_seqs=8 --no-enable-prefix-caching m")),
            words("vllm serve --max-num-seqs 64 --no-enable-prefix-caching m --new x")
        );
    }

    #[test]
    fn objects_and_fields_of_them_are_written_as_the_server_reads_them() {
        let given = one(r#"{"compilation_config.use_cudagraph": true, "a_b": {"c": 1.5}}"#);
        assert_eq!(
            given.applied_to(&[]),
            ["--compilation-config.use_cudagraph=true", "--a-b", "{\"c\":1.5}"]
        );
    }

    #[test]
    fn combinations_are_named_by_their_file_or_by_what_they_hold() {
        let listed = combinations(br#"[{"b": 1, "a": true}, {}]"#).unwrap();
        assert_eq!(listed[0].name(), "b=1-a=True", "in the order of the file");
        assert!(listed[1].is_empty());
        let named = combinations(br#"{"low": {"rate": 1.0}, "high": {"rate": "inf"}}"#).unwrap();
        assert_eq!(named[0].name(), "low");
        assert_eq!(named[1].entries()[0], ("_benchmark_name".to_owned(), json!("high")));
    }

    #[test]
    fn what_cannot_be_a_combination_is_refused_with_its_place() {
        for (json, reason) in [
            ("3", "neither a list"),
            ("[", "not JSON"),
            ("[]", "no combination"),
            (r#"[{"a": 1}, 2]"#, "entry 1 is not an object"),
            (r#"[{"a": [1, 2]}]"#, "`a`: [1,2]"),
            (r#"[{"a": 1}, {"a": 1}]"#, "two combinations called `a=1`"),
            (r#"{"x": {"_benchmark_name": 3}}"#, "no text"),
            (r#"[{"api_key": "sk-1"}]"#, "VLLM_API_KEY"),
            (r#"[{"header": "Authorization=Bearer sk-1"}]"#, "OPENAI_API_KEY"),
            (r#"[{"extra_body": {"access_token": "sk-1"}}]"#, "in `extra_body`"),
        ] {
            let why = combinations(json.as_bytes()).unwrap_err();
            assert!(why.contains(reason) && !why.contains("sk-1"), "{why}");
        }
    }

    #[test]
    fn what_only_sounds_like_a_key_is_taken() {
        let given = r#"{"max_num_batched_tokens": 8192, "tokenizer": "t", "hf_token": true}"#;
        assert_eq!(
            one(given).applied_to(&[]),
            words("--max-num-batched-tokens 8192 --tokenizer t --hf-token")
        );
    }
}
