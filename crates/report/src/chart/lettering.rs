//! How much room words take, and how they are kept from each other. The fonts of others cannot be
//! measured here, so widths are those of a wide font and never too small.

use super::palette::Paint;
use super::svg::{Anchor, Letters};

pub(super) const TITLE: Letters =
    Letters { size: 19.0, bold: true, paint: Paint::Ink, anchor: Anchor::Start };
pub(super) const FINDING: Letters =
    Letters { size: 14.0, bold: false, paint: Paint::InkSoft, anchor: Anchor::Start };
pub(super) const HEADING: Letters =
    Letters { size: 14.0, bold: true, paint: Paint::Ink, anchor: Anchor::Start };
pub(super) const NAME: Letters =
    Letters { size: 13.0, bold: false, paint: Paint::Ink, anchor: Anchor::Start };
pub(super) const TICK: Letters =
    Letters { size: 12.0, bold: false, paint: Paint::InkSoft, anchor: Anchor::Middle };
pub(super) const LABEL: Letters =
    Letters { size: 13.0, bold: false, paint: Paint::InkSoft, anchor: Anchor::Middle };

impl Letters {
    pub(super) const fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(super) const fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    pub(super) fn width(&self, text: &str) -> f64 {
        let ems: f64 = text.chars().map(|character| ems(character, self.bold)).sum();
        ems * self.size
    }

    /// The text itself, or as much of it as fits with an ellipsis.
    pub(super) fn shortened(&self, text: &str, width: f64) -> String {
        if self.width(text) <= width {
            return text.to_owned();
        }
        let room = width - self.width("…");
        let mut used = 0.0;
        let fits = |character: &char| {
            used += self.width(character.encode_utf8(&mut [0; 4]));
            used <= room
        };
        let kept: String = text.chars().take_while(fits).collect();
        format!("{}…", kept.trim_end())
    }

    /// At most `lines_max` lines between words; what does not fit the last is shortened.
    pub(super) fn wrapped(&self, text: &str, width: f64, lines_max: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let count = lines.len();
            match lines.last_mut() {
                Some(line)
                    if count == lines_max || self.width(&format!("{line} {word}")) <= width =>
                {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.iter().map(|line| self.shortened(line, width)).collect()
    }
}

/// Widths of a wide sans-serif font.
fn ems(character: char, bold: bool) -> f64 {
    let ems = match character {
        'i' | 'j' | 'l' | '|' | '\'' | '!' => 0.32,
        ' ' | '.' | ',' | ':' | ';' | 'I' | '·' => 0.36,
        'f' | 't' | 'r' | '(' | ')' | '/' | '-' => 0.43,
        'm' | 'M' | 'w' | 'W' | '%' | '@' | '…' | '—' => 0.99,
        'A'..='Z' | '–' => 0.72,
        // Wide scripts and pictures.
        '\u{1100}'.. => 1.05,
        _ => 0.64,
    };
    if bold { ems * 1.12 } else { ems }
}

/// Sorted places pushed apart until each has `room`, as near to where they want to be as that
/// allows, and none of them outside `within` as long as there is room for all.
pub(super) fn apart(wanted: &[f64], room: f64, within: (f64, f64)) -> Vec<f64> {
    // Without their room, places that overlap are the same place: the mean of what they want.
    let mut heaps: Vec<(f64, f64)> = Vec::new();
    for (place, at) in wanted.iter().enumerate() {
        let (mut sum, mut count) = (at - place as f64 * room, 1.0);
        while let Some(before) = heaps.pop_if(|before| sum / count < before.0 / before.1) {
            sum += before.0;
            count += before.1;
        }
        heaps.push((sum, count));
    }
    let highest = within.1 - room * (wanted.len() as f64 - 1.0);
    let places = heaps.into_iter().flat_map(|(sum, count)| {
        let at = (sum / count).min(highest).max(within.0);
        std::iter::successors(Some(1.0), |n| Some(n + 1.0))
            .take_while(move |n| *n <= count)
            .map(move |_| at)
    });
    places.enumerate().map(|(place, at)| at + place as f64 * room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_overlap_are_pushed_apart() {
        assert_eq!(apart(&[10.0, 100.0], 16.0, (0.0, 300.0)), [10.0, 100.0]);
        assert_eq!(apart(&[98.0, 100.0, 105.0], 16.0, (0.0, 300.0)), [85.0, 101.0, 117.0]);
        assert_eq!(apart(&[305.0, 310.0], 16.0, (0.0, 300.0)), [284.0, 300.0]);
        assert_eq!(apart(&[1.0, 2.0], 16.0, (0.0, 300.0)), [0.0, 16.0]);
        assert_eq!(apart(&[], 16.0, (0.0, 300.0)), Vec::<f64>::new());
    }

    #[test]
    fn long_names_end_in_an_ellipsis() {
        assert_eq!(NAME.shortened("short", 100.0), "short");
        let cut = NAME.shortened("a name that is much too long for its place", 100.0);
        assert!(cut.ends_with('…') && NAME.width(&cut) <= 100.0, "{cut}");
        assert_eq!(NAME.shortened("anything", 1.0), "…");
    }

    #[test]
    fn long_sentences_take_two_lines_and_no_more() {
        let text = "one two three four five six seven eight nine ten";
        assert_eq!(NAME.wrapped(text, 1_000.0, 2), [text]);
        let lines = NAME.wrapped(text, 120.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'), "{lines:?}");
        assert!(NAME.wrapped("", 100.0, 2).is_empty());
    }
}
