//! Lines that are broken before they leave the page.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Columns of a page where nothing is known of the terminal.
pub const PAGE_WIDTH: usize = 80;
/// Lines that are longer are hard to read.
const PAGE_WIDTH_MAX: usize = 120;

static WIDTH: AtomicUsize = AtomicUsize::new(PAGE_WIDTH);

/// Columns of a page.
pub fn page_width() -> usize {
    WIDTH.load(Ordering::Relaxed)
}

/// Lets pages use a terminal that is wider than usual.
pub fn set_page_width(columns: usize) {
    WIDTH.store(columns.clamp(PAGE_WIDTH, PAGE_WIDTH_MAX), Ordering::Relaxed);
}

/// The text behind a head of `indent` columns, which may be painted; it goes on below itself.
pub fn hanging(head: &str, indent: usize, text: &str) -> String {
    let mut page = String::new();
    for (place, line) in broken(text, page_width().saturating_sub(indent)).into_iter().enumerate() {
        let _ = match place {
            0 => writeln!(page, "{head}{line}"),
            _ => writeln!(page, "{:indent$}{line}", ""),
        };
    }
    page
}

/// Broken at spaces, and inside of a word only where it is longer than a line.
pub(crate) fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        let space = usize::from(0 < used);
        let fits = used + space + length <= room;
        if fits && space == 1 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
        }
        if !fits && 0 < used {
            lines.push(String::new());
        }
        used = if fits { used + space } else { 0 };
        for letter in word.chars() {
            if used == room {
                lines.push(String::new());
                used = 0;
            }
            lines.last_mut().into_iter().for_each(|line| line.push(letter));
            used += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_where_they_must() {
        assert_eq!(broken("one two three", 7), ["one two", "three"]);
        assert_eq!(broken("one two three", 100), ["one two three"]);
        assert_eq!(broken("a abcdefgh b", 3), ["a", "abc", "def", "gh", "b"]);
        assert_eq!(broken("abc def", 3), ["abc", "def"]);
        assert_eq!(broken("äöü äöü", 7), ["äöü äöü"]);
        assert_eq!(broken("", 3), [""]);
    }

    #[test]
    fn a_broken_line_goes_on_below_itself() {
        let text = "word ".repeat(30);
        let page = hanging("  input    ", 11, &text);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("  input    word"));
        assert!(lines[1].starts_with("           word"));
        assert!(lines.iter().all(|line| line.chars().count() <= PAGE_WIDTH));
    }
}
