//! Small tokenizers of ours, against what Python's own libraries encode with them
//! (`tests/fixtures/make_tokenizers.py`).

use std::path::PathBuf;

use inferometer_model::TokenCounter as _;

use super::*;
use crate::tokenizer::Tokenizer;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap()
}

/// Compares each encoding with the one of another library, and that it can be read back.
fn check(name: &str, tokenizer: &Tokenizer) {
    let expected: Value = serde_json::from_slice(&bytes("encodings.json")).unwrap();
    let texts: Vec<String> = serde_json::from_value(expected["texts"].clone()).unwrap();
    let encodings: Vec<Vec<u32>> = serde_json::from_value(expected[name].clone()).unwrap();
    assert_eq!(texts.len(), encodings.len());
    for (text, ids) in texts.iter().zip(encodings) {
        assert_eq!(tokenizer.encode(text), ids, "{name}: {text:?}");
        assert_eq!(tokenizer.count(text), ids.len());
    }
}

fn converted(name: &str, json: &[u8]) -> Tokenizer {
    Tokenizer::from_bytes(name, json).unwrap()
}

#[test]
fn sentence_piece_encodes_as_its_own_library() {
    for name in ["unigram.model", "bpe.model"] {
        let content = bytes(name);
        assert_eq!(Format::detect(&content), Format::SentencePiece);
        let json = Format::SentencePiece.convert(&content, &Value::Null).unwrap();
        let tokenizer = converted(name, &json);
        check(name, &tokenizer);
        assert_eq!(tokenizer.special_tokens(), 0);
        let text = "the cat sat on the mat";
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
        let both = json!({ "add_bos_token": true, "add_eos_token": true });
        let json = Format::SentencePiece.convert(&content, &both).unwrap();
        assert_eq!(converted(name, &json).special_tokens(), 2);
    }
}

#[test]
fn ranks_encode_as_tiktoken_with_each_pattern() {
    let content = bytes("ranks.tiktoken");
    assert_eq!(Format::detect(&content), Format::Tiktoken);
    let ranks = read_ranks(&content).unwrap();
    for (name, pattern) in [("r50k_base", GPT_2), ("cl100k_base", CL100K), ("o200k_base", O200K)] {
        check(name, &converted(name, &byte_level(&ranks, pattern, &[]).unwrap()));
    }
    let qwen = converted("qwen", &byte_level(&ranks, QWEN, &[]).unwrap());
    assert_eq!(qwen.count("12345"), 5, "every digit by itself");
    let said = Format::Tiktoken.convert(&content, &Value::Null).unwrap_err();
    assert!(said.contains("500 ranks") && said.contains("tokenizer.json"), "{said}");
}

#[test]
fn tekken_encodes_as_mistrals_own_library() {
    let path = fixture("tekken.json");
    let tokenizer = Tokenizer::open(path.to_str().unwrap()).unwrap();
    check("tekken.json", &tokenizer);
    assert_eq!(tokenizer.special_tokens(), 1, "a prompt begins with <s>");
    assert_eq!(tokenizer.decode(&tokenizer.encode("naïve 🦀")), "naïve 🦀");
    assert_eq!(tokenizer.facts().name, "tekken.json");
    let digest = <sha2::Sha256 as sha2::Digest>::digest(bytes("tekken.json"));
    assert_eq!(tokenizer.facts().sha256, crate::data_file::hex(&digest), "of the file itself");
}

#[test]
fn broken_files_are_refused_with_a_reason() {
    let refused = |content: &[u8]| {
        Format::detect(content).convert(content, &Value::Null).err().unwrap_or_default()
    };
    let model = bytes("bpe.model");
    assert_eq!(refused(&model[..model.len() / 2]), CUT);
    assert!(refused(b"YQ== 0\nYg== 2\n").contains("no token of rank 1"));
    assert!(refused(b"YQ== 0\nY*== 1\n").contains("Y*=="));
    assert!(refused(b"YQ== 0\nYQ==\n").contains("not a token and its rank"));
    assert!(refused(b"{\"vocab\":[{\"token_bytes\":\"\"}]}").contains("missing field"));
    let many = br#"{"config":{"pattern":"","default_vocab_size":9,
        "default_num_special_tokens":99999999},"vocab":[{"rank":0,"token_bytes":""}]}"#;
    assert!(refused(many).contains("special tokens"));
}

#[test]
fn mutated_files_are_converted_or_refused() {
    let mut stream = crate::plan::Stream::new(1, "mutations", 0);
    for name in ["bpe.model", "unigram.model", "ranks.tiktoken", "tekken.json"] {
        let whole = bytes(name);
        let format = Format::detect(&whole);
        for _ in 0..60 {
            let mut content = whole.clone();
            for _ in 0..=(stream.bits() % 4) {
                let place = usize::try_from(stream.bits() % content.len() as u64).unwrap();
                content[place] = stream.bits().to_le_bytes()[0];
            }
            if let Ok(json) = format.convert(&content, &Value::Null)
                && let Ok(tokenizer) = Tokenizer::from_bytes(name, &json)
            {
                tokenizer.count("the cat sat");
            }
        }
    }
}
