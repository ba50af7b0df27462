//! Traces in tables. Columns are found by their names: newer files have more of them.

use inferometer_model::spec::TraceKind;

use super::decimal::{self, Unit};
use super::recording::Recording;
use crate::data_file::{DataFile, DataFileError};

/// `TIMESTAMP,ContextTokens,GeneratedTokens`, and since 2025 `NumImages`.
pub(super) fn read_azure(
    file: &mut DataFile,
    recording: &mut Recording,
) -> Result<(), DataFileError> {
    let columns = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];
    let (mut with_images, mut images) = (0_u64, 0_u64);
    read(file, columns, Some("NumImages"), |row| {
        let at = row.moment("a date with a time", decimal::date_nanos)?;
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
    read(file, columns, None, |row| {
        let seconds = |text: &str| decimal::nanos(text, Unit::Seconds);
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
pub(super) fn kind_of(header: &str) -> Option<TraceKind> {
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
fn read(
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
