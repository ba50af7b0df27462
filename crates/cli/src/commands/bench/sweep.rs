//! `inferometer bench sweep serve`: many servers under many loads.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Zoned;

use crate::arguments::{ServeSweepArguments, SweepBenchArguments, SweepBenchCommand};
use crate::bench_sweep::{Asked, play};
use crate::failure::Failure;

const RUNS: u32 = 3;
const READY_TIMEOUT_S: u64 = 300;

pub(crate) fn run(arguments: &SweepBenchArguments) -> Result<ExitCode, Failure> {
    let SweepBenchCommand::Serve(typed) = &arguments.what;
    if typed.resume && typed.experiment_name.is_none() {
        return Err(Failure::usage("--resume goes on with an experiment, and none is named")
            .hint("name its folder with --experiment-name"));
    }
    play(&Asked {
        serve_command: &typed.serve_cmd,
        bench_command: &typed.bench_cmd,
        after_bench_command: typed.after_bench_cmd.as_deref(),
        serve_parameters: typed.serve_params.as_deref(),
        bench_parameters: typed.bench_params.as_deref(),
        links: typed.link_vars.as_deref().unwrap_or_default(),
        folder: folder(typed),
        runs: typed.num_runs.unwrap_or(RUNS),
        warm_up_prompts: typed.warmup_num_prompts.unwrap_or(0),
        ready_timeout: Duration::from_secs(typed.server_ready_timeout.unwrap_or(READY_TIMEOUT_S)),
        show_output: typed.show_stdout,
        continue_on_error: typed.continue_on_error,
        dry_run: typed.dry_run,
        resume: typed.resume,
    })
}

fn folder(typed: &ServeSweepArguments) -> PathBuf {
    let name = typed
        .experiment_name
        .clone()
        .unwrap_or_else(|| Zoned::now().strftime("%Y%m%d_%H%M%S").to_string());
    typed.output_dir.clone().unwrap_or_else(|| PathBuf::from("results")).join(name)
}
