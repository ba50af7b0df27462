//! Where the server is: a base URL, with or without a path prefix, with or without `/v1`.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

/// The API families that `run` can drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
}

impl Api {
    pub const ALL: [Self; 12] = [
        Self::Chat,
        Self::Completions,
        Self::Responses,
        Self::Messages,
        Self::Embeddings,
        Self::Rerank,
        Self::TgiGenerate,
        Self::SglangGenerate,
        Self::LlamaCompletion,
        Self::OllamaChat,
        Self::OllamaGenerate,
        Self::TritonGenerate,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::TgiGenerate => "tgi",
            Self::SglangGenerate => "sglang",
            Self::LlamaCompletion => "llama-completion",
            Self::OllamaChat => "ollama-chat",
            Self::OllamaGenerate => "ollama-generate",
            Self::TritonGenerate => "triton",
        }
    }

    /// The path below the base URL. Some servers have another one for streams, and Triton names
    /// the model in it.
    pub fn path(self, streaming: bool, model: &str) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Embeddings => "/v1/embeddings",
            Self::Rerank => "/v1/rerank",
            Self::TgiGenerate if streaming => "/generate_stream",
            Self::TgiGenerate | Self::SglangGenerate => "/generate",
            Self::LlamaCompletion => "/completion",
            Self::OllamaChat => "/api/chat",
            Self::OllamaGenerate => "/api/generate",
            Self::TritonGenerate => {
                let ending = if streaming { "generate_stream" } else { "generate" };
                return Cow::Owned(format!("/v2/models/{}/{ending}", path_segment(model)));
            }
        })
    }

    /// The API that a pasted path ends in. `/generate` alone is taken for SGLang's: TGI has that
    /// path too, but streams are asked for at another.
    pub fn of_path(path: &str) -> Option<Self> {
        split_endpoint(path.trim_end_matches('/')).map(|(_prefix, api)| api)
    }

    /// Whether its answers can come piece by piece. Vectors and scores come whole.
    pub const fn streams(self) -> bool {
        self.generates()
    }

    /// Whether its answers are generated tokens, and not vectors or scores.
    pub const fn generates(self) -> bool {
        !matches!(self, Self::Embeddings | Self::Rerank)
    }

    /// Which fields it has that make a server go on until an answer has its length:
    /// `ignore_eos`, and a least number of tokens.
    pub const fn pins(self) -> (bool, bool) {
        match self {
            Self::Chat | Self::Completions | Self::SglangGenerate => (true, true),
            Self::LlamaCompletion => (true, false),
            Self::Responses
            | Self::Messages
            | Self::Embeddings
            | Self::Rerank
            | Self::TgiGenerate
            | Self::OllamaChat
            | Self::OllamaGenerate
            | Self::TritonGenerate => (false, false),
        }
    }

    /// Whether a request must say which model it is for: some servers have only one.
    pub const fn names_model(self) -> bool {
        !matches!(self, Self::TgiGenerate | Self::SglangGenerate | Self::LlamaCompletion)
    }

    /// Whether a request can ask for an adapter of its own: in the field of the model, or in one
    /// for adapters. Triton's path names one model for all.
    pub const fn takes_adapters(self) -> bool {
        matches!(self, Self::SglangGenerate)
            || self.names_model() && !matches!(self, Self::TritonGenerate)
    }

    /// Whether a prompt can show pictures.
    pub const fn takes_images(self) -> bool {
        matches!(
            self,
            Self::Chat | Self::Responses | Self::Messages | Self::OllamaChat | Self::OllamaGenerate
        )
    }

    /// Whether its answers are words that a conversation can go on from.
    pub const fn converses(self) -> bool {
        !matches!(self, Self::Embeddings | Self::Rerank)
    }

    /// The least output that a request may ask for: `OpenAI`'s own servers refuse less.
    pub const fn output_tokens_min(self) -> u32 {
        if matches!(self, Self::Responses) { 16 } else { 1 }
    }

    /// The object in a body that holds the fields of sampling, where they do not stand in the body
    /// itself.
    pub const fn container(self) -> Option<&'static str> {
        match self {
            Self::TgiGenerate => Some("parameters"),
            Self::SglangGenerate => Some("sampling_params"),
            Self::OllamaChat | Self::OllamaGenerate => Some("options"),
            Self::Chat
            | Self::Completions
            | Self::Responses
            | Self::Messages
            | Self::Embeddings
            | Self::Rerank
            | Self::LlamaCompletion
            | Self::TritonGenerate => None,
        }
    }

    /// Fields that the measurement itself sets, in the body or in its container.
    pub const fn own_fields(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &[
                "model",
                "messages",
                "max_tokens",
                "max_completion_tokens",
                "stream",
                "stream_options",
            ],
            Self::Completions => &["model", "prompt", "max_tokens", "stream", "stream_options"],
            Self::Responses => &["model", "input", "max_output_tokens", "stream"],
            Self::Messages => &["model", "messages", "max_tokens", "stream"],
            Self::Embeddings => &["model", "input"],
            Self::Rerank => &["model", "query", "documents"],
            Self::TgiGenerate => &["inputs", "max_new_tokens", "details", "stream"],
            Self::SglangGenerate => &["text", "max_new_tokens", "stream"],
            Self::LlamaCompletion => &["prompt", "n_predict", "stream"],
            Self::OllamaChat => &["model", "messages", "num_predict", "stream"],
            Self::OllamaGenerate => &["model", "prompt", "images", "num_predict", "stream"],
            Self::TritonGenerate => &["text_input", "max_tokens", "stream"],
        }
    }

    /// Whether its streams are JSON documents in lines rather than events.
    pub const fn streams_lines(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate)
    }
}

/// Endpoints whose paths are fixed, the more telling ones first.
const ENDPOINTS: [(&str, Api); 11] = [
    ("/v1/chat/completions", Api::Chat),
    ("/v1/completions", Api::Completions),
    ("/v1/responses", Api::Responses),
    ("/v1/messages", Api::Messages),
    ("/v1/embeddings", Api::Embeddings),
    ("/v1/rerank", Api::Rerank),
    ("/api/chat", Api::OllamaChat),
    ("/api/generate", Api::OllamaGenerate),
    ("/generate_stream", Api::TgiGenerate),
    ("/generate", Api::SglangGenerate),
    ("/completion", Api::LlamaCompletion),
];

/// What stands before an endpoint, and which one it is.
fn split_endpoint(path: &str) -> Option<(&str, Api)> {
    triton_prefix(path).map(|prefix| (prefix, Api::TritonGenerate)).or_else(|| {
        let mut endpoints = ENDPOINTS.iter();
        endpoints.find_map(|(endpoint, api)| Some((path.strip_suffix(endpoint)?, *api)))
    })
}

/// Triton's endpoint names a model, and sometimes one of its versions.
fn triton_prefix(path: &str) -> Option<&str> {
    let rest = path.strip_suffix("/generate").or_else(|| path.strip_suffix("/generate_stream"))?;
    let (prefix, model) = rest.rsplit_once("/v2/models/")?;
    let (model, version) = model.split_once("/versions/").unwrap_or((model, "1"));
    let is_segment = |text: &str| !text.is_empty() && !text.contains('/');
    (is_segment(model) && is_segment(version)).then_some(prefix)
}

/// A name as one segment of a path: all but the unreserved characters percent-encoded.
fn path_segment(name: &str) -> String {
    use std::fmt::Write as _;

    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The part of the server's URL that all its paths share. It holds no credentials, so it may be
/// stored and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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
    #[error(
        "the URL carries a user name or password, which would be stored with the results; \
             take it out and use --api-key-file or --header"
    )]
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

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        // A number would be taken for an address, and a request would go there.
        if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
            return Err(BaseUrlError::BareNumber(text.to_owned()));
        }
        if ["http:", "https:"].iter().any(|start| text.starts_with(start)) && !text.contains("://")
        {
            return Err(BaseUrlError::NotAUrl(quotable(text), "`//` is missing".to_owned()));
        }
        // `localhost:8000` alone would parse as the scheme `localhost`.
        // Messages may quote what was typed, but not the parts that may be secret.
        let quoted = quotable(text);
        let with_scheme =
            if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme)
            .map_err(|error| BaseUrlError::NotAUrl(quoted.clone(), error.to_string()))?;
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(BaseUrlError::Scheme(quoted, other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseUrlError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BaseUrlError::Query(quoted));
        }
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| BaseUrlError::NotAUrl(quoted, "no host".to_owned()))?;
        let default_port = if tls { 443 } else { 80 };
        Ok(Self {
            tls,
            host: host.to_owned(),
            port: url.port().unwrap_or(default_port),
            prefix: prefix_of(url.path()),
        })
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

impl From<BaseUrl> for String {
    fn from(base: BaseUrl) -> Self {
        base.to_string()
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = BaseUrlError;

    fn try_from(text: String) -> Result<Self, BaseUrlError> {
        text.parse()
    }
}
