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

/// Lower-case letters, digits and single hyphens; whatever else it held is a hyphen.
pub(super) fn anchor(id: &str) -> String {
    let mut anchor = String::with_capacity(id.len());
    for character in id.chars() {
        if character.is_ascii_alphanumeric() {
            anchor.push(character.to_ascii_lowercase());
        } else if !anchor.is_empty() && !anchor.ends_with('-') {
            anchor.push('-');
        }
    }
    anchor.truncate(LONGEST);
    let anchor = anchor.trim_end_matches('-');
    if anchor.is_empty() { "place".to_owned() } else { anchor.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_path_and_no_markup() {
        assert_eq!(anchor("performance-summary"), "performance-summary");
        assert_eq!(anchor("../../etc/passwd"), "etc-passwd");
        assert_eq!(anchor("\"><script>"), "script");
        assert_eq!(anchor("模型"), "place");
        assert_eq!(anchor(&"long ".repeat(99)).len(), 79, "no file has a longer name");
    }

    #[test]
    fn no_id_is_given_twice() {
        let mut ids = Ids::default();
        assert_eq!(ids.give("a b"), "a-b");
        assert_eq!(ids.give("a-b"), "a-b-2");
        assert_eq!(ids.give("a-b-2"), "a-b-2-2");
    }
}
