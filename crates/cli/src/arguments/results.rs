//! Flags of the commands that deal with stored results: report, compare, export, import, require and
//! explain.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use inferometer_analysis::Undecided;
use inferometer_model::BaseUrl;
use inferometer_model::spec::Slo;

use super::{PageArguments, StoreArguments, choice};
use crate::push::Destination;

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// Runs, sets or imports: ids, beginnings of one, `latest`, folders, or SET/N for a run of a set;
    /// with --together CONFIGURATION=RUN names a line of the charts
    #[arg(value_name = "RUN", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// One page of all that is named, with a line for each configuration
    #[arg(long, help_heading = "Results")]
    pub(crate) together: bool,
    /// What a page of results is called
    #[arg(long, value_name = "TITLE", help_heading = "Results")]
    pub(crate) title: Option<String>,
    /// What to make [default: html, md and card]
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Results")]
    pub(crate) format: Option<ReportFormat>,
    /// Where to write it: a file, whose ending sets the format where --format does not, a folder, or
    /// `-` to print it
    /// [default: the folder of the run, set or import; csv and json are printed]
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    pub(crate) to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) narrator: NarratorArguments,
    /// Show the HTML page in the browser
    #[arg(long, help_heading = "Results")]
    pub(crate) open: bool,
    /// No messages; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct AnatomyArguments {
    /// The id of a run, the beginning of one, `latest`, the path of its folder, or SET/N for a run of a set
    #[arg(value_name = "RUN")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// What to print
    #[arg(long, value_enum, value_name = "FORM", default_value = "page")]
    pub(crate) format: AnatomyFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnatomyFormat {
    /// Tables for a terminal
    Page,
    /// One file that needs nothing else
    Html,
    /// Markdown
    Md,
    /// The numbers, and every step
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ReportFormat {
    /// One file that needs nothing else
    Html,
    /// Markdown, with its charts as files beside it
    Md,
    /// One row for each level, for spreadsheets
    Csv,
    /// The summary, as `runs` and `sweep` print it
    Json,
    /// A folder for a static site: index.md with front matter, and the charts that it includes
    Site,
    /// Every chart as PNG, in a folder, for slides and chats
    Png,
    /// One picture with the headline numbers and the verdict, as PNG and SVG
    Card,
}

impl ReportArguments {
    /// The format that is set, or that of the file's ending.
    pub(crate) fn format(&self) -> Option<ReportFormat> {
        let to = self.to.as_deref().filter(|to| !to.is_dir());
        self.format.or_else(|| match to?.extension()?.to_str()? {
            "html" | "htm" => Some(ReportFormat::Html),
            "md" => Some(ReportFormat::Md),
            "csv" => Some(ReportFormat::Csv),
            "json" => Some(ReportFormat::Json),
            _ => None,
        })
    }
}

/// Taken in by the commands that write a report.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NarratorArguments {
    /// Let a model write the prose: `target` for the one that was measured, or the base URL of
    /// another server. Every sentence is checked against the data; what fails is dropped
    #[arg(long, value_name = "URL|target", help_heading = "Report")]
    pub(crate) narrator: Option<NarratorChoice>,
    /// A file with the API key of the narrator's server. `suite --narrator target` has the target's
    /// key; of what is stored no key is known, so `report` sends one only if it is named here
    #[arg(long, value_name = "FILE", requires = "narrator", help_heading = "Report")]
    pub(crate) narrator_key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NarratorChoice {
    /// The model that was measured.
    Target,
    Url(BaseUrl),
}

impl std::str::FromStr for NarratorChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "target" => Ok(Self::Target),
            // A misspelt `target` would be taken for the name of a host.
            other if !other.contains("://") => Err(format!(
                "neither `target` nor the base URL of a server, such as http://{}",
                if other.contains([':', '.']) { other } else { "localhost:8000" }
            )),
            url => url
                .parse()
                .map(Self::Url)
                .map_err(|error| format!("{error}; give `target` or the base URL of a server")),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// Runs, sets or imports: ids, beginnings of one, `latest`, folders, SET/N or IMPORT/N;
    /// `NAME=RUN` names a side. The first is the base. A set of several servers and an import of
    /// several configurations are one side for each of them; suites, and matrices where there are
    /// several, are one side and compared row by row
    #[arg(value_name = "SIDE", required = true)]
    pub(crate) sides: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Quantity that decides, such as `tpot.p50` [default: `output_throughput` on a closed loop, TTFT
    /// p99 from schedule on an open one]
    #[arg(long, value_name = "QUANTITY", help_heading = "Judgement")]
    pub(crate) primary: Option<String>,
    /// Smallest change that matters, for all ratios [default: 2%, and 5% from p90 on]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = margin)]
    #[arg(help_heading = "Judgement")]
    pub(crate) margin: Option<f64>,
    /// Compare even what is not comparable
    #[arg(long, help_heading = "Judgement")]
    pub(crate) force: bool,
    /// GPUs of a node: show what it would give when it is full of servers
    #[arg(long, value_name = "N", help_heading = "Layouts")]
    pub(crate) gpus: Option<u32>,
    /// GPUs of one server of each side, such as A=8,B=4 [default: what imported results say of it]
    #[arg(long = "tp", value_name = "SIDE=N", value_delimiter = ',', requires = "gpus")]
    #[arg(value_parser = tensor_parallel, help_heading = "Layouts")]
    pub(crate) tensor_parallel: Vec<(String, u32)>,
    #[command(flatten)]
    pub(crate) write: WriteArguments,
}

/// In which form a document is written, and where.
#[derive(Args, Debug)]
pub(crate) struct WriteArguments {
    /// Print one JSON document instead of the page (short for --format json)
    #[arg(long, conflicts_with = "format", help_heading = "Results")]
    pub(crate) json: bool,
    /// What to write: the page, the JSON document, Markdown for a pull request, or HTML
    /// [default: page, and HTML into a file that ends in .html]
    #[arg(long, value_enum, help_heading = "Results")]
    pub(crate) format: Option<DocumentFormat>,
    /// File to write it to, or `-` to print it [default: printed]
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    pub(crate) to: Option<PathBuf>,
    /// No messages; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    Page,
    Json,
    Md,
    Html,
}

impl WriteArguments {
    pub(crate) fn format(&self) -> DocumentFormat {
        let json = self.json.then_some(DocumentFormat::Json);
        let has_ending = |ending: &str| {
            self.to.as_ref().is_some_and(|to| to.extension() == Some(ending.as_ref()))
        };
        let html = has_ending("html").then_some(DocumentFormat::Html);
        self.format.or(json).or(html).unwrap_or(DocumentFormat::Page)
    }
}

/// A margin as a share of one: `3%` and `0.03` are the same.
fn margin(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number / scale);
    share
        .ok()
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| "write a share from zero to less than one, such as 3% or 0.03".to_owned())
}

fn tensor_parallel(text: &str) -> Result<(String, u32), String> {
    let found = text
        .split_once('=')
        .and_then(|(side, size)| Some((side.trim().to_owned(), size.trim().parse::<u32>().ok()?)));
    found.ok_or_else(|| "write a side and the GPUs of one of its servers, such as A=8".to_owned())
}

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
    #[arg(required_unless_present = "push")]
    pub(crate) format: Option<ExportFormat>,
    /// Send the results to mlflow=URL or to otlp=URL; may be repeated. Keys come from the variables of
    /// the receivers' own clients (`MLFLOW_TRACKING_TOKEN`, `OTEL_EXPORTER_OTLP_HEADERS`)
    #[arg(long, value_name = "TO=URL", help_heading = "Results")]
    pub(crate) push: Vec<Destination>,
    /// Where to write it: a file, or a folder for parquet, github, and several results of vllm, aiperf
    /// and llm-d, or `-` to print it [default: printed]
    #[arg(long, value_name = "PATH", requires = "format", help_heading = "Results")]
    pub(crate) to: Option<PathBuf>,
    /// Add lines to the file instead of replacing it; vllm, vllm-detailed and otlp are lines
    #[arg(long, requires = "to", help_heading = "Results")]
    pub(crate) append: bool,
    /// No messages; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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
    /// Verdicts and SLOs as test cases
    Junit,
}

impl ExportFormat {
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

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// Files of other tools: `vllm bench serve`, `SGLang`, `GuideLLM`, `AIPerf`, `llm-d`,
    /// `genai-bench`; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// What a configuration is called; once for each of them, in the order of the files
    /// [default: the name in the file]
    #[arg(long = "name", value_name = "NAME", help_heading = "Reading")]
    pub(crate) names: Vec<String>,
    /// A load that comes again is a repeated run of one configuration, and does not begin another
    #[arg(long, help_heading = "Reading")]
    pub(crate) repeats: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Print one JSON document instead of the page
    pub(crate) json: bool,
    /// No messages; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Requirements")]
pub(crate) struct RequireArguments {
    /// Threshold on the result, such as ttft.p99<500ms or attainment>=95%; several may
    /// follow, and it may be repeated. Exits with 99 when one is missed or cannot be shown to be met
    #[arg(long = "require", value_name = "LIMIT", num_args = 1..)]
    pub(crate) limits: Vec<Slo>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
}

/// How requirements are judged and reported.
#[derive(Args, Debug, Default)]
pub(crate) struct GateArguments {
    /// Verdict on a threshold that lies within the confidence interval, or that cannot be judged
    /// [default: fail]
    #[arg(long, value_name = "WHAT", value_parser = choice(&UNDECIDED))]
    pub(crate) undecided: Option<Undecided>,
    /// File to write the requirements and SLOs to as JUnit XML, for CI
    pub(crate) junit: Option<PathBuf>,
    /// File to append a Markdown summary to [default: `GITHUB_STEP_SUMMARY`, where something is
    /// required]
    pub(crate) step_summary: Option<PathBuf>,
}

const UNDECIDED: [(&str, Undecided); 2] = [("pass", Undecided::Pass), ("fail", Undecided::Fail)];

#[derive(Args, Debug)]
pub(crate) struct RequireCommand {
    /// Runs or imports (an id, the beginning of one, `latest`, the path of a folder, or IMPORT/N), then
    /// limits, such as ttft.p99<500ms; what has a `<` or a `>` is a limit
    #[arg(required = true, value_name = "RUN|LIMIT")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// Metrics (`ttft`), quantities (`ttft.p99`), words of the pages (`knee`), another tool's name
    /// (`mean_ttft_ms`) or the tool itself (`vllm`) [default: list them]
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Print one JSON document
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrator_is_the_target_or_a_server() {
        assert_eq!("target".parse(), Ok(NarratorChoice::Target));
        assert!(matches!("http://other:8000".parse(), Ok(NarratorChoice::Url(_))));
        for wrong in ["8000", "nonsense", "Target", "other:8000", "ftp://other", "http://"] {
            let error = wrong.parse::<NarratorChoice>().unwrap_err();
            assert!(error.contains("`target`"), "{error}");
        }
        assert!("other:8000".parse::<NarratorChoice>().unwrap_err().contains("http://other:8000"));
    }

    #[test]
    fn margins_are_written_as_people_do() {
        for (text, share) in [("3%", 0.03), ("3 %", 0.03), ("0.03", 0.03), ("0", 0.0)] {
            assert!((margin(text).unwrap() - share).abs() < 1e-12, "{text}");
        }
        for text in ["", "%", "3", "-1%", "NaN", "100%", "much"] {
            assert!(margin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn servers_are_written_with_their_gpus() {
        assert_eq!(tensor_parallel("A=8"), Ok(("A".to_owned(), 8)));
        for text in ["A", "A=", "A=-1", "8"] {
            assert!(tensor_parallel(text).is_err(), "{text}");
        }
    }
}
