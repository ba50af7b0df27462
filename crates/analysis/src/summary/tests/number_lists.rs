//! Tests of `number_lists`.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::summary::*;

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
