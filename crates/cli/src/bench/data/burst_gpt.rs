//! The other client keeps the rows of one model in a `BurstGPT` file; we take files whole.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::failure::Failure;

const MODEL: &str = "GPT-4";

/// Refuses a file that has other rows too: its lengths would be others than those that are asked
/// for elsewhere.
pub(super) fn check_models(path: &Path) -> Result<(), Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("data {}: {error}", path.display()));
    let mut lines = BufReader::new(File::open(path).map_err(unreadable)?).lines();
    let header = lines.next().transpose().map_err(unreadable)?.unwrap_or_default();
    let Some(column) = cells(&header).position(|name| name == "Model") else { return Ok(()) };
    for line in lines {
        let line = line.map_err(unreadable)?;
        let model = cells(&line).nth(column);
        if model.is_some_and(|model| model != MODEL) {
            return Err(Failure::usage(format!(
                "data {} has rows of other models than {MODEL}, which the other client leaves out",
                path.display()
            ))
            .hint(format!(
                "keep those rows alone: awk -F, 'NR==1 || ${}==\"{MODEL}\"' FILE > gpt4.csv",
                column + 1
            )));
        }
    }
    Ok(())
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim_end().split(',').map(|cell| cell.trim().trim_matches('"'))
}
