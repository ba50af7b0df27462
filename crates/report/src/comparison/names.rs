//! What sides and levels are called where there is little room: never two sides the same.

use std::collections::BTreeSet;

use inferometer_analysis::comparison::{Comparison, LevelComparison};

use crate::escape::{terminal_cut, terminal_ends, terminal_line};

/// Columns for the name of a side.
const SIDE_WIDTH: usize = 12;
/// The same for a level, or the row of a suite or a matrix.
const PLACE_WIDTH: usize = 40;
/// The same where there are many columns beside it.
const NARROW_WIDTH: usize = 26;
/// What stands between the axes of a cell of a matrix.
const BETWEEN: &str = " · ";

/// The names of a page.
pub(super) struct Names {
    /// Each side with what the tables call it, the base first.
    sides: Vec<(String, String)>,
    /// Whether the tables have letters, which a key must explain.
    pub(super) are_letters: bool,
    /// Each level or row with what tables call it; none on a page that is as wide as it needs.
    places: Vec<Place>,
    /// What all rows have in common, and none of them says.
    pub(super) shared: Option<String>,
}

struct Place {
    told: String,
    shown: String,
    narrow: String,
}

impl Names {
    /// As they are, for a page that is as wide as it needs.
    pub(super) fn whole(comparison: &Comparison) -> Self {
        let sides = of_sides(comparison);
        let sides = sides.map(|name| (name.to_owned(), name.to_owned())).collect();
        Self { sides, are_letters: false, places: Vec::new(), shared: None }
    }

    /// Cut for a terminal where that leaves them apart: at the end, else in the middle, else at the
    /// beginning. Where it does not, they are letters.
    pub(super) fn short(comparison: &Comparison) -> Self {
        let names: Vec<&str> = of_sides(comparison).collect();
        let found = cut_apart(&names, SIDE_WIDTH);
        let are_letters = found.is_none();
        let shown = found.unwrap_or_else(|| (0..names.len()).map(letter).collect());
        let sides = names.into_iter().map(str::to_owned).zip(shown).collect();
        let told = comparison.levels.iter().map(LevelComparison::told).collect();
        let (places, shared) = places(told);
        Self { sides, are_letters, places, shared }
    }

    pub(super) fn of(&self, side: &str) -> &str {
        let known = self.sides.iter().find(|(name, _)| name == side);
        known.map_or("", |(_, shown)| shown.as_str())
    }

    pub(super) fn base(&self) -> &str {
        self.sides.first().map_or("", |(_, shown)| shown.as_str())
    }

    /// The columns that a side needs.
    pub(super) fn width(&self) -> usize {
        self.sides.iter().map(|(_, shown)| shown.chars().count()).max().unwrap_or(0)
    }

    /// What a level is called.
    pub(super) fn place(&self, told: &str) -> String {
        self.placed(told).map_or_else(|| told.to_owned(), |place| place.shown.clone())
    }

    /// The same where there is still less room.
    pub(super) fn narrow_place(&self, told: &str) -> String {
        self.placed(told).map_or_else(|| told.to_owned(), |place| place.narrow.clone())
    }

    fn placed(&self, told: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.told == told)
    }
}

/// Cut to a width where that leaves them apart: at the end, else in the middle, else at the beginning.
fn cut_apart(names: &[&str], width: usize) -> Option<Vec<String>> {
    let cuts: [fn(&str, usize) -> String; 3] = [terminal_line, terminal_ends, without_beginning];
    cuts.iter().find_map(|cut| apart(names.iter().map(|name| cut(name, width)).collect()))
}

/// Rows of a matrix are long: what all of them say is said once, and the rest is cut.
fn places(told: Vec<String>) -> (Vec<Place>, Option<String>) {
    let (own, shared) = without_shared(&told);
    let shown = |width: usize| {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let numbered = || {
            let number = |(number, name): (usize, &&str)| format!("{number}. {name}");
            (1..).zip(&own).map(number).map(|name| terminal_line(&name, width)).collect()
        };
        cut_apart(&own, width).unwrap_or_else(numbered)
    };
    let named = told.into_iter().zip(shown(PLACE_WIDTH)).zip(shown(NARROW_WIDTH));
    let place = |((told, shown), narrow)| Place { told, shown, narrow };
    (named.map(place).collect(), shared)
}

/// Each without the parts that all have in the same place, and these parts.
fn without_shared(told: &[String]) -> (Vec<String>, Option<String>) {
    let parts: Vec<Vec<&str>> = told.iter().map(|told| told.split(BETWEEN).collect()).collect();
    let Some((first, others)) = parts.split_first().filter(|(_, others)| !others.is_empty()) else {
        return (told.to_vec(), None);
    };
    let is_shared = |place: &usize| others.iter().all(|own| own.get(*place) == first.get(*place));
    let shared: Vec<usize> = (0..first.len()).filter(is_shared).collect();
    let is_table = others.iter().all(|own| own.len() == first.len());
    if !is_table || shared.is_empty() || shared.len() == first.len() {
        return (told.to_vec(), None);
    }
    let own = |parts: &Vec<&str>| {
        let kept = parts.iter().enumerate().filter(|(place, _)| !shared.contains(place));
        kept.map(|(_, part)| *part).collect::<Vec<_>>().join(BETWEEN)
    };
    let said: Vec<&str> = shared.iter().map(|place| first[*place]).collect();
    (parts.iter().map(own).collect(), Some(said.join(BETWEEN)))
}

fn of_sides(comparison: &Comparison) -> impl Iterator<Item = &str> {
    comparison.sides.iter().map(|side| side.name.as_str())
}

/// The names where no two are the same.
fn apart(shown: Vec<String>) -> Option<Vec<String>> {
    let distinct: BTreeSet<&String> = shown.iter().collect();
    (distinct.len() == shown.len()).then_some(shown)
}

fn without_beginning(name: &str, width: usize) -> String {
    terminal_cut(name, width, 0)
}

/// `A` to `Z`, and numbers after them.
fn letter(place: usize) -> String {
    let letter = u8::try_from(place).ok().and_then(|place| b'A'.checked_add(place));
    match letter {
        Some(letter) if letter.is_ascii_uppercase() => char::from(letter).to_string(),
        _ => (place + 1).to_string(),
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
        assert_eq!(apart(vec!["a".to_owned(), "a".to_owned()]), None);
        assert_eq!((letter(0), letter(25), letter(26)), ("A".into(), "Z".into(), "27".into()));
    }

    #[test]
    fn rows_of_a_matrix_say_once_what_all_say_and_stay_apart() {
        let row = |preset: &str, context: u32, load: u32| {
            format!("{preset} · DeepSeek-R1-Distill-Qwen-32B · {context} · tensor · {load} at once")
        };
        let told: Vec<String> = [2048, 128_000]
            .into_iter()
            .flat_map(|context| [1, 10].map(|load| row("a preset of a long name", context, load)))
            .chain([row("another", 2048, 1)])
            .collect();
        let (found, shared) = places(told);
        assert_eq!(shared.unwrap(), "DeepSeek-R1-Distill-Qwen-32B · tensor");
        assert_eq!(found[1].shown, "a preset of a long name · 2048 · 10 at …");
        assert_eq!(found[3].shown, "a preset of a long name · 128000 · 10 a…");
        let distinct: BTreeSet<&String> = found.iter().map(|place| &place.narrow).collect();
        assert_eq!(distinct.len(), 5, "{distinct:?}");
        assert!(distinct.iter().all(|name| name.chars().count() <= NARROW_WIDTH), "{distinct:?}");
        let (alone, nothing) = places(vec!["c=4".to_owned(), "c=8".to_owned()]);
        assert_eq!((alone[1].shown.as_str(), nothing), ("c=8", None));
    }
}
