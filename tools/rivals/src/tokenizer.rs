//! A tokenizer for the tools that insist on one: a thousand words, one token each.
//!
//! It lies where the hub's own cache would have it, because one of the tools takes names only when
//! it may not use the network; the others are given its folder.

use std::path::{Path, PathBuf};

use serde_json::{Map, json};

/// The name under which the cache has it.
pub(crate) const NAME: &str = "inferometer/words";

const WORDS: usize = 1000;
const UNKNOWN: &str = "<unk>";

pub(crate) fn hub(folder: &Path) -> PathBuf {
    folder.join("hub")
}

/// Where its files are.
pub(crate) fn place(folder: &Path) -> PathBuf {
    model(folder).join("snapshots").join("0")
}

/// A prompt of this many tokens; different numbers give different prompts.
pub(crate) fn prompt(number: usize, tokens: usize) -> String {
    let words: Vec<String> =
        (0..tokens).map(|place| word((number * tokens + place) % WORDS)).collect();
    words.join(" ")
}

pub(crate) fn write(folder: &Path) -> Result<(), String> {
    let vocabulary: Map<String, _> = std::iter::once(UNKNOWN.to_owned())
        .chain((0..WORDS).map(word))
        .enumerate()
        .map(|(id, word)| (word, json!(id)))
        .collect();
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{
            "id": 0, "content": UNKNOWN, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false,
        }],
        "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    });
    let settings = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": UNKNOWN,
        "model_max_length": 131_072,
        "clean_up_tokenization_spaces": false,
    });
    // Some tools look at the model before they look at its tokenizer.
    let model_shape = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": WORDS + 1,
        "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 131_072,
    });
    let place = place(folder);
    let references = model(folder).join("refs");
    for (path, text) in [
        (place.join("tokenizer.json"), tokenizer.to_string()),
        (place.join("tokenizer_config.json"), settings.to_string()),
        (place.join("config.json"), model_shape.to_string()),
        (references.join("main"), "0".to_owned()),
    ] {
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

fn model(folder: &Path) -> PathBuf {
    hub(folder).join(format!("models--{}", NAME.replace('/', "--")))
}

fn word(number: usize) -> String {
    format!("w{number:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_have_the_asked_length_and_differ() {
        assert_eq!(prompt(0, 3), "w000 w001 w002");
        assert_eq!(prompt(1, 3), "w003 w004 w005");
    }
}
