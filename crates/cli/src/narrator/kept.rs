//! What a model said, kept beside the results so that the page can be made again without asking.
//! Nothing that is wrong with it keeps a page from being made.

use std::path::Path;

use inferometer_report::narrative::narrator::{Narration, SCHEMA};
use inferometer_report::narrative::{Facts, Narrative};
use inferometer_store::{read_at_most, write_atomically};

use super::warn;

/// The name of its file beside a run or a set.
pub(super) const FILE: &str = "narration.json";
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Keeps what was said, in the folder of a run or a set. What was said before is worth more than a
/// failure to say it again.
pub(super) fn keep(folder: &Path, narration: &Narration) {
    let failed = narration.failure.is_some();
    match stored(folder) {
        Ok(Some(earlier)) if failed && narration.answers.len() < earlier.answers.len() => {
            warn(&format!("the page keeps what `{}` wrote before", earlier.model));
        }
        // It may hold words that a newer version can read.
        Err(_) if narration.answers.is_empty() => {}
        Ok(_) | Err(_) => {
            if let Err(why) = store(folder, narration) {
                warn(&format!("what the narrator said could not be stored, so rules write: {why}"));
            }
        }
    }
}

fn store(folder: &Path, narration: &Narration) -> Result<(), String> {
    let mut json = serde_json::to_vec_pretty(narration).map_err(|error| error.to_string())?;
    json.push(b'\n');
    write_atomically(&folder.join(FILE), &json).map_err(|error| error.to_string())
}

/// What was said when the results were new; `None` where nobody was asked.
pub(super) fn stored(folder: &Path) -> Result<Option<Narration>, String> {
    let path = folder.join(FILE);
    let unreadable = |why: String| format!("{}: {why}", path.display());
    let bytes = read_at_most(&path, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes else { return Ok(None) };
    let narration: Narration =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if narration.schema != SCHEMA {
        return Err(unreadable(format!("schema {} is not known here", narration.schema)));
    }
    Ok(Some(narration))
}

/// The words of a page: those of a stored narration as far as they hold, else those of the rules.
pub(crate) fn words(folder: &Path, facts: &Facts, rules: Narrative) -> Narrative {
    match stored(folder) {
        Ok(Some(narration)) => narration.narrative(facts, rules),
        Ok(None) => rules,
        Err(why) => {
            warn(&format!(
                "{why}; rules write the page. Remove the file, or ask again with --narrator"
            ));
            rules
        }
    }
}
