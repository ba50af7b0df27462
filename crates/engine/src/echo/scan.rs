//! The few facts that an echo needs of a body, found without parsing it.
//!
//! A key is `"` name `"` followed by a colon. Inside a JSON string a quote is escaped, so the
//! closing quote of a name there has a backslash ahead of it and never matches: a prompt that
//! quotes a request is not mistaken for one. At which depth a key stands is not looked at.

use std::io::BufRead;

/// What a body asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) max_tokens: Option<u32>,
}

/// Looks through a body from quote to quote.
pub(crate) fn scan(body: &[u8]) -> Asked {
    let mut asked = Asked::default();
    let mut rest = body;
    // On a slice this is the C library's memchr, and it cannot fail.
    while rest.skip_until(b'"').is_ok_and(|skipped| 0 < skipped) {
        // The first letter spares most strings of a body all comparisons.
        match rest.first() {
            Some(b's') => asked.stream |= is_true(value_of(rest, b"stream\"")),
            Some(b'i') => asked.include_usage |= is_true(value_of(rest, b"include_usage\"")),
            Some(b'm') => {
                let value = value_of(rest, b"max_tokens\"")
                    .or_else(|| value_of(rest, b"max_completion_tokens\""));
                asked.max_tokens = value.and_then(whole_number).or(asked.max_tokens);
            }
            Some(_) | None => {}
        }
    }
    asked
}

/// What stands after `key` and its colon, if `rest` starts with them.
fn value_of<'a>(rest: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let after_key = rest.strip_prefix(key)?.trim_ascii_start();
    Some(after_key.strip_prefix(b":")?.trim_ascii_start())
}

fn is_true(value: Option<&[u8]>) -> bool {
    value.is_some_and(|value| value.starts_with(b"true"))
}

/// The digits at the start of `value`; a sign, as in -1, gives nothing.
fn whole_number(value: &[u8]) -> Option<u32> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&value[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_with_and_without_white_space() {
        let compact = br#"{"max_tokens":16,"stream":true,"stream_options":{"include_usage":true}}"#;
        let spaced = br#"{ "max_completion_tokens" : 16 , "stream" : true,
            "stream_options": {"include_usage": true}}"#;
        let all = Asked { stream: true, include_usage: true, max_tokens: Some(16) };
        assert_eq!(scan(compact), all);
        assert_eq!(scan(spaced), all);
    }

    #[test]
    fn a_prompt_that_quotes_a_request_is_not_one() {
        let body = br#"{"prompt":"say \"stream\":true, \"max_tokens\": 9","role":"stream"}"#;
        assert_eq!(scan(body), Asked::default());
    }

    #[test]
    fn what_is_not_asked_for_is_not_found() {
        assert_eq!(scan(br#"{"stream":false,"max_tokens":null}"#), Asked::default());
        assert_eq!(scan(br#"{"max_tokens":-1,"stream"#), Asked::default());
        assert_eq!(scan(b""), Asked::default());
    }
}
