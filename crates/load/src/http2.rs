//! HTTP/2 as the driver speaks it: connections that many requests share, each driven by a task of its own.
//!
//! The `h2` crate makes and reads the frames. Below it a tap follows the heads of the frames that pass, and notes for
//! each stream when its request left and which reads brought its answer: the moments of an answer are those of the
//! socket's reads, as with HTTP/1.1, also where one read brought parts of several answers.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderName, HeaderValue, header};
use inferometer_model::Moment;
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::{Dial, Read};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::answer::Failure;
use crate::connection::{Connection, NotAnswered, Socket, io_failure, open, reset};
use crate::http1::{HEADER_BYTES_MAX, Head};
use crate::socket::{DriverClock, Wire};
use crate::target::Target;

/// The shared connections of one driver.
#[derive(Default)]
pub(crate) struct Links {
    links: RefCell<Vec<Rc<Link>>>,
    /// Held while a link is opened: a waiting request may find a place on the new one.
    opening: tokio::sync::Mutex<()>,
}

struct Link {
    sender: SendRequest<Bytes>,
    streams: Rc<Streams>,
    /// Requests that are on it now.
    requests: Cell<u32>,
    ordinal: u32,
}

/// One request's place on a link.
pub(crate) struct Lease {
    link: Rc<Link>,
    /// Its stream, once it has one.
    stream: u32,
    /// What has not left of the request's body.
    leaving: Option<(SendStream<Bytes>, Bytes)>,
    /// What follows the head of its answer.
    body: Option<RecvStream>,
}

/// What most servers allow at least; beyond it another connection is opened.
const REQUESTS_PER_LINK: u32 = 100;
/// Wide enough that the server never waits for us: its pace is what is measured.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

impl Links {
    /// A place on a link that has one, or `None`.
    pub(crate) fn place(&self, clock: &Rc<DriverClock>) -> Option<Box<Connection>> {
        let mut links = self.links.borrow_mut();
        links.retain(|link| !link.is_closed());
        let link = links.iter().find(|link| link.requests.get() < link.places())?;
        Some(Link::lease(link, clock, None))
    }

    /// A place on a link, after the one that is being opened. `Err` is the right to open another:
    /// many requests that begin at once must not open a connection each.
    pub(crate) async fn place_or_turn(
        &self,
        clock: &Rc<DriverClock>,
    ) -> Result<Box<Connection>, tokio::sync::MutexGuard<'_, ()>> {
        if let Some(connection) = self.place(clock) {
            return Ok(connection);
        }
        let turn = self.opening.lock().await;
        self.place(clock).ok_or(turn)
    }

    /// Opens another link, and takes a place on it.
    pub(crate) async fn dial(
        &self,
        target: &Target,
        clock: &Rc<DriverClock>,
        ordinal: u32,
        stage: &Cell<Stage>,
    ) -> Result<Box<Connection>, Failure> {
        let wire = Wire::shared(Rc::clone(clock));
        let (socket, dial) = open(target, clock, &wire, stage).await?;
        let streams: Rc<Streams> = Rc::default();
        let tap = Tap::new(socket, wire, Rc::clone(&streams));
        let (sender, mut connection) = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // None before the server has reported how many it allows: it may refuse the others.
            .initial_max_send_streams(0)
            .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
            .enable_push(false)
            .handshake(tap)
            .await
            .map_err(|error| http2_failure(&error))?;
        // Streams that the server does not allow would wait unseen.
        let known = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(http2_failure(&error))),
            Poll::Ready(Ok(())) => Poll::Ready(Err(reset())),
            Poll::Pending if connection.max_concurrent_send_streams() == 0 => Poll::Pending,
            Poll::Pending => Poll::Ready(Ok(())),
        });
        known.await?;
        // Its errors reach every request that is on it.
        tokio::task::spawn_local(connection);
        let link = Rc::new(Link { sender, streams, requests: Cell::new(0), ordinal });
        let leased = Link::lease(&link, clock, Some(dial));
        self.links.borrow_mut().push(link);
        Ok(leased)
    }

    /// Requests that fit on the connections that are open.
    pub(crate) fn places(&self) -> usize {
        let links = self.links.borrow();
        let open = links.iter().filter(|link| !link.is_closed());
        open.map(|link| link.places() as usize).sum()
    }

    /// Whether the server leaves the connections open.
    pub(crate) fn are_open(&self) -> bool {
        self.links.borrow().iter().any(|link| !link.is_closed())
    }

    /// Forgets the connections, so that the next request opens one.
    pub(crate) fn clear(&self) {
        self.links.borrow_mut().clear();
    }
}

impl Link {
    /// Requests that may be on it at once: beyond them another connection is opened, so that the
    /// load is the one that was asked for.
    fn places(&self) -> u32 {
        let allowed = self.sender.current_max_send_streams();
        u32::try_from(allowed).unwrap_or(u32::MAX).min(REQUESTS_PER_LINK)
    }

    fn is_closed(&self) -> bool {
        let polled = self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop()));
        matches!(polled, Poll::Ready(Err(_)))
    }

    fn lease(link: &Rc<Self>, clock: &Rc<DriverClock>, dial: Option<Dial>) -> Box<Connection> {
        link.requests.set(link.requests.get() + 1);
        let lease = Lease { link: Rc::clone(link), stream: 0, leaving: None, body: None };
        Connection::shared(lease, Wire::new(Rc::clone(clock)), link.ordinal, dial)
    }
}

impl Lease {
    pub(crate) async fn send(
        &mut self,
        mut request: http::Request<()>,
        body: Bytes,
        wire: &Wire,
    ) -> Result<Head, NotAnswered> {
        let sender = self.link.sender.clone().ready().await.map_err(|_| NotAnswered::Unsent)?;
        if !body.is_empty() {
            request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let ended = |error: h2::Error| NotAnswered::Ended(http2_failure(&error));
        let (mut answer, stream) =
            { sender }.send_request(request, body.is_empty()).map_err(ended)?;
        // Its frames leave later, in a turn of the connection's own task.
        self.stream = answer.stream_id().as_u32();
        self.link.streams.open(self.stream, wire);
        self.leaving = (!body.is_empty()).then_some((stream, body));
        let answered = poll_fn(|cx| {
            self.leave(cx);
            Pin::new(&mut answer).poll(cx)
        });
        let answered = answered.await.map_err(ended)?;
        self.link.streams.hand_over(self.stream, 0);
        let text = |name: HeaderName| answered.headers().get(name)?.to_str().ok();
        let head = Head::new(answered.status(), text);
        self.body = Some(answered.into_body());
        Ok(head)
    }

    /// Hands on as much of the request's body as the server has room for. What fails here shows in the answer.
    fn leave(&mut self, cx: &mut Context<'_>) {
        while let Some((stream, rest)) = &mut self.leaving {
            stream.reserve_capacity(rest.len());
            let Poll::Ready(room) = stream.poll_capacity(cx) else { return };
            let is_going_on = room.is_some_and(|room| {
                let piece = room.map(|room| rest.split_to(room.min(rest.len())));
                piece.and_then(|piece| stream.send_data(piece, rest.is_empty())).is_ok()
            });
            if !is_going_on || rest.is_empty() {
                self.leaving = None;
            }
        }
    }

    /// Reads the body of the answer, and lends each part of it that one read brought to `on_part`.
    pub(crate) async fn read_body(
        &mut self,
        wire: &Wire,
        mut on_part: impl FnMut(&Wire, &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            let part = poll_fn(|cx| {
                self.leave(cx);
                self.body.as_mut().map_or(Poll::Ready(None), |body| body.poll_data(cx))
            });
            let Some(bytes) = part.await else { break };
            let bytes = bytes.map_err(|error| self.body_failure(&error))?;
            if let Some(body) = &mut self.body {
                // It fails only where the stream has ended, and then there is nothing to give back.
                let _ = body.flow_control().release_capacity(bytes.len());
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (part, after) =
                    rest.split_at(self.link.streams.hand_over(self.stream, rest.len()));
                on_part(wire, part)?;
                rest = after;
            }
        }
        self.link.streams.hand_over_rest(self.stream);
        Ok(())
    }

    /// What the error of a body means. A server that resets a stream without an error has given it up.
    fn body_failure(&self, error: &h2::Error) -> Failure {
        match error.reason() {
            Some(Reason::NO_ERROR | Reason::CANCEL) if self.link.is_closed() => {
                Failure::new(Outcome::TransportError, Cause::GoAway)
            }
            Some(Reason::NO_ERROR | Reason::CANCEL) if error.is_reset() => {
                Failure::new(Outcome::Truncated, Cause::NoFinalChunk)
            }
            _ => http2_failure(error),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.link.requests.set(self.link.requests.get() - 1);
        self.link.streams.0.borrow_mut().remove(&self.stream);
    }
}

/// What an error of HTTP/2's means, in our words.
fn http2_failure(error: &h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        return io_failure(io);
    }
    let (outcome, cause) = if error.is_library() {
        // What the server sent is not HTTP/2 as we read it.
        (Outcome::ProtocolError, Cause::BadFraming)
    } else if error.is_go_away() && error.is_remote() {
        (Outcome::TransportError, Cause::GoAway)
    } else {
        (Outcome::TransportError, Cause::Reset)
    };
    Failure::with_message(outcome, cause, error.to_string())
}

/// The streams of a connection whose requests are still followed.
#[derive(Default)]
struct Streams(RefCell<HashMap<u32, Stream>>);

struct Stream {
    wire: Wire,
    /// What has come, and was not handed over.
    arrivals: VecDeque<Arrival>,
}

/// What one read brought of an answer: so many bytes of its body, or none where it was a head or an end.
struct Arrival {
    read: Read,
    body_bytes: usize,
}

impl Streams {
    fn open(&self, stream: u32, wire: &Wire) {
        let opened = Stream { wire: wire.clone(), arrivals: VecDeque::new() };
        self.0.borrow_mut().insert(stream, opened);
    }

    fn left(&self, stream: u32, at: Moment) {
        if let Some(stream) = self.0.borrow().get(&stream) {
            stream.wire.left(at);
        }
    }

    fn came(&self, stream: u32, read: Read, body_bytes: usize) {
        let mut streams = self.0.borrow_mut();
        let Some(Stream { arrivals, .. }) = streams.get_mut(&stream) else { return };
        match arrivals.back_mut() {
            // The head keeps an arrival of its own.
            Some(last) if 0 < last.body_bytes && last.read.user == read.user => {
                last.body_bytes += body_bytes;
            }
            _ => arrivals.push_back(Arrival { read, body_bytes }),
        }
    }

    /// Notes the read that brought the next bytes of a body, or its head where none are wanted. Returns how many of
    /// the `wanted` bytes that read brought.
    fn hand_over(&self, stream: u32, wanted: usize) -> usize {
        let mut streams = self.0.borrow_mut();
        let Some(Stream { wire, arrivals }) = streams.get_mut(&stream) else { return wanted };
        while let Some(next) = arrivals.front_mut() {
            let bytes = next.body_bytes.min(wanted);
            next.body_bytes -= bytes;
            wire.handed(next.read, bytes);
            if next.body_bytes == 0 {
                arrivals.pop_front();
            }
            if 0 < bytes || wanted == 0 {
                return bytes;
            }
        }
        wanted
    }

    /// Notes the reads that brought the end.
    fn hand_over_rest(&self, stream: u32) {
        if let Some(Stream { wire, arrivals }) = self.0.borrow_mut().get_mut(&stream) {
            for Arrival { read, body_bytes } in arrivals.drain(..) {
                wire.handed(read, body_bytes);
            }
        }
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 8;
const FRAME_HEAD_BYTES: usize = 9;
/// What a client sends before its first frame.
const PREFACE_BYTES: usize = 24;

/// Between the socket and the `h2` crate.
struct Tap {
    socket: Socket,
    wire: Wire,
    streams: Rc<Streams>,
    coming: Frames,
    leaving: Frames,
}

impl Tap {
    fn new(socket: Socket, wire: Wire, streams: Rc<Streams>) -> Self {
        // It is passed over like a frame of no known kind.
        let preface = Frames {
            head: [u8::MAX; FRAME_HEAD_BYTES],
            head_bytes: FRAME_HEAD_BYTES,
            left_bytes: PREFACE_BYTES,
            ..Frames::default()
        };
        Self { socket, wire, streams, coming: Frames::default(), leaving: preface }
    }

    fn note_left(&mut self, bytes: &[u8], at: Moment) {
        let Self { leaving, streams, .. } = self;
        leaving.follow(bytes, |stream, kind, step| {
            if kind == HEADERS && step == Step::Began {
                streams.left(stream, at);
            }
        });
    }

    fn note_came(&mut self, bytes: &[u8]) {
        let Self { coming, streams, wire, .. } = self;
        let Some(read) = wire.latest_read() else { return };
        coming.follow(bytes, |stream, kind, step| match (kind, step) {
            (DATA, Step::Body(bytes)) => streams.came(stream, read, bytes),
            (DATA | HEADERS | CONTINUATION, Step::Ended) => streams.came(stream, read, 0),
            _ => {}
        });
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
        this.note_came(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let at = this.wire.now();
        let written = ready!(Pin::new(&mut this.socket).poll_write_vectored(cx, slices))?;
        let mut left = written;
        for slice in slices {
            let (bytes, _) = slice.split_at(left.min(slice.len()));
            left -= bytes.len();
            this.note_left(bytes, at);
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

/// The frames of one direction of a connection, wherever the network cut them.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; FRAME_HEAD_BYTES],
    head_bytes: usize,
    /// Bytes of the frame that are to come.
    left_bytes: usize,
    /// Whether the next byte says how much padding follows the data.
    is_padded: bool,
    padding_bytes: usize,
}

/// What has passed of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Began,
    /// So many bytes of its data.
    Body(usize),
    Ended,
}

impl Frames {
    /// Passes on what these bytes are: the number of the stream, the kind of the frame, and the step.
    fn follow(&mut self, mut bytes: &[u8], mut on_step: impl FnMut(u32, u8, Step)) {
        while !bytes.is_empty() {
            let is_new = self.head_bytes < FRAME_HEAD_BYTES;
            if is_new {
                let missing = &mut self.head[self.head_bytes..];
                let length = missing.len().min(bytes.len());
                missing[..length].copy_from_slice(&bytes[..length]);
                self.head_bytes += length;
                bytes = &bytes[length..];
            }
            if self.head_bytes < FRAME_HEAD_BYTES {
                return;
            }
            let [high, middle, low, kind, flags, stream @ ..] = self.head;
            let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
            if is_new {
                self.left_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.is_padded = kind == DATA && flags & PADDED != 0;
                self.padding_bytes = 0;
                on_step(stream, kind, Step::Began);
            }
            let (mut part, rest) = bytes.split_at(self.left_bytes.min(bytes.len()));
            bytes = rest;
            self.left_bytes -= part.len();
            if self.is_padded
                && let [padding, data @ ..] = part
            {
                (self.is_padded, self.padding_bytes, part) = (false, usize::from(*padding), data);
            }
            let data = (part.len() + self.left_bytes).saturating_sub(self.padding_bytes);
            match data.min(part.len()) {
                0 => {}
                data => on_step(stream, kind, Step::Body(data)),
            }
            if self.left_bytes == 0 {
                self.head_bytes = 0;
                on_step(stream, kind, Step::Ended);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0x80, 0, 0, stream], payload].concat()
    }

    /// Frames as they were followed: kind, stream, bytes of data.
    fn followed<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(u8, u32, usize)> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.follow(piece, |stream, kind, step| match step {
                Step::Began => found.push((kind, stream, 0)),
                Step::Body(bytes) => found.last_mut().unwrap().2 += bytes,
                Step::Ended => assert_eq!(found.last().unwrap().1, stream),
            });
        }
        found
    }

    #[test]
    fn frames_are_followed_wherever_they_are_cut() {
        let bytes = [
            frame(HEADERS, 4, 1, b"head"),
            frame(DATA, 0, 1, b"data"),
            frame(DATA, PADDED, 3, b"\x03dataPAD"),
            frame(DATA, PADDED, 5, b"\x09too much"),
            frame(DATA, PADDED, 5, b""),
            frame(DATA, 1, 1, b""),
            frame(6, 0, 0, b"pingping"),
        ]
        .concat();
        let wanted = [(1, 1, 4), (0, 1, 4), (0, 3, 4), (0, 5, 0), (0, 5, 0), (0, 1, 0), (6, 0, 8)];
        for length in 1..=bytes.len() {
            assert_eq!(followed(bytes.chunks(length)), wanted, "in pieces of {length}");
        }
    }
}
