//! `bench sweep serve`: every server of one file under every load of another, as
//! `vllm bench sweep serve` does it, with our client.
//!
//! Every run is `inferometer bench serve` in a process of its own, so that it is what that command
//! gives. Results that are there are not made again.

mod plan;
mod run;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use inferometer_analysis::Verdict;
use inferometer_report::escape::terminal;
use inferometer_store::write_atomically;
use inferometer_target::deploy::secret;
use serde_json::json;

use self::plan::{Combination, Plan};
use self::run::{
    Results, Run, RunData, Server, lacks_runs, pair_folder, remove, run_file, write_result,
};
use crate::arguments::ServeSweepArguments;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::signals::{Interruption, begin_session};

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
    let (interruption, results) = (&session.interruption, Results::new());
    let mut sweep = Sweep { plan: &plan, interruption, results, failed: 0, has_warned: false };
    for server in &plan.servers {
        let log = run::server_log(&plan.folder, server);
        let failure_file = log.with_extension("failure.json");
        let played = interruption
            .check()
            .and_then(|()| sweep.play_server(server, log, &failure_file))
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

struct Sweep<'a> {
    plan: &'a Plan<'a>,
    interruption: &'a Interruption,
    results: Results,
    failed: usize,
    /// Whether it was said that the server's cache is not emptied.
    has_warned: bool,
}

impl Sweep<'_> {
    fn play_server(
        &mut self,
        server: &Combination,
        log: PathBuf,
        failure_file: &Path,
    ) -> Result<(), Failure> {
        let loads = self.plan.loads_of(server);
        let pairs: Vec<PathBuf> =
            loads.iter().map(|load| pair_folder(&self.plan.folder, server, load)).collect();
        let mut running = None;
        if pairs.iter().any(|pair| lacks_runs(pair, self.plan.runs)) {
            let words = server.applied_to(&self.plan.serve);
            output::talk(&format!("starting: {}", plan::format_command(&words)));
            let timeout = self.plan.ready_timeout;
            running = Some(Server::start(&words, log, timeout, self.interruption)?);
            remove(failure_file);
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
                Err(failure) => {
                    self.note_failure(&run.failure_file(), server, Some(&run), failure)?;
                }
            }
        }
        if !kept.is_empty() {
            write_result(&pair.join("summary.json"), &kept)?;
            let name = pair.strip_prefix(&self.plan.folder).unwrap_or(pair).display().to_string();
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
        self.empty_cache(server)?;
        Ok(data)
    }

    /// The server forgets what it has seen, or the user's command makes it.
    fn empty_cache(&mut self, server: &Server) -> Result<(), Failure> {
        let Some(words) = &self.plan.after else {
            if let Err(why) = server.forget()
                && !std::mem::replace(&mut self.has_warned, true)
            {
                output::talk(&format!(
                    "warning: the server's cache is not emptied between runs ({why}); repeated \
                     runs send the same prompts, which it may know: give --after-bench-cmd a \
                     command that empties it, or a --seed of its own to each load"
                ));
            }
            return Ok(());
        };
        let show = if self.plan.typed.show_stdout { Stdio::inherit } else { Stdio::null };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(show());
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
        server: &Combination,
        run: Option<&Run<'_>>,
        failure: Failure,
    ) -> Result<(), Failure> {
        if !self.plan.typed.continue_on_error || failure.is_interruption() {
            return Err(failure);
        }
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

    fn conclude(self) -> Result<ExitCode, Failure> {
        let folder = &self.plan.folder;
        write_atomically(&folder.join("summary.csv"), run::csv(&self.results).as_bytes())?;
        output::result(&run::page(&self.results))?;
        output::talk(&format!("results: {}", shown(folder)));
        // Of results that were read back, too.
        let is_invalid = |data: &&RunData| {
            data.get("inferometer_verdict").is_some_and(|verdict| verdict == Verdict::Invalid.key())
        };
        let invalid = self.results.values().flatten().filter(is_invalid).count();
        if 0 < invalid {
            output::talk(&format!(
                "warning: {invalid} of the runs are invalid; their pages say why"
            ));
        }
        let exit = match (self.failed, invalid) {
            (1.., _) => Some(Exit::TargetNotUsable),
            (0, 1..) => Some(Exit::RunInvalid),
            (0, 0) => None,
        };
        Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
    }
}
