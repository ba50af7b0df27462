//! A sentence as words, numbers and marks.

/// The most bytes of one sentence that are read; longer ones are refused whole.
pub(super) const SENTENCE_BYTES_MAX: usize = 600;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// In lower case.
    Word(String),
    Number(Digits),
    /// One of `( ) / , ; = ~ %`, or another mark that has no meaning here.
    Mark(char),
}

/// A number as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Digits {
    pub(super) value: f64,
    /// What one step of its last digit is worth.
    pub(super) step: f64,
    /// The same, but zeros at the end of a whole number count as rounding: 10 for `40`.
    pub(super) coarse_step: f64,
}

const DIGITS_MAX: usize = 15;

pub(super) fn tokens(sentence: &str) -> Vec<Token> {
    let characters: Vec<char> = sentence.chars().map(plain).collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let character = characters[at];
        if character.is_ascii_digit() {
            at = number(&characters, at, &mut tokens);
        } else if character.is_alphabetic() {
            let end = end_of(&characters, at, |c| c.is_alphanumeric() || c == '\'');
            let word: String = characters[at..end].iter().collect();
            tokens.push(Token::Word(word.to_lowercase()));
            at = end;
        } else {
            if !is_space(&characters, at) {
                tokens.push(Token::Mark(character));
            }
            at += 1;
        }
    }
    tokens
}

/// One sign for each of the many that look alike.
fn plain(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{2248}' | '\u{223c}' => '~',
        '\u{d7}' => 'x',
        '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
        other => other,
    }
}

/// Marks of print, and hyphens within a word. A hyphen before a digit is a sign or a range, and
/// must not be lost; so must a dot that ends nothing.
fn is_space(characters: &[char], at: usize) -> bool {
    match characters[at] {
        '*' | '_' | '`' | '"' | '\u{201c}' | '\u{201d}' => true,
        '-' => !characters.get(at + 1).is_some_and(char::is_ascii_digit),
        '.' | '!' => characters[at + 1..].iter().all(|c| !c.is_alphanumeric()),
        other => other.is_whitespace(),
    }
}

fn end_of(characters: &[char], from: usize, belongs: impl Fn(char) -> bool) -> usize {
    characters[from..].iter().position(|c| !belongs(*c)).map_or(characters.len(), |n| from + n)
}

/// Reads `1,082.20` and gives the place after it; what is no number becomes a mark, which nobody
/// knows.
fn number(characters: &[char], from: usize, tokens: &mut Vec<Token>) -> usize {
    let mut end = from;
    while end < characters.len() && belongs_to_number(characters, end) {
        end += 1;
    }
    let text: String = characters[from..end].iter().collect();
    tokens.push(digits(&text).map_or(Token::Mark('#'), Token::Number));
    end
}

fn belongs_to_number(characters: &[char], at: usize) -> bool {
    let digit = |place: usize| characters.get(place).is_some_and(char::is_ascii_digit);
    match characters[at] {
        '.' => digit(at + 1),
        // A comma within a number has three digits behind it, and no fourth.
        ',' => digit(at + 1) && digit(at + 2) && digit(at + 3) && !digit(at + 4),
        other => other.is_ascii_digit(),
    }
}

fn digits(text: &str) -> Option<Digits> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let groups: Vec<&str> = whole.split(',').collect();
    let grouped = groups.len() == 1 || (1..=3).contains(&groups[0].len());
    if !grouped || DIGITS_MAX < text.len() || fraction.contains(['.', ',']) {
        return None;
    }
    let whole = groups.concat();
    let value: f64 = format!("{whole}.{fraction}0").parse().ok()?;
    let step = (0..fraction.len()).fold(1.0, |step, _| step / 10.0);
    let zeros = whole.len() - whole.trim_end_matches('0').len();
    let coarse_step = if fraction.is_empty() && value != 0.0 {
        (0..zeros).fold(1.0, |step, _| step * 10.0)
    } else {
        step
    };
    Some(Digits { value, step, coarse_step })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_in(text: &str) -> Option<(f64, f64, f64)> {
        tokens(text).into_iter().find_map(|token| match token {
            Token::Number(digits) => Some((digits.value, digits.step, digits.coarse_step)),
            Token::Word(_) | Token::Mark(_) => None,
        })
    }

    #[test]
    fn numbers_keep_how_they_were_written() {
        assert_eq!(number_in("40ms"), Some((40.0, 1.0, 10.0)));
        assert_eq!(number_in("6,400 tok/s"), Some((6400.0, 1.0, 100.0)));
        assert_eq!(number_in("1.50 s"), Some((1.5, 0.01, 0.01)));
        assert_eq!(number_in("1.2.3"), None);
        assert_eq!(number_in("12345678901234567890"), None);
    }

    #[test]
    fn a_sign_or_a_range_is_not_lost() {
        assert_eq!(tokens("-5")[0], Token::Mark('-'));
        assert!(tokens("2\u{2013}4").contains(&Token::Mark('-')));
        assert!(!tokens("time-to-first-token").contains(&Token::Mark('-')));
    }

    #[test]
    fn lists_of_numbers_come_apart() {
        let count =
            |text| tokens(text).iter().filter(|token| matches!(token, Token::Number(_))).count();
        assert_eq!(count("2, 4, 8"), 3);
        assert_eq!(count("18.22,18.28"), 2);
    }
}
