//! What clients that are judged need beside a server: a tokenizer of a thousand words, prompts and a script.

use serde_json::{Map, json};

const WORDS: u32 = 1000;
/// The folder of the tokenizer, where the hub's own cache would have it.
pub(super) const TOKENIZER: &str = "hub/models--inferometer--words/snapshots/0";
pub(super) const TOKENIZER_NAME: &str = "inferometer/words";

fn word(number: u32) -> String {
    format!("w{:03}", number % WORDS)
}

/// The files of the tokenizer, by their paths.
pub(super) fn files() -> [(String, String); 4] {
    let vocabulary: Map<String, _> = std::iter::once("<unk>".to_owned())
        .chain((0..WORDS).map(word))
        .zip(0..)
        .map(|(word, id)| (word, json!(id)))
        .collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [{
            "id": 0, "content": "<unk>", "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false,
        }],
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    });
    let place = |name: &str| format!("{TOKENIZER}/{name}");
    [
        (place("tokenizer.json"), tokenizer.to_string()),
        (place("tokenizer_config.json"), include_str!("judge/tokenizer_config.json").to_owned()),
        (place("config.json"), include_str!("judge/config.json").to_owned()),
        ("hub/models--inferometer--words/refs/main".to_owned(), "0".to_owned()),
    ]
}

/// Prompts of so many tokens as JSON lines.
pub(super) fn prompts(requests: u64, input: u32, output: u32) -> String {
    let first = |number: u64| u32::try_from(number % u64::from(WORDS)).unwrap_or(0) * input;
    let prompt =
        |number: u64| (0..input).map(|at| word(first(number) + at)).collect::<Vec<_>>().join(" ");
    let line = |number| {
        json!({"prompt": prompt(number), "output_tokens_count": output}).to_string() + "\n"
    };
    (0..requests).map(line).collect()
}

/// A script for k6 that sends one request in each turn.
pub(super) fn script(url: &str, body: &str) -> String {
    format!(
        "import http from 'k6/http';\nexport default function () {{\n  http.post({}, {}, \
         {{ headers: {{ 'Content-Type': 'application/json' }} }});\n}}\n",
        json!(format!("{url}/v1/chat/completions")),
        json!(body)
    )
}
