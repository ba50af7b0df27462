//! Where calibrations are kept: the user's cache folder, one folder for each machine, kernel and
//! version.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use inferometer_analysis::calibration::Calibration;
use inferometer_store::{read_at_most, write_atomically};

use crate::failure::Failure;

#[derive(Clone, Debug)]
pub struct CalibrationFolder {
    path: PathBuf,
}

/// A file of ours has some tens of kilobytes; a longer one is not ours.
const DOCUMENT_BYTES_MAX: u64 = 16 << 20;

impl CalibrationFolder {
    pub const DOCUMENT: &str = "calibration.json";
    pub const PAGE: &str = "calibration.md";
    pub const THROUGHPUT: &str = "throughput.svg";
    pub const LATENCY: &str = "latency.svg";

    /// The folder of this key; `None` where the user has no cache folder.
    pub fn of(key: &str) -> Option<Self> {
        let cache = cache_folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?;
        Some(Self { path: cache.join("inferometer").join("calibration").join(key) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder, before anything is measured that could not be kept.
    pub fn create(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.path).map_err(|error| {
            Failure::usage(format!("cannot keep a calibration in {}: {error}", self.path.display()))
                .hint("choose another place with the variable XDG_CACHE_HOME")
        })
    }

    /// What is kept there, if anything is. What cannot be read is nothing, and `ignored` is told
    /// why.
    pub fn read(&self, ignored: impl FnOnce(String)) -> Option<Calibration> {
        let path = self.path.join(Self::DOCUMENT);
        let found = match read_at_most(&path, DOCUMENT_BYTES_MAX) {
            Ok(found) => Calibration::from_json_bytes(&found?).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        found.map_err(|why| ignored(format!("{} is ignored: {why}", path.display()))).ok()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        Ok(write_atomically(&self.path.join(name), bytes)?)
    }
}

/// By the rules of the desktop: relative paths are as if they were not set.
fn cache_folder(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    xdg.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".cache")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_desktop_says() {
        let found = |xdg: Option<&str>, home: Option<&str>| {
            cache_folder(xdg.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(found(Some("/cache"), Some("/people/ada")), Some("/cache".into()));
        assert_eq!(found(None, Some("/people/ada")), Some("/people/ada/.cache".into()));
        assert_eq!(found(Some("not/absolute"), Some("/a")), Some("/a/.cache".into()));
        assert_eq!(found(Some(""), None), None);
    }

    #[test]
    fn what_is_damaged_is_reported_and_ignored() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = CalibrationFolder { path: temporary.path().to_owned() };
        assert!(folder.read(|why| panic!("{why}")).is_none(), "nothing there is no damage");
        for damage in ["", "{", "{\"schema\": \"another/7\"}", "[1, 2]"] {
            folder.write(CalibrationFolder::DOCUMENT, damage.as_bytes()).unwrap();
            let mut said = String::new();
            assert!(folder.read(|why| said = why).is_none());
            assert!(said.contains("calibration.json is ignored: it"), "{said}");
        }
    }
}
