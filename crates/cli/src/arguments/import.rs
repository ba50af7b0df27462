//! What `inferometer import` may be told.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// Files of other tools
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Print one JSON document instead of the page
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}
