//! The model's own tokenizer: what a text is in tokens, by the rules that the server counts with.

#[cfg(feature = "hub")]
mod download;
mod place;
mod template;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use inferometer_model::Message;
use inferometer_model::observations::TokenizerFacts;
use inferometer_model::tokens::TokenCounter;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::data_file::hex;
pub use place::Hub;
use template::ChatTemplate;
pub use template::TemplateError;

/// A tokenizer, and the chat template beside it when there is one.
pub struct Tokenizer {
    facts: TokenizerFacts,
    inner: tokenizers::Tokenizer,
    special_tokens: usize,
    special_names: Vec<String>,
    template: Option<ChatTemplate>,
}

/// What of the files beside a tokenizer is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Besides {
    pub template: bool,
    pub special_names: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    #[error(
        "no tokenizer `{name}`: it is neither a file nor a directory with a tokenizer.json; \
         give the path of one with --tokenizer"
    )]
    NoSuchPath { name: String },
    #[error(
        "no tokenizer.json in {}; give the path of one with --tokenizer",
        .directory.display()
    )]
    NoneInDirectory { directory: PathBuf },
    #[error(
        "no tokenizer for `{name}`: it is no path, it is not in the hub's cache {}, and {why}; \
         give the path of a tokenizer.json with --tokenizer",
        .cache.display()
    )]
    NotCached { name: String, cache: PathBuf, why: &'static str },
    #[error(
        "the tokenizer of `{name}` is not in the hub's cache {}, and could not be downloaded: \
         {url} {reason}; give the path of a tokenizer.json with --tokenizer",
        .cache.display()
    )]
    NotDownloaded { name: String, cache: PathBuf, url: String, reason: String },
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot keep the downloaded tokenizer at {}: {source}", .path.display())]
    NotKept { path: PathBuf, source: io::Error },
    #[error("{} is not a tokenizer that can be used: {reason}", .path.display())]
    NotATokenizer { path: PathBuf, reason: String },
}

impl Tokenizer {
    /// Finds it by a file's or a directory's path, or by a model's name: in the hub's cache, else
    /// on the hub.
    pub fn open(name: &str) -> Result<Self, TokenizerError> {
        Self::open_with(name, &Hub::of_environment())
    }

    pub fn open_with(name: &str, hub: &Hub) -> Result<Self, TokenizerError> {
        Self::read(name, &hub.find(name)?)
    }

    fn read(name: &str, path: &Path) -> Result<Self, TokenizerError> {
        let bytes = std::fs::read(path)
            .map_err(|source| TokenizerError::Unreadable { path: path.to_owned(), source })?;
        let refuse = |reason| TokenizerError::NotATokenizer { path: path.to_owned(), reason };
        let mut found = Self::of(place::known_name(name), &bytes).map_err(refuse)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        let config = read_config(directory)?;
        found.special_names = special_names(&config, directory)?;
        found.template = ChatTemplate::read(directory, &config)?;
        Ok(found)
    }

    /// A tokenizer that is in no file: one that was made by a program.
    pub fn from_bytes(name: &str, json: &[u8]) -> Result<Self, TokenizerError> {
        let refuse = |reason| TokenizerError::NotATokenizer { path: name.into(), reason };
        Self::of(name.to_owned(), json).map_err(refuse)
    }

    /// Sets the chat template, in the form that models are published with.
    #[must_use]
    pub fn with_template(mut self, source: &str, config: &Value) -> Self {
        self.template = Some(ChatTemplate::new(source.to_owned(), config));
        self
    }

    fn of(name: String, json: &[u8]) -> Result<Self, String> {
        let mut inner =
            tokenizers::Tokenizer::from_bytes(json).map_err(|error| error.to_string())?;
        // Cut or padded to a model's size, a text would be miscounted.
        inner.with_truncation(None).map_err(|error| error.to_string())?;
        inner.with_padding(None);
        let count = |special| {
            inner
                .encode_fast(PROBE, special)
                .map(|found| found.len())
                .map_err(|error| format!("it cannot encode every text ({error})"))
        };
        let special_tokens = count(true)?.saturating_sub(count(false)?);
        let facts = TokenizerFacts { name, sha256: hex(&Sha256::digest(json)) };
        Ok(Self { facts, inner, special_tokens, special_names: Vec::new(), template: None })
    }

    pub fn facts(&self) -> TokenizerFacts {
        self.facts.clone()
    }

    /// With what prompts are made or counted by besides: the hash is then of that as well.
    pub fn facts_with(&self, besides: Besides) -> TokenizerFacts {
        let mut parts = Vec::new();
        if let (true, Some(template)) = (besides.template, &self.template) {
            parts.extend(template.parts());
        }
        if besides.special_names {
            parts.extend(self.special_names.iter().map(|name| ("special", name.clone())));
        }
        if parts.is_empty() {
            return self.facts();
        }
        let mut hash = Sha256::new_with_prefix(self.facts.sha256.as_bytes());
        for (kind, text) in parts {
            hash.update(kind.as_bytes());
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        TokenizerFacts { name: self.facts.name.clone(), sha256: hex(&hash.finalize()) }
    }

    /// How many tokens come on top when a text is encoded as a whole prompt.
    pub fn special_tokens(&self) -> usize {
        self.special_tokens
    }

    /// Without special tokens around it.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        // Opening checked that it encodes what it has never seen.
        self.inner
            .encode_fast(text, false)
            .map(|found| found.get_ids().to_vec())
            .unwrap_or_default()
    }

    /// Special tokens among the ids are written out.
    pub fn decode(&self, ids: &[u32]) -> String {
        self.inner.decode(ids, false).unwrap_or_default()
    }

    /// The tokens of a text as a whole prompt, special ones included.
    pub(crate) fn count_with_special(&self, text: &str) -> usize {
        self.inner.encode_fast(text, true).map_or(0, |found| found.len())
    }

    /// For each token of a text, which of the pieces it belongs to that are encoded by themselves.
    pub(crate) fn piece_of_tokens(&self, text: &str) -> Vec<Option<u32>> {
        self.inner
            .encode(text, false)
            .map(|found| found.get_word_ids().to_vec())
            .unwrap_or_default()
    }

    /// Pieces of the vocabulary as they are written in it, in the order of their ids.
    pub(crate) fn vocabulary(&self) -> Vec<String> {
        let mut pieces: Vec<_> = self.inner.get_vocab(false).into_iter().collect();
        pieces.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        pieces.into_iter().map(|(piece, _)| piece).collect()
    }

    /// Size of the vocabulary, added tokens left out.
    pub(crate) fn vocabulary_size(&self) -> u32 {
        u32::try_from(self.inner.get_vocab_size(false)).unwrap_or(u32::MAX)
    }

    /// Ids of the tokens that the model's configuration gives a special part to play.
    pub(crate) fn special_ids(&self) -> Vec<u32> {
        self.special_names.iter().filter_map(|name| self.inner.token_to_id(name)).collect()
    }

    pub fn has_template(&self) -> bool {
        self.template.is_some()
    }

    /// The messages as the model sees them; `None` when the model has no chat template.
    pub fn render_chat(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<Option<String>, TemplateError> {
        self.template
            .as_ref()
            .map(|template| template.render(messages, add_generation_prompt))
            .transpose()
    }
}

/// Letters, and a character that no vocabulary has a word for.
const PROBE: &str = "Probe \u{e123}\u{4e9c} of qzx?";

impl TokenCounter for Tokenizer {
    fn count(&self, text: &str) -> usize {
        self.inner.encode_fast(text, false).map_or(0, |found| found.len())
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("facts", &self.facts).finish_non_exhaustive()
    }
}

fn read_config(directory: &Path) -> Result<Value, TokenizerError> {
    read_json(&directory.join("tokenizer_config.json")).map(Option::unwrap_or_default)
}

/// A JSON file that need not be there.
fn read_json(path: &Path) -> Result<Option<Value>, TokenizerError> {
    let Some(text) = read_optional(path)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| TokenizerError::NotATokenizer {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

fn read_optional(path: &Path) -> Result<Option<String>, TokenizerError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TokenizerError::Unreadable { path: path.to_owned(), source }),
    }
}

const SPECIAL_PARTS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
const SPECIAL_LISTS: [&str; 2] = ["additional_special_tokens", "extra_special_tokens"];

fn special_names(config: &Value, directory: &Path) -> Result<Vec<String>, TokenizerError> {
    let map = read_json(&directory.join("special_tokens_map.json"))?.unwrap_or_default();
    let mut names = Vec::new();
    for source in [config, &map] {
        let single = SPECIAL_PARTS.iter().filter_map(|part| source.get(part));
        let listed = SPECIAL_LISTS.iter().filter_map(|list| source.get(list)?.as_array()).flatten();
        names.extend(single.chain(listed).filter_map(token_text).map(str::to_owned));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// A token is written as its text, or as an object that holds it.
fn token_text(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token.get("content")?.as_str())
}

#[cfg(test)]
mod tests;
