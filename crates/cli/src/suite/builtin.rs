//! The suites that come with the program.

use std::path::Path;

use super::file::SuiteFile;
use crate::experiment::nearest;
use crate::failure::Failure;

/// The suite that is measured if none is named.
pub(super) const DEFAULT: &str = "standard";

/// By their names, in the order in which they are listed.
const ALL: [(&str, &str); 8] = [
    ("standard", include_str!("builtin/standard.toml")),
    ("quick", include_str!("builtin/quick.toml")),
    ("chat", include_str!("builtin/chat.toml")),
    ("rag", include_str!("builtin/rag.toml")),
    ("code", include_str!("builtin/code.toml")),
    ("agent", include_str!("builtin/agent.toml")),
    ("long-context", include_str!("builtin/long-context.toml")),
    ("methodology", include_str!("builtin/methodology.toml")),
];

pub(super) fn all() -> Result<Vec<SuiteFile>, Failure> {
    ALL.iter().map(|(name, text)| read(name, text)).collect()
}

pub(super) fn find(name: &str) -> Option<Result<SuiteFile, Failure>> {
    text_of(name).map(|text| read(name, text))
}

/// The file of a suite, as a beginning for one's own.
pub(crate) fn shown(name: &str) -> Result<&'static str, Failure> {
    text_of(name).ok_or_else(|| unknown(name))
}

fn text_of(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

fn read(name: &str, text: &str) -> Result<SuiteFile, Failure> {
    SuiteFile::parse(Path::new(&format!("{name}.toml (built in)")), text)
}

pub(super) fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
    let message = match nearest(name, &known) {
        Some(near) => format!("no suite is called `{name}`; did you mean `{near}`?"),
        None => format!("no suite is called `{name}`; built in are {}", known.join(", ")),
    };
    Failure::usage(message)
        .hint("a suite of your own is a file: inferometer suite --show standard > mine.toml")
}
