//! A foreign file that was taken in: whether it is as it was, and gives what it gave.

use std::process::ExitCode;

use inferometer_store::ImportDirectory;

use super::conclude;
use crate::arguments::PageFormat;
use crate::failure::Failure;
use crate::imports::{Mapped, sha256};
use crate::output;

/// Maps the file again and compares.
pub(super) fn verify(
    import: &ImportDirectory,
    page: Option<PageFormat>,
) -> Result<ExitCode, Failure> {
    let invalid = |error: &inferometer_store::StoreError| Failure::invalid(error.to_string());
    let foreign = import.foreign().map_err(|error| invalid(&error))?;
    let manifest = import.manifest().map_err(|error| invalid(&error))?;
    if sha256(&foreign) != manifest.file.sha256 {
        let problem = format!(
            "{} is not the file that was imported: it has {} bytes and another SHA-256 than \
             import.json says",
            import.foreign_path().display(),
            foreign.len()
        );
        return conclude("", vec![problem], page);
    }
    let mapped = Mapped::read(import).map_err(|failure| Failure::invalid(failure.message()))?;
    let problems: Vec<String> = difference(&mapped)?.into_iter().collect();
    match page {
        None => {}
        Some(PageFormat::Page) => output::result(&mapped.page())?,
        Some(PageFormat::Json) => output::result(&format!("{:#}\n", mapped.json()?))?,
        Some(PageFormat::Vllm) => output::result(&mapped.blocks())?,
    }
    let verified = format!(
        "verified {}: {} is as it was, and its {} results are what it gives",
        import.id(),
        manifest.file.name,
        mapped.import.sheets().count()
    );
    conclude(&verified, problems, page)
}

/// What is wrong with the stored summary, if anything.
fn difference(mapped: &Mapped) -> Result<Option<String>, Failure> {
    let again = "import the file again";
    let Some(kept) = mapped.directory.read_summary()? else {
        return Ok(Some(format!("there is no stored summary to compare with; {again}")));
    };
    if kept == mapped.summary()? {
        return Ok(None);
    }
    let made_by = &mapped.manifest.tool_version;
    let why = if made_by == env!("CARGO_PKG_VERSION") {
        String::new()
    } else {
        format!(" (imported by version {made_by}, mapped again by {})", env!("CARGO_PKG_VERSION"))
    };
    Ok(Some(format!("summary.json is not, byte for byte, what the file gives{why}; {again}")))
}
