//! What `inferometer fit` may be told.

use std::path::PathBuf;

use clap::Args;
use inferometer_model::spec::EngineTable;

use super::StoreArguments;

#[derive(Args, Debug)]
pub(crate) struct FitArguments {
    /// Measured results: our runs (folders, ids or `latest`), imports (ids, or `ID/N` for one result),
    /// other tools' files as `inferometer import` takes them, or typed-in tables (TOML, as in
    /// examples/published); `FILE@max_num_seqs=4096` where a result's server was set otherwise
    #[arg(value_name = "RESULT", required = true)]
    pub(crate) results: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) engine: EngineTable,
    /// Coefficients to fit, at most one for two rows; `none` only says how well the profile tells
    /// the results as it is [default: the most telling ones]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Fit")]
    pub(crate) free: Vec<String>,
    /// Standard deviation over mean of the prompts' lengths, where a result has only their sum
    /// [default: 0, all alike]
    #[arg(long, value_name = "SHARE", help_heading = "Fit")]
    pub(crate) input_spread: Option<f64>,
    /// The same of the answers' lengths
    #[arg(long, value_name = "SHARE", help_heading = "Fit")]
    pub(crate) output_spread: Option<f64>,
    /// Leave out how well rows are told that the fit has not seen; that takes longest
    #[arg(long, help_heading = "Fit")]
    pub(crate) no_leave_one_out: bool,
    /// Name of the profile [default: that of the profile to start from, and -fitted]
    #[arg(long, value_name = "NAME", help_heading = "Results")]
    pub(crate) name: Option<String>,
    /// Where the results come from, for the profile's file [default: their file names]
    #[arg(long, value_name = "SENTENCE", help_heading = "Results")]
    pub(crate) source: Option<String>,
    /// File to write the profile to; `--profile FILE` uses it
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) save: Option<PathBuf>,
    /// Print one JSON document instead of the page
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
    /// No talk; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}
