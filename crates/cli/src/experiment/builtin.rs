//! Experiments that come with the program.

use std::path::Path;

use super::check::Lists;
use super::file;
use super::layer::Layer;
use crate::failure::Failure;

/// By their names.
pub(super) const ALL: [(&str, &str); 1] = [("r3", include_str!("builtin/r3.toml"))];

/// A built-in one by its name, unless a file is called so; else a file.
pub(super) fn read(path: &Path) -> Result<Layer, Failure> {
    let found = ALL.iter().find(|(name, _)| Path::new(name) == path && !path.is_file());
    match found {
        Some((name, text)) => {
            let place = format!("{name}.toml (built in)");
            file::parse(Path::new(&place), text)?.checked(Lists::InOrder)
        }
        None => file::read(path),
    }
}
