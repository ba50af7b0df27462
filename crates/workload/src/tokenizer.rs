//! The model's own tokenizer: what a text is in tokens, by the rules that the server counts with.

mod convert;
mod server;
#[cfg(test)]
pub(crate) mod tests;

use std::io::{self, Write};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use inferometer_model::TokenCounter;
use inferometer_model::observations::TokenizerFacts;
use inferometer_model::{Message, file};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Deserialize as _;
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::convert::Format;
pub(crate) use self::server::ServerTokenizer;
use crate::data_file::hex;
use crate::hub::{Hub, HubError, Repository, is_hub_name};

/// Length of each file of a tokenizer; the longest that are published have some 40 MB.
const BYTES_MAX: u64 = 512 << 20;

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
pub struct TokenizerParts {
    pub template: bool,
    pub special_names: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    #[error(
        "no tokenizer `{name}`: it is neither a file nor a directory with a tokenizer.json, a \
         SentencePiece or tiktoken model, or a tekken.json; \
         give the path of one with --tokenizer"
    )]
    NoSuchPath { name: String },
    #[error(
        "no tokenizer.json, tokenizer.model or tekken.json in {}; give the path of one with --tokenizer",
        .directory.display()
    )]
    NoneInDirectory { directory: PathBuf },
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(
        "the server cannot count tokens: {url} {reason}; leave --tokenizer out to estimate lengths by \
         words, or give the model's own tokenizer"
    )]
    Server { url: String, reason: String },
    #[error(
        "--count with-template needs the model's own tokenizer with its template; a server's \
         /tokenize counts the prompt alone"
    )]
    ServerTemplate,
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not a tokenizer that can be used: {reason}", .path.display())]
    NotATokenizer { path: PathBuf, reason: String },
}

/// `tokenizers` panics where the decoder of a file is no JSON.
fn check_json(json: &[u8]) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Checked {
        #[serde(default, rename = "decoder")]
        _decoder: Value,
    }
    let text = std::str::from_utf8(json).map_err(|error| error.to_string())?;
    serde_json::from_str::<Checked>(text).map(drop).map_err(|error| error.to_string())
}

impl Tokenizer {
    /// Finds it by a file's or a directory's path, or by a model's name: in the hub's cache, else
    /// on the hub.
    pub fn open(name: &str) -> Result<Self, TokenizerError> {
        Self::open_with(name, &Hub::from_environment())
    }

    pub fn open_with(name: &str, hub: &Hub) -> Result<Self, TokenizerError> {
        Self::read(name, &find(name, hub)?)
    }

    fn read(name: &str, path: &Path) -> Result<Self, TokenizerError> {
        let bytes = file::read(path, BYTES_MAX)
            .map_err(|source| TokenizerError::Unreadable { path: path.to_owned(), source })?;
        let refuse = |reason| TokenizerError::NotATokenizer { path: path.to_owned(), reason };
        let directory = path.parent().unwrap_or(Path::new("."));
        let config = read_config(directory)?;
        let json = Format::detect(&bytes).convert(&bytes, &config).map_err(refuse)?;
        let mut found = Self::parse(known_name(name), &json).map_err(refuse)?;
        // The file names itself, whatever its format.
        found.facts.sha256 = hex(&Sha256::digest(&bytes));
        found.special_names = special_names(&config, directory)?;
        found.template = ChatTemplate::read(directory, &config)?;
        Ok(found)
    }

    /// A tokenizer that is in no file: one that was made by a program.
    pub fn from_bytes(name: &str, json: &[u8]) -> Result<Self, TokenizerError> {
        let refuse = |reason| TokenizerError::NotATokenizer { path: name.into(), reason };
        Self::parse(name.to_owned(), json).map_err(refuse)
    }

    /// Sets the chat template, in the form that models are published with.
    #[must_use]
    pub fn with_template(mut self, source: &str, config: &Value) -> Self {
        self.template = Some(ChatTemplate::new(source.to_owned(), config));
        self
    }

    fn parse(name: String, json: &[u8]) -> Result<Self, String> {
        check_json(json)?;
        let read = || tokenizers::Tokenizer::from_bytes(json).map_err(|error| error.to_string());
        // So it does where a part of it cannot be read, such as the map of a normalizer.
        let mut inner =
            catch_unwind(read).unwrap_or_else(|_| Err("a part of it is damaged".to_owned()))?;
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
    pub fn facts_with(&self, besides: TokenizerParts) -> TokenizerFacts {
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

inferometer_model::debug_fields!(Tokenizer, facts);

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
    match file::read_text(path, BYTES_MAX) {
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

const FILE: &str = "tokenizer.json";
/// In the order in which they are looked for.
const FILES: [&str; 8] = [
    FILE,
    "tekken.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.tiktoken",
    "qwen.tiktoken",
    "tiktoken.model",
];
/// Beside the tokenizer, where a model has them.
#[cfg(feature = "hub")]
const COMPANIONS: [&str; 4] = [
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
];

/// The path of the tokenizer that a name stands for.
fn find(name: &str, hub: &Hub) -> Result<PathBuf, TokenizerError> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if path.is_dir() {
        let directory = path.to_owned();
        return file_in(path).ok_or(TokenizerError::NoneInDirectory { directory });
    }
    if !is_hub_name(name) {
        return Err(TokenizerError::NoSuchPath { name: name.to_owned() });
    }
    let model = Repository::Model(name.to_owned());
    match hub.cached(&model).and_then(|snapshot| file_in(&snapshot.folder)) {
        Some(file) => Ok(file),
        None => fetch(&model, hub),
    }
}

fn fetch(model: &Repository, hub: &Hub) -> Result<PathBuf, TokenizerError> {
    hub.check_online(model)?;
    #[cfg(feature = "hub")]
    if let Some(file) = file_in(&hub.download_first(model, &FILES, &COMPANIONS)?.folder) {
        return Ok(file);
    }
    Err(TokenizerError::NoSuchPath { name: model.to_string() })
}

fn file_in(folder: &Path) -> Option<PathBuf> {
    FILES.iter().map(|file| folder.join(file)).find(|file| file.is_file())
}

/// What results call a tokenizer: a name on the hub whole, and of a path the model's directory, or
/// the file where it has a name of its own. Results travel, and folders tell too much.
fn known_name(name: &str) -> String {
    let path = Path::new(name);
    let whole = path.canonicalize().ok();
    let Some(whole) = whole.filter(|_| path.is_file() || path.is_dir()) else {
        return name.to_owned();
    };
    // A link's own name is the one that was meant.
    let file = path.file_name().or(whole.file_name());
    let folder = || path.parent().and_then(Path::file_name).or(whole.parent()?.file_name());
    let file = if file.is_some_and(|file| file == FILE) { folder().or(file) } else { file };
    file.map_or_else(|| FILE.to_owned(), |file| file.to_string_lossy().into_owned())
}

/// A template and the names of tokens that it may write.
#[derive(Debug)]
struct ChatTemplate {
    source: String,
    environment: Environment<'static>,
    /// `bos_token` and others, each with its text.
    tokens: Value,
    /// Why the template cannot be used, when it cannot even be read.
    broken: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "the model's chat template cannot be used ({0}); count the prompt alone, without the \
         template"
    )]
    Broken(String),
    #[error(
        "the model's chat template writes today's date, so prompts of equal length tomorrow would \
         differ; count the prompt alone, without the template"
    )]
    Dated,
}

/// What a template writes, as far as a prompt can be long.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if OUTPUT_BYTES_MAX - self.0.len() < bytes.len() {
            return Err(io::Error::other(format!(
                "it writes longer than {OUTPUT_BYTES_MAX} bytes"
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const NAME: &str = "chat";
/// Steps of a template: far more than long chats take, and over within a second or so.
const FUEL: u64 = 20_000_000;
const OUTPUT_BYTES_MAX: usize = 256 << 20;
/// Left out on purpose, so that a text is the same tomorrow: templates that ask whether it is there
/// have a date of their own.
const TODAY: &str = "strftime_now";

impl ChatTemplate {
    /// From the files beside a tokenizer, in the order in which the models' own library looks.
    fn read(directory: &Path, config: &Value) -> Result<Option<Self>, TokenizerError> {
        if let Some(source) = read_optional(&directory.join("chat_template.jinja"))? {
            return Ok(Some(Self::new(source, config)));
        }
        let file = read_json(&directory.join("chat_template.json"))?;
        let inside = file.as_ref().and_then(source_in).or_else(|| source_in(config));
        Ok(inside.map(|source| Self::new(source, config)))
    }

    fn new(source: String, config: &Value) -> Self {
        let mut environment = Environment::new();
        // As the models' own library sets Jinja up.
        let whitespace = environment.syntax().to_builder();
        let built = { whitespace }.trim_blocks(true).lstrip_blocks(true).build();
        let unsettled = built.map(|syntax| environment.set_syntax(syntax)).err();
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.set_fuel(Some(FUEL));
        let unread = environment.add_template_owned(NAME, source.clone()).err();
        let broken = unsettled.or(unread).map(|error| error.to_string());
        let is_token = |name: &str| name.ends_with("_token");
        let tokens = config.as_object().into_iter().flatten();
        let tokens = tokens
            .filter(|(name, _)| is_token(name))
            .filter_map(|(name, token)| Some((name.clone(), token_text(token)?.into())))
            .collect();
        Self { source, environment, tokens: Value::Object(tokens), broken }
    }

    /// All that what it writes depends on.
    fn parts(&self) -> [(&'static str, String); 2] {
        [("template", self.source.clone()), ("tokens", self.tokens.to_string())]
    }

    fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        if let Some(reason) = &self.broken {
            return Err(TemplateError::Broken(reason.clone()));
        }
        let tokens = as_seen(&self.tokens)?;
        let messages: Vec<Value> =
            messages.iter().map(|message| Value::Object(message.0.clone())).collect();
        let messages = as_seen(&Value::Array(messages))?;
        self.environment
            .get_template(NAME)
            .and_then(|template| {
                // What is not given must be nothing rather than unknown, as templates ask for it.
                let (tools, documents) = ((), ());
                let given = context! { messages, add_generation_prompt, tools, documents };
                let mut bounded = Bounded(Vec::new());
                template.render_captured_to(context! { ..given, ..tokens }, &mut bounded)?;
                let text = String::from_utf8(bounded.0);
                text.map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
            })
            .map_err(|error| {
                let detail = error.detail().unwrap_or_default();
                if error.kind() == ErrorKind::UnknownFunction && detail.contains(TODAY) {
                    TemplateError::Dated
                } else {
                    let why = std::error::Error::source(&error).map(|why| format!(": {why}"));
                    TemplateError::Broken(format!("{error}{}", why.unwrap_or_default()))
                }
            })
    }
}

/// JSON in the template's own words.
fn as_seen(json: &Value) -> Result<minijinja::Value, TemplateError> {
    minijinja::Value::deserialize(json).map_err(|error| TemplateError::Broken(error.to_string()))
}

/// A template by itself, or the one named `default` of several.
fn source_in(config: &Value) -> Option<String> {
    match config.get("chat_template")? {
        Value::String(source) => Some(source.clone()),
        Value::Array(named) => named
            .iter()
            .find(|one| one.get("name").and_then(Value::as_str) == Some("default"))
            .and_then(|one| one.get("template")?.as_str())
            .map(str::to_owned),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
