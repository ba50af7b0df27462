//! Flags of the commands that deal with the embedded engine.

use std::time::Duration;

use clap::{Args, ValueEnum};
use inferometer_engine::profile::{
    Dtype, EngineGeneration, KvCacheDtype, Quantization, SchedulingPolicy,
};

use super::target::ClientTable;
use crate::duration;

#[derive(Args, Debug)]
pub(crate) struct CalibrateArguments {
    /// Fewer levels and less time: a quarter of a minute, and rougher numbers
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) client: ClientTable,
    /// Print one JSON document instead of the page
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress; results and errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EngineArguments {
    /// `serve` plays a vLLM server; `paced` keeps a given pace; `echo` answers as fast as it can
    /// [default: serve]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<EngineMode>,
    /// Port to listen on; 0 takes a free one [default: 8000]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<std::net::IpAddr>,
    /// In mode serve the model to play (see --list), else the name to serve under
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Seed of text, jitter and noise [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) serve: ServeArguments,
    #[command(flatten)]
    pub(crate) paced: PacedArguments,
    /// End when standard input closes: how a parent process keeps hold of it
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

/// Flags of mode `serve`, under the names that vLLM gives them where it has them.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Mode serve")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ServeArguments {
    /// Print the profiles, GPUs and models that are known, and end
    #[arg(long)]
    pub(crate) list: bool,
    /// Server to play: a name of --list or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// GPU to play, by its name in --list
    #[arg(long, value_name = "NAME")]
    pub(crate) hardware: Option<String>,
    /// GPUs that share every layer
    #[arg(long, alias = "tensor-parallel-size", value_name = "N")]
    pub(crate) tp: Option<u32>,
    /// Groups of GPUs that share the layers among them
    #[arg(long, alias = "pipeline-parallel-size", value_name = "N")]
    pub(crate) pp: Option<u32>,
    /// Type in which the model computes
    #[arg(long, value_name = "TYPE")]
    pub(crate) dtype: Option<Dtype>,
    /// How weights are stored
    #[arg(long, value_name = "KIND")]
    pub(crate) quantization: Option<Quantization>,
    /// Type of the KV cache
    #[arg(long, value_name = "TYPE")]
    pub(crate) kv_cache_dtype: Option<KvCacheDtype>,
    /// Share of the memory that is used
    #[arg(long, value_name = "SHARE")]
    pub(crate) gpu_memory_utilization: Option<f64>,
    /// Most tokens of a prompt and its answer
    #[arg(long, value_name = "N")]
    pub(crate) max_model_len: Option<u32>,
    /// Most requests in one step
    #[arg(long, value_name = "N")]
    pub(crate) max_num_seqs: Option<u32>,
    /// Most tokens in one step
    #[arg(long, value_name = "N")]
    pub(crate) max_num_batched_tokens: Option<u32>,
    /// Most tokens of one prompt in one step
    #[arg(long, value_name = "N")]
    pub(crate) long_prefill_token_threshold: Option<u32>,
    /// Tokens of one KV block
    #[arg(long, value_name = "N")]
    pub(crate) block_size: Option<u32>,
    /// KV blocks, whatever the memory would hold
    #[arg(long, value_name = "N")]
    pub(crate) num_gpu_blocks_override: Option<u32>,
    /// Prompts find blocks of others, or with --no- they do not
    #[arg(long, overrides_with = "no_enable_prefix_caching")]
    pub(crate) enable_prefix_caching: bool,
    #[arg(long, hide = true, overrides_with = "enable_prefix_caching")]
    pub(crate) no_enable_prefix_caching: bool,
    /// Prompts may be cut over several steps, or with --no- they may not
    #[arg(long, overrides_with = "no_enable_chunked_prefill")]
    pub(crate) enable_chunked_prefill: bool,
    #[arg(long, hide = true, overrides_with = "enable_chunked_prefill")]
    pub(crate) no_enable_chunked_prefill: bool,
    /// Who is next: fcfs or priority
    #[arg(long, value_name = "POLICY")]
    pub(crate) scheduling_policy: Option<SchedulingPolicy>,
    /// Steps are put together while the one before runs, or with --no- after it
    #[arg(long, overrides_with = "no_async_scheduling")]
    pub(crate) async_scheduling: bool,
    #[arg(long, hide = true, overrides_with = "async_scheduling")]
    pub(crate) no_async_scheduling: bool,
    /// Which of vLLM's schedulers: v0 or v1
    #[arg(long, value_name = "VERSION")]
    pub(crate) generation: Option<EngineGeneration>,
    /// Steps for which a decision holds; only with v0
    #[arg(long, value_name = "N")]
    pub(crate) num_scheduler_steps: Option<u32>,
    /// No captured graphs, or with --no- captured ones
    #[arg(long, overrides_with = "no_enforce_eager")]
    pub(crate) enforce_eager: bool,
    #[arg(long, hide = true, overrides_with = "enforce_eager")]
    pub(crate) no_enforce_eager: bool,
    /// Sigma of the noise in step times
    #[arg(long, value_name = "SIGMA")]
    pub(crate) noise: Option<f64>,
    /// Name to serve the model under
    #[arg(long, value_name = "NAME")]
    pub(crate) served_model_name: Option<String>,
    /// Let every step take as long as this, whatever the profile says
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) step: Option<Duration>,
    /// How many times faster than the real server [default: 1]
    #[arg(long, value_name = "TIMES")]
    pub(crate) speed: Option<f64>,
    /// Whose names /metrics has [default: vLLM's of its --generation]
    #[arg(long, value_enum, value_name = "NAMES")]
    pub(crate) metrics_names: Option<MetricsNames>,
    /// File with the key that clients must send [default: `INFEROMETER_ENGINE_API_KEY`]
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<std::path::PathBuf>,
    /// Keep a log of all steps at /steps
    #[arg(long)]
    pub(crate) log_steps: bool,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Modes paced and echo")]
pub(crate) struct PacedArguments {
    /// Time from a request to its first token [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) ttft: Option<Duration>,
    /// Time between tokens [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) gap: Option<Duration>,
    /// Tokens per answer when the request does not say [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) tokens: Option<u32>,
    /// Tokens that one event carries [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) tokens_per_write: Option<u32>,
    /// Events that one write carries [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) events_per_write: Option<u32>,
    /// Share by which each interval may vary, from 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub(crate) jitter: Option<f64>,
    /// Framing fault to commit; may be repeated (byte-wise, several-events, crlf, cr, comments,
    /// role-first, usage-on-last-choice, no-done, multi-line, bom)
    #[arg(long = "fault", value_name = "FAULT")]
    pub(crate) faults: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EngineMode {
    Serve,
    Paced,
    Echo,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MetricsNames {
    VllmV1,
    VllmV0,
    Sglang,
}
