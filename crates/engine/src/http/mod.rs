//! HTTP/1.1 as this server speaks it: requests out of bytes, small replies into bytes.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

use httparse::{EMPTY_HEADER, Header};
use serde::Serialize;

use crate::json::{Json, members};
use crate::options::{EngineOptions, Limits};
use crate::truth::Api;

/// Asks a client that waits for it to send the body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A whole request; it borrows the bytes that it came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// The path without its query.
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
    /// The client's `x-request-id`.
    pub(crate) id: Option<&'a [u8]>,
    /// The client's `x-session-id`.
    pub(crate) session: Option<&'a [u8]>,
    /// What the client gives as its key.
    pub(crate) keys: GivenKeys<'a>,
    /// Whether the connection ends with the reply.
    pub(crate) close: bool,
}

/// What a client gives as its key, in one header or in both; whichever is right counts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GivenKeys<'a> {
    bearer: Option<&'a [u8]>,
    api_key: Option<&'a [u8]>,
}

impl GivenKeys<'_> {
    pub(crate) fn any(self, is_right: impl FnMut(&[u8]) -> bool) -> bool {
        [self.bearer, self.api_key].into_iter().flatten().any(is_right)
    }
}

impl fmt::Debug for GivenKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenKeys(hidden)")
    }
}

impl Request<'_> {
    /// The client's id as it is kept; longer ones than any client makes are not, nor empty ones.
    pub(crate) fn id_text(&self) -> Option<String> {
        kept_text(self.id)
    }

    pub(crate) fn session_text(&self) -> Option<String> {
        kept_text(self.session)
    }
}

fn kept_text(id: Option<&[u8]>) -> Option<String> {
    let id = id.filter(|id| (1..=ID_BYTES_KEPT).contains(&id.len()))?;
    Some(String::from_utf8_lossy(id).into_owned())
}

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    Whole {
        request: Request<'a>,
        /// How many bytes it took.
        length: usize,
    },
    Partial {
        /// Looking again is worthwhile when this many bytes are there.
        needed: usize,
        /// The client waits for permission to send the body.
        expects_continue: bool,
    },
}

/// Reads the first request out of `bytes`. After an error the connection ends.
pub(crate) fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Parsed<'a>, ErrorBody> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let parsed = head.parse(bytes).map_err(|error| {
        ErrorBody::new(Status::BAD_REQUEST, format!("malformed request: {error}"))
    })?;
    let head_bytes = match parsed {
        httparse::Status::Complete(head_bytes) if head_bytes <= limits.head_bytes => head_bytes,
        httparse::Status::Partial if bytes.len() < limits.head_bytes => {
            return Ok(Parsed::Partial { needed: bytes.len() + 1, expects_continue: false });
        }
        httparse::Status::Complete(_) | httparse::Status::Partial => {
            let limit = limits.head_bytes;
            let message = format!("the request's head is larger than {limit} bytes");
            return Err(ErrorBody::new(Status::HEAD_TOO_LARGE, message));
        }
    };
    let (Some(method), Some(target), Some(1)) = (head.method, head.path, head.version) else {
        let message = "only HTTP/1.1 is supported".to_owned();
        return Err(ErrorBody::new(Status::VERSION_NOT_SUPPORTED, message));
    };
    let mut facts = HeaderFacts::default();
    head.headers.iter().try_for_each(|header| facts.note(header))?;
    let (body_bytes, limit) = (facts.body_bytes.unwrap_or(0), limits.body_bytes);
    if limit < body_bytes {
        let message =
            format!("the request's body of {body_bytes} bytes is larger than {limit} bytes");
        return Err(ErrorBody::new(Status::BODY_TOO_LARGE, message));
    }
    let length = head_bytes + body_bytes;
    let Some(body) = bytes.get(head_bytes..length) else {
        let expects_continue = facts.expects_continue;
        return Ok(Parsed::Partial { needed: length, expects_continue });
    };
    let path = target.split_once('?').map_or(target, |(path, _query)| path);
    // Replies have bodies, which a client that sent HEAD would take for the next reply.
    let close = facts.close || method == "HEAD";
    let request = Request {
        method,
        path,
        body,
        id: facts.id,
        session: facts.session,
        keys: facts.keys,
        close,
    };
    Ok(Parsed::Whole { request, length })
}

/// What the headers say that matters here.
#[derive(Debug, Default)]
struct HeaderFacts<'a> {
    body_bytes: Option<usize>,
    expects_continue: bool,
    close: bool,
    id: Option<&'a [u8]>,
    session: Option<&'a [u8]>,
    keys: GivenKeys<'a>,
}

impl<'a> HeaderFacts<'a> {
    fn note(&mut self, header: &Header<'a>) -> Result<(), ErrorBody> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        // Comparing lengths first spares most headers all comparisons.
        match header.name.len() {
            6 if is("expect") => {
                self.expects_continue = header.value.eq_ignore_ascii_case(b"100-continue");
            }
            9 if is("x-api-key") => self.keys.api_key = Some(header.value),
            10 if is("connection") => {
                let mut options = header.value.split(|byte| *byte == b',');
                self.close |= options.any(|it| it.trim_ascii().eq_ignore_ascii_case(b"close"));
            }
            12 if is("x-request-id") => self.id = Some(header.value),
            12 if is("x-session-id") => self.session = Some(header.value),
            13 if is("authorization") => self.keys.bearer = bearer(header.value),
            14 if is("content-length") => {
                let length = decimal(header.value);
                if length.is_none() || self.body_bytes.is_some_and(|other| Some(other) != length) {
                    let message = "malformed content-length".to_owned();
                    return Err(ErrorBody::new(Status::BAD_REQUEST, message));
                }
                self.body_bytes = length;
            }
            17 if is("transfer-encoding") => {
                let message = "transfer-encoding is not supported in requests; send content-length";
                return Err(ErrorBody::new(Status::LENGTH_REQUIRED, message.to_owned()));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The token of a bearer; the name of the scheme may be written in any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Digits only: a sign or a space is how requests are smuggled.
fn decimal(value: &[u8]) -> Option<usize> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(value).ok()?.parse().ok()
}

/// The truth is bounded, and so are the events of an answer that repeat it.
pub(crate) const ID_BYTES_KEPT: usize = 256;

const HEADERS_MAX: usize = 64;

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Version,
    Models,
    Generate(Api),
    Metrics,
    Steps,
    /// Empties the prefix cache.
    ResetCache,
    /// The vocabulary, in the form that the `tokenizers` library reads.
    Tokenizer,
    TokenizerConfig,
    Tokenize,
    Detokenize,
    ReadTruth,
    ClearTruth,
}

/// Every path with the methods that it takes. The first path of a route names it in the metrics.
const ROUTES: [(&str, &str, Route); 18] = [
    ("/v1/chat/completions", "POST", Route::Generate(Api::Chat)),
    ("/v1/completions", "POST", Route::Generate(Api::Completions)),
    ("/v1/responses", "POST", Route::Generate(Api::Responses)),
    ("/v1/messages", "POST", Route::Generate(Api::Messages)),
    ("/v1/embeddings", "POST", Route::Generate(Api::Embeddings)),
    ("/tokenize", "POST", Route::Tokenize),
    ("/detokenize", "POST", Route::Detokenize),
    ("/health", "GET", Route::Health),
    ("/ping", "GET, POST", Route::Health),
    ("/version", "GET", Route::Version),
    ("/metrics", "GET", Route::Metrics),
    ("/steps", "GET", Route::Steps),
    ("/reset_prefix_cache", "POST", Route::ResetCache),
    ("/v1/models", "GET", Route::Models),
    ("/tokenizer.json", "GET", Route::Tokenizer),
    ("/tokenizer_config.json", "GET", Route::TokenizerConfig),
    ("/truth", "GET, DELETE", Route::ReadTruth),
    ("/truth", "GET, DELETE", Route::ClearTruth),
];

impl Route {
    pub(crate) fn path(self) -> &'static str {
        ROUTES.iter().find(|(.., route)| *route == self).map_or("", |(path, ..)| path)
    }
}

/// The endpoint of a request, or the error that names the right methods.
pub(crate) fn route(request: &Request<'_>) -> Result<Route, ErrorBody> {
    let (method, path) = (request.method, request.path);
    let Some((_, allowed, route)) = ROUTES.iter().find(|(known, ..)| *known == path) else {
        return Err(ErrorBody::new(Status::NOT_FOUND, format!("there is nothing at `{path}`")));
    };
    if allowed.split(", ").any(|known| known == method) {
        let clears = *route == Route::ReadTruth && method == "DELETE";
        return Ok(if clears { Route::ClearTruth } else { *route });
    }
    let message = format!("`{path}` does not take {method}; it takes {allowed}");
    Err(ErrorBody::new(Status::METHOD_NOT_ALLOWED, message).allowing(allowed))
}

/// A status that this server answers with: its code and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u16, &'static str);

impl Status {
    pub(crate) const OK: Self = Self(200, "OK");
    pub(crate) const BAD_REQUEST: Self = Self(400, "Bad Request");
    pub(crate) const UNAUTHORIZED: Self = Self(401, "Unauthorized");
    pub(crate) const NOT_FOUND: Self = Self(404, "Not Found");
    pub(crate) const METHOD_NOT_ALLOWED: Self = Self(405, "Method Not Allowed");
    const LENGTH_REQUIRED: Self = Self(411, "Length Required");
    const BODY_TOO_LARGE: Self = Self(413, "Content Too Large");
    const HEAD_TOO_LARGE: Self = Self(431, "Request Header Fields Too Large");
    pub(crate) const INTERNAL_ERROR: Self = Self(500, "Internal Server Error");
    pub(crate) const UNAVAILABLE: Self = Self(503, "Service Unavailable");
    const VERSION_NOT_SUPPORTED: Self = Self(505, "HTTP Version Not Supported");
}

/// An error in vLLM's shape.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    pub(crate) status: Status,
    pub(crate) message: String,
    r#type: &'static str,
    param: Option<Cow<'static, str>>,
    pub(crate) allow: Option<&'static str>,
    /// Whether clients of Anthropic's API are to understand it.
    for_anthropic: bool,
}

impl ErrorBody {
    pub(crate) fn new(status: Status, message: String) -> Self {
        // As vLLM names it.
        let r#type = match status.0 {
            404 => "NotFoundError",
            ..500 => "BadRequestError",
            _ => "InternalServerError",
        };
        Self { status, message, r#type, param: None, allow: None, for_anthropic: false }
    }

    pub(crate) fn unknown_model(model: &str, known: &str) -> Self {
        let message = format!("The model `{model}` does not exist. Valid aliases: {known}.");
        Self::new(Status::NOT_FOUND, message).about(Some("model"))
    }

    /// Names the field of the request that is wrong.
    pub(crate) fn about(self, param: Option<&'static str>) -> Self {
        Self { param: param.map(Cow::Borrowed), ..self }
    }

    /// The body is not what the endpoint takes at `place`; for that vLLM has a type of its own.
    pub(crate) fn malformed_at(self, place: String) -> Self {
        Self { param: Some(Cow::Owned(place)), r#type: self.status.1, ..self }
    }

    /// In the shape that the API's clients understand.
    pub(crate) fn for_clients_of(self, api: Api) -> Self {
        Self { for_anthropic: api == Api::Messages, ..self }
    }

    /// Names the methods that would have been right.
    pub(crate) fn allowing(self, methods: &'static str) -> Self {
        Self { allow: Some(methods), ..self }
    }

    pub(crate) fn reply(&self) -> Rc<Vec<u8>> {
        let allow = self.allow.map(|methods| format!("allow: {methods}\r\n")).unwrap_or_default();
        Rc::new(render(self.status, &allow, JSON, self.body()))
    }

    /// The reply after which the connection ends.
    pub(crate) fn closing_reply(&self) -> Vec<u8> {
        render(self.status, "connection: close\r\n", JSON, self.body())
    }

    fn body(&self) -> Vec<u8> {
        let (message, kind) = (&*self.message, self.r#type);
        if self.for_anthropic {
            let error = members! {"type": kind, "message": message};
            return Json::from(members! {"type": "error", "error": error}).bytes();
        }
        let mut error = members! {"message": message, "type": kind};
        error.extend(self.param.as_deref().map(|param| ("param", param.into())));
        error.push(("code", u32::from(self.status.0).into()));
        Json::from(members! {"error": error}).bytes()
    }
}

/// An error that the framework under vLLM answers, not vLLM; `allowed` are the right methods.
pub(crate) fn framework_error(
    status: Status,
    name: &'static str,
    allowed: Option<&str>,
) -> Rc<Vec<u8>> {
    let allow = allowed.map(|methods| format!("allow: {methods}\r\n")).unwrap_or_default();
    let body = Json::from(members! {name: status.1}).bytes();
    Rc::new(render(status, &allow, JSON, body))
}

/// A reply of status 200 with a JSON body.
pub(crate) fn json(value: &impl Serialize) -> Rc<Vec<u8>> {
    let bytes = serde_json::to_vec(value).expect("plain structs with string keys are always JSON");
    body(JSON, bytes)
}

/// A reply of status 200 with nothing in it.
pub(crate) fn empty() -> Rc<Vec<u8>> {
    Rc::new(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())
}

/// Puts the head in front of `body` in place: the whole truth is too large to copy.
fn render(
    Status(code, reason): Status,
    headers: &str,
    content_type: &str,
    mut body: Vec<u8>,
) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code} {reason}\r\n{headers}content-length: {length}\r\n\
         content-type: {content_type}\r\n\r\n"
    );
    body.splice(0..0, head.into_bytes());
    body
}

pub(crate) const JSON: &str = "application/json";

/// The head of a whole answer up to the value of its content-length.
pub(crate) const JSON_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";

/// The head of a streamed answer.
pub(crate) const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// A reply of status 200 with a body of any type.
pub(crate) fn body(content_type: &str, body: Vec<u8>) -> Rc<Vec<u8>> {
    Rc::new(render(Status::OK, "", content_type, body))
}

/// The status of a rendered reply, which follows the version.
pub(crate) fn status_of(reply: &[u8]) -> u16 {
    let digits = reply.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let digits = digits.unwrap_or_default().iter();
    digits.fold(0, |code, digit| code * 10 + u16::from(digit.wrapping_sub(b'0')))
}

/// The list of the one model.
pub(crate) fn models_reply(options: &EngineOptions, created_s: u64) -> Rc<Vec<u8>> {
    let id = options.model_id();
    let model = members! {
        "id": id, "object": "model", "created": Json::Count(created_s),
        "owned_by": "inferometer", "root": id, "parent": Json::Null,
        "max_model_len": options.limits.tokens,
    };
    json(&Json::from(members! {"object": "list", "data": vec![Json::from(model)]}))
}

#[cfg(test)]
mod request_tests {
    use super::*;

    const POST: &[u8] = b"POST /v1/completions?a=b HTTP/1.1\r\nHost: x\r\nX-Request-Id: r-1\r\n\
        Authorization: Bearer k\r\n\
        Content-Length: 4\r\nConnection: keep-alive, Close\r\n\r\nbodyGET";

    fn parse_default(bytes: &[u8]) -> Result<Parsed<'_>, ErrorBody> {
        parse(bytes, &Limits::default())
    }

    #[test]
    fn a_request_takes_its_own_bytes_and_no_more() {
        let expected = Request {
            method: "POST",
            path: "/v1/completions",
            body: b"body",
            id: Some(b"r-1"),
            session: None,
            keys: GivenKeys { bearer: Some(b"k"), api_key: None },
            close: true,
        };
        let length = POST.len() - 3;
        assert_eq!(parse_default(POST), Ok(Parsed::Whole { request: expected, length }));
    }

    #[test]
    fn either_key_may_be_the_right_one_and_neither_is_shown() {
        let text = b"GET / HTTP/1.1\r\nauthorization: Bearer one\r\nx-api-key: two\r\n\r\n";
        let Ok(Parsed::Whole { request, .. }) = parse_default(text) else { panic!("no request") };
        assert!(request.keys.any(|given| given == b"one"));
        assert!(request.keys.any(|given| given == b"two"));
        assert!(!request.keys.any(|given| given == b"three"));
        let shown = format!("{request:?}");
        assert!(shown.contains("keys: GivenKeys(hidden), close"), "{shown}");
    }

    #[test]
    fn every_shorter_prefix_is_partial_and_asks_for_no_byte_too_many() {
        let length = POST.len() - 3;
        for end in 0..length {
            let parsed = parse_default(&POST[..end]).unwrap();
            let Parsed::Partial { needed, expects_continue: false } = parsed else {
                panic!("whole at {end}: {parsed:?}");
            };
            assert!(end < needed && needed <= length, "{end}: {needed}");
        }
    }

    #[test]
    fn a_client_that_waits_for_leave_is_seen_to_wait() {
        let head = b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
        let needed = head.len() + 2;
        assert_eq!(parse_default(head), Ok(Parsed::Partial { needed, expects_continue: true }));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let limits = Limits { head_bytes: 60, body_bytes: 9, ..Limits::default() };
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(60));
        let long_and_whole = format!("{long}\r\n\r\n");
        let length = (400, "malformed content-length");
        let cases: [(&str, (u16, &str)); 10] = [
            ("\u{1}\r\n\r\n", (400, "malformed request: invalid token")),
            ("GET / HTTP/9.9\r\n\r\n", (400, "malformed request: invalid HTTP version")),
            ("GET / HTTP/1.0\r\n\r\n", (505, "only HTTP/1.1 is supported")),
            ("GET / HTTP/1.1\r\ncontent-length: +1\r\n\r\n", length),
            ("GET / HTTP/1.1\r\ncontent-length: \r\n\r\n", length),
            ("G / HTTP/1.1\r\ncontent-length:1\r\ncontent-length:2\r\n\r\n", length),
            (
                "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
                (411, "transfer-encoding is not"),
            ),
            (
                "GET / HTTP/1.1\r\ncontent-length: 10\r\n\r\n",
                (413, "the request's body of 10 bytes is larger than 9 bytes"),
            ),
            (&long, (431, "the request's head is larger than 60 bytes")),
            (&long_and_whole, (431, "the request's head is larger than 60 bytes")),
        ];
        for (bytes, (status, message)) in cases {
            let refused = parse(bytes.as_bytes(), &limits).unwrap_err();
            assert_eq!(refused.status.0, status, "{bytes:?}");
            assert!(refused.message.starts_with(message), "{bytes:?}: {}", refused.message);
        }
    }
}

#[cfg(test)]
mod route_tests {
    use super::GivenKeys;
    use super::*;

    fn route_of(method: &str, path: &str) -> Result<Route, ErrorBody> {
        route(&Request {
            method,
            path,
            body: b"",
            id: None,
            session: None,
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
        assert_eq!(wrong.message, "`/v1/completions` does not take GET; it takes POST");
        let unknown = route_of("GET", "/v2").unwrap_err();
        assert_eq!(unknown.message, "there is nothing at `/v2`");
    }
}

#[cfg(test)]
mod reply_tests {
    use super::*;

    #[test]
    fn an_error_has_the_shape_of_vllm() {
        let error = ErrorBody::new(Status::NOT_FOUND, "no \"such\" model".to_owned());
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
    fn errors_of_the_framework_have_its_bodies() {
        let seen = |reply: Rc<Vec<u8>>| String::from_utf8(reply.to_vec()).unwrap();
        let path = seen(framework_error(Status::NOT_FOUND, "detail", None));
        assert!(path.starts_with("HTTP/1.1 404 Not Found\r\ncontent-length: 22\r\n"), "{path}");
        assert!(path.ends_with("\r\n\r\n{\"detail\":\"Not Found\"}"), "{path}");
        let key = seen(framework_error(Status::UNAUTHORIZED, "error", None));
        assert!(key.ends_with("\r\n\r\n{\"error\":\"Unauthorized\"}"));
        let method = seen(framework_error(Status::METHOD_NOT_ALLOWED, "detail", Some("POST")));
        assert!(method.contains("\r\nallow: POST\r\n"));
    }

    #[test]
    fn a_wrong_method_is_told_the_right_one() {
        let error = ErrorBody::new(Status::METHOD_NOT_ALLOWED, "no".to_owned()).allowing("GET");
        let reply = error.reply();
        assert!(str::from_utf8(&reply).unwrap().contains("\r\nallow: GET\r\n"));
    }
}

#[cfg(test)]
mod body_tests {
    use super::*;

    #[test]
    fn a_reply_has_the_length_of_its_body_and_its_status_is_found() {
        let reply = body("text/plain", b"abc".to_vec());
        let text = str::from_utf8(&reply).unwrap();
        assert!(text.contains("content-length: 3\r\n") && text.ends_with("\r\n\r\nabc"));
        assert_eq!(status_of(&reply), 200);
        assert_eq!(status_of(b"HTTP/1.1 404 Not Found\r\n"), 404);
    }
}
