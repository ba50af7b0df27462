//! The command that measures a matrix of deployments.

use clap::Args;

use super::ResultArguments;

#[derive(Args, Debug, Default)]
pub(crate) struct MatrixArguments {
    /// Matrix to measure: a name that --list shows, or a file of your own [default: r3]
    #[arg(value_name = "NAME|FILE")]
    pub(crate) matrix: Option<String>,
    /// Measure cells of the embedded engine in virtual time
    #[arg(long = "virtual")]
    pub(crate) virtual_time: bool,
    /// Go on with a matrix that was stopped
    #[arg(long, value_name = "SET")]
    pub(crate) resume: Option<String>,
    /// Only the cells that fit, such as `preset=H100X1,model=Llama-8B`; may be given several times
    #[arg(long, value_name = "FILTER")]
    pub(crate) only: Vec<String>,
    /// With --resume: measure the cells again that came to nothing
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}
