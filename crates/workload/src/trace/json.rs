//! Traces of JSON lines with hash ids: blocks of text that requests share.

use inferometer_model::spec::TraceKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BAILIAN_BLOCK, MOONCAKE_BLOCK, Recording, Unit};
use crate::data_file::{DataFile, DataFileError, reason_of};

/// What differs between the dialects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    unit: Unit,
}

pub(super) const MOONCAKE: Dialect = Dialect { unit: Unit::Milliseconds };
pub(super) const BAILIAN: Dialect = Dialect { unit: Unit::Seconds };

#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    timestamp: &'l RawValue,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

pub(super) fn read(
    file: &mut DataFile,
    dialect: Dialect,
    recording: &mut Recording,
) -> Result<(), DataFileError> {
    let path = file.path().to_path_buf();
    let mut lines = file.lines();
    while let Some((place, line)) = lines.next()? {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |reason| DataFileError::Wrong { path: path.clone(), place, reason };
        let entry: Line<'_> =
            serde_json::from_str(line).map_err(|error| wrong(reason_of(&error)))?;
        let timestamp = entry.timestamp.get();
        let at = super::nanos(timestamp, dialect.unit)
            .ok_or_else(|| wrong(format!("`timestamp` is {timestamp}, not a number of time")))?;
        recording.push(at, (entry.input_length, entry.output_length), &entry.hash_ids)?;
    }
    Ok(())
}

/// What tells the dialects apart.
#[derive(Deserialize)]
struct Signs {
    chat_id: Option<serde::de::IgnoredAny>,
    #[expect(dead_code, reason = "both dialects must have it")]
    timestamp: serde::de::IgnoredAny,
    input_length: u32,
    #[serde(default)]
    hash_ids: Vec<serde::de::IgnoredAny>,
}

/// By the names of chats, which one dialect has, or else by the length of a block.
pub(super) fn kind_of(line: &str) -> Option<TraceKind> {
    let signs: Signs = serde_json::from_str(line).ok()?;
    let blocks_are =
        |tokens: u32| signs.input_length.div_ceil(tokens) as usize == signs.hash_ids.len();
    let is_bailian =
        signs.chat_id.is_some() || (!blocks_are(MOONCAKE_BLOCK) && blocks_are(BAILIAN_BLOCK));
    Some(if is_bailian { TraceKind::Bailian } else { TraceKind::Mooncake })
}

/// `TIMESTAMP,ContextTokens,GeneratedTokens`, and since 2025 `NumImages`.
pub(super) fn read_azure(
    file: &mut DataFile,
    recording: &mut Recording,
) -> Result<(), DataFileError> {
    let columns = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];
    let (mut with_images, mut images) = (0_u64, 0_u64);
    read_rows(file, columns, Some("NumImages"), |row| {
        let at = row.moment("a date with a time", super::date_nanos)?;
        let pictures = row.extra_count()?;
        with_images += u64::from(0 < pictures);
        images += u64::from(pictures);
        recording.push(at, row.lengths()?, &[])
    })?;
    if 0 < with_images {
        recording.notes.push(format!(
            "{with_images} of the recorded requests had {images} images, which are not sent; \
             their tokens are words here"
        ));
    }
    Ok(())
}

/// Seconds, and failures among the requests: those have no answer.
pub(super) fn read_burst_gpt(
    file: &mut DataFile,
    recording: &mut Recording,
) -> Result<(), DataFileError> {
    let columns = ["Timestamp", "Request tokens", "Response tokens"];
    read_rows(file, columns, None, |row| {
        let seconds = |text: &str| super::nanos(text, Unit::Seconds);
        let at = row.moment("a number of seconds", seconds)?;
        match row.lengths()? {
            (_, 0) => {
                recording.leave_out("failed (no response tokens)");
                Ok(())
            }
            lengths => recording.push(at, lengths, &[]),
        }
    })
}

/// Whose columns these are.
pub(super) fn table_kind(header: &str) -> Option<TraceKind> {
    let names = || header.split(',').map(|name| name.trim().trim_matches('"'));
    let has = |name: &str| names().any(|found| found.eq_ignore_ascii_case(name));
    if has("ContextTokens") {
        Some(TraceKind::Azure)
    } else if has("Request tokens") {
        Some(TraceKind::BurstGpt)
    } else {
        None
    }
}

/// Walks the rows of a table with columns for the moment, the input and the output.
fn read_rows(
    file: &mut DataFile,
    names: [&'static str; 3],
    extra: Option<&'static str>,
    mut on_row: impl FnMut(&Row<'_>) -> Result<(), DataFileError>,
) -> Result<(), DataFileError> {
    let path = file.path().to_path_buf();
    let mut table = file.table()?;
    let mut columns = [0; 3];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = table.needed(name)?;
    }
    let extra = extra.and_then(|name| Some((name, table.column(name)?)));
    while let Some((place, fields)) = table.next()? {
        let field = |column: usize| fields.get(column).unwrap_or_default().trim();
        let wrong = |reason: String| DataFileError::Wrong { path: path.clone(), place, reason };
        on_row(&Row {
            names,
            fields: columns.map(field),
            extra: extra.map(|(name, column)| (name, field(column))),
            wrong: &wrong,
        })?;
    }
    Ok(())
}

struct Row<'r> {
    names: [&'static str; 3],
    fields: [&'r str; 3],
    extra: Option<(&'static str, &'r str)>,
    wrong: &'r dyn Fn(String) -> DataFileError,
}

impl Row<'_> {
    fn moment(
        &self,
        what: &str,
        parse: impl Fn(&str) -> Option<i64>,
    ) -> Result<i64, DataFileError> {
        let (name, text) = (self.names[0], self.fields[0]);
        parse(text).ok_or_else(|| (self.wrong)(format!("`{name}` is `{text}`, not {what}")))
    }

    /// Input and output.
    fn lengths(&self) -> Result<(u32, u32), DataFileError> {
        Ok((self.count(self.names[1], self.fields[1])?, self.count(self.names[2], self.fields[2])?))
    }

    fn extra_count(&self) -> Result<u32, DataFileError> {
        self.extra.map_or(Ok(0), |(name, text)| self.count(name, text))
    }

    fn count(&self, name: &str, text: &str) -> Result<u32, DataFileError> {
        text.parse().map_err(|_| (self.wrong)(format!("`{name}` is `{text}`, not a whole number")))
    }
}
