//! Short names for sides and levels where there is little room: no two sides have the same.

use std::collections::BTreeSet;

use inferometer_analysis::comparison::{ComparedLevel, Comparison};

use crate::escape::{terminal_cut, terminal_ends, terminal_line};

/// Columns for the name of a side.
const SIDE_WIDTH: usize = 12;
/// Columns for the name of a level, or of a row of a suite or a matrix.
const LEVEL_WIDTH: usize = 40;
/// Columns for it next to many other columns.
const NARROW_WIDTH: usize = 26;
/// Separator of the axes in the name of a matrix cell.
const SEPARATOR: &str = " · ";

/// The names of a page.
pub(super) struct Names {
    /// Each side with what the tables call it, the base first.
    sides: Vec<(String, String)>,
    /// Whether the tables have letters, which a key must explain.
    pub(super) are_letters: bool,
    /// Each level or row with its short name and a shorter one; empty on a page of any width.
    levels: Vec<(String, [String; 2])>,
    /// Parts of the names that all rows share.
    pub(super) shared: Option<String>,
}

impl Names {
    /// The whole names, for a page of any width.
    pub(super) fn whole(comparison: &Comparison) -> Self {
        let sides = comparison.sides.iter().map(|side| (side.name.clone(), side.name.clone()));
        Self { sides: sides.collect(), are_letters: false, levels: Vec::new(), shared: None }
    }

    /// Cut for a terminal where they stay distinct: at the end, else in the middle, else at the
    /// beginning. Where it does not, they are letters.
    pub(super) fn short(comparison: &Comparison) -> Self {
        let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
        let found = cut_distinct(&names, SIDE_WIDTH);
        let are_letters = found.is_none();
        let shown = found.unwrap_or_else(|| (0..names.len()).map(letter).collect());
        let sides = names.into_iter().map(str::to_owned).zip(shown).collect();
        let levels = comparison.levels.iter().map(|level| level.at.to_string()).collect();
        let (levels, shared) = level_names(levels);
        Self { sides, are_letters, levels, shared }
    }

    pub(super) fn side(&self, side: &str) -> &str {
        let known = self.sides.iter().find(|(name, _)| name == side);
        known.map_or("", |(_, shown)| shown.as_str())
    }

    pub(super) fn base(&self) -> &str {
        self.sides.first().map_or("", |(_, shown)| shown.as_str())
    }

    /// The name of a level.
    pub(super) fn level(&self, level: &ComparedLevel) -> String {
        self.cut_level(level, 0)
    }

    /// A shorter name of a level.
    pub(super) fn narrow_level(&self, level: &ComparedLevel) -> String {
        self.cut_level(level, 1)
    }

    fn cut_level(&self, level: &ComparedLevel, width: usize) -> String {
        let name = level.to_string();
        let known = self.levels.iter().find(|(known, _)| *known == name);
        known.map_or(name, |(_, cut)| cut[width].clone())
    }
}

/// Cut to a width where they stay distinct: at the end, else in the middle, else at the beginning.
fn cut_distinct(names: &[&str], width: usize) -> Option<Vec<String>> {
    let cuts: [fn(&str, usize) -> String; 3] = [terminal_line, terminal_ends, without_beginning];
    cuts.iter().find_map(|cut| distinct_names(names.iter().map(|name| cut(name, width)).collect()))
}

/// Names of rows of a matrix are long: parts that all share are removed, and the rest is cut.
fn level_names(names: Vec<String>) -> (Vec<(String, [String; 2])>, Option<String>) {
    let (own, shared) = without_shared(&names);
    let shown = |width: usize| {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let numbered = || {
            let number = |(number, name): (usize, &&str)| format!("{number}. {name}");
            (1..).zip(&own).map(number).map(|name| terminal_line(&name, width)).collect()
        };
        cut_distinct(&own, width).unwrap_or_else(numbered)
    };
    let cut = shown(LEVEL_WIDTH).into_iter().zip(shown(NARROW_WIDTH));
    (names.into_iter().zip(cut.map(|(shown, narrow)| [shown, narrow])).collect(), shared)
}

/// Each without the parts that all have at the same position, and these parts.
fn without_shared(names: &[String]) -> (Vec<String>, Option<String>) {
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split(SEPARATOR).collect()).collect();
    let Some((first, others)) = parts.split_first().filter(|(_, others)| !others.is_empty()) else {
        return (names.to_vec(), None);
    };
    let is_shared = |index: &usize| others.iter().all(|own| own.get(*index) == first.get(*index));
    let shared: Vec<usize> = (0..first.len()).filter(is_shared).collect();
    let is_table = others.iter().all(|own| own.len() == first.len());
    if !is_table || shared.is_empty() || shared.len() == first.len() {
        return (names.to_vec(), None);
    }
    let own = |parts: &Vec<&str>| {
        let kept = parts.iter().enumerate().filter(|(index, _)| !shared.contains(index));
        kept.map(|(_, part)| *part).collect::<Vec<_>>().join(SEPARATOR)
    };
    let common: Vec<&str> = shared.iter().map(|index| first[*index]).collect();
    (parts.iter().map(own).collect(), Some(common.join(SEPARATOR)))
}

/// The names where no two are the same.
fn distinct_names(shown: Vec<String>) -> Option<Vec<String>> {
    let distinct: BTreeSet<&String> = shown.iter().collect();
    (distinct.len() == shown.len()).then_some(shown)
}

fn without_beginning(name: &str, width: usize) -> String {
    terminal_cut(name, width, 0)
}

/// `A` to `Z`, and numbers after them.
fn letter(index: usize) -> String {
    let letter = u8::try_from(index).ok().and_then(|index| b'A'.checked_add(index));
    match letter {
        Some(letter) if letter.is_ascii_uppercase() => char::from(letter).to_string(),
        _ => (index + 1).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_they_are_alike() {
        assert_eq!(terminal_ends("configuration 2", SIDE_WIDTH), "confi…tion 2");
        assert_eq!(without_beginning("configuration 2, min rate", SIDE_WIDTH), "…2, min rate");
        assert_eq!(terminal_ends("tp8", SIDE_WIDTH), "tp8");
        assert_eq!(distinct_names(vec!["a".to_owned(), "a".to_owned()]), None);
        assert_eq!((letter(0), letter(25), letter(26)), ("A".into(), "Z".into(), "27".into()));
    }

    #[test]
    fn rows_of_a_matrix_say_once_what_all_say_and_stay_apart() {
        let row = |preset: &str, context: u32, load: u32| {
            format!("{preset} · DeepSeek-R1-Distill-Qwen-32B · {context} · tensor · {load} at once")
        };
        let names: Vec<String> = [2048, 128_000]
            .into_iter()
            .flat_map(|context| [1, 10].map(|load| row("a preset of a long name", context, load)))
            .chain([row("another", 2048, 1)])
            .collect();
        let (found, shared) = level_names(names);
        assert_eq!(shared.unwrap(), "DeepSeek-R1-Distill-Qwen-32B · tensor");
        assert_eq!(found[1].1[0], "a preset of a long name · 2048 · 10 at …");
        assert_eq!(found[3].1[0], "a preset of a long name · 128000 · 10 a…");
        let distinct: BTreeSet<&String> = found.iter().map(|(_, cut)| &cut[1]).collect();
        assert_eq!(distinct.len(), 5, "{distinct:?}");
        assert!(distinct.iter().all(|name| name.chars().count() <= NARROW_WIDTH), "{distinct:?}");
        let (alone, nothing) = level_names(vec!["c=4".to_owned(), "c=8".to_owned()]);
        assert_eq!((alone[1].1[0].as_str(), nothing), ("c=8", None));
    }
}
