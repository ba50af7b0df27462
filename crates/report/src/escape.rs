//! Text from servers is untrusted: here it becomes harmless for each output format.

use std::fmt::Write;

use crate::fmt::Join;

/// For a terminal: control characters, escape sequences and text-direction marks are shown, not
/// obeyed. Line feeds and tabs become spaces.
pub fn terminal(text: &str) -> String {
    replaced(text, |character| match character {
        '\n' | '\r' | '\t' => Some(" ".to_owned()),
        _ => is_unsafe(character).then(|| shown(character)),
    })
}

/// The same, cut to `limit` characters with an ellipsis.
pub fn terminal_line(text: &str, limit: usize) -> String {
    terminal_cut(text, limit, limit)
}

/// The same, with the beginning and the end kept: for names that differ at their ends.
pub fn terminal_ends(text: &str, limit: usize) -> String {
    terminal_cut(text, limit, limit.saturating_sub(1) / 2)
}

/// The same with `kept` characters of the beginning, and as many of the end as there is room for.
pub fn terminal_cut(text: &str, limit: usize, kept: usize) -> String {
    let letters: Vec<char> = terminal(text).chars().collect();
    if letters.len() <= limit {
        return letters.into_iter().collect();
    }
    let kept = kept.min(limit.saturating_sub(1));
    let end = letters.len() - (limit.saturating_sub(1) - kept);
    letters[..kept].iter().chain(&['…']).chain(&letters[end..]).collect()
}

/// For XML and HTML, in text and in quoted attributes. Characters that XML forbids are shown as the
/// terminal shows them.
pub fn xml(text: &str) -> String {
    replaced(&terminal(text), |character| match character {
        '&' => Some("&amp;".to_owned()),
        '<' => Some("&lt;".to_owned()),
        '>' => Some("&gt;".to_owned()),
        '"' => Some("&quot;".to_owned()),
        '\'' => Some("&#39;".to_owned()),
        // No control characters, and forbidden all the same.
        '\u{fffe}' | '\u{ffff}' => Some(shown(character)),
        _ => None,
    })
}

/// For a cell or a line of Markdown: it contains no markup and mentions no user.
pub fn markdown(text: &str) -> String {
    replaced(&terminal(text), |character| match character {
        // A backslash does not keep a forge from setting formulas.
        '$' => Some("&#36;".to_owned()),
        // Nor from calling the people of this name; a space of no width does.
        '@' => Some("@&#8203;".to_owned()),
        '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '~' => {
            Some(format!("\\{character}"))
        }
        _ => None,
    })
}

/// For a comment of HTML: no value of it ends the comment, and `--option` stays as it was typed.
pub fn comment(text: &str) -> String {
    terminal(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// For text of several lines, such as a command: what [`xml`] does, line by line.
pub fn xml_lines(text: &str) -> String {
    text.lines().map(xml).join("\n")
}

/// The same for the terminal's rules, where markup is no danger.
pub fn terminal_lines(text: &str) -> String {
    text.lines().map(terminal).join("\n")
}

/// For JSON inside an HTML page: the element that holds it cannot be closed from within, and
/// nothing in it is invisible.
pub fn json_in_html(json: &str) -> String {
    replaced(json, |character| {
        if !matches!(character, '<' | '>' | '&') && !is_unsafe(character) {
            return None;
        }
        let mut escaped = String::new();
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}");
        }
        Some(escaped)
    })
}

/// The text with some characters replaced.
fn replaced(text: &str, replacement: impl Fn(char) -> Option<String>) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match replacement(character) {
            Some(other) => safe.push_str(&other),
            None => safe.push(character),
        }
    }
    safe
}

fn shown(character: char) -> String {
    format!("\\u{{{:x}}}", u32::from(character))
}

/// Controls, and the invisible characters that reorder or hide text.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}'
                | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults: 56, 57.
    #[test]
    fn escape_sequences_are_shown_and_not_obeyed() {
        assert_eq!(terminal("a\u{1b}[31mred\u{7}"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(terminal("one\r\ntwo"), "one  two");
        assert_eq!(terminal("abc\u{202e}cba"), "abc\\u{202e}cba");
        assert_eq!(terminal("a\u{180e}\u{115f}\u{3164}b"), "a\\u{180e}\\u{115f}\\u{3164}b");
        assert_eq!(terminal("\u{fff9}\u{fffb}"), "\\u{fff9}\\u{fffb}");
        assert_eq!(terminal("模型 — ok"), "模型 — ok");
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(xml("a<b & \"c\"\u{0}"), "a&lt;b &amp; &quot;c&quot;\\u{0}");
        assert_eq!(xml("\u{ffff}"), "\\u{ffff}");
        assert_eq!(markdown("a|b *c*"), "a\\|b \\*c\\*");
        assert_eq!(markdown("ask @octo-org/team"), "ask @&#8203;octo-org/team");
    }

    /// Faults: 57.
    #[test]
    fn formulas_are_text() {
        assert_eq!(markdown("$\\alpha$"), "&#36;\\\\alpha&#36;");
    }

    #[test]
    fn a_comment_is_not_ended_by_its_values() {
        assert_eq!(comment("serve --port 8000"), "serve --port 8000");
        assert_eq!(comment("a --> b\n--!> c"), "a --&gt; b --!&gt; c");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(xml_lines("a <b\r\n\tc\u{1b}"), "a &lt;b\n c\\u{1b}");
        assert_eq!(terminal_lines("a <b\n\u{202e}c"), "a <b\n\\u{202e}c");
    }

    #[test]
    fn json_cannot_close_its_element() {
        let evil = "</script><!-- & \u{2028}\u{202e}\u{e0041}";
        let safe = json_in_html(&serde_json::to_string(evil).unwrap());
        assert!(!safe.contains(['<', '>', '&', '\u{2028}', '\u{202e}', '\u{e0041}']), "{safe}");
        let back: String = serde_json::from_str(&safe).unwrap();
        assert_eq!(back, evil);
    }

    #[test]
    fn long_text_is_cut_by_characters() {
        assert_eq!(terminal_line("äöüß", 3), "äö…");
        assert_eq!(terminal_line("äöü", 3), "äöü");
    }
}
