//! The quick reader against the full one: on what real servers sent, on mutations of it, on random
//! JSON and at the bounds. The two must agree.

use std::path::PathBuf;
use std::sync::LazyLock;

use inferometer_model::endpoint::Api;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::json::{DEPTH_MAX, KEYS_MAX};
use super::openai::read_any;
use super::{Dialect, quick};

/// Every event and every whole answer in the captures of real servers.
static REAL_DOCUMENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let raw = files.filter(|path| path.extension().is_some_and(|kind| kind == "raw"));
    let mut documents = Vec::new();
    for path in raw {
        let bytes = std::fs::read(path).unwrap();
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = line.strip_prefix(b"data: ").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.starts_with(b"{") {
                documents.push(line.to_vec());
            }
        }
    }
    documents
});

/// Shapes that few of the captures have, and more of what a document may hold.
const SHAPES: [&str; 10] = [
    r#"{"choices":[{"index":1,"delta":{"role":"assistant","reasoning_content":"h\u00efm","content":null}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":null,"reasoning_content":"a","reasoning":"b"},"finish_reason":"st\u006fp"}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":\"ä\"}"}},{"function":{"arguments":{"a":[1]}}},{"function":null}]}}]}"#,
    r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a\n"},{"type":"text","text":"b"}]}}]}"#,
    r#"{"choices":[{"text":"x","delta":{"role":null},"logprobs":{"tokens":["a","b"]},"token_ids":[1,2]}]}"#,
    r#"{"choices":[{"message":null,"text":"a\ud800b","logprobs":{"content":[{"token":"a"}]},"token_ids":[]}]}"#,
    r#"{"choices":null,"usage":{"prompt_tokens":12.0,"completion_tokens":7e0,"prompt_tokens_details":{"cached_tokens":4}},"model":null}"#,
    r#" { "model" : "m" , "choices" : [ ] , "usage" : { "prompt_tokens" : 0 , "x" : [ -1.5e-3 , true , { } ] } } "#,
    r#"{"choices":[{"logprobs":{"tokens":["a","b"],"content":[{"token":"a"}]},"token_ids":null}]}"#,
    r#"{"choices":[{"index":65536,"error":{"message":"too long"}}],"error":null}"#,
];

/// Values of every kind, right, odd and wrong, to be put where others stood.
const FRAGMENTS: [&[u8]; 44] = [
    b"null",
    b"nul",
    b"true",
    b"fals",
    b"0",
    b"-0",
    b"01",
    b"24",
    b"24.0",
    b"2.5",
    b"1.",
    b".5",
    b"1e5",
    b"1e",
    b"1E+2",
    b"-",
    b"-7",
    b"1e400",
    b"9999999999999999999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"100000000000000000000000",
    b"\"\"",
    b"\"a\"",
    b"\"a\\n\\u00e4\\ud83d\\ude00\"",
    b"\"\\ud800\\ud800\\n\"",
    b"\"\\x\"",
    b"\"\\u12g4\"",
    b"\"\xff\"",
    b"\"\xc3\xa4 and more\"",
    b"\"tab\there and more\"",
    b"\"not ended",
    b"[]",
    b"[1,2,3]",
    b"[1,]",
    b"[ 1 , [ ] ]",
    b"{}",
    b"{\"a\":{\"b\":[]}}",
    b"{\"a\":1,}",
    b"{\"\xff\":1}",
    b"{\"\\u0061\":1}",
    b"[{\"text\":\"a\"},{\"text\":null},{}]",
    b",",
    b" \t\r\n",
];

const NAMES: [&str; 25] = [
    "choices",
    "usage",
    "model",
    "error",
    "index",
    "delta",
    "message",
    "text",
    "finish_reason",
    "logprobs",
    "token_ids",
    "tokens",
    "role",
    "content",
    "reasoning_content",
    "reasoning",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "prompt_tokens_details",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "änderung",
];

/// Fails where the quick reader differs from the full reader.
fn check(json: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(chunk) = quick::read(json) {
        let text = String::from_utf8_lossy(json);
        prop_assert_eq!(Ok(chunk), read_any(json), "{}", text);
    }
    Ok(())
}

#[test]
fn what_real_servers_send_is_read_quickly_and_alike() {
    let shapes = SHAPES.iter().map(|shape| shape.as_bytes().to_vec());
    let documents: Vec<Vec<u8>> = REAL_DOCUMENTS.iter().cloned().chain(shapes).collect();
    assert!(400 <= documents.len(), "the captures are there: {}", documents.len());
    for json in documents {
        let text = String::from_utf8_lossy(&json);
        // Else every event would take the long way, and only the benchmark would know.
        let wanted = read_any(&json).ok().filter(|chunk| chunk.error.is_none());
        assert_eq!(quick::read(&json).ok(), wanted, "{text}");
    }
}

#[test]
fn a_name_that_comes_twice_is_judged_alike() {
    let mut judged = 0;
    for shape in SHAPES {
        for name in NAMES.map(|name| format!("\"{name}\"")) {
            for (place, _) in shape.match_indices(&name) {
                let twice = format!("{}{name}:null,{}", &shape[..place], &shape[place..]);
                check(twice.as_bytes()).unwrap();
                judged += 1;
            }
        }
    }
    assert!(50 < judged, "{judged}");
}

#[test]
fn every_byte_in_a_text_and_every_escape_is_read_alike() {
    for byte in 0..=u8::MAX {
        for text in [&[b'a', byte, b'b'][..], &[b'a', b'\\', byte, b'b']] {
            check(&[b"{\"choices\":[{\"text\":\"", text, b"\"}]}"].concat()).unwrap();
        }
    }
}

#[test]
fn both_readers_have_the_same_bounds() {
    for (depth, is_read) in [(DEPTH_MAX - 1, true), (DEPTH_MAX, true), (DEPTH_MAX + 1, false)] {
        let lists = depth - 1;
        let json = format!("{{\"a\":{}{}}}", "[".repeat(lists), "]".repeat(lists));
        assert_eq!(quick::read(json.as_bytes()).is_ok(), is_read, "{depth} levels");
        assert_eq!(read_any(json.as_bytes()).is_ok(), is_read, "{depth} levels");
    }
    for (keys, is_read) in [(KEYS_MAX - 1, true), (KEYS_MAX, true), (KEYS_MAX + 1, false)] {
        let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":0")).collect();
        let object = format!("{{{}}}", members.join(","));
        for json in [format!("{{\"a\":{object}}}"), object] {
            assert_eq!(quick::read(json.as_bytes()).is_ok(), is_read, "{keys} keys");
            assert_eq!(read_any(json.as_bytes()).is_ok(), is_read, "{keys} keys");
        }
    }
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    select(&FRAGMENTS[..]).prop_map(<[u8]>::to_vec)
}

/// A document that is mostly well formed, with the names that matter and values that may not.
fn document() -> impl Strategy<Value = Vec<u8>> {
    let value = fragment().prop_recursive(5, 48, 6, |inner| {
        let member = (select(&NAMES[..]), inner.clone())
            .prop_map(|(name, value)| [b"\"", name.as_bytes(), b"\":", value.as_slice()].concat());
        let surrounded = |open: &'static [u8], items: Vec<Vec<u8>>, close: &'static [u8]| {
            [open, items.join(&b","[..]).as_slice(), close].concat()
        };
        prop_oneof![
            prop::collection::vec(member, 0..6)
                .prop_map(move |items| surrounded(b"{", items, b"}")),
            prop::collection::vec(inner, 0..3).prop_map(move |items| surrounded(b"[", items, b"]")),
        ]
    });
    let choices = value.clone();
    prop_oneof![
        value,
        choices.prop_map(|choice| [b"{\"choices\":[", choice.as_slice(), b"]}"].concat())
    ]
}

/// One change to a document: bytes cut out, put in, or replaced.
fn mutation() -> impl Strategy<Value = (Index, usize, Vec<u8>)> {
    let byte = any::<u8>().prop_map(|byte| vec![byte]);
    let sign = select(&b"{}[]\",:\\ \n0e.-n"[..]).prop_map(|byte| vec![byte]);
    let inserted = prop_oneof![Just(Vec::new()), byte, sign, fragment()];
    (any::<Index>(), 0_usize..6, inserted)
}

/// Puts a fragment in the place of a whole value: what stands between a colon and the next comma.
fn replace_value(json: &mut Vec<u8>, place: Index, value: &[u8]) {
    let colons: Vec<usize> = memchr::memchr_iter(b':', json).collect();
    if colons.is_empty() {
        return;
    }
    let start = place.get(&colons) + 1;
    let length = json[start..].iter().position(|byte| matches!(byte, b',' | b'}'));
    json.splice(start..start + length.unwrap_or(0), value.iter().copied());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16_384, ..ProptestConfig::default() })]

    #[test]
    fn random_documents_are_read_alike(json in document()) {
        check(&json)?;
    }

    #[test]
    fn mutated_events_are_read_alike(
        place in any::<Index>(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let mut json = place.get(&REAL_DOCUMENTS).clone();
        for (place, removed, inserted) in mutations {
            let start = place.index(json.len() + 1);
            let end = json.len().min(start + removed);
            json.splice(start..end, inserted);
            check(&json)?;
        }
    }

    #[test]
    fn events_with_other_values_are_read_alike(
        place in any::<Index>(),
        values in prop::collection::vec((any::<Index>(), fragment()), 1..4),
    ) {
        let shapes = SHAPES.map(|shape| shape.as_bytes().to_vec());
        let documents: Vec<&Vec<u8>> = REAL_DOCUMENTS.iter().step_by(8).chain(&shapes).collect();
        let mut json = (*place.get(&documents)).clone();
        for (place, value) in values {
            replace_value(&mut json, place, &value);
            check(&json)?;
        }
    }
}

#[test]
fn every_api_has_its_dialect() {
    for api in Api::all() {
        assert_eq!(Dialect::for_api(api).api, api);
    }
}
