//! A text line by line, with numbers, and with jumps over what spans several lines.

use std::borrow::Cow;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: u32,
    /// Where it begins in the text.
    pub(crate) start: usize,
    pub(crate) text: &'a str,
}

#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    at: usize,
    /// Of the line that was given last: after a jump inside of it, it need not be sought again.
    end: usize,
    number: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, at: 0, end: 0, number: 1 }
    }

    /// Of the line that comes next.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Goes on at a place behind the last line's beginning; the rest of its line is the next line.
    pub(crate) fn jump(&mut self, from: Line<'_>, place: usize) {
        let passed = self.text[from.start..place].bytes().filter(|byte| *byte == b'\n').count();
        self.number = from.number.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
        self.at = place;
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        if self.at == 0 || self.at > self.end {
            self.end = self.at + rest.find('\n').unwrap_or(rest.len());
        }
        let text = self.text[self.at..self.end].trim_end_matches('\r');
        let line = Line { number: self.number, start: self.at, text };
        self.at = (self.end + 1).min(self.text.len());
        self.number = self.number.saturating_add(1);
        Some(line)
    }
}

/// Puts Python's bare `NaN` and `Infinity` into quotes: its JSON writer leaves them so, no JSON
/// reader takes them, and a record must not be lost for one of its figures.
pub(crate) fn quote_bare_words(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut quoted = String::with_capacity(text.len() + 64);
    let mut before = ' ';
    for line in text.split_inclusive('\n') {
        before = quote_in_line(line, before, &mut quoted);
    }
    Cow::Owned(quoted)
}

/// Given and gives the last character that is no space: in an indented list a word stands alone on
/// its line. No string spans lines.
fn quote_in_line(line: &str, mut before: char, quoted: &mut String) -> char {
    let mut in_string = false;
    let mut escaped = false;
    let mut skip_to = 0;
    for (place, c) in line.char_indices() {
        if place < skip_to {
            continue;
        }
        let word = (!in_string && [':', ',', '['].contains(&before))
            .then(|| {
                ["-Infinity", "Infinity", "NaN"]
                    .into_iter()
                    .find(|word| line[place..].starts_with(word))
            })
            .flatten();
        if let Some(word) = word {
            quoted.extend(["\"", word, "\""]);
            skip_to = place + word.len();
            before = '"';
            continue;
        }
        quoted.push(c);
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && c == '\\' && !escaped;
        if !c.is_whitespace() {
            before = c;
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_over_a_jump() {
        let text = "a\r\nb {\n\n} c\nd";
        let mut lines = Lines::of(text);
        assert_eq!(lines.next().unwrap().text, "a");
        let second = lines.next().unwrap();
        assert_eq!((second.number, second.text), (2, "b {"));
        lines.jump(second, text.find('}').unwrap() + 1);
        let rest = lines.next().unwrap();
        assert_eq!((rest.number, rest.text), (4, " c"));
        let last = lines.next().unwrap();
        assert_eq!((last.number, last.text), (5, "d"));
        assert!(lines.next().is_none());
    }

    #[test]
    fn only_bare_words_are_quoted() {
        let text =
            "{\"a\": NaN, \"b\": [-Infinity,Infinity], \"NaN\": \"x\\\": NaN\"}\n\" 5: Infinity";
        let expected = "{\"a\": \"NaN\", \"b\": [\"-Infinity\",\"Infinity\"], \"NaN\": \"x\\\": NaN\"}\n\" 5: Infinity";
        assert_eq!(quote_bare_words(text), expected);
        assert!(matches!(quote_bare_words("{\"a\": 1}"), Cow::Borrowed(_)));
        let indented = "{\"a\": [\n  1,\n  NaN,\n  -Infinity\n],\n\"b\":\nInfinity}\nNaN";
        let expected =
            "{\"a\": [\n  1,\n  \"NaN\",\n  \"-Infinity\"\n],\n\"b\":\n\"Infinity\"}\nNaN";
        assert_eq!(quote_bare_words(indented), expected);
    }
}
