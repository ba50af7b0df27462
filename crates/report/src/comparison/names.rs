//! What sides and levels are called where there is little room: never two sides the same.

use std::collections::BTreeSet;

use inferometer_analysis::comparison::Comparison;

use crate::escape::{terminal, terminal_line};

/// Columns for the name of a side.
const SIDE_WIDTH: usize = 12;
/// The same for a level, or the row of a suite.
const PLACE_WIDTH: usize = 40;

/// The names of a page.
pub(super) struct Names {
    /// Each side with what the tables call it, the base first.
    sides: Vec<(String, String)>,
    /// Whether the tables have letters, which a key must explain.
    pub(super) are_letters: bool,
    place_width: usize,
}

impl Names {
    /// As they are, for a page that is as wide as it needs.
    pub(super) fn whole(comparison: &Comparison) -> Self {
        let sides = of_sides(comparison);
        let sides = sides.map(|name| (name.to_owned(), name.to_owned())).collect();
        Self { sides, are_letters: false, place_width: usize::MAX }
    }

    /// Cut for a terminal where that leaves them apart: at the end, else in the middle, else at the
    /// beginning. Where it does not, they are letters.
    pub(super) fn short(comparison: &Comparison) -> Self {
        let names: Vec<&str> = of_sides(comparison).collect();
        let cuts: [fn(&str) -> String; 3] =
            [|name| terminal_line(name, SIDE_WIDTH), without_middle, without_beginning];
        let found = cuts.iter().find_map(|cut| apart(names.iter().map(|name| cut(name)).collect()));
        let are_letters = found.is_none();
        let shown = found.unwrap_or_else(|| (0..names.len()).map(letter).collect());
        let sides = names.into_iter().map(str::to_owned).zip(shown).collect();
        Self { sides, are_letters, place_width: PLACE_WIDTH }
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
        terminal_line(told, self.place_width)
    }
}

fn of_sides(comparison: &Comparison) -> impl Iterator<Item = &str> {
    comparison.sides.iter().map(|side| side.name.as_str())
}

/// The names where no two are the same.
fn apart(shown: Vec<String>) -> Option<Vec<String>> {
    let distinct: BTreeSet<&String> = shown.iter().collect();
    (distinct.len() == shown.len()).then_some(shown)
}

fn without_middle(name: &str) -> String {
    cut(name, SIDE_WIDTH / 2 - 1)
}

fn without_beginning(name: &str) -> String {
    cut(name, 0)
}

/// So many letters of the beginning, and of the end what there is room for.
fn cut(name: &str, kept: usize) -> String {
    let letters: Vec<char> = terminal(name).chars().collect();
    if letters.len() <= SIDE_WIDTH {
        return letters.into_iter().collect();
    }
    let end = letters.len() - (SIDE_WIDTH - 1 - kept);
    letters[..kept].iter().chain(&['…']).chain(&letters[end..]).collect()
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
        assert_eq!(without_middle("configuration 2"), "confi…tion 2");
        assert_eq!(without_beginning("configuration 2, min rate"), "…2, min rate");
        assert_eq!(without_middle("tp8"), "tp8");
        assert_eq!(apart(vec!["a".to_owned(), "a".to_owned()]), None);
        assert_eq!((letter(0), letter(25), letter(26)), ("A".into(), "Z".into(), "27".into()));
    }
}
