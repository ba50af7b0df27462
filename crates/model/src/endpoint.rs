//! Where the server is: a base URL, with or without a path prefix, with or without `/v1`.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use strum::VariantArray;
use url::Url;

use crate::secret::percent_encode;
use crate::variant_name;

/// The API families that `run` can drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    Chat,
    Completions,
    Responses,
    /// Anthropic's.
    Messages,
    Embeddings,
    Rerank,
    #[serde(rename = "tgi")]
    TgiGenerate,
    #[serde(rename = "sglang")]
    SglangGenerate,
    LlamaCompletion,
    OllamaChat,
    OllamaGenerate,
    #[serde(rename = "triton")]
    TritonGenerate,
    /// vLLM's, of models that classify, reward or embed.
    Pooling,
    /// vLLM's and SGLang's, of models that give each class its probability.
    Classify,
}

/// How a prompt reaches the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptForm {
    /// As messages, which the server renders with the model's chat template.
    Messages,
    /// As text, which the server puts into a template of its own.
    Templated,
    /// As text that the model receives unchanged, between the tokenizer's special tokens.
    Raw,
}

/// What is known about an API apart from how its bodies are written and read, which is in the
/// `Dialect` of the load crate. To add an API: a variant of [`Api`] here and its entry in `apis.json`,
/// and its `Dialect` there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one per column of the table")]
pub struct ApiFacts {
    pub api: Api,
    /// The path below the base URL; `{model}` stands for the model's name.
    pub path: &'static str,
    /// The path for streams, where it is a different one.
    #[serde(borrow)]
    pub stream_path: Option<&'static str>,
    pub prompt_form: PromptForm,
    /// Its answers are generated tokens, which can be streamed; not vectors or scores.
    pub generates: bool,
    /// It has a field that lets the model generate beyond its end-of-sequence token.
    pub ignore_eos: bool,
    /// It has a field for the minimum number of output tokens.
    pub min_tokens: bool,
    /// A request must name a model. Some servers serve only one.
    pub names_model: bool,
    /// A request can select a `LoRA` adapter, in the model's field or in one for adapters; not where the
    /// path names one model for all requests.
    pub takes_adapters: bool,
    pub takes_images: bool,
    /// The fewest output tokens that a request may ask for: of `Responses`, `OpenAI`'s own servers refuse
    /// fewer.
    pub output_tokens_min: u32,
    /// The object in a body that holds the sampling fields, if they are not in the body itself.
    #[serde(borrow)]
    pub container: Option<&'static str>,
    /// Fields that the measurement itself sets, in the body or in its container.
    #[serde(borrow)]
    pub own_fields: Vec<&'static str>,
    /// Its streams are JSON documents in lines rather than server-sent events.
    pub streams_lines: bool,
    /// The name of the API in `vllm bench serve --backend`, if it has one.
    #[serde(borrow)]
    pub vllm_backend: Option<&'static str>,
}

/// One entry per API, in the order of the variants.
static FACTS: LazyLock<Vec<ApiFacts>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("apis.json")).expect("tests read the embedded table")
});

impl Api {
    pub fn all() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied()
    }

    pub fn facts(self) -> &'static ApiFacts {
        &FACTS[self as usize]
    }

    pub fn name(self) -> &'static str {
        variant_name(&self)
    }

    /// Whether its answers are generated tokens, which can be streamed, and not vectors or scores.
    pub fn generates(self) -> bool {
        self.facts().generates
    }

    /// The path below the base URL for an answer that is streamed or not.
    pub fn path(self, streaming: bool, model: &str) -> Cow<'static, str> {
        let facts = self.facts();
        let path = facts.stream_path.filter(|_| streaming).unwrap_or(facts.path);
        if path.contains("{model}") {
            Cow::Owned(path.replace("{model}", &percent_encode(model)))
        } else {
            Cow::Borrowed(path)
        }
    }

    /// The API whose endpoint a pasted path ends in. `/generate` alone is taken for SGLang's: TGI
    /// has that path too, but has another one for streams.
    pub fn from_path(path: &str) -> Option<Self> {
        split_endpoint(path.trim_end_matches('/')).map(|(_prefix, api)| api)
    }
}

/// What is before an endpoint in a path, and whose it is: the longest endpoint that fits.
fn split_endpoint(path: &str) -> Option<(&str, Api)> {
    if let Some(prefix) = triton_prefix(path) {
        return Some((prefix, Api::TritonGenerate));
    }
    let endpoints = FACTS.iter().flat_map(|facts| {
        [Some(facts.path), facts.stream_path].into_iter().flatten().map(|path| (path, facts.api))
    });
    let fitting = endpoints.filter_map(|(endpoint, api)| Some((path.strip_suffix(endpoint)?, api)));
    fitting.min_by_key(|(prefix, api)| (prefix.len(), *api == Api::TgiGenerate))
}

/// Triton's endpoint names a model, and sometimes one of its versions.
fn triton_prefix(path: &str) -> Option<&str> {
    let rest = path.strip_suffix("/generate").or_else(|| path.strip_suffix("/generate_stream"))?;
    let (prefix, model) = rest.rsplit_once("/v2/models/")?;
    let (model, version) = model.split_once("/versions/").unwrap_or((model, "1"));
    let is_segment = |text: &str| !text.is_empty() && !text.contains('/');
    (is_segment(model) && is_segment(version)).then_some(prefix)
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The part of the server's URL that all its paths share. It holds no credentials, so it may be
/// stored and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    /// Empty, or starting with `/` and not ending with one; never ends in `/v1`.
    pub prefix: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    #[error("`{0}` is not a URL ({1}); write it as http://HOST:PORT")]
    NotAUrl(String, String),
    #[error("`{0}` uses the scheme `{1}`; only http and https servers can be measured")]
    Scheme(String, String),
    #[error("the URL has a user name or password; use --api-key-file or --header instead")]
    Credentials,
    #[error("`{0}` is a number, not a server; did you mean http://localhost:{0}?")]
    BareNumber(String),
    #[error("`{0}` has a query or fragment; give the base URL only, as http://HOST:PORT/PREFIX")]
    Query(String),
}

impl BaseUrl {
    /// The full path on the server for one of its endpoints, such as `/v1/models`.
    pub fn path(&self, endpoint: &str) -> String {
        format!("{}{endpoint}", self.prefix)
    }

    /// The value of the `Host` header: the port is left out when it is the scheme's own.
    pub fn authority(&self) -> String {
        let default_port = if self.tls { 443 } else { 80 };
        if self.port == default_port {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The host as a resolver wants it: an IPv6 literal without its brackets.
    pub fn host_to_resolve(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl std::str::FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        // A number would be taken for an address, and a request would go there.
        if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
            return Err(BaseUrlError::BareNumber(text.to_owned()));
        }
        // Messages may quote what was typed, but not the parts that may be secret.
        let quoted = quotable(text);
        let has_scheme = text.contains("://");
        if !has_scheme && (text.starts_with("http:") || text.starts_with("https:")) {
            return Err(BaseUrlError::NotAUrl(quoted, "`//` is missing".to_owned()));
        }
        // `localhost:8000` alone would parse as the scheme `localhost`.
        let with_scheme = if has_scheme { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme)
            .map_err(|error| BaseUrlError::NotAUrl(quoted.clone(), error.to_string()))?;
        let (tls, port) = match url.scheme() {
            "http" => (false, 80),
            "https" => (true, 443),
            other => return Err(BaseUrlError::Scheme(quoted, other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseUrlError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BaseUrlError::Query(quoted));
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return Err(BaseUrlError::NotAUrl(quoted, "no host".to_owned()));
        };
        let (host, port) = (host.to_owned(), url.port().unwrap_or(port));
        Ok(Self { tls, host, port, prefix: prefix_of(url.path()) })
    }
}

/// The text without user name, password, query and fragment.
fn quotable(text: &str) -> String {
    let bare = text.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = bare.split_once("://").map_or(("", bare), |(scheme, rest)| (scheme, rest));
    let rest = rest.rsplit_once('@').map_or(rest, |(_secret, rest)| rest);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

/// Takes off what people paste along: a trailing slash, an endpoint's path, `/v1`.
fn prefix_of(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let path = match split_endpoint(path) {
        Some((prefix, _api)) => prefix,
        None => path.strip_suffix("/v1/models").unwrap_or(path),
    };
    path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/').to_owned()
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

stored_as_text!(BaseUrl);
