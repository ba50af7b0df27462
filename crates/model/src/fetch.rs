//! One plain HTTP exchange, for everything that is not measured: discovery, probes, metrics.

use std::future::Future;
use std::time::Duration;

use crate::outcome::Outcome;

/// What to ask for, by GET. The path is joined to the base URL's prefix by the implementer.
#[derive(Clone, Copy, Debug)]
pub struct FetchRequest<'a> {
    pub path: &'a str,
    /// Replies longer than this are an error, not a truncated success.
    pub body_limit: usize,
}

/// What to ask by POST, with a body of JSON: a question to a model outside of any run.
#[derive(Clone, Copy, Debug)]
pub struct PostRequest<'a> {
    pub path: &'a str,
    pub json: &'a str,
    pub body_limit: usize,
    /// Models write slowly; how long the whole answer may take.
    pub patience: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchReply {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
}

/// The exchange did not bring a whole reply; `outcome` says how, in the words of the records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    pub outcome: Outcome,
    pub message: String,
}

/// The program's one HTTP client, as seen by crates that must not know it.
pub trait Fetch {
    fn fetch(
        &self,
        request: FetchRequest<'_>,
    ) -> impl Future<Output = Result<FetchReply, FetchError>>;
}

/// The same client for requests with a body.
pub trait Post {
    fn post(
        &self,
        request: PostRequest<'_>,
    ) -> impl Future<Output = Result<FetchReply, FetchError>>;
}
