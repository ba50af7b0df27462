//! What is valid, what is right, and what calls tools.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn is_correct(expect: &Expect, text: &str, expected: &str) -> Option<bool> {
    Comparison::new(expect).unwrap().is_correct(text, expected, 0)
}

#[test]
fn numbers_are_compared_by_the_last_of_each() {
    let numeric = |tolerance| Expect::Numeric { tolerance };
    for (text, expected, right) in [
        ("It is 41, no: 42.", "6 * 7 = #### 42", Some(true)),
        ("42 of 43", "42", Some(false)),
        ("1,234.50", "1234.5", Some(true)),
        ("10-3", "3", Some(true)),
        ("x = -3", "3", Some(false)),
        ("none", "3", Some(false)),
        ("3", "none", None),
    ] {
        assert_eq!(is_correct(&numeric(0.0), text, expected), right, "{text} {expected}");
    }
    assert_eq!(is_correct(&numeric(0.01), "3.141", "3.14159"), Some(true));
    assert_eq!(is_correct(&numeric(0.0), "3.141", "3.14159"), Some(false));
}

#[test]
fn texts_and_patterns_are_compared_as_asked() {
    assert_eq!(is_correct(&Expect::Exact, " Paris\n", "Paris"), Some(true));
    assert_eq!(is_correct(&Expect::Exact, "Paris.", "Paris"), Some(false));
    assert_eq!(is_correct(&Expect::Pattern, "I say Paris!", "(?i)\\bparis\\b"), Some(true));
    assert_eq!(is_correct(&Expect::Pattern, "anything", "("), None);
    let found = Expect::Found("answer: ([A-D])".to_owned());
    assert_eq!(is_correct(&found, "answer: A … answer: C", "C"), Some(true));
    assert_eq!(is_correct(&found, "C", "C"), Some(false));
}

#[test]
fn documents_are_held_against_their_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "kind": {"enum": ["a", "b"]},
            "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 2},
        },
        "required": ["name", "age"],
        "additionalProperties": false,
        "$defs": {"tag": {"type": ["string", "number"]}},
    });
    for (value, fits) in [
        (json!({"name": "ada", "age": 36}), true),
        (json!({"name": "ada", "age": 36.0, "kind": "b", "tags": ["x", 1]}), true),
        (json!({"name": "ada", "age": 1, "next": {"name": "bob", "age": 2, "next": null}}), true),
        (json!({"name": "ada", "age": 1, "next": {"name": "bob"}}), false),
        (json!({"name": "ada"}), false),
        (json!({"name": "Ada", "age": 36}), false),
        (json!({"name": "ada", "age": 36.5}), false),
        (json!({"name": "ada", "age": 151}), false),
        (json!({"name": "ada", "age": 36, "more": 1}), false),
        (json!({"name": "ada", "age": 36, "tags": ["x", null]}), false),
        (json!({"name": "ada", "age": 36, "tags": [1, 2, 3]}), false),
        (json!({"name": "ada", "age": 36, "kind": "c"}), false),
        (json!([]), false),
    ] {
        assert_eq!(schema::matches(&schema, &value), fits, "{value}");
    }
    // One that never ends is kept by nothing, and is not followed for ever.
    assert!(!schema::matches(&json!({"$ref": "#"}), &json!(1)));
}

#[test]
fn why_an_answer_is_not_valid_is_named() {
    let document = Some(json!({"type": "object"}));
    let json_form =
        Form { document: document.clone(), tools: BTreeMap::new(), is_call_required: false };
    let of = |text: &str, is_cut| validity(&json_form, text, &[], is_cut);
    assert_eq!(of("{}", true), Some(Validity::Valid));
    assert_eq!(of("[]", false), Some(Validity::OffSchema));
    assert_eq!(of("{\"a\":", false), Some(Validity::NotJson));
    assert_eq!(of("{\"a\":", true), Some(Validity::Cut));
    assert_eq!(of("```json\n{}\n```", false), Some(Validity::NotJson));
    let tools = [("f".to_owned(), json!({"required": ["x"]})), ("now".to_owned(), json!({}))];
    let tools = BTreeMap::from(tools);
    let form = |is_call_required| Form { document: None, tools: tools.clone(), is_call_required };
    let call = |name: &str, arguments: &str| {
        let call = Call { name: name.to_owned(), arguments: arguments.to_owned() };
        validity(&form(true), "", &[call], false)
    };
    assert_eq!(call("f", "{\"x\": 1}"), Some(Validity::Valid));
    assert_eq!(call("f", "{}"), Some(Validity::BadArguments));
    assert_eq!(call("f", ""), Some(Validity::BadArguments));
    assert_eq!(call("now", ""), Some(Validity::Valid), "no arguments are an empty object");
    assert_eq!(call("g", "{}"), Some(Validity::UnknownTool));
    assert_eq!(validity(&form(true), "no", &[], false), Some(Validity::NoCall));
    assert_eq!(validity(&form(false), "no", &[], false), None);
    // A document is asked for and tools are offered: either will do.
    let either = Form { document, ..form(false) };
    let called = [Call { name: "now".to_owned(), arguments: String::new() }];
    assert_eq!(validity(&either, "", &called, false), Some(Validity::Valid));
    assert_eq!(validity(&either, "{}", &[], false), Some(Validity::Valid));
    assert_eq!(validity(&either, "no", &[], false), Some(Validity::NotJson));
}

#[test]
fn calls_are_read_from_every_api() {
    let wanted = [Call { name: "f".to_owned(), arguments: "{\"x\":1}".to_owned() }];
    let lines = |documents: &[Value]| {
        let lines: Vec<String> = documents.iter().map(|it| format!("{it}\n")).collect();
        read_calls(lines.concat().as_bytes())
    };
    let delta = |call: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
    let chat = [
        delta(json!({"index": 0, "function": {"name": "f", "arguments": ""}})),
        delta(json!({"index": 0, "function": {"arguments": "{\"x\""}})),
        delta(json!({"index": 0, "function": {"arguments": ":1}"}})),
    ];
    assert_eq!(lines(&chat), wanted);
    let call = json!([{"function": {"name": "f", "arguments": "{\"x\":1}"}}]);
    assert_eq!(lines(&[json!({"choices": [{"message": {"tool_calls": call}}]})]), wanted);
    let ollama = json!([{"function": {"name": "f", "arguments": {"x": 1}}}]);
    assert_eq!(lines(&[json!({"message": {"tool_calls": ollama}})]), wanted);
    let [named, counted] = [json!({"name": "f"}), json!({"name": "f", "index": 1})];
    let said = |function: &Value| json!({"message": {"tool_calls": [{"function": function}]}});
    assert_eq!(lines(&[said(&named), said(&named)]).len(), 2, "each is a call of its own");
    assert_eq!(lines(&[said(&named), said(&counted)]).len(), 2);
    let continued = json!({"name": "", "arguments": "{\"x\":1}"});
    assert_eq!(lines(&[said(&named), said(&continued)]), wanted);
    let use_tool = json!({"type": "tool_use", "name": "f", "input": {"x": 1}});
    assert_eq!(lines(&[json!({"content": [{"type": "text"}, use_tool]})]), wanted);
    let begun = json!({"type": "tool_use", "name": "f", "input": {}});
    let messages = [
        json!({"type": "content_block_start", "index": 1, "content_block": begun}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"partial_json": "{\"x\":1}"}}),
    ];
    assert_eq!(lines(&messages), wanted);
    let item = json!({"type": "function_call", "name": "f", "arguments": ""});
    let responses = [
        json!({"type": "response.output_item.added", "output_index": 1, "item": item}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"x\":1}"}),
    ];
    assert_eq!(lines(&responses), wanted);
    assert!(read_calls(b"").is_empty());
}
