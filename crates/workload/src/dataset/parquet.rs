//! Parquet: a row is an object, as a line of JSON Lines is. Only the columns that mean something are
//! read, page by page.

use inferometer_model::file;
use inferometer_model::spec::{DatasetPart, DatasetRole};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use serde_json::Value;
use strum::VariantArray as _;

use super::{BODY_KEYS, Collector, EXPECTED_KEYS, OUTPUT_KEYS, is_stranger, root_of};
use crate::data_file::{DataFile, DataFileError, Position};

/// The first and last bytes of each file.
pub(super) const MAGIC: &[u8] = b"PAR1";

pub(super) fn read(
    file: &mut DataFile,
    part: &DatasetPart,
    collector: &mut Collector<'_>,
) -> Result<(), DataFileError> {
    file.is_text = false;
    let path = file.path.clone();
    let wrong = |row: u64, error: &ParquetError| {
        let mut reason = error.to_string();
        if let ParquetError::General(text) | ParquetError::NYI(text) = error
            && text.contains("feature")
        {
            reason = format!("{text}; write it with Snappy, zstd, gzip, LZ4 or no compression");
        }
        DataFileError::Wrong { path: path.clone(), place: Position::Row(row), reason }
    };
    let unreadable = |source| DataFileError::Unreadable { path: path.clone(), source };
    let opened = file::open(&path).map_err(unreadable)?;
    let reader = SerializedFileReader::new(opened).map_err(|error| wrong(1, &error))?;
    // The reader panics at places before the beginning of the file.
    let mut columns = reader.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
    if columns.any(|column| {
        let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        first.min(column.data_page_offset()).min(column.compressed_size()) < 0
    }) {
        let reason = "a column begins before the file or has a negative size".to_owned();
        return Err(wrong(1, &ParquetError::General(reason)));
    }
    let schema = reader.metadata().file_metadata().schema();
    let (fields, strangers): (Vec<_>, Vec<_>) =
        schema.get_fields().iter().cloned().partition(|field| is_used(field.name(), part));
    if fields.is_empty() {
        let names = strangers.iter().take(20).map(|field| format!("`{}`", field.name()));
        let found = names.collect::<Vec<_>>().join(", ");
        return Err(DataFileError::NoColumn { path, column: "prompt", found });
    }
    let projection = Type::group_type_builder(schema.name()).with_fields(fields).build();
    let projection = projection.map_err(|error| wrong(1, &error))?;
    let (mut row, mut left) = (0, file.bound());
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| wrong(row + 1, &error))?;
        let rows = RowIter::from_row_group(Some(projection.clone()), &*group);
        for found in rows.map_err(|error| wrong(row + 1, &error))? {
            row += 1;
            let found = found.map_err(|error| wrong(row, &error))?;
            // A few bytes of a dictionary may be a long text in each of many rows.
            let value = found.to_json_value();
            let bytes = value.to_string().len() as u64;
            left = left.checked_sub(bytes).ok_or_else(|| DataFileError::TooLarge {
                path: path.clone(),
                bound: file.bound(),
            })?;
            if let Value::Object(object) = value {
                collector.push_object(object, part, (&path, Position::Row(row)))?;
            }
            for stranger in strangers.iter().filter(|it| is_stranger(it.name(), part)) {
                collector.ignore("column", stranger.name());
            }
        }
    }
    Ok(())
}

/// Whether a column is named by the spec, or has a name that means something.
fn is_used(name: &str, part: &DatasetPart) -> bool {
    let is_named = |column: &String| column == name || root_of(column) == name;
    part.columns.values().chain(part.only.keys()).any(is_named)
        || DatasetRole::VARIANTS.iter().any(|role| role.to_string() == name)
        || OUTPUT_KEYS.iter().chain(&BODY_KEYS).chain(&EXPECTED_KEYS).any(|known| *known == name)
}
