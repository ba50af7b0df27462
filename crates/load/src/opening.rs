//! How an answer begins: its status, and how its body is to be read, if at all.

use http::StatusCode;
use http::header;
use hyper::body::Incoming;
use inferometer_model::endpoint::Api;
use inferometer_model::outcome::{Cause, Outcome};

use crate::answer::{Failure, Framing};
use crate::connection::Response;
use crate::target::Target;

/// The head of an answer, as far as it matters, and what follows it.
pub(crate) struct Opening {
    pub(crate) status: StatusCode,
    pub(crate) framing: Result<Framing, Failure>,
    pub(crate) body: Incoming,
}

impl Opening {
    pub(crate) fn of(response: Response, target: &Target) -> Self {
        let framing = framing(&response, target.api, target.streams());
        Self { status: response.status(), framing, body: response.into_body() }
    }
}

/// How to read a successful answer, or why not to.
fn framing(response: &Response, api: Api, streaming: bool) -> Result<Framing, Failure> {
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(encoding) = text(header::CONTENT_ENCODING)
        && !encoding.eq_ignore_ascii_case("identity")
    {
        let cause = Cause::ContentEncoding;
        return Err(Failure::with_message(Outcome::ProtocolError, cause, encoding));
    }
    let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    framing_of(&essence, api, streaming).ok_or_else(|| {
        Failure::with_message(Outcome::ProtocolError, Cause::ContentType, content_type)
    })
}

/// The framing that a content type means, if it means one that the API has. Some proxies call
/// JSON lines plain JSON, so that for their APIs what was asked counts.
fn framing_of(essence: &str, api: Api, streaming: bool) -> Option<Framing> {
    let streams_lines = api.facts().streams_lines;
    match essence {
        "text/event-stream" => Some(Framing::EventStream),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" if streams_lines => {
            Some(Framing::JsonLines)
        }
        "application/json" | "" if streams_lines && streaming => Some(Framing::JsonLines),
        "" if streaming => Some(Framing::EventStream),
        "application/json" | "" => Some(Framing::Whole),
        _ => None,
    }
}

/// The title of a page, which often says what it is.
pub(crate) fn title(page: &str) -> Option<&str> {
    // ASCII case changes no byte offset.
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let length = lower.get(start..)?.find('<')?;
    page.get(start..start + length).map(str::trim).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_expected_of_the_api_that_sends_them_and_of_no_other() {
        let lines = Some(Framing::JsonLines);
        for (essence, api, streaming, framing) in [
            ("application/x-ndjson", Api::OllamaChat, true, lines),
            ("application/x-ndjson", Api::OllamaGenerate, false, lines),
            ("application/json", Api::OllamaChat, true, lines),
            ("", Api::OllamaGenerate, true, lines),
            ("application/json", Api::OllamaChat, false, Some(Framing::Whole)),
            ("application/x-ndjson", Api::Chat, true, None),
            ("application/json", Api::Chat, true, Some(Framing::Whole)),
            ("", Api::Chat, true, Some(Framing::EventStream)),
            ("", Api::Embeddings, false, Some(Framing::Whole)),
            ("text/html", Api::OllamaChat, true, None),
        ] {
            assert_eq!(framing_of(essence, api, streaming), framing, "{essence} {api}");
        }
    }
}
