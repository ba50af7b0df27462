//! `bench sweep serve`: every server of one file under every load of another, as
//! `vllm bench sweep serve` does it, with our client.
//!
//! Every run is `inferometer bench serve` in a process of its own, so that it is what that command
//! gives. Results that are there are not made again.

mod command;
mod experiment;
mod parameters;
mod plan;
mod server;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::json;

use self::experiment::RunData;
use self::parameters::Combination;
pub(crate) use self::plan::Asked;
use self::plan::{Plan, joined};
use self::server::Server;
use crate::failure::{Exit, Failure};
use crate::live::Session;
use crate::output;
use crate::signals::Interruption;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Its figures are kept, and the sweep ends with the same code.
const INVALID: i32 = Exit::RunInvalid as i32;

pub(crate) fn play(asked: &Asked<'_>) -> Result<ExitCode, Failure> {
    let plan = Plan::of(asked)?;
    if asked.dry_run {
        output::result(&plan.outline()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let session = Session::begin(0, false)?;
    let mut sweep = Sweep {
        plan: &plan,
        interruption: &session.interruption,
        results: Vec::new(),
        invalid: 0,
        failed: 0,
        warned: false,
    };
    let stopped = sweep.play()?;
    sweep.conclude(stopped)
}

/// One run of a sweep.
struct Run<'a> {
    server: &'a Combination,
    load: &'a Combination,
    /// `None` of the warm-up, which counts for nothing.
    number: Option<u32>,
    file: PathBuf,
}

struct Sweep<'a> {
    plan: &'a Plan<'a>,
    interruption: &'a Interruption,
    results: Vec<(String, RunData)>,
    invalid: usize,
    failed: usize,
    /// Whether it was said that the server's cache is not emptied.
    warned: bool,
}

/// Whether to go on, or the signal that ended it.
type Went = Result<Option<Exit>, Failure>;

impl Sweep<'_> {
    fn play(&mut self) -> Went {
        for server in &self.plan.servers {
            let went = match self.play_server(server) {
                Err(failure) if self.plan.asked.continue_on_error => {
                    self.note_failure(&self.server_failure_file(server), server, None, &failure)?;
                    None
                }
                went => went?,
            };
            if went.is_some() {
                return Ok(went);
            }
        }
        Ok(None)
    }

    fn server_failure_file(&self, server: &Combination) -> PathBuf {
        self.plan.experiment.server_log(server).with_extension("failure.json")
    }

    fn play_server(&mut self, server: &Combination) -> Went {
        let loads = self.plan.loads_of(server);
        let pairs: Vec<PathBuf> =
            loads.iter().map(|load| self.plan.experiment.of_pair(server, load)).collect();
        let mut running = None;
        if pairs.iter().any(|pair| !experiment::of_summary(pair).exists()) {
            let words = server.applied_to(&self.plan.serve);
            let base = command::address(&words)?;
            output::talk(&format!("starting: {}", joined(&words)));
            let log = self.plan.experiment.server_log(server);
            let mut started = Server::start(&words, base, log)?;
            let exit = started.wait(self.plan.asked.ready_timeout, self.interruption)?;
            if exit.is_some() {
                return Ok(exit);
            }
            running = Some(started);
        }
        for (load, pair) in loads.into_iter().zip(pairs) {
            let exit = self.play_pair(running.as_mut(), server, load, &pair)?;
            if exit.is_some() {
                return Ok(exit);
            }
        }
        Ok(None)
    }

    fn play_pair(
        &mut self,
        mut running: Option<&mut Server>,
        server: &Combination,
        load: &Combination,
        pair: &Path,
    ) -> Went {
        let prompts = self.plan.asked.warm_up_prompts;
        let warm_load = load.with("num_prompts", prompts.into());
        let warm_up = (0 < prompts).then(|| Run {
            server,
            load: &warm_load,
            number: None,
            file: pair.join("warmup.json"),
        });
        let measured = (0..self.plan.asked.runs).map(|number| Run {
            server,
            load,
            number: Some(number),
            file: experiment::of_run(pair, number),
        });
        let mut kept = Vec::new();
        for run in warm_up.into_iter().chain(measured) {
            match self.play_run(running.as_deref_mut(), &run) {
                Ok(Ok(data)) => kept.extend(run.number.map(|_| data)),
                Ok(Err(exit)) => return Ok(Some(exit)),
                Err(failure) if self.plan.asked.continue_on_error => {
                    let file = run.file.with_extension("failure.json");
                    self.note_failure(&file, server, Some(&run), &failure)?;
                }
                Err(failure) => return Err(failure),
            }
        }
        if !kept.is_empty() {
            experiment::write(&experiment::of_summary(pair), &kept)?;
        }
        let name = pair.strip_prefix(self.plan.experiment.folder()).unwrap_or(pair);
        let name = name.display().to_string();
        self.results.extend(kept.into_iter().map(|data| (name.clone(), data)));
        Ok(None)
    }

    /// The result that is there, or a new one; a signal that came meanwhile.
    fn play_run(
        &mut self,
        running: Option<&mut Server>,
        run: &Run<'_>,
    ) -> Result<Result<RunData, Exit>, Failure> {
        if let Some(data) = experiment::read(&run.file)? {
            return Ok(Ok(with_parameters(data, run)));
        }
        let Some(server) = running else {
            return Err(Failure::usage(format!("{} is missing", run.file.display()))
                .hint("remove summary.json beside it, and the run is made again"));
        };
        if let Err(exit) = self.measure(run)? {
            return Ok(Err(exit));
        }
        if let Some(status) = server.ended() {
            return Err(server.failure(&format!("ended with {status} during a run")));
        }
        self.after_run(server)?;
        let data = experiment::read(&run.file)?.ok_or_else(|| {
            Failure::internal(format!("{} was not written by the run", run.file.display()))
        })?;
        let data = with_parameters(data, run);
        experiment::write(&run.file, &data)?;
        Ok(Ok(data))
    }

    fn measure(&mut self, run: &Run<'_>) -> Result<Result<(), Exit>, Failure> {
        let failed = |error: std::io::Error| Failure::internal(format!("bench serve: {error}"));
        let mut words = run.load.applied_to(&self.plan.bench);
        let (folder, name) = (run.file.parent(), run.file.file_name());
        let text = |part: Option<&std::ffi::OsStr>| {
            part.unwrap_or_default().to_string_lossy().into_owned()
        };
        words.extend(["--percentile-metrics", "ttft,tpot,itl,e2el"].map(str::to_owned));
        words.extend(["--save-result".to_owned(), "--result-dir".to_owned()]);
        words.extend([text(folder.map(Path::as_os_str)), "--result-filename".to_owned()]);
        words.push(text(name));
        output::talk(&format!("bench serve {}", joined(&words)));
        let show = if self.plan.asked.show_output { Stdio::inherit } else { Stdio::null };
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(["bench", "serve"])
            .args(&words)
            .stdin(Stdio::null())
            .stdout(show())
            .spawn()
            .map_err(failed)?;
        let status = match self.await_run(&mut child).map_err(failed)? {
            Ok(status) => status,
            Err(exit) => return Ok(Err(exit)),
        };
        match status.code() {
            Some(0) => {}
            Some(INVALID) if run.file.exists() => self.invalid += 1,
            _ => return Err(Failure::target(format!("bench serve ended with {status}"))),
        }
        Ok(Ok(()))
    }

    /// A signal reaches the run, too, which saves what it has; it is waited for.
    fn await_run(&self, child: &mut Child) -> std::io::Result<Result<ExitStatus, Exit>> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(self.interruption.exit().map_or(Ok(status), Err));
            }
            self.interruption.wait(LOOK_EVERY);
        }
    }

    /// The server forgets, or the user's command makes it.
    fn after_run(&mut self, server: &Server) -> Result<(), Failure> {
        let Some(words) = &self.plan.after else {
            if let Err(why) = server.forget()
                && !self.warned
            {
                self.warned = true;
                output::talk(&format!(
                    "warning: the server's cache is not emptied between runs ({why}); repeated \
                     runs send the same prompts, which it may know: give --after-bench-cmd a \
                     command that empties it, or a --seed of its own to each load"
                ));
            }
            return Ok(());
        };
        let show = if self.plan.asked.show_output { Stdio::inherit } else { Stdio::null };
        let status = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(show())
            .status()
            .map_err(|error| {
                Failure::usage(format!("--after-bench-cmd `{}`: {error}", words[0]))
            })?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::usage(format!("--after-bench-cmd `{}` ended with {status}", words[0])))
    }

    fn note_failure(
        &mut self,
        file: &Path,
        server: &Combination,
        run: Option<&Run<'_>>,
        failure: &Failure,
    ) -> Result<(), Failure> {
        self.failed += 1;
        output::talk(&format!("failed, and gone on: {}", failure.message()));
        let overrides = |of: &Combination| of.entries().into_iter().collect::<RunData>();
        let document = json!({
            "run_number": run.map(|run| run.number),
            "error": failure.message(),
            "serve_overrides": overrides(server),
            "bench_overrides": run.map(|run| overrides(run.load)),
        });
        experiment::write(file, &document)
    }

    fn conclude(self, stopped: Option<Exit>) -> Result<ExitCode, Failure> {
        let folder = self.plan.experiment.folder();
        if let Some(exit) = stopped {
            output::talk(&format!(
                "stopped; go on with the same command and --resume --output-dir {} \
                 --experiment-name {}",
                folder.parent().unwrap_or(folder).display(),
                folder.file_name().unwrap_or_default().to_string_lossy()
            ));
            return Ok(exit.into());
        }
        let runs: Vec<RunData> = self.results.iter().map(|(_, run)| run.clone()).collect();
        let csv = folder.join("summary.csv");
        inferometer_store::write_atomically(&csv, table::csv(&runs).as_bytes())?;
        output::result(&table::page(&table::grouped(self.results)))?;
        output::talk(&format!("results: {}", folder.display()));
        if 0 < self.invalid {
            output::talk(&format!(
                "warning: {} of the runs are invalid; their pages say why",
                self.invalid
            ));
        }
        let exit = match (self.failed, self.invalid) {
            (1.., _) => Some(Exit::TargetNotUsable),
            (0, 1..) => Some(Exit::RunInvalid),
            (0, 0) => None,
        };
        Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
    }
}

fn with_parameters(mut data: RunData, run: &Run<'_>) -> RunData {
    data.insert("run_number".to_owned(), run.number.map_or(json!(-1), Into::into));
    data.extend(run.server.entries());
    data.extend(run.load.entries());
    data
}
