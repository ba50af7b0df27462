//! `bench sweep serve`: every server of one file under every load of another, as
//! `vllm bench sweep serve` does it, with our client.
//!
//! Every run is `inferometer bench serve` in a process of its own, so that it is what that command
//! gives. Results that are there are not made again.

mod parameters;
mod plan;
mod run;
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use inferometer_analysis::Verdict;
use inferometer_report::escape::terminal;
use inferometer_target::deploy::secret;
use serde_json::{Value, json};

use self::parameters::Combination;
use self::plan::{Plan, format_command};
use self::run::{
    Results, Run, RunData, csv, lacks_runs, page, pair_folder, remove, run_file, server_log,
    write_result,
};
use self::server::Server;
use crate::arguments::ServeSweepArguments;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::signals::{Interruption, begin_session};

/// Where a result says what our checks think of it.
const VERDICT: &str = "inferometer_verdict";
const READY_TIMEOUT_S: u64 = 300;

pub(crate) fn run(typed: &ServeSweepArguments) -> Result<ExitCode, Failure> {
    if typed.resume && typed.experiment_name.is_none() {
        return Err(Failure::usage("--resume needs an experiment, and none is named")
            .hint("name its folder with --experiment-name"));
    }
    let plan = Plan::new(typed)?;
    if typed.dry_run {
        output::result(&plan.outline()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let session = begin_session(0, false)?;
    let mut sweep = Sweep {
        plan: &plan,
        interruption: &session.interruption,
        results: Results::new(),
        invalid: 0,
        failed: 0,
        warned: false,
    };
    match sweep.play() {
        Err(failure) if failure.is_interruption() => {
            sweep.say_how_to_resume();
            Err(failure)
        }
        played => played.and_then(|()| sweep.conclude()),
    }
}

struct Sweep<'a> {
    plan: &'a Plan<'a>,
    interruption: &'a Interruption,
    results: Results,
    invalid: usize,
    failed: usize,
    /// Whether it was said that the server's cache is not emptied.
    warned: bool,
}

impl Sweep<'_> {
    fn play(&mut self) -> Result<(), Failure> {
        for server in &self.plan.servers {
            self.interruption.check()?;
            match self.play_server(server) {
                Err(failure) if self.goes_on_after(&failure) => {
                    self.note_failure(&self.server_failure_file(server), server, None, &failure)?;
                }
                played => played?,
            }
        }
        Ok(())
    }

    fn goes_on_after(&self, failure: &Failure) -> bool {
        self.plan.typed.continue_on_error && !failure.is_interruption()
    }

    fn server_failure_file(&self, server: &Combination) -> PathBuf {
        server_log(&self.plan.folder, server).with_extension("failure.json")
    }

    fn play_server(&mut self, server: &Combination) -> Result<(), Failure> {
        let loads = self.plan.loads_of(server);
        let pairs: Vec<PathBuf> =
            loads.iter().map(|load| pair_folder(&self.plan.folder, server, load)).collect();
        let mut running = None;
        if pairs.iter().any(|pair| lacks_runs(pair, self.plan.runs)) {
            let words = server.applied_to(&self.plan.serve);
            let base = plan::address(&words)?;
            output::talk(&format!("starting: {}", format_command(&words)));
            let log = server_log(&self.plan.folder, server);
            let timeout = Duration::from_secs(
                self.plan.typed.server_ready_timeout.unwrap_or(READY_TIMEOUT_S),
            );
            let mut started = Server::start(&words, base, log, timeout, self.interruption)?;
            started.wait(self.interruption)?;
            remove(&self.server_failure_file(server));
            running = Some(started);
        }
        for (load, pair) in loads.into_iter().zip(pairs) {
            self.play_pair(running.as_mut(), server, load, &pair)?;
        }
        Ok(())
    }

    fn play_pair(
        &mut self,
        mut running: Option<&mut Server>,
        server: &Combination,
        load: &Combination,
        pair: &Path,
    ) -> Result<(), Failure> {
        let name = pair.strip_prefix(&self.plan.folder).unwrap_or(pair);
        let name = name.display().to_string();
        let run = |load, number, file| Run { server, load, number, file };
        let runs = self.plan.runs;
        let is_warmed = 0 < self.plan.warm_up_prompts && lacks_runs(pair, runs);
        let warm_load = self.plan.warm_up_of(load);
        let warm_up = is_warmed.then(|| run(&warm_load, None, pair.join("warmup.json")));
        let measured = (0..runs).map(|number| run(load, Some(number), run_file(pair, number)));
        let mut kept = Vec::new();
        for run in warm_up.into_iter().chain(measured) {
            match self.play_run(running.as_deref_mut(), &run) {
                Ok(data) => kept.extend(run.number.map(|_| data)),
                Err(failure) if self.goes_on_after(&failure) => {
                    self.note_failure(&run.failure_file(), server, Some(&run), &failure)?;
                }
                Err(failure) => return Err(failure),
            }
        }
        if !kept.is_empty() {
            write_result(&pair.join("summary.json"), &kept)?;
        }
        self.invalid += kept.iter().filter(|data| is_invalid(data)).count();
        if !kept.is_empty() {
            self.results.entry(name).or_default().extend(kept);
        }
        Ok(())
    }

    /// The result that is there, or a new one.
    fn play_run(
        &mut self,
        running: Option<&mut Server>,
        run: &Run<'_>,
    ) -> Result<RunData, Failure> {
        if let Some(data) = run.read()? {
            return Ok(data);
        }
        self.interruption.check()?;
        let Some(server) = running else {
            return Err(Failure::usage(format!("{} is gone", run.file.display()))
                .hint("give the same command again with --resume: the run is made again"));
        };
        let data = run.measure(self.plan, self.interruption)?;
        if let Some(failure) = server.died() {
            return Err(failure);
        }
        write_result(&run.file, &data)?;
        remove(&run.failure_file());
        self.interruption.check()?;
        self.after_run(server)?;
        Ok(data)
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
        let show = if self.plan.typed.show_stdout { Stdio::inherit } else { Stdio::null };
        let program = secret::hidden(words).swap_remove(0);
        let status = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(show())
            .status()
            .map_err(|error| Failure::usage(format!("--after-bench-cmd `{program}`: {error}")))?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::usage(format!("--after-bench-cmd `{program}` ended with {status}")))
    }

    fn note_failure(
        &mut self,
        file: &Path,
        server: &Combination,
        run: Option<&Run<'_>>,
        failure: &Failure,
    ) -> Result<(), Failure> {
        self.failed += 1;
        output::talk(&format!("failed, and gone on: {}", terminal(failure.message())));
        let overrides = |of: &Combination| of.entries().into_iter().collect::<RunData>();
        let document = json!({
            "run_number": run.map(|run| run.number),
            "error": failure.message(),
            "serve_overrides": overrides(server),
            "bench_overrides": run.map(|run| overrides(run.load)),
        });
        write_result(file, &document)
    }

    fn say_how_to_resume(&self) {
        let folder = &self.plan.folder;
        output::talk(&format!(
            "stopped; resume with the same command and --resume --output-dir {} --experiment-name {}",
            shown_path(folder.parent().unwrap_or(folder)),
            shown_path(Path::new(folder.file_name().unwrap_or_default()))
        ));
    }

    fn conclude(self) -> Result<ExitCode, Failure> {
        let folder = &self.plan.folder;
        let summary = csv(&self.results);
        inferometer_store::write_atomically(&folder.join("summary.csv"), summary.as_bytes())?;
        output::result(&page(&self.results))?;
        output::talk(&format!("results: {}", shown_path(folder)));
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

fn shown_path(path: &Path) -> String {
    terminal(&path.display().to_string())
}

/// Of a result that was read back, too.
fn is_invalid(data: &RunData) -> bool {
    data.get(VERDICT).and_then(Value::as_str) == Some(Verdict::Invalid.key())
}
