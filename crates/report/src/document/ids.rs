//! Names of places on a page and of files: safe characters only, and none twice.

use std::collections::BTreeSet;

/// The ids that a page has given away.
#[derive(Debug, Default)]
pub(super) struct Ids {
    given: BTreeSet<String>,
}

impl Ids {
    /// The id as a link names it, or with a number where somebody has it already.
    pub(super) fn give(&mut self, wanted: &str) -> String {
        let wanted = anchor(wanted);
        let mut id = wanted.clone();
        let mut number = 2;
        while !self.given.insert(id.clone()) {
            id = format!("{wanted}-{number}");
            number += 1;
        }
        id
    }
}

/// Names of files may not be much longer.
const LONGEST: usize = 80;

/// Lower-case letters, digits and single hyphens; whatever else it held is a hyphen. Letters of other
/// scripts are told apart by a number made from the whole.
pub(super) fn anchor(id: &str) -> String {
    let mut anchor = String::with_capacity(id.len());
    for character in id.chars() {
        if character.is_ascii_alphanumeric() {
            anchor.push(character.to_ascii_lowercase());
        } else if !anchor.is_empty() && !anchor.ends_with('-') {
            anchor.push('-');
        }
    }
    let is_foreign = |letter: char| !letter.is_ascii() && letter.is_alphanumeric();
    let is_cut = LONGEST < anchor.len();
    let mark = if is_cut || id.contains(is_foreign) {
        format!("-{:08x}", fingerprint(id))
    } else {
        String::new()
    };
    anchor.truncate(LONGEST - mark.len());
    let anchor = anchor.trim_end_matches('-');
    format!("{}{mark}", if anchor.is_empty() { "place" } else { anchor })
}

/// FNV-1a: short and the same everywhere; nobody's safety rests on it.
fn fingerprint(id: &str) -> u32 {
    id.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_path_and_no_markup() {
        assert_eq!(anchor("performance-summary"), "performance-summary");
        assert_eq!(anchor("../../etc/passwd"), "etc-passwd");
        assert_eq!(anchor("\"><script>"), "script");
        assert!(anchor("模型").starts_with("place-"), "{}", anchor("模型"));
        assert!(anchor(&"long ".repeat(99)).len() <= LONGEST, "no file has a longer name");
    }

    #[test]
    fn names_of_other_scripts_have_places_of_their_own() {
        let ids = ["scenario-模型", "scenario-速度", "scenario-müll", "scenario-mall"];
        let mut anchors: Vec<String> = ids.iter().map(|id| anchor(id)).collect();
        assert!(
            anchors.iter().all(|id| id.is_ascii() && id.starts_with("scenario-")),
            "{anchors:?}"
        );
        anchors.sort_unstable();
        anchors.dedup();
        assert_eq!(anchors.len(), ids.len(), "a link would lead to another's place");
        let long = |end: &str| anchor(&format!("{}{end}", "long-".repeat(30)));
        assert_ne!(long("a"), long("b"));
    }

    #[test]
    fn no_id_is_given_twice() {
        let mut ids = Ids::default();
        assert_eq!(ids.give("a b"), "a-b");
        assert_eq!(ids.give("a-b"), "a-b-2");
        assert_eq!(ids.give("a-b-2"), "a-b-2-2");
    }
}
