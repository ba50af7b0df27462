//! What `inferometer bench sweep` may be told: the flags of `vllm bench sweep serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub(crate) struct SweepBenchArguments {
    #[command(subcommand)]
    pub(crate) what: SweepBenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SweepBenchCommand {
    /// Start a server with each of its settings, and measure it under each load
    Serve(Box<ServeSweepArguments>),
}

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ServeSweepArguments {
    /// Command that starts a server: `vllm serve …`, or any other with --host and --port
    #[arg(long, value_name = "COMMAND")]
    pub(crate) serve_cmd: String,
    /// Command that measures it: `vllm bench serve …`; its flags are obeyed by our own client
    #[arg(long, value_name = "COMMAND")]
    pub(crate) bench_cmd: String,
    /// Command after each run, instead of emptying the caches of a vLLM server
    #[arg(long, value_name = "COMMAND")]
    pub(crate) after_bench_cmd: Option<String>,
    /// JSON file: a list of objects with flags of the server, or an object of named ones
    #[arg(long, value_name = "FILE")]
    pub(crate) serve_params: Option<PathBuf>,
    /// JSON file of the same form, with flags of `bench serve`
    #[arg(long, value_name = "FILE")]
    pub(crate) bench_params: Option<PathBuf>,
    /// Pairs that must be equal to be run, such as `max_num_seqs=max_concurrency`
    #[arg(long, value_name = "SERVE=BENCH,…")]
    pub(crate) link_vars: Option<String>,
    /// Folder of experiments [default: results]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Folder of this one in it [default: the time]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) experiment_name: Option<String>,
    /// Runs of each combination [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) num_runs: Option<u32>,
    /// Prompts of a run before those of each combination, which does not count [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) warmup_num_prompts: Option<u32>,
    /// How long a server may take until it is ready, in seconds [default: 300]
    #[arg(long, value_name = "S")]
    pub(crate) server_ready_timeout: Option<u64>,
    /// Show what the runs print
    #[arg(long)]
    pub(crate) show_stdout: bool,
    /// Note a run or server that failed, and go on
    #[arg(long)]
    pub(crate) continue_on_error: bool,
    /// Show the commands and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on with an experiment that was stopped: results that are there are not made again
    #[arg(long)]
    pub(crate) resume: bool,
}
