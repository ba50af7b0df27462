//! What `inferometer report` may be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::StoreArguments;
use super::narrator::NarratorArguments;

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
    /// What to make [default: html and md]
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Results")]
    pub(crate) format: Option<ReportFormat>,
    /// Where to write it: a file, or a folder where no --format is named, or `-` to print it
    /// [default: the folder of the run, set or import; csv and json are printed]
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    pub(crate) to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) narrator: NarratorArguments,
    /// Show the HTML page in the browser
    #[arg(long, help_heading = "Results")]
    pub(crate) open: bool,
    /// No talk; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
}

impl ReportFormat {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Md => "md",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Site => "site",
        }
    }
}
