//! `bench sweep serve`: every server of one file under every load of another, as
//! `vllm bench sweep serve` does it, with our client.
//!
//! Files of parameters change the two commands. Every run is `inferometer bench serve` in its own
//! process, so that it gives what that command gives. Results that exist are not measured again. The
//! folder and the tables have vLLM's layout, because its plot tools read them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;
use std::{fs, io};

use clap::Parser;
use indexmap::{IndexMap, IndexSet};
use inferometer_analysis::{Sample, Verdict};
use inferometer_load::Target;
use inferometer_load::resources::resolve;
use inferometer_load::target::Credentials;
use inferometer_model::deployment::{
    DeploymentHow, DeploymentSpec, EnvironmentSpec, ProcessSpec, Renewal,
};
use inferometer_model::fetch::{FetchRequest, Post, PostRequest};
use inferometer_model::spreadsheet::guarded;
use inferometer_model::{BaseUrl, Fetch, SpecDraft};
use inferometer_report::document::{self, Block, Cell, Columns, Section, Table, plain};
use inferometer_report::escape::terminal;
use inferometer_report::fmt::{NOTHING, counted, number};
use inferometer_report::terminal::Style;
use inferometer_runner::Session;
use inferometer_runner::deployed::Deployed;
use inferometer_store::{read_at_most, write_atomically};
use inferometer_target::deploy::{IsOver, Probe, placeholder, secret};
use jiff::Zoned;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::arguments::{Arguments, BenchCommand, Command as Commands, ServeSweepArguments};
use crate::bench::{BenchExperiment, origin, with_dashes};
use crate::failure::{Exit, Failure, Result};
use crate::output::{self, shell_word};
use crate::preflight::{bare_target, fetching};
use crate::signals::{Interruption, begin_session};

const PAIRS_MAX: usize = 100_000;
const RUNS: u32 = 3;

const READY_TIMEOUT: Duration = Duration::from_mins(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The result of such a run is kept, and the sweep ends with the same code.
const INVALID: i32 = Exit::RunInvalid as i32;
/// Columns of the page: keys of the result and titles.
const SHOWN: [(&str, &str); 5] = [
    ("mean_ttft_ms", "TTFT mean ms"),
    ("p99_ttft_ms", "TTFT p99 ms"),
    ("mean_tpot_ms", "TPOT mean ms"),
    ("request_throughput", "req/s"),
    ("output_throughput", "output tok/s"),
];

/// Keys and values in the order of their file: a combination of parameters, or the result of a run with
/// the parameters that it was measured with.
type Entries = IndexMap<String, Value>;
/// The runs of each pair, in the order of measurement.
type Results = IndexMap<String, Vec<Entries>>;

pub(crate) fn run(typed: &ServeSweepArguments) -> Result<ExitCode> {
    if typed.resume && typed.experiment_name.is_none() {
        return Err(Failure::usage("--resume needs the name of an experiment")
            .hint("name its folder with --experiment-name"));
    }
    let plan = Plan::new(typed)?;
    if typed.dry_run {
        return output::result(&plan.outline()?);
    }
    let session = begin_session(0, false)?;
    let (session, results) = (&session, Results::new());
    let mut sweep = Sweep { plan: &plan, session, results, failed: 0, has_warned: false };
    for server in &plan.servers {
        let log = plan.server_log(server);
        let failure_file = log.with_extension("failure.json");
        let played = session
            .interruption
            .check()
            .and_then(|()| sweep.play_server(server, &log, &failure_file))
            .or_else(|failure| sweep.note_failure(&failure_file, server, None, failure));
        if played.as_ref().is_err_and(Failure::is_interruption) {
            output::talk(&format!(
                "stopped; resume with the same command and --resume --output-dir {} \
                 --experiment-name {}",
                shown(plan.folder.parent().unwrap_or(&plan.folder)),
                shown(Path::new(plan.folder.file_name().unwrap_or_default()))
            ));
        }
        played?;
    }
    sweep.conclude()
}

fn shown(path: &Path) -> String {
    terminal(&path.display().to_string())
}

/// What will be run.
struct Plan<'a> {
    typed: &'a ServeSweepArguments,
    runs: u32,
    warm_up_prompts: u32,
    serve: Vec<String>,
    bench: Vec<String>,
    after: Option<Vec<String>>,
    servers: Vec<Entries>,
    loads: Vec<Entries>,
    links: Vec<(String, String)>,
    folder: PathBuf,
}

impl<'a> Plan<'a> {
    fn new(typed: &'a ServeSweepArguments) -> Result<Self> {
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

    fn check_links(&self) -> Result<()> {
        for (serve_key, bench_key) in &self.links {
            let sides = [
                ("--serve-params", serve_key, &self.servers),
                ("--bench-params", bench_key, &self.loads),
            ];
            for (flag, key, combinations) in sides {
                if !combinations.iter().any(|combination| combination.contains_key(key)) {
                    return Err(Failure::usage(format!(
                        "--link-vars `{serve_key}={bench_key}`: no combination of {flag} has `{key}`"
                    ))
                    .hint("write SERVE_PARAM=BENCH_PARAM with the keys of the two files"));
                }
            }
        }
        Ok(())
    }

    /// Results of two pairs in one folder would overwrite each other, and so would logs.
    fn check_pairs(&self) -> Result<()> {
        let (mut paths, mut pairs) = (BTreeSet::new(), 0);
        for server in &self.servers {
            address(&with_parameters(&self.serve, server))?;
            let loads = self.linked_loads(server);
            pairs += loads.len();
            if PAIRS_MAX < pairs {
                return Err(Failure::usage(format!("there are more than {PAIRS_MAX} pairs"))
                    .hint("choose fewer, or link them with --link-vars"));
            }
            let folders = loads.into_iter().map(|load| pair_folder(&self.folder, server, load));
            for path in folders.chain([self.server_log(server)]) {
                if let Some(path) = paths.replace(path) {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    return Err(Failure::usage(format!(
                        "two combinations would share `{name}`, as `/` is `_` in file names"
                    ))
                    .hint("name them in the file: {\"one\": {…}, \"two\": {…}}"));
                }
            }
        }
        if pairs == 0 {
            return Err(Failure::usage("--link-vars leaves no pair of a server and a load")
                .hint("linked parameters must be equal; a number never equals a text"));
        }
        Ok(())
    }

    /// What `bench serve` would refuse is refused before a server is started for it.
    fn check_loads(&self) -> Result<()> {
        let warm_up = (0 < self.warm_up_prompts).then(|| self.warm_up_load(&self.loads[0]));
        for load in self.loads.iter().chain(&warm_up) {
            let words = self.bench_words(load, &self.folder.join("run=0.part.json"));
            let keys = secret::values(&words);
            check_bench(&words).map_err(|failure| {
                let which = name(load);
                let with = if which.is_empty() { which } else { format!(" with {which}") };
                failure
                    .about(&format!("--bench-cmd{with}"))
                    .reworded(|text| secret::without(&keys, text))
            })?;
        }
        Ok(())
    }

    /// The flags of one run, which writes its result to this file.
    fn bench_words(&self, load: &Entries, file: &Path) -> Vec<String> {
        let folder = file.parent().unwrap_or(Path::new("")).to_string_lossy();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let percentiles = ["--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result"];
        let place = ["--result-dir", &folder, "--result-filename", &name];
        let mut words = with_parameters(&self.bench, load);
        words.extend(percentiles.into_iter().chain(place).map(str::to_owned));
        words
    }

    /// The same load with the prompts of a warm-up.
    fn warm_up_load(&self, load: &Entries) -> Entries {
        let mut load = load.clone();
        let held = load.keys().find(|key| canonical(key) == "num-prompts").cloned();
        load.insert(held.unwrap_or_else(|| "num_prompts".to_owned()), self.warm_up_prompts.into());
        load
    }

    /// The loads that a server is measured under.
    fn linked_loads(&self, server: &Entries) -> Vec<&Entries> {
        let is_linked = |load: &&Entries| {
            self.links.iter().all(|(serve_key, bench_key)| {
                let (left, right) = (server.get(serve_key), load.get(bench_key));
                left.is_some() && left == right
            })
        };
        self.loads.iter().filter(is_linked).collect()
    }

    fn outline(&self) -> Result<String> {
        let (mut sections, mut pairs) = (Vec::new(), 0);
        for server in &self.servers {
            let (serve, loads) = (with_parameters(&self.serve, server), self.linked_loads(server));
            pairs += loads.len() as u64;
            let runs = loads.into_iter().map(|load| {
                let flags = format_command(&with_parameters(&self.bench, load));
                format!("{} × bench serve {flags}", self.runs)
            });
            let lines = [format!("awaited on {}", address(&serve)?)].into_iter().chain(runs);
            let text = lines.collect::<Vec<_>>().join("\n");
            let title = format!("server: {}", format_command(&serve));
            sections.push(Section::new(title, vec![Block::Code { language: "", text }]));
        }
        let runs = counted(pairs * u64::from(self.runs), "run");
        let total = format!("{runs}; results would be stored in {}", shown(&self.folder));
        sections.push(Section::new("", vec![Block::paragraph(total)]));
        Ok(document::terminal::sections(&sections, Style::Plain))
    }

    /// Where the output of child processes goes.
    fn stdout(&self) -> Stdio {
        if self.typed.show_stdout { Stdio::inherit() } else { Stdio::null() }
    }

    fn server_log(&self, server: &Entries) -> PathBuf {
        let name = if server.is_empty() { "default".to_owned() } else { name(server) };
        self.folder.join(file_name(&format!("SERVE-{name}.log")))
    }
}

/// A command for the terminal: quoted, without its keys, and escaped.
fn format_command(words: &[String]) -> String {
    let hidden = secret::hidden(words);
    let quoted = words.iter().zip(&hidden).map(|(word, hidden)| {
        let quoted = shell_word(word).filter(|_| word == hidden);
        quoted.unwrap_or_else(|| hidden.clone())
    });
    let text = quoted.collect::<Vec<_>>().join(" ");
    // The same key may stand in another flag, too.
    terminal(&secret::without(&secret::values(words), &text))
}

/// Without a model's name the flags are only parsed: the server would have to be asked for one.
fn check_bench(words: &[String]) -> Result<()> {
    let program = ["inferometer", "bench", "serve"].map(OsString::from);
    let typed = program.into_iter().chain(words.iter().map(OsString::from));
    let parsed = Arguments::try_parse_from(with_dashes(typed)).map_err(|error| {
        if !error.use_stderr() {
            return Failure::usage("it asks for help, and would measure nothing");
        }
        let text = error.to_string();
        // The first paragraph is the message.
        let message = text.split("\n\n").next().unwrap_or_default();
        Failure::usage(message.trim_start_matches("error: ").trim())
            .hint("inferometer bench serve --help lists the flags")
    })?;
    let Some(Commands::Bench(bench)) = parsed.command else { return Ok(()) };
    let BenchCommand::Serve(flags) = bench.what else { return Ok(()) };
    if flags.target.model.is_none() {
        return flags.refused.check();
    }
    BenchExperiment::from_arguments(&flags).map(|_| ())
}

fn links(typed: &str) -> Result<Vec<(String, String)>> {
    let pair = |part: &str| {
        let (server, load) = part.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--link-vars `{part}`: write SERVE_PARAM=BENCH_PARAM"))
        })?;
        Ok((server.trim().to_owned(), load.trim().to_owned()))
    };
    typed.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect()
}

/// The words of a command, as a shell would split them. Nothing is expanded. The message does not
/// repeat the command: a key may be in it.
fn words(flag: &str, typed: &str) -> Result<Vec<String>> {
    let words = shlex::split(typed)
        .ok_or_else(|| Failure::usage(format!("{flag}: a quote is not closed")))?;
    if words.is_empty() {
        return Err(Failure::usage(format!("{flag} is empty: it names no command")));
    }
    Ok(words)
}

/// The flags after `bench serve`: our client follows them, whichever program is named.
fn bench_flags(words: &[String]) -> Result<Vec<String>> {
    let index = words.windows(2).position(|pair| pair[0] == "bench" && pair[1] == "serve");
    let index = index.ok_or_else(|| {
        let hint =
            "write it as for vLLM: --bench-cmd 'vllm bench serve --model … --num-prompts 100'";
        Failure::usage("--bench-cmd has no `bench serve`, so its flags are not known").hint(hint)
    })?;
    Ok(words[index + 2..].to_vec())
}

/// Where a server with this command listens: `--host` and `--port`, as `vllm serve` has them. Hosts
/// that mean all addresses include this machine's own.
fn address(serve: &[String]) -> Result<BaseUrl> {
    let value = |flags: &[&str]| {
        serve.iter().enumerate().rev().find_map(|(index, word)| {
            if flags.contains(&word.as_str()) {
                return serve.get(index + 1).map(String::as_str);
            }
            word.split_once('=').filter(|(flag, _)| flags.contains(flag)).map(|(_, value)| value)
        })
    };
    let host = value(&["--host"]).filter(|host| !["0.0.0.0", "::", "[::]"].contains(host));
    let url = origin(host.unwrap_or("127.0.0.1"), value(&["--port", "-p"]).unwrap_or("8000"));
    url.parse().map_err(|error| {
        Failure::usage(format!("--serve-cmd listens on `{url}`, which is not an address: {error}"))
    })
}

/// The key of the name of a combination.
const NAME_KEY: &str = "_benchmark_name";
const FILE_BYTES_MAX: u64 = 16 << 20;
const COMBINATIONS_MAX: usize = 10_000;

/// A list of objects, or an object whose keys name them; without a file the command is run as it is.
fn read_parameters(flag: &str, file: Option<&Path>) -> Result<Vec<Entries>> {
    let Some(path) = file else { return Ok(vec![Entries::new()]) };
    let about = |why: String| Failure::usage(format!("{flag} {}: {why}", path.display()));
    let bytes = read_at_most(path, FILE_BYTES_MAX)
        .map_err(Failure::from_usage)?
        .ok_or_else(|| about("there is no such file".to_owned()))?;
    combinations(&bytes)
        .map_err(|why| about(why).hint("such as [{\"max_num_seqs\": 64}, {\"max_num_seqs\": 128}]"))
}

fn combinations(json: &[u8]) -> Result<Vec<Entries>, String> {
    let wrong = |error| format!("is not JSON of this form: {error}");
    let found: Vec<Entries> = match json.trim_ascii_start().first() {
        Some(b'[') => {
            let list: Vec<Entries> = serde_json::from_slice(json).map_err(wrong)?;
            let read = |(index, entry)| {
                combination(entry, None).map_err(|why| format!("entry {index} {why}"))
            };
            list.into_iter().enumerate().map(read).collect::<Result<_, _>>()?
        }
        Some(b'{') => {
            let named: IndexMap<String, Entries> = serde_json::from_slice(json).map_err(wrong)?;
            let read = |(name, entry): (String, Entries)| {
                combination(entry, Some(&name)).map_err(|why| format!("`{name}` {why}"))
            };
            named.into_iter().map(read).collect::<Result<_, _>>()?
        }
        _ => return Err("holds neither a list of objects nor an object of them".to_owned()),
    };
    if found.is_empty() {
        return Err("holds no combination".to_owned());
    }
    if COMBINATIONS_MAX < found.len() {
        return Err(format!("holds {} combinations; {COMBINATIONS_MAX} is the most", found.len()));
    }
    // The results of two combinations of one name would overwrite each other.
    let mut names: Vec<String> = found.iter().map(name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("has two combinations called `{}`", pair[0])),
        None => Ok(found),
    }
}

/// Checks a combination, whose name becomes its first entry.
fn combination(mut parameters: Entries, name: Option<&str>) -> Result<Entries, String> {
    let own_name = match parameters.shift_remove(NAME_KEY) {
        None => None,
        Some(Value::String(name)) => Some(name),
        Some(other) => return Err(format!("has a `{NAME_KEY}` that is not a text: {other}")),
    };
    for (key, value) in &parameters {
        if matches!(value, Value::Null | Value::Array(_)) {
            return Err(format!(
                "has `{key}`: {value}, which is not a value of a flag; write a number, a text, true or \
                 false, or an object"
            ));
        }
        let mut words = Vec::new();
        set_flag(&mut words, key, value);
        // `--hf-token` without a value makes the server look for its own.
        if secret::is_secret(key) && !value.is_boolean() || !secret::values(&words).is_empty() {
            return Err(format!(
                "has a key or a header in `{key}`, which would be written into results and file \
                 names; set VLLM_API_KEY for the server and OPENAI_API_KEY for the benchmark in the \
                 environment, or write it into --serve-cmd or --bench-cmd, where it is hidden"
            ));
        }
    }
    if let Some(name) = name.map(str::to_owned).or(own_name) {
        parameters.shift_insert(0, NAME_KEY.to_owned(), name.into());
    }
    Ok(parameters)
}

/// The name of a combination, as its file says, or by its parameters.
fn name(combination: &Entries) -> String {
    if let Some(name) = combination.get(NAME_KEY) {
        return format_value(name);
    }
    let parts = combination.iter().map(|(key, value)| format!("{key}={}", format_value(value)));
    parts.collect::<Vec<_>>().join("-")
}

/// The command with these parameters: a flag that it has gets the new value, the others are added.
fn with_parameters(command: &[String], parameters: &Entries) -> Vec<String> {
    let mut words = command.to_vec();
    for (key, value) in parameters.iter().filter(|(key, _)| *key != NAME_KEY) {
        set_flag(&mut words, key, value);
    }
    words
}

fn set_flag(words: &mut Vec<String>, key: &str, value: &Value) {
    // Off is another flag than on, so the command may have either.
    let held = |word: &String| {
        let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
        let name = flag.strip_prefix("--").map(canonical);
        let off = canonical(&format!("no-{key}"));
        name.is_some_and(|name| name == canonical(key) || value.is_boolean() && name == off)
    };
    let flag = format!("--{}", canonical(key));
    let new = match value {
        // A field of a flag that is an object takes its value behind an equals sign.
        Value::Bool(on) if key.contains('.') => vec![format!("{flag}={on}")],
        Value::Bool(true) => vec![flag],
        Value::Bool(false) => vec![format!("--no-{}", canonical(key))],
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            vec![flag, format_value(value)]
        }
    };
    let Some(index) = words.iter().position(held) else {
        words.extend(new);
        return;
    };
    let is_one_word = words[index].contains('=') || value.is_boolean();
    let end = if is_one_word { index + 1 } else { (index + 2).min(words.len()) };
    words.splice(index..end, new);
}

/// `max_num_seqs` and `max-num-seqs` are one flag; a key behind a dot is not changed.
fn canonical(key: &str) -> String {
    match key.split_once('.') {
        Some((flag, rest)) => format!("{}.{rest}", flag.replace('_', "-")),
        None => key.replace('_', "-"),
    }
}

/// A value as Python prints it: it is part of file names, and of the cells of a table.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

struct Sweep<'a> {
    plan: &'a Plan<'a>,
    session: &'a Session,
    results: Results,
    failed: usize,
    /// Whether it was reported that the server's cache is not emptied.
    has_warned: bool,
}

impl Sweep<'_> {
    fn play_server(&mut self, server: &Entries, log: &Path, failure_file: &Path) -> Result<()> {
        let loads = self.plan.linked_loads(server);
        let pairs: Vec<PathBuf> =
            loads.iter().map(|load| pair_folder(&self.plan.folder, server, load)).collect();
        let mut running = None;
        if pairs.iter().any(|pair| lacks_runs(pair, self.plan.runs)) {
            let words = with_parameters(&self.plan.serve, server);
            output::talk(&format!("starting: {}", format_command(&words)));
            let timeout =
                self.plan.typed.server_ready_timeout.map_or(READY_TIMEOUT, Duration::from_secs);
            running = Some(Server::start(words, log, timeout, self.session)?);
            remove(failure_file);
        }
        for (load, pair) in loads.into_iter().zip(pairs) {
            let run = |load, number, file| Run { server, load, number, file };
            let runs = self.plan.runs;
            let is_warmed = 0 < self.plan.warm_up_prompts && lacks_runs(&pair, runs);
            let warm_load = self.plan.warm_up_load(load);
            let warm_up = is_warmed.then(|| run(&warm_load, None, pair.join("warmup.json")));
            let measured = (0..runs).map(|number| run(load, Some(number), run_file(&pair, number)));
            let mut kept = Vec::new();
            for run in warm_up.into_iter().chain(measured) {
                match self.play_run(running.as_mut(), &run) {
                    Ok(data) => kept.extend(run.number.map(|_| data)),
                    Err(failure) => {
                        self.note_failure(&run.failure_file(), server, Some(&run), failure)?;
                    }
                }
            }
            if !kept.is_empty() {
                write_result(&pair.join("summary.json"), &kept)?;
                let name = pair.strip_prefix(&self.plan.folder).unwrap_or(&pair).display();
                self.results.entry(name.to_string()).or_default().extend(kept);
            }
        }
        Ok(())
    }

    /// The stored result, or a new one. A warm-up is never stored: the server is a new one.
    fn play_run(&mut self, running: Option<&mut Server>, run: &Run<'_>) -> Result<Entries> {
        if let Some(data) = run.number.map(|_| read_result(&run.file)).transpose()?.flatten() {
            return Ok(run.with_parameters(data));
        }
        let interruption = &self.session.interruption;
        interruption.check()?;
        let Some(server) = running else {
            return Err(Failure::usage(format!("{} is missing", run.file.display()))
                .hint("give the same command again with --resume: the run is measured again"));
        };
        let data = run.measure(self.plan, interruption)?;
        if let Some(found) = server.deployed.lost(None) {
            let failure = server.deployed.explain(&found, &server.deployed.log);
            return Err(reworded(failure, &server.words));
        }
        write_result(&run.file, &data)?;
        remove(&run.failure_file());
        interruption.check()?;
        self.empty_cache(server)?;
        Ok(data)
    }

    /// Empties the caches of the server, by its own API or by the user's command.
    fn empty_cache(&mut self, server: &Server) -> Result<()> {
        let Some(words) = &self.plan.after else {
            if let Err(why) = server.reset_caches()
                && !std::mem::replace(&mut self.has_warned, true)
            {
                output::talk(&format!(
                    "warning: the server's cache is not emptied between runs ({why}); repeated runs \
                     send the same prompts, which may be cached: empty it with --after-bench-cmd, or \
                     set another --seed for each load"
                ));
            }
            return Ok(());
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(self.plan.stdout());
        let why = match command.status() {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => format!(" ended with {status}"),
            Err(error) => format!(": {error}"),
        };
        let program = secret::hidden(words).swap_remove(0);
        Err(Failure::usage(format!("--after-bench-cmd `{program}`{why}")))
    }

    /// Stores a failure after which the sweep goes on; returns any other.
    fn note_failure(
        &mut self,
        file: &Path,
        server: &Entries,
        run: Option<&Run<'_>>,
        failure: Failure,
    ) -> Result<()> {
        if !self.plan.typed.continue_on_error || failure.is_interruption() {
            return Err(failure);
        }
        self.failed += 1;
        output::talk(&format!("failed, continuing: {}", terminal(failure.message())));
        let document = json!({
            "run_number": run.map(|run| run.number),
            "error": failure.message(),
            "serve_overrides": server,
            "bench_overrides": run.map(|run| run.load),
        });
        write_result(file, &document)
    }

    fn conclude(self) -> Result<ExitCode> {
        let folder = &self.plan.folder;
        write_atomically(&folder.join("summary.csv"), csv(&self.results).as_bytes())?;
        output::result(&page(&self.results))?;
        output::talk(&format!("results: {}", shown(folder)));
        // Stored results count, too.
        let is_invalid = |data: &&Entries| {
            data.get("inferometer_verdict").is_some_and(|verdict| verdict == Verdict::Invalid.key())
        };
        let invalid = self.results.values().flatten().filter(is_invalid).count();
        if 0 < invalid {
            output::talk(&format!(
                "warning: {invalid} of the runs are invalid; the page of each run gives the reason"
            ));
        }
        Ok(match (self.failed, invalid) {
            (1.., _) => Exit::TargetNotUsable.into(),
            (0, 1..) => Exit::RunInvalid.into(),
            (0, 0) => ExitCode::SUCCESS,
        })
    }
}

struct Run<'a> {
    server: &'a Entries,
    load: &'a Entries,
    /// `None` for the warm-up, which is not counted.
    number: Option<u32>,
    file: PathBuf,
}

impl Run<'_> {
    /// The result of a run that completed.
    fn measure(&self, plan: &Plan<'_>, interruption: &Interruption) -> Result<Entries> {
        let failed = |error: io::Error| Failure::internal(format!("bench serve: {error}"));
        // Only what is read from this file becomes a result, so that a run that was cut never does.
        let part = self.file.with_extension("part.json");
        remove(&part);
        let words = plan.bench_words(self.load, &part);
        output::talk(&format!("bench serve {}", format_command(&words)));
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(["bench", "serve"])
            .args(&words)
            .stdin(Stdio::null())
            .stdout(plan.stdout())
            // A new process group: it receives each signal once, from us.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let _companion = interruption.accompanied_by_child(&child);
        let status =
            await_end(&mut child, interruption).inspect_err(|_| remove(&part)).map_err(failed)?;
        // A run that was cut has another code, and what it measured is no result of the sweep.
        let data = match status.code() {
            Some(0 | INVALID) => read_result(&part),
            _ => Ok(None),
        };
        remove(&part);
        match (data?, interruption.exit()) {
            (Some(data), _) => Ok(self.with_parameters(data)),
            (None, Some(exit)) => Err(Failure::interrupted(exit)),
            (None, None) => {
                Err(Failure::target(format!("bench serve ended with {status} and no result")))
            }
        }
    }

    /// The file that notes why it failed.
    fn failure_file(&self) -> PathBuf {
        self.file.with_extension("failure.json")
    }

    fn with_parameters(&self, mut data: Entries) -> Entries {
        data.insert("run_number".to_owned(), self.number.map_or((-1).into(), Into::into));
        data.extend(self.server.clone());
        data.extend(self.load.clone());
        data
    }
}

/// Removes a file that may not exist.
fn remove(file: &Path) {
    let _ = fs::remove_file(file);
}

/// Passes every signal on: after the first the run drains, after the second it cuts.
fn await_end(child: &mut Child, interruption: &Interruption) -> io::Result<ExitStatus> {
    let mut passed_on = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let Some(signal) = interruption.next(passed_on, LOOK_EVERY) else { continue };
        passed_on += 1;
        if let (Ok(child), Ok(signal)) = (i32::try_from(child.id()), Signal::try_from(signal)) {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(child), signal);
        }
    }
}

/// The folder of an experiment: a new one, or with `resume` an existing one.
fn check_folder(folder: &Path, resume: bool) -> Result<()> {
    let shown = folder.display();
    match (folder.exists(), resume) {
        (true, false) => Err(Failure::usage(format!("{shown} exists already"))
            .hint("resume it with --resume, or name another with --experiment-name")),
        (false, true) => {
            Err(Failure::usage(format!("{shown} does not exist, so it cannot be resumed"))
                .hint("name it with --output-dir and --experiment-name"))
        }
        (true, true) | (false, false) => Ok(()),
    }
}

/// The folder of the runs of a pair.
fn pair_folder(folder: &Path, server: &Entries, load: &Entries) -> PathBuf {
    let sides = [("SERVE-", server), ("BENCH-", load)].into_iter();
    let named = sides.filter(|(_, combination)| !combination.is_empty());
    let parts: Vec<String> = named.map(|(side, it)| format!("{side}-{}", name(it))).collect();
    folder.join(file_name(&parts.join("-")))
}

/// As vLLM makes file names, so that its results can be resumed.
fn file_name(text: &str) -> String {
    text.replace('/', "_").replace("..", "__").trim_matches('\'').trim_matches('"').to_owned()
}

fn run_file(pair: &Path, number: u32) -> PathBuf {
    pair.join(format!("run={number}.json"))
}

/// Whether any of so many runs is missing.
fn lacks_runs(pair: &Path, runs: u32) -> bool {
    (0..runs).any(|number| !run_file(pair, number).exists())
}

/// `None` where there is no such file.
fn read_result(path: &Path) -> Result<Option<Entries>> {
    let bytes = read_at_most(path, 1 << 30).map_err(Failure::from_usage)?;
    let data = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    data.map_err(|error| {
        Failure::usage(format!("{}: is not the JSON of a result: {error}", path.display()))
            .hint("remove it, and the run is measured again")
    })
}

fn write_result(path: &Path, document: &impl serde::Serialize) -> Result<()> {
    let json = serde_json::to_vec_pretty(document)
        .map_err(|error| Failure::internal(format!("{}: {error}", path.display())))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    }
    Ok(write_atomically(path, &json)?)
}

/// One row for each run, with all keys that any of them has; the first column counts them, as
/// pandas does. A text that a spreadsheet would take for a formula is made text by an apostrophe.
fn csv(results: &Results) -> String {
    let runs: Vec<&Entries> = results.values().flatten().collect();
    let columns: IndexSet<&str> =
        runs.iter().flat_map(|run| run.keys()).map(String::as_str).collect();
    let quoted = |text: &str| {
        let text = guarded(text);
        let is_plain = !text.contains([',', '"', '\n', '\r']);
        if is_plain { text.into_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
    };
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => quoted(&format_value(other)),
    };
    let head = columns.iter().map(|column| quoted(column));
    let mut text = format!(",{}\n", head.collect::<Vec<_>>().join(","));
    for (number, run) in runs.iter().enumerate() {
        let cells = columns.iter().map(|column| cell(run.get(*column)));
        let _ = writeln!(text, "{number},{}", cells.collect::<Vec<_>>().join(","));
    }
    text
}

/// The mean and the standard deviation over the runs of each pair.
fn page(results: &Results) -> String {
    let mut columns =
        Columns::new("combination", |(name, _): &(&String, &Vec<Entries>)| Cell::text(*name))
            .right("runs", |(_, runs)| Cell::text(runs.len().to_string()));
    for (key, title) in SHOWN {
        columns = columns.right(title, move |(_, runs)| {
            let values = runs.iter().filter_map(|run| run.get(key).and_then(Value::as_f64));
            let sample = Sample::new(values.collect());
            Cell::text(match sample.as_ref().map(|it| (it.mean(), it.std_sample())) {
                None => NOTHING.to_owned(),
                Some((mean, Some(deviation))) => {
                    format!("{} ± {}", number(mean), number(deviation))
                }
                Some((mean, None)) => number(mean),
            })
        });
    }
    let notes = vec![plain("± is the standard deviation over runs")];
    let table = Table { notes, ..columns.table("", "", results) };
    document::terminal::table(&table, Style::Plain)
}

const CONNECT: Duration = Duration::from_secs(2);
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long a server that is being stopped has before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// The paths that empty the caches of vLLM; it serves them with `VLLM_SERVER_DEV_MODE=1`.
const RESETS: [&str; 3] = ["/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache"];

/// It is stopped when it is dropped.
struct Server {
    deployed: Deployed,
    base: BaseUrl,
    words: Vec<String>,
}

impl Server {
    /// Starts it and waits until it answers that it is healthy. Refuses where something listens
    /// already: that server would be measured.
    fn start(words: Vec<String>, log: &Path, timeout: Duration, session: &Session) -> Result<Self> {
        let base = address(&words)?;
        if resolve(&base, CONNECT).is_ok() {
            return Err(Failure::target(format!("something listens on {base} already"))
                .hint("stop it, or set another --port in --serve-cmd"));
        }
        let how = deployment_spec(&words, timeout);
        // The command was announced without its keys.
        let session = session.only_warnings();
        let healthy = |_: &BaseUrl, _: IsOver<'_>| (health(&base), None);
        match Deployed::start_with(&how, Some(base.port), log, &session, healthy) {
            Ok(deployed) => Ok(Self { deployed, base, words }),
            Err(not_deployed) => Err(reworded(not_deployed.failure, &words)),
        }
    }

    /// Empties its caches, so that every run begins alike. The error is why it cannot.
    fn reset_caches(&self) -> Result<(), String> {
        let program = secret::hidden(&self.words).swap_remove(0);
        if !Path::new(&program).ends_with("vllm") {
            return Err(format!("it is not known how to reset the caches of `{program}`"));
        }
        let target = plain_target(&self.base).ok_or("its host name is not resolved any more")?;
        let answered = fetching(&target, async |fetch| {
            for path in RESETS {
                let reset = PostRequest {
                    path,
                    json: "",
                    body_limit: BODY_BYTES_MAX,
                    patience: Duration::from_secs(30),
                };
                let reply = fetch.post(reset).await.map_err(|error| error.to_string())?;
                if !(200..300).contains(&reply.status) {
                    return Err(format!("{path} was answered with HTTP {}", reply.status));
                }
            }
            Ok(())
        });
        answered.map_err(|failure| failure.message().to_owned())?
    }
}

/// A failure of a server by the flags of this command, without the keys, which the server may have
/// printed.
fn reworded(failure: Failure, words: &[String]) -> Failure {
    if failure.is_interruption() {
        return failure;
    }
    let keys = secret::values(words);
    let program = secret::hidden(words).swap_remove(0);
    failure.about(&format!("--serve-cmd `{program}`")).reworded(|text| {
        let text = text.replace("--ready-timeout", "--server-ready-timeout");
        secret::without(&keys, &text.replace("{port}", "its --port"))
    })
}

/// Whether it reports that it is healthy, which is what vLLM's sweep waits for.
fn health(base: &BaseUrl) -> Probe {
    let Some(target) = plain_target(base) else {
        return Probe::NotYet("no server answers".to_owned());
    };
    let request = FetchRequest { path: "/health", body_limit: BODY_BYTES_MAX };
    match fetching(&target, async |fetch| fetch.fetch(request).await) {
        Ok(Ok(reply)) if reply.status == 200 => Probe::Generated,
        Ok(Ok(reply)) => Probe::NotYet(format!("/health is answered with HTTP {}", reply.status)),
        Ok(Err(error)) => Probe::NotYet(error.to_string()),
        Err(failure) => Probe::NotYet(failure.message().to_owned()),
    }
}

/// The command as it was typed, with its braces. As in vLLM's sweep it inherits our environment.
fn deployment_spec(words: &[String], ready_timeout: Duration) -> DeploymentSpec {
    let command = words.iter().map(|word| placeholder::escaped(word)).collect();
    let set = BTreeMap::from([("VLLM_SERVER_DEV_MODE".to_owned(), "1".to_owned())]);
    // By whole names: a pattern leaves out those that look like keys.
    let pass = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    DeploymentSpec {
        ready_timeout,
        environment: EnvironmentSpec { pass, set },
        grace: GRACE,
        renewal: Renewal::Never,
        ..DeploymentSpec::new(DeploymentHow::Process(ProcessSpec { command, folder: None }))
    }
}

fn plain_target(base: &BaseUrl) -> Option<Target> {
    let spec = SpecDraft { url: Some(base.clone()), ..SpecDraft::default() }.resolve().ok()?;
    let address = resolve(base, CONNECT).ok()?;
    Some(bare_target(&spec, Credentials::default(), base, address))
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

    fn one(json: &str) -> Entries {
        combinations(format!("[{json}]").as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn a_flag_that_is_there_is_replaced_in_either_spelling() {
        let given = one(r#"{"max_num_seqs": 64, "enable_prefix_caching": false, "new": "x"}"#);
        assert_eq!(
            with_parameters(
                &tokens("vllm serve m --max-num-seqs 8 --enable-prefix-caching"),
                &given
            ),
            tokens("vllm serve m --max-num-seqs 64 --no-enable-prefix-caching --new x")
        );
        assert_eq!(
            with_parameters(
                &tokens("vllm serve --max_num_seqs=8 --no-enable-prefix-caching m"),
                &given
            ),
            tokens("vllm serve --max-num-seqs 64 --no-enable-prefix-caching m --new x")
        );
    }

    #[test]
    fn objects_and_fields_of_them_are_written_as_the_server_reads_them() {
        let given = one(r#"{"compilation_config.use_cudagraph": true, "a_b": {"c": 1.5}}"#);
        assert_eq!(
            with_parameters(&[], &given),
            ["--compilation-config.use_cudagraph=true", "--a-b", "{\"c\":1.5}"]
        );
    }

    #[test]
    fn combinations_are_named_by_their_file_or_by_what_they_hold() {
        let listed = combinations(br#"[{"b": 1, "a": true}, {}]"#).unwrap();
        assert_eq!(name(&listed[0]), "b=1-a=True", "in the order of the file");
        assert!(listed[1].is_empty());
        let named = combinations(br#"{"low": {"rate": 1.0}, "high": {"rate": "inf"}}"#).unwrap();
        assert_eq!(name(&named[0]), "low");
        assert_eq!(named[1][0], json!("high"));
        assert_eq!(named[1].get_index_of("_benchmark_name"), Some(0));
    }

    #[test]
    fn what_cannot_be_a_combination_is_refused_with_its_place() {
        for (json, reason) in [
            ("3", "neither a list"),
            ("[", "not JSON"),
            ("[]", "no combination"),
            (r#"[{"a": 1}, 2]"#, "expected a map at line 1 column 12"),
            (r#"[{"a": [1, 2]}]"#, "`a`: [1,2]"),
            (r#"[{"a": 1}, {"a": 1}]"#, "two combinations called `a=1`"),
            (r#"{"x": {"_benchmark_name": 3}}"#, "is not a text"),
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
            with_parameters(&[], &one(given)),
            tokens("--max-num-batched-tokens 8192 --tokenizer t --hf-token")
        );
    }

    fn run(document: Value) -> Entries {
        serde_json::from_value(document).unwrap()
    }

    fn grouped<const RUNS: usize>(runs: [(&str, Entries); RUNS]) -> Results {
        let mut results = Results::new();
        for (name, run) in runs {
            results.entry(name.to_owned()).or_default().push(run);
        }
        results
    }

    #[test]
    fn rows_have_all_columns_and_no_cell_is_a_formula() {
        let runs = [
            ("n", run(json!({"a": -1.5, "model_id": " =cmd()"}))),
            ("n", run(json!({"a": null, "b": "x,\"y\"", "c": true}))),
        ];
        assert_eq!(
            csv(&grouped(runs)),
            ",a,model_id,b,c\n0,-1.5,' =cmd(),,\n1,,,\"x,\"\"y\"\"\",True\n"
        );
    }

    #[test]
    fn runs_of_a_combination_stand_in_one_row() {
        let results = [
            ("b", run(json!({"mean_ttft_ms": 10.0}))),
            ("a", run(json!({"mean_ttft_ms": null}))),
            ("b", run(json!({"mean_ttft_ms": 12.0}))),
        ];
        let page = page(&grouped(results));
        let rows: Vec<&str> = page.lines().collect();
        assert!(rows[1].starts_with("  b ") && rows[1].contains("11.00 ± 1.41"), "{page}");
        assert!(rows[2].starts_with("  a ") && rows[2].contains('–'), "{page}");
    }

    #[test]
    fn folders_are_named_as_the_plot_tools_expect() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.json");
        std::fs::write(&file, r#"[{"model": "../org/name", "n": 1}]"#).unwrap();
        let serve = &read_parameters("--serve-params", Some(&file)).unwrap()[0];
        let bench = Entries::new();
        let experiment = folder.path().join("e");
        check_folder(&experiment, false).unwrap();
        let pair = pair_folder(&experiment, serve, &bench);
        assert_eq!(pair.file_name().unwrap(), "SERVE--model=___org_name-n=1");
        assert_eq!(pair_folder(&experiment, &bench, &bench), experiment.join(""));
        assert!(check_folder(&experiment, true).is_err());
        assert!(check_folder(folder.path(), false).is_err());
    }
}
