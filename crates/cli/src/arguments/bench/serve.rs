//! The flags of `vllm bench serve`, by their own names: who is asked, when, and what is written.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use inferometer_model::spec::{SamplingTable, object};
use serde_json::{Map, Value};

use super::serve_data::ServeDataArguments;
use crate::arguments::StoreArguments;
use crate::bench::Refused;

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
    /// API to speak: openai or vllm (completions), openai-chat, openai-embeddings [default: openai]
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Scheme, host and path prefix of the server, instead of --host and --port
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Host of the server [default: 127.0.0.1]
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// Its port [default: 8000]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Path of the API [default: that of the backend]
    #[arg(long, value_name = "PATH")]
    pub(crate) endpoint: Option<String>,
    /// Extra headers of every request; values are never stored
    #[arg(long, value_name = "KEY=VALUE", num_args = 0.., action = ArgAction::Set)]
    pub(crate) header: Vec<String>,
    /// Do not check the server's TLS certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Model, and its tokenizer where no other is named [default: the first that /v1/models lists]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Name to ask for, where the server calls the model otherwise
    #[arg(long, value_name = "NAME")]
    pub(crate) served_model_name: Option<String>,
    /// Beginning of the x-request-id of every request [default: names the stored run]
    #[arg(long, value_name = "TEXT")]
    pub(crate) request_id_prefix: Option<String>,
    /// `LoRA` adapters to ask for instead of the model
    #[arg(long, value_name = "NAME", num_args = 1.., action = ArgAction::Set)]
    pub(crate) lora_modules: Vec<String>,
    /// Which adapter a request asks for [default: random]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) lora_assignment: Option<LoraAssignment>,
    /// Tokenizer that makes lengths exact: a file, a model's directory, or a name on the hub
    #[arg(long, value_name = "NAME")]
    pub(crate) tokenizer: Option<String>,
    /// auto or hf; others need code that is not here [default: auto]
    #[arg(long, value_name = "MODE")]
    pub(crate) tokenizer_mode: Option<String>,
    /// Changes nothing: no code of a model is run here
    #[arg(long)]
    pub(crate) trust_remote_code: bool,
    /// No tokenizer: lengths are estimated by words and by how the server counts them
    #[arg(long)]
    pub(crate) skip_tokenizer_init: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoraAssignment {
    Random,
    RoundRobin,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "What a request carries")]
pub(crate) struct ServeBodyArguments {
    /// Send `ignore_eos`; always so with random prompts and traces
    #[arg(long)]
    pub(crate) ignore_eos: bool,
    /// Log probabilities to ask for with each token, of completions
    #[arg(long, value_name = "N")]
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
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) request_rate: Option<f64>,
    /// Gamma shape of the gaps between requests: 1 is Poisson, inf makes them equal [default: 1]
    #[arg(long, value_name = "K")]
    pub(crate) burstiness: Option<f64>,
    /// Most requests in flight
    #[arg(long, value_name = "N")]
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
    /// Send at the moments of the trace; only with `timed_trace`, where it is the default
    #[arg(long, overrides_with = "no_self_timed")]
    pub(crate) self_timed: bool,
    /// Take the lengths of a trace, but not its moments
    #[arg(long)]
    pub(crate) no_self_timed: bool,
    /// Probes beside the load; only 0, which is none [default: 0]
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) probe_request_rate: Option<f64>,
    /// Requests to send before the run, which are not counted [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) num_warmups: Option<u64>,
    /// How long to wait for a server that is still starting, in seconds [default: 0]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ready_check_timeout_sec: Option<u64>,
    /// Seed of every random draw [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
    /// Percentiles of them [default: 99]
    #[arg(long, value_name = "LIST")]
    pub(crate) metric_percentiles: Option<String>,
    /// Limits in milliseconds of a good request: ttft, tpot or e2el
    #[arg(long, value_name = "METRIC:MS", num_args = 1.., action = ArgAction::Set)]
    pub(crate) goodput: Vec<String>,
    /// Write the result as a JSON file
    #[arg(long)]
    pub(crate) save_result: bool,
    /// Keep what happened to each request in that file
    #[arg(long)]
    pub(crate) save_detailed: bool,
    /// Append to that file instead of replacing it
    #[arg(long)]
    pub(crate) append_result: bool,
    /// Facts to store with the run and in that file
    #[arg(long, value_name = "KEY=VALUE", num_args = 0.., action = ArgAction::Set)]
    pub(crate) metadata: Vec<String>,
    /// Folder for that file [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) result_dir: Option<PathBuf>,
    /// Its name [default: made of the backend, the load, the model and the time]
    #[arg(long, value_name = "NAME")]
    pub(crate) result_filename: Option<String>,
    /// Name of the result [default: the backend]
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,
    /// No progress; notes, doubts and failures are told all the same
    #[arg(long)]
    pub(crate) disable_tqdm: bool,
    /// Have the server profile itself during the run
    #[arg(long)]
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
