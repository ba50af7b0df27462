//! One run of a sweep: `bench serve` in a process of its own, against a server that was started with
//! its parameters; and the folder and the tables of all results, laid out as `vllm bench sweep serve`
//! lays them out, because its plot tools read them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{fs, io};

use indexmap::{IndexMap, IndexSet};
use inferometer_load::Target;
use inferometer_load::resources::resolve;
use inferometer_load::target::Credentials;
use inferometer_model::deployment::{
    DeploymentFailure, DeploymentHow, DeploymentSpec, DeploymentStage, EnvironmentSpec,
    ProcessSpec, Renewal,
};
use inferometer_model::fetch::{FetchRequest, Post, PostRequest};
use inferometer_model::spreadsheet::guarded;
use inferometer_model::{BaseUrl, Fetch, SpecDraft};
use inferometer_report::document::{Cell, Columns, Table, plain, terminal};
use inferometer_report::terminal::Style;
use inferometer_store::{read_at_most, write_atomically};
use inferometer_target::deploy::{Deployment, Probe, Waited, placeholder, secret};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::plan::{Combination, Plan, address, format_command};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::preflight::{bare_target, fetching};
use crate::signals::{Companion, Interruption};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The figures of such a run are kept, and the sweep ends with the same code.
const INVALID: i32 = Exit::RunInvalid as i32;
const RESULT_BYTES_MAX: u64 = 1 << 30;
/// Columns of the page: keys of the result and titles.
const SHOWN: [(&str, &str); 5] = [
    ("mean_ttft_ms", "TTFT mean ms"),
    ("p99_ttft_ms", "TTFT p99 ms"),
    ("mean_tpot_ms", "TPOT mean ms"),
    ("request_throughput", "req/s"),
    ("output_throughput", "output tok/s"),
];

/// One result: the JSON of a run, with the parameters that it was made with.
/// In the order of its file, which is the order of the columns of a table.
pub(super) type RunData = IndexMap<String, Value>;
/// The runs of each combination, in the order of measurement.
pub(super) type Results = IndexMap<String, Vec<RunData>>;

pub(super) struct Run<'a> {
    pub(super) server: &'a Combination,
    pub(super) load: &'a Combination,
    /// `None` of the warm-up, which counts for nothing.
    pub(super) number: Option<u32>,
    pub(super) file: PathBuf,
}

impl Run<'_> {
    /// The result of a run that completed.
    pub(super) fn measure(
        &self,
        plan: &Plan<'_>,
        interruption: &Interruption,
    ) -> Result<RunData, Failure> {
        let failed = |error: io::Error| Failure::internal(format!("bench serve: {error}"));
        // Only what is read from this file becomes a result, so that a run that was cut is never taken
        // for one.
        let part = self.file.with_extension("part.json");
        remove(&part);
        let words = plan.bench_words(self.load, &part);
        output::talk(&format!("bench serve {}", format_command(&words)));
        let show = if plan.typed.show_stdout { Stdio::inherit } else { Stdio::null };
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(["bench", "serve"])
            .args(&words)
            .stdin(Stdio::null())
            .stdout(show())
            // A group of its own: it receives each signal once, from us.
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

    /// The result that is there already. A warm-up is made again: the server is another one.
    pub(super) fn read(&self) -> Result<Option<RunData>, Failure> {
        if self.number.is_none() {
            return Ok(None);
        }
        Ok(read_result(&self.file)?.map(|data| self.with_parameters(data)))
    }

    /// Where it is noted that it failed.
    pub(super) fn failure_file(&self) -> PathBuf {
        self.file.with_extension("failure.json")
    }

    fn with_parameters(&self, mut data: RunData) -> RunData {
        data.insert("run_number".to_owned(), self.number.map_or((-1).into(), Into::into));
        data.extend(self.server.entries());
        data.extend(self.load.entries());
        data
    }
}

/// Removes a file that is mostly not there.
pub(super) fn remove(file: &Path) {
    let _ = fs::remove_file(file);
}

/// Every signal is passed on: by the first the run drains, by the second it cuts.
fn await_end(child: &mut Child, interruption: &Interruption) -> io::Result<ExitStatus> {
    let mut passed_on = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let Some(signal) = interruption.next(passed_on, LOOK_EVERY) else { continue };
        passed_on += 1;
        if let (Ok(child), Ok(signal)) = (i32::try_from(child.id()), Signal::try_from(signal)) {
            // It may have ended by itself meanwhile.
            let _ = kill(Pid::from_raw(child), signal);
        }
    }
}

/// The folder of an experiment: a new one, or with `resume` one that is there.
pub(super) fn check_folder(folder: &Path, resume: bool) -> Result<(), Failure> {
    let shown = folder.display();
    match (folder.exists(), resume) {
        (true, false) => Err(Failure::usage(format!("{shown} is there already"))
            .hint("resume it with --resume, or name another with --experiment-name")),
        (false, true) => Err(Failure::usage(format!("{shown} is not there to be resumed"))
            .hint("name it with --output-dir and --experiment-name")),
        (true, true) | (false, false) => Ok(()),
    }
}

/// Where the runs of a combination go.
pub(super) fn pair_folder(folder: &Path, serve: &Combination, bench: &Combination) -> PathBuf {
    let mut parts = Vec::new();
    for (side, combination) in [("SERVE-", serve), ("BENCH-", bench)] {
        if !combination.is_empty() {
            parts.extend([side.to_owned(), combination.name()]);
        }
    }
    folder.join(file_name(&parts.join("-")))
}

pub(super) fn server_log(folder: &Path, serve: &Combination) -> PathBuf {
    let name = if serve.is_empty() { "default".to_owned() } else { serve.name() };
    folder.join(file_name(&format!("SERVE-{name}.log")))
}

/// As vLLM makes names of files, so that its own results can be resumed.
fn file_name(text: &str) -> String {
    text.replace('/', "_").replace("..", "__").trim_matches('\'').trim_matches('"').to_owned()
}

pub(super) fn run_file(pair: &Path, number: u32) -> PathBuf {
    pair.join(format!("run={number}.json"))
}

/// Whether any of so many runs is not there.
pub(super) fn lacks_runs(pair: &Path, runs: u32) -> bool {
    (0..runs).any(|number| !run_file(pair, number).exists())
}

/// `None` where there is no such file.
fn read_result(path: &Path) -> Result<Option<RunData>, Failure> {
    let bytes = read_at_most(path, RESULT_BYTES_MAX).map_err(Failure::from_usage)?;
    let Some(bytes) = bytes else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        let place = path.display();
        Failure::usage(format!("{place}: is not the JSON of a result: {error}"))
            .hint("remove it, and the run is made again")
    })
}

pub(super) fn write_result(path: &Path, document: &impl serde::Serialize) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(document)
        .map_err(|error| Failure::internal(format!("{}: {error}", path.display())))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    }
    Ok(write_atomically(path, &json)?)
}

/// One row for each run, with all keys that any of them has; the first column counts them, as
/// pandas does. A text that a spreadsheet would take for a formula is made text by an apostrophe.
pub(super) fn csv(results: &Results) -> String {
    let runs: Vec<&RunData> = results.values().flatten().collect();
    let columns: IndexSet<&str> =
        runs.iter().flat_map(|run| run.keys()).map(String::as_str).collect();
    let head = columns.iter().map(|column| quoted(column));
    let mut text = format!(",{}\n", head.collect::<Vec<_>>().join(","));
    for (number, run) in runs.iter().enumerate() {
        let cells = columns.iter().map(|column| cell(run.get(*column)));
        let _ = writeln!(text, "{number},{}", cells.collect::<Vec<_>>().join(","));
    }
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::Bool(true)) => "True".to_owned(),
        Some(Value::Bool(false)) => "False".to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => quoted(text),
        Some(other) => quoted(&other.to_string()),
    }
}

fn quoted(text: &str) -> String {
    let guarded = guarded(text);
    if guarded.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded.into_owned()
    }
}

/// The mean and the standard deviation over the runs of each combination.
pub(super) fn page(results: &Results) -> String {
    let mut columns =
        Columns::new("combination", |(name, _): &(&String, &Vec<RunData>)| Cell::text(*name))
            .right("runs", |(_, runs)| Cell::text(runs.len().to_string()));
    for (key, title) in SHOWN {
        columns = columns.right(title, move |(_, runs)| Cell::text(spread(runs, key)));
    }
    let table = columns.table("", "", results);
    let notes = vec![plain("± is the standard deviation over runs")];
    terminal::table(&Table { notes, ..table }, Style::Plain)
}

fn spread(runs: &[RunData], key: &str) -> String {
    let values: Vec<f64> =
        runs.iter().filter_map(|run| run.get(key).and_then(Value::as_f64)).collect();
    let Some(sample) = inferometer_analysis::Sample::new(values) else { return "–".to_owned() };
    match sample.std_sample() {
        Some(deviation) => format!("{:.2} ± {deviation:.2}", sample.mean()),
        None => format!("{:.2}", sample.mean()),
    }
}

const CONNECT: Duration = Duration::from_secs(2);
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long a server that is being stopped has before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// What a server of vLLM forgets what it has seen by; it has them with `VLLM_SERVER_DEV_MODE=1`.
const RESETS: [&str; 3] = ["/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache"];

/// Ends when it is dropped.
pub(super) struct Server {
    deployment: Deployment,
    base: BaseUrl,
    program: String,
    log: PathBuf,
    /// Keys of its command, which it may repeat in its log.
    keys: Vec<String>,
    _companion: Companion,
}

impl Server {
    /// Starts it and waits until it answers that it is healthy. Refuses where somebody else listens
    /// already: that server would be measured.
    pub(super) fn start(
        words: &[String],
        log: PathBuf,
        timeout: Duration,
        interruption: &Interruption,
    ) -> Result<Self, Failure> {
        let base = address(words)?;
        if resolve(&base, CONNECT).is_ok() {
            return Err(Failure::target(format!("something listens on {base} already"))
                .hint("end it, or give the server of --serve-cmd another --port"));
        }
        let program = secret::hidden(words).swap_remove(0);
        let failed = |what: String| Failure::target(format!("--serve-cmd `{program}`: {what}"));
        if let Some(folder) = log.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
        }
        let deployment = Deployment::start_at(&spec(words, timeout), base.port, &log)
            .map_err(|found| failed(found.what))?;
        let (keys, companion) =
            (secret::values(words), interruption.accompanied_by(deployment.group()));
        let mut server = Self { deployment, base, program, log, keys, _companion: companion };
        let base = server.base.clone();
        let waited = server
            .deployment
            .wait(&mut |_, _| health(&base), &mut |time| interruption.wait(time).is_some());
        let found = match waited {
            Ok(Waited::Ready(_)) => return Ok(server),
            Ok(Waited::Stopped) => return interruption.check().map(|()| server),
            Err(found) => found,
        };
        Err(match found.stage {
            DeploymentStage::Ready | DeploymentStage::Generate => server
                .failure("was not ready in time", found)
                .hint("give it longer with --server-ready-timeout"),
            DeploymentStage::Start => server
                .failure("is not measured", found)
                .hint("--serve-cmd must listen itself, on its --port"),
            DeploymentStage::Ended
            | DeploymentStage::Died
            | DeploymentStage::Measure
            | DeploymentStage::Stop => server.failure("ended before it was ready", found),
        })
    }

    /// Why it is not there any more, and what it said last.
    pub(super) fn died(&mut self) -> Option<Failure> {
        let found = self.deployment.ended()?;
        Some(self.failure("ended during a run", found))
    }

    fn failure(&self, why: &str, found: DeploymentFailure) -> Failure {
        let where_all = format!("(all of it is in {})", self.log.display());
        let said = found.log.iter().map(|line| format!("  {}", secret::without(&self.keys, line)));
        let what = if found.what.is_empty() { found.what } else { format!(": {}", found.what) };
        let failure = Failure::target(format!("the server `{}` {why}{what}", self.program))
            .shown(said.chain([where_all]).collect());
        match found.cause {
            Some(cause) => failure.hint(cause.remedy()),
            None => failure,
        }
    }

    /// Makes it forget the prompts that it has seen, so that the next run finds it as this one did.
    /// The reason where it cannot.
    pub(super) fn forget(&self) -> Result<(), String> {
        if !Path::new(&self.program).ends_with("vllm") {
            return Err(format!("it is not known how to reset the caches of `{}`", self.program));
        }
        let target = plain_target(&self.base).ok_or("its name is not known any more")?;
        let asked = fetching(&target, async |fetch| {
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
        asked.map_err(|failure| failure.message().to_owned())?
    }
}

/// Whether it says that it is well, which is what a sweep of vLLM waits for.
fn health(base: &BaseUrl) -> Probe {
    let Some(target) = plain_target(base) else {
        return Probe::NotYet("no server answers".to_owned());
    };
    let asked = fetching(&target, async |fetch| {
        let well = FetchRequest { path: "/health", body_limit: BODY_BYTES_MAX };
        fetch.fetch(well).await
    });
    match asked {
        Ok(Ok(reply)) if reply.status == 200 => Probe::Generated,
        Ok(Ok(reply)) => Probe::NotYet(format!("/health is answered with HTTP {}", reply.status)),
        Ok(Err(error)) => Probe::NotYet(error.to_string()),
        Err(failure) => Probe::NotYet(failure.message().to_owned()),
    }
}

/// The command as it was typed: braces in it are its own. As with vLLM's sweep it finds all of our
/// environment.
fn spec(words: &[String], ready_timeout: Duration) -> DeploymentSpec {
    let command = words.iter().map(|word| placeholder::escaped(word)).collect();
    let set = BTreeMap::from([("VLLM_SERVER_DEV_MODE".to_owned(), "1".to_owned())]);
    // By their whole names: a pattern does not mean what sounds like a key.
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

    use super::super::plan::read_parameters;
    use super::*;

    fn run(document: Value) -> RunData {
        serde_json::from_value(document).unwrap()
    }

    fn grouped<const RUNS: usize>(runs: [(&str, RunData); RUNS]) -> Results {
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
        let bench = Combination::default();
        let experiment = folder.path().join("e");
        check_folder(&experiment, false).unwrap();
        let pair = pair_folder(&experiment, serve, &bench);
        assert_eq!(pair.file_name().unwrap(), "SERVE--model=___org_name-n=1");
        assert_eq!(pair_folder(&experiment, &bench, &bench), experiment.join(""));
        assert!(check_folder(&experiment, true).is_err());
        assert!(check_folder(folder.path(), false).is_err());
    }
}
