//! Data sets of plain lines: a table with a column of prompts, or a prompt to a line.

use inferometer_model::Prompt;
use serde_json::Map;

use super::collect::{Collector, Output, Raw};
use super::json::{OUTPUT_KEYS, output_tokens};
use crate::data_file::{DataFile, DataFileError};

pub(super) fn read(
    file: &mut DataFile,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let path = file.path().to_path_buf();
    let mut table = file.table()?;
    let prompts = table.needed("prompt")?;
    let outputs = OUTPUT_KEYS.iter().find_map(|name| Some((*name, table.column(name)?)));
    let strangers: Vec<String> = table
        .columns()
        .enumerate()
        .filter(|(place, _)| *place != prompts && outputs.is_none_or(|(_, known)| known != *place))
        .map(|(_, name)| name.to_owned())
        .collect();
    while let Some((place, row)) = table.next()? {
        let output =
            match outputs.map(|(name, column)| (name, row.get(column).unwrap_or(""))) {
                None | Some((_, "")) => Output::Unknown,
                Some((name, text)) => {
                    Output::Tokens(output_tokens(name, text).map_err(|reason| {
                        DataFileError::Wrong { path: path.clone(), place, reason }
                    })?)
                }
            };
        let prompt = Prompt::Text(row.get(prompts).unwrap_or_default().to_owned());
        collector.push(Raw { prompt, output, fields: Map::new() })?;
        for stranger in &strangers {
            collector.ignore("column", stranger);
        }
    }
    Ok(())
}

pub(super) fn read_text(
    file: &mut DataFile,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    let mut lines = file.lines();
    while let Some((_, line)) = lines.next()? {
        if line.trim().is_empty() {
            collector.leave_out("blank line");
            continue;
        }
        let prompt = Prompt::Text(line.to_owned());
        collector.push(Raw { prompt, output: Output::Unknown, fields: Map::new() })?;
    }
    Ok(())
}
