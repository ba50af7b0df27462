//! Indented JSON in which lists of plain numbers stay on one line: figures are long columns, and a
//! line for each number would be mostly indentation.

/// Of valid JSON with indentation. Lists that hold text, lists or objects keep their lines.
pub(crate) fn numbers_on_one_line(indented: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(indented.len());
    let mut rest = indented;
    while let Some(byte) = rest.first() {
        let taken = match byte {
            b'"' => text_length(rest),
            b'[' => match plain_list_length(rest) {
                Some(length) => {
                    put_list(&rest[..length], &mut written);
                    rest = &rest[length..];
                    continue;
                }
                None => 1,
            },
            _ => 1,
        };
        written.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    }
    written
}

/// From one quote to the other.
fn text_length(from_quote: &[u8]) -> usize {
    let mut escaped = false;
    let closes = |byte: &u8| {
        let closing = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closing
    };
    from_quote[1..].iter().position(closes).map_or(from_quote.len(), |inside| inside + 2)
}

/// From one bracket to the other; `None` when something other than numbers and nulls is between.
fn plain_list_length(from_bracket: &[u8]) -> Option<usize> {
    let end = from_bracket[1..].iter().position(|byte| b"[]{\"".contains(byte))?;
    (from_bracket[end + 1] == b']').then_some(end + 2)
}

fn put_list(list: &[u8], written: &mut Vec<u8>) {
    for byte in list {
        match byte {
            b' ' | b'\n' => {}
            b',' => written.extend_from_slice(b", "),
            _ => written.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn written(value: &Value) -> String {
        let indented = serde_json::to_vec_pretty(value).unwrap();
        String::from_utf8(numbers_on_one_line(&indented)).unwrap()
    }

    #[test]
    fn lists_of_numbers_take_one_line_and_others_keep_theirs() {
        let found = written(&json!({"a": [1, null, 2.5], "b": [], "c": [[1, 2], [3]], "d": ["x"]}));
        let expected = "{\n  \"a\": [1, null, 2.5],\n  \"b\": [],\n  \"c\": [\n    [1, 2],\n    [3]\n  ],\n  \
                        \"d\": [\n    \"x\"\n  ]\n}";
        assert_eq!(found, expected);
    }

    #[test]
    fn text_that_looks_like_a_list_is_left_alone() {
        for hostile in ["[1,  2]", "a\\", "\\\"[1,\n  2]\"", "\"", "[", "\u{1b}[3  1m"] {
            let document = json!({"text": hostile, hostile: [hostile, 1]});
            let indented = serde_json::to_string_pretty(&document).unwrap();
            assert_eq!(written(&document), indented);
        }
    }

    proptest! {
        #[test]
        fn the_document_says_the_same(
            numbers in prop::collection::vec(any::<f64>(), 0..9),
            text in any::<String>(),
        ) {
            let document = json!({"a": numbers, &text: [[text, 1], {"b": [true, false]}]});
            prop_assert_eq!(serde_json::from_str::<Value>(&written(&document)).unwrap(), document);
        }
    }
}
