//! Which tool wrote a file: by what is in it, never by its name.

use std::borrow::Cow;

use super::ImportError;

/// What files that are no text begin with, and what to do about it.
const NOT_TEXT: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "compressed with gzip", "unpack it with `gunzip` first"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "unpack it with `unzstd` first"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "give the JSON file that belongs to it"),
    (b"PAR1", "Parquet", "give the JSON file that belongs to it"),
    (b"\xff\xfe", "UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16", "save it as UTF-8"),
];
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Damaged letters are replaced: a published page may have some, and its figures are still good.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, ImportError> {
    for (beginning, what, remedy) in NOT_TEXT {
        if bytes.starts_with(beginning) {
            return Err(ImportError::NotText { what, remedy });
        }
    }
    Ok(match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_start_matches(BYTE_ORDER_MARK)),
        Cow::Owned(text) => Cow::Owned(text),
    })
}
