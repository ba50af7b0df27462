//! Small replies: status line, headers, a JSON body.

use std::borrow::Cow;
use std::rc::Rc;

use serde::Serialize;

/// The statuses that this server answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    Unauthorized,
    NotFound,
    MethodNotAllowed,
    LengthRequired,
    BodyTooLarge,
    HeadTooLarge,
    InternalError,
    Unavailable,
    VersionNotSupported,
}

impl Status {
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::LengthRequired => 411,
            Self::BodyTooLarge => 413,
            Self::HeadTooLarge => 431,
            Self::InternalError => 500,
            Self::Unavailable => 503,
            Self::VersionNotSupported => 505,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::BadRequest => "Bad Request",
            Self::Unauthorized => "Unauthorized",
            Self::NotFound => "Not Found",
            Self::MethodNotAllowed => "Method Not Allowed",
            Self::LengthRequired => "Length Required",
            Self::BodyTooLarge => "Content Too Large",
            Self::HeadTooLarge => "Request Header Fields Too Large",
            Self::InternalError => "Internal Server Error",
            Self::Unavailable => "Service Unavailable",
            Self::VersionNotSupported => "HTTP Version Not Supported",
        }
    }

    /// The `type` of an error body, as vLLM names it.
    fn error_type(self) -> &'static str {
        match self {
            Self::NotFound => "NotFoundError",
            Self::Ok
            | Self::BadRequest
            | Self::Unauthorized
            | Self::MethodNotAllowed
            | Self::LengthRequired
            | Self::BodyTooLarge
            | Self::HeadTooLarge => "BadRequestError",
            Self::InternalError | Self::Unavailable | Self::VersionNotSupported => {
                "InternalServerError"
            }
        }
    }
}

/// An error in vLLM's shape.
#[derive(Debug)]
pub(crate) struct ErrorBody {
    status: Status,
    message: String,
    r#type: &'static str,
    param: Option<Cow<'static, str>>,
    allow: Option<&'static str>,
    shape: Shape,
}

/// Whose clients are to understand the error.
#[derive(Clone, Copy, Debug)]
enum Shape {
    OpenAi,
    Anthropic,
}

impl ErrorBody {
    pub(crate) fn new(status: Status, message: String) -> Self {
        let r#type = status.error_type();
        Self { status, message, r#type, param: None, allow: None, shape: Shape::OpenAi }
    }

    /// Names the field of the request that is wrong.
    pub(crate) fn about(self, param: Option<&'static str>) -> Self {
        Self { param: param.map(Cow::Borrowed), ..self }
    }

    /// The body is not what the endpoint takes at `place`; for that vLLM has a type of its own.
    pub(crate) fn malformed_at(self, place: String) -> Self {
        Self { param: Some(Cow::Owned(place)), r#type: self.status.reason(), ..self }
    }

    /// For the clients of Anthropic's API.
    pub(crate) fn for_anthropic(self) -> Self {
        Self { shape: Shape::Anthropic, ..self }
    }

    /// Names the methods that would have been right.
    pub(crate) fn allowing(self, methods: &'static str) -> Self {
        Self { allow: Some(methods), ..self }
    }

    pub(crate) fn reply(&self) -> Rc<Vec<u8>> {
        let allow = self.allow.map(|methods| format!("allow: {methods}\r\n")).unwrap_or_default();
        Rc::new(render(self.status, &allow, self.body()))
    }

    /// The reply after which the connection ends.
    pub(crate) fn closing_reply(&self) -> Vec<u8> {
        render(self.status, "connection: close\r\n", self.body())
    }

    fn body(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct OpenAi<'a> {
            error: OpenAiError<'a>,
        }
        #[derive(Serialize)]
        struct OpenAiError<'a> {
            message: &'a str,
            r#type: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            param: Option<&'a str>,
            code: u16,
        }
        #[derive(Serialize)]
        struct Anthropic<'a> {
            r#type: &'a str,
            error: AnthropicError<'a>,
        }
        #[derive(Serialize)]
        struct AnthropicError<'a> {
            r#type: &'a str,
            message: &'a str,
        }
        let (message, r#type) = (self.message.as_str(), self.r#type);
        match self.shape {
            Shape::OpenAi => {
                let (param, code) = (self.param.as_deref(), self.status.code());
                json_bytes(&OpenAi { error: OpenAiError { message, r#type, param, code } })
            }
            Shape::Anthropic => {
                let error = AnthropicError { r#type, message };
                json_bytes(&Anthropic { r#type: "error", error })
            }
        }
    }
}

/// An error that the framework under vLLM answers, not vLLM: `headers` end in line ends.
pub(crate) fn plain_error(status: Status, headers: &str, body: &impl Serialize) -> Rc<Vec<u8>> {
    Rc::new(render(status, headers, json_bytes(body)))
}

/// A reply of status 200 with a JSON body.
pub(crate) fn json(body: &impl Serialize) -> Rc<Vec<u8>> {
    Rc::new(render(Status::Ok, "", json_bytes(body)))
}

/// A reply of status 200 whose JSON is there already.
pub(crate) fn json_body(body: Vec<u8>) -> Rc<Vec<u8>> {
    Rc::new(render(Status::Ok, "", body))
}

/// A reply of status 200 with nothing in it.
pub(crate) fn empty() -> Rc<Vec<u8>> {
    Rc::new(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())
}

/// Puts the head in front of `body` where it lies: the whole truth is too large to copy.
fn render(status: Status, headers: &str, mut body: Vec<u8>) -> Vec<u8> {
    let (code, reason, length) = (status.code(), status.reason(), body.len());
    let head = format!(
        "HTTP/1.1 {code} {reason}\r\n{headers}content-length: {length}\r\n\
         content-type: application/json\r\n\r\n"
    );
    body.splice(0..0, head.into_bytes());
    body
}

fn json_bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("plain structs with string keys are always JSON")
}

/// The head of a whole answer up to the value of its content-length.
pub(crate) const JSON_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";

/// The head of a streamed answer.
pub(crate) const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_shape_of_vllm() {
        let error = ErrorBody::new(Status::NotFound, "no \"such\" model".to_owned());
        let reply = error.about(Some("model")).reply();
        let text = str::from_utf8(&reply).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 404 Not Found\r\ncontent-length: 91\r\ncontent-type: application/json\r\n\r\n\
             {\"error\":{\"message\":\"no \\\"such\\\" model\",\"type\":\"NotFoundError\",\
             \"param\":\"model\",\"code\":404}}"
        );
    }

    #[test]
    fn a_wrong_method_is_told_the_right_one() {
        let error = ErrorBody::new(Status::MethodNotAllowed, "no".to_owned()).allowing("GET");
        let reply = error.reply();
        assert!(str::from_utf8(&reply).unwrap().contains("\r\nallow: GET\r\n"));
    }
}
