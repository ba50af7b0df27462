//! What `inferometer import` may be told.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// Files of other tools: `vllm bench serve`, `SGLang`, `GuideLLM`, `AIPerf`, `llm-d`,
    /// `genai-bench`; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// What a configuration is called; once for each of them, in the order of the files
    /// [default: in the file's own words]
    #[arg(long = "name", value_name = "NAME", help_heading = "Reading")]
    pub(crate) names: Vec<String>,
    /// A load that comes again is a repeated run of one configuration, and does not begin another
    #[arg(long, help_heading = "Reading")]
    pub(crate) repeats: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Print one JSON document instead of the page
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
    /// No talk; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}
