//! How an answer begins: its status, and how its body is to be read, if at all.

use http::StatusCode;
use http::header;
use hyper::body::Incoming;
use inferometer_model::outcome::{Cause, Outcome};

use crate::answer::{Failure, Framing};
use crate::connection::Response;

/// The head of an answer, as far as it matters, and what follows it.
pub(crate) struct Opening {
    pub(crate) status: StatusCode,
    pub(crate) framing: Result<Framing, Failure>,
    pub(crate) body: Incoming,
}

impl Opening {
    pub(crate) fn of(response: Response, streaming: bool) -> Self {
        let framing = framing(&response, streaming);
        Self { status: response.status(), framing, body: response.into_body() }
    }
}

/// How to read a successful answer, or why not to.
fn framing(response: &Response, streaming: bool) -> Result<Framing, Failure> {
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(encoding) = text(header::CONTENT_ENCODING)
        && !encoding.eq_ignore_ascii_case("identity")
    {
        let cause = Cause::ContentEncoding;
        return Err(Failure::saying(Outcome::ProtocolError, cause, encoding));
    }
    let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/event-stream" => Ok(Framing::EventStream),
        "" if streaming => Ok(Framing::EventStream),
        "application/json" | "" => Ok(Framing::Whole),
        _ => Err(Failure::saying(Outcome::ProtocolError, Cause::ContentType, content_type)),
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
