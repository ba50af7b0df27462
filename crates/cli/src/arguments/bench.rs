//! Flags of `inferometer bench`: those of `vllm bench serve` and `vllm bench sweep serve`, by their own
//! names.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use inferometer_model::spec::{AdapterChoice, SamplingTable, object};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{StoreArguments, choice};
use crate::bench::Refused;

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) what: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure a server as `vllm bench serve` does: its flags, its block, its result file
    ///
    /// Flags may be written with `-` or `_`. What cannot be done here is refused by name, with the
    /// reason and an alternative; docs/bench.md has the whole list. The run is stored as any other.
    /// If a flag is given twice, the last one counts, as there.
    #[command(allow_negative_numbers = true, args_override_self = true)]
    Serve(Box<ServeBenchArguments>),
    /// Measure many servers and loads as `vllm bench sweep` does
    Sweep(SweepBenchArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ServeBenchArguments {
    #[command(flatten)]
    pub(crate) target: ServeTargetArguments,
    #[command(flatten)]
    pub(crate) body: ServeBodyArguments,
    #[command(flatten)]
    pub(crate) data: ServeDataArguments,
    #[command(flatten)]
    pub(crate) load: ServeLoadArguments,
    #[command(flatten)]
    pub(crate) report: ServeReportArguments,
    /// Flags that the other client has and this one cannot honour.
    #[command(flatten)]
    pub(crate) refused: Refused,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Target")]
pub(crate) struct ServeTargetArguments {
    /// API to speak: openai or vllm (completions), openai-chat, openai-embeddings, vllm-rerank
    /// [default: openai]
    pub(crate) backend: Option<String>,
    /// Scheme, host and path prefix of the server, instead of --host and --port
    pub(crate) base_url: Option<String>,
    /// Host of the server [default: 127.0.0.1]
    pub(crate) host: Option<String>,
    /// Port of the server [default: 8000]
    pub(crate) port: Option<u16>,
    /// Path of the API [default: that of the backend]
    pub(crate) endpoint: Option<String>,
    /// Extra headers of every request; values are never stored
    #[arg(long, value_name = "KEY=VALUE", num_args = 0.., action = ArgAction::Set)]
    pub(crate) header: Vec<String>,
    /// Do not check the server's TLS certificate
    pub(crate) insecure: bool,
    /// Model, and its tokenizer where no other is named [default: the first that /v1/models lists]
    pub(crate) model: Option<String>,
    /// Name to ask for, where the server calls the model otherwise
    pub(crate) served_model_name: Option<String>,
    /// Beginning of the x-request-id of every request [default: names the stored run]
    pub(crate) request_id_prefix: Option<String>,
    /// `LoRA` adapters to ask for instead of the model
    #[arg(long, value_name = "NAME", num_args = 1.., action = ArgAction::Set)]
    pub(crate) lora_modules: Vec<String>,
    /// Which adapter a request asks for [default: random]
    #[arg(long, value_name = "HOW", value_parser = choice(&LORA_ASSIGNMENTS))]
    pub(crate) lora_assignment: Option<AdapterChoice>,
    /// Tokenizer that makes lengths exact: a file, a model's directory, or a name on the hub
    pub(crate) tokenizer: Option<String>,
    /// auto or hf; others need code that is not here [default: auto]
    pub(crate) tokenizer_mode: Option<String>,
    /// Changes nothing: no code of a model is run here
    pub(crate) trust_remote_code: bool,
    /// No tokenizer: lengths are estimated by words and by how the server counts them
    pub(crate) skip_tokenizer_init: bool,
}

const LORA_ASSIGNMENTS: [(&str, AdapterChoice); 2] =
    [("random", AdapterChoice::Random), ("round-robin", AdapterChoice::RoundRobin)];

#[derive(Args, Debug)]
#[command(next_help_heading = "What a request carries")]
pub(crate) struct ServeBodyArguments {
    /// Send `ignore_eos`; always so with random prompts and traces
    pub(crate) ignore_eos: bool,
    /// Log probabilities to ask for with each token, of completions
    pub(crate) logprobs: Option<u32>,
    /// Any other fields of the body, as a JSON object; they win over the flags below
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) extra_body: Option<Map<String, Value>>,
    #[command(flatten)]
    pub(crate) sampling: SamplingTable,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct ServeLoadArguments {
    /// Number of requests [default: 1000]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) num_prompts: Option<i64>,
    /// Requests per second; inf sends all at once, or as --max-concurrency allows [default: inf]
    pub(crate) request_rate: Option<f64>,
    /// Gamma shape of the gaps between requests: 1 is Poisson, inf makes them equal [default: 1]
    pub(crate) burstiness: Option<f64>,
    /// Most requests in flight
    pub(crate) max_concurrency: Option<u32>,
    /// A rate that grows with the number of the request, instead of --request-rate
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) ramp_up_strategy: Option<RampStrategy>,
    /// Rate at the first request
    #[arg(long, value_name = "PER_SECOND", allow_hyphen_values = true)]
    pub(crate) ramp_up_start_rps: Option<i64>,
    /// Rate at the last request
    #[arg(long, value_name = "PER_SECOND", allow_hyphen_values = true)]
    pub(crate) ramp_up_end_rps: Option<i64>,
    /// Send at the timestamps of the trace; only with `timed_trace`, where it is the default
    #[arg(long, overrides_with = "no_self_timed")]
    pub(crate) self_timed: bool,
    /// Take the lengths of a trace, but not its timestamps
    pub(crate) no_self_timed: bool,
    /// Probes beside the load; only 0, which is none [default: 0]
    pub(crate) probe_request_rate: Option<f64>,
    /// Requests to send before the run, which are not counted [default: 0]
    pub(crate) num_warmups: Option<u64>,
    /// How long to wait for a server that is still starting, in seconds [default: 0]
    pub(crate) ready_check_timeout_sec: Option<u64>,
    /// Seed of every random draw; 0, the default of vLLM's client, gives its prompts [default: drawn
    /// for each run]
    pub(crate) seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum RampStrategy {
    Linear,
    Exponential,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Results")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ServeReportArguments {
    /// Latencies to print and save: ttft, tpot, itl, e2el [default: ttft,tpot,itl; e2el where
    /// nothing is generated]
    #[arg(long, value_name = "LIST")]
    pub(crate) percentile_metrics: Option<String>,
    /// Percentiles of the latencies [default: 99]
    #[arg(long, value_name = "LIST")]
    pub(crate) metric_percentiles: Option<String>,
    /// Limits in milliseconds of a good request: ttft, tpot or e2el
    #[arg(long, value_name = "METRIC:MS", num_args = 1.., action = ArgAction::Set)]
    pub(crate) goodput: Vec<String>,
    /// Write the result as a JSON file
    pub(crate) save_result: bool,
    /// Keep what happened to each request in that file
    pub(crate) save_detailed: bool,
    /// Append to that file instead of replacing it
    pub(crate) append_result: bool,
    /// Facts to store with the run and in that file
    #[arg(long, value_name = "KEY=VALUE", num_args = 0.., action = ArgAction::Set)]
    pub(crate) metadata: Vec<String>,
    /// Folder for that file [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) result_dir: Option<PathBuf>,
    /// Name of that file [default: made of the backend, the load, the model and the time]
    pub(crate) result_filename: Option<String>,
    /// Name of the result [default: the backend]
    pub(crate) label: Option<String>,
    /// No progress; notes, warnings and failures are still printed
    pub(crate) disable_tqdm: bool,
    /// Have the server profile itself during the run
    pub(crate) profile: bool,
    /// Whose numbers are printed: the block with the definitions of `vllm bench serve`, the page
    /// with ours, or both [default: vllm]
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub(crate) definitions: Option<Definitions>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

/// Whose numbers are printed. The result file has those of the tool whose format it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Definitions {
    #[default]
    Vllm,
    Inferometer,
    Both,
}

#[derive(Args, Debug, Serialize)]
#[command(next_help_heading = "Workload")]
pub(crate) struct ServeDataArguments {
    /// Where prompts come from: random, random-mm, random-rerank, sharegpt, custom, hf, `spec_bench`,
    /// `speed_bench`, `prefix_repetition`, burstgpt or `timed_trace` [default: random]
    pub(crate) dataset_name: Option<String>,
    /// File or folder of the data, or its name on the hub
    pub(crate) dataset_path: Option<PathBuf>,
    /// Changes nothing: data of the hub are read whole
    pub(crate) no_stream: bool,
    /// Configuration of a dataset on the hub
    pub(crate) hf_subset: Option<String>,
    /// Split of a dataset on the hub [default: train]
    pub(crate) hf_split: Option<String>,
    /// Tokens of an answer, instead of what the dataset on the hub says
    pub(crate) hf_output_len: Option<u32>,
    /// Tokens of an answer [default: 256]
    pub(crate) spec_bench_output_len: Option<u32>,
    /// Category of the questions [default: all]
    pub(crate) spec_bench_category: Option<String>,
    /// File of the folder: qualitative or `throughput_1k` to `throughput_32k` [default: qualitative]
    pub(crate) speed_bench_dataset_subset: Option<String>,
    /// Tokens of an answer [default: 4096]
    pub(crate) speed_bench_output_len: Option<u32>,
    /// Category of the questions [default: all]
    pub(crate) speed_bench_category: Option<String>,
    /// Pictures of a request [default: 1]
    pub(crate) random_mm_base_items_per_request: Option<u32>,
    /// Most pictures of a request, as JSON: {"image": N} [default: 255]
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) random_mm_limit_mm_per_prompt: Option<Map<String, Value>>,
    /// Sizes of pictures and their shares: {(HEIGHT, WIDTH, 1): SHARE, …} [default: halves of 256 by
    /// 256 and of 720 by 1280]
    #[arg(long, value_name = "BUCKETS")]
    pub(crate) random_mm_bucket_config: Option<String>,
    /// Inputs of a request for embeddings, or documents of one for reranking [default: 1]
    pub(crate) random_batch_size: Option<u32>,
    /// Tokens of a random prompt, instead of --random-input-len
    pub(crate) input_len: Option<u32>,
    /// Tokens of an answer, instead of the flag of the data
    pub(crate) output_len: Option<u32>,
    /// Send the prompts of custom data as they are
    pub(crate) skip_chat_template: bool,
    /// Ask in the order of the file
    pub(crate) disable_shuffle: bool,
    /// Tokens of an answer to custom data; -1 takes what each line says [default: 256]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) custom_output_len: Option<i64>,
    /// Tokens of a random prompt [default: 1024]
    pub(crate) random_input_len: Option<u32>,
    /// Tokens of the answer to a random prompt [default: 128]
    pub(crate) random_output_len: Option<u32>,
    /// Share by which both vary, or {"input": R, "output": R} [default: 0]
    pub(crate) random_range_ratio: Option<String>,
    /// Tokens that all random prompts begin with, on top of their length [default: 0]
    pub(crate) random_prefix_len: Option<u32>,
    /// Tokens of an answer, instead of those of the reference answer
    pub(crate) sharegpt_output_len: Option<u32>,
    /// Tokens of a shared prefix [default: 256]
    pub(crate) prefix_repetition_prefix_len: Option<u32>,
    /// Tokens of a prompt after its shared prefix [default: 256]
    pub(crate) prefix_repetition_suffix_len: Option<u32>,
    /// How many prefixes there are [default: 10]
    pub(crate) prefix_repetition_num_prefixes: Option<u32>,
    /// Tokens of an answer [default: 128]
    pub(crate) prefix_repetition_output_len: Option<u32>,
    /// Tokens of a block of a trace: 16 or 512 [default: 16]
    pub(crate) timed_trace_chunk_hash_size: Option<u32>,
    /// Seconds of one tick of a trace: 1, or 0.001 for milliseconds [default: 1]
    pub(crate) timed_trace_sec_multiplier: Option<f64>,
}

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
    pub(crate) serve_params: Option<PathBuf>,
    /// JSON file of the same form, with flags of `bench serve`
    pub(crate) bench_params: Option<PathBuf>,
    /// Pairs that must be equal to be run, such as `max_num_seqs=max_concurrency`
    #[arg(long, value_name = "SERVE=BENCH,…")]
    pub(crate) link_vars: Option<String>,
    /// Folder of experiments [default: results]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Name of the experiment: its folder in --output-dir [default: the time]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) experiment_name: Option<String>,
    /// Runs of each combination [default: 3]
    pub(crate) num_runs: Option<u32>,
    /// Prompts of a run before those of each combination, which does not count [default: 0]
    pub(crate) warmup_num_prompts: Option<u32>,
    /// How long a server may take until it is ready, in seconds [default: 300]
    pub(crate) server_ready_timeout: Option<u64>,
    /// Show what the runs print
    pub(crate) show_stdout: bool,
    /// Note a run or server that failed, and go on
    pub(crate) continue_on_error: bool,
    /// Show the commands and run nothing
    pub(crate) dry_run: bool,
    /// Resume an experiment that was stopped: existing results are kept
    pub(crate) resume: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::arguments::{Arguments, BenchCommand, Command};

    use super::*;

    fn typed(words: &str) -> ServeBenchArguments {
        let words = ["inferometer", "bench", "serve"].into_iter().chain(words.split_whitespace());
        match Arguments::try_parse_from(words).unwrap().command {
            Some(Command::Bench(bench)) => match bench.what {
                BenchCommand::Serve(said) => *said,
                BenchCommand::Sweep(_) => panic!("a sweep"),
            },
            _ => panic!("no bench"),
        }
    }

    #[test]
    fn the_last_of_a_repeated_flag_counts_and_lists_are_replaced() {
        let said = typed(
            "--num-prompts 5 --header a=1 b=2 --metadata x=1 --goodput ttft:1 tpot:2 --save-result \
             --lora-modules m --num-prompts 50 --header c=3 --metadata y=2 z=3 --goodput e2el:9 \
             --save-result --lora-modules n o",
        );
        assert_eq!(said.load.num_prompts, Some(50));
        assert_eq!(
            (said.target.header, said.report.metadata),
            (vec!["c=3".into()], vec!["y=2".into(), "z=3".into()])
        );
        assert_eq!(
            (said.report.goodput, said.target.lora_modules),
            (vec!["e2el:9".into()], vec!["n".into(), "o".into()])
        );
        assert!(said.report.save_result && said.body.extra_body.is_none());
        let none = typed("--header a=1 --header --self-timed --no-self-timed");
        assert!(none.target.header.is_empty() && none.load.no_self_timed && !none.load.self_timed);
    }
}
