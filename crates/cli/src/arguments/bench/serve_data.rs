//! The flags of `vllm bench serve` that say what is asked.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
#[command(next_help_heading = "Workload")]
pub(crate) struct ServeDataArguments {
    /// Where prompts come from: random, sharegpt, custom, `prefix_repetition`, burstgpt or
    /// `timed_trace` [default: random]
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset_name: Option<String>,
    /// File of the data
    #[arg(long, value_name = "FILE")]
    pub(crate) dataset_path: Option<PathBuf>,
    /// Tokens of a random prompt, instead of --random-input-len
    #[arg(long, value_name = "N")]
    pub(crate) input_len: Option<u32>,
    /// Tokens of an answer, instead of the flag of the data
    #[arg(long, value_name = "N")]
    pub(crate) output_len: Option<u32>,
    /// Send the prompts of custom data as they are
    #[arg(long)]
    pub(crate) skip_chat_template: bool,
    /// Ask in the order of the file
    #[arg(long)]
    pub(crate) disable_shuffle: bool,
    /// Tokens of an answer to custom data; -1 takes what each line says [default: 256]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) custom_output_len: Option<i64>,
    /// Tokens of a random prompt [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) random_input_len: Option<u32>,
    /// Tokens of its answer [default: 128]
    #[arg(long, value_name = "N")]
    pub(crate) random_output_len: Option<u32>,
    /// Share by which both vary, or {"input": R, "output": R} [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub(crate) random_range_ratio: Option<String>,
    /// Tokens that all random prompts begin with, on top of their length [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) random_prefix_len: Option<u32>,
    /// Tokens of an answer, instead of those of the reference answer
    #[arg(long, value_name = "N")]
    pub(crate) sharegpt_output_len: Option<u32>,
    /// Tokens of a shared prefix [default: 256]
    #[arg(long, value_name = "N")]
    pub(crate) prefix_repetition_prefix_len: Option<u32>,
    /// Tokens of a prompt after it [default: 256]
    #[arg(long, value_name = "N")]
    pub(crate) prefix_repetition_suffix_len: Option<u32>,
    /// How many prefixes there are [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) prefix_repetition_num_prefixes: Option<u32>,
    /// Tokens of an answer [default: 128]
    #[arg(long, value_name = "N")]
    pub(crate) prefix_repetition_output_len: Option<u32>,
    /// Tokens of a block of a trace: 16 or 512 [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) timed_trace_chunk_hash_size: Option<u32>,
    /// Seconds of one tick of a trace: 1, or 0.001 for milliseconds [default: 1]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timed_trace_sec_multiplier: Option<f64>,
}
