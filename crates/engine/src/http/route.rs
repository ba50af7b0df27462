//! Which endpoint a request is for.

use std::rc::Rc;

use super::reply::{ErrorBody, Status};
use super::request::Request;
use crate::truth::Api;

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Version,
    Models,
    Generate(Api),
    Metrics,
    Steps,
    /// The vocabulary, in the form that the `tokenizers` library reads.
    Tokenizer,
    TokenizerConfig,
    Tokenize,
    Detokenize,
    ReadTruth,
    ClearTruth,
}

impl Route {
    /// Where it is, for the metrics.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Health => "/health",
            Self::Version => "/version",
            Self::Models => "/v1/models",
            Self::Generate(Api::Chat) => "/v1/chat/completions",
            Self::Generate(Api::Completions) => "/v1/completions",
            Self::Generate(Api::Responses) => "/v1/responses",
            Self::Generate(Api::Messages) => "/v1/messages",
            Self::Generate(Api::Embeddings) => "/v1/embeddings",
            Self::Metrics => "/metrics",
            Self::Steps => "/steps",
            Self::Tokenizer => "/tokenizer.json",
            Self::TokenizerConfig => "/tokenizer_config.json",
            Self::Tokenize => "/tokenize",
            Self::Detokenize => "/detokenize",
            Self::ReadTruth | Self::ClearTruth => "/truth",
        }
    }
}

/// Why a request is for no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    #[error("there is nothing at `{path}`")]
    UnknownPath { path: String },
    #[error("`{path}` does not take {method}; it takes {allowed}")]
    WrongMethod { path: String, method: String, allowed: &'static str },
}

impl RouteError {
    pub(crate) fn reply(&self) -> Rc<Vec<u8>> {
        match self {
            Self::UnknownPath { .. } => ErrorBody::new(Status::NotFound, self.to_string()).reply(),
            Self::WrongMethod { allowed, .. } => {
                ErrorBody::new(Status::MethodNotAllowed, self.to_string()).allowing(allowed).reply()
            }
        }
    }
}

pub(crate) fn route(request: &Request<'_>) -> Result<Route, RouteError> {
    let (allowed, route) = match (request.path, request.method) {
        ("/v1/chat/completions", _) => ("POST", Route::Generate(Api::Chat)),
        ("/v1/completions", _) => ("POST", Route::Generate(Api::Completions)),
        ("/v1/responses", _) => ("POST", Route::Generate(Api::Responses)),
        ("/v1/messages", _) => ("POST", Route::Generate(Api::Messages)),
        ("/v1/embeddings", _) => ("POST", Route::Generate(Api::Embeddings)),
        ("/tokenize", _) => ("POST", Route::Tokenize),
        ("/detokenize", _) => ("POST", Route::Detokenize),
        ("/health", _) => ("GET", Route::Health),
        ("/ping", _) => ("GET, POST", Route::Health),
        ("/version", _) => ("GET", Route::Version),
        ("/metrics", _) => ("GET", Route::Metrics),
        ("/steps", _) => ("GET", Route::Steps),
        ("/v1/models", _) => ("GET", Route::Models),
        ("/tokenizer.json", _) => ("GET", Route::Tokenizer),
        ("/tokenizer_config.json", _) => ("GET", Route::TokenizerConfig),
        ("/truth", "DELETE") => ("GET, DELETE", Route::ClearTruth),
        ("/truth", _) => ("GET, DELETE", Route::ReadTruth),
        _ => return Err(RouteError::UnknownPath { path: request.path.to_owned() }),
    };
    if allowed.split(", ").any(|method| method == request.method) {
        return Ok(route);
    }
    Err(RouteError::WrongMethod {
        path: request.path.to_owned(),
        method: request.method.to_owned(),
        allowed,
    })
}

#[cfg(test)]
mod tests {
    use super::super::request::GivenKeys;
    use super::*;

    fn route_of(method: &str, path: &str) -> Result<Route, RouteError> {
        route(&Request {
            method,
            path,
            body: b"",
            id: None,
            keys: GivenKeys::default(),
            close: false,
        })
    }

    #[test]
    fn endpoints_are_found_by_path_and_method() {
        assert_eq!(route_of("GET", "/health"), Ok(Route::Health));
        assert_eq!(route_of("POST", "/v1/chat/completions"), Ok(Route::Generate(Api::Chat)));
        assert_eq!(route_of("DELETE", "/truth"), Ok(Route::ClearTruth));
        assert_eq!(route_of("POST", "/ping"), Ok(Route::Health));
        assert_eq!(route_of("POST", "/v1/messages"), Ok(Route::Generate(Api::Messages)));
    }

    #[test]
    fn a_wrong_method_is_not_an_unknown_path() {
        let wrong = route_of("GET", "/v1/completions").unwrap_err();
        assert_eq!(wrong.to_string(), "`/v1/completions` does not take GET; it takes POST");
        let unknown = route_of("GET", "/v2").unwrap_err();
        assert_eq!(unknown.to_string(), "there is nothing at `/v2`");
    }
}
