//! Reading files that a user named, with a bound. This is the only place of this crate that opens a
//! file, so that all crates refuse the same things.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Opens a file for reading. A FIFO is allowed, because shells make one for `<(command)`; a device
/// is not, because it may never end.
pub fn open(path: &Path) -> io::Result<File> {
    // The number of a system error says nothing to people.
    let plain = |error: io::Error| {
        let known = [
            (ErrorKind::NotFound, "there is no such file"),
            (ErrorKind::PermissionDenied, "it may not be read"),
        ];
        let known = known.into_iter().find(|(kind, _)| *kind == error.kind());
        known.map_or(error, |(kind, words)| io::Error::new(kind, words))
    };
    let kind = fs::metadata(path).map_err(plain)?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is a device and not a file"));
    }
    File::open(path).map_err(plain)
}

/// The bytes of a file that has no more than `bytes_max` of them.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes_max < bytes.len() as u64 {
        let (size, unit) =
            if bytes_max < 1 << 20 { (bytes_max >> 10, "KiB") } else { (bytes_max >> 20, "MiB") };
        let message = format!("it is longer than {size} {unit}");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The same of a text.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_refused_and_a_length_is_bounded() {
        let refused = |path: &str, limit| read(Path::new(path), limit).unwrap_err().to_string();
        assert_eq!(refused("/dev/zero", 9), "it is a device and not a file");
        assert_eq!(refused("/proc/self/status", 3), "it is longer than 0 KiB");
        let status = read_text(Path::new("/proc/self/status"), 1 << 20).unwrap();
        assert!(status.starts_with("Name:"), "{status}");
    }
}
