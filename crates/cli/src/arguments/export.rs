//! What `inferometer export` may be told.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// Runs, sets or imports: ids, beginnings of one, `latest`, folders, or SET/N
    #[arg(value_name = "RUN", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Where to write it: a file or folder [default: printed]
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    pub(crate) to: Option<PathBuf>,
}
