//! What a sweep will run: its commands, its servers and the loads of each; and the files of parameters
//! that change the commands, as `vllm bench sweep serve` reads them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use indexmap::IndexMap;
use inferometer_model::BaseUrl;
use inferometer_report::escape::terminal;
use inferometer_store::read_at_most;
use inferometer_target::deploy::secret;
use jiff::Zoned;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::run::{check_folder, pair_folder, server_log};
use crate::arguments::{Arguments, BenchCommand, Command, ServeSweepArguments};
use crate::bench::{Bench, origin, with_dashes};
use crate::failure::Failure;

const PAIRS_MAX: usize = 100_000;
const RUNS: u32 = 3;
const READY_TIMEOUT_S: u64 = 300;

/// What will be run.
pub(super) struct Plan<'a> {
    pub(super) typed: &'a ServeSweepArguments,
    pub(super) runs: u32,
    pub(super) warm_up_prompts: u32,
    pub(super) ready_timeout: Duration,
    pub(super) serve: Vec<String>,
    pub(super) bench: Vec<String>,
    pub(super) after: Option<Vec<String>>,
    pub(super) servers: Vec<Combination>,
    pub(super) loads: Vec<Combination>,
    pub(super) links: Vec<(String, String)>,
    pub(super) folder: PathBuf,
}

impl<'a> Plan<'a> {
    pub(super) fn new(typed: &'a ServeSweepArguments) -> Result<Self, Failure> {
        let runs = typed.num_runs.unwrap_or(RUNS);
        if runs == 0 {
            return Err(Failure::usage("--num-runs is 0: nothing would be measured"));
        }
        let bench = words("--bench-cmd", &typed.bench_cmd)?;
        let after = typed.after_bench_cmd.as_deref();
        let name = typed.experiment_name.clone();
        let name = name.unwrap_or_else(|| Zoned::now().strftime("%Y%m%d_%H%M%S").to_string());
        let folder = typed.output_dir.clone().unwrap_or_else(|| PathBuf::from("results"));
        let plan = Self {
            typed,
            runs,
            warm_up_prompts: typed.warmup_num_prompts.unwrap_or(0),
            ready_timeout: Duration::from_secs(
                typed.server_ready_timeout.unwrap_or(READY_TIMEOUT_S),
            ),
            serve: words("--serve-cmd", &typed.serve_cmd)?,
            bench: bench_flags(&bench)?,
            after: after.map(|typed| words("--after-bench-cmd", typed)).transpose()?,
            servers: read_parameters("--serve-params", typed.serve_params.as_deref())?,
            loads: read_parameters("--bench-params", typed.bench_params.as_deref())?,
            links: links(typed.link_vars.as_deref().unwrap_or_default())?,
            folder: folder.join(name),
        };
        check_folder(&plan.folder, typed.resume)?;
        plan.check_links()?;
        plan.check_pairs()?;
        plan.check_loads()?;
        Ok(plan)
    }

    fn check_links(&self) -> Result<(), Failure> {
        for (of_server, of_load) in &self.links {
            for (flag, key, combinations) in [
                ("--serve-params", of_server, &self.servers),
                ("--bench-params", of_load, &self.loads),
            ] {
                if !combinations.iter().any(|combination| combination.get(key).is_some()) {
                    return Err(Failure::usage(format!(
                        "--link-vars `{of_server}={of_load}`: no combination of {flag} has `{key}`"
                    ))
                    .hint("write SERVE_PARAM=BENCH_PARAM with the keys of the two files"));
                }
            }
        }
        Ok(())
    }

    /// Results of two pairs in one folder would be taken for each other, and so would logs.
    fn check_pairs(&self) -> Result<(), Failure> {
        let (mut places, mut pairs) = (BTreeSet::new(), 0);
        for server in &self.servers {
            address(&server.applied_to(&self.serve))?;
            let loads = self.loads_of(server);
            pairs += loads.len();
            if PAIRS_MAX < pairs {
                return Err(Failure::usage(format!("there are more than {PAIRS_MAX} pairs"))
                    .hint("choose fewer, or link them with --link-vars"));
            }
            let log = server_log(&self.folder, server);
            let folders = loads.into_iter().map(|load| pair_folder(&self.folder, server, load));
            for place in folders.chain([log]) {
                if let Some(place) = places.replace(place) {
                    let name = place.file_name().unwrap_or_default().to_string_lossy();
                    return Err(Failure::usage(format!(
                        "two combinations would share `{name}`, as `/` is `_` in names of files"
                    ))
                    .hint("name them in the file: {\"one\": {…}, \"two\": {…}}"));
                }
            }
        }
        if pairs == 0 {
            return Err(Failure::usage("--link-vars leaves no pair of a server and a load")
                .hint("linked parameters must be equal, and numbers and texts are not"));
        }
        Ok(())
    }

    /// What `bench serve` would refuse is refused before a server is started for it.
    fn check_loads(&self) -> Result<(), Failure> {
        let warm_up = (0 < self.warm_up_prompts).then(|| self.warm_up_of(&self.loads[0]));
        for load in self.loads.iter().chain(&warm_up) {
            let words = self.bench_words(load, &self.folder.join("run=0.part.json"));
            let keys = secret::values(&words);
            check_bench(&words).map_err(|failure| {
                let which = load.name();
                let with = if which.is_empty() { which } else { format!(" with {which}") };
                failure
                    .about(&format!("--bench-cmd{with}"))
                    .reworded(|text| secret::without(&keys, text))
            })?;
        }
        Ok(())
    }

    /// The flags of one run, which writes its result to this file.
    pub(super) fn bench_words(&self, load: &Combination, file: &Path) -> Vec<String> {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.unwrap_or_default().to_string_lossy().into_owned()
        };
        let mut words = load.applied_to(&self.bench);
        words.extend(["--percentile-metrics", "ttft,tpot,itl,e2el"].map(str::to_owned));
        words.extend(["--save-result".to_owned(), "--result-dir".to_owned()]);
        words.push(text(file.parent().map(Path::as_os_str)));
        words.extend(["--result-filename".to_owned(), text(file.file_name())]);
        words
    }

    /// The same load with the prompts of a warm-up.
    pub(super) fn warm_up_of(&self, load: &Combination) -> Combination {
        load.with("num_prompts", self.warm_up_prompts.into())
    }

    /// The loads that belong to a server.
    pub(super) fn loads_of(&self, server: &Combination) -> Vec<&Combination> {
        let is_linked = |load: &&Combination| {
            self.links.iter().all(|(of_server, of_load)| {
                let (left, right) = (server.get(of_server), load.get(of_load));
                left.is_some() && left == right
            })
        };
        self.loads.iter().filter(is_linked).collect()
    }

    pub(super) fn outline(&self) -> Result<String, Failure> {
        let mut text = String::new();
        let (runs, mut total) = (self.runs, 0);
        for server in &self.servers {
            let serve = server.applied_to(&self.serve);
            let _ = writeln!(text, "server: {}", format_command(&serve));
            let _ = writeln!(text, "  awaited on {}", address(&serve)?);
            for load in self.loads_of(server) {
                let flags = load.applied_to(&self.bench);
                let _ = writeln!(text, "  {runs} × bench serve {}", format_command(&flags));
                total += u64::from(runs);
            }
        }
        let folder = terminal(&self.folder.display().to_string());
        Ok(text + &format!("{total} runs; results would go to {folder}\n"))
    }
}

/// A command as it may stand on a terminal: quoted, without its keys, and harmless.
pub(super) fn format_command(words: &[String]) -> String {
    let hidden = secret::hidden(words);
    let quoted = words.iter().zip(&hidden).map(|(word, hidden)| {
        let quoted = shlex::try_quote(word).ok().filter(|_| word == hidden);
        quoted.map_or_else(|| hidden.clone(), std::borrow::Cow::into_owned)
    });
    let text = quoted.collect::<Vec<_>>().join(" ");
    // A key may stand a second time where nothing names it.
    terminal(&secret::without(&secret::values(words), &text))
}

/// Without a model's name it is only parsed: the server would have to be asked for one.
fn check_bench(words: &[String]) -> Result<(), Failure> {
    let program = ["inferometer", "bench", "serve"].map(OsString::from);
    let typed = program.into_iter().chain(words.iter().map(OsString::from));
    let parsed = Arguments::try_parse_from(with_dashes(typed)).map_err(|error| unparsed(&error))?;
    let Some(Command::Bench(bench)) = parsed.command else { return Ok(()) };
    let BenchCommand::Serve(said) = bench.what else { return Ok(()) };
    if said.target.model.is_none() {
        return said.refused.check();
    }
    Bench::from_arguments(&said).map(|_| ())
}

/// Its first paragraph says what is wrong.
fn unparsed(error: &clap::Error) -> Failure {
    if !error.use_stderr() {
        return Failure::usage("it asks for help, and would measure nothing");
    }
    let text = error.to_string();
    let wrong = text.split("\n\n").next().unwrap_or_default();
    Failure::usage(wrong.trim_start_matches("error: ").trim())
        .hint("inferometer bench serve --help lists the flags")
}

fn links(typed: &str) -> Result<Vec<(String, String)>, Failure> {
    let pair = |part: &str| {
        let (server, load) = part.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--link-vars `{part}`: write SERVE_PARAM=BENCH_PARAM"))
        })?;
        Ok((server.trim().to_owned(), load.trim().to_owned()))
    };
    typed.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect()
}

/// Hosts of a server that listens on all addresses, this machine's own among them.
const EVERYWHERE: [&str; 3] = ["0.0.0.0", "::", "[::]"];

/// The words of a command, as a shell would split them. Nothing is expanded. It is not repeated
/// where it cannot be split: a key may be in it.
fn words(flag: &str, typed: &str) -> Result<Vec<String>, Failure> {
    let words = shlex::split(typed)
        .ok_or_else(|| Failure::usage(format!("{flag}: a quote is not closed")))?;
    if words.is_empty() {
        return Err(Failure::usage(format!("{flag} is empty: it names no command")));
    }
    Ok(words)
}

/// The words after `bench serve`: our client obeys these flags, whichever program is named.
fn bench_flags(words: &[String]) -> Result<Vec<String>, Failure> {
    let place = words.windows(2).position(|pair| pair[0] == "bench" && pair[1] == "serve");
    let Some(place) = place else {
        return Err(Failure::usage("--bench-cmd has no `bench serve`, so its flags are not known")
            .hint(
                "write it as for vLLM: --bench-cmd 'vllm bench serve --model … --num-prompts 100'",
            ));
    };
    Ok(words[place + 2..].to_vec())
}

/// Where a server with this command listens: `--host` and `--port`, as `vllm serve` has them.
pub(super) fn address(serve: &[String]) -> Result<BaseUrl, Failure> {
    let host = value(serve, &["--host"]).filter(|host| !EVERYWHERE.contains(host));
    let port = value(serve, &["--port", "-p"]).unwrap_or("8000");
    let url = origin(host.unwrap_or("127.0.0.1"), port);
    url.parse().map_err(|error| {
        Failure::usage(format!("--serve-cmd listens on `{url}`, which is no address: {error}"))
    })
}

fn value<'a>(words: &'a [String], flags: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().rev().find_map(|(at, word)| {
        if flags.contains(&word.as_str()) {
            return words.get(at + 1).map(String::as_str);
        }
        let (flag, value) = word.split_once('=')?;
        flags.contains(&flag).then_some(value)
    })
}

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
pub(super) fn read_parameters(
    flag: &str,
    file: Option<&Path>,
) -> Result<Vec<Combination>, Failure> {
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

    fn split(typed: &str) -> Vec<String> {
        words("--serve-cmd", typed).unwrap()
    }

    #[test]
    fn flags_of_the_benchmark_are_found_behind_any_program() {
        for typed in [
            "vllm bench serve --model 'a b'",
            "python -m vllm.entrypoints.cli.main bench serve --model 'a b'",
        ] {
            assert_eq!(bench_flags(&split(typed)).unwrap(), ["--model", "a b"]);
        }
        assert!(bench_flags(&split("bench_serving --model x")).is_err());
        assert!(words("--serve-cmd", "vllm 'x").is_err() && words("--serve-cmd", " ").is_err());
    }

    #[test]
    fn the_last_address_counts() {
        let at = |typed: &str| address(&split(typed)).unwrap().to_string();
        assert_eq!(at("vllm serve m"), "http://127.0.0.1:8000");
        assert_eq!(at("vllm serve m --host 0.0.0.0 --port 1 --port=8123"), "http://127.0.0.1:8123");
        assert_eq!(at("x --host localhost -p 9"), "http://localhost:9");
        assert_eq!(at("x --host ::1"), "http://[::1]:8000");
        assert_eq!(at("x --host :: --port 1"), "http://127.0.0.1:1");
        assert!(address(&split("vllm serve m --port x")).is_err());
    }

    fn tokens(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn one(json: &str) -> Combination {
        combinations(format!("[{json}]").as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn a_flag_that_is_there_is_replaced_in_either_spelling() {
        let given = one(r#"{"max_num_seqs": 64, "enable_prefix_caching": false, "new": "x"}"#);
        assert_eq!(
            given.applied_to(&tokens("vllm serve m --max-num-seqs 8 --enable-prefix-caching")),
            tokens("vllm serve m --max-num-seqs 64 --no-enable-prefix-caching --new x")
        );
        assert_eq!(
            given.applied_to(&tokens("vllm serve --max_num_seqs=8 --no-enable-prefix-caching m")),
            tokens("vllm serve --max-num-seqs 64 --no-enable-prefix-caching m --new x")
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
            tokens("--max-num-batched-tokens 8192 --tokenizer t --hf-token")
        );
    }
}
