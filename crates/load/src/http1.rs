//! HTTP/1.1 as the driver speaks it: one request at a time, over a connection of its own.
//!
//! Head and body of a request leave together, out of a room that the connections of a driver share. What comes is read
//! into the driver's room, and the parts of a body are lent to their reader from there: a stream costs no copy, and a
//! connection holds no buffer while it waits.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{HeaderName, StatusCode, header};
use httparse::Status;
use inferometer_model::outcome::{Cause, Outcome};
use tokio::io::AsyncWrite;

use crate::answer::Failure;
use crate::connection::{NotAnswered, Socket, io_failure_at};
use crate::socket::Wire;

pub(crate) const HEADER_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;
/// All extensions of the chunks of one answer, which nobody needs.
const EXTENSION_BYTES_MAX: u32 = 16 << 10;
const TRAILER_BYTES_MAX: usize = 16 << 10;
/// A shorter body is copied behind its head: that is cheaper than to hand over two pieces.
const JOINED_BYTES_MAX: usize = 4 << 10;

/// The head of an answer, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<String>,
    /// The first coding of its body that we do not read.
    pub(crate) foreign_coding: Option<String>,
}

impl Head {
    /// Reads the first header of each name.
    pub(crate) fn new<'a>(
        status: StatusCode,
        header: impl Fn(HeaderName) -> Option<&'a str>,
    ) -> Self {
        let foreign = |name, plain: &str| {
            let mut codings = header(name)?.split(',').map(str::trim);
            codings.find(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(plain))
        };
        let coding = foreign(header::CONTENT_ENCODING, "identity");
        let coding = coding.or_else(|| foreign(header::TRANSFER_ENCODING, "chunked"));
        Self {
            status,
            content_type: header(header::CONTENT_TYPE).map(str::to_owned),
            foreign_coding: coding.map(str::to_owned),
        }
    }
}

/// Method, address and headers of a request, without the empty line behind them.
pub(crate) fn head(parts: &http::request::Parts, left_out: Option<&HeaderName>) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", parts.method, parts.uri).into_bytes();
    for (name, value) in parts.headers.iter().filter(|(name, _)| Some(*name) != left_out) {
        let line = [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"];
        head.extend_from_slice(&line.concat());
    }
    head
}

/// The whole head of a request with a body of so many bytes.
pub(crate) fn whole_head(request: http::Request<()>, body_bytes: usize) -> Vec<u8> {
    let (parts, ()) = request.into_parts();
    let mut head = head(&parts, None);
    if parts.method == http::Method::POST {
        head.extend_from_slice(format!("content-length: {body_bytes}\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

pub(crate) struct Http1 {
    socket: Socket,
    /// Head and body of the request, while not all of it has left.
    leaving: Vec<u8>,
    leaving_body: Bytes,
    left_bytes: usize,
    answer: Answer,
}

impl Http1 {
    pub(crate) fn new(socket: Socket) -> Self {
        let (leaving, leaving_body) = (Vec::new(), Bytes::new());
        Self { socket, leaving, leaving_body, left_bytes: 0, answer: Answer::default() }
    }

    /// Takes a request, whose `head` ends with its empty line.
    pub(crate) fn begin(&mut self, mut head: Vec<u8>, body: Bytes) {
        self.left_bytes = 0;
        if body.len() < JOINED_BYTES_MAX {
            head.extend_from_slice(&body);
            self.leaving_body = Bytes::new();
        } else {
            self.leaving_body = body;
        }
        self.leaving = head;
    }

    fn poll_leave(&mut self, cx: &mut Context<'_>, wire: &Wire) -> Poll<io::Result<()>> {
        while !self.leaving.is_empty() {
            let head = &self.leaving[self.left_bytes.min(self.leaving.len())..];
            let body = &self.leaving_body[self.left_bytes.saturating_sub(self.leaving.len())..];
            let socket = Pin::new(&mut self.socket);
            let written = match (head, body) {
                ([], []) => {
                    ready!(socket.poll_flush(cx))?;
                    wire.put_back_room(std::mem::take(&mut self.leaving));
                    self.leaving_body = Bytes::new();
                    break;
                }
                (piece, []) | ([], piece) => socket.poll_write(cx, piece),
                (head, body) => {
                    socket.poll_write_vectored(cx, &[IoSlice::new(head), IoSlice::new(body)])
                }
            };
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                bytes => self.left_bytes += bytes,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what has not left, and reads on to the head of the answer.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire,
    ) -> Poll<Result<Head, NotAnswered>> {
        let broken = |error: &io::Error| NotAnswered::Broken(io_failure_at(error, false));
        if let Poll::Ready(Err(error)) = self.poll_leave(cx, wire) {
            return Poll::Ready(Err(broken(&error)));
        }
        loop {
            let answer = &mut self.answer;
            let taken = self.socket.poll_take(cx, wire, |bytes| match bytes {
                [] => Err(NotAnswered::Broken(closed())),
                bytes => answer.take_head(bytes).map_err(NotAnswered::Ended),
            });
            if let Some(head) = ready!(taken).unwrap_or_else(|error| Err(broken(&error)))? {
                return Poll::Ready(Ok(head));
            }
        }
    }

    /// Reads the body to its end, and lends each part of it to `on_part`.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire,
        on_part: &mut impl FnMut(&Wire, &[u8]) -> Result<(), Failure>,
    ) -> Poll<Result<(), Failure>> {
        if let Poll::Ready(Err(error)) = self.poll_leave(cx, wire) {
            return Poll::Ready(Err(io_failure_at(&error, true)));
        }
        let answer = &mut self.answer;
        let held = std::mem::take(&mut answer.held);
        answer.take_body(&held, |part| on_part(wire, part))?;
        while !answer.body.has_ended() {
            let taken = self.socket.poll_take(cx, wire, |bytes| match bytes {
                [] => answer.close(),
                bytes => answer.take_body(bytes, |part| on_part(wire, part)),
            });
            ready!(taken).unwrap_or_else(|error| Err(io_failure_at(&error, true)))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether its last answer leaves it fit for another request.
    pub(crate) fn is_kept(&self) -> bool {
        self.leaving.is_empty() && self.answer.leaves_open()
    }

    /// The same, and the server has not closed it. Looks once and does not wait: no task is woken for an idle
    /// connection, and the next user looks again.
    pub(crate) fn is_open(&mut self, wire: &Wire) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.poll_closed(&mut cx, wire).is_pending()
    }

    /// Ready when the other side has closed it, or sent what nobody asked for.
    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>, wire: &Wire) -> Poll<()> {
        if !self.is_kept() {
            return Poll::Ready(());
        }
        self.socket.poll_take(cx, wire, |_| ()).map(|_| self.answer.is_last = true)
    }
}

/// What the pieces of an answer came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReadPieces {
    /// Where there was one: its status, and what its headers say of the body.
    pub head: Option<(u16, Option<String>)>,
    pub body: Vec<u8>,
    /// Why it is not whole.
    pub cause: Option<Cause>,
    /// Whether another answer may follow on the connection.
    pub leaves_open: bool,
}

/// Reads an answer that comes in these pieces, before the other side closes. Without I/O, for fuzzing.
pub fn read_pieces(pieces: &[&[u8]]) -> ReadPieces {
    let mut answer = Answer::default();
    let mut read = ReadPieces::default();
    let mut pieces = pieces.iter().copied().filter(|piece| !piece.is_empty());
    let took = (|| -> Result<(), Failure> {
        let head = loop {
            let piece = pieces.next().ok_or_else(closed)?;
            if let Some(head) = answer.take_head(piece)? {
                break head;
            }
        };
        read.head = Some((head.status.as_u16(), head.content_type));
        let behind_head = std::mem::take(&mut answer.held);
        let mut on_part = |part: &[u8]| {
            read.body.extend_from_slice(part);
            Ok(())
        };
        answer.take_body(&behind_head, &mut on_part)?;
        while !answer.body.has_ended() {
            match pieces.next() {
                Some(piece) => answer.take_body(piece, &mut on_part)?,
                None => answer.close()?,
            }
        }
        Ok(())
    })();
    read.cause = took.err().and_then(|failure| failure.cause);
    // What comes later is found by whoever takes the connection next.
    read.leaves_open = read.cause.is_none() && answer.leaves_open() && pieces.next().is_none();
    read
}

fn closed() -> Failure {
    let words = "the connection was closed before an answer came";
    Failure::with_message(Outcome::TransportError, Cause::Reset, words)
}

/// The answers of one connection, as far as they have come. Without I/O: it may not depend on where the network cut
/// the bytes.
#[derive(Debug)]
struct Answer {
    /// What has come of a head that is not whole, or behind one.
    held: Vec<u8>,
    body: Framing,
    /// No other answer can follow.
    is_last: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self { held: Vec::new(), body: Framing::Length(0), is_last: false }
    }
}

impl Answer {
    /// The head of the answer, once all of it has come. What informs of an answer to come is none.
    fn take_head(&mut self, bytes: &[u8]) -> Result<Option<Head>, Failure> {
        let mut held = std::mem::take(&mut self.held);
        // Mostly one read brings all of the head, which is not copied then.
        let mut rest = bytes;
        if !held.is_empty() {
            held.extend_from_slice(bytes);
            rest = &held;
        }
        let parsed = loop {
            match ParsedHead::read(rest) {
                Ok(Some(ParsedHead { body: None, bytes, .. })) => rest = &rest[bytes..],
                parsed => break parsed,
            }
        };
        let parsed = parsed.map_err(|words| {
            Failure::with_message(Outcome::ProtocolError, Cause::Headers, words)
        })?;
        self.held = rest[parsed.as_ref().map_or(0, |parsed| parsed.bytes)..].to_vec();
        Ok(parsed.map(|parsed| {
            self.body = parsed.body.unwrap_or(Framing::UntilClose);
            self.is_last |= !parsed.keeps_alive;
            parsed.head
        }))
    }

    /// Hands on the parts of the body among these bytes.
    fn take_body(
        &mut self,
        bytes: &[u8],
        on_part: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let rest = self.body.hand_on(bytes, on_part)?;
        // Nobody asked for what follows an answer.
        self.is_last |= !rest.is_empty();
        Ok(())
    }

    /// The other side has closed the connection within the body.
    fn close(&mut self) -> Result<(), Failure> {
        self.is_last = true;
        if !matches!(self.body, Framing::UntilClose) {
            return Err(Failure::new(Outcome::Truncated, Cause::NoFinalChunk));
        }
        self.body = Framing::Length(0);
        Ok(())
    }

    fn leaves_open(&self) -> bool {
        !self.is_last && self.body.has_ended() && self.held.is_empty()
    }
}

/// How the end of a body is found.
#[derive(Debug)]
enum Framing {
    /// So many bytes are to come.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Framing {
    fn has_ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.step == Step::End,
            Self::UntilClose => false,
        }
    }

    /// Hands each part of the body among these bytes to `on_part`, and returns what is behind its end.
    fn hand_on<'a>(
        &mut self,
        bytes: &'a [u8],
        mut on_part: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<&'a [u8], Failure> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.has_ended() {
            let left = match self {
                Self::UntilClose => rest.len() as u64,
                Self::Length(left) => *left,
                Self::Chunked(chunked) if chunked.step == Step::Data => chunked.left,
                Self::Chunked(chunked) => {
                    chunked.step(rest[0]).map_err(bad_framing)?;
                    rest = &rest[1..];
                    continue;
                }
            };
            let (part, after) = rest.split_at(at_most(left, rest.len()));
            let left = left - part.len() as u64;
            match self {
                Self::UntilClose => {}
                Self::Length(length) => *length = left,
                Self::Chunked(chunked) => chunked.passed(left),
            }
            on_part(part)?;
            rest = after;
        }
        Ok(rest)
    }
}

fn at_most(wanted: u64, most: usize) -> usize {
    usize::try_from(wanted).unwrap_or(usize::MAX).min(most)
}

fn bad_framing(words: impl Into<String>) -> Failure {
    Failure::with_message(Outcome::ProtocolError, Cause::BadFraming, words)
}

/// A body in chunks: its place, byte by byte outside the chunks' data.
#[derive(Debug, Default)]
struct Chunked {
    step: Step,
    /// What is left of the chunk: its size, as far as it was read, or its data.
    left: u64,
    extension_bytes: u32,
    /// Headers behind the last chunk, which must be legal.
    trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Start,
    Size,
    SizeSpace,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    EndCr,
    EndLf,
    Trailer,
    TrailerLf,
    End,
}

impl Chunked {
    fn passed(&mut self, left: u64) {
        self.left = left;
        if left == 0 {
            self.step = Step::DataCr;
        }
    }

    fn step(&mut self, byte: u8) -> Result<(), String> {
        self.step = match (self.step, byte) {
            (Step::Start | Step::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let shifted =
                    self.left.checked_mul(16).ok_or("the size of a chunk is too large")?;
                self.left = shifted + u64::from(digit);
                Step::Size
            }
            (Step::Size | Step::SizeSpace, b' ' | b'\t') => Step::SizeSpace,
            (Step::Size | Step::SizeSpace, b';') => Step::Extension,
            (Step::Size | Step::SizeSpace | Step::Extension, b'\r') => Step::SizeLf,
            (Step::Extension, byte) if byte != b'\n' => {
                self.extension_bytes += 1;
                if EXTENSION_BYTES_MAX <= self.extension_bytes {
                    return Err("the extensions of the chunks are too long".to_owned());
                }
                Step::Extension
            }
            (Step::SizeLf, b'\n') if self.left == 0 => Step::EndCr,
            (Step::SizeLf, b'\n') => Step::Data,
            (Step::DataCr, b'\r') => Step::DataLf,
            (Step::DataLf, b'\n') => Step::Start,
            (Step::EndCr, b'\r') if self.trailers.is_empty() => Step::EndLf,
            (Step::EndLf, b'\n') if self.trailers.is_empty() => Step::End,
            (Step::EndCr | Step::EndLf | Step::Trailer | Step::TrailerLf, byte) => {
                return self.trailer(byte);
            }
            _ => return Err("the frame of a chunk is malformed".to_owned()),
        };
        Ok(())
    }

    fn trailer(&mut self, byte: u8) -> Result<(), String> {
        self.trailers.push(byte);
        if TRAILER_BYTES_MAX <= self.trailers.len() {
            return Err("the trailers are too long".to_owned());
        }
        self.step = match (self.step, byte) {
            (Step::EndCr, b'\r') => Step::EndLf,
            (Step::Trailer, b'\r') => Step::TrailerLf,
            (Step::TrailerLf, b'\n') => Step::EndCr,
            (Step::EndCr | Step::Trailer, _) => Step::Trailer,
            (Step::EndLf, b'\n') => {
                let mut room = [httparse::EMPTY_HEADER; HEADERS_MAX];
                let parsed = httparse::parse_headers(&self.trailers, &mut room);
                parsed.map_err(|error| error.to_string())?;
                Step::End
            }
            _ => return Err("the trailers are malformed".to_owned()),
        };
        Ok(())
    }
}

struct ParsedHead {
    head: Head,
    /// `None` where another head follows.
    body: Option<Framing>,
    keeps_alive: bool,
    bytes: usize,
}

impl ParsedHead {
    /// The head at the beginning of these bytes, if it is whole.
    fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let mut room = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let parsed = parser.parse_response_with_uninit_headers(&mut response, bytes, &mut room);
        let length = match parsed.map_err(|error| error.to_string())? {
            Status::Complete(length) if length <= HEADER_BYTES_MAX => length,
            Status::Partial if bytes.len() < HEADER_BYTES_MAX => return Ok(None),
            Status::Complete(_) | Status::Partial => return Err("the head is too long".to_owned()),
        };
        let status = StatusCode::from_u16(response.code.unwrap_or_default());
        let status = status.map_err(|error| error.to_string())?;
        let headers = Headers(response.headers);
        let head = Head::new(status, |name| headers.all(name).next()?);
        let is_old = response.version == Some(0);
        let body = match status.as_u16() {
            101 | 204 | 304 => Some(Framing::Length(0)),
            100..=199 => None,
            _ => Some(headers.framing(is_old)?),
        };
        let keeps_alive = status != StatusCode::SWITCHING_PROTOCOLS && headers.keep_alive(is_old);
        Ok(Some(Self { head, body, keeps_alive, bytes: length }))
    }
}

struct Headers<'a>(&'a [httparse::Header<'a>]);

impl<'a> Headers<'a> {
    /// The values of this name; `None` for one that is not plain text.
    fn all(&self, name: HeaderName) -> impl DoubleEndedIterator<Item = Option<&'a str>> {
        let named =
            move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name.as_str());
        let is_plain = |text: &&str| text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        let text = move |value| std::str::from_utf8(value).ok().filter(is_plain);
        self.0.iter().filter(named).map(move |header| text(header.value))
    }

    fn framing(&self, is_old: bool) -> Result<Framing, String> {
        if let Some(last) = self.all(header::TRANSFER_ENCODING).next_back() {
            if is_old {
                return Err("HTTP/1.0 has no transfer-encoding".to_owned());
            }
            let last = last.and_then(|codings| codings.rsplit(',').next()).unwrap_or_default();
            let is_chunked = last.trim().eq_ignore_ascii_case("chunked");
            return Ok(if is_chunked {
                Framing::Chunked(Chunked::default())
            } else {
                Framing::UntilClose
            });
        }
        let mut known = None;
        for value in self.all(header::CONTENT_LENGTH) {
            for length in value.unwrap_or_default().split(',').map(str::trim) {
                let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
                let length = length.parse::<u64>().ok().filter(|_| is_number);
                if length.is_none() || known.is_some_and(|known| Some(known) != length) {
                    return Err("the content-length is not a length".to_owned());
                }
                known = length;
            }
        }
        Ok(known.map_or(Framing::UntilClose, Framing::Length))
    }

    fn keep_alive(&self, is_old: bool) -> bool {
        let has = |token: &str| {
            let values = self.all(header::CONNECTION).flatten();
            let mut tokens = values.flat_map(|value| value.split(',').map(str::trim));
            tokens.any(|named| named.eq_ignore_ascii_case(token))
        };
        !has("close") && (!is_old || has("keep-alive"))
    }
}

#[cfg(test)]
mod tests;
