//! The matrices that come with the program.

use std::path::PathBuf;

use crate::experiment::nearest;
use crate::failure::Failure;

/// The matrix that is measured if none is named.
pub(super) const DEFAULT: &str = "r3";

/// By their names, in the order in which they are listed.
pub(super) const ALL: [(&str, &str); 2] = [
    ("r3", include_str!("builtin/r3.toml")),
    ("r3-concurrency", include_str!("builtin/r3-concurrency.toml")),
];

/// The file of a matrix, as a beginning for one's own.
pub(crate) fn shown(name: &str) -> Result<&'static str, Failure> {
    text_of(name).ok_or_else(|| unknown(name))
}

pub(super) fn text_of(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The path that errors in it name.
pub(super) fn place_of(name: &str) -> PathBuf {
    PathBuf::from(format!("{name}.toml (built in)"))
}

pub(super) fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
    let message = match nearest(name, &known) {
        Some(near) => format!("no matrix is called `{name}`; did you mean `{near}`?"),
        None => format!("no matrix is called `{name}`; built in are {}", known.join(", ")),
    };
    Failure::usage(message)
        .hint("a matrix of your own is a file: inferometer matrix --show r3 > mine.toml")
}
