//! The command that measures a matrix of deployments.

use clap::Args;

use super::ResultArguments;

#[derive(Args, Debug, Default)]
// A set of cells has no one result that could be required, nor a block of one run: what is refused
// is not offered.
#[command(
    mut_arg("limits", |argument| argument.hide(true)),
    mut_arg("undecided", |argument| argument.hide(true)),
    mut_arg("junit", |argument| argument.hide(true)),
    mut_arg("step_summary", |argument| argument.hide(true)),
    mut_arg("format", |argument| argument
        .hide_possible_values(true)
        .help("What to print: page or json [default: page]")),
)]
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
    /// Only the cells that are so, such as `preset=H100X1,model=Llama-8B`, and with `concurrency=10`
    /// only at this load; may be given several times
    #[arg(long, value_name = "FILTER")]
    pub(crate) only: Vec<String>,
    /// With --resume: measure the cells again that came to nothing, and the runs in which requests
    /// failed
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,
    /// List the matrices that are built in
    #[arg(long, conflicts_with_all = ["matrix", "show"])]
    pub(crate) list: bool,
    /// Print the file of a built-in matrix, as a beginning for one of your own
    #[arg(long, value_name = "NAME", conflicts_with = "matrix")]
    pub(crate) show: Option<String>,
    /// Value of the file to override, such as load.requests=20; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(crate) sets: Vec<String>,
    /// How often each cell is put up and measured [default: as the file says, or 1]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) repeat: Option<u32>,
    /// Presets that are measured at once [default: likewise]
    #[arg(long, value_name = "N")]
    pub(crate) lanes: Option<u32>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) seed: Option<u64>,
    /// Extra header of every request, as "Name: value"; values are never stored
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    #[command(flatten)]
    pub(crate) results: ResultArguments,
}
