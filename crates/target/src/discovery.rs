//! Which models an endpoint serves, by its own word.

use inferometer_model::fetch::{Fetch, FetchError, FetchRequest};
use serde::Deserialize;

use crate::metrics::BODY_BYTES_MAX;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    #[error("/v1/models did not answer: {0}")]
    NoAnswer(FetchError),
    #[error(
        "/v1/models requires an API key (HTTP {status}); set one with --api-key-file or OPENAI_API_KEY"
    )]
    Unauthorized { status: u16 },
    #[error(
        "/v1/models answered HTTP {status}; is this the base URL of an OpenAI-style server? \
         If it has no such list, name the model with --model"
    )]
    Status { status: u16 },
    #[error(
        "/v1/models answered {what} instead of a list of models; check the URL, \
         or name the model with --model"
    )]
    NotAList { what: String },
    #[error("/v1/models lists no model; name the one to ask for with --model")]
    Empty,
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

/// A model as the server lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListedModel {
    pub id: String,
    /// What it was loaded from, where the server reports it: its tokenizer has that name too.
    #[serde(default)]
    pub root: Option<String>,
}

/// The id goes into every body and every stored run.
const MODEL_ID_BYTES_MAX: usize = 1 << 10;

/// The models with all that is known about them.
pub async fn list_models(fetch: &impl Fetch) -> Result<Vec<ListedModel>, DiscoveryError> {
    let request = FetchRequest { path: "/v1/models", body_limit: BODY_BYTES_MAX };
    let reply = fetch.fetch(request).await.map_err(DiscoveryError::NoAnswer)?;
    match reply.status {
        200..=299 => {}
        status @ (401 | 403) => return Err(DiscoveryError::Unauthorized { status }),
        status => return Err(DiscoveryError::Status { status }),
    }
    let list: ModelList = serde_json::from_slice(&reply.body).map_err(|_| {
        let what = reply.content_type.unwrap_or_else(|| "something".to_owned());
        DiscoveryError::NotAList { what }
    })?;
    let is_name = |model: &ListedModel| (1..=MODEL_ID_BYTES_MAX).contains(&model.id.len());
    let models: Vec<ListedModel> = list.data.into_iter().filter(is_name).collect();
    if models.is_empty() { Err(DiscoveryError::Empty) } else { Ok(models) }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use inferometer_model::fetch::FetchReply;

    use super::*;

    /// Answers at once with what it holds.
    struct Canned(Result<FetchReply, FetchError>);

    impl Fetch for Canned {
        async fn fetch(&self, _: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
            self.0.clone()
        }
    }

    fn discovered(status: u16, body: &str) -> Result<Vec<String>, DiscoveryError> {
        let reply = FetchReply {
            status,
            content_type: Some("text/html".to_owned()),
            body: body.as_bytes().to_vec(),
        };
        let canned = Canned(Ok(reply));
        let mut asking = std::pin::pin!(list_models(&canned));
        match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => Ok(found?.into_iter().map(|model| model.id).collect()),
            Poll::Pending => panic!("a canned answer does not wait"),
        }
    }

    #[test]
    fn the_ids_come_in_the_servers_order() {
        let body = r#"{"object":"list","data":[{"id":"b","x":1},{"id":"a"}]}"#;
        assert_eq!(discovered(200, body), Ok(vec!["b".to_owned(), "a".to_owned()]));
    }

    #[test]
    fn each_way_to_have_no_model_has_its_own_remedy() {
        assert_eq!(discovered(200, r#"{"data":[]}"#), Err(DiscoveryError::Empty));
        assert_eq!(discovered(401, "{}"), Err(DiscoveryError::Unauthorized { status: 401 }));
        assert_eq!(discovered(404, "{}"), Err(DiscoveryError::Status { status: 404 }));
        let html = DiscoveryError::NotAList { what: "text/html".to_owned() };
        assert_eq!(discovered(200, "<html>"), Err(html));
    }
}
