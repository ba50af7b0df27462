//! Words in a line of Markdown: what is data stays data.

use crate::document::ids::anchor;
use crate::document::{Span, Text};
use crate::escape;

/// A text at the start of a line.
pub(super) fn text(text: &Text) -> String {
    line(&spans(text))
}

/// A text behind something else on its line.
pub(super) fn spans(text: &Text) -> String {
    text.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Plain(text) => rest(text),
        Span::Strong(text) if text.trim().is_empty() => rest(text),
        // Stars beside spaces are stars.
        Span::Strong(text) => format!("**{}**", rest(text.trim())),
        Span::Code(text) => code(text),
        Span::Link { text, to } => format!("[{}](#{})", rest(text), anchor(to)),
    }
}

/// Words that are not the first of their line: no markup, no mention, no link.
pub(super) fn rest(text: &str) -> String {
    without_www(&escape::markdown(text).replace("://", "\\://"))
}

/// Forges make links of what begins like a host, in whatever case.
fn without_www(text: &str) -> String {
    const HOST: &str = "www.";
    let mut safe = String::with_capacity(text.len());
    let mut from = 0;
    // Letters of ASCII have one byte in either case, so that places are the same.
    for (place, _) in text.to_ascii_lowercase().match_indices(HOST) {
        let dot = place + HOST.len() - 1;
        safe.push_str(&text[from..dot]);
        safe.push('\\');
        from = dot;
    }
    safe.push_str(&text[from..]);
    safe
}

/// For HTML inside Markdown, where nobody may be mentioned either.
pub(super) fn html(text: &str) -> String {
    escape::xml(text).replace('@', "@&#8203;")
}

/// What would begin a list or a rule begins a sentence.
fn line(words: &str) -> String {
    let words = words.trim_start();
    let digits = words.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = words.split_at(digits);
    let is_item = rest.starts_with(['.', ')']) && !rest[1..].starts_with(|c: char| c != ' ');
    if (digits > 0 && is_item) || (digits == 0 && rest.starts_with(['-', '+'])) {
        format!("{number}\\{rest}")
    } else {
        words.to_owned()
    }
}

/// As typed, between more backticks than it has itself.
fn code(text: &str) -> String {
    let text = escape::terminal(text);
    if text.trim().is_empty() {
        return text;
    }
    let fence = "`".repeat(longest_run_of_backticks(&text) + 1);
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

pub(super) fn longest_run_of_backticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::plain;

    #[test]
    fn code_is_not_ended_by_what_it_holds() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(code(""), "");
    }

    #[test]
    fn a_sentence_does_not_begin_a_list() {
        assert_eq!(text(&plain("- one")), "\\- one");
        assert_eq!(text(&plain("12. one")), "12\\. one");
        assert_eq!(text(&plain("    indented")), "indented");
        assert_eq!(text(&plain("12.5 ms")), "12.5 ms");
        assert_eq!(text(&plain("---")), "\\---");
    }

    #[test]
    fn names_are_no_links() {
        assert_eq!(rest("https://example.org"), "https\\://example.org");
        assert_eq!(rest("a WwW.example.org www.b"), "a WwW\\.example.org www\\.b");
        assert_eq!(rest("x](javascript:alert(1))"), "x\\](javascript:alert(1))");
        let link = Span::Link { text: "a](b".to_owned(), to: "x) [y](z".to_owned() };
        assert_eq!(span(&link), "[a\\](b](#x-y-z)");
    }
}
