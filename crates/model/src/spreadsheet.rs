//! Texts on their way into a spreadsheet.

use std::borrow::Cow;

/// The text, kept one by an apostrophe where a spreadsheet would take it for a formula: names come
/// from servers and files.
///
/// What stands before a formula does not hide it: spaces, and separators of other countries.
pub fn guarded(text: &str) -> Cow<'_, str> {
    let hides = |letter: char| {
        letter.is_whitespace() || letter.is_control() || matches!(letter, ';' | ',' | '"' | '\'')
    };
    let begins_blank = text.starts_with(['\t', '\r', '\n']);
    let first = text.trim_start_matches(hides);
    if begins_blank || first.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        for hostile in ["=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =x", ";=x", "＝x"] {
            assert_eq!(guarded(hostile), format!("'{hostile}"));
        }
        for plain in ["", "c=4; fast", "a \"b\"", " 4"] {
            assert_eq!(guarded(plain), plain);
        }
    }
}
