//! What `inferometer compare` may be told.

use clap::{Args, ValueEnum};

use super::StoreArguments;

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
    /// Change that nobody cares about, for all ratios [default: 2%, and 5% from p90 on]
    #[arg(
        long,
        value_name = "PERCENT",
        allow_hyphen_values = true,
        value_parser = margin,
        help_heading = "Judgement"
    )]
    pub(crate) margin: Option<f64>,
    /// Compare even what is not comparable
    #[arg(long, help_heading = "Judgement")]
    pub(crate) force: bool,
    /// GPUs of a node: show what it would give when it is full of servers
    #[arg(long, value_name = "N", help_heading = "Layouts")]
    pub(crate) gpus: Option<u32>,
    /// GPUs of one server of each side, such as A=8,B=4 [default: what imported results say of it]
    #[arg(
        long = "tp",
        value_name = "SIDE=N",
        value_delimiter = ',',
        value_parser = tensor_parallel,
        requires = "gpus",
        help_heading = "Layouts"
    )]
    pub(crate) tensor_parallel: Vec<(String, u32)>,
    /// Print one JSON document instead of the page (short for --format json)
    #[arg(long, conflicts_with = "format", help_heading = "Results")]
    pub(crate) json: bool,
    /// What to print: the page, the JSON document, or Markdown for a pull request [default: page]
    #[arg(long, value_enum, help_heading = "Results")]
    pub(crate) format: Option<CompareFormat>,
    /// No talk; results and errors only
    #[arg(short, long, help_heading = "Results")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    Page,
    Json,
    Md,
}

impl CompareArguments {
    pub(crate) fn format(&self) -> CompareFormat {
        let json = self.json.then_some(CompareFormat::Json);
        self.format.or(json).unwrap_or(CompareFormat::Page)
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

#[cfg(test)]
mod tests {
    use super::*;

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
