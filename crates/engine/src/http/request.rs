//! A request out of the bytes that came so far.
//!
//! `parse` is a pure function of a prefix of the stream, so a request does not depend on where the
//! network cut it. What is not a request is refused, and the connection with it, because where the
//! next request would start is not known.

use std::fmt;

use httparse::{EMPTY_HEADER, Header};

use super::reply::{ErrorBody, Status};
use crate::options::Limits;

/// A whole request; it borrows the bytes that it came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// The path without its query.
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
    /// The client's `x-request-id`.
    pub(crate) id: Option<&'a [u8]>,
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
        let id = self.id.filter(|id| (1..=ID_BYTES_KEPT).contains(&id.len()))?;
        Some(String::from_utf8_lossy(id).into_owned())
    }
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
        /// The client waits to be told to send the body.
        expects_continue: bool,
    },
}

/// Why the bytes are not a request that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("malformed request: {0}")]
    Malformed(#[from] httparse::Error),
    #[error("malformed content-length")]
    BadLength,
    #[error("the request's head is larger than {limit} bytes")]
    HeadTooLarge { limit: usize },
    #[error("the request's body of {length} bytes is larger than {limit} bytes")]
    BodyTooLarge { length: usize, limit: usize },
    #[error("transfer-encoding is not supported in requests; send content-length")]
    LengthRequired,
    #[error("only HTTP/1.1 is spoken here")]
    Version,
}

impl Refusal {
    /// The reply, after which the connection ends.
    pub(crate) fn reply(self) -> Vec<u8> {
        let status = match self {
            Self::Malformed(_) | Self::BadLength => Status::BadRequest,
            Self::HeadTooLarge { .. } => Status::HeadTooLarge,
            Self::BodyTooLarge { .. } => Status::BodyTooLarge,
            Self::LengthRequired => Status::LengthRequired,
            Self::Version => Status::VersionNotSupported,
        };
        ErrorBody::new(status, self.to_string()).closing_reply()
    }
}

/// Reads the first request out of `bytes`.
pub(crate) fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Parsed<'a>, Refusal> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let head_bytes = match head.parse(bytes)? {
        httparse::Status::Complete(head_bytes) => head_bytes,
        httparse::Status::Partial if bytes.len() < limits.head_bytes => {
            return Ok(Parsed::Partial { needed: bytes.len() + 1, expects_continue: false });
        }
        httparse::Status::Partial => {
            return Err(Refusal::HeadTooLarge { limit: limits.head_bytes });
        }
    };
    if limits.head_bytes < head_bytes {
        return Err(Refusal::HeadTooLarge { limit: limits.head_bytes });
    }
    let (Some(method), Some(target), Some(1)) = (head.method, head.path, head.version) else {
        return Err(Refusal::Version);
    };
    let facts = HeaderFacts::gather(head.headers)?;
    if limits.body_bytes < facts.body_bytes {
        let limit = limits.body_bytes;
        return Err(Refusal::BodyTooLarge { length: facts.body_bytes, limit });
    }
    let length = head_bytes + facts.body_bytes;
    let Some(body) = bytes.get(head_bytes..length) else {
        let expects_continue = facts.expects_continue;
        return Ok(Parsed::Partial { needed: length, expects_continue });
    };
    let path = target.split_once('?').map_or(target, |(path, _query)| path);
    // Replies have bodies, which a client that sent HEAD would take for the next reply.
    let close = facts.close || method == "HEAD";
    let request = Request { method, path, body, id: facts.id, keys: facts.keys, close };
    Ok(Parsed::Whole { request, length })
}

/// What the headers say that matters here.
#[derive(Debug, Default)]
struct HeaderFacts<'a> {
    body_bytes: usize,
    length_seen: bool,
    expects_continue: bool,
    close: bool,
    id: Option<&'a [u8]>,
    keys: GivenKeys<'a>,
}

impl<'a> HeaderFacts<'a> {
    fn gather(headers: &[Header<'a>]) -> Result<Self, Refusal> {
        let mut facts = Self::default();
        for header in headers {
            facts.note(header)?;
        }
        Ok(facts)
    }

    fn note(&mut self, header: &Header<'a>) -> Result<(), Refusal> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        // Comparing lengths first spares most headers all comparisons.
        match header.name.len() {
            6 if is("expect") => {
                self.expects_continue = header.value.eq_ignore_ascii_case(b"100-continue");
            }
            9 if is("x-api-key") => self.keys.api_key = Some(header.value),
            10 if is("connection") => self.close |= names_close(header.value),
            12 if is("x-request-id") => self.id = Some(header.value),
            13 if is("authorization") => self.keys.bearer = bearer(header.value),
            14 if is("content-length") => self.note_length(header.value)?,
            17 if is("transfer-encoding") => return Err(Refusal::LengthRequired),
            _ => {}
        }
        Ok(())
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let length = decimal(value).ok_or(Refusal::BadLength)?;
        if self.length_seen && self.body_bytes != length {
            return Err(Refusal::BadLength);
        }
        self.body_bytes = length;
        self.length_seen = true;
        Ok(())
    }
}

fn names_close(value: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// The token of a bearer, whose name may be written in any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| token.trim_ascii())
}

/// Digits only: a sign or a space is how requests are smuggled.
fn decimal(value: &[u8]) -> Option<usize> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(value).ok()?.parse().ok()
}

const BEARER: &[u8] = b"bearer ";

/// The truth is bounded, and so are the events of an answer that repeat it.
pub(crate) const ID_BYTES_KEPT: usize = 256;

const HEADERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const POST: &[u8] = b"POST /v1/completions?a=b HTTP/1.1\r\nHost: x\r\nX-Request-Id: r-1\r\n\
        Authorization: Bearer k\r\n\
        Content-Length: 4\r\nConnection: keep-alive, Close\r\n\r\nbodyGET";

    fn parse_default(bytes: &[u8]) -> Result<Parsed<'_>, Refusal> {
        parse(bytes, &Limits::default())
    }

    #[test]
    fn a_request_takes_its_own_bytes_and_no_more() {
        let expected = Request {
            method: "POST",
            path: "/v1/completions",
            body: b"body",
            id: Some(b"r-1"),
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
        let cases: [(&str, Refusal); 10] = [
            ("\u{1}\r\n\r\n", Refusal::Malformed(httparse::Error::Token)),
            ("GET / HTTP/9.9\r\n\r\n", Refusal::Malformed(httparse::Error::Version)),
            ("GET / HTTP/1.0\r\n\r\n", Refusal::Version),
            ("GET / HTTP/1.1\r\ncontent-length: +1\r\n\r\n", Refusal::BadLength),
            ("GET / HTTP/1.1\r\ncontent-length: \r\n\r\n", Refusal::BadLength),
            ("G / HTTP/1.1\r\ncontent-length:1\r\ncontent-length:2\r\n\r\n", Refusal::BadLength),
            ("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", Refusal::LengthRequired),
            (
                "GET / HTTP/1.1\r\ncontent-length: 10\r\n\r\n",
                Refusal::BodyTooLarge { length: 10, limit: 9 },
            ),
            (&long, Refusal::HeadTooLarge { limit: 60 }),
            (&long_and_whole, Refusal::HeadTooLarge { limit: 60 }),
        ];
        for (bytes, refusal) in cases {
            assert_eq!(parse(bytes.as_bytes(), &limits), Err(refusal), "{bytes:?}");
        }
    }
}
