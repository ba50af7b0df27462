//! What `inferometer export` may be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::StoreArguments;

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// Runs, sets or imports: ids, beginnings of one, `latest`, folders, SET/N or IMPORT/N;
    /// CONFIGURATION=RUN names what was measured
    #[arg(value_name = "RUN", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// What to write
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Results")]
    pub(crate) format: ExportFormat,
    /// Where to write it: a file, or a folder for parquet, github, and several results of vllm, aiperf
    /// and llm-d [default: printed]
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    pub(crate) to: Option<PathBuf>,
    /// Add lines to the file instead of replacing it; vllm, vllm-detailed and otlp are lines
    #[arg(long, requires = "to", help_heading = "Results")]
    pub(crate) append: bool,
    /// No talk; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// What `vllm bench serve --save-result` writes, by its definitions
    Vllm,
    /// The same with the arrays of single requests (`--save-detailed`)
    VllmDetailed,
    /// One row for each result, for spreadsheets
    Csv,
    /// Tables of requests, tokens and telemetry, for `DuckDB` and pandas
    Parquet,
    /// The summary that `AIPerf` writes
    Aiperf,
    /// The Benchmark Report of llm-d, version 0.2
    LlmD,
    /// Text that Prometheus and its kin read
    Openmetrics,
    /// OpenTelemetry metrics as OTLP/JSON, one document on one line
    Otlp,
    /// The metric format of Bencher
    Bencher,
    /// The two lists that `github-action-benchmark` reads
    Github,
    /// Verdicts and promises as test cases
    Junit,
}

impl ExportFormat {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::VllmDetailed => "vllm-detailed",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Aiperf => "aiperf",
            Self::LlmD => "llm-d",
            Self::Openmetrics => "openmetrics",
            Self::Otlp => "otlp",
            Self::Bencher => "bencher",
            Self::Github => "github",
            Self::Junit => "junit",
        }
    }

    /// Whether a file of it is lines, each a whole document.
    pub(crate) const fn is_lines(self) -> bool {
        matches!(self, Self::Vllm | Self::VllmDetailed | Self::Otlp)
    }

    /// Whether a file of it holds one result, so that several may go into a folder.
    pub(crate) const fn is_of_one(self) -> bool {
        matches!(self, Self::Vllm | Self::VllmDetailed | Self::Aiperf | Self::LlmD)
    }

    /// Whether it is always several files.
    pub(crate) const fn is_folder(self) -> bool {
        matches!(self, Self::Parquet | Self::Github)
    }
}
