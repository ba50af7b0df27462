//! Which API a backend speaks, and where.

use inferometer_model::BaseUrl;
use inferometer_model::endpoint::{Api, BaseUrlError};

use crate::arguments::ServeTargetArguments;
use crate::failure::Failure;

/// A backend of the other client that can be driven here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backend {
    /// In its own word, which the result file repeats.
    pub(super) name: String,
    pub(super) api: Api,
}

const DEFAULT: &str = "openai";

/// Why the others cannot be, and what to do.
const REFUSED: [(&str, &str, &str); 9] = [
    (
        "openai-responses",
        "the block has no definitions of its events here",
        "inferometer run --api responses measures such a server by our definitions",
    ),
    (
        "openai-audio",
        "audio cannot be sent",
        "use the other client for transcriptions; `inferometer import` reads its result",
    ),
    ("openai-embeddings-chat", NO_MEDIA, TEXT_EMBEDDINGS),
    ("openai-embeddings-clip", NO_MEDIA, TEXT_EMBEDDINGS),
    ("openai-embeddings-vlm2vec", NO_MEDIA, TEXT_EMBEDDINGS),
    ("infinity-embeddings", "its bodies are unknown here", TEXT_EMBEDDINGS),
    ("infinity-embeddings-clip", NO_MEDIA, TEXT_EMBEDDINGS),
    ("vllm-pooling", "its endpoint is unknown here", TEXT_EMBEDDINGS),
    (
        "vllm-rerank",
        "its random queries cannot be drawn here",
        "inferometer run --api rerank --dataset FILE measures a reranker",
    ),
];
const NO_MEDIA: &str = "embeddings of pictures cannot be asked for";
const TEXT_EMBEDDINGS: &str = "openai-embeddings measures embeddings of text";

impl Backend {
    pub(super) fn named(typed: Option<&str>) -> Result<Self, Failure> {
        let name = typed.unwrap_or(DEFAULT);
        let api = match name {
            "openai" | "vllm" => Api::Completions,
            "openai-chat" => Api::Chat,
            "openai-embeddings" => Api::Embeddings,
            _ => return Err(unknown(name)),
        };
        Ok(Self { name: name.to_owned(), api })
    }

    /// The endpoint, which must be the API's own below some prefix.
    pub(super) fn url(&self, said: &ServeTargetArguments) -> Result<BaseUrl, Failure> {
        let own = self.api.path(true, "");
        let endpoint = said.endpoint.as_deref().unwrap_or(&own);
        let typed = format!("{}{endpoint}", base(said));
        let base: BaseUrl = typed
            .parse()
            .map_err(|error: BaseUrlError| Failure::usage(format!("--base-url: {error}")))?;
        let asked = format!("{}{own}", base.prefix);
        if typed.trim_end_matches('/').ends_with(&asked) {
            return Ok(base);
        }
        Err(Failure::usage(format!(
            "--endpoint {endpoint}: the backend {} sends its requests to {own}, below any prefix",
            self.name
        ))
        .hint(format!("leave --endpoint out, or end it in {own}; --backend chooses the API")))
    }
}

fn base(said: &ServeTargetArguments) -> String {
    if let Some(base) = &said.base_url {
        return base.clone();
    }
    let host = said.host.as_deref().unwrap_or("127.0.0.1");
    origin(host, &said.port.unwrap_or(8000).to_string())
}

/// What a host and a port are as a URL.
pub(crate) fn origin(host: &str, port: &str) -> String {
    let is_bare_ipv6 = host.contains(':') && !host.starts_with('[');
    if is_bare_ipv6 { format!("http://[{host}]:{port}") } else { format!("http://{host}:{port}") }
}

fn unknown(name: &str) -> Failure {
    match REFUSED.iter().find(|(refused, ..)| *refused == name) {
        Some((_, why, instead)) => {
            Failure::usage(format!("--backend {name} cannot be measured: {why}")).hint(*instead)
        }
        None => Failure::usage(format!(
            "--backend {name} is not known; it is openai, vllm, openai-chat or openai-embeddings"
        ))
        .hint("`inferometer run --api` speaks to other servers"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        target: ServeTargetArguments,
    }

    fn url(typed: &str) -> Result<String, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let said = Typed::try_parse_from(words).unwrap().target;
        let backend =
            Backend::named(said.backend.as_deref()).map_err(|error| format!("{error:?}"))?;
        backend.url(&said).map(|base| base.to_string()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn a_place_is_put_together_as_the_other_client_does() {
        assert_eq!(url("").unwrap(), "http://127.0.0.1:8000");
        assert_eq!(url("--host ::1 --port 80").unwrap(), "http://[::1]");
        assert_eq!(
            url("--base-url https://h/p --endpoint /v1/completions").unwrap(),
            "https://h/p"
        );
        assert_eq!(url("--base-url http://h/v1 --endpoint /completions").unwrap(), "http://h");
        assert_eq!(url("--backend openai-chat").unwrap(), "http://127.0.0.1:8000");
        let chat = "--backend openai-chat --endpoint /v1/chat/completions";
        assert_eq!(url(chat).unwrap(), "http://127.0.0.1:8000");
    }

    #[test]
    fn another_endpoint_and_another_backend_are_refused() {
        let wrong = url("--backend openai-chat --endpoint /v1/completions").unwrap_err();
        assert!(wrong.contains("/v1/chat/completions"), "{wrong}");
        assert!(url("--endpoint /generate").unwrap_err().contains("/v1/completions"));
        let responses = url("--backend openai-responses").unwrap_err();
        assert!(responses.contains("run --api responses"), "{responses}");
        assert!(url("--backend openai-audio").unwrap_err().contains("audio"));
        assert!(url("--backend tgi").unwrap_err().contains("--api"));
    }
}
