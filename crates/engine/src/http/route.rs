//! Which endpoint a request is for.

use std::rc::Rc;

use super::reply::{ErrorBody, Status};
use super::request::Request;
use crate::truth::Api;

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Models,
    Generate(Api),
    ReadTruth,
    ClearTruth,
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
    let (allowed, found) = match (request.path, request.method) {
        ("/v1/chat/completions", method) => {
            ("POST", (method == "POST").then_some(Route::Generate(Api::Chat)))
        }
        ("/v1/completions", method) => {
            ("POST", (method == "POST").then_some(Route::Generate(Api::Completions)))
        }
        ("/health", method) => ("GET", (method == "GET").then_some(Route::Health)),
        ("/v1/models", method) => ("GET", (method == "GET").then_some(Route::Models)),
        ("/truth", "GET") => return Ok(Route::ReadTruth),
        ("/truth", "DELETE") => return Ok(Route::ClearTruth),
        ("/truth", _) => ("GET, DELETE", None),
        _ => return Err(RouteError::UnknownPath { path: request.path.to_owned() }),
    };
    found.ok_or_else(|| RouteError::WrongMethod {
        path: request.path.to_owned(),
        method: request.method.to_owned(),
        allowed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route_of(method: &str, path: &str) -> Result<Route, RouteError> {
        route(&Request { method, path, body: b"", id: None, close: false })
    }

    #[test]
    fn endpoints_are_found_by_path_and_method() {
        assert_eq!(route_of("GET", "/health"), Ok(Route::Health));
        assert_eq!(route_of("POST", "/v1/chat/completions"), Ok(Route::Generate(Api::Chat)));
        assert_eq!(route_of("DELETE", "/truth"), Ok(Route::ClearTruth));
    }

    #[test]
    fn a_wrong_method_is_not_an_unknown_path() {
        let wrong = route_of("GET", "/v1/completions").unwrap_err();
        assert_eq!(wrong.to_string(), "`/v1/completions` does not take GET; it takes POST");
        let unknown = route_of("GET", "/v2").unwrap_err();
        assert_eq!(unknown.to_string(), "there is nothing at `/v2`");
    }
}
