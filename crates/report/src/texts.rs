//! Sentences of the pages by their names, from `texts.txt`; `{}` stands for a part.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::LazyLock;

/// A text as it is; empty where there is none of this name.
pub(crate) fn text(name: &str) -> &'static str {
    static TEXTS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
        let files = [include_str!("texts.txt"), include_str!("narrative/findings/sentences.txt")];
        files.into_iter().flat_map(str::lines).filter_map(|line| line.split_once(": ")).collect()
    });
    TEXTS.get(name).copied().unwrap_or_default()
}

/// A text with its parts, in their order.
pub(crate) fn fill(name: &str, parts: &[&dyn Display]) -> String {
    filled(text(name), parts)
}

/// The same of a text with a file of its own.
pub(crate) fn filled(template: &str, parts: &[&dyn Display]) -> String {
    let mut pieces = template.split("{}");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.zip(parts).fold(first, |filled, (piece, part)| format!("{filled}{part}{piece}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// All code in a folder.
    fn code(folder: &Path) -> String {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: std::path::PathBuf| match path.extension() {
            _ if path.is_dir() => code(&path),
            Some(end) if end == "rs" => fs::read_to_string(&path).unwrap(),
            _ => String::new(),
        };
        entries.map(read).collect()
    }

    /// How many items a list has, up to its closing bracket.
    fn items(list: &str) -> usize {
        let (mut depth, mut items, mut is_empty) = (0, 0, true);
        for letter in list.chars() {
            match letter {
                '(' | '[' | '{' => depth += 1,
                ']' if depth == 0 => break,
                ')' | ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    items += 1;
                    is_empty = true;
                }
                _ => {}
            }
            if !letter.is_whitespace() && letter != ',' {
                is_empty = false;
            }
        }
        items + usize::from(!is_empty)
    }

    #[test]
    fn every_text_is_used_and_gets_as_many_parts_as_it_has_places() {
        let code = code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        for line in include_str!("texts.txt").lines() {
            let (name, _) = line.split_once(": ").unwrap();
            // Names that are put together: `mark-cut` of `mark-{}`, `grain-token` of `"grain", …`.
            let (first, _) = name.split_once('-').unwrap_or((name, ""));
            let forms = [format!("\"{name}\""), format!("\"{first}-{{"), format!("\"{first}\", ")];
            let is_made = ["advice", "remedy"].contains(&first);
            assert!(is_made || forms.iter().any(|form| code.contains(form)), "{name}");
        }
        for call in code.split("fill(").skip(1).map(str::trim_start) {
            let Some((name, list)) = call.strip_prefix('"').and_then(|it| it.split_once('"'))
            else {
                continue;
            };
            let Some(list) = list.trim_start_matches([',', ' ', '\n']).strip_prefix("&[") else {
                continue;
            };
            assert_eq!(text(name).matches("{}").count(), items(list), "{name}");
        }
        for call in code.split("text(\"").skip(1) {
            let (name, _) = call.split_once('"').unwrap();
            let is_name = name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase());
            assert!(!is_name || !name.contains('-') || !text(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn parts_stand_in_their_places() {
        let filled = fill("cut-by-limit", &[&"10 s"]);
        assert_eq!(filled, "cut by a time limit: 10 s");
        let absent = "no-such-text";
        assert_eq!(fill(absent, &[&1]), "");
    }
}
